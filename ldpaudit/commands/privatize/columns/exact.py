"""Columns that give the true label away in every row."""

from collections.abc import Collection, Sequence
from itertools import pairwise
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ldpaudit.commands.privatize.columns.leaves import Path, leaves
from ldpaudit.commands.privatize.labels.domains import bare_labels
from ldpaudit.datasets.formats.columns import is_any
from ldpaudit.datasets.names import listed
from ldpaudit.errors import InputError

_GLANCE: Final = 1 << 10
_MOST_VALUES: Final = 10_000
_ROWS_PER_VALUE: Final = 2
_FEWEST: Final = 8
"""So many rows must bear witness: fewer may do so by chance."""
_MOST_LISTED: Final = 5


class DecidingColumns:
    """Watches for columns that tell the true label, or follow from it, in every row.

    Found are copies, codes and hashes (one to one), finer codes (each value has one label), flags
    (each label has one value) and numbers whose values for one label lie apart from those for the
    others, or are the label, itself a number, times a factor plus an offset; all of them also
    inside structures and lists.

    Parameters
    ----------
    columns : sequence of str
        The feature columns that will be released unchanged.
    kept : collection of str
        Those that are released whatever they tell.
    told : str
        What a message calls the true labels.
    names : sequence of str
        All columns of the file: a message tells the places of those that are found.
    """

    def __init__(
        self,
        columns: Sequence[str],
        kept: Collection[str] = (),
        told: str = "the true label",
        names: Sequence[str] = (),
    ) -> None:
        self._columns = [name for name in columns if name not in kept]
        self._told, self._names = told, names
        self._watches: dict[Path, list[_Watch]] = {}
        self._started = False

    def watch(self, features: pa.RecordBatch, label: pa.Array) -> None:
        """Add a batch of features and the true labels of the same rows."""
        truth = bare_labels(label)
        for part in (slice(0, _GLANCE), slice(_GLANCE, None)):
            if len(truth[part]) and (self._watches or not self._started):
                self._watch(features, part, *_coded(truth[part]))

    def _watch(
        self, features: pa.RecordBatch, part: slice, codes: npt.NDArray[np.int64], values: list[Any]
    ) -> None:
        seen = set()
        names = {path[0] for path in self._watches} if self._started else set(self._columns)
        for name in names:
            for path, column in leaves(name, features.column(name)[part]):
                if not self._started:
                    self._watches[path] = [_Values(), _Ranges(), _Line()]
                alive = [w for w in self._watches.get(path, ()) if w.goes_on(column, codes, values)]
                self._watches[path] = alive
                seen.add(path)
        # A path that is missing from a batch, such as an entry of a shorter list, is no copy.
        self._watches = {p: w for p, w in self._watches.items() if w and p in seen}
        self._started = True

    def found(self) -> list[str]:
        """Return the columns that told the true label, or followed from it, in every row."""
        found = {path[0]: None for path, watches in self._watches.items() if _proven(watches)}
        return list(found)

    def check(self) -> None:
        """Refuse columns that gave the true label away in every row (InputError)."""
        found = self.found()
        if not found:
            return
        which = listed(found, self._names, _MOST_LISTED).capitalize()
        tell, it, them = ("tells", "it", "it") if len(found) == 1 else ("tell", "they", "them")
        raise InputError(
            f"{which} of {len(self._names)} {tell} {self._told} in every row, so {it} would give "
            f"away what the mechanism hides; leave {them} out with --drop, or release {them} all "
            "the same with --keep."
        )


def _proven(watches: "list[_Watch]") -> bool:
    return any(watch.proven() for watch in watches)


class _Watch:
    """One way in which a column can give the label away; the base gives up at once."""

    def goes_on(self, column: pa.Array, codes: npt.NDArray[np.int64], values: list[Any]) -> bool:
        """Add rows with labels ``values[codes]``; return whether the column still tells them."""
        raise NotImplementedError

    def proven(self) -> bool:
        """Return whether enough rows bear witness."""
        raise NotImplementedError


class _Values(_Watch):
    """Each value has one label, or each label one value."""

    def __init__(self) -> None:
        self._labels: dict[Any, Any] | None = {}
        self._cells: dict[Any, Any] | None = {}
        self._rows: dict[tuple[Any, Any], int] = {}

    def goes_on(self, column: pa.Array, codes: npt.NDArray[np.int64], values: list[Any]) -> bool:
        try:
            cells, distinct = _coded(bare_labels(column))
        except (pa.ArrowException, TypeError, AttributeError):
            return False
        if len(distinct) > _MOST_VALUES or len(values) > _MOST_VALUES:
            return False
        pairs, counts = np.unique(cells * len(values) + codes, return_counts=True)
        if len(pairs) > max(len(distinct), len(values)):
            return False
        for pair, count in zip(pairs.tolist(), counts.tolist(), strict=True):
            both = distinct[pair // len(values)], values[pair % len(values)]
            self._rows[both] = self._rows.get(both, 0) + count
        self._labels = _function(self._labels, self._rows)
        self._cells = _function(self._cells, ((label, cell) for cell, label in self._rows))
        small = len(self._rows) <= _MOST_VALUES
        return small and (self._labels is not None or self._cells is not None)

    def proven(self) -> bool:
        if len({cell for cell, _ in self._rows}) < 2 or len({label for _, label in self._rows}) < 2:
            return False
        if self._labels is not None and self._cells is not None:
            return sum(self._rows.values()) >= _ROWS_PER_VALUE * len(self._rows)
        side = 1 if self._labels is not None else 0
        return _bear_witness(self._rows, side)


def _function(known: dict[Any, Any] | None, pairs: Any) -> dict[Any, Any] | None:
    """Return the pairs as a mapping, None where one key has two values."""
    if known is None:
        return None
    return known if all(known.setdefault(key, value) == value for key, value in pairs) else None


def _bear_witness(rows: dict[tuple[Any, Any], int], side: int) -> bool:
    """Return whether pairs outside of the largest group, by entry ``side``, repeat often enough.

    A value that occurs once always has one label: only repeated ones are evidence.
    """
    groups: dict[Any, list[int]] = {}
    for pair, count in rows.items():
        groups.setdefault(pair[side], []).append(count)
    largest = max(groups, key=lambda key: sum(groups[key]))
    counts = [count for key, part in groups.items() if key != largest for count in part]
    return sum(counts) >= max(_FEWEST, _ROWS_PER_VALUE * len(counts))


class _Ranges(_Watch):
    """The numbers that rows of one label have lie apart from those of any other label."""

    _MOST_LABELS: Final = 100

    def __init__(self) -> None:
        self._ends: dict[Any, tuple[float, float]] = {}
        self._rows: dict[Any, int] = {}

    def goes_on(self, column: pa.Array, codes: npt.NDArray[np.int64], values: list[Any]) -> bool:
        if not is_any(column.type, "integer", "floating") or column.null_count:
            return False
        cells = column.to_numpy(zero_copy_only=False)
        if len(values) > self._MOST_LABELS or np.isnan(cells).any():
            return False
        for code, label in enumerate(values):
            own = cells[codes == code]
            low, high = self._ends.get(label, (own[0], own[0]))
            self._ends[label] = min(low, own.min()), max(high, own.max())
            self._rows[label] = self._rows.get(label, 0) + len(own)
        ends = sorted(self._ends.values())
        return all(one[1] < other[0] for one, other in pairwise(ends))

    def proven(self) -> bool:
        others = sum(self._rows.values()) - max(self._rows.values())
        return len(self._rows) > 1 and others >= _FEWEST


class _Line(_Watch):
    """Numbers that are a multiple of the label, which is a number too, plus an offset."""

    _EXACT: Final = 1e-9

    def __init__(self) -> None:
        self._ends: tuple[float, float, float, float] | None = None
        self._labels = 0

    def goes_on(self, column: pa.Array, codes: npt.NDArray[np.int64], values: list[Any]) -> bool:
        numeric = all(isinstance(v, int | float) and not isinstance(v, bool) for v in values)
        if not numeric or not is_any(column.type, "integer", "floating") or column.null_count:
            return False
        labels = np.array(values, dtype=float)[codes]
        cells = column.to_numpy(zero_copy_only=False).astype(float)
        if self._ends is None:
            low, high = int(labels.argmin()), int(labels.argmax())
            if labels[low] == labels[high]:
                return False
            self._ends = labels[low], labels[high], cells[low], cells[high]
        low_label, high_label, low_cell, high_cell = self._ends
        slope = (high_cell - low_cell) / (high_label - low_label)
        line = low_cell + slope * (labels - low_label)
        size = max(abs(low_cell), abs(high_cell), 1e-300)
        self._labels = max(self._labels, len(values))
        return slope != 0 and bool((np.abs(cells - line) <= self._EXACT * size).all())

    def proven(self) -> bool:
        return self._labels >= _FEWEST


def _coded(column: pa.Array) -> tuple[npt.NDArray[np.int64], list[Any]]:
    """Return codes by first occurrence, and the distinct values; a missing one is a value too."""
    if is_any(column.type, "temporal"):  # Python's dates end with the year 9999.
        column = column.view(pa.int32() if column.type.bit_width == 32 else pa.int64())
    encoded = column.dictionary_encode(null_encoding="encode")
    codes = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    return codes, encoded.dictionary.to_pylist()
