"""The first pass: check all true labels, and count each."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ldpaudit.commands.privatize.labels.domains import (
    ClassDomain,
    GridDomain,
    LabelDomain,
    RangeDomain,
    RoundedDomain,
    bare_labels,
    bare_type,
    check_label_type,
    label_values,
)
from ldpaudit.datasets.formats.batches import BatchSource
from ldpaudit.datasets.labels import (
    CONTINUOUS_FROM,
    forms,
    in_order,
    most_classes,
    too_many,
)
from ldpaudit.datasets.names import quoted
from ldpaudit.errors import InputError
from ldpaudit.release import Label
from ldpaudit.running.progress import Progress

CountArray = npt.NDArray[np.int64]
_MOST_FOUND = 100_000


@dataclass(frozen=True, eq=False)
class Survey:
    """The result of the first pass.

    Attributes
    ----------
    rows : int
        n.
    domain : LabelDomain
        The possible labels; every true label is one of them.
    counts : int64 array of shape (k,)
        How many rows have each label; for a range of real numbers one count of all.
    found : pyarrow.Array, found_values : tuple
        The distinct labels of the data and their plain values; empty for numeric domains.
    from_data : bool
        Whether the classes were read from the data.
    """

    rows: int
    domain: LabelDomain
    counts: CountArray
    found: pa.Array
    found_values: tuple[Label, ...] = ()
    from_data: bool = False

    @property
    def spelt(self) -> pa.Array:
        """The labels that a release writes as the data do: of declared ones none.

        Spelt as in the data, "TRUE" among others would show that somebody has that label.
        """
        return self.found if self.from_data else self.found[:0]


class Count(Protocol):
    """Reads one column, batch by batch."""

    def add(self, column: pa.Array) -> None:
        """Add further rows."""


class LabelCount(Count, Protocol):
    """Reads the true labels of one column."""

    def survey(self, name: str) -> Survey:
        """Return what was read of the table with this name.

        Raises
        ------
        InputError
            If there is no row, or a label is missing or none that the mechanism takes; rows are
            counted.
        """


class ClassCount:
    """Reads the labels of a mechanism on classes.

    Parameters
    ----------
    kind : pyarrow.DataType
        The column's type.
    classes : sequence or None
        The declared labels; None to take those that occur, sorted by value: at least two, and no
        more than the rows allow.
    hint : str
        Ends the message about labels that are not declared.

    Raises
    ------
    InputError
        If it is no type of labels.
    """

    def __init__(self, kind: pa.DataType, classes: Sequence[Label] | None, hint: str = "") -> None:
        check_label_type(kind, numeric=False)
        self._tally, self._classes, self._hint = Tally(bare_type(kind)), classes, hint
        self._rows = 0

    def add(self, column: pa.Array) -> None:
        """Add the labels of further rows."""
        self._tally.add(column)
        self._rows += len(column)

    def survey(self, name: str) -> Survey:
        """Return what was read; InputError, too, where a label is infinite."""
        tally, rows, classes = self._tally, self._rows, self._classes
        tally.check(name, rows)
        values = label_values(tally.found)
        forms(values, "true labels")
        if classes is None:
            _check_amount(values, rows)
        ordered = in_order(values) if classes is None else tuple(classes)
        domain = ClassDomain(ordered, tally.found, values)
        counts, outside = _recounted(domain, tally.counts)
        if outside:
            raise InputError(_outside(outside, rows) + self._hint)
        return Survey(rows, domain, counts, tally.found, values, from_data=classes is None)


class NumberCount:
    """Reads the labels of a mechanism on a declared range of numbers.

    ``hint`` ends the message about labels that are not in the domain.
    """

    def __init__(
        self, kind: pa.DataType, domain: GridDomain | RangeDomain | RoundedDomain, hint: str = ""
    ) -> None:
        check_label_type(kind, numeric=True)
        self._domain, self._hint = domain, hint
        self._counts = np.zeros(max(len(domain.classes), 1), dtype=np.int64)
        self._rows = self._missing = self._outside = 0

    def add(self, column: pa.Array) -> None:
        """Add the labels of further rows."""
        codes, lost = self._domain.codes(column), bare_labels(column).null_count
        self._rows, self._missing = self._rows + len(column), self._missing + lost
        self._outside += int((codes < 0).sum()) - lost
        self._counts += np.bincount(codes[codes >= 0], minlength=len(self._counts))

    def survey(self, name: str) -> Survey:
        """Return what was read; InputError, too, where a number is outside or off its grid."""
        _check_complete(name, self._rows, self._missing)
        if self._outside:
            step = self._domain.labels.step if isinstance(self._domain, GridDomain) else None
            grid = "" if step is None else f" and on its grid of steps of {step:g}"
            raise InputError(
                f"The labels must lie in the declared range{grid}; {self._outside:,} of "
                f"{self._rows} rows do not.{self._hint}"
            )
        return Survey(self._rows, self._domain, self._counts, pa.array([], pa.float64()))


def read_labels(
    source: BatchSource, counts: Sequence[tuple[str, Count]], progress: Progress
) -> None:
    """Read columns, each with what reads its labels, in one pass over the rows."""
    progress.step("reading the labels")
    done, names = 0, list(dict.fromkeys(name for name, _ in counts))
    for batch in source.batches(names):
        for name, count in counts:
            count.add(batch.column(name))
        done += len(batch)
        if source.row_count:
            progress.advance(done, source.row_count)


class Tally:
    """Distinct labels, and how often each occurs."""

    def __init__(self, kind: pa.DataType) -> None:
        self.found = pa.array([], kind)
        self.counts: CountArray = np.zeros(0, dtype=np.int64)
        self.missing = self.infinite = 0

    def add(self, column: pa.Array) -> None:
        """Count further rows."""
        plain = bare_labels(column)
        self.missing += plain.null_count
        if pa.types.is_floating(plain.type):
            self.infinite += pc.sum(pc.is_inf(plain)).as_py() or 0
        seen = pc.value_counts(plain.drop_null())
        values, counts = seen.field("values"), seen.field("counts").to_numpy()
        place = pc.index_in(values, value_set=self.found)
        new = place.is_null().to_numpy(zero_copy_only=False)
        self.counts[place.drop_null().to_numpy()] += counts[~new]
        self.found = pa.concat_arrays([self.found, values.filter(pa.array(new))])
        self.counts = np.append(self.counts, counts[new])
        if len(self.found) > _MOST_FOUND:
            raise InputError(
                f"The label has more than {_MOST_FOUND} different values; put a numeric label "
                f"into bins first, or declare its range with --labels."
            )

    def check(self, name: str, rows: int) -> None:
        """Refuse a table without rows, and labels that are missing or infinite."""
        _check_complete(name, rows, self.missing)
        if self.infinite:
            raise InputError(
                f"Every label must be finite; {self.infinite:,} of {rows} are infinite."
            )


def _check_complete(name: str, rows: int, missing: int) -> None:
    if not rows:
        raise InputError(f"The table {quoted(name)} has no rows.")
    if missing:
        raise InputError(f"Every row must have a label; {missing:,} of {rows} are missing.")


def _check_amount(values: tuple[Label, ...], rows: int) -> None:
    """Check labels read from the data: at least two, and as few as classes are."""
    if len(values) < 2:
        raise InputError(
            f"The label must take at least two values; it takes {len(values)}. If there are "
            f"more, declare them: ldpaudit privatize … --classes A,B."
        )
    if len(values) > most_classes(rows):
        raise too_many("true", len(values), rows)
    if len(values) > CONTINUOUS_FROM and any(isinstance(value, float) for value in values):
        raise InputError(
            f"The label looks continuous ({len(values)} different numbers, not all whole); put it "
            f"into bins first, or declare its range with --labels."
        )


def _recounted(domain: ClassDomain, found: CountArray) -> tuple[CountArray, int]:
    """Return the counts in the order of the classes, and how many rows hold no class."""
    codes = domain.codes(domain.found)
    counts = np.zeros(len(domain.classes), dtype=np.int64)
    np.add.at(counts, codes[codes >= 0], found[codes >= 0])
    return counts, int(found[codes < 0].sum())


def _outside(outside: int, rows: int) -> str:
    return (
        f"Every label must be one of the declared classes; {outside:,} of {rows} rows hold "
        "another value."
    )
