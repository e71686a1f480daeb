"""Multinomial logistic regression on labels that went through a known channel.

The loss is the forward-corrected one: the model's class probabilities p(x) pass through the
channel T before they are compared with the released label z, −log Σ_y p_y(x) T[y, z]. Its
minimiser estimates P(y | x) of the true label without ever seeing one. With the identity channel
it is ordinary logistic regression.
"""

from dataclasses import dataclass

import numpy as np
from scipy.linalg import cholesky, solve_triangular
from scipy.optimize import minimize
from scipy.special import softmax

from ldpaudit.release import Float32Array, FloatArray, IntArray

_MAX_ITERATIONS = 100
_MOMENT_ROWS = 20_000
_JITTER = 1e-3


@dataclass(frozen=True)
class ForwardLogistic:
    """A fitted model: weights float32 of shape (p, k), intercepts float32 of shape (k,)."""

    weights: Float32Array
    intercepts: Float32Array

    def predict(self, matrix: Float32Array) -> FloatArray:
        """Return P(y | x), float64 of shape (n, k), for a float32 matrix of shape (n, p)."""
        logits = matrix @ self.weights + self.intercepts
        return np.asarray(softmax(logits.astype(np.float64), axis=1))


def fit_forward_logistic(
    matrix: Float32Array,
    codes: IntArray,
    transition: FloatArray,
    penalty: float,
    start: ForwardLogistic | None = None,
) -> ForwardLogistic:
    """Fit by L-BFGS on the mean forward loss plus penalty/(2n)·‖weights‖².

    Parameters
    ----------
    matrix : float32 array of shape (n, p)
        Standardised features.
    codes : int32 array of shape (n,)
        Released labels, columns of ``transition``.
    transition : float64 array of shape (k, m)
        The channel T[y, z]; the identity for labels that are not noisy.
    penalty : float
        The ridge penalty; intercepts are free.
    start : ForwardLogistic, optional
        Where to start.

    References
    ----------
    Patrini et al. (2017), forward correction, Theorem 2.
    """
    n, p = matrix.shape
    k = len(transition)
    likelihood = np.ascontiguousarray(transition.T[codes], dtype=np.float32)
    # In the coordinates Fᵀ·weights, with F Fᵀ the features' second moments, all directions are
    # equally steep, and a third of the steps is enough.
    factor = _moment_factor(matrix, penalty)

    def objective(flat: FloatArray) -> tuple[float, FloatArray]:
        weights = solve_triangular(factor, flat.reshape(p + 1, k), lower=True, trans="T")
        logits = matrix @ weights[:p].astype(np.float32) + weights[p].astype(np.float32)
        loss, residual = _loss_and_residual(logits, likelihood)
        gradient = np.empty((p + 1, k))
        gradient[:p] = matrix.T @ residual / n + penalty / n * weights[:p]
        gradient[p] = residual.sum(axis=0, dtype=np.float64) / n
        ridge = penalty / (2 * n) * float((weights[:p] ** 2).sum())
        return loss + ridge, solve_triangular(factor, gradient, lower=True).ravel()

    first = np.zeros((p + 1, k))
    if start is not None:
        first[:p], first[p] = start.weights, start.intercepts
    found = minimize(
        objective,
        (factor.T @ first).ravel(),
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": _MAX_ITERATIONS, "gtol": 1e-5, "ftol": 1e-7},
    )
    weights = solve_triangular(factor, found.x.reshape(p + 1, k), lower=True, trans="T")
    return ForwardLogistic(weights[:p].astype(np.float32), weights[p].astype(np.float32))


def _moment_factor(matrix: Float32Array, penalty: float) -> FloatArray:
    """Return the Cholesky factor of the second moments of (features, 1), plus the ridge."""
    n, p = matrix.shape
    sample = matrix[:: n // _MOMENT_ROWS + 1]
    moments = np.zeros((p + 1, p + 1))
    moments[:p, :p] = sample.T @ sample / len(sample)
    moments[p, :p] = moments[:p, p] = sample.mean(axis=0, dtype=np.float64)
    moments[p, p] = 1.0
    moments[np.diag_indices(p + 1)] += _JITTER + penalty / n
    return np.asarray(cholesky(moments, lower=True))


def _loss_and_residual(
    logits: Float32Array, likelihood: Float32Array
) -> tuple[float, Float32Array]:
    logits -= logits.max(axis=1, keepdims=True)
    probability = np.exp(logits, out=logits)
    probability /= probability.sum(axis=1, keepdims=True)
    joint = probability * likelihood
    evidence = np.maximum(joint.sum(axis=1, keepdims=True), np.float32(1e-30))
    joint /= evidence
    loss = -float(np.log(evidence).mean(dtype=np.float64))
    # The gradient of −log Σ_y p_y T[y, z] in the logits is p minus the posterior given z.
    return loss, probability - joint
