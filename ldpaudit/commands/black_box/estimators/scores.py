"""Scores that tell the outputs of two inputs apart: estimates of the log likelihood ratio."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ldpaudit.commands.black_box.estimators.outputs import NUMERIC, OutputTable
from ldpaudit.commands.black_box.estimators.views import Binning, NumberBins, OutputView, fit_views
from ldpaudit.release import FloatArray, IndexArray

SCREENING_LEVEL = 0.01
"""Shared by all columns of a view: how often an uninformative one is kept."""
_SMOOTHING = 1.0
_BOOSTED_ROWS = 30_000
_MOST_MERGED = 256
_APART = 2.0
"""Standard errors by which log ratios of neighbouring bins must differ to be kept apart."""


@dataclass(frozen=True, eq=False)
class RatioScore:
    """The sum over columns of the estimated log ratio of a bin's probabilities.

    The log likelihood ratio itself where the columns are independent given the input, or where
    there is one. ``tells``: whether the fitting sample distinguished the two inputs at all.
    """

    view: OutputView
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
        return {
            "score": f"sum of log ratios of {self.view.name}",
            "columns": [
                {"what": self.view.describe(column), "log_ratios": self._largest(column, ratios)}
                for column, ratios in list(zip(self.used, self.log_ratios, strict=True))[:10]
            ],
        }

    def _largest(self, column: int, ratios: FloatArray) -> list[dict[str, Any]]:
        binning = self.view.binnings[column]
        order = np.argsort(-np.abs(ratios), kind="stable")[:8]
        return [
            {"value": binning.describe(int(code)), "log_ratio": float(ratios[code])}
            for code in order
        ]


@dataclass(frozen=True, eq=False)
class BoostedScore:
    """The log-odds of the first input by gradient-boosted trees on all entries."""

    model: Any
    tells: bool = True

    @property
    def columns(self) -> tuple[int, ...]:
        """Empty: it reads all entries."""
        return ()

    def of(self, table: OutputTable) -> FloatArray:
        """Return the score of each output, float64 of shape (n,)."""
        return np.asarray(self.model.decision_function(_with_sum(table)), dtype=np.float64)

    def describe(self) -> dict[str, Any]:
        """Return that it is a model, as JSON."""
        return {"score": "log-odds by gradient-boosted trees on all entries and their sum"}


Score = RatioScore | BoostedScore
"""A fixed function of an output; large where the first input is more likely."""


@dataclass(frozen=True, eq=False)
class Histograms:
    """The counts of a view's bins, for every input.

    Attributes
    ----------
    view : OutputView
    counts : tuple of float64 arrays of shape (k, bins)
        One for each column of the view.
    """

    view: OutputView
    counts: tuple[FloatArray, ...]

    def score(self, first: int, second: int) -> RatioScore:
        """Return the score of a pair of inputs, on the columns that tell them apart."""
        pairs = [counts[[first, second]] for counts in self.counts]
        used, tells = _telling(pairs)
        return RatioScore(
            self.view,
            tuple(int(column) for column in used),
            tuple(
                _log_ratios(pairs[column], _are_intervals(self.view.binnings[column]))
                for column in used
            ),
            tells,
        )


def fit_histograms(tables: Sequence[OutputTable]) -> list[Histograms]:
    """Fit every view to samples of k inputs and count its bins."""
    histograms = []
    for view in fit_views(tables):
        counts = []
        for column, binning in enumerate(view.binnings):
            rows = [
                np.bincount(view.codes(table, column), minlength=binning.bins) for table in tables
            ]
            counts.append(np.array(rows, dtype=np.float64))
        histograms.append(Histograms(view, tuple(counts)))
    return histograms


def fit_boosted(first: OutputTable, second: OutputTable, seed: int) -> BoostedScore | None:
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


def _with_sum(table: OutputTable) -> FloatArray:
    numbers = np.asarray(table, dtype=np.float64)
    return np.column_stack([numbers, numbers.sum(axis=1)])


def _telling(pairs: Sequence[FloatArray]) -> tuple[IndexArray, bool]:
    """Return the columns whose bins differ between two inputs, or else one and False."""
    p_values = np.array([_g_test(pair) for pair in pairs])
    used = np.flatnonzero(p_values < SCREENING_LEVEL / len(pairs))
    return (used, True) if len(used) else (np.array([int(np.argmin(p_values))]), False)


def _g_test(pair: FloatArray) -> float:
    """Return the p-value of the likelihood-ratio test that two rows of counts have one law."""
    from scipy.special import gammaincc

    pair = pair[:, pair.sum(axis=0) > 0]
    if pair.shape[1] < 2:
        return 1.0
    expected = pair.sum(axis=1, keepdims=True) * pair.sum(axis=0) / pair.sum()
    terms = np.where(pair > 0, pair * np.log(np.where(pair > 0, pair, 1.0) / expected), 0.0)
    return float(gammaincc((pair.shape[1] - 1) / 2, terms.sum()))


def _log_ratios(pair: FloatArray, ordered: bool) -> FloatArray:
    """Return each bin's log ratio; bins with ratios that do not differ are merged.

    Where bins are intervals only neighbours are merged, else those of similar ratio.
    """
    seen = np.flatnonzero(pair.sum(axis=0) > 0)
    smooth = pair[:, seen] + _SMOOTHING
    ratios = np.log(smooth[0] / smooth[1])
    if len(seen) <= _MOST_MERGED:
        order = np.arange(len(seen)) if ordered else np.argsort(ratios, kind="stable")
        ratios[order] = _merged(pair[:, seen[order]])
    log_ratios = np.zeros(pair.shape[1])
    log_ratios[seen] = ratios - np.log(pair[0].sum() / pair[1].sum())
    return log_ratios


def _are_intervals(binning: Binning) -> bool:
    return isinstance(binning, NumberBins) and binning.open_ended and len(binning.values) == 0


def _merged(pair: FloatArray) -> FloatArray:
    """Merge neighbouring columns, the most alike first; return each one's log ratio."""
    groups, sizes = pair.copy(), np.ones(pair.shape[1], dtype=np.int64)
    while True:
        smooth = groups + _SMOOTHING
        ratios, variances = np.log(smooth[0] / smooth[1]), (1 / smooth).sum(axis=0)
        if len(sizes) < 2:
            break
        apart = np.diff(ratios) ** 2 / (variances[1:] + variances[:-1])
        place = int(np.argmin(apart))
        if apart[place] >= _APART**2:
            break
        groups[:, place] += groups[:, place + 1]
        sizes[place] += sizes[place + 1]
        groups, sizes = np.delete(groups, place + 1, axis=1), np.delete(sizes, place + 1)
    return np.repeat(ratios, sizes)
