"""The event that distinguishes two inputs best, chosen on a sample."""

# Views of the outputs are cut into bins, whose log ratios add up to a score; or boosted trees score
# all entries. An event guesses one input where the score is high, and the other where it is low.

import math
from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations, pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ldpaudit.doors import FloatArray
from ldpaudit.extras.probe.black_box.outputs import NUMERIC, OutputTable
from ldpaudit.randomness import integer_seed

if TYPE_CHECKING:
    from ldpaudit.estimators.epsilon.guesses import GuessCounts

Codes = npt.NDArray[np.uint16]
_CATEGORIES = 64
# How many different whole outputs are distinguished.
_ROWS_SEEN = 4096
_ITEMS = 256
_PEEK = 2000
# Where bins of numbers end; the tails are cut finer, since ratios are largest there.
_SHARES = np.concatenate(
    [[0.001, 0.003, 0.006], np.arange(1, _CATEGORIES) / _CATEGORIES, [0.994, 0.997, 0.999]]
)
# Shared by all columns of a view: how often an uninformative one is kept.
_SCREENING_LEVEL = 0.01
_SMOOTHING = 1.0
_BOOSTED_ROWS = 30_000
_MOST_MERGED = 256
# Standard errors by which log ratios of neighbouring bins must differ to be kept apart.
_APART = 2.0
_THRESHOLDS = 64
# Standard errors of the choosing sample by which an event must be better.
_DOUBT = 3.5
_FEW_VALUES = 16
# Nats by which boosted trees must be better than counting: they cost more to apply.
_MARGIN = 0.05


@dataclass(frozen=True, eq=False)
class Bins:
    """A bin for each frequent value, and bin 0 for what was never seen."""

    shown: tuple[str, ...]
    """Which values each further bin holds. Values of any hashable type have their ``positions``.
    Numbers have their ``values``, in order, and then, unless all that were seen are among these,
    the intervals between ``edges``."""
    positions: Mapping[Hashable, int] | None = None
    values: npt.NDArray[Any] = field(default_factory=lambda: np.empty(0))
    edges: npt.NDArray[Any] | None = None

    @property
    def bins(self) -> int:
        """How many bins there are."""
        return 1 + len(self.shown)

    def codes(self, column: npt.NDArray[Any]) -> Codes:
        """Return the bin of each value, uint16 of shape (n,)."""
        codes = np.zeros(len(column), dtype=np.intp)
        if self.positions is not None:
            codes = np.array([self.positions.get(value, 0) for value in column.tolist()])
        elif column.dtype.kind in NUMERIC:
            if self.edges is not None:
                codes = np.searchsorted(self.edges, column, side="right") + (1 + len(self.values))
            if len(self.values):
                place = np.minimum(np.searchsorted(self.values, column), len(self.values) - 1)
                codes = np.where(self.values[place] == column, place + 1, codes)
        return codes.astype(np.uint16)

    def describe(self, code: int) -> str:
        """Return which values a bin holds."""
        return self.shown[code - 1] if code else "any other"


def fit_binning(column: npt.NDArray[Any], most: int = _CATEGORIES) -> Bins:
    """Fit bins to a sample of a column, of shape (n,): one for each of at most ``most`` values."""
    if column.dtype.kind not in NUMERIC:
        common = [value for value, _ in Counter(column.tolist()).most_common(most)]
        shown = tuple(f"= {_readable(value)!r}"[:80] for value in common)
        return Bins(shown, {value: place for place, value in enumerate(common, 1)})
    column = column.view(np.uint8) if column.dtype.kind == "b" else column
    values, counts = np.unique(column, return_counts=True)
    frequent = counts >= (len(column) / most if len(values) > most else 0)
    shown = tuple(f"= {value:.6g}" for value in values[frequent])
    if frequent.all():
        return Bins(shown, values=values)
    rest = np.repeat(values[~frequent], counts[~frequent])
    edges = np.unique(np.quantile(rest, _SHARES, method="inverted_cdf"))
    ends = ["−∞", *(f"{edge:.6g}" for edge in edges), "∞"]
    between = tuple(f"in [{low}, {high})" for low, high in pairwise(ends))
    return Bins(shown + between, values=values[frequent], edges=edges)


def _readable(value: Any) -> Any:
    return sorted(map(str, value)) if isinstance(value, frozenset) else value


@dataclass(frozen=True, eq=False)
class View:
    """Outputs as a few columns in bins.

    ``name``: "entries"; "deviations" of entries from the output's median; "outputs" as wholes; or
    "items", whether each of these occurs anywhere in an output.
    """

    name: str
    binnings: tuple[Bins, ...]
    items: tuple[Any, ...] = ()

    def codes(self, table: OutputTable, column: int) -> Codes:
        """Return the bins of one column, uint16 of shape (n,)."""
        if self.name == "outputs":
            cells = _row_keys(table)
        elif self.name == "items":
            cells = _holding(table, self.items[column])
        else:
            cells = table[:, column]
            cells = cells - _centre(table) if self.name == "deviations" else cells
        return self.binnings[column].codes(cells)

    def describe(self, column: int) -> str:
        """Return what a column is."""
        if self.name == "items":
            return f"count of {self.items[column]!r}, at most one,"[:80]
        tail = " − the output's median" if self.name == "deviations" else ""
        return "the output" if self.name == "outputs" else f"entry {column}{tail}"


def _row_keys(table: OutputTable) -> npt.NDArray[Any]:
    """Return each row as one hashable value, of shape (n,)."""
    if table.dtype.kind == "O":
        keys = np.empty(len(table), dtype=object)
        keys[:] = list(map(tuple, table.tolist()))
        return keys
    packed = np.ascontiguousarray(table)
    kind = np.dtype((np.void, packed.dtype.itemsize * packed.shape[1]))
    return packed.view(kind).ravel()


def _holding(table: OutputTable, item: Any) -> npt.NDArray[Any]:
    """Return 1 for each output that holds an item, else 0."""
    if table.dtype.kind != "O":
        return np.asarray((table == item).any(axis=1), dtype=np.uint8)
    present = [
        any(item in e if isinstance(e, frozenset) else bool(e == item) for e in row)
        for row in table
    ]
    return np.array(present, dtype=np.uint8)


def _centre(table: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return each row's median; of two entries the second, so that one of them remains."""
    return np.asarray(table[:, 1] if table.shape[1] == 2 else np.median(table, axis=1))


def fit_views(tables: Sequence[OutputTable]) -> list[View]:
    """Fit every view that suits a sample: outputs of each input, alike in kind, shape (n, d)."""
    pooled = np.concatenate(tables)
    width, kind = pooled.shape[1], pooled.dtype.kind
    most = _ROWS_SEEN if width == 1 and kind in "iu" else _CATEGORIES
    views = [View("entries", tuple(fit_binning(pooled[:, j], most) for j in range(width)))]
    if width > 1 or kind not in NUMERIC:
        start = pooled[:: max(len(pooled) // _PEEK, 1)]
        if len(set(_row_keys(start).tolist())) <= len(start) / 2:
            keys = _row_keys(pooled).tolist()
            rows = dict(zip(keys, pooled, strict=True))
            counts = Counter(keys if kind == "O" else sorted(keys))
            common = [key for key, _ in counts.most_common(_ROWS_SEEN)]
            entries = ([_readable(entry) for entry in rows[key].tolist()] for key in common)
            shown = tuple(f"= {str(one[0] if len(one) == 1 else one)[:80]}" for one in entries)
            positions = {key: place for place, key in enumerate(common, 1)}
            views.append(View("outputs", (Bins(shown, positions),)))
        if items := _items(pooled):
            both = fit_binning(np.array([0, 1], dtype=np.uint8))
            views.append(View("items", (both,) * len(items), items))
    if width > 1 and kind == "f":
        moved = pooled - _centre(pooled)[:, None]
        views.append(View("deviations", tuple(fit_binning(moved[:, j]) for j in range(width))))
    return views


def _items(pooled: OutputTable) -> tuple[Any, ...]:
    """Return all values that occur in outputs; none where they are too many or decide nothing."""
    if pooled.dtype.kind == "f":
        return ()
    if pooled.dtype.kind != "O":
        few = 2 < len(np.unique(pooled[:_PEEK])) <= _ITEMS
        items = np.unique(pooled) if few else pooled[:0, 0]
        return tuple(items.tolist()) if len(items) <= _ITEMS else ()
    distinct: set[Any] = set()
    for entry in pooled.ravel().tolist():
        distinct |= entry if isinstance(entry, frozenset) else {entry}
        if len(distinct) > _ITEMS:
            return ()
    return tuple(sorted(distinct, key=str))


@dataclass(frozen=True, eq=False)
class RatioScore:
    """The sum over columns of the estimated log ratio of a bin's probabilities.

    The log likelihood ratio itself where the columns are independent given the input, or where
    there is one. ``tells``: whether the fitting sample distinguished the two inputs at all.
    """

    view: View
    used: tuple[int, ...]
    log_ratios: tuple[FloatArray, ...]
    tells: bool = True

    @property
    def columns(self) -> tuple[int, ...]:
        """The entries of an output that it reads; empty where it reads all."""
        return self.used if self.view.name == "entries" else ()

    def of(self, table: OutputTable) -> FloatArray:
        """Return the score of each output, float64 of shape (n,)."""
        total = np.zeros(len(table))
        for column, ratios in zip(self.used, self.log_ratios, strict=True):
            total += ratios[self.view.codes(table, column)]
        # Sums that are equal but for rounding are one value.
        return np.round(total, 9)

    def describe(self) -> dict[str, Any]:
        """Return the largest log ratios of each column, as JSON."""
        columns = []
        for column, ratios in list(zip(self.used, self.log_ratios, strict=True))[:10]:
            what, bins = self.view.describe(column), self.view.binnings[column]
            largest = [
                {"value": bins.describe(int(code)), "log_ratio": float(ratios[code])}
                for code in np.argsort(-np.abs(ratios), kind="stable")[:8]
            ]
            columns.append({"what": what, "log_ratios": largest})
        return {"score": f"sum of log ratios of {self.view.name}", "columns": columns}


@dataclass(frozen=True, eq=False)
class BoostedScore:
    """The log-odds of the first input by gradient-boosted trees on all entries."""

    model: Any
    tells: bool = True
    columns: tuple[int, ...] = ()

    def of(self, table: OutputTable) -> FloatArray:
        """Return the score of each output, float64 of shape (n,)."""
        return np.asarray(self.model.decision_function(_with_sum(table)), dtype=np.float64)

    def describe(self) -> dict[str, Any]:
        """Return that it is a model, as JSON."""
        return {"score": "log-odds by gradient-boosted trees on all entries and their sum"}


# A fixed function of an output; large where the first input is more likely.
Score = RatioScore | BoostedScore


def _with_sum(table: OutputTable) -> FloatArray:
    numbers = np.asarray(table, dtype=np.float64)
    return np.column_stack([numbers, numbers.sum(axis=1)])


def _boosted(first: OutputTable, second: OutputTable, seed: int) -> BoostedScore | None:
    """Fit boosted trees to two samples; None where outputs are single values or no numbers."""
    if first.shape[1] < 2 or first.dtype.kind not in NUMERIC or second.dtype.kind not in NUMERIC:
        return None
    from sklearn.ensemble import HistGradientBoostingClassifier
    from threadpoolctl import threadpool_limits

    rows = min(len(first), len(second), _BOOSTED_ROWS)
    table = np.concatenate([_with_sum(first[:rows]), _with_sum(second[:rows])])
    model = HistGradientBoostingClassifier(
        max_iter=40, max_leaf_nodes=15, min_samples_leaf=100, random_state=seed, max_bins=63
    )
    with threadpool_limits(1):
        model.fit(table, np.repeat([1, 0], rows))
    return BoostedScore(model)


def _ratio_score(view: View, pairs: Sequence[FloatArray]) -> RatioScore:
    """Return the score by two inputs' counts of bins, on the columns that tell them apart."""
    p_values = np.array([_g_test(pair) for pair in pairs])
    used = np.flatnonzero(p_values < _SCREENING_LEVEL / len(pairs))
    tells = len(used) > 0
    chosen = [*map(int, used)] if tells else [int(np.argmin(p_values))]
    ratios = tuple(_log_ratios(pairs[column], view.binnings[column]) for column in chosen)
    return RatioScore(view, tuple(chosen), ratios, tells)


def _g_test(pair: FloatArray) -> float:
    """Return the p-value of the likelihood-ratio test that two rows of counts have one law."""
    from scipy.special import gammaincc

    pair = pair[:, pair.sum(axis=0) > 0]
    if pair.shape[1] < 2:
        return 1.0
    expected = pair.sum(axis=1, keepdims=True) * pair.sum(axis=0) / pair.sum()
    terms = np.where(pair > 0, pair * np.log(np.where(pair > 0, pair, 1.0) / expected), 0.0)
    return float(gammaincc((pair.shape[1] - 1) / 2, terms.sum()))


def _log_ratios(pair: FloatArray, bins: Bins) -> FloatArray:
    """Return each bin's log ratio; bins with ratios that do not differ are merged."""
    # Where bins are intervals only neighbours are merged, else those of similar ratio.
    seen = np.flatnonzero(pair.sum(axis=0) > 0)
    smooth = pair[:, seen] + _SMOOTHING
    ratios = np.log(smooth[0] / smooth[1])
    if len(seen) <= _MOST_MERGED:
        intervals = bins.edges is not None and not len(bins.values)
        order = np.arange(len(seen)) if intervals else np.argsort(ratios, kind="stable")
        ratios[order] = _merged(pair[:, seen[order]])
    log_ratios = np.zeros(pair.shape[1])
    log_ratios[seen] = ratios - np.log(pair[0].sum() / pair[1].sum())
    return log_ratios


def _merged(pair: FloatArray) -> FloatArray:
    """Merge neighbouring columns, the most alike first; return each one's log ratio."""
    groups, sizes = pair.copy(), np.ones(pair.shape[1], dtype=np.int64)
    while True:
        smooth = groups + _SMOOTHING
        ratios, variances = np.log(smooth[0] / smooth[1]), (1 / smooth).sum(axis=0)
        apart = np.diff(ratios) ** 2 / (variances[1:] + variances[:-1])
        if not len(apart) or apart.min() >= _APART**2:
            return np.repeat(ratios, sizes)
        place = int(np.argmin(apart))
        groups[:, place] += groups[:, place + 1]
        sizes[place] += sizes[place + 1]
        groups, sizes = np.delete(groups, place + 1, axis=1), np.delete(sizes, place + 1)


@dataclass(frozen=True, eq=False)
class Event:
    """A rule that guesses which of two inputs an output came from.

    The first where the score is at least ``high``, the second where it is at most ``low``, else
    none.
    """

    score: Score
    low: float
    high: float

    @property
    def sides(self) -> int:
        """How many of the two inputs are ever guessed."""
        return int(math.isfinite(self.low)) + int(math.isfinite(self.high))

    def counts(self, table: OutputTable) -> tuple[int, int]:
        """Return how often the first and the second input are guessed."""
        scores = self.score.of(table) if len(table) else np.zeros(0)
        return int((scores >= self.high).sum()), int((scores <= self.low).sum())

    def describe(self) -> dict[str, Any]:
        """Return the rule as JSON."""
        return self.score.describe() | {
            "first_where_score_at_least": self.high if math.isfinite(self.high) else None,
            "second_where_score_at_most": self.low if math.isfinite(self.low) else None,
        }


@dataclass(frozen=True)
class Goal:
    """The test that an event is chosen for.

    ``candidates`` fresh outputs, the one-sided error probability ``alpha``, and the hypothesis'
    δ.
    """

    candidates: int
    alpha: float
    delta: float = 0.0


@dataclass(frozen=True, eq=False)
class PairChoice:
    """The best event found for a pair of inputs.

    ``counts`` are those of the sample on which thresholds were chosen: no bound may use them.
    ``expected`` is roughly the bound to expect of fresh candidates, in nats; may be negative.
    """

    first: int
    second: int
    event: Event
    counts: "GuessCounts"
    expected: float


def choose_events(
    tables: Sequence[OutputTable],
    goal: Goal,
    rng: np.random.Generator,
    inputs: Sequence[Any] = (),
) -> list[PairChoice]:
    """Choose an event for every pair of inputs, the most promising pair first.

    ``tables`` are outputs of each of k ≥ 2 inputs, of shape (n, d): scores are fitted on the
    first half of each and thresholds chosen on the second. ``rng``: for the boosted trees.
    ``inputs``: the inputs themselves, which single outputs may name.
    """
    fitting = [table[: len(table) // 2] for table in tables]
    counted = [
        (view, [
            np.array([np.bincount(view.codes(t, j), minlength=bins.bins) for t in fitting], float)
            for j, bins in enumerate(view.binnings)
        ])
        for view in fit_views(fitting)
    ]  # fmt: skip
    choices = []
    for pair in combinations(range(len(tables)), 2):
        scores = [_ratio_score(view, [one[[*pair]] for one in counts]) for view, counts in counted]
        if inputs and (named := _named(tables[0], inputs[pair[0]], inputs[pair[1]])) is not None:
            scores.append(named)
        options = [_choice(score, tables, pair, goal) for score in scores]
        choices.append(max(options, key=lambda option: option.expected))
    choices.sort(key=lambda option: -option.expected)
    best = choices[0]
    boosted = _boosted(fitting[best.first], fitting[best.second], integer_seed(rng))
    if boosted is not None:
        option = _choice(boosted, tables, (best.first, best.second), goal)
        if option.expected > best.expected + _MARGIN:
            choices[0] = option
    return choices


def _named(table: OutputTable, first: Any, second: Any) -> RatioScore | None:
    """Return the score of outputs that are one of two inputs; None where outputs cannot be."""
    # Nothing is fitted: of many values, each of them seen a few times, ratios are mostly chance.
    if table.shape[1] != 1 or not all(isinstance(one, Hashable) for one in (first, second)):
        return None
    shown = tuple(f"= {one!r}"[:80] for one in (first, second))
    if table.dtype.kind in NUMERIC:
        if not all(isinstance(one, int | float) for one in (first, second)):
            return None
        values = np.array([first, second])
        order = np.argsort(values)
        bins = Bins(tuple(shown[place] for place in order), values=values[order])
        ratios = np.array([0.0, *np.array([1.0, -1.0])[order]])
    else:
        bins, ratios = Bins(shown, {first: 1, second: 2}), np.array([0.0, 1.0, -1.0])
    return RatioScore(View("entries", (bins,)), (0,), (ratios,))


def delta_event(choice: PairChoice, tables: Sequence[OutputTable], epsilon: float) -> Event:
    """Return the event of the same score with the largest excess (δ) at a given ε."""
    # Both guesses where the estimated log ratio is at least ε: the hockey-stick set.
    halves = [tables[i][len(tables[i]) // 2 :] for i in (choice.first, choice.second)]
    n = sum(map(len, halves))

    def excess(right: FloatArray, wrong: FloatArray, sides: FloatArray) -> FloatArray:
        return (right - math.exp(min(epsilon, 700.0)) * wrong) / n * 2 / sides

    one, two = map(choice.event.score.of, halves)
    return _best(choice.event.score, one, two, excess)[0]


def _choice(
    score: Score, tables: Sequence[OutputTable], pair: tuple[int, int], goal: Goal
) -> PairChoice:
    """Choose thresholds on the second half; on all where a score has too few values to overfit."""
    from scipy.special import ndtri

    # The processes that draw need no scipy.stats, which takes longer to import than all else.
    from ldpaudit.estimators.epsilon.guesses import GuessCounts

    one, two = (score.of(tables[i][len(tables[i]) // 2 :]) for i in pair)
    if len(np.unique(np.concatenate([one, two]))) <= _FEW_VALUES:
        one, two = (score.of(tables[i]) for i in pair)
    n = len(one) + len(two)

    def expected(right: FloatArray, wrong: FloatArray, sides: FloatArray) -> FloatArray:
        """Return the bound to expect, less an allowance for choosing on this sample."""
        a, b = right + 0.5, wrong + 0.5
        room = np.maximum(a - goal.delta * sides / 2 * n, 0.5)
        error = np.sqrt(a / room**2 + 1 / b)
        spread = -ndtri(goal.alpha) * math.sqrt(n / goal.candidates) + _DOUBT
        return np.asarray(np.log(room / b) - spread * error)

    event, right, wrong, worth = _best(score, one, two, expected)
    return PairChoice(*pair, event, GuessCounts(n, right, wrong, event.sides), worth)


def _best(
    score: Score,
    one: FloatArray,
    two: FloatArray,
    worth: Callable[[FloatArray, FloatArray, FloatArray], FloatArray],
) -> tuple[Event, int, int, float]:
    """Return the event of the largest worth, its right and wrong guesses, and its worth.

    Looks at every pair of thresholds, an infinite one included: then its input is never guessed.
    ``worth`` is asked for right and wrong guesses, and how many inputs are ever guessed.
    """
    one, two = np.sort(one), np.sort(two)
    values = np.unique(np.concatenate([one, two]))
    if len(values) > _THRESHOLDS:
        pooled, tails = np.sort(np.concatenate([one, two])), np.geomspace(2e-4, 0.02, 12)
        shares = np.unique(np.concatenate([np.linspace(0, 1, _THRESHOLDS), tails, 1 - tails]))
        values = np.unique(pooled[(shares * (len(pooled) - 1)).round().astype(int)])
    highs, lows = np.append(values, np.inf), np.append(values, -np.inf)
    above = [np.append(len(s) - np.searchsorted(s, values, side="left"), 0) for s in (one, two)]
    below = [np.append(np.searchsorted(s, values, side="right"), 0) for s in (two, one)]
    right, wrong = (
        np.add.outer(first, second).astype(np.float64)
        for first, second in zip(above, below, strict=True)
    )
    sides = np.add.outer(np.isfinite(highs).astype(float), np.isfinite(lows))
    allowed = (highs[:, None] > lows) & (sides > 0)
    worths = np.where(allowed, worth(right, wrong, np.maximum(sides, 1.0)), -np.inf)
    at = np.unravel_index(int(np.argmax(worths)), worths.shape)
    event = Event(score, float(lows[at[1]]), float(highs[at[0]]))
    return event, int(right[at]), int(wrong[at]), float(worths[at])
