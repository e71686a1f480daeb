"""True labels as codes, counted in the first pass; and released codes as labels of their type."""

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from operator import itemgetter
from typing import Any, Final, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ldpaudit.datasets.formats.csv_file import CsvFile
from ldpaudit.datasets.formats.tables import NUMBERS, TEXTS, TableSource, check_fits, is_any
from ldpaudit.datasets.labels import (
    CONTINUOUS_FROM,
    canonical,
    forms,
    fractional,
    in_order,
    most_classes,
    positions,
    read_texts,
    too_many,
)
from ldpaudit.datasets.names import quoted, shown_type
from ldpaudit.doors import FloatArray, InputError, IntArray, refuse
from ldpaudit.mechanisms.keyed import BLOCK_ROWS, Stream
from ldpaudit.mechanisms.label_range import LabelRange
from ldpaudit.mechanisms.rounding import Rounding
from ldpaudit.release import Label

CountArray = npt.NDArray[np.int64]
# The class of missing labels, where they are one.
MISSING: Final = "missing"
# As :class:`ldpaudit.mechanisms.label_range.LabelRange` has it.
_ON_GRID = 1e-6
_MOST_FOUND = 100_000


def bare_type(kind: pa.DataType) -> pa.DataType:
    """Return the type of the labels themselves: without extension, dictionary or half floats."""
    if isinstance(kind, pa.BaseExtensionType):
        return bare_type(kind.storage_type)
    if pa.types.is_dictionary(kind) or pa.types.is_run_end_encoded(kind):
        return bare_type(kind.value_type)
    if pa.types.is_string_view(kind):
        return pa.large_string()
    return pa.float32() if pa.types.is_float16(kind) else kind


def bare_labels(column: pa.Array) -> pa.Array:
    """Return labels without extension or dictionary, NaN as missing and −0.0 as 0.0."""
    if isinstance(column.type, pa.BaseExtensionType):
        column = column.storage
    kind = bare_type(column.type)
    plain = column if column.type == kind else column.cast(kind)
    if not pa.types.is_floating(kind):
        return plain
    return pc.add(pc.if_else(pc.is_nan(plain), None, plain), pa.scalar(0, kind))


def numbers(column: pa.Array) -> FloatArray:
    """Return numeric labels as float64 of shape (n,), NaN where one is missing."""
    plain = bare_labels(column).cast(pa.float64(), safe=False)
    return np.asarray(plain.to_numpy(zero_copy_only=False), dtype=np.float64)


def label_values(found: pa.Array) -> tuple[Label, ...]:
    """Return distinct bare labels as plain values: dates as text, whole floats as ints."""
    kind = found.type
    if pa.types.is_date(kind) or pa.types.is_timestamp(kind):
        try:
            return tuple(found.cast(pa.large_string()).to_pylist())
        except pa.ArrowException:
            raise InputError("Labels that are dates must be of a known time zone.") from None
    values = found.to_pylist()
    if is_any(kind, *TEXTS):
        return tuple(values)
    if pa.types.is_float32(kind):
        values = [float(str(np.float32(value))) for value in values]
    if not (pa.types.is_floating(kind) or pa.types.is_decimal(kind)):
        return tuple(values)
    # Infinite ones are refused as true labels, with their number, and are no label of others.
    whole = all(math.isfinite(value) and value == int(value) for value in values)
    return tuple(map(int if whole else float, values))


class CompletedTable(TableSource):
    """A table whose rows without a label are left out, or get a class of their own."""

    def __init__(
        self, source: TableSource, labels: Sequence[str], how: Literal["drop", "class"]
    ) -> None:
        self._source, self._labels, self._how = source, list(labels), how
        self.location, self.names, self.text = source.location, source.names, source.text
        self.parsed = source.parsed
        self.schema, self.dialect = source.schema, getattr(source, "dialect", None)
        self.described = getattr(source, "described", None)
        for place, field in enumerate(source.schema):
            if how == "class" and field.name in labels:
                text = pa.field(field.name, pa.large_string())
                self.schema = self.schema.set(place, text)

    def batches(
        self, columns: Sequence[str] | None = None, as_text: Collection[str] = ()
    ) -> Iterator[pa.RecordBatch]:
        """Yield the rows that have a label, or all."""
        yield from (batch for batch, _ in self.pairs(columns, letters=False, as_text=as_text))

    def pairs(
        self, columns: Sequence[str] | None, *, letters: bool, as_text: Collection[str] = ()
    ) -> Iterator[tuple[pa.RecordBatch, pa.RecordBatch | None]]:
        """Yield the same, and where ``letters`` are wanted what a text file writes in its place."""
        wanted = list(self.names if columns is None else columns)
        read = list(dict.fromkeys([*wanted, *self._labels]))
        for batch, written in row_pairs(self._source, read, letters=letters, as_text=as_text):
            if self._how == "class":
                filled = batch
                for name in self._labels:
                    labels = bare_labels(batch.column(name)).cast(pa.large_string())
                    place = batch.schema.get_field_index(name)
                    filled = filled.set_column(place, name, labels.fill_null(MISSING))
                yield filled.select(wanted), written
                continue
            known = pa.array(np.ones(len(batch), dtype=bool))
            for name in self._labels:
                known = pc.and_(known, bare_labels(batch.column(name)).is_valid())
            kept = None if written is None else written.filter(known)
            yield batch.select(wanted).filter(known), kept


def completed(
    source: TableSource, labels: Sequence[str], how: Literal["refuse", "drop", "class"]
) -> TableSource:
    """Return a table with what is to become of its rows without a label."""
    return source if how == "refuse" else CompletedTable(source, labels, how)


def row_pairs(
    source: TableSource,
    columns: Sequence[str],
    *,
    letters: bool,
    as_text: Collection[str] = (),
) -> Iterator[tuple[pa.RecordBatch, pa.RecordBatch | None]]:
    """Yield the rows, and where ``letters`` are wanted what a text file writes in their place."""
    if isinstance(source, CompletedTable):
        yield from source.pairs(columns, letters=letters, as_text=as_text)
    elif letters and isinstance(source, CsvFile):
        yield from source.batches_as_written(columns, as_text)
    else:
        yield from ((batch, None) for batch in source.batches(columns, as_text))


RowPair = tuple[pa.RecordBatch, pa.RecordBatch | None]


def blocks(pairs: Iterable[RowPair]) -> Iterator[RowPair]:
    """Yield the same rows, as many at a time as noise is drawn for together."""
    return (joined([*pieces]) for pieces in in_pieces(pairs))


def in_pieces(pairs: Iterable[RowPair]) -> Iterator[Iterator[RowPair]]:
    """Yield the same rows block by block, those of one block in the batches that they came in."""
    # Nothing is held: a block's batches are gone when the next block is asked for.
    for _, pieces in groupby(_cut(pairs), key=itemgetter(0)):
        yield (pair for _, pair in pieces)


def _cut(pairs: Iterable[RowPair]) -> Iterator[tuple[int, RowPair]]:
    """Yield the same rows with the number of their block; no piece is of two blocks."""
    done = 0
    for batch, letters in pairs:
        start = 0
        while start < len(batch):
            some = min(BLOCK_ROWS - done % BLOCK_ROWS, len(batch) - start)
            own = None if letters is None else letters.slice(start, some)
            yield done // BLOCK_ROWS, (batch.slice(start, some), own)
            start, done = start + some, done + some


def held(pieces: Iterable[RowPair]) -> list[RowPair]:
    """Return all batches of a block; what memory cannot hold is refused (InputError)."""
    found, size = list[RowPair](), 0
    for batch, letters in pieces:
        size += batch.nbytes + (0 if letters is None else letters.nbytes)
        check_fits(2 * size, f"A block of {BLOCK_ROWS:,} rows")
        found.append((batch, letters))
    return found


def joined(pairs: Sequence[RowPair]) -> RowPair:
    """Return the rows of several batches as one."""
    if len(pairs) == 1:
        return pairs[0]
    parts, letters = zip(*pairs, strict=True)
    return one_batch(parts), None if letters[0] is None else one_batch(letters)


def one_batch(parts: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    """Return the rows of several batches of one schema as one batch."""
    whole = pa.Table.from_batches(parts).unify_dictionaries().combine_chunks()
    arrays = [column.chunk(0) for column in whole.columns]
    return pa.RecordBatch.from_arrays(arrays, schema=whole.schema)


@dataclass(frozen=True, eq=False)
class ClassDomain:
    """Labels of any type, one by one; ``found`` are the bare distinct ones of the data."""

    classes: tuple[Label, ...]
    found: pa.Array
    drawn = False

    @cached_property
    def _places(self) -> IntArray:
        """The code of each found label; the last entry is for any other."""
        return np.append(positions(label_values(self.found), self.classes), np.int32(-1))

    def codes(self, column: pa.Array, block: int = 0) -> IntArray:  # noqa: ARG002
        """Return positions in ``classes``, int32 of shape (n,); −1 where a label is none."""
        place = pc.index_in(bare_labels(column), value_set=self.found)
        return np.asarray(self._places[place.fill_null(-1).to_numpy(zero_copy_only=False)])


@dataclass(frozen=True, eq=False)
class NumberDomain:
    """Numbers of a declared range, on its grid if it has one, or rounded to the points of one.

    ``draws`` of the rounding; None without one.
    """

    labels: LabelRange | None
    rounding: Rounding | None = None
    draws: Stream | None = None

    @property
    def drawn(self) -> bool:
        """Whether codes are drawn anew each time."""
        return self.rounding is not None

    @property
    def classes(self) -> tuple[Label, ...]:
        """The points of the grid; none of a range of real numbers."""
        if self.rounding is not None:
            return self.rounding.grid
        stepped = self.labels is not None and self.labels.step is not None
        return self.labels.classes if self.labels is not None and stepped else ()

    def codes(self, column: pa.Array, block: int = 0) -> IntArray:
        """Return positions in ``classes``, 0 in a range without any; −1 where a number is none."""
        values = numbers(column)
        place = np.zeros(len(values))
        if self.rounding is not None:
            inside = self.rounding.inside(values)
            rng = None if self.draws is None else self.draws.at(block)
            place[inside] = self.rounding.sample(values[inside], rng)
            return np.where(inside, place, -1).astype(np.int32)
        assert self.labels is not None
        inside = (values >= self.labels.low) & (values <= self.labels.high)
        if self.labels.step is not None:
            exact = (values - self.labels.low) / self.labels.spacing
            with np.errstate(invalid="ignore"):
                place = np.rint(exact)
                inside = (place >= 0) & (place <= self.labels.steps)
                inside &= np.abs(exact - place) <= _ON_GRID
        return np.where(inside, place, -1).astype(np.int32)


# The true labels that a mechanism takes; ``codes`` are positions in ``classes``, −1 for none.
LabelDomain = ClassDomain | NumberDomain


@dataclass(frozen=True, eq=False)
class Survey:
    """What the first pass found of n ``rows``, whose labels are all in the ``domain``."""

    rows: int
    domain: LabelDomain
    counts: CountArray
    """Int64 of shape (k,): rows by label; for a range of real numbers one count of all."""
    found: pa.Array
    """The distinct labels of the data, none for numbers."""
    from_data: bool = False
    """Whether the classes were read from them."""

    @property
    def spelt(self) -> pa.Array:
        """The labels that a release writes as the data do: of declared ones none."""
        # Spelt as in the data, "TRUE" among others would show that somebody has that label.
        return self.found if self.from_data else self.found[:0]


class Tally:
    """Distinct labels of a column that must be of a type of labels, and how often each occurs."""

    def __init__(self, kind: pa.DataType) -> None:
        check_type(kind, numeric=False)
        self.found = pa.array([], bare_type(kind))
        self.counts: CountArray = np.zeros(0, dtype=np.int64)
        self.rows = self.missing = self.infinite = 0

    def add(self, column: pa.Array, block: int = 0) -> None:  # noqa: ARG002
        """Count further rows."""
        plain = bare_labels(column)
        self.rows, self.missing = self.rows + len(plain), self.missing + plain.null_count
        if pa.types.is_floating(plain.type):
            self.infinite += pc.sum(pc.is_inf(plain)).as_py() or 0
        seen = pc.value_counts(plain.drop_null())
        values, counts = seen.field("values"), seen.field("counts").to_numpy()
        place = pc.index_in(values, value_set=self.found)
        new = place.is_null().to_numpy(zero_copy_only=False)
        self.counts[place.drop_null().to_numpy()] += counts[~new]
        self.found = pa.concat_arrays([self.found, values.filter(pa.array(new))])
        self.counts = np.append(self.counts, counts[new])
        refuse(
            len(self.found) > _MOST_FOUND,
            f"The label has more than {_MOST_FOUND} different values; put a numeric label "
            f"into bins first, or declare its range with --labels.",
        )

    def domain(self, classes: tuple[Label, ...]) -> tuple[ClassDomain, CountArray, int]:
        """Return the domain of ``classes``, their counts, and how many rows hold none of them."""
        domain = ClassDomain(classes, self.found)
        codes, counts = domain.codes(self.found), np.zeros(len(classes), dtype=np.int64)
        np.add.at(counts, codes[codes >= 0], self.counts[codes >= 0])
        return domain, counts, int(self.counts[codes < 0].sum())

    def strata(self, by: str, values: Collection[str]) -> ClassDomain:
        """Return the column ``by`` of strata as codes (InputError where a row has none)."""
        domain, _, outside = self.domain(read_texts(tuple(values)))
        refuse(
            (lost := self.missing + outside),
            f"Every row must have one of the {len(values)} strata in the column "
            f"{quoted(by)}; rows with another value or none: {lost:,}.",
        )
        return domain


class ClassCount(Tally):
    """Reads the labels of a mechanism on classes.

    ``classes``: None takes those that occur, at least two and no more than the rows allow;
    ``hint`` ends the message about labels that are not declared.
    """

    def __init__(self, kind: pa.DataType, classes: Sequence[Label] | None, hint: str = "") -> None:
        super().__init__(kind)
        self._classes, self._hint = classes, hint

    def survey(self, name: str) -> Survey:
        """Return what was read of the table ``name`` (InputError where it is not as it must be)."""
        _check_complete(name, self.rows, self.missing)
        refuse(
            self.infinite,
            f"Every label must be finite; it is infinite in {self.infinite:,} of {self.rows:,}.",
        )
        values, from_data = label_values(self.found), self._classes is None
        forms(values, "true labels")
        refuse(
            from_data and len(values) < 2,
            f"The label must take at least two values; it takes {len(values)}. If there are "
            f"more, declare them: ldpaudit privatize … --classes A,B.",
        )
        if from_data and len(values) > most_classes(self.rows):
            raise too_many("true", len(values), self.rows)
        refuse(
            from_data and fractional(values) and len(values) > CONTINUOUS_FROM,
            f"The label looks continuous ({len(values)} different numbers, not all whole); put "
            "it into bins first, or declare its range with --labels.",
        )
        classes = in_order(values) if self._classes is None else tuple(self._classes)
        domain, counts, outside = self.domain(classes)
        refuse(
            outside,
            f"Every label must be one of the declared classes; {outside:,} of {self.rows:,} "
            f"rows hold another value.{self._hint}",
        )
        return Survey(self.rows, domain, counts, self.found, from_data)


class NumberCount:
    """Reads the labels of a mechanism on a declared range of numbers; ``hint`` as above."""

    def __init__(self, kind: pa.DataType, domain: NumberDomain, hint: str = "") -> None:
        check_type(kind, numeric=True)
        self._domain, self._hint = domain, hint
        self._counts = np.zeros(max(len(domain.classes), 1), dtype=np.int64)
        self._rows = self._missing = self._outside = 0

    def add(self, column: pa.Array, block: int = 0) -> None:
        """Count further rows."""
        codes, lost = self._domain.codes(column, block), bare_labels(column).null_count
        self._rows, self._missing = self._rows + len(column), self._missing + lost
        self._outside += int((codes < 0).sum()) - lost
        self._counts += np.bincount(codes[codes >= 0], minlength=len(self._counts))

    def survey(self, name: str) -> Survey:
        """Return what was read; InputError, too, where a number is outside or off its grid."""
        _check_complete(name, self._rows, self._missing)
        if self._outside:
            labels = None if self._domain.drawn else self._domain.labels
            stepped = labels is not None and labels.step is not None
            grid = f" and on its grid of steps of {labels.step:g}" if labels and stepped else ""
            raise InputError(
                f"The labels must lie in the declared range{grid}; {self._outside:,} of "
                f"{self._rows:,} rows do not.{self._hint}"
            )
        return Survey(self._rows, self._domain, self._counts, pa.array([], pa.float64()))


# Reads the true labels of one column, batch by batch.
LabelCount = ClassCount | NumberCount


def check_type(kind: pa.DataType, *, numeric: bool) -> None:
    """Check that a column's type is one of labels: not nested, and a number where one is needed."""
    bare = bare_type(kind)
    refuse(
        isinstance(kind, pa.BaseExtensionType) and kind.extension_name == "pandas.period",
        "A label must not be a period of pandas; write it as text: astype(str).",
    )
    refuse(
        pa.types.is_null(bare),
        "Every row must have a label; the column has none, or the table no rows.",
    )
    known = NUMBERS if numeric else (*NUMBERS, *TEXTS, "boolean", "date", "timestamp")
    if not is_any(bare, *known):
        must = "The labels of a numeric mechanism must be numbers"
        must = must if numeric else "A label must be text, a number, a date or a boolean"
        raise InputError(f"{must}. Got {shown_type(bare)} instead.")


def _check_complete(name: str, rows: int, missing: int) -> None:
    refuse(not rows, f"The table {quoted(name)} has no rows.")
    refuse(
        missing,
        f"Every row must have a label; it is missing in {missing:,} of {rows:,}. --missing drop "
        f"leaves such rows out, --missing class releases them as a class '{MISSING}'.",
    )


def outputs_of(
    outputs: Sequence[Label], kind: pa.DataType, found: pa.Array
) -> tuple[pa.DataType, Callable[[IntArray], pa.Array]]:
    """Return the type of a finite mechanism's outputs, and what writes codes of them.

    True labels have type ``kind``; an output that is one of the labels ``found`` is written in
    the same way. Of a dictionary each batch holds all outputs in the declared order, whatever is
    drawn.
    """
    bare = bare_type(kind)
    array = output_array(outputs, bare, found)
    if not pa.types.is_dictionary(kind) or array.type != bare:
        return array.type, lambda codes: array.take(pa.array(codes))
    fits = len(array) <= 1 << (kind.index_type.bit_width - 1)
    index = kind.index_type if fits else pa.int32()
    written: Any = pa.DictionaryArray.from_arrays
    return pa.dictionary(index, bare), lambda codes: written(pa.array(codes).cast(index), array)


def output_array(outputs: Sequence[Label], kind: pa.DataType, found: pa.Array) -> pa.Array:
    """Return outputs in the true labels' type; in one of their own where that cannot hold them."""
    place = positions(outputs, label_values(found) if len(found) else ())
    absent = [canonical(v) for v, p in zip(outputs, place, strict=True) if p < 0]
    numeric = not any(isinstance(value, str | bool) for value in outputs)
    try:
        known = found.cast(kind) if len(found) else pa.array([], kind)
        order, beyond = place.astype(np.int64), np.flatnonzero(place < 0)
        order[beyond] = len(known) + np.arange(len(beyond))
        extra = pa.array(absent, pa.large_string()).cast(kind)
        array = pa.concat_arrays([known, extra]).take(pa.array(order))
        # A narrow float may hold an output only nearly.
        same = list(map(canonical, label_values(array))) == list(map(canonical, outputs))
        if same or not numeric:
            return array
    except pa.ArrowException:
        pass
    if not numeric:
        return pa.array([canonical(value) for value in outputs], pa.string())
    whole = all(float(value).is_integer() and abs(float(value)) < 2**53 for value in outputs)
    return pa.array([int(v) if whole else float(v) for v in outputs])


def step_noise_type(mechanism: Any, kind: pa.DataType) -> pa.DataType:
    """Return the type of labels with discrete noise; it does not depend on the data."""
    # Clipped labels keep their integer type where it holds the whole declared range; all others are
    # int64 where the grid is whole, else float64.
    labels, bare = mechanism.labels, bare_type(kind)
    if not (labels.low.is_integer() and labels.spacing.is_integer()):
        return pa.float64()
    if mechanism.clipped and pa.types.is_integer(bare):
        try:
            pa.array([int(labels.low), int(labels.high)]).cast(bare)
        except pa.ArrowException:
            return pa.int64()
        return bare
    return pa.int64()
