"""Mechanisms that release several private columns of a row: independently, or together."""

# In: the channels of the columns, or one joint mechanism. Out: the exact channel of each column
# and, where the product of the domains is small enough, that of the whole vector; the exact ε of
# both.

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Final, Self

import numpy as np
import numpy.typing as npt

from ldpaudit.errors import InputError, did_you_mean
from ldpaudit.mechanisms.capabilities import LabelByStratum
from ldpaudit.mechanisms.channel import Channel
from ldpaudit.mechanisms.exact_sampling import (
    Randomness,
    bit_source,
    randomized_response,
    uniform_below,
)
from ldpaudit.mechanisms.finite import FiniteMechanism, check_codes
from ldpaudit.mechanisms.interface import Mechanism
from ldpaudit.mechanisms.parameters import check_classes, check_epsilon, only_known, required
from ldpaudit.mechanisms.registry import from_declaration as one_column
from ldpaudit.mechanisms.response import RandomizedResponse, Response, lambda_of_epsilon
from ldpaudit.plugins import added, check_name, check_one, unloadable
from ldpaudit.release import ColumnsDeclaration, Declaration, FloatArray, IntArray, Label

# The most entries of a vector's channel; a larger one is not written out.
LARGEST: Final = 1 << 24
# The most vectors: with more of them hardly a row in 2⁵⁰ would be kept.
MOST: Final = 1 << 50
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


class JointRR(OnDomains):
    """Keep the whole vector with probability 1 − λ, else draw each column again, uniformly."""

    # With K vectors and λ = K/(K − 1 + e^ε) this is randomized response on K labels. A column seen
    # alone is randomized response with the same λ on its own labels.
    # Kairouz, Bonawitz & Ramage (2016); Domingo-Ferrer & Soria-Comas (2022), RR-Joint.

    name = "joint-rr"
    title = "randomized response on the product of the domains"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.size > MOST:
            raise InputError(
                f"The product of the domains has {self.size:.3g} vectors: next to nothing would be "
                f"kept. Release the columns independently, or with random sampling plus fake data."
            )

    @property
    def description(self) -> str:
        return (
            f"{self.title}, {self.size} vectors of {len(self.domains)} columns: "
            f"λ = {self.noise:.6g}, ε = {self.epsilon:.6g} nats for all columns, released "
            f"as it is with probability {self.kept + self.noise / self.size:.6g}"
        )

    @property
    def epsilon(self) -> float:
        return self.stated_epsilon

    @property
    def kept(self) -> float:
        """1 − λ = (e^ε − 1)/(K − 1 + e^ε): the probability that the vector is not drawn again."""
        gain = math.expm1(self.stated_epsilon)
        return gain / (self.size + gain)

    @property
    def noise(self) -> float:
        """λ = K/(K − 1 + e^ε), without the rounding of 1 − (1 − λ)."""
        return self.size / (self.size + math.expm1(self.stated_epsilon))

    @cached_property
    def noise_alone(self) -> tuple[float, ...]:
        return (self.noise,) * len(self.domains)

    def epsilon_of(self, position: int) -> float:  # noqa: ARG002
        return self.stated_epsilon

    def remarks(self) -> tuple[str, ...]:
        return (
            "ε is the same for all columns and for one column whose others the attacker knows.",
            "A column's own ε, as printed for each column, holds for somebody who sees that "
            "released column only.",
        )

    def _matrix(self) -> FloatArray:
        return self.kept * np.eye(self.size) + self.noise / self.size

    def _drawn(self, labels: IntArray, rng: Any) -> IntArray:
        source, out = bit_source(rng), labels.copy()
        words = source.words(len(out))
        # The smaller of the two probabilities is compared, rounded towards privacy.
        if self.kept < self.noise:
            redrawn = words >= np.uint64(math.floor(Fraction(self.kept) * (1 << 64)))
        else:
            redrawn = words < np.uint64(math.ceil(Fraction(self.noise) * (1 << 64)))
        anew = np.flatnonzero(redrawn)
        for j, k in enumerate(self.sizes):
            out[anew, j] = uniform_below(k, len(anew), source)
        return out


class RandomSampling(OnDomains):
    """RS+FD[GRR]: draw one of d columns, randomize it at ε', fill the others uniformly.

    ε' = log(d(e^ε − 1) + 1) for the published ε; which column was drawn is not released. With
    G_j(z_j | y_j) the randomized response of column j at ε' on k_j labels,

        P(z | y) = Π_l 1/k_l · (1/d) Σ_j k_j G_j(z_j | y_j),

    where k_j G_j is e^ε' Q_j if z_j = y_j, else Q_j = k_j/(e^ε' + k_j − 1). So the largest ratio
    for the whole vector is e^ε', and for column i, the others known, 1 + d(e^ε − 1) Q_i/Σ_l Q_l.

    Arcolezi, Couchot, Al Bouna & Xiao (2021), RS+FD with GRR, argue by amplification by sampling
    for the published ε; the ratios are ours, see ``docs/mechanisms/rs-fd.md``.
    """

    name = "rs-fd"
    title = "random sampling plus fake data"

    @property
    def description(self) -> str:
        return (
            f"{self.title} on {len(self.domains)} columns: published ε = "
            f"{self.stated_epsilon:.6g} nats, randomized response at ε' = {self.epsilon:.6g} on "
            f"one column drawn at random, uniform fake data in the others; ε = "
            f"{self.epsilon:.6g} nats for all columns"
        )

    @cached_property
    def epsilon(self) -> float:
        return math.log1p(self._gain)

    @property
    def _gain(self) -> float:
        """e^ε' − 1 = d(e^ε − 1)."""
        return len(self.domains) * math.expm1(self.stated_epsilon)

    @cached_property
    def noise_alone(self) -> tuple[float, ...]:
        gain, d = self._gain, len(self.domains)
        return tuple((d * k + (d - 1) * gain) / (d * (k + gain)) for k in self.sizes)

    @cached_property
    def _apart(self) -> tuple[float, ...]:
        """Q_j = k_j/(e^ε' + k_j − 1): k_j times the probability of one wrong label."""
        return tuple(k / (k + self._gain) for k in self.sizes)

    def epsilon_of(self, position: int) -> float:
        return math.log1p(self._gain * self._apart[position] / math.fsum(self._apart))

    def remarks(self) -> tuple[str, ...]:
        d, stated = len(self.domains), self.stated_epsilon
        whole = (
            f"The published ε = {stated:.6g} is not that of all columns: for rows that "
            f"differ in all {d} columns it is ε' = {self.epsilon:.6g}, exactly."
        )
        own = [self.epsilon_of(j) for j in range(d)]
        if len(set(self.sizes)) == 1:
            one = "For one column, the others known to the attacker, it is exactly the published ε."
        else:
            above = sum(value > stated + 1e-12 for value in own)
            one = (
                f"For one column, the others known to the attacker, it lies between "
                f"{min(own):.6g} and {max(own):.6g}: the published ε does not hold for {above} "
                f"of {d} columns, those with more labels than the others."
            )
        alone = "A column's own ε holds for somebody who sees that released column only."
        return whole, one, alone

    def _matrix(self) -> FloatArray:
        total = np.zeros((self.size, self.size))
        vectors = np.unravel_index(np.arange(self.size), self.sizes)
        for codes, apart in zip(vectors, self._apart, strict=True):
            total += apart * (1 + self._gain * (codes[:, None] == codes))
        return total / (len(self.domains) * self.size)

    def _drawn(self, labels: IntArray, rng: Any) -> IntArray:
        source, out = bit_source(rng), labels.copy()
        drawn = uniform_below(len(self.domains), len(out), source)
        for j, k in enumerate(self.sizes):
            noise, own = lambda_of_epsilon(self.epsilon, k), drawn == j
            out[own, j] = randomized_response(out[own, j], noise, k, source)
            out[~own, j] = uniform_below(k, int((~own).sum()), source)
        return out


JOINT: Final[Mapping[str, type[OnDomains]]] = {
    family.name: family for family in (JointRR, RandomSampling)
}
"""The built-in mechanisms that release several columns together, by name.

Those of other packages are classes below :class:`OnDomains` in the entry-point group
``ldpaudit.mechanisms``."""


def joint_family(name: str) -> type[OnDomains]:
    """Return the class of a joint mechanism."""
    if name not in JOINT:
        if (point := added("mechanism", JOINT).get(name)) is not None:
            check_one("mechanism", name)
            try:
                joint = point.load()
            except (Exception, SystemExit) as error:
                raise unloadable("mechanism", name, error) from error
            if isinstance(joint, type) and issubclass(joint, OnDomains):
                check_name("mechanism", name, getattr(joint, "name", None))
                return joint
        raise InputError(
            f"The mechanism {name!r} does not release several columns together; choose one of "
            f"{', '.join(sorted(JOINT))}{did_you_mean(name, JOINT)}"
        )
    return JOINT[name]


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
