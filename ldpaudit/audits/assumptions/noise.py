"""What noise did to each label, where the true labels are known."""

from dataclasses import dataclass
from typing import Final

import numpy as np

from ldpaudit.audits.interface import AuditContext
from ldpaudit.estimators.assumptions.columns import Columns, Halves, sampled
from ldpaudit.estimators.assumptions.derived import label_sides
from ldpaudit.estimators.assumptions.lags import LagTest, bet_at, least_clear, of_some
from ldpaudit.estimators.assumptions.order import OrderTest
from ldpaudit.estimators.assumptions.shared_noise import flip_chances
from ldpaudit.release import BoolArray, FeatureTable, FloatArray, IndexArray, IntArray

_QUANTILES: Final = 64
_SUREST: Final = 0.001


@dataclass(frozen=True, eq=False)
class LabelNoise:
    """What noise did to each label, as 0 or 1.

    Attributes
    ----------
    outcomes : float64 array of shape (n,)
        1 where noise changed the label (or raised it, for numbers), else 0.
    chances : float64 array of shape (n,)
        The share of ones among rows with the same true label.
    by_released : float64 array of shape (n,)
        The share of ones among rows with the same released label: what their order says where it
        was made from released labels.
    """

    outcomes: FloatArray
    chances: FloatArray
    by_released: FloatArray

    def order(self) -> OrderTest:
        """Test what noise shows along the file.

        The order may have been made from the true labels, or from the released ones (a file that
        is sorted by them): each explains some of what noise did, so both are asked.
        """
        tests = [OrderTest.of(self.outcomes, c) for c in (self.chances, self.by_released)]
        return tests[0].least_clear(tests[1])

    def lags(self, rows: IndexArray) -> LagTest:
        """Test whether some rows, at a fixed distance, share noise."""
        return least_clear(
            self.outcomes, of_some(self.chances, rows), of_some(self.by_released, rows)
        )

    def bet_at(self, lag: int, taking_part: BoolArray) -> float:
        """Bet on the pairs of rows at one distance, as :meth:`lags` does; the logarithm."""
        every = (self.chances, self.by_released)
        return min(bet_at(self.outcomes, chances, lag, taking_part) for chances in every)


def label_noise(context: AuditContext) -> LabelNoise:
    """Return what noise did to each label; the true labels must be known."""
    return context.once("assumptions.noise", lambda: _label_noise(context))


def _label_noise(context: AuditContext) -> LabelNoise:
    release, truth = context.release, context.truth
    released: IntArray | FloatArray = release.released
    strata = _strata(truth)
    if release.numeric is not None and release.numeric.truth is not None:
        numbers, released = release.numeric.truth, release.numeric.released
        outcomes, strata = released > numbers, _strata(numbers)
    elif release.outputs == release.classes:
        outcomes = release.released != truth
    else:
        outcomes = label_sides(truth, release.released, same_labels=False)[1] == 1
    # Not drawn to the mean: what is far below every label was never raised, and a chance of that
    # would make rows sorted by what was released look as if they shared noise.
    by_released = flip_chances(outcomes, _strata(released), prior_rows=0.0)
    return LabelNoise(outcomes.astype(np.float64), flip_chances(outcomes, strata), by_released)


def _strata(values: FloatArray | IntArray) -> IndexArray:
    """Return codes of whole numbers, or of the quantiles that numbers are in."""
    if values.dtype.kind == "i":
        return values.astype(np.int64)
    edges = np.unique(np.quantile(values, np.linspace(0, 1, _QUANTILES + 1)[1:-1]))
    return np.searchsorted(edges, values).astype(np.int64)


def centred_by_features(
    context: AuditContext, features: FeatureTable, noise: LabelNoise, clusters: IndexArray
) -> FloatArray:
    """Return the chance of each outcome given features and true label, float64 (n,).

    By models fitted on other clusters: in a release whose channel uses features alike rows have
    alike chances, and that is no shared noise.
    """
    rng = context.rng("assumptions", "centred")
    columns = Columns.of(features).beside(noise.chances)
    outcomes = noise.outcomes.astype(np.int32)
    count = int(clusters.max()) + 1
    if count < 2:  # There are no others.
        return np.clip(noise.chances, _SUREST, 1 - _SUREST)
    chosen = rng.random(count) < 0.5
    if chosen.all() or not chosen.any():  # Of few clusters all can be in one half.
        chosen = rng.permutation(count) < count / 2
    halves = chosen[clusters]
    chances = np.empty(len(outcomes))
    for half in (False, True):
        test = np.flatnonzero(halves == half)
        learn = sampled(np.flatnonzero(halves != half), features.width, rng)
        odds = columns.log_odds(outcomes, Halves(learn, test), int(rng.integers(2**31)))
        chances[test] = 1 / (1 + np.exp(-odds))
    return np.clip(chances, _SUREST, 1 - _SUREST)
