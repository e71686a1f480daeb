"""Logistic regression to targets of any sign, and Poisson regression."""

# The target loss is the log-loss of soft labels that may be negative, as the backward correction
# makes them: the truth is its minimiser, though no true label is seen. The Poisson loss ŷ − y log ŷ
# is linear in y: with an unbiased label its mean is that of the true one, also where noise makes
# some labels negative, which usual implementations refuse.

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.optimize import minimize

from ldpaudit.doors import FloatArray
from ldpaudit.models.logistic import Real

# Scores above are taken for it: exp(30) is 10^13.
_STEEPEST = 30.0


@dataclass(frozen=True)
class TargetLoss:
    """−Σ_y W_y log p_y for soft labels W of any sign: linear in W, so unbiased where W is."""

    targets: Real
    """Float array of shape (n, k): the soft labels times the rows' weights."""

    @cached_property
    def _of_labels(self) -> Real:
        return np.ascontiguousarray(self.targets.T)

    def __call__(self, logits: Real) -> tuple[float, Real]:
        """Return the mean loss, and (Σ_y W_y) p − W."""
        targets = self._of_labels
        log_p = logits - logits.max(axis=0)
        log_p -= np.log(np.exp(log_p).sum(axis=0))
        loss = -float((targets * log_p).sum(dtype=np.float64)) / log_p.shape[1]
        return loss, targets.sum(axis=0) * np.exp(log_p) - targets


@dataclass(frozen=True)
class PoissonModel:
    """ŷ = exp(weights · x + intercept)."""

    weights: FloatArray
    intercept: float

    def predict(self, matrix: FloatArray) -> FloatArray:
        return _mean(matrix @ self.weights + self.intercept)


def _mean(score: FloatArray) -> FloatArray:
    return np.asarray(np.exp(np.minimum(score, _STEEPEST)))


def fit_poisson(
    matrix: FloatArray, target: FloatArray, weights: FloatArray, penalty: float
) -> PoissonModel:
    """Minimise the weighted mean of ŷ − y log ŷ plus penalty/(2W)·‖slopes‖² by L-BFGS, W = Σw."""
    # Convex for labels of any sign; with a weighted mean above 0 and a penalty it has a minimum.
    # Features (n, d) are standardised, the intercept is free. Ghazi et al. (2023), appendix E.3
    # (the loss).
    d, total = matrix.shape[1], float(weights.sum())
    share = weights / total
    start = np.zeros(d + 1)
    start[d] = np.log(share @ target)

    def objective(flat: FloatArray) -> tuple[float, FloatArray]:
        score = matrix @ flat[:d] + flat[d]
        mean = _mean(score)
        residual = share * (mean - target)
        value = float(share @ (mean - target * score))
        gradient = np.append(matrix.T @ residual + penalty / total * flat[:d], residual.sum())
        return value + penalty / (2 * total) * float(flat[:d] @ flat[:d]), gradient

    exact: Any = {"ftol": 1e-15, "gtol": 1e-10, "maxiter": 2_000}
    found = minimize(objective, start, jac=True, method="L-BFGS-B", options=exact).x
    return PoissonModel(found[:d], float(found[d]))
