"""Gaussian classes: numeric columns with a mean and a variance for each label (naive Bayes)."""

from dataclasses import dataclass

import numpy as np
from scipy.special import softmax

from ldpaudit.attacks.models.parts import Labelled, floored
from ldpaudit.modelling.encoding import DesignMatrix, LevelsByColumn, Limits
from ldpaudit.release import FeatureTable, FloatArray, IndexArray

_LIMITS = Limits(LevelsByColumn(0))
_MOST_COLUMNS = 200
_ROWS_PER_LABEL = 30
_FLOOR = 1e-6
_PULL = 5.0
"""How many rows the variance of all labels together is worth."""
_LEAST_VARIANCE = 1e-3


@dataclass(frozen=True)
class GaussianPart:
    """P(y | x) ∝ p_y Π_j N(x_j; μ_yj, σ²_yj) on standardised numeric columns.

    Attributes
    ----------
    design : DesignMatrix
        d columns.
    means, variances : float64 arrays of shape (k, d)
    prior : float64 array of shape (k,)
    """

    design: DesignMatrix
    means: FloatArray
    variances: FloatArray
    prior: FloatArray

    def predict(self, features: FeatureTable) -> FloatArray:
        """Return P(y | x), float64 of shape (n, k), every entry above 0."""
        x = self.design.transform(features).astype(np.float64)
        precision = 1.0 / self.variances
        logs = np.log(self.prior) - 0.5 * np.log(self.variances).sum(axis=1)
        square = x**2 @ precision.T - 2 * x @ (self.means * precision).T
        constant = (self.means**2 * precision).sum(axis=1)
        return floored(softmax(logs - 0.5 * (square + constant), axis=1), _FLOOR)


def fit_gaussian(table: Labelled, training: IndexArray) -> GaussianPart | None:
    """Estimate means and variances, through the inverse of the channel where labels are noisy.

    None without numeric columns that vary, with more than 200 of them, with fewer than 30 training
    rows for each label, or where the channel has no inverse.
    """
    k = len(table.transition)
    rows = table.features.take(training)
    design = DesignMatrix.fit(rows, _LIMITS)
    if not 0 < design.width <= _MOST_COLUMNS or len(training) < _ROWS_PER_LABEL * k:
        return None
    if np.linalg.matrix_rank(table.transition, tol=1e-9) < k:
        return None
    x = design.transform(rows).astype(np.float64)
    inverse = np.eye(k) if table.channel is None else table.channel.inverse
    weights = inverse[table.codes[training]].T
    mass = np.maximum(weights.sum(axis=1), 1.0)[:, None]
    pull = _PULL / table.contrast**2
    whole = x.var(axis=0) + _LEAST_VARIANCE
    means = (weights @ x + pull * x.mean(axis=0)) / (mass + pull)
    squares = (weights @ x**2) / mass - ((weights @ x) / mass) ** 2
    variances = (mass * squares + pull * whole) / (mass + pull)
    return GaussianPart(design, means, np.maximum(variances, 0.05 * whole), table.prior)
