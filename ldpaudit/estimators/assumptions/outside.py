"""Columns that predict the released label suspiciously well, without true labels.

A natural feature goes with the released label through the true one, of which the released label is
only a noisy copy: given the released label it still goes with the other features. A column computed
from the released label alone does not.
"""

from typing import Any, Final

import numpy as np

from ldpaudit.estimators.assumptions.columns import Columns, Halves, column_bins, tilts
from ldpaudit.release import FeatureTable, FloatArray, IntArray

_CLEAR: Final = 3.0
"""Standard errors."""
_NOTHING: Final = 1e-9
_MOST_DOUBT: Final = 3.0
_COPY: Final = 0.8
"""Two columns that go together this closely given the released label are versions of one."""


def bin_frequencies(
    features: FeatureTable, column: int, released: IntArray, outputs: int, halves: IntArray
) -> FloatArray:
    """Return P(output | bin of one column) of each row, learnt on the other half; (n, outputs)."""
    scores = np.empty((len(released), outputs))
    for half in (0, 1):
        learn, test = np.flatnonzero(halves == half), np.flatnonzero(halves != half)
        bins, size = column_bins(features, column, learn)
        cells = bins[learn].astype(np.int64) * outputs + released[learn]
        counts = np.bincount(cells, minlength=size * outputs).reshape(size, outputs)
        usual = (np.bincount(released[learn], minlength=outputs) + 0.5) / (len(learn) + 1.0)
        table = counts + usual
        scores[test] = (table / table.sum(axis=1, keepdims=True))[bins[test]]
    return scores


def signals(features: FeatureTable, side: IntArray, halves: Halves) -> FloatArray:
    """Return what each column says of the released label, as log-odds; float64 (n, c).

    Learnt on the other half. ``side``: the released label as 0 or 1, int32 of shape (n,).
    """
    same = np.zeros(len(side), dtype=np.int64)
    made = np.empty((len(side), features.width))
    for column in range(features.width):
        for way in (halves, Halves(halves.test, halves.learn)):
            bins, size = column_bins(features, column, way.learn)
            made[way.test, column] = tilts(bins, size, side, same, way)
    return made


def explained_by_others(
    features: FeatureTable,
    columns: list[int],
    released: IntArray,
    side: IntArray,
    halves: Halves,
    seed: int,
) -> list[float]:
    """Return for each column the share of its signal that the other columns explain.

    Given the released label; 0 where they clearly explain none. Whether they do is asked of how
    much each column, and all others together, speak against the released label: natural ones do so
    in the same rows, those that noise changed. How much is asked of a model, on test rows. Other
    versions of the same column take no part.
    """
    made = signals(features, side, halves)
    against = np.where(side == 1, -1.0, 1.0)[:, None] * made
    centred, doubts = _centred(made, released), _centred(_odds(against), released)
    together, every = _correlations(centred), Columns.of(features)
    pairwise = _correlations(doubts) * np.sqrt(len(side))
    clear = np.sqrt(2 * np.log(2 * features.width)) + 1.0
    shares = []
    for column in columns:
        versions = np.abs(together[column]) > _COPY
        versions[column] = True
        if centred[:, column].std() < _NOTHING or versions.all():
            shares.append(0.0)
            continue
        rest = _centred(_odds(against[:, ~versions].sum(axis=1, keepdims=True)), released)
        jointly = _correlations(np.c_[doubts[:, column], rest])[0, 1] * np.sqrt(len(side))
        if jointly <= _CLEAR and pairwise[column, ~versions].max() <= clear:
            shares.append(0.0)
            continue
        others = every.only(np.flatnonzero(~versions).tolist()).beside(released.astype(np.float64))
        share = _explained(others, centred[:, column], released, halves, seed)
        shares.append(max(share, _NOTHING))
    return shares


def _odds(log_odds: FloatArray) -> FloatArray:
    return np.asarray(np.exp(np.clip(log_odds, -_MOST_DOUBT, _MOST_DOUBT)))


def _explained(
    columns: Columns, signal: FloatArray, released: IntArray, halves: Halves, seed: int
) -> float:
    from sklearn.ensemble import HistGradientBoostingRegressor

    learn, test = halves.learn, halves.test
    model: Any = HistGradientBoostingRegressor(
        max_iter=40,
        max_leaf_nodes=15,
        early_stopping=False,
        categorical_features=columns.categorical,
        random_state=seed,
    )
    model.fit(columns.matrix[learn], signal[learn])
    guess = _centred(model.predict(columns.matrix[test])[:, None], released[test])[:, 0]
    kept = _centred(signal[test][:, None], released[test])[:, 0]
    return float(np.clip(_correlations(np.stack([guess, kept], axis=1))[0, 1], 0.0, 1.0) ** 2)


def _centred(values: FloatArray, codes: IntArray) -> FloatArray:
    """Return columns less their mean among rows of the same code."""
    rows = np.maximum(np.bincount(codes), 1)
    sums = [np.bincount(codes, weights=column) / rows for column in values.T]
    return np.asarray(values - np.stack(sums, axis=1)[codes])


def _correlations(values: FloatArray) -> FloatArray:
    spread = np.maximum(values.std(axis=0), 1e-12)
    scaled = (values - values.mean(axis=0)) / spread
    return np.asarray(scaled.T @ scaled / len(values))
