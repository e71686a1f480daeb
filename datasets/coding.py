"""What the reader must know about the declared mechanism to turn released labels into codes.

Readers know no mechanism; whoever calls them hands one of these over.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np
import numpy.typing as npt

from ldpaudit.numeric_labels import NumericView
from ldpaudit.release import Declaration, IntArray, Label

Reports = npt.NDArray[Any]
"""Reports of n people, shape (n, d); what the d entries are is the protocol's."""


class ReportReading(Protocol):
    """What the declared protocol says about its reports."""

    @property
    def classes(self) -> tuple[Label, ...]:
        """The labels."""

    @property
    def report_kind(self) -> Literal["label", "labels", "numbers"]:
        """How the column holds a report."""

    def check(self, reports: Reports) -> Reports:
        """Return reports of shape (n, d), or raise where some are not the protocol's."""

    def labels(self, reports: Reports, rng: np.random.Generator) -> IntArray:
        """Return a most likely label's code for each report, ties broken at random."""


class BagReading(Protocol):
    """What the declared mechanism says about the sums of its bags."""

    bag: str
    classes: tuple[Label, ...]
    statistic: str

    @property
    def sums_are_whole(self) -> bool:
        """Whether every released sum is a whole number."""

    @property
    def sums_fit_the_bag(self) -> bool:
        """Whether every released sum lies between 0 and the bag's size."""


class LabelCoding(Protocol):
    """How the labels of a declared mechanism are coded."""

    @property
    def outputs_are_labels(self) -> bool:
        """Whether what is released is one of the labels, unless outputs are declared."""

    @property
    def order_of_classes_matters(self) -> bool:
        """Whether the classes must be declared: they are the rows of a matrix."""

    @property
    def bags(self) -> BagReading | None:
        """How sums of bags are read; None where each row is released by itself."""

    @property
    def reports(self) -> ReportReading | None:
        """How reports are read that are no labels; None for a mechanism that releases labels."""

    def view(self, rows: int) -> NumericView | None:
        """Return how labels that are numbers are coded; None for a mechanism on classes."""


Coding = Callable[[Declaration | None], LabelCoding]


@dataclass(frozen=True)
class PlainCoding:
    """Released labels are labels; without a declaration nothing is known of them."""

    declaration: Declaration | None
    order_of_classes_matters: bool = False
    bags: None = None
    reports: None = None

    @property
    def outputs_are_labels(self) -> bool:
        """Whether there is a declaration."""
        return self.declaration is not None

    def view(self, rows: int) -> None:
        """Return None: labels are no numbers."""
