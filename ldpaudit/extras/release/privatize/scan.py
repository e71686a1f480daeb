"""Columns that should not leave the house: the audit's scan, on a sample of the rows released."""

from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ldpaudit.datasets.as_read import ColumnReader
from ldpaudit.datasets.column_survey import surveyed
from ldpaudit.datasets.features import EncodedFeatures, encode_categories, is_categorical
from ldpaudit.datasets.formats.tables import LISTS, TEXTS, allowed, is_any, without_long_texts
from ldpaudit.datasets.names import ColumnError, listed, quoted
from ldpaudit.doors import IndexArray, InputError, IntArray
from ldpaudit.estimators.readable import Labels as LabelsRead
from ldpaudit.estimators.readable import readable, scan
from ldpaudit.estimators.representations import represent
from ldpaudit.estimators.row_order import strongest_agreement
from ldpaudit.estimators.telling import LIMIT, label_weights
from ldpaudit.extras.release.privatize.labels import bare_labels, label_values
from ldpaudit.models.trees import fit_boosting
from ldpaudit.release.features import ColumnSurvey
from ldpaudit.result.numbers import share_of

Values = npt.NDArray[Any]

_MOST_ROWS_LOOKED_AT, _FEWEST_ROWS, _MOST_CELLS = 50_000, 1_000, 5_000_000
# Of more labels the rarer ones count as one; numbers are put into groups of equally many rows.
_MOST_CLASSES: Final = 20
# Bytes of the rows that are looked at, and the part of the memory that they may take: looking
# takes some times that.
_MOST_BYTES, _PART = 128 << 20, 16
_MANY_TEXTS: Final = 512
# So many entries of each list are looked at.
_ENTRIES: Final = 3
_EXACT: Final = 1e-12
_MOST_READ: Final = 10_000
_TREES, _TREE_ROWS, _TREE_CELLS, _FEWEST_TREE_ROWS, _FEWEST_OF_A_LABEL = 16, 10_000, 10**6, 400, 20
# A smaller excess over chance is common in tables that grew over time; such a z is not chance.
LEAST_EXCESS, LEAST_Z = 0.05, 6.0
_MOST_REFUSED, _MOST_LISTED = 5, 10
_CELLS: Final = (
    "Correct {}, name the mark of such cells (--missing-values), or have {} read as text (--text)."
)
_CONCERNS: Final = {
    "index": "numbers the rows (an index), so it may lead back to the rows' origin",
    "identifier": "has a value of its own for (nearly) every row, as an identifier of a person has",
    "text": "holds free text, which may name a person",
    "date": "holds exact dates, which may point to a person",
}


@dataclass(frozen=True, eq=False)
class _Labels:
    """The labels of one column: as they are, in a few groups, as text, and as numbers if many."""

    codes: npt.NDArray[np.int64]
    groups: IntArray
    texts: list[str]
    numbers: Values | None = None


class ReleasedColumns:
    """Keeps runs of neighbouring rows from every batch, all rows of a small table, and looks.

    ``columns``: the feature columns that are released unchanged. ``rows``: how many rows there
    will be. ``names``: all columns of the file: messages tell the places of some. ``read``: how
    an audit reads a column.
    """

    def __init__(
        self,
        columns: Sequence[str],
        private: Sequence[str],
        rows: int,
        names: Sequence[str],
        read: ColumnReader,
    ) -> None:
        self._read = read
        self._columns, self._private, self._names = list(columns), list(private), names
        most = min(_MOST_ROWS_LOOKED_AT, max(_FEWEST_ROWS, _MOST_CELLS // max(len(columns), 1)))
        self._share = min(1.0, most / max(rows, 1))
        self._to_come, self._room, self._due = rows, min(allowed() // _PART, _MOST_BYTES), 0.0
        self._all = self._share == 1
        self._rows: list[pa.RecordBatch] = []
        self._labels: list[list[pa.Array]] = []

    def watch(self, features: pa.RecordBatch, labels: Sequence[pa.Array]) -> None:
        """Add a batch of features and the true labels of each private column of the same rows."""
        if not len(features):
            return
        chosen, few = _cut(features, self._columns), max(1, round(self._share * len(features)))
        to_come = max(self._to_come, len(features))
        size = to_come * chosen.nbytes / len(features)
        self._to_come -= len(features)
        if self._share * size > self._room:  # Of long texts or lists fewer rows.
            self._all = False
            self._due += len(features) * self._room / size
            few = min(max(int(self._due), 0 if self._rows else 1), len(features))
            self._due -= few
        if few:
            self._rows.append(_first(chosen, few))
            self._room = max(self._room - self._rows[-1].nbytes, 0)
            self._labels.append([bare_labels(_first(label, few)) for label in labels])

    def deciding(self, place: int = 0) -> list[str]:
        """Return the columns that decide the label in every row, or follow from it."""
        return self._look(place)[0] if self._rows else []

    def refuse(self) -> list[str]:
        """Refuse columns that give a label away in every row (InputError); return warnings."""
        warnings: list[str] = []
        for place, name in enumerate(self._private if self._rows else ()):
            alone = len(self._private) == 1
            about = "" if alone else f"Private column {quoted(name)}: "
            found, others = self._look(place)
            warnings += [about + text for text in others]
            if not found:
                continue
            looked = "" if self._all else " that was looked at"
            told = "the true label" if alone else f"the true {quoted(name)}"
            which = listed(found, self._names, _MOST_REFUSED).capitalize()
            tell, it, them = ("tells", "it", "it") if len(found) == 1 else ("tell", "they", "them")
            raise InputError(
                f"{which} of {len(self._names)} {tell} {told} in every row{looked}, so {it} would "
                f"give away what the mechanism hides; leave {them} out with --drop, or release "
                f"{them} all the same with --keep."
            )
        return warnings

    def check(self) -> tuple[str, ...]:
        """Refuse columns that give a label away in every row (InputError); return all warnings."""
        if not self._rows:
            return ()
        return (*self.refuse(), *self._of_people(), *self._of_pairs(), *self._unread())

    def _look(self, place: int) -> tuple[list[str], list[str]]:
        """Return the columns to refuse for one private column's sake, and warnings of others."""
        labels = _labels(_one([batch[place] for batch in self._labels]))
        table = pa.Table.from_batches(self._rows)
        named = [
            (name, as_it_is, values)
            for name in self._columns
            for own in self._readings(name, table.column(name))
            for as_it_is, values in _arrays(_one(own.chunks), labels)
        ]
        n, arrays, groups = len(labels.codes), [values for _, _, values in named], labels.groups
        rows = np.random.default_rng(0).permutation(n)  # Which rows, no more than that.
        weights = label_weights(groups[rows], int(groups.max()) + 1)
        found = scan(arrays, rows, weights, groups[rows])
        sure = {*found.deciding, *found.flags}
        exact = [
            name
            for i, (name, as_it_is, values) in enumerate(named)
            if as_it_is and _follows(values, labels, decides=i in sure)
        ]
        if exact:
            return list(dict.fromkeys(exact)), []
        warnings = []
        together = None if sure else told_together(arrays, groups)
        if together is not None and together > LIMIT:
            warnings.append(
                "The columns together reveal true labels nearly without error (held-out accuracy "
                f"or AUC {100 * together:.1f} %), so noise on the label hides little. Leave out "
                "what reveals them (--drop), or make it coarser."
            )
        for places, what in (
            (
                found.deciding,
                "reveals at least 98 % of the true labels by itself, so noise on the label hides "
                "little",
            ),
            (
                found.flags,
                "follows from the true label in at least 98 % of the rows, so it separates some "
                "labels",
            ),
            (
                [i for i, _ in found.lagged],
                "reveals at least 98 % of the true labels of rows next to its own",
            ),
        ):
            warnings += self._about(list(dict.fromkeys(named[i][0] for i in places)), what)
        # What tells all labels is said above.
        if not warnings and not sure and np.ptp(groups):
            warnings += self._read_off(table, groups, rows[:_MOST_READ])
        order = strongest_agreement(groups) if np.ptp(groups) else None
        if order is not None and abs(order.z) >= LEAST_Z and abs(order.excess) >= LEAST_EXCESS:
            warnings.append(
                "The order of the rows reveals true labels: rows near each other have the same one "
                f"far {'more' if order.excess > 0 else 'less'} often than by chance. Shuffle the "
                "table first."
            )
        return [], warnings

    def _read_off(self, table: pa.Table, groups: IntArray, rows: IndexArray) -> Iterator[str]:
        """Yield a warning of each column by which the label of some people is read off."""
        encoded, names = EncodedFeatures(len(table)), list[str]()
        for name in self._columns:
            with suppress(ColumnError, pa.ArrowException):
                encoded.add(self._read(name, table.column(name))[0])
                names.append(name)
        known = LabelsRead(groups[rows], np.zeros(len(rows), dtype=np.int32))
        shown, columns = represent(encoded.table(), rows), encoded.columns_of_arrays()
        for one in readable(shown, known, np.random.default_rng(0)):
            if one.notable and one.source.arrays:
                which = list(dict.fromkeys(names[columns[j]] for j in one.source.arrays))
                what = (
                    f"reveals the true label of {share_of(one.share)} of the people "
                    f"({one.source.kind})"
                )
                if len(which) <= _MOST_REFUSED:
                    yield from self._about(which, what)

    def _readings(self, name: str, column: pa.ChunkedArray) -> Iterator[pa.ChunkedArray]:
        """Yield a column as it stands, and as an audit reads it where that is another way."""
        yield column
        read, reading = self._read(name, column)
        if reading.kind:
            yield read

    def _of_people(self) -> Iterator[str]:
        """Yield a warning for each group of columns that may lead back to a person."""
        table, found = pa.Table.from_batches(self._rows), list[ColumnSurvey]()
        cells = ((n, table.column(n)) for n in self._columns)
        for _ in surveyed(cells, found, self._names, self._read):
            pass
        doubtful = [one.name for one in found if one.reading.others]
        what = "holds numbers or dates but for some cells, so an audit cannot read it as what it is"
        yield from self._about(doubtful, what, _CELLS)
        for concern, words in _CONCERNS.items():
            yield from self._about([c.name for c in found if c.concern == concern], words)

    def _of_pairs(self) -> Iterator[str]:
        """Yield a warning where private columns follow from each other."""
        of = [_one(list(column)) for column in zip(*self._labels, strict=True)]
        for place, name in enumerate(self._private[:-1]):
            labels = _labels(of[place])
            others = [
                quoted(other)
                for other, column in zip(self._private[place + 1 :], of[place + 1 :], strict=True)
                if any(_follows(v, labels, decides=True) for _, v in _arrays(column, labels))
            ]
            if others:
                yield (
                    f"The private column {quoted(name)} and {', '.join(others[:_MOST_LISTED])} "
                    "follow from each other in every row: they are noisy answers to one question, "
                    "and together reveal as much as the sum of their ε. Release one of them."
                )

    def _unread(self) -> Iterator[str]:
        """Yield a warning of columns that no audit of the release could read."""
        table, unread = pa.Table.from_batches(self._rows), []
        for name in self._columns:
            try:
                if pa.types.is_nested(table.schema.field(name).type):
                    EncodedFeatures(len(table)).add(table.column(name))
            except ColumnError:
                unread.append(name)
        what = "holds nested values that no feature can be made of, so no audit reads the release"
        yield from self._about(unread, what)

    def _about(
        self, some: list[str], what: str, advice: str = "Leave {} out with --drop."
    ) -> Iterator[str]:
        """Yield two sentences about columns, by their places; nothing where there are none."""
        if len(some) == 1:
            which = listed(some, self._names, 1).capitalize()
            yield f"{which} of {len(self._names)} {what}. {advice.format('it', 'it')}"
        elif some:
            which = listed(some, self._names, _MOST_LISTED)
            yield f"Of the {which}, each {what}. {advice.format('them', 'them')}"


def released_as_they_are(
    table: pa.Table, label: str, keep: Collection[str], names: Sequence[str]
) -> ReleasedColumns:
    """Return what looks at a table in memory whose only private column is ``label``."""
    features = [name for name in table.schema.names if name != label and name not in keep]
    columns = ReleasedColumns(features, [label], len(table), names, ColumnReader())
    for batch in table.to_batches():
        columns.watch(batch, [batch.column(label)])
    return columns


def _cut(features: pa.RecordBatch, names: Sequence[str]) -> pa.RecordBatch:
    """Return some columns of a batch, long texts of categories cut."""
    columns = [without_long_texts(pa.chunked_array([features.column(n)])) for n in names]
    return pa.RecordBatch.from_arrays([column.chunk(0) for column in columns], list(names))


def _first(values: Any, few: int) -> Any:
    """Return a copy of the first rows: a slice would keep the whole batch in memory."""
    try:
        return values.take(pa.array(np.arange(few)))
    except pa.ArrowNotImplementedError:  # Not of every type, such as views of texts.
        return values.slice(0, few)


def _one(chunks: list[pa.Array]) -> pa.Array:
    return pa.concat_arrays(pa.chunked_array(chunks).unify_dictionaries().chunks)


def _labels(labels: pa.Array) -> _Labels:
    encoded = labels.dictionary_encode()
    codes = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    found = len(encoded.dictionary)
    if found > _MOST_CLASSES and is_any(labels.type, "integer", "floating", "decimal"):
        numbers = labels.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
        ends = np.unique(np.quantile(numbers, np.arange(1, 10) / 10))
        groups = np.searchsorted(ends, numbers, side="right").astype(np.int32)
        return _Labels(codes, groups, [], numbers)
    rank = np.argsort(np.argsort(-np.bincount(codes, minlength=found), kind="stable"))
    groups = np.minimum(rank[codes], _MOST_CLASSES - 1).astype(np.int32)
    return _Labels(codes, groups, [str(value) for value in label_values(encoded.dictionary)])


def _leaves(column: pa.Array) -> Iterator[pa.Array]:
    """Yield the plain arrays, all of n values, that a column consists of."""
    if isinstance(column, pa.ExtensionArray):
        column = column.storage
    if pa.types.is_struct(column.type):
        for place in range(column.type.num_fields):
            yield from _leaves(pc.struct_field(column, [place]))
    elif is_any(column.type, *LISTS):
        lengths = pc.list_value_length(column)
        yield lengths
        for place in range(min(pc.min(lengths).as_py() or 0, _ENTRIES)):
            yield from _leaves(pc.list_element(column, place))
    elif not pa.types.is_nested(column.type):
        yield column


def _arrays(column: pa.Array, labels: _Labels) -> Iterator[tuple[bool, Values]]:
    """Yield numbers or codes of a column as it is, then of what its many texts hold."""
    for leaf in _leaves(column):
        try:
            plain = bare_labels(leaf)
            if is_any(plain.type, "temporal"):  # Python's dates end with the year 9999.
                plain = plain.view(pa.int32() if plain.type.bit_width == 32 else pa.int64())
            if not is_categorical(plain.type):
                numbers = pc.cast(plain, pa.float64(), safe=False)
                yield True, numbers.to_numpy(zero_copy_only=False)
                continue
            codes, different = encode_categories(pa.chunked_array([plain]))
        except (pa.ArrowException, TypeError, AttributeError):
            continue
        yield True, codes
        if different > _MANY_TEXTS and is_any(plain.type, *TEXTS):
            bare = pc.replace_substring_regex(plain, r"\d+", "")
            yield False, encode_categories(pa.chunked_array([bare]))[0]
            which = np.zeros(len(plain), dtype=np.int64)  # The labels that stand in each text.
            for place, name in enumerate(labels.texts[:_MOST_CLASSES]):
                if len(name) > 1:
                    holds = pc.match_substring(plain, name, ignore_case=True).fill_null(False)
                    which |= holds.to_numpy(zero_copy_only=False).astype(np.int64) << place
            yield False, which


def _follows(values: Values, labels: _Labels, *, decides: bool) -> bool:
    """Return whether label and value are one to one, or one follows from the other, in every row.

    ``decides``: whether the scan found that it is no chance, as it is where values are rare.
    """
    distinct, cells = np.unique(values, return_inverse=True)
    m, k = len(distinct), int(labels.codes.max()) + 1
    pairs = len(np.unique(cells * k + labels.codes))
    if min(m, k) < 2:
        return False
    if pairs == m == k and len(cells) >= 2 * k:
        return True
    if labels.numbers is not None and np.isfinite(distinct).all():
        return bool(abs(np.corrcoef(values, labels.numbers)[0, 1]) > 1 - _EXACT)
    if not decides:
        return False
    ordered = labels.codes[np.lexsort((labels.codes, cells))]
    number = np.issubdtype(values.dtype, np.floating)
    apart = number and np.count_nonzero(np.diff(ordered)) == k - 1
    return apart or pairs == k or (pairs == m and len(cells) >= 2 * m)


def told_together(arrays: Sequence[Values], labels: IntArray) -> float | None:
    """Return balanced accuracy, or the AUC of two labels, on rows that nothing was learnt from."""
    # None with too few rows; rare labels are left out.
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.metrics import balanced_accuracy_score, roc_auc_score

    rows = np.flatnonzero(np.bincount(labels)[labels] >= _FEWEST_OF_A_LABEL)
    most = min(_TREE_ROWS, _TREE_CELLS // max(len(arrays), 1))
    rows = np.random.default_rng(0).permutation(rows)[:most]  # Which rows, no more than that.
    known, asked = np.array_split(labels[rows], 2)
    if len(rows) < _FEWEST_TREE_ROWS or not arrays or len(np.unique(known)) < 2:
        return None
    cells = np.column_stack([array[rows] for array in arrays]).astype(np.float64)
    cells[~np.isfinite(cells)] = np.nan
    cells = cells[:, np.isfinite(cells[: len(known)]).any(axis=0)]
    if set(known) != set(asked) or not cells.size:
        return None
    unfitted = HistGradientBoostingClassifier(max_iter=_TREES, early_stopping=False, random_state=0)
    model = fit_boosting(unfitted, cells[: len(known)], known)
    chances = model.predict_proba(cells[len(known) :])
    guesses = model.classes_[(chances / np.unique(known, return_counts=True)[1]).argmax(axis=1)]
    told = float(balanced_accuracy_score(asked, guesses))
    if len(model.classes_) > 2:
        return told
    return max(told, float(roc_auc_score(asked, chances[:, 1])))
