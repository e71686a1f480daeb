"""Poisson regression on labels that may be noisy beyond 0.

The loss ŷ − y log ŷ is linear in y: with an unbiased label its mean is that of the true one, also
where noise makes some labels negative, which usual implementations refuse.
"""

from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize

from ldpaudit.release import FloatArray

_STEEPEST = 30.0


@dataclass(frozen=True)
class PoissonModel:
    """ŷ = exp(weights · x + intercept)."""

    weights: FloatArray
    intercept: float

    def predict(self, matrix: FloatArray) -> FloatArray:
        """Return the mean of each row, float64 of shape (n,)."""
        return _mean(matrix @ self.weights + self.intercept)


def fit_poisson(
    matrix: FloatArray, target: FloatArray, weights: FloatArray, penalty: float
) -> PoissonModel:
    """Minimise the weighted mean of ŷ − y log ŷ plus penalty/(2n)·‖weights‖² by L-BFGS.

    Convex for labels of any sign; with a mean above 0 and a penalty it has a minimum.

    Parameters
    ----------
    matrix : float64 array of shape (n, d)
        Standardised features.
    target : float64 array of shape (n,)
        Labels, with a weighted mean above 0.
    weights : float64 array of shape (n,)
        Not negative.
    penalty : float
        The ridge penalty; the intercept is free.

    References
    ----------
    Ghazi et al. (2023), appendix E.3 (the loss).
    """
    n, d = matrix.shape
    share = weights / weights.sum()
    start = np.zeros(d + 1)
    start[d] = np.log(share @ target)

    def objective(flat: FloatArray) -> tuple[float, FloatArray]:
        score = matrix @ flat[:d] + flat[d]
        mean = _mean(score)
        residual = share * (mean - target)
        value = float(share @ (mean - target * score))
        gradient = np.append(matrix.T @ residual + penalty / n * flat[:d], residual.sum())
        return value + penalty / (2 * n) * float(flat[:d] @ flat[:d]), gradient

    found = minimize(objective, start, jac=True, method="L-BFGS-B").x
    return PoissonModel(found[:d], float(found[d]))


def _mean(score: FloatArray) -> FloatArray:
    return np.asarray(np.exp(np.minimum(score, _STEEPEST)))
