"""Columns that predict the released label suspiciously well, without true labels.

A natural feature goes with the released label through the true one, of which the released label is
only a noisy copy: given the released label it still goes with the other features. A column computed
from the released label alone does not.
"""

from typing import Any, Final

import numpy as np

from ldpaudit.estimators.assumptions.columns import Columns, Halves, column_bins, tilts
from ldpaudit.release import FeatureTable, FloatArray, IntArray

_CLEAR: Final = 4.0
"""Standard errors."""
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


def signals(
    features: FeatureTable, columns: list[int], side: IntArray, halves: Halves
) -> FloatArray:
    """Return what each column says of the released label, as log-odds; float64 (n, c).

    ``side``: the released label as 0 or 1, int32 of shape (n,).
    """
    everyone = Halves(halves.learn, np.arange(len(side)))
    same = np.zeros(len(side), dtype=np.int64)
    made = []
    for column in columns:
        bins, size = column_bins(features, column, halves.learn)
        made.append(tilts(bins, size, side, same, everyone))
    return np.stack(made, axis=1)


def explained_by_others(
    features: FeatureTable,
    columns: list[int],
    released: IntArray,
    side: IntArray,
    halves: Halves,
    seed: int,
) -> list[float]:
    """Return for each column the share of its signal that the other columns explain.

    Given the released label, on test rows; 0 where they do not clearly explain any. Other versions
    of the same column take no part.
    """
    made = _centred(signals(features, columns, side, halves), released)
    alike = np.abs(_correlations(made)) > _COPY
    every = Columns.of(features)
    label = released.astype(np.float64)
    shares = []
    for i, signal in enumerate(made.T):
        versions = {columns[j] for j in np.flatnonzero(alike[i])} | {columns[i]}
        others = every.only(set(range(features.width)) - versions).beside(label)
        shares.append(_explained(others, signal, released, halves, seed))
    return shares


def _explained(
    columns: Columns, signal: FloatArray, released: IntArray, halves: Halves, seed: int
) -> float:
    from sklearn.ensemble import HistGradientBoostingRegressor

    learn, test = halves.learn, halves.test
    if columns.matrix.shape[1] < 2 or signal.std() < 1e-9:
        return 0.0
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
    together = float(_correlations(np.stack([guess, kept], axis=1))[0, 1])
    return together**2 if together * np.sqrt(len(test)) > _CLEAR else 0.0


def _centred(values: FloatArray, codes: IntArray) -> FloatArray:
    """Return columns less their mean among rows of the same code."""
    rows = np.maximum(np.bincount(codes), 1)
    sums = [np.bincount(codes, weights=column) / rows for column in values.T]
    return np.asarray(values - np.stack(sums, axis=1)[codes])


def _correlations(values: FloatArray) -> FloatArray:
    spread = np.maximum(values.std(axis=0), 1e-12)
    scaled = (values - values.mean(axis=0)) / spread
    return np.asarray(scaled.T @ scaled / len(values))
