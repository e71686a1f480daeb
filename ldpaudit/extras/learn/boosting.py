"""Gradient boosting on labels that went through a known channel.

Corrected losses with negative weights are no losses for trees, which make them as small as they
like. Two sound ways instead, neither with a negative weight:

* forward: the released label's own probabilities are boosted, an ordinary problem with an ordinary
  minimum, and led back through the channel: each row's answer is the η whose image η T is nearest
  to them in Kullback–Leibler divergence, the η of least forward loss if they were right.
* backward: the unbiased soft labels are regressed on the features, label by label, with the squared
  loss, which is bounded below whatever their sign; then the answers are projected on the simplex.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

from ldpaudit.doors import FloatArray, IntArray
from ldpaudit.models.corrections import nearest_source, onto_simplex
from ldpaudit.models.screening import most_bins
from ldpaudit.models.trees import fit_boosting
from ldpaudit.release import BoolArray

_HELD_OUT = 0.1
_WORTH_HOLDING_OUT = 1000


@dataclass(frozen=True)
class BoostingOptions:
    """How to boost."""

    rounds: int = 100
    """Rounds at most."""
    seed: int = 0
    """The seed."""
    categorical: BoolArray | None = None
    """Bool array of shape (d,), optional: which features are categorical."""

    def parameters(self, n: int) -> dict[str, Any]:
        return {
            "max_iter": self.rounds,
            "learning_rate": 0.1,
            "min_samples_leaf": 20,
            "l2_regularization": 1.0,
            "early_stopping": n >= _WORTH_HOLDING_OUT,
            "validation_fraction": _HELD_OUT,
            "categorical_features": self.categorical,
            "random_state": self.seed,
        }


@dataclass(frozen=True)
class BoostedTargets:
    """One boosted regression of a soft label for each class."""

    models: tuple[Any, ...]

    def predict(self, matrix: FloatArray) -> FloatArray:
        raw = np.stack([model.predict(matrix) for model in self.models], axis=1)
        return onto_simplex(raw)


def fit_boosted_targets(
    matrix: FloatArray, targets: FloatArray, weights: FloatArray, options: BoostingOptions
) -> BoostedTargets:
    """Boost the squared loss of soft labels, float64 of shape (n, k), that may be negative."""
    models = (fit_boosted_values(matrix, target, weights, options) for target in targets.T)
    return BoostedTargets(tuple(models))


def fit_boosted_values(
    matrix: FloatArray,
    values: FloatArray,
    weights: FloatArray,
    options: BoostingOptions,
    loss: str = "squared_error",
) -> Any:
    """Boost a loss of numbers, float64 of shape (n,); the result has ``predict``."""
    model = HistGradientBoostingRegressor(loss=loss, **options.parameters(len(matrix)))
    return fit_boosting(model, matrix, values, weights)


@dataclass(frozen=True)
class BoostedReleased:
    """Boosted probabilities of the released label, led back through the channel."""

    model: Any
    """Of the released labels that occur."""
    transition: FloatArray
    """Float64 array of shape (k, m): the channel."""

    def predict(self, matrix: FloatArray) -> FloatArray:
        released = np.zeros((len(matrix), self.transition.shape[1]))
        labels = self.model.classes_
        # Of a single label scikit-learn has two columns, the first its own.
        released[:, labels] = self.model.predict_proba(matrix)[:, : len(labels)]
        return nearest_source(released, self.transition)


def fit_boosted_released(
    matrix: FloatArray,
    codes: IntArray,
    transition: FloatArray,
    weights: FloatArray,
    options: BoostingOptions,
) -> BoostedReleased:
    """Boost the released label's probabilities, given features (n, d), NaN where missing.

    ``codes`` (n,) are columns of the channel (k, m); where labels are not noisy each of its rows
    is the indicator of its outputs. ``weights`` (n,) are not negative.
    """
    counts = np.bincount(codes)
    parameters = options.parameters(len(matrix))
    # Holding rows out is stratified, which takes two of each label.
    parameters["early_stopping"] &= bool(counts[counts > 0].min() > 1)
    model = HistGradientBoostingClassifier(
        **parameters, max_bins=most_bins(matrix.shape[1], options.categorical)
    )
    # Weighted quantiles of wide tables take minutes.
    alike = bool((weights == weights[0]).all())
    return BoostedReleased(
        fit_boosting(model, matrix, codes, None if alike else weights), transition
    )
