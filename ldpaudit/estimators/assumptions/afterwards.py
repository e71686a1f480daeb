"""What was made from released labels after the noise, and whether true labels are of these rows."""

# Columns computed from released labels: a natural feature goes with the released label through the
# true one, of which the released label is only a noisy copy: given the released label it still goes
# with the other features. A column computed from the released label alone does not; one computed
# from released labels of rows near by reconstructs them. None of it reveals anything of the true
# labels, nor does this: rows selected by their released label, where each column of the channel is
# scaled by one factor; and labels overwritten by a rule on features, where the released label is
# fixed, whatever the true one is.

import math
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from scipy.special import gammaln
from scipy.stats import chi2

from ldpaudit.arrays import HalfArray
from ldpaudit.estimators.assumptions.columns import Columns, Halves, column_bins, logit, tilts
from ldpaudit.estimators.epsilon.bounds import CountTable, class_counts
from ldpaudit.estimators.epsilon.consistency import likelihood_ratio_p_value
from ldpaudit.models.screening import association, most_bins, strongest
from ldpaudit.release import FeatureTable, FloatArray, IndexArray, IntArray, label_table

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
    """What columns say of the released label, and how that goes together."""

    # ``features``: n rows; ``released``, ``side``, int32 arrays of shape (n,): codes of the
    # released label, and that label as 0 or 1; ``halves``: the two halves of the rows; ``made``,
    # float64 array of shape (n, c): the log-odds of side 1 that each column adds; ``seed``: of the
    # models.

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
        return 2 * self.released + np.isin(np.arange(len(self.side)), self.halves.test)

    @cached_property
    def _given(self) -> FloatArray:
        """The signals given the released label."""
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
        from sklearn.ensemble import HistGradientBoostingRegressor

        # Two columns that go together this closely given the released label are versions of one.
        versions, signal = np.abs(_correlations(self._given, column)) > 0.8, self._given[:, column]
        versions[column] = True
        if signal.std() < _NOTHING or versions.all():
            return 0.0
        # A column that the released label decides has nothing to say given that label.
        speaking = ~versions & (self._given.std(axis=0) > 0.01)
        rest = self._against[:, speaking].sum(axis=1, keepdims=True)
        every = [self._doubts[:, [column]], _centred(_odds(rest), self._cells)]
        table = np.concatenate([*every, self._doubts[:, ~versions]], axis=1)
        scores = _correlations(table, 0)[1:] * np.sqrt(len(table))
        # Standard errors.
        clear = np.sqrt(2 * np.log(2 * self.features.width)) + 1.25
        if scores[0] <= 3.5 and scores[1:].max() <= clear:
            return 0.0
        others = np.flatnonzero(~versions & self.made.any(axis=0)).tolist()
        columns = Columns.of(self.features).only(others).beside(self.released.astype(np.float64))
        learn, test = self.halves.learn, self.halves.test
        model: Any = HistGradientBoostingRegressor(
            max_iter=40,
            max_leaf_nodes=15,
            early_stopping=False,
            categorical_features=columns.categorical,
            max_bins=most_bins(columns.matrix.shape[1], columns.categorical),
            random_state=self.seed,
        )
        model.fit(columns.matrix[learn], signal[learn])
        both = np.stack([model.predict(columns.matrix[test]), signal[test]], axis=1)
        share = _correlations(_centred(both, self.released[test]), 0)[1]
        return max(float(np.clip(share, 0.0, 1.0) ** 2), _NOTHING)

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


def _centred(values: FloatArray, codes: IntArray) -> FloatArray:
    rows = np.maximum(np.bincount(codes), 1)
    sums = [np.bincount(codes, weights=column) / rows for column in values.T]
    return np.asarray(values - np.stack(sums, axis=1)[codes])


def _correlations(values: FloatArray, column: int) -> FloatArray:
    spread = np.maximum(values.std(axis=0), 1e-12)
    scaled = (values - values.mean(axis=0)) / spread
    return np.asarray(scaled.T @ scaled[:, column] / len(values))


_SURE: Final = 1e-3
# Rows of a value whose released labels are all the same, and of each kind of true label.
_FEWEST_ROWS, _FEWEST_TRUE = 8, 3
_LEAVES, _LEAF = 64, 20
_MOST_ROWS: Final = 20_000
# Rows before and after, from whose released labels a column may be computed.
_REACH: Final = 15


def is_selected(counts: CountTable, channel: FloatArray) -> bool:
    """Return whether rows were left out or repeated because of their released label.

    Counts by true and released label, (k, m), then fit the claimed channel with each column scaled
    by one factor, and not the channel itself. Odds ratios stay: a channel with other ones is never
    taken for a selection, but by chance.
    """
    present = class_counts(counts) > 0
    table, claim = np.asarray(counts, dtype=np.float64)[present], channel[present]
    sizes = table.sum(axis=1, keepdims=True)
    used = table.sum(axis=0) > 0
    k, m = len(table), int(used.sum())
    if k < 2 or m < 2 or (table[claim <= 0] > 0).any():
        return False
    scaled = _scaled(claim[:, used], sizes, table[:, used].sum(axis=0))
    against_claim = _deviance(table, np.maximum(claim * sizes, 1e-300))
    against_scaled = _deviance(table[:, used], np.maximum(scaled, 1e-300))
    better = chi2.sf(against_claim - against_scaled, channel.shape[1] - 1)
    return bool(better <= _SURE and chi2.sf(against_scaled, (k - 1) * (m - 1)) >= 0.01)


def _scaled(claim: FloatArray, rows: FloatArray, columns: FloatArray) -> FloatArray:
    """Return the claim scaled to the table's sums: the likeliest scaling (Deming & Stephan)."""
    expected = claim * rows
    for _ in range(500):
        expected = expected * (columns / np.maximum(expected.sum(axis=0), 1e-300))
        expected = expected * (rows / np.maximum(expected.sum(axis=1, keepdims=True), 1e-300))
    return expected


def _deviance(table: FloatArray, expected: FloatArray) -> float:
    seen = table > 0
    return 2 * float(np.sum(table[seen] * np.log(table[seen] / expected[seen])))


def fixed_rows(
    features: FeatureTable, truth: IntArray, released: IntArray, seed: int
) -> IndexArray:
    """Return the rows whose released label is fixed by their features, whatever the true one is.

    All rows with a value of a column, or in a leaf of a tree, have one released label, also those
    whose true label makes it least likely. By chance at most one release in a thousand has such a
    group, and where one is sure, those that chance makes once in a thousand join it. A group
    released in the clear is none: there the released label follows the true one.
    """
    counts = label_table(truth, released, int(truth.max()) + 1, int(released.max()) + 1) + 0.5
    rates = counts / counts.sum(axis=1, keepdims=True)
    chances, groups = np.ones(len(truth)), 0
    for cells in _cells(features, released, seed):
        chance, looked_at = _chance_fixed(cells, truth, released, rates)
        chances, groups = np.minimum(chances, chance), groups + looked_at
    if chances.min(initial=1.0) * groups > _SURE:
        return np.empty(0, dtype=np.int64)
    return np.flatnonzero(chances <= _SURE)


def _cells(features: FeatureTable, released: IntArray, seed: int) -> Iterator[IndexArray]:
    """Yield codes of rows with equal values, column by column, and of the leaves of a tree."""
    from sklearn.tree import DecisionTreeClassifier

    for column in (*features.numeric.T, *features.categorical.T):
        yield np.unique(column, return_inverse=True)[1].astype(np.int64)
    matrix = Columns.of(features).matrix
    if not matrix.shape[1]:
        return
    some = np.random.default_rng(seed).permutation(len(released))[:_MOST_ROWS]
    tree = DecisionTreeClassifier(
        max_leaf_nodes=_LEAVES, min_samples_leaf=_LEAF, criterion="entropy", random_state=seed
    )
    yield tree.fit(matrix[some], released[some]).apply(matrix).astype(np.int64)


def _chance_fixed(
    cells: IndexArray, truth: IntArray, released: IntArray, rates: FloatArray
) -> tuple[FloatArray, int]:
    """Return how likely chance gives each row's group one released label, and the groups tried."""
    size = int(cells.max()) + 1
    low, high = np.full(size, np.iinfo(np.int32).max), np.full(size, -1)
    np.minimum.at(low, cells, released)
    np.maximum.at(high, cells, released)
    contrary = truth != rates.argmax(axis=0)[released]
    logs = np.bincount(cells[contrary], np.log(rates[truth, released])[contrary], size)
    of_each = [np.bincount(cells[some], minlength=size) for some in (contrary, ~contrary)]
    tried = (np.add(*of_each) >= _FEWEST_ROWS) & (np.minimum(*of_each) >= _FEWEST_TRUE)
    chance = np.where(tried & (low == high), np.exp(logs), 1.0)
    return chance[cells], int(tried.sum())


def computed_columns(
    features: FeatureTable,
    truth: IntArray | None,
    released: IntArray,
    suspects: Collection[int],
) -> tuple[int, ...]:
    """Return the numeric array columns that released labels of rows near by reconstruct.

    A lag, a moving average, a sum: a linear function of the released labels up to 15 rows before
    and after, exact but for rounding, which true labels, where known, do not reconstruct as well.
    """
    found = []
    for j in suspects:
        if j >= features.numeric.shape[1]:
            continue
        column = features.numeric[:, j].astype(np.float64)
        left = _unexplained(column, released)
        # A column is computed from released labels if they leave no larger share of it open:
        # rounding.
        if left > 1e-3:
            continue
        if truth is None or _unexplained(column, truth) > 10 * left:
            found.append(j)
    return tuple(found)


def _unexplained(column: FloatArray, labels: IntArray) -> float:
    """Return the share of a column's variance that labels of rows near by leave open, 1 at most."""
    m = int(labels.max()) + 1
    signs = np.eye(m)[labels][:, 1:] if m <= 6 else labels[:, None].astype(np.float64)
    width = 2 * _REACH + 1
    near = sliding_window_view(signs, width, axis=0).reshape(len(labels) - width + 1, -1)
    middle = column[_REACH : len(column) - _REACH]
    known = np.flatnonzero(np.isfinite(middle))[:_MOST_ROWS]
    fit, held = known[::2], known[1::2]
    if len(held) < 2 * near.shape[1] or np.ptp(middle[held]) == 0:
        return 1.0
    design = np.column_stack([near, np.ones(len(near))])
    weights = np.linalg.lstsq(design[fit], middle[fit], rcond=None)[0]
    missed = middle[held] - design[held] @ weights
    return float(min(missed.var() / middle[held].var(), 1.0))


_MOST_SHIFT: Final = 3
# By what factor another explanation must beat the claim: honest releases reach it once in 1e9.
_OVERWHELMING: Final = math.log(1e9)


def truth_alignment(truth: IntArray, released: IntArray, channel: FloatArray) -> int | None:
    """Return by how many rows the true labels are shifted; 0 if not, None if they are of others.

    Row i of the release fits the true label of row i + shift. Every alternative is a likelihood
    ratio against the claimed channel, (k, m): under the claim it exceeds c at most once in c.
    """
    k, m = channel.shape
    shifts = [s for s in range(-_MOST_SHIFT, _MOST_SHIFT + 1) if s]
    tables = {s: label_table(np.roll(truth, -s), released, k, m) for s in (0, *shifts)}
    logs = np.log(np.maximum(channel, 1e-9))
    fits = {s: float((table * logs).sum()) for s, table in tables.items()}
    best = max(shifts, key=lambda s: fits[s])
    blind = _fit_without_truth(tables[0].sum(axis=0))
    enough = _OVERWHELMING + math.log(len(shifts) + 1)
    if fits[best] > max(fits[0], blind) + enough:
        return best
    counts = tables[0]
    shares = np.tile(counts.sum(axis=0) / max(counts.sum(), 1), (k, 1))
    independent = likelihood_ratio_p_value(counts, shares) > 0.01
    return None if blind > fits[0] + enough and independent else 0


def _fit_without_truth(released: IndexArray) -> float:
    """Return the log-likelihood of labels drawn blindly, shares of Jeffreys' prior (KT)."""
    m = len(released)
    ends = gammaln(m / 2) - m * gammaln(0.5) - gammaln(released.sum() + m / 2)
    return float(ends + gammaln(released + 0.5).sum())
