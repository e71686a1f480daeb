"""What every frequency-oracle protocol offers: law, reports, and what a report says of a label."""

import math
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from typing import Any, ClassVar, Final, Literal, Self

import numpy as np
import numpy.typing as npt

from ldpaudit.errors import InputError
from ldpaudit.mechanisms.channel import Channel
from ldpaudit.mechanisms.exact_sampling import Randomness
from ldpaudit.mechanisms.interface import AnalysedMechanism, Traits
from ldpaudit.mechanisms.parameters import check_classes, check_epsilon, only_known, required
from ldpaudit.release import BoolArray, FloatArray, IntArray, Label

Reports = npt.NDArray[Any]
"""Reports of n people, shape (n, d); what the d entries are is the protocol's."""
ReportKind = Literal["label", "labels", "numbers"]
"""How a released column holds a report: a label, a list of labels, or a list of numbers."""

NAME: Final = "frequency-oracle"
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
"""Where each protocol lives: a module of this package and a class."""
_BATCH = 1 << 16


@dataclass(frozen=True)
class FrequencyOracle(AnalysedMechanism):
    """A protocol by which each person reports a label under ε-LDP.

    Two labels' reports differ through a small statistic only; ``pair_channel`` is its law given
    either label, so that ε, δ(ε) and the Rényi curve are those of a 2-row channel.

    References
    ----------
    Wang, Blocki, Li & Jha (2017), Locally differentially private protocols for frequency
    estimation, USENIX Security.
    """

    traits = Traits(
        name=NAME,
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

    classes: tuple[Label, ...]
    stated_epsilon: float

    protocol: ClassVar[str]
    """The protocol's usual abbreviation."""
    report_kind: ClassVar[ReportKind]
    """How a released column holds a report."""
    parameters: ClassVar[frozenset[str]] = frozenset()
    """The declared parameters that it has besides ``classes`` and ``epsilon``."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "classes", check_classes(self.classes))
        object.__setattr__(self, "stated_epsilon", check_epsilon(self.stated_epsilon))

    @property
    def channel(self) -> None:
        """None: a report is no label."""
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
        """How many entries a report has."""

    @property
    @abstractmethod
    def pair_channel(self) -> Channel:
        """The law of what tells two labels apart, float64 of shape (2, m)."""

    @property
    @abstractmethod
    def keep_probability(self) -> float | None:
        """P(the most likely label is the true one), ties broken uniformly; None: not known."""

    @abstractmethod
    def check(self, reports: Reports) -> Reports:
        """Return reports of shape (n, d) in their own type.

        Raises
        ------
        InputError
            If some cannot come from the protocol; they are counted, not shown.
        """

    @abstractmethod
    def sample(self, labels: IntArray, rng: Randomness = None) -> Reports:
        """Draw a report for each label code, shape (n, d)."""

    @abstractmethod
    def log_ratio(self, reports: Reports, first: IntArray, second: IntArray) -> FloatArray:
        """Return log P(report | first)/P(report | second) of each row, in nats, shape (n,).

        ``first`` and ``second`` are label codes of shape (n,).
        """

    @abstractmethod
    def most_likely(self, reports: Reports) -> BoolArray:
        """Return which labels are the most likely ones, bool of shape (n, k), one at least."""

    def declaration(self) -> Mapping[str, Any]:
        """Return the parameters that rebuild it (without the mechanism's name)."""
        return {
            "protocol": self.protocol,
            "classes": list(self.classes),
            "epsilon": self.stated_epsilon,
        }

    def delta(self, epsilon: float) -> float:
        """Return the smallest δ for which it is (ε, δ)-label-DP, ε ≥ 0 in nats."""
        return self.pair_channel.delta(epsilon)

    def rdp(self, alpha: float) -> float:
        """Return its Rényi label-DP parameter at order α > 0, in nats."""
        return self.pair_channel.rdp(alpha)

    @cached_property
    def label_channel(self) -> Channel | None:
        """The channel from the true to the most likely label, exact; None where not known.

        All protocols treat labels alike, so every wrong label is equally likely.
        """
        keep = self.keep_probability
        if keep is None:
            return None
        matrix = np.full((self.k, self.k), (1 - keep) / (self.k - 1))
        np.fill_diagonal(matrix, keep)
        return Channel(matrix, self.classes, self.classes)

    def labels(self, reports: Reports, rng: np.random.Generator) -> IntArray:
        """Return a most likely label of each report, ties broken uniformly, int32 of shape (n,)."""
        found = np.empty(len(reports), dtype=np.int32)
        for start in range(0, len(reports), _BATCH):
            block = self.most_likely(reports[start : start + _BATCH])
            keys = np.where(block, rng.random(block.shape), -1.0)
            found[start : start + _BATCH] = keys.argmax(axis=1)
        return found

    @classmethod
    def from_parameters(
        cls, parameters: Mapping[str, Any], classes: tuple[Label, ...]
    ) -> "FrequencyOracle":
        """Build the declared protocol; ``classes`` stands in where none are declared."""
        protocol = required(parameters, "protocol", cls.traits.name)
        if protocol not in PROTOCOLS:
            raise InputError(f"The 'protocol' must be one of {', '.join(PROTOCOLS)}.")
        module, name = PROTOCOLS[protocol]
        place = import_module(f"ldpaudit.mechanisms.frequency_oracles.{module}")
        family: type[FrequencyOracle] = getattr(place, name)
        rest = {key: value for key, value in parameters.items() if key != "protocol"}
        only_known(rest, {"classes", "epsilon", *family.parameters}, cls.traits.name)
        named = check_classes(rest.get("classes") or classes)
        epsilon = check_epsilon(required(rest, "epsilon", cls.traits.name))
        return family.built(named, epsilon, rest)

    @classmethod
    def built(
        cls,
        classes: tuple[Label, ...],
        epsilon: float,
        parameters: Mapping[str, Any],  # noqa: ARG003
    ) -> Self:
        """Build the protocol, with the best value for each parameter that is not declared."""
        return cls(classes, epsilon)


def two_rows(matrix: list[list[float]]) -> Channel:
    """Return the channel of two labels, called 0 and 1."""
    return Channel(np.array(matrix), (0, 1), tuple(range(len(matrix[0]))))


def check_reports(reports: Reports, width: int, fine: BoolArray) -> None:
    """Refuse reports of another width, or where a row is not ``fine``, bool of shape (n,)."""
    if reports.ndim != 2 or reports.shape[1] != width:
        raise InputError(f"Every report must have {width} entries; got {reports.shape[-1]}.")
    bad = int(np.count_nonzero(~fine))
    if bad:
        raise InputError(f"Every report must be one of the declared protocol's; {bad} are not.")


def check_width(reports: Reports, width: int) -> Reports:
    """Return reports of shape (n, width), or refuse them."""
    table = np.asarray(reports)
    check_reports(table, width, np.ones(len(table), dtype=np.bool_))
    return table


def logit(p: float) -> float:
    """Return log p/(1 − p)."""
    return math.log(p) - math.log1p(-p)
