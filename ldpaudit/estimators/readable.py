"""Features tell no label: what columns, and every representation of them, reveal of labels.

In: columns, their representations, and labels. Out: the labels that single columns tell, and the
share of people whose label is read off beyond what nature and the released label say, with the
columns that it is read off from.

Each representation is asked by itself, see :func:`ldpaudit.estimators.telling.decided`. Then two
models are fitted on one half of the rows: *natural* sees the released label and the columns'
values, numbers blurred by a few per cent of the rows; *full* sees every representation as well, as
sharp as it is in the file. On the other half a label is read off where the full model is surest and
the natural one leaves it open. What natural columns say changes gradually, so a range, a value or a
digit that decides a label stands out, and a good predictor does not.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from itertools import islice
from typing import Any, Final

import numpy as np
from scipy.stats import beta

from ldpaudit.estimators.representations import Representations, Source
from ldpaudit.estimators.telling import (
    LEAST_ROWS,
    LIMIT,
    MOST_CELLS,
    MOST_ERROR,
    OPEN,
    PURE,
    Told,
    Values,
    decided,
    decides,
    is_flag,
    told,
)
from ldpaudit.models.screening import associations, projected, strongest, tried_out
from ldpaudit.models.trees import fit_boosting, probabilities
from ldpaudit.release import (
    BoolArray,
    FeatureTable,
    Float32Array,
    FloatArray,
    IndexArray,
    IntArray,
    label_table,
)

# Distances to the rows of which a column's value is looked at.
LAGS: Final = (-3, -2, -1, 1, 2, 3)
# … at so many rows: what decides nearly all labels shows in far fewer.
_MOST_LAGGED: Final = 20_000


@dataclass(frozen=True)
class Scan:
    """What single columns tell."""

    best: Told
    """The most that a column reveals about the label in its own row."""
    deciding: tuple[int, ...]
    """The columns, by position, that decide the label of their row."""
    lagged: tuple[tuple[int, int], ...]
    """Those that decide the label of another row, with the distance to the row of the value."""
    flags: tuple[int, ...]
    """Those whose value follows from the label, and that so tell apart groups of labels."""
    position: Told
    """What the row number reveals."""
    rows: int
    """How many rows were looked at."""
    lagged_rows: int
    """… for the labels of other rows."""


def rows_to_scan(rows: int, columns: int, classes: int, rng: np.random.Generator) -> IndexArray:
    """Return rows in random order, so many that a scan takes about a second."""
    cells = max(columns, 1) * max(classes, 4) // 4
    return rng.permutation(rows)[: min(50_000, max(2_000, 10_000_000 // cells))]


def scan(
    columns: Iterable[Values],
    rows: IndexArray,
    weights: FloatArray,
    labels: IntArray | None = None,
) -> Scan:
    """Look at every column of n rows in their order; at a few of the rows first.

    ``rows``: those to look at, in random order, int64 (s,); ``weights``: their labels, see
    :func:`label_weights`, (s, k); ``labels``: the labels themselves (s,), where they are known:
    flags are looked for then.
    """
    known = bool(np.isin(weights[:2_000], (0.0, 1.0)).all())
    # … or few bins where labels are noisy: one must hold enough of them.
    few, cells = (2_000, MOST_CELLS) if known else (10_000, 256)
    first, every = (part.sum(axis=0) >= LEAST_ROWS for part in (weights[:few], weights))
    glances = len(weights) > 2 * few and bool((first == every).all())

    def look(values: Values, of: FloatArray) -> Told:
        if glances and len(np.unique(values[:few])) <= few // 10:
            found = told(values[:few], of[:few], cells)
            # A column that surely tells less of the first rows is not looked at further.
            if found.share + 5.0 * found.error < 0.9:
                return found
        return told(values, of, cells)

    near_rows = min(len(rows), _MOST_LAGGED)

    def follows(column: Values, lag: int) -> bool:
        near = rows[:near_rows] + lag
        inside = np.flatnonzero((near >= 0) & (near < len(column)))
        return decides(look(column[near[inside]], weights[inside]))

    position = look(rows.astype(np.float64), weights)
    # Then anything less the row's number tells labels too, true ones or released ones.
    # … or may: a small column less the row's number is the row's number, and passes by chance.
    by_position = position.share + 5.0 * position.error >= LIMIT or position.derived
    best, deciding, lagged, flags = Told(0.0, 0.0, 0), [], [], []
    for place, column in enumerate(columns):
        own, values = look(column[rows], weights), column[rows]
        if own.error <= MOST_ERROR and own.share > best.share:
            best = own
        number = not by_position and np.issubdtype(column.dtype, np.floating)
        if decides(own) or (number and decides(look(values.astype(np.float64) - rows, weights))):
            deciding.append(place)
        elif labels is not None and is_flag(values, labels, weights.shape[1]):
            flags.append(place)
        else:
            lagged += [(place, lag) for lag in islice((g for g in LAGS if follows(column, g)), 1)]
    return Scan(best, tuple(deciding), tuple(lagged), tuple(flags), position, len(rows), near_rows)


MOST_SCANNED: Final = 256  # columns that are scanned one by one


def worth_scanning(
    features: FeatureTable, codes: IntArray, rows: IndexArray, places: list[int]
) -> list[int]:
    """Return those of the columns at ``places`` that a scan must see, in order.

    A column is scored by the label of its own row, also with the row's number taken from it, and by
    the labels of the rows of :data:`LAGS`. Half of the columns are those of the own label.
    ``codes``, int32 (n,): true or released labels; ``rows``: of the scan, in random order; 5,000 of
    them are looked at.
    """
    rows = np.sort(rows[:5_000])
    table = projected(features.take(rows), tuple(places))
    # A column at row t that tells the label of row t - lag, seen ``lag`` rows away from there.
    near = [codes[(rows - lag) % len(codes)] for lag in LAGS]
    own, *lagged = associations(table, [codes[rows], *near])
    numbered = replace(table, numeric=(table.numeric - rows[:, None]).astype(np.float32))
    width = table.numeric.shape[1]
    others = [*lagged, np.append(associations(numbered, [codes[rows]])[0][:width], own[width:])]
    kept = set(strongest(own, MOST_SCANNED // 2).tolist())
    for scores in others:
        kept.update(strongest(scores, MOST_SCANNED // 2 // len(others)).tolist())
    return [places[i] for i in sorted(kept)]


# What is read of fewer people is not worth a word; a policy may set another limit. Natural
# predictors decide the label of a few people by their values.
LEAST_SHARE: Final = 0.01
_LEAST_BY_NATURE: Final = 0.025
CERTAIN: Final = 0.9  # the certified lower bound of the share of readings that are right
SHARES: Final = (*(0.005 * 2 ** (step / 2) for step in range(15)), 0.8, 1.0)
# The error probability of the shares of one model, and of what all representations decide.
_ALPHA: Final = 0.01
_MOST_COLUMNS: Final = 64
_MOST_FOUND: Final = 2
_BLUR: Final = 0.12
_FEWEST: Final = 20
_ROUNDS: Final = (8, 60)
_SEPARATED: Final = 0.95
_FEWEST_SEPARATED: Final = 5
_SUM, _PARITY = "a weighted sum of columns", "the parity of a sum of columns"
_MOST_SUMS: Final = 4
# Columns of smaller weight, as a part of the largest, are not named.
_LEAST_WEIGHT: Final = 0.05
# How much less sure readings are with other rows' released labels, where these are what is read.
_NEEDED: Final = 0.2


@dataclass(frozen=True, eq=False)
class Labels:
    """The true labels of rows, and the released ones that any reader knows; int32 (s,) each."""

    codes: IntArray
    released: IntArray

    @property
    def half(self) -> BoolArray:
        """The rows that models learn from, bool (s,)."""
        return np.asarray(np.arange(len(self.codes)) % 2 == 0)

    @property
    def asked(self) -> IntArray:
        """The true labels of the other rows."""
        return self.codes[~self.half]


@dataclass(frozen=True)
class Readable:
    """A share of people whose label is read off, from which columns, and how surely it is right.

    ``values``: how many values, or ranges, of the source decide; 0 where a model reads them.
    """

    share: float
    purity: float
    source: Source
    values: int = 0
    by_released: bool = False
    """Whether the released label is what is read: the source tells the rows in which it is true."""

    @property
    def notable(self) -> bool:
        """Whether so many people are more than nature decides, as a rule."""
        by_model = self.source.kind == "value" and not self.values
        return self.share >= (_LEAST_BY_NATURE if by_model else LEAST_SHARE)


def readable(shown: Representations, labels: Labels, rng: np.random.Generator) -> list[Readable]:
    """Return what reads labels off, the most people first, each from other columns.

    A finding of a model is of one source: the others are looked for again without all
    representations of its columns.

    Parameters
    ----------
    shown : Representations
        Of s rows in random order.
    labels : Labels
    rng : numpy.random.Generator
        For the blur of natural values.

    Notes
    -----
    Right readings are counted on rows that no model learnt from, for seventeen shares of them, the
    surest first; the share must reach 98 %, its one-sided Clopper–Pearson bound 90 % at a level of
    1 %, split over the shares. What single representations decide has 1 % in all.
    """
    half = labels.half
    if min(half.sum(), (~half).sum()) < _FEWEST or len(np.unique(labels.codes[half])) < 2:
        return []
    seen = _shares(labels)
    shown = _with_sums(shown, labels)
    natural = _natural(shown, labels)
    base = np.maximum(_predicted(_blurred(natural, rng), labels), seen)
    asked = _without_order(shown, labels)
    left, found = asked.copy(), list[Readable]()
    while len(found) < _MOST_FOUND and left.any():
        best = _one_more(shown, left, labels, base, seen)
        if best is None:
            break
        found.append(best)
        gone = {*best.source.arrays[:1]}
        left &= [s != best.source and not gone & {*s.arrays} for s in shown.sources]

    @cache
    def open_() -> BoolArray:
        sharp = np.maximum(_predicted(natural, labels), seen)
        return np.asarray(sharp <= OPEN)

    found += _by_value(shown, asked, labels, open_)
    named, kept = set[int](), list[Readable]()
    for one in sorted(found, key=lambda one: -one.share):
        arrays = one.source.arrays
        if not arrays or named.isdisjoint(arrays):
            kept.append(one)
            # Of a pair of columns either may be the one; of more, the first.
            named.update(arrays[: 2 if len(arrays) <= 2 else 1])
    return kept


def _without_order(shown: Representations, labels: Labels) -> BoolArray:
    """Return the representations that do not say where a row stands, bool (r,).

    What goes less the row number does so where the order of the rows itself reveals labels.
    """
    numbers = [i for i, one in enumerate(shown.sources) if one.kind == "row number"]
    ordered = any(
        decided(shown.matrix[:, i], labels.codes, labels.released).values for i in numbers
    )
    places = ("row number", *(["value less the row number"] if ordered else []))
    return np.array([one.kind not in places for one in shown.sources], dtype=np.bool_)


def _by_value(
    shown: Representations, asked: BoolArray, labels: Labels, open_: Callable[[], BoolArray]
) -> Iterator[Readable]:
    """Yield what the values of single representations decide.

    ``asked``: the representations to look at; ``open_`` returns where values leave labels open: a
    digit or a count may be that of few values, which are asked themselves.
    """
    for place in np.flatnonzero(asked):
        source = shown.sources[place]
        one = decided(
            shown.matrix[:, place],
            labels.codes,
            labels.released,
            between=not source.category,
            alpha=_ALPHA / len(asked),
            open_=None if source.kind == "value" else open_,
        )
        if one.values:
            yield Readable(one.share, one.purity, source, one.values)


def _shares(labels: Labels) -> FloatArray:
    """Return the share of each label among rows with the same released label, (s, k)."""
    given, half = labels.released, labels.half
    size = int(given.max()) + 1, int(labels.codes.max()) + 1
    counts = label_table(given[half], labels.codes[half], *size)
    return np.asarray((counts / np.maximum(counts.sum(axis=1, keepdims=True), 1))[given[~half]])


def _natural(shown: Representations, labels: Labels) -> Float32Array:
    """Return the columns' values, the strongest few, and the released label."""
    values = np.array([source.kind in ("value", _SUM) for source in shown.sources], dtype=np.bool_)
    matrix = shown.matrix[:, _kept(shown.matrix, values, labels)]
    return _with_released(matrix, labels)


def _with_sums(shown: Representations, labels: Labels) -> Representations:
    """Add sums of many columns that go with the labels, as learnt on one half of the rows.

    For each of a few labels a weighted sum, by Fisher's discriminant, and where the labels are two,
    the parity of a sum, if there is one that is the label in all rows learnt from.
    """
    plain = [i for i, one in enumerate(shown.sources) if one.kind == "value" and not one.category][
        :_MOST_COLUMNS
    ]
    half, more, sources = labels.half, list[FloatArray](), list[Source]()
    known = np.nan_to_num(shown.matrix[:, plain].astype(np.float64))
    if len(plain) < 2:
        return shown
    spread = known[half].std(axis=0)
    scaled = (known - known[half].mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    codes, counts = np.unique(labels.codes[half], return_counts=True)
    frequent = codes[np.argsort(-counts, kind="stable")][1:][:_MOST_SUMS]
    for label in frequent[counts[np.searchsorted(codes, frequent)] >= _FEWEST]:
        own = labels.codes[half] == label
        away = scaled[half][own].mean(axis=0) - scaled[half][~own].mean(axis=0)
        centred = scaled[half] - np.where(own[:, None], away, 0.0)
        within = np.cov(centred, rowvar=False) + 1e-9 * np.eye(len(plain))
        weights = np.linalg.solve(within, away)
        used = np.abs(weights) >= _LEAST_WEIGHT * np.abs(weights).max()
        more.append(scaled @ weights)
        sources.append(
            Source(_SUM, tuple(shown.sources[plain[i]].arrays[0] for i in np.flatnonzero(used)))
        )
    bits = np.floor(known).astype(np.int64) & 1
    places = _parity(bits[half], labels.codes[half]) if len(codes) == 2 else []
    if places:
        more.append((bits[:, places].sum(axis=1) & 1).astype(np.float64))
        sources.append(Source(_PARITY, tuple(shown.sources[plain[i]].arrays[0] for i in places)))
    added = np.column_stack([shown.matrix, *more]).astype(np.float32)
    return Representations(added, (*shown.sources, *sources))


def _parity(bits: IndexArray, labels: IntArray) -> list[int]:
    """Return the columns of bits (s, d) whose sum is even for one label, odd for the other.

    By elimination modulo 2; none where some row contradicts it.
    """
    d = bits.shape[1]
    rows = np.unique(np.column_stack([bits, np.ones(len(bits), np.int64), labels & 1]), axis=0)
    pivots = list[int]()
    for column in range(d + 1):
        at = len(pivots)
        some = at + np.flatnonzero(rows[at:, column])
        if len(some):
            rows[[at, some[0]]] = rows[[some[0], at]]
            others = np.flatnonzero(rows[:, column])
            rows[others[others != at]] ^= rows[at]
            pivots.append(column)
    if rows[len(pivots) :, -1].any():
        return []
    return [column for place, column in enumerate(pivots) if column < d and rows[place, -1]]


def _blurred(natural: Float32Array, rng: np.random.Generator) -> Float32Array:
    """Return the columns but the last, those of many values as ranks with noise, gaps filled."""
    blurred = natural.copy()
    for column in blurred.T[:-1]:
        gaps = np.isnan(column)
        column[gaps] = rng.choice(column[~gaps], int(gaps.sum()))
        if len(np.unique(column[:1000])) > _FEWEST:
            rank = np.searchsorted(np.sort(column), column) / len(column)
            column[:] = rank + rng.normal(0, _BLUR, len(column))
    return blurred


def _with_released(matrix: Float32Array, labels: Labels) -> Float32Array:
    return np.column_stack([matrix, labels.released.astype(np.float32)])


def _kept(matrix: Float32Array, allowed: BoolArray, labels: Labels) -> IndexArray:
    """Return the allowed columns that go most clearly with the labels of the half to learn from."""
    places = np.flatnonzero(allowed)
    if len(places) <= _MOST_COLUMNS:
        return places
    half = labels.half
    none = np.empty((int(half.sum()), 0), dtype=np.int32)
    table = FeatureTable(matrix[np.ix_(half, places)], none, (), len(places))
    scores = associations(table, [labels.codes[half]])[0]
    return places[strongest(scores, _MOST_COLUMNS)]


def _predicted(matrix: Float32Array, labels: Labels) -> FloatArray:
    """Return the chance of each code for the rows that nothing was learnt from, float64."""
    return _chances(_fitted(matrix, labels), matrix[~labels.half], labels)


def _fitted(matrix: Float32Array, labels: Labels) -> Any:
    from sklearn.ensemble import HistGradientBoostingClassifier

    model = HistGradientBoostingClassifier(
        max_iter=_ROUNDS[0] if tried_out() else _ROUNDS[1],
        learning_rate=0.2,
        max_leaf_nodes=16,
        early_stopping=False,
        random_state=0,
    )
    return fit_boosting(model, matrix[labels.half], labels.codes[labels.half])


def _chances(model: Any, matrix: Float32Array, labels: Labels) -> FloatArray:
    chances = np.zeros((len(matrix), int(labels.codes.max()) + 1))
    chances[:, model.classes_] = probabilities(model, matrix)
    return chances


def _read_off(
    chances: FloatArray, labels: Labels, open_: BoolArray
) -> tuple[float, float, IndexArray]:
    """Return the largest share that is read off, its purity, and the places of these rows.

    ``open_``: which rows and labels, (s, k), may count.
    """
    guesses = chances.argmax(axis=1)
    rows = np.arange(len(guesses))
    sure = np.where(open_[rows, guesses], chances[rows, guesses], -np.inf)
    right = labels.asked == guesses
    order = np.argsort(-sure, kind="stable")[: np.isfinite(sure).sum()]
    best = (0.0, 0.0, order[:0])
    for share in SHARES:
        k = min(round(share * len(guesses)), len(order))
        if k < _FEWEST:
            continue
        hits = int(right[order[:k]].sum())
        low = float(beta.ppf(_ALPHA / len(SHARES), hits, k - hits + 1))
        if hits >= PURE * k and low >= CERTAIN:
            best = (k / len(guesses), hits / k, order[:k])
    return best


def _one_more(
    shown: Representations, left: BoolArray, labels: Labels, base: FloatArray, seen: FloatArray
) -> Readable | None:
    """Return what is read off by all of the columns left, named by the one that says the most."""
    kept = _kept(shown.matrix, left, labels)
    matrix = _with_released(shown.matrix[:, kept], labels)
    model, asked = _fitted(matrix, labels), matrix[~labels.half]
    chances = _chances(model, asked, labels)
    share, purity, rows = _read_off(chances, labels, base <= OPEN)
    whole = _separated(chances, labels, seen)
    if len(whole) > len(rows):
        share, rows = len(whole) / len(asked), whole
        purity = float((labels.asked[rows] == chances[rows].argmax(axis=1)).mean())
    if len(rows) == 0:
        return None
    some = asked[rows[:500]]
    guess = _chances(model, some, labels).argmax(axis=1)
    sources = [shown.sources[i] for i in kept]
    arrays = sorted({j for source in sources for j in source.arrays})
    using = [[i for i, s in enumerate(sources) if j in s.arrays] for j in arrays]
    # What is of no column of the table, such as a part of a text, may be the one that says it.
    for kind in dict.fromkeys(s.kind for s in sources if not s.arrays):
        using.append([i for i, s in enumerate(sources) if s.kind == kind and not s.arrays])
    less = list(_losses(model, some, labels, guess, asked, using))
    places = using[int(np.argmax(less))] if using else list(range(len(kept)))
    alone = list(_losses(model, some, labels, guess, asked, [[i] for i in places]))
    source = sources[places[int(np.argmax(alone))]]
    by_released = next(_losses(model, some, labels, guess, asked, [[len(kept)]])) >= _NEEDED
    return Readable(share, purity, source, by_released=by_released)


def _separated(chances: FloatArray, labels: Labels, seen: FloatArray) -> IndexArray:
    """Return the rows of labels that are told from all others nearly without error.

    Nature does not do that: the column is the label under another name, or a finer one.
    """
    guesses = chances.argmax(axis=1)
    rows = np.zeros(len(guesses), dtype=np.bool_)
    for label in range(chances.shape[1]):
        open_ = seen[:, label] <= OPEN
        guessed, there = (open_ & (codes == label) for codes in (guesses, labels.asked))
        hits, most = int((guessed & there).sum()), max(int(guessed.sum()), int(there.sum()))
        enough = min(guessed.sum(), there.sum()) >= _FEWEST_SEPARATED
        if enough and hits >= _SEPARATED * most:
            rows |= guessed
    if chances.shape[1] == 2 and rows.any():  # Who has not the one label has the other.
        rows[:] = True
    return np.flatnonzero(rows)


def _losses(
    model: Any,
    some: Float32Array,
    labels: Labels,
    guess: IndexArray,
    asked: Float32Array,
    groups: list[list[int]],
) -> Iterator[float]:
    """Yield how much less sure the readings are when some columns have other rows' values."""
    rows = np.arange(len(some))
    for places in groups:
        other = some.copy()
        other[:, places] = asked[(rows * 7 + 3) % len(asked)][:, places]
        yield 1.0 - float(_chances(model, other, labels)[rows, guess].mean())
