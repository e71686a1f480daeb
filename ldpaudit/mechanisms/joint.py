"""Mechanisms that release several private columns of a row: independently, or together."""

# In: the channels of the columns, or one joint mechanism. Out: the exact channel of each column
# and, where the product of the domains is small enough, that of the whole vector; the exact ε of
# both.

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Final, Self

import numpy as np
import numpy.typing as npt

from ldpaudit.errors import InputError, did_you_mean
from ldpaudit.mechanisms.capabilities import LabelByStratum
from ldpaudit.mechanisms.channel import Channel
from ldpaudit.mechanisms.exact_sampling import (
    Randomness,
)
from ldpaudit.mechanisms.finite import FiniteMechanism, check_codes
from ldpaudit.mechanisms.interface import Mechanism
from ldpaudit.mechanisms.parameters import check_classes, check_epsilon, only_known, required
from ldpaudit.mechanisms.registry import from_declaration as one_column
from ldpaudit.mechanisms.response import RandomizedResponse, Response
from ldpaudit.plugins import added, check_name, check_one, imported, ours
from ldpaudit.release import ColumnsDeclaration, Declaration, FloatArray, IntArray, Label

# The most entries of a vector's channel; a larger one is not written out.
LARGEST: Final = 1 << 24
# The largest ε in nats that joint mechanisms take: beyond it floating-point numbers no longer tell
# e^ε − 1 times a number of columns apart from what is left.
LONGEST: Final = 30.0


class JointMechanism(ABC):
    """A mechanism on vectors of d private labels: a frozen value with an exact analysis."""

    # Whether the columns' draws are independent, given the true vector.
    independent: ClassVar[bool]
    # Its name in declarations, for instance ``"rs-fd"``.
    name: ClassVar[str]

    if TYPE_CHECKING:

        @property
        def columns(self) -> tuple[Mechanism, ...]:
            """The mechanism of each column alone, d of them: the exact marginal of the whole."""
            # What an attacker knows of a column's label who sees that column only.

        @property
        def epsilon(self) -> float | None:
            """The ε of the whole vector in nats, over all pairs of true vectors: exact."""
            # None where a column claims nothing.

    @property
    @abstractmethod
    def description(self) -> str:
        """One phrase with every parametrisation; holds no label value."""

    @abstractmethod
    def channel(self) -> Channel | None:
        """Return the channel of the vector: classes and outputs are the tuples' row-major codes."""
        # None where it has more than :data:`LARGEST` entries, or a column's channel is not finite.

    @abstractmethod
    def epsilon_of(self, position: int) -> float | None:
        """Return ε in nats of the label of the column ``position``, the others' labels fixed.

        It is the largest change of the log-probability of any released vector when that label
        changes and the others, known to the attacker, do not; None where a column claims nothing.
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

    @property
    def on_domains(self) -> "OnDomains | None":
        """Itself where it is one mechanism on the product of finite domains, else None."""
        return None

    def remarks(self) -> tuple[str, ...]:
        """Return what must be known to interpret ε: what holds for a column, and for all."""
        return ()

    @abstractmethod
    def declaration(self) -> Mapping[str, Any]:
        """Return the parameters that rebuild it (without its name)."""


@dataclass(frozen=True)
class OnDomains(JointMechanism):
    """A joint mechanism on the product of finite domains.

    A subclass states ``name`` and ``title`` and writes ``epsilon``, ``epsilon_of``,
    ``noise_alone``, ``description``, ``_matrix``, which returns P(released vector | true vector),
    float64 of shape (K, K) for the K vectors in row-major order, and ``_drawn``, which releases
    checked codes, int32 of shape (n, d), with a random source ``rng``. A package registers it in
    the group ``ldpaudit.mechanisms``.

    Parameters
    ----------
    domains : tuple of tuples
        The labels of each column, at least two columns.
    stated_epsilon : float
        ε in nats as the declaration states it, at most 30.

    Raises
    ------
    InputError
        If there are fewer than two columns, a domain has fewer than two labels or equal ones, or ε
        is out of range.
    """

    # Its name in running text.
    title: ClassVar[str]
    independent = False

    domains: tuple[tuple[Label, ...], ...]
    stated_epsilon: float

    def __post_init__(self) -> None:
        domains = tuple(check_classes(domain) for domain in self.domains)
        if len(domains) < 2:
            raise InputError(
                f"The mechanism {self.name!r} releases several columns: give at least two domains."
            )
        epsilon = check_epsilon(self.stated_epsilon)
        if epsilon > LONGEST:
            raise InputError(
                f"The 'epsilon' parameter of {self.name!r} must be at most {LONGEST:g}. "
                f"Got {epsilon:g} instead."
            )
        object.__setattr__(self, "domains", domains)
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
    def columns(self) -> tuple[Response, ...]:
        alone = zip(self.domains, self.noise_alone, strict=True)
        return tuple(RandomizedResponse(domain, noise) for domain, noise in alone)

    @property
    def on_domains(self) -> "OnDomains":
        return self

    if TYPE_CHECKING:

        @property
        def epsilon(self) -> float: ...
        def epsilon_of(self, position: int) -> float: ...

    @property
    @abstractmethod
    def noise_alone(self) -> tuple[float, ...]:
        """For each column: λ of the randomized response that it is by itself."""

    def channel(self) -> Channel | None:
        vectors = tuple(range(self.size)) if self.size**2 <= LARGEST else ()
        return Channel(self._matrix(), vectors, vectors) if vectors else None

    @abstractmethod
    def _matrix(self) -> FloatArray:
        """Return P(released vector | true vector), float64 of shape (K, K)."""

    def sample(self, labels: IntArray, rng: Any = None) -> IntArray:
        return self._drawn(checked(labels, self.sizes), rng)

    @abstractmethod
    def _drawn(self, labels: IntArray, rng: Any) -> IntArray:
        """Release checked codes of shape (n, d)."""

    def declaration(self) -> Mapping[str, Any]:
        return {
            "domains": [list(domain) for domain in self.domains],
            "epsilon": self.stated_epsilon,
        }

    @classmethod
    def from_parameters(
        cls, parameters: Mapping[str, Any], domains: Sequence[tuple[Label, ...]]
    ) -> Self:
        """Build it from the ``parameters`` of a declaration, ``domains`` and ``epsilon``.

        ``domains`` are the columns' labels where it states none. InputError where a parameter is
        missing, unknown or out of range.
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


@dataclass(frozen=True)
class IndependentColumns(JointMechanism):
    """One mechanism for each column, with draws that are independent given the true vector."""

    # P(z | y) = Π_j P(z_j | y_j). The largest ratio of a product of functions of separate arguments
    # is the product of the largest ratios: ε of the vector is exactly Σ ε_j. Of columns with
    # channels by the same strata, the sum is taken in each stratum and the largest counts.
    # A column's ε within the vector, the others' labels fixed, is its own: their factors cancel. An
    # attacker who does not know the others' labels, but that they go along with this one, can learn
    # more than ε_j of it from all released columns; never more than Σ ε_j.

    name = "independent"

    columns: tuple[Mechanism, ...]
    by: tuple[str | None, ...] = field(default=())

    def __post_init__(self) -> None:
        if len(self.columns) < 2:
            raise InputError("There must be at least two private columns.")
        by = self.by or (None,) * len(self.columns)
        if len(by) != len(self.columns):
            raise InputError("Each private column must have its strata stated, or none.")
        object.__setattr__(self, "by", by)

    @property
    def description(self) -> str:
        epsilon = self.epsilon
        total = "nothing claimed" if epsilon is None else f"ε = {epsilon:.6g} nats together"
        return f"{len(self.columns)} columns released independently of each other, {total}"

    independent = True

    @cached_property
    def epsilon(self) -> float | None:
        # The columns with channels by the same public column together.
        groups: dict[object, list[Mechanism]] = {}
        for place, (column, by) in enumerate(zip(self.columns, self.by, strict=True)):
            groups.setdefault(place if by is None else by, []).append(column)
        return _sum([_together(group) for group in groups.values()])

    def channel(self) -> Channel | None:
        channels = [column.channel for column in self.columns]
        known = [channel for channel in channels if channel is not None]
        entries = math.prod(channel.matrix.size for channel in known)
        if len(known) < len(channels) or entries > LARGEST:
            return None
        matrix = known[0].matrix
        for channel in known[1:]:
            matrix = np.asarray(np.kron(matrix, channel.matrix), dtype=np.float64)
        k, m = matrix.shape
        return Channel(matrix, tuple(range(k)), tuple(range(m)))

    def epsilon_of(self, position: int) -> float | None:
        return self.columns[position].epsilon

    def remarks(self) -> tuple[str, ...]:
        return (
            "The ε of independent columns adds up, exactly: the largest ratios of all columns "
            "occur together.",
        )

    def sample(self, labels: IntArray, rng: Any = None) -> IntArray:
        """Release rows given as codes, as :meth:`JointMechanism.sample`."""
        finite = [column for column in self.columns if isinstance(column, FiniteMechanism)]
        if len(finite) < len(self.columns):
            raise InputError("Only columns with a finite channel can be released as codes.")
        codes = checked(labels, [len(column.channel.classes) for column in finite])
        drawn = [column.sample(codes[:, j], rng) for j, column in enumerate(finite)]
        return np.stack(drawn, axis=1)

    def declaration(self) -> Mapping[str, Any]:
        stated = [{"name": c.name, **c.declaration()} for c in self.columns]
        return {"mechanisms": stated}


def _together(group: list[Mechanism]) -> float | None:
    """Return the largest sum of ε over the strata that the columns of a group share."""
    strata = [column for column in group if isinstance(column, LabelByStratum)]
    values = [set(column.values) for column in strata]
    if len(strata) < len(group) or any(one != values[0] for one in values):
        return _sum([column.epsilon for column in group])
    own = [dict(zip(one.values, one.by_stratum, strict=True)) for one in strata]
    return max(_sum([one[value].epsilon for one in own]) or 0.0 for value in values[0])


def _sum(claimed: Sequence[float | None]) -> float | None:
    known = [epsilon for epsilon in claimed if epsilon is not None]
    return math.fsum(known) if len(known) == len(claimed) else None


# Those of this package, which are registered as those of others are: classes below
# :class:`OnDomains` in the entry-point group ``ldpaudit.mechanisms``.
JOINT: Final = ("joint-rr", "rs-fd")


def joint_family(name: str) -> type[OnDomains]:
    """Return the class of a joint mechanism."""
    if name in JOINT:
        point = ours("mechanism").get(name)
        if point is None:
            raise InputError(
                f"This installation lacks the mechanism {name!r}; install ldpaudit again."
            )
        known: type[OnDomains] = point.load()
        return known
    if (point := added("mechanism", JOINT).get(name)) is not None:
        check_one("mechanism", name)
        joint = imported("mechanism", point)
        if isinstance(joint, type) and issubclass(joint, OnDomains):
            check_name("mechanism", name, getattr(joint, "name", None))
            return joint
    raise InputError(
        f"The mechanism {name!r} does not release several columns together; choose one of "
        f"{', '.join(sorted(JOINT))}{did_you_mean(name, JOINT)}"
    )


def marginal_claims(declared: Declaration) -> list[Declaration]:
    """Return the exact claim about each column alone that a joint mechanism makes."""
    joint = joint_family(declared.name).from_parameters(declared.parameters, ())
    return [Declaration(one.name, one.declaration(), declared.source) for one in joint.columns]


def from_declaration(
    declaration: ColumnsDeclaration, classes: Sequence[tuple[Label, ...]]
) -> JointMechanism:
    """Build what is claimed of a vector of private columns, with every parameter checked."""
    labels = declaration.labels
    if len(classes) != len(labels):
        raise InputError(f"There are {len(labels)} private columns, but labels of {len(classes)}.")
    if declaration.joint is None:
        columns = tuple(one_column(a.mechanism, k) for a, k in zip(labels, classes, strict=True))
        return IndependentColumns(columns, tuple(one.by for one in labels))
    family = joint_family(declaration.joint.name)
    joint = family.from_parameters(declaration.joint.parameters, classes)
    if len(joint.domains) != len(labels):
        raise InputError(
            f"The mechanism {family.name!r} states {len(joint.domains)} domains, but there are "
            f"{len(labels)} private columns."
        )
    return joint
