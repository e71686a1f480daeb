"""Views of a table of outputs: each a few columns, whose values fall into bins.

Bins are fitted on a sample; bin 0 is for what was never seen.
"""

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from ldpaudit.commands.black_box.estimators.outputs import NUMERIC, OutputTable

Codes = npt.NDArray[np.uint16]

MOST_CATEGORIES = 64
_SHARES = np.concatenate(
    [[0.001, 0.003, 0.006], np.arange(1, MOST_CATEGORIES) / MOST_CATEGORIES, [0.994, 0.997, 0.999]]
)
"""Where bins of numbers end; the tails are cut finer, since ratios are largest there."""


@dataclass(frozen=True, eq=False)
class NumberBins:
    """Bins of numbers: frequent values on their own, the rest between quantiles.

    Attributes
    ----------
    values : array of shape (a,)
        Increasing; bin 1 + i holds values[i] alone.
    edges : array of shape (e,)
        Increasing; the rest of the numbers are in bins a + 1 … a + e + 1; empty where every value
        that was seen has a bin of its own.
    open_ended : bool
        Whether there are values without a bin of their own.
    """

    values: npt.NDArray[Any]
    edges: npt.NDArray[Any]
    open_ended: bool

    @property
    def bins(self) -> int:
        """How many bins there are."""
        return 1 + len(self.values) + (len(self.edges) + 1 if self.open_ended else 0)

    def codes(self, column: npt.NDArray[Any]) -> Codes:
        """Return the bin of each number, uint16 of shape (n,)."""
        if column.dtype.kind not in NUMERIC:
            return np.zeros(len(column), dtype=np.uint16)
        codes = np.zeros(len(column), dtype=np.intp)
        if self.open_ended:
            codes = np.searchsorted(self.edges, column, side="right") + (1 + len(self.values))
        if len(self.values):
            place = np.minimum(np.searchsorted(self.values, column), len(self.values) - 1)
            codes = np.where(self.values[place] == column, place + 1, codes)
        return codes.astype(np.uint16)

    def describe(self, code: int) -> str:
        """Return which numbers a bin holds."""
        if code == 0:
            return "any other"
        if code <= len(self.values):
            return f"= {self.values[code - 1]:.6g}"
        position = code - len(self.values) - 1
        low = f"{self.edges[position - 1]:.6g}" if position > 0 else "−∞"
        high = f"{self.edges[position]:.6g}" if position < len(self.edges) else "∞"
        return f"in [{low}, {high})"


@dataclass(frozen=True, eq=False)
class ValueBins:
    """A bin for each frequent value, of any hashable type."""

    positions: Mapping[Hashable, int]

    @property
    def bins(self) -> int:
        """How many bins there are."""
        return 1 + len(self.positions)

    def codes(self, column: npt.NDArray[Any]) -> Codes:
        """Return the bin of each value, uint16 of shape (n,)."""
        get = self.positions.get
        return np.array([get(value, 0) for value in column.tolist()], dtype=np.uint16)

    def describe(self, code: int) -> str:
        """Return which value a bin holds."""
        if code == 0:
            return "any other"
        value = next(v for v, position in self.positions.items() if position == code)
        text = sorted(map(str, value)) if isinstance(value, frozenset) else value
        return f"= {text!r}"[:80]


def fit_binning(column: npt.NDArray[Any], most: int = MOST_CATEGORIES) -> NumberBins | ValueBins:
    """Fit bins to a sample of a column, of shape (n,): one for each of at most ``most`` values."""
    if column.dtype.kind in NUMERIC:
        return _number_bins(column, most)
    common = Counter(column.tolist()).most_common(most)
    return ValueBins({value: position + 1 for position, (value, _) in enumerate(common)})


def _number_bins(column: npt.NDArray[Any], most: int) -> NumberBins:
    if column.dtype.kind == "b":
        column = column.view(np.uint8)
    values, counts = np.unique(column, return_counts=True)
    if len(values) <= most:
        return NumberBins(values, values[:0], False)
    frequent = counts >= len(column) / most
    rest = np.repeat(values[~frequent], counts[~frequent])
    edges = np.unique(np.quantile(rest, _SHARES, method="inverted_cdf"))
    return NumberBins(values[frequent], edges, True)


MOST_ROWS_SEEN = 4096
"""How many different whole outputs are distinguished."""
MOST_ITEMS = 256
_PEEK = 2000


@dataclass(frozen=True, eq=False)
class RowBins:
    """A bin for each frequent whole row."""

    positions: dict[Any, int]
    shown: dict[int, str] = field(repr=False)

    @property
    def bins(self) -> int:
        """How many rows are distinguished, and one bin for the rest."""
        return 1 + len(self.positions)

    def codes(self, column: OutputTable) -> Codes:
        """Return the bins of whole rows; ``column`` has shape (n, d) here."""
        keys, inverse = _row_keys(column)
        codes = np.array([self.positions.get(key, 0) for key in keys], dtype=np.uint16)
        return np.asarray(codes[inverse])

    def describe(self, code: int) -> str:
        """Return which output a bin holds."""
        return f"= {self.shown[code]}" if code else "any other"


Binning = NumberBins | ValueBins | RowBins
"""A map from the values of a column to bins."""


@dataclass(frozen=True, eq=False)
class WholeOutputs:
    """Every output as one value; for randomizers with few different outputs."""

    rows: RowBins
    name: str = "outputs"

    @property
    def binnings(self) -> tuple[Binning, ...]:
        """One: the outputs."""
        return (self.rows,)

    def codes(self, table: OutputTable, column: int) -> Codes:  # noqa: ARG002
        """Return the bins of whole rows."""
        return self.rows.codes(table)

    def describe(self, column: int) -> str:  # noqa: ARG002
        """Return what its column is."""
        return "the output"


@dataclass(frozen=True, eq=False)
class Entries:
    """Each entry of an output on its own, or its deviation from the output's median."""

    binnings: tuple[Binning, ...]
    name: str = "entries"

    def codes(self, table: OutputTable, column: int) -> Codes:
        """Return the bins of one entry."""
        values = table[:, column]
        if self.name == "deviations":
            values = values - _centre(table)
        return self.binnings[column].codes(values)

    def describe(self, column: int) -> str:
        """Return which entry it is."""
        tail = " − the output's median" if self.name == "deviations" else ""
        return f"entry {column}{tail}"


@dataclass(frozen=True, eq=False)
class Items:
    """Whether a value occurs anywhere in an output: for sets and lists of values."""

    items: tuple[Any, ...]
    name: str = "items"

    @cached_property
    def binnings(self) -> tuple[Binning, ...]:
        """Two bins each: absent and present."""
        both = fit_binning(np.array([0, 1], dtype=np.uint8))
        return (both,) * len(self.items)

    def codes(self, table: OutputTable, column: int) -> Codes:
        """Return 2 where the value occurs, else 1."""
        item = self.items[column]
        if table.dtype.kind != "O":
            return np.asarray((table == item).any(axis=1) + 1, dtype=np.uint16)
        present = [
            any(item in e if isinstance(e, frozenset) else bool(e == item) for e in row)
            for row in table
        ]
        return np.array(present, dtype=np.uint16) + np.uint16(1)

    def describe(self, column: int) -> str:
        """Return which value it is."""
        return f"count of {self.items[column]!r}, at most one,"[:80]


OutputView = WholeOutputs | Entries | Items
"""A fitted view; ``codes`` gives the bins of its rows in one column, uint16 of shape (n,)."""


def fit_views(tables: Sequence[OutputTable]) -> list[OutputView]:
    """Fit every view that suits a sample: outputs of each input, alike in kind, shape (n, d)."""
    pooled = np.concatenate(tables)
    width = pooled.shape[1]
    most = MOST_ROWS_SEEN if width == 1 and pooled.dtype.kind in "iu" else MOST_CATEGORIES
    views: list[OutputView] = [
        Entries(tuple(fit_binning(pooled[:, j], most) for j in range(width)))
    ]
    if width > 1 or pooled.dtype.kind not in NUMERIC:
        views += _whole(pooled) + _items(pooled)
    if width > 1 and pooled.dtype.kind == "f":
        moved = pooled - _centre(pooled)[:, None]
        bins = tuple(fit_binning(moved[:, j]) for j in range(width))
        views.append(Entries(bins, "deviations"))
    return views


def _whole(pooled: OutputTable) -> list[OutputView]:
    start = pooled[:: max(len(pooled) // _PEEK, 1)]
    if len(_row_keys(start)[0]) > len(start) / 2:
        return []
    keys, inverse = _row_keys(pooled)
    order = np.argsort(-np.bincount(inverse), kind="stable")[:MOST_ROWS_SEEN]
    _, first = np.unique(inverse, return_index=True)
    positions = {keys[place]: rank + 1 for rank, place in enumerate(order)}
    shown = {rank + 1: _shown(pooled[first[place]]) for rank, place in enumerate(order)}
    return [WholeOutputs(RowBins(positions, shown))]


def _items(pooled: OutputTable) -> list[OutputView]:
    if pooled.dtype.kind == "f":
        return []
    if pooled.dtype.kind != "O":
        items = np.unique(pooled[:_PEEK])
        if not 2 < len(items) <= MOST_ITEMS:
            return []
        items = np.unique(pooled)
        return [Items(tuple(items.tolist()))] if len(items) <= MOST_ITEMS else []
    distinct: set[Any] = set()
    for entry in pooled.ravel().tolist():
        distinct |= entry if isinstance(entry, frozenset) else {entry}
        if len(distinct) > MOST_ITEMS:
            return []
    return [Items(tuple(sorted(distinct, key=str)))]


def _centre(table: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return each row's median; of two entries the second, so that one of them remains."""
    if table.shape[1] == 2:
        return np.asarray(table[:, 1])
    return np.asarray(np.median(table, axis=1))


def _row_keys(table: OutputTable) -> tuple[list[Any], npt.NDArray[np.intp]]:
    """Return the distinct rows as hashable keys, and which of them each row is."""
    if table.dtype.kind == "O":
        order: dict[Any, int] = {}
        rows = map(tuple, table.tolist())
        inverse = np.array([order.setdefault(row, len(order)) for row in rows], dtype=np.intp)
        return list(order), inverse
    packed = np.ascontiguousarray(table)
    kind = np.dtype((np.void, packed.dtype.itemsize * packed.shape[1]))
    distinct, inverse = np.unique(packed.view(kind).ravel(), return_inverse=True)
    return [row.tobytes() for row in distinct], inverse.reshape(-1)


def _shown(row: npt.NDArray[Any]) -> str:
    entries = [sorted(map(str, e)) if isinstance(e, frozenset) else e for e in row.tolist()]
    return str(entries[0] if len(entries) == 1 else entries)[:80]
