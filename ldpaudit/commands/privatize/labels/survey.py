"""The first pass: check all true labels, and count each."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

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


def survey_classes(
    source: BatchSource,
    label: str,
    classes: Sequence[Label] | None,
    progress: Progress,
    hint: str = "",
) -> Survey:
    """Read the labels of a mechanism on classes.

    Parameters
    ----------
    source : BatchSource
    label : str
        The true label's column.
    classes : sequence or None
        The declared labels; None to take those that occur, sorted by value.
    progress : Progress
    hint : str
        Ends the message about labels that are not declared.

    Raises
    ------
    InputError
        If there is no row, a label is missing, infinite or not declared (rows are counted), there
        are fewer than two labels, or more than the rows allow.
    """
    kind = source.schema.field(label).type
    check_label_type(kind, numeric=False)
    tally = _Tally(bare_type(kind))
    rows = 0
    for column in _columns(source, label, progress):
        tally.add(column)
        rows += len(column)
    tally.check(source.name, rows)
    values = label_values(tally.found)
    forms(values, "true labels")
    if classes is None:
        _check_amount(values, rows)
    domain = ClassDomain(
        in_order(values) if classes is None else tuple(classes), tally.found, values
    )
    counts, outside = _recounted(domain, tally.counts)
    if outside:
        raise InputError(_outside(outside, rows) + hint)
    return Survey(rows, domain, counts, tally.found, values, from_data=classes is None)


def survey_numbers(
    source: BatchSource,
    label: str,
    domain: GridDomain | RangeDomain | RoundedDomain,
    progress: Progress,
    hint: str = "",
) -> Survey:
    """Read the labels of a mechanism on a declared range of numbers.

    ``hint`` ends the message about labels that are not in the domain.

    Raises
    ------
    InputError
        If there is no row, a label is missing, outside the range or off its grid; rows are counted.
    """
    check_label_type(source.schema.field(label).type, numeric=True)
    counts = np.zeros(max(len(domain.classes), 1), dtype=np.int64)
    rows = missing = outside = 0
    for column in _columns(source, label, progress):
        codes = domain.codes(column)
        rows, lost = rows + len(column), bare_labels(column).null_count
        missing, outside = missing + lost, outside + int((codes < 0).sum()) - lost
        counts += np.bincount(codes[codes >= 0], minlength=len(counts))
    _check_complete(source.name, rows, missing)
    if outside:
        step = domain.labels.step if isinstance(domain, GridDomain) else None
        grid = "" if step is None else f" and on its grid of steps of {step:g}"
        raise InputError(
            f"The labels must lie in the declared range{grid}; {outside} of {rows} rows do not."
            f"{hint}"
        )
    return Survey(rows, domain, counts, pa.array([], pa.float64()))


def _columns(source: BatchSource, label: str, progress: Progress) -> Iterator[pa.Array]:
    progress.step("reading the labels")
    done = 0
    for batch in source.batches([label]):
        yield batch.column(0)
        done += len(batch)
        if source.row_count:
            progress.advance(done, source.row_count)


class _Tally:
    """Distinct labels, and how often each occurs."""

    def __init__(self, kind: pa.DataType) -> None:
        self.found = pa.array([], kind)
        self.counts: CountArray = np.zeros(0, dtype=np.int64)
        self.missing = self.infinite = 0

    def add(self, column: pa.Array) -> None:
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
        _check_complete(name, rows, self.missing)
        if self.infinite:
            raise InputError(f"Every label must be finite; {self.infinite} of {rows} are infinite.")


def _check_complete(name: str, rows: int, missing: int) -> None:
    if not rows:
        raise InputError(f"The table {quoted(name)} has no rows.")
    if missing:
        raise InputError(f"Every row must have a label; {missing} of {rows} are missing.")


def _check_amount(values: tuple[Label, ...], rows: int) -> None:
    """Check labels read from the data: at least two, and as few as classes are."""
    if len(values) < 2:
        raise InputError(
            f"The label must take at least two values; it takes {len(values)}. Declare the "
            f"classes with --classes if there are more."
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
        f"Every label must be one of the declared classes; {outside} of {rows} rows hold another "
        f"value."
    )
