"""The private columns of a release, each with its mechanism, or with one for all together."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from ldpaudit.commands.privatize.labels.domains import ClassDomain, RoundedDomain
from ldpaudit.commands.privatize.labels.priors import Prior
from ldpaudit.commands.privatize.labels.survey import Survey
from ldpaudit.commands.privatize.request import ColumnRequest
from ldpaudit.errors import InputError
from ldpaudit.mechanisms.interface import Mechanism
from ldpaudit.mechanisms.joint import IndependentColumns, JointMechanism
from ldpaudit.release import ColumnsDeclaration, Declaration, IntArray, LabelDeclaration

CHANGED = "The data changed while it was read; run again when nothing writes to it."


@dataclass(frozen=True, eq=False)
class PrivateColumn:
    """A private column with its mechanism.

    Attributes
    ----------
    request : ColumnRequest
    field : pyarrow.Field
        The true labels' column.
    survey : Survey
        What the first pass found.
    mechanism : Mechanism
        Of a joint release: the column's own, as somebody sees it who sees no other.
    prior : Prior or None
        What a design was made for.
    strata : ClassDomain or None
        The values of the column ``request.by``.
    warnings : tuple of str
    """

    request: ColumnRequest
    field: pa.Field
    survey: Survey
    mechanism: Mechanism
    prior: Prior | None = None
    strata: ClassDomain | None = None
    warnings: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The column."""
        return self.request.label

    @property
    def spent(self) -> float:
        """ε in nats that a private prior spent."""
        return 0.0 if self.prior is None else self.prior.epsilon

    def codes(self, label: pa.Array) -> IntArray:
        """Return codes of a batch's true labels, int32 of shape (n,)."""
        codes = self.survey.domain.codes(label)
        if (codes < 0).any():  # The first pass found none.
            raise InputError(CHANGED)
        return codes


@dataclass(frozen=True, eq=False)
class PrivateColumns:
    """All private columns of a release, one at least.

    ``joint`` is the mechanism that releases all of them together; None: each has its own.
    """

    each: tuple[PrivateColumn, ...]
    joint: JointMechanism | None = None

    def __iter__(self) -> Iterator[PrivateColumn]:
        """Give each column."""
        return iter(self.each)

    def __len__(self) -> int:
        """Return the number of columns."""
        return len(self.each)

    @property
    def first(self) -> PrivateColumn:
        """The only column, where there is one."""
        return self.each[0]

    @property
    def names(self) -> tuple[str, ...]:
        """The columns."""
        return tuple(one.name for one in self.each)

    @property
    def rows(self) -> int:
        """The number of rows."""
        return self.first.survey.rows

    @property
    def labels_epsilon(self) -> float:
        """ε in nats of all released labels of a row together."""
        return self.together.epsilon or 0.0

    @property
    def together(self) -> Mechanism | JointMechanism:
        """The mechanism of the whole vector; of one column its own."""
        if self.joint is not None:
            return self.joint
        if len(self) == 1:
            return self.first.mechanism
        return IndependentColumns(
            tuple(one.mechanism for one in self.each), tuple(one.request.by for one in self.each)
        )

    @property
    def spent(self) -> float:
        """ε in nats that private priors spent, those of all columns together."""
        return sum(one.spent for one in self.each)

    def declaration(self) -> ColumnsDeclaration:
        """Return what is declared about the columns, without the provenance."""
        if self.joint is not None:
            labels = tuple(LabelDeclaration(name) for name in self.names)
            return ColumnsDeclaration(labels, _claim(self.joint))
        return ColumnsDeclaration(
            tuple(LabelDeclaration(c.name, _claim(c.mechanism), c.request.by) for c in self)
        )


class LabelCounts:
    """How often each label occurs when the rows are read again: as often as the first time."""

    def __init__(self, columns: PrivateColumns) -> None:
        self._columns = columns
        self._counts = [np.zeros_like(one.survey.counts) for one in columns]

    def add(self, codes: Sequence[IntArray]) -> None:
        """Count the labels of further rows, for each column."""
        for counts, own in zip(self._counts, codes, strict=True):
            np.add(counts, np.bincount(own, minlength=len(counts)), out=counts)

    def check(self) -> None:
        """Check that all rows were read, and each label as often as before.

        Raises
        ------
        InputError
            If that is not so. Labels that are rounded at random are counted all together.
        """
        for one, counts in zip(self._columns, self._counts, strict=True):
            drawn = isinstance(one.survey.domain, RoundedDomain)
            before = one.survey.counts
            if counts.sum() != before.sum() or not (drawn or np.array_equal(counts, before)):
                raise InputError(CHANGED)


def _claim(mechanism: Mechanism | JointMechanism) -> Declaration:
    return Declaration(mechanism.name, dict(mechanism.declaration()), "api")
