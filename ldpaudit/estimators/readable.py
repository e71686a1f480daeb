"""Features tell no label: the share of people whose label is read off, in every representation.

In: representations of the features, and labels. Out: the share of people whose label is read off
beyond what nature and the released label say, and the columns that it is read off from.

Two models are fitted on one half of the rows: *natural* sees the released label and the columns'
values, numbers blurred by a few per cent of the rows; *full* sees every representation as well, as
sharp as it is in the file. On the other half a label is read off where the full model is surest and
the natural one leaves it open. What natural columns say changes gradually, so a range, a value or a
digit that decides a label stands out, and a good predictor does not.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from scipy.stats import beta, binom

from ldpaudit.arrays import stable_order
from ldpaudit.estimators.representations import Representations, Source
from ldpaudit.models.screening import associations, strongest, tried_out
from ldpaudit.release import BoolArray, FeatureTable, Float32Array, FloatArray, IndexArray, IntArray

PURE: Final = 0.98  # the share of readings that must be right …
CERTAIN: Final = 0.9  # … and its certified lower bound
OPEN: Final = 0.85  # a label that nature gives at most this chance is open
SHARES: Final = (*(0.005 * 2 ** (step / 2) for step in range(15)), 0.8, 1.0)
_ALPHA: Final = 0.01
_MOST_COLUMNS: Final = 64
_MOST_FOUND: Final = 2
_BLUR: Final = 0.12
_FEWEST: Final = 20
_ROUNDS: Final = (15, 60)
_MOST_LOOKED_UP: Final = 256
_LOOKED_UP: Final = (
    "value",
    "missing",
    "part of a text or a date",
    "the pattern of missing values",
)
_SEPARATED, _SURELY_SEPARATED = 0.95, 0.88
_FEWEST_SEPARATED: Final = 5


@dataclass(frozen=True)
class Labels:
    """What rows say of the labels."""

    # ``codes``, int32 (s,): true labels, or released ones; ``weights``, float64 (m, k): what a row
    # with each code counts for each label: one for its own, or the inverse of the channel;
    # ``released``, int32 (s,), or None: released labels that any reader knows.

    codes: IntArray
    weights: FloatArray
    released: IntArray | None = None

    @property
    def known(self) -> bool:
        """Whether the codes are true labels."""
        return self.released is not None or bool(np.isin(self.weights, (0.0, 1.0)).all())


@dataclass(frozen=True)
class Readable:
    """A share of people whose label is read off, from which columns, and how surely it is right."""

    share: float
    purity: float
    source: Source


def readable(
    shown: Representations, labels: Labels, rng: np.random.Generator
) -> tuple[list[Readable], float]:
    """Return what reads labels off, the strongest first, and the share that nature reads off.

    Each finding is of one source: the others are looked for again without all representations of
    its columns.

    Parameters
    ----------
    shown : Representations
        Of s rows in random order.
    labels : Labels
    rng : numpy.random.Generator
        For the blur of natural values.

    Notes
    -----
    Right readings are counted on rows that no model learnt from, for eight shares of them, the
    surest first; the share must reach 98 %, its one-sided Clopper–Pearson bound 90 % at a level of
    1 %, split over the shares. With the inverse of a channel for labels the estimate is unbiased
    and the bound three standard errors; more than all labels read off are a column that was
    computed from released labels.
    """
    half = np.arange(len(labels.codes)) % 2 == 0
    if min(half.sum(), (~half).sum()) < _FEWEST or len(np.unique(labels.codes[half])) < 2:
        return [], 0.0
    seen = _shares(labels, half)
    base = np.maximum(_predicted(_natural(shown, labels, half, rng), labels, half), seen)
    told = _read_off(base, labels, half, seen <= OPEN)[0]
    left = np.array([source.kind != "row number" for source in shown.sources], dtype=np.bool_)
    found: list[Readable] = []
    while len(found) < _MOST_FOUND and left.any():
        best = _one_more(shown, left, labels, half, base, seen) or _looked_up(
            shown, left, labels, half, base, seen
        )
        if best is None:
            break
        found.append(best)
        gone = {*best.source.arrays[:1]}
        left &= [s != best.source and not gone & {*s.arrays} for s in shown.sources]
    return found, told


def _shares(labels: Labels, half: BoolArray) -> FloatArray:
    """Return the share of each label among rows with the same released label, (s, k)."""
    given = np.zeros_like(labels.codes) if labels.released is None else labels.released
    rows = labels.weights[labels.codes[half]]
    size = int(given.max()) + 1
    counts = np.stack([np.bincount(given[half], one, minlength=size) for one in rows.T], axis=1)
    return np.asarray((counts / np.maximum(counts.sum(axis=1, keepdims=True), 1))[given[~half]])


def _natural(
    shown: Representations, labels: Labels, half: BoolArray, rng: np.random.Generator
) -> Float32Array:
    """Return the columns' values, numbers blurred, and the released label, the strongest few."""
    values = np.array([source.kind == "value" for source in shown.sources], dtype=np.bool_)
    kept = _kept(shown.matrix, values, labels, half)
    blurred = np.empty((len(half), len(kept)), dtype=np.float32)
    for i, place in enumerate(kept):
        column = shown.matrix[:, place].copy()
        gaps = np.isnan(column)
        column[gaps] = rng.choice(column[~gaps], int(gaps.sum()))
        if len(np.unique(column[:1000])) <= _FEWEST:
            blurred[:, i] = column
            continue
        rank = np.searchsorted(np.sort(column), column) / len(column)
        blurred[:, i] = rank + rng.normal(0, _BLUR, len(column))
    return _with_released(blurred, labels)


def _with_released(matrix: Float32Array, labels: Labels) -> Float32Array:
    if labels.released is None:
        return matrix
    return np.column_stack([matrix, labels.released.astype(np.float32)])


def _kept(matrix: Float32Array, allowed: BoolArray, labels: Labels, half: BoolArray) -> IndexArray:
    """Return the allowed columns that go most clearly with the labels of the half to learn from."""
    places = np.flatnonzero(allowed)
    if len(places) <= _MOST_COLUMNS:
        return places
    none = np.empty((int(half.sum()), 0), dtype=np.int32)
    table = FeatureTable(matrix[np.ix_(half, places)], none, (), len(places))
    scores = associations(table, [labels.codes[half]])[0]
    return places[strongest(scores, _MOST_COLUMNS)]


def _predicted(matrix: Float32Array, labels: Labels, half: BoolArray) -> FloatArray:
    """Return the chance of each code for the rows that nothing was learnt from, float64."""
    return _chances(_fitted(matrix, labels, half), matrix[~half], labels)


def _fitted(matrix: Float32Array, labels: Labels, half: BoolArray) -> Any:
    from sklearn.ensemble import HistGradientBoostingClassifier

    model = HistGradientBoostingClassifier(
        max_iter=_ROUNDS[0] if tried_out() else _ROUNDS[1],
        learning_rate=0.2,
        max_leaf_nodes=16,
        early_stopping=False,
        random_state=0,
    )
    return model.fit(matrix[half], labels.codes[half])


def _chances(model: Any, matrix: Float32Array, labels: Labels) -> FloatArray:
    """Return the chance of each label, by the channel's inverse where codes are released ones."""
    chances = np.zeros((len(matrix), len(labels.weights)))
    chances[:, model.classes_.astype(np.int64)] = model.predict_proba(matrix)
    return np.asarray(chances @ labels.weights)


def _read_off(
    chances: FloatArray, labels: Labels, half: BoolArray, open_: BoolArray
) -> tuple[float, float, IndexArray]:
    """Return the largest share that is read off, its purity, and the places of these rows.

    ``open_``: which rows and labels, (s, k), may count.
    """
    guesses = chances.argmax(axis=1)
    rows = np.arange(len(guesses))
    sure = np.where(open_[rows, guesses], chances[rows, guesses], -np.inf)
    right = labels.weights[labels.codes[~half], guesses]
    order = np.argsort(-sure, kind="stable")[: np.isfinite(sure).sum()]
    best = (0.0, 0.0, order[:0])
    for share in SHARES:
        k = min(round(share * len(guesses)), len(order))
        if k >= _FEWEST:
            purity = float(right[order[:k]].mean())
            if purity >= PURE and _sure(right[order[:k]], labels):
                best = (k / len(guesses), min(purity, 1.0), order[:k])
    return best


def _sure(right: FloatArray, labels: Labels) -> bool:
    """Return whether so many right readings are surely not chance, nor more than all of them."""
    k, hits = len(right), float(right.sum())
    if labels.known:
        low = float(beta.ppf(_ALPHA / len(SHARES), hits, k - hits + 1))
        return low >= CERTAIN
    error = float(right.std()) / k**0.5
    return bool(error <= 0.02 and CERTAIN + 3 * error <= hits / k <= 1 + 2.5 * error)


def _one_more(
    shown: Representations,
    left: BoolArray,
    labels: Labels,
    half: BoolArray,
    base: FloatArray,
    seen: FloatArray,
) -> Readable | None:
    """Return what is read off by all of the columns left, named by the one that says the most."""
    kept = _kept(shown.matrix, left, labels, half)
    matrix = _with_released(shown.matrix[:, kept], labels)
    model, asked = _fitted(matrix, labels, half), matrix[~half]
    chances = _chances(model, asked, labels)
    share, purity, rows = _read_off(chances, labels, half, base <= OPEN)
    whole = _separated(chances, labels, half, seen)
    if len(whole) > len(rows):
        share, rows = len(whole) / len(asked), whole
        right = labels.weights[labels.codes[~half][rows], chances[rows].argmax(axis=1)]
        purity = min(float(right.mean()), 1.0)
    if len(rows) == 0:
        return None
    some = asked[rows[:500]]
    guess = _chances(model, some, labels).argmax(axis=1)
    sources = [shown.sources[i] for i in kept]
    arrays = sorted({j for source in sources for j in source.arrays})
    using = [[i for i, s in enumerate(sources) if j in s.arrays] for j in arrays]
    less = list(_losses(model, some, labels, guess, asked, using))
    places = using[int(np.argmax(less))] if using else list(range(len(kept)))
    alone = list(_losses(model, some, labels, guess, asked, [[i] for i in places]))
    return Readable(share, purity, sources[places[int(np.argmax(alone))]])


def _separated(
    chances: FloatArray, labels: Labels, half: BoolArray, seen: FloatArray
) -> IndexArray:
    """Return the rows of labels that are told from all others nearly without error.

    Nature does not do that: the column is the label under another name, or a finer one.
    """
    guesses, weights = chances.argmax(axis=1), labels.weights[labels.codes[~half]]
    rows = np.zeros(len(guesses), dtype=np.bool_)
    for label in range(weights.shape[1]):
        open_ = seen[:, label] <= OPEN
        own = open_ & (guesses == label)
        hits, guessed = weights[own, label].sum(), int(own.sum())
        there = weights[open_, label].sum()
        error = 0.0 if labels.known else 3 * float(weights[own, label].std()) * guessed**0.5
        most = max(guessed, there)
        enough = min(guessed, there) >= _FEWEST_SEPARATED and hits <= guessed + error
        if enough and hits >= _SEPARATED * most and hits - error >= _SURELY_SEPARATED * most:
            rows |= own
    if weights.shape[1] == 2 and rows.any():  # Who has not the one label has the other.
        rows[:] = True
    return np.flatnonzero(rows)


def _looked_up(
    shown: Representations,
    left: BoolArray,
    labels: Labels,
    half: BoolArray,
    base: FloatArray,
    seen: FloatArray,
) -> Readable | None:
    """Return the column whose repeated values, however rare, have one true label each."""
    best, k = None, labels.weights.shape[1]
    plain = [i for i in np.flatnonzero(left) if shown.sources[i].kind in _LOOKED_UP]
    for place in plain[:_MOST_LOOKED_UP] if labels.known else ():
        distinct, codes = np.unique(shown.matrix[:, place], return_inverse=True)
        if len(distinct) > 0.95 * len(codes):
            continue
        votes = np.bincount(codes[half] * k + labels.codes[half], minlength=len(distinct) * k)
        votes = votes.reshape(-1, k)
        chances = (votes / (votes.sum(axis=1, keepdims=True) + 0.1))[codes[~half]]
        share, purity, _ = _read_off(chances, labels, half, base <= OPEN)
        whole = _separated(chances, labels, half, seen)
        share, purity = max((share, purity), (len(whole) / len(chances), _SEPARATED))
        if share > (best.share if best else 0.0):
            best = Readable(share, purity, shown.sources[place])
    return best


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


# Pairs of rows with equal values, the share of them that must have one label, and how unlikely that
# must be for rows with the next value.
_FEWEST_PAIRS: Final = 30
_ALIKE: Final = 0.98
_SURELY: Final = 1e-9
_MOST_EQUAL: Final = 30
# Two rows of different people are equal in a column at most so often, or it does not tell people.
_SELDOM: Final = 0.05
_MOST_COMPARED: Final = 100_000


def tells_people_apart(values: Float32Array, rng: np.random.Generator) -> bool:
    """Return whether two rows of different people are seldom equal in a column, float32 (n,)."""
    n = len(values)
    first, second = rng.integers(0, n, (2, _MOST_COMPARED))
    return bool(np.mean(values[first] == values[second]) <= _SELDOM)


def repeated_alike(
    values: Float32Array, labels: IntArray, others: Sequence[Float32Array] = ()
) -> tuple[float, float]:
    """Return the share of people whose value others share, where nearly all of them agree.

    And the share of pairs with one label. A number that was standardised, ranked or jittered class
    by class: equal values, however rare, come from one class. Compared with pairs of rows of the
    next value, which are as near; zeros where that explains it.

    Parameters
    ----------
    values : float32 array of shape (n,)
    labels : int32 array of shape (n,)
        Codes of the true labels.
    others : sequence of float32 arrays of shape (n,)
        Other columns that tell people apart, see :func:`tells_people_apart`: two rows that are
        equal in one of these, too, may be one person's, and do not count.
    """
    order = stable_order(values)
    order = order[~np.isnan(values[order])]
    nothing = (0.0, 0.0)
    if len(order) < 2 * _FEWEST_PAIRS:
        return nothing
    sorted_, own = values[order], labels[order]
    starts = np.flatnonzero(np.r_[True, sorted_[1:] != sorted_[:-1]])
    sizes = np.diff(np.r_[starts, len(sorted_)])
    rare = np.repeat((sizes > 1) & (sizes <= _MOST_EQUAL), sizes)
    same = sorted_[1:] == sorted_[:-1]
    equal, near = same & rare[1:], ~same & (rare[1:] | rare[:-1])
    places = np.flatnonzero(equal)
    for other in others:
        if len(places) < _FEWEST_PAIRS:
            return nothing
        places = places[other[order[places + 1]] != other[order[places]]]
    equal = np.zeros(len(same), dtype=np.bool_)
    equal[places] = True
    agree = own[1:] == own[:-1]
    pairs, apart = int(equal.sum()), int(near.sum())
    if pairs < _FEWEST_PAIRS or apart < _FEWEST_PAIRS:
        return nothing
    alike = int(agree[equal].sum())
    usual = (float(agree[near].sum()) + 1) / (apart + 2)
    if alike < _ALIKE * pairs or binom.sf(alike - 1, pairs, usual) > _SURELY:
        return nothing
    taking_part = np.r_[False, equal] | np.r_[equal, False]
    return float(taking_part.sum() / len(values)), alike / pairs
