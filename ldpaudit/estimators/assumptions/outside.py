"""Columns that predict the released label suspiciously well, without true labels.

A natural feature goes with the released label through the true one, of which the released label is
only a noisy copy: given the released label it still goes with the other features. A column computed
from the released label alone does not.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np

from ldpaudit.arrays import HalfArray
from ldpaudit.estimators.assumptions.columns import Columns, Halves, column_bins, logit, tilts
from ldpaudit.models.screening import association, most_bins, strongest
from ldpaudit.release import BoolArray, FeatureTable, FloatArray, IndexArray, IntArray

# Standard errors.
_CLEAR: Final = 3.5
_MARGIN: Final = 1.25
_NOTHING: Final = 1e-9
_MOST_DOUBT: Final = 3.0


def bin_frequencies(
    features: FeatureTable, column: int, released: IntArray, outputs: int, halves: HalfArray
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


def looked_at(features: FeatureTable, released: IntArray, most: int) -> IndexArray:
    """Return the columns to look at one by one: of many, the clearest with the released label."""
    if features.width <= most:
        return np.arange(features.width)
    return strongest(association(features, released), most)


def signals(
    features: FeatureTable, released: IntArray, side: IntArray, halves: Halves
) -> FloatArray:
    """Return what each column says of the released label, as log-odds; float64 (n, c).

    Learnt on the other half. ``side``: the released label as 0 or 1, int32 of shape (n,). Columns
    beyond the 512 that go most clearly with the label have zeros.
    """
    same = np.zeros(len(side), dtype=np.int64)
    made = np.zeros((len(side), features.width))
    for column in looked_at(features, released, 512):
        for way in (halves, Halves(halves.test, halves.learn)):
            bins, size = column_bins(features, column, way.learn)
            made[way.test, column] = tilts(bins, size, side, same, way)
    return made


@dataclass(frozen=True, eq=False)
class Signals:
    """What columns say of the released label, and how that goes together.

    Attributes
    ----------
    features : FeatureTable
        n rows.
    released, side : int32 arrays of shape (n,)
        Codes of the released label, and that label as 0 or 1.
    halves : Halves
        The two halves of the rows.
    made : float64 array of shape (n, c)
        The log-odds of side 1 that each column adds.
    seed : int
        Of the models.
    """

    features: FeatureTable
    released: IntArray
    side: IntArray
    halves: Halves
    made: FloatArray
    seed: int

    @classmethod
    def of(
        cls, features: FeatureTable, released: IntArray, side: IntArray, halves: Halves, seed: int
    ) -> "Signals":
        """Learn the signals of all columns, each row's on the other half."""
        made = signals(features, released, side, halves)
        return cls(features, released, side, halves, made, seed)

    @cached_property
    def _cells(self) -> IntArray:
        """The released label and the half: what was learnt of either half differs a little."""
        halves = np.zeros(len(self.side), dtype=np.int32)
        halves[self.halves.test] = 1
        return 2 * self.released + halves

    @cached_property
    def _centred(self) -> FloatArray:
        return _centred(self.made, self._cells)

    @cached_property
    def _against(self) -> FloatArray:
        return np.where(self.side == 1, -1.0, 1.0)[:, None] * self.made

    @cached_property
    def _doubts(self) -> FloatArray:
        return _centred(_odds(self._against), self._cells)

    def explained(self, column: int) -> float:
        """Return the share of a column's signal, given the released label, that others explain.

        0 where they clearly explain none. Whether they do is asked of how much the column, and the
        others, speak against the released label: natural ones do so in the same rows, those that
        noise changed. How much is asked of a model, on test rows. Other versions of the same column
        take no part.
        """
        # Two columns that go together this closely given the released label are versions of one.
        versions = np.abs(_correlations(self._centred, column)) > 0.8
        versions[column] = True
        if self._centred[:, column].std() < _NOTHING or versions.all():
            return 0.0
        if not self._goes_with(column, ~versions):
            return 0.0
        label = self.released.astype(np.float64)
        others = np.flatnonzero(~versions & self.made.any(axis=0)).tolist()
        columns = Columns.of(self.features).only(others).beside(label)
        signal = self._centred[:, column]
        share = _explained(columns, signal, self.released, self.halves, self.seed)
        return max(share, _NOTHING)

    def _goes_with(self, column: int, others: BoolArray) -> bool:
        # A column that the released label decides has nothing to say given that label.
        speaking = others & (self._centred.std(axis=0) > 0.01)
        rest = self._against[:, speaking].sum(axis=1, keepdims=True)
        every = [self._doubts[:, [column]], _centred(_odds(rest), self._cells)]
        table = np.concatenate([*every, self._doubts[:, others]], axis=1)
        scores = _correlations(table, 0)[1:] * np.sqrt(len(table))
        clear = np.sqrt(2 * np.log(2 * self.features.width)) + _MARGIN
        return bool(scores[0] > _CLEAR or scores[1:].max() > clear)

    def levels_off(self, column: int) -> bool:
        """Return whether even the surest rows are no surer than others: noise sets a limit.

        So it is with a natural feature that decides the true label. A score of the released label
        with noise of its own gets surer towards its ends.
        """
        share = np.clip(self.side.mean(), 0.01, 0.99)
        score = self.made[:, column] + logit(share)
        order = np.argsort(-np.abs(score), kind="stable")[: int(0.6 * len(score))]
        right = (score > 0) == (self.side == 1)
        surest, next_ones = np.array_split(right[order], 2)
        if min(len(surest), len(next_ones)) == 0 or right[order].mean() > 0.97:
            return False
        rates = [(part.sum() + 0.5) / (len(part) + 1.0) for part in (surest, next_ones)]
        gap = logit(rates[0]) - logit(rates[1])
        pairs = zip(rates, (surest, next_ones), strict=True)
        error = np.sqrt(sum(1 / (r * (1 - r) * len(part)) for r, part in pairs))
        # Nats by which the surest rows may be surer.
        return bool(gap + 2 * error < 0.5)


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
        max_bins=most_bins(columns.matrix.shape[1], columns.categorical),
        random_state=seed,
    )
    model.fit(columns.matrix[learn], signal[learn])
    guess = _centred(model.predict(columns.matrix[test])[:, None], released[test])[:, 0]
    kept = _centred(signal[test][:, None], released[test])[:, 0]
    return float(np.clip(_correlations(np.stack([guess, kept], axis=1), 0)[1], 0.0, 1.0) ** 2)


def _centred(values: FloatArray, codes: IntArray) -> FloatArray:
    rows = np.maximum(np.bincount(codes), 1)
    sums = [np.bincount(codes, weights=column) / rows for column in values.T]
    return np.asarray(values - np.stack(sums, axis=1)[codes])


def _correlations(values: FloatArray, column: int) -> FloatArray:
    spread = np.maximum(values.std(axis=0), 1e-12)
    scaled = (values - values.mean(axis=0)) / spread
    return np.asarray(scaled.T @ scaled[:, column] / len(values))
