"""Gradient boosting on labels that went through a known channel.

Corrected losses with negative weights are no losses for trees, which make them as small as they
like. So the unbiased soft labels are regressed on the features, label by label, with the squared
loss, which is bounded below whatever their sign; then the answers are projected on the simplex. The
forward correction is :mod:`ldpaudit.learners.released_boosting`.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor

from ldpaudit.learners.corrections import project_on_simplex
from ldpaudit.release import BoolArray, FloatArray

_HELD_OUT = 0.1
_WORTH_HOLDING_OUT = 1000


@dataclass(frozen=True)
class BoostingOptions:
    """How to boost.

    Attributes
    ----------
    rounds : int
        Rounds at most.
    rate : float
        The step of each.
    leaf : int
        The least number of rows of a leaf.
    seed : int
        The seed.
    categorical : bool array of shape (d,), optional
        Which features are categorical.
    """

    rounds: int = 100
    rate: float = 0.1
    leaf: int = 20
    seed: int = 0
    categorical: BoolArray | None = None

    def parameters(self, n: int) -> dict[str, Any]:
        """Return scikit-learn's parameters for n rows; from 1,000 on it stops early."""
        return {
            "max_iter": self.rounds,
            "learning_rate": self.rate,
            "min_samples_leaf": self.leaf,
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
        """Return P(y | x), float64 of shape (n, k): the regressions projected on the simplex."""
        raw = np.stack([model.predict(matrix) for model in self.models], axis=1)
        return project_on_simplex(raw)


def fit_boosted_targets(
    matrix: FloatArray, targets: FloatArray, weights: FloatArray, options: BoostingOptions
) -> BoostedTargets:
    """Boost the squared loss of soft labels, float64 of shape (n, k), that may be negative."""
    models = (fit_boosted_values(matrix, target, weights, options) for target in targets.T)
    return BoostedTargets(tuple(models))


def fit_boosted_values(
    matrix: FloatArray, values: FloatArray, weights: FloatArray, options: BoostingOptions
) -> Any:
    """Boost the squared loss of numbers, float64 of shape (n,); the result has ``predict``."""
    model = HistGradientBoostingRegressor(**options.parameters(len(matrix)))
    return model.fit(matrix, values, weights)
