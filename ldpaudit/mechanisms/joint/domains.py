"""The base of joint mechanisms that are stated by the columns' domains and one ε."""

import math
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Final, Self

import numpy as np
import numpy.typing as npt

from ldpaudit.errors import InputError
from ldpaudit.mechanisms.channel import Channel
from ldpaudit.mechanisms.finite import check_codes
from ldpaudit.mechanisms.joint.interface import LARGEST, JointMechanism
from ldpaudit.mechanisms.parameters import check_classes, check_epsilon, only_known, required
from ldpaudit.mechanisms.response.randomized_response import RandomizedResponse
from ldpaudit.release import FloatArray, IntArray, Label

LONGEST: Final = 30.0
"""The largest ε in nats that they take: beyond it floating-point numbers no longer tell e^ε − 1
times a number of columns apart from what is left."""


@dataclass(frozen=True)
class OnDomains(JointMechanism):
    """A joint mechanism on the product of finite domains.

    Parameters
    ----------
    domains : tuple of tuple, length d ≥ 2
        The labels of each column, at least two each.
    stated_epsilon : float
        The ε in nats that the mechanism is stated by; :attr:`epsilon` is that of the whole vector.
    """

    title: ClassVar[str]
    """Its name in running text."""

    domains: tuple[tuple[Label, ...], ...]
    stated_epsilon: float

    def __post_init__(self) -> None:
        domains = tuple(check_classes(domain) for domain in self.domains)
        if len(domains) < 2:
            raise InputError(
                f"The mechanism {self.name!r} releases several columns: state at least two domains."
            )
        object.__setattr__(self, "domains", domains)
        epsilon = check_epsilon(self.stated_epsilon)
        if epsilon > LONGEST:
            raise InputError(
                f"The 'epsilon' parameter of {self.name!r} must be at most {LONGEST:g}. "
                f"Got {epsilon:g} instead."
            )
        object.__setattr__(self, "stated_epsilon", epsilon)

    @property
    def sizes(self) -> tuple[int, ...]:
        """The number of labels of each column."""
        return tuple(len(domain) for domain in self.domains)

    @property
    def size(self) -> int:
        """The number of vectors: the product of the sizes."""
        return math.prod(self.sizes)

    @cached_property
    def columns(self) -> tuple[RandomizedResponse, ...]:
        """Each column alone: randomized response, exactly."""
        alone = zip(self.domains, self.noise_alone, strict=True)
        return tuple(RandomizedResponse(domain, noise) for domain, noise in alone)

    @property
    def independent(self) -> bool:
        """False: the columns' draws depend on each other."""
        return False

    @property
    @abstractmethod
    def epsilon(self) -> float:
        """ε of the whole vector in nats, over all pairs of true vectors: exact."""

    @abstractmethod
    def epsilon_of(self, position: int) -> float:
        """Return the ε of one column, as :meth:`JointMechanism.epsilon_of`."""

    @property
    @abstractmethod
    def noise_alone(self) -> tuple[float, ...]:
        """For each column: λ of the randomized response that it is by itself."""

    def channel(self) -> Channel | None:
        """Return the channel of the vector, as :meth:`JointMechanism.channel`."""
        if self.size**2 > LARGEST:
            return None
        vectors = tuple(range(self.size))
        return Channel(self._matrix(), vectors, vectors)

    @abstractmethod
    def _matrix(self) -> FloatArray:
        """Return P(released vector | true vector), float64 of shape (K, K)."""

    def sample(self, labels: IntArray, rng: Any = None) -> IntArray:
        """Release rows given as codes, as :meth:`JointMechanism.sample`."""
        return self._drawn(checked(labels, self.sizes), rng)

    @abstractmethod
    def _drawn(self, labels: IntArray, rng: Any) -> IntArray:
        """Release checked codes of shape (n, d)."""

    def declaration(self) -> Mapping[str, Any]:
        """Return ``domains`` and ``epsilon``."""
        return {
            "domains": [list(domain) for domain in self.domains],
            "epsilon": self.stated_epsilon,
        }

    @classmethod
    def from_parameters(
        cls, parameters: Mapping[str, Any], domains: Sequence[tuple[Label, ...]]
    ) -> Self:
        """Build it from a declaration; ``domains`` are the columns' labels where it states none.

        Raises
        ------
        InputError
            If a parameter is missing, unknown or out of range.
        """
        only_known(parameters, {"domains", "epsilon"}, cls.name)
        stated = parameters.get("domains") or tuple(domains)
        if isinstance(stated, str) or not isinstance(stated, Sequence):
            raise InputError("The 'domains' must be a list of labels for each column.")
        return cls(tuple(stated), required(parameters, "epsilon", cls.name))


def checked(labels: npt.NDArray[Any], sizes: Sequence[int]) -> IntArray:
    """Return codes of shape (n, d) as int32; each must lie in its column's domain."""
    codes = np.asarray(labels)
    if codes.ndim != 2 or codes.shape[1] != len(sizes):
        raise InputError(f"The labels must have one column for each of {len(sizes)} domains.")
    columns = [check_codes(codes[:, j], k) for j, k in enumerate(sizes)]
    return np.stack(columns, axis=1)


def agreements(sizes: Sequence[int], column: int) -> npt.NDArray[np.bool_]:
    """Return which pairs of vectors agree in one column, bool of shape (K, K), row-major codes."""
    codes = np.unravel_index(np.arange(math.prod(sizes)), tuple(sizes))[column]
    return np.asarray(codes[:, None] == codes[None, :])
