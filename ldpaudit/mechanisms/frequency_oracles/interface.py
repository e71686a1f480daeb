"""The interface of a frequency-oracle protocol: its law and its reports."""

import math
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from typing import Any, ClassVar, Final, Literal

import numpy as np
import numpy.typing as npt

from ldpaudit.errors import InputError
from ldpaudit.mechanisms.channel import Channel
from ldpaudit.mechanisms.exact_sampling import Randomness
from ldpaudit.mechanisms.interface import AnalysedMechanism, Traits
from ldpaudit.mechanisms.parameters import (
    Parameter,
    check_classes,
    check_epsilon,
    fields_of,
    required,
)
from ldpaudit.release import BoolArray, FloatArray, IntArray, Label

Reports = npt.NDArray[Any]
"""Reports of n people, shape (n, d); the protocol defines the d entries."""
ReportKind = Literal["label", "labels", "numbers"]
"""How a released column holds a report: a label, a list of labels, or a list of numbers."""

PROTOCOLS: Final[Mapping[str, tuple[str, str]]] = {
    "GRR": ("generalized_rr", "GeneralizedRR"),
    "SS": ("subset_selection", "SubsetSelection"),
    "SUE": ("unary_encoding", "SymmetricUnaryEncoding"),
    "OUE": ("unary_encoding", "OptimizedUnaryEncoding"),
    "THE": ("thresholded_histogram", "ThresholdedHistogram"),
    "SHE": ("summed_histogram", "SummedHistogram"),
    "BLH": ("local_hashing", "BinaryLocalHashing"),
    "OLH": ("local_hashing", "OptimizedLocalHashing"),
}
"""The protocols: a module of this package and a class each."""
_BATCH = 1 << 16


@dataclass(frozen=True)
class FrequencyOracle(AnalysedMechanism):
    """A protocol by which each person reports a label under ε-LDP.

    Reports of two labels differ only in a small statistic; ``pair_channel`` is its law given either
    label. So ε, δ(ε) and the Rényi curve are those of a channel with two rows.

    References
    ----------
    Wang, Blocki, Li & Jha (2017), Locally differentially private protocols for frequency
    estimation, USENIX Security.
    """

    traits = Traits(
        name="frequency-oracle",
        title="a frequency oracle",
        labels="classes",
        outputs="reports",
        label_depends_on_features=False,
        features="unchanged",
        rows="independent",
        options=(),
        stated_by=("epsilon",),
        whole=False,
        needs=frozenset({"protocol"}),
    )

    declared: ClassVar[tuple[Parameter, ...]] = (
        Parameter("classes", check_classes),
        Parameter("epsilon", check_epsilon, "stated_epsilon"),
    )

    classes: tuple[Label, ...]
    stated_epsilon: float

    protocol: ClassVar[str]
    """The protocol's usual abbreviation."""
    report_kind: ClassVar[ReportKind]
    """How a released column holds a report."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "classes", check_classes(self.classes))
        object.__setattr__(self, "stated_epsilon", check_epsilon(self.stated_epsilon))

    @property
    def channel(self) -> None:
        """None: a report is not a label."""
        return None

    @property
    def k(self) -> int:
        """The number of labels."""
        return len(self.classes)

    @property
    def epsilon(self) -> float:
        """The exact ε in nats."""
        return self.stated_epsilon

    @property
    @abstractmethod
    def width(self) -> int:
        """The number of entries of a report."""

    @property
    @abstractmethod
    def pair_channel(self) -> Channel:
        """The law of the statistic that distinguishes two labels, of shape (2, m)."""

    @property
    @abstractmethod
    def keep_probability(self) -> float | None:
        """P(the most likely label is the true one), ties broken uniformly; None: not known."""

    @property
    def unit(self) -> float:
        """The log likelihood ratio, in nats, of two labels whose support differs by 1."""
        return self.stated_epsilon

    @abstractmethod
    def read(self, table: Reports) -> tuple[Reports, BoolArray]:
        """Return reports of the right width in their own type, and which are possible, (n,)."""

    def check(self, reports: Reports) -> Reports:
        """Return reports of shape (n, d) in their own type.

        Raises
        ------
        InputError
            If some cannot come from the protocol; they are counted, not shown.
        """
        table = np.asarray(reports)
        if table.ndim != 2 or table.shape[1] != self.width:
            raise InputError(f"Every report must have {self.width} entries; got {table.shape[-1]}.")
        typed, possible = self.read(table)
        bad = int(np.count_nonzero(~possible))
        if bad:
            raise InputError(f"Every report must be possible in its protocol; {bad} are not.")
        return typed

    @abstractmethod
    def sample(self, labels: IntArray, rng: Randomness = None) -> Reports:
        """Draw a report for each label code, shape (n, d)."""

    @abstractmethod
    def support(self, reports: Reports, codes: IntArray) -> FloatArray:
        """Return how far each report supports a label, in :attr:`unit`, float64 of shape (n,).

        Most protocols: 1 where the report agrees with the label, else 0.
        """

    def log_ratio(self, reports: Reports, first: IntArray, second: IntArray) -> FloatArray:
        """Return log P(report | first)/P(report | second) of each row, in nats, shape (n,).

        ``first`` and ``second`` are label codes of shape (n,).
        """
        return self.unit * (self.support(reports, first) - self.support(reports, second))

    @abstractmethod
    def most_likely(self, reports: Reports) -> BoolArray:
        """Return which labels are the most likely, bool of shape (n, k), at least one a row."""

    def declaration(self) -> Mapping[str, Any]:
        """Return the protocol and its parameters."""
        return {"protocol": self.protocol, **super().declaration()}

    def delta(self, epsilon: float) -> float:
        """Return the smallest δ for which it is (ε, δ)-label-DP, ε ≥ 0 in nats."""
        return self.pair_channel.delta(epsilon)

    def rdp(self, alpha: float) -> float:
        """Return its Rényi label-DP parameter at order α > 0, in nats."""
        return self.pair_channel.rdp(alpha)

    @cached_property
    def label_channel(self) -> Channel | None:
        """The channel from the true to the most likely label, exact; None where not known.

        Every protocol treats labels alike, so all wrong labels are equally likely.
        """
        keep = self.keep_probability
        if keep is None:
            return None
        matrix = np.full((self.k, self.k), (1 - keep) / (self.k - 1))
        np.fill_diagonal(matrix, keep)
        return Channel(matrix, self.classes, self.classes)

    def labels(self, reports: Reports, rng: np.random.Generator) -> IntArray:
        """Return a most likely label of each report, ties broken uniformly, int32 of shape (n,)."""
        codes = np.empty(len(reports), dtype=np.int32)
        for start in range(0, len(reports), _BATCH):
            block = self.most_likely(reports[start : start + _BATCH])
            keys = np.where(block, rng.random(block.shape), -1.0)
            codes[start : start + _BATCH] = keys.argmax(axis=1)
        return codes

    @classmethod
    def from_parameters(
        cls, parameters: Mapping[str, Any], classes: tuple[Label, ...]
    ) -> "FrequencyOracle":
        """Build the declared protocol, with the best value of each parameter not declared."""
        protocol = required(parameters, "protocol", cls.traits.name)
        if protocol not in PROTOCOLS:
            raise InputError(f"The 'protocol' must be one of {', '.join(PROTOCOLS)}.")
        module, name = PROTOCOLS[protocol]
        place = import_module(f"ldpaudit.mechanisms.frequency_oracles.{module}")
        family: type[FrequencyOracle] = getattr(place, name)
        rest = {key: value for key, value in parameters.items() if key != "protocol"}
        return family(**fields_of(family.declared, rest, classes, cls.traits.name))


def two_rows(matrix: list[list[float]]) -> Channel:
    """Return the channel of two labels, called 0 and 1."""
    return Channel(np.array(matrix), (0, 1), tuple(range(len(matrix[0]))))


def response_rows(p: float, epsilon: float, size: int) -> Channel:
    """Return the law of randomized response on ``size`` values: the one, the other, any third."""
    q = math.exp(-epsilon) * p
    return two_rows([[p, q, (size - 2) * q], [q, p, (size - 2) * q]])


def logit(p: float) -> float:
    """Return log p/(1 − p)."""
    return math.log(p) - math.log1p(-p)
