"""A model of what noise did: does it foresee the noise, and how much do features explain of it?"""

from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ldpaudit.estimators.representations import represent
from ldpaudit.estimators.row_noise import RowNoise, average
from ldpaudit.models.encoding import BoostingMatrix
from ldpaudit.models.screening import TREE_COLUMNS, most_bins, strongest_of, tried_out
from ldpaudit.models.trees import fit_boosting, probabilities
from ldpaudit.release import BoolArray, FeatureTable, Float32Array, FloatArray, IndexArray, IntArray

MOST_LEARNT: Final = 50_000
# On a correlation of 0.03 a bet gains e²² in so many rows.
_MOST_TESTED: Final = MOST_LEARNT
_MOST_SHOWN: Final = 10_000
# No chance is taken to be smaller.
_SUREST: Final = 1e-3
# Fewer rows teach nothing.
_FEWEST: Final = 200
Counts = npt.NDArray[np.signedinteger[Any]]


def label_sides(
    truth: IntArray, released: IntArray, *, same_labels: bool
) -> tuple[IntArray, IntArray]:
    """Return true and released labels as 0 or 1, int32 each, the released ones about half 1."""
    sides = _balanced(np.bincount(released))
    if same_labels:
        sides = np.r_[sides, np.zeros(max(int(truth.max()) + 1 - len(sides), 0), dtype=np.int32)]
        return sides[truth], sides[released]
    return _balanced(np.bincount(truth))[truth], sides[released]


def _balanced(counts: Counts) -> IntArray:
    sides, rows = np.zeros(len(counts), dtype=np.int32), [0, 0]
    for code in np.argsort(-counts, kind="stable"):
        lighter = int(rows[1] < rows[0])
        sides[code], rows[lighter] = lighter, rows[lighter] + int(counts[code])
    return sides


def foreseen(
    features: FeatureTable,
    every: Sequence[RowNoise],
    rng: np.random.Generator,
    together: IndexArray | None = None,
) -> Iterator[float]:
    """Bet on one half of the rows that a model fitted on the other half foresees noise.

    Yields for each of several views of the noise the logarithm of the wealth, 0 with too few rows.
    Features must not have been made from released labels. ``together``, int64 (n,): codes of rows
    that may be copies of one, of which one is looked at.
    """
    order = rng.permutation(len(features))[: 4 * _MOST_TESTED]
    if together is not None:
        order = order[np.sort(np.unique(together[order], return_index=True)[1])]
    n = len(order)
    learn = order[: n // 2][: _most_rows(features)]
    test = order[n // 2 :][:_MOST_TESTED]
    if len(learn) < _FEWEST:
        yield from [0.0] * len(every)
        return
    rows = np.concatenate([learn, test])
    shape = BoostingMatrix.fit(features)
    plain, categorical = shape.transform(features.take(rows)), shape.categorical()
    # Digits, counts and places within groups may steer noise, too; fewer rows show it.
    few = np.r_[: len(learn[:_MOST_SHOWN]), len(learn) : len(learn) + len(test[:_MOST_SHOWN])]
    shown = represent(features, rows[few])
    blind = [i for i, one in enumerate(shown.sources) if "row number" not in one.kind]
    wide = np.concatenate([plain[few], shown.matrix[:, blind]], axis=1)
    kinds = np.append(categorical, np.zeros(len(blind), dtype=np.bool_))
    half = np.arange(len(rows)) < len(learn)
    for outcomes in every:
        usual = outcomes.ones - outcomes.residual * outcomes.spread
        by_values = _bet(outcomes.take(rows), usual[rows], plain, categorical, half, rng)
        some = rows[few]
        by_forms = _bet(outcomes.take(some), usual[some], wide, kinds, half[few], rng)
        yield average([by_values, by_forms])


def _bet(
    outcomes: RowNoise,
    usual: FloatArray,
    matrix: Float32Array,
    categorical: BoolArray,
    half: BoolArray,
    rng: np.random.Generator,
) -> float:
    """Bet on the other rows by a model fitted on those of a half; the logarithm of the wealth."""
    matrix = np.concatenate([matrix, usual[:, None].astype(np.float32)], axis=1)
    learn, test = np.flatnonzero(half), np.flatnonzero(~half)
    kinds = np.append(categorical, False)
    log_odds = _boosted(matrix, kinds, outcomes.ones, learn, test, rng)
    tilt = log_odds - _logit(np.clip(usual[test], _SUREST, 1 - _SUREST))
    tested = outcomes.take(test)
    return tested.bet(tilt * tested.spread)


def cross_fitted_chances(
    features: FeatureTable, outcomes: RowNoise, together: IndexArray, rng: np.random.Generator
) -> FloatArray:
    """Return the chance of each outcome given the features and its stratum, float64 (n,).

    By models fitted on other rows; ``together``, int64 (n,): codes of rows that belong together.
    """
    count = int(together.max()) + 1
    chosen = rng.random(count) < 0.5
    if chosen.all() or not chosen.any():
        chosen = rng.permutation(count) < count / 2
    first = chosen[together]
    usual = np.clip(outcomes.ones - outcomes.residual * outcomes.spread, _SUREST, 1 - _SUREST)
    chances = usual.copy()
    matrix, categorical = _matrix(features, outcomes.strata.astype(np.float64))
    for half in (False, True):
        test = np.flatnonzero(first == half)
        learn = rng.permutation(np.flatnonzero(first != half))[: _most_rows(features)]
        if len(test) and len(learn) >= _FEWEST:
            odds = _boosted(matrix, categorical, outcomes.ones, learn, test, rng)
            chances[test] = 1 / (1 + np.exp(-odds))
    return np.clip(chances, _SUREST, 1 - _SUREST)


def _most_rows(features: FeatureTable) -> int:
    """Return so many rows that a model is soon fitted."""
    return int(np.clip(1_500_000 / max(features.width, 1), 4_000, MOST_LEARNT))


def _matrix(features: FeatureTable, beside: FloatArray) -> tuple[Float32Array, BoolArray]:
    """Return the columns as boosting takes them, and one more number of each row."""
    shape = BoostingMatrix.fit(features)
    matrix = np.concatenate([shape.transform(features), beside[:, None].astype(np.float32)], axis=1)
    return matrix, np.append(shape.categorical(), False)


def _boosted(
    matrix: Float32Array,
    categorical: BoolArray,
    ones: FloatArray,
    learn: IndexArray,
    test: IndexArray,
    rng: np.random.Generator,
) -> FloatArray:
    """Return the log-odds of 1 on test rows, by boosting on learning rows; float64."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    known = ones[learn].astype(np.int32)
    if matrix.shape[1] > TREE_COLUMNS:
        last = np.arange(matrix.shape[1]) == matrix.shape[1] - 1
        kept = last | strongest_of(matrix[learn], known, ~last, TREE_COLUMNS - 1)
        matrix, categorical = matrix[:, kept], categorical[kept]
    if len(np.unique(known)) < 2:
        return np.full(len(test), _logit(np.array((known.sum() + 0.5) / (len(known) + 1.0))))
    rounds, rate, leaves = (12, 0.25, 8) if tried_out() else (40, 0.1, 15)
    model: Any = HistGradientBoostingClassifier(
        learning_rate=rate,
        max_iter=rounds,
        max_leaf_nodes=leaves,
        early_stopping=False,
        categorical_features=categorical,
        max_bins=most_bins(matrix.shape[1], categorical),
        random_state=int(rng.integers(2**31)),
    )
    fit_boosting(model, matrix[learn], known)
    chances = probabilities(model, matrix[test])[:, 1]
    return _logit(np.clip(chances, _SUREST, 1 - _SUREST))


def _logit(chance: FloatArray) -> FloatArray:
    return np.asarray(np.log(chance) - np.log1p(-chance))
