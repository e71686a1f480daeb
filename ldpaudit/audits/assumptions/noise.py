"""What noise did to each label, where the true labels are known."""

from dataclasses import dataclass
from typing import Final

import numpy as np

from ldpaudit.audits.interface import AuditContext
from ldpaudit.estimators.assumptions.columns import Columns, Halves, sampled
from ldpaudit.estimators.assumptions.derived import label_sides
from ldpaudit.estimators.assumptions.shared_noise import flip_chances
from ldpaudit.release import FeatureTable, FloatArray, IndexArray

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
    """

    outcomes: FloatArray
    chances: FloatArray


def label_noise(context: AuditContext) -> LabelNoise:
    """Return what noise did to each label; the true labels must be known."""
    return context.once("assumptions.noise", lambda: _label_noise(context))


def _label_noise(context: AuditContext) -> LabelNoise:
    release, truth = context.release, context.truth
    strata = truth.astype(np.int64)
    if release.numeric is not None and release.numeric.truth is not None:
        numbers = release.numeric.truth
        edges = np.unique(np.quantile(numbers, np.linspace(0, 1, _QUANTILES + 1)[1:-1]))
        outcomes, strata = release.numeric.released > numbers, np.searchsorted(edges, numbers)
    elif release.outputs == release.classes:
        outcomes = release.released != truth
    else:
        outcomes = label_sides(truth, release.released, same_labels=False)[1] == 1
    return LabelNoise(outcomes.astype(np.float64), flip_chances(outcomes, strata))


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
    halves = (rng.random(int(clusters.max()) + 1) < 0.5)[clusters]
    chances = np.empty(len(outcomes))
    for half in (False, True):
        test = np.flatnonzero(halves == half)
        learn = sampled(np.flatnonzero(halves != half), features.width, rng)
        odds = columns.log_odds(outcomes, Halves(learn, test), int(rng.integers(2**31)))
        chances[test] = 1 / (1 + np.exp(-odds))
    return np.clip(chances, _SUREST, 1 - _SUREST)
