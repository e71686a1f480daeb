"""The interface of a mechanism that releases the vector of several private columns."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Final

from ldpaudit.mechanisms.channel import Channel
from ldpaudit.mechanisms.exact_sampling import Randomness
from ldpaudit.mechanisms.interface import Mechanism
from ldpaudit.release import IntArray

LARGEST: Final = 1 << 24
"""The most entries of a vector's channel; a larger one is not written out."""


class JointMechanism(ABC):
    """A mechanism on vectors of d private labels: a frozen value with an exact analysis."""

    name: ClassVar[str]
    """Its name in declarations, for instance ``"rs-fd"``."""

    if TYPE_CHECKING:

        @property
        def columns(self) -> tuple[Mechanism, ...]:
            """The mechanism of each column alone, d of them: the exact marginal of the whole.

            What an attacker knows of a column's label who sees that column only.
            """

        @property
        def epsilon(self) -> float | None:
            """The ε of the whole vector in nats, over all pairs of true vectors: exact.

            None where a column claims nothing.
            """

    @property
    @abstractmethod
    def description(self) -> str:
        """One phrase with every parametrisation; holds no label value."""

    @property
    @abstractmethod
    def independent(self) -> bool:
        """Whether the columns' draws are independent, given the true vector."""

    @abstractmethod
    def channel(self) -> Channel | None:
        """Return the channel of the vector: classes and outputs are the tuples' row-major codes.

        None where it has more than :data:`LARGEST` entries, or a column's channel is not finite.
        """

    @abstractmethod
    def epsilon_of(self, position: int) -> float | None:
        """Return the ε of one column's label within the whole vector, the others' labels fixed.

        In nats: the largest change of the log-probability of any released vector when that label
        changes and the others, known to the attacker, do not.
        """

    @abstractmethod
    def sample(self, labels: IntArray, rng: Randomness = None) -> IntArray:
        """Release rows given as codes.

        Parameters
        ----------
        labels : int32 array of shape (n, d)
            Codes of the true labels, column by column.
        rng : numpy.random.Generator or BitSource, optional
            Default: the operating system.

        Returns
        -------
        int32 array of shape (n, d)
            Codes of the outputs, column by column.
        """

    def remarks(self) -> tuple[str, ...]:
        """Return what a reader must know to interpret ε: what holds for a column, and the whole."""
        return ()

    @abstractmethod
    def declaration(self) -> Mapping[str, Any]:
        """Return the parameters that rebuild it (without its name)."""
