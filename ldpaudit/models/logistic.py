"""Logistic regression on labels that went through a known channel."""

# The forward loss sends the model's class probabilities p(x) through the channel T before they are
# compared with the released label z, −log Σ_y p_y(x) T[y, z]. It has the truth as its minimiser,
# though no true label is seen. With the identity channel it is ordinary logistic regression.

from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from scipy.linalg import cholesky, solve_triangular
from scipy.optimize import minimize
from scipy.special import softmax

from ldpaudit.release import Float32Array, FloatArray, IntArray

_MOMENT_ROWS = 20_000
_JITTER = 1e-3

Real = npt.NDArray[np.floating[Any]]


@dataclass(frozen=True)
class LogisticModel:
    """A fitted model: weights of shape (p, k), intercepts of shape (k,), both of one float type."""

    weights: Real
    intercepts: Real

    def predict(self, matrix: Real) -> FloatArray:
        logits = self.weights.T @ matrix.T + self.intercepts[:, None]
        return np.ascontiguousarray(softmax(logits.astype(np.float64), axis=0).T)


class LogitLoss(Protocol):
    """A mean loss of n rows as a function of their logits."""

    # A row of logits for each of the k labels: sums over few labels then take a fraction of the
    # time that they take within each of n short rows.

    def __call__(self, logits: Real) -> tuple[float, Real]:
        """Return the mean loss and n times its gradient in the logits, shape (k, n) as these."""


@dataclass(frozen=True)
class ForwardLoss:
    """−log Σ_y p_y T[y, z], weighted."""

    likelihood: Real
    """Float array of shape (n, k): T[y, z] at each row's released label z."""
    weights: Real | None = None
    """Float array of shape (n, 1), optional: rows' weights, averaging 1."""

    @cached_property
    def _of_labels(self) -> Real:
        return np.ascontiguousarray(self.likelihood.T)

    def __call__(self, logits: Real) -> tuple[float, Real]:
        """Return the mean loss, and p minus the posterior given z."""
        probability = softmax_in_place(logits)
        joint = probability * self._of_labels
        evidence = np.maximum(joint.sum(axis=0), np.float32(1e-30))
        joint /= evidence
        losses, residual = -np.log(evidence), np.subtract(probability, joint, out=probability)
        if self.weights is not None:
            losses, residual = losses * self.weights[:, 0], residual * self.weights[:, 0]
        return float(losses.mean(dtype=np.float64)), residual


@dataclass(frozen=True)
class Stopping:
    """When L-BFGS stops: after so many iterations, or where slope or relative gain are so small."""

    iterations: int = 100
    slope: float = 1e-5
    gain: float = 1e-7


def fit_forward_logistic(
    matrix: Float32Array,
    codes: IntArray,
    transition: FloatArray,
    penalty: float,
    start: LogisticModel | None = None,
) -> LogisticModel:
    """Fit by L-BFGS on the mean forward loss plus penalty/(2n)·‖weights‖²; intercepts are free.

    Features (n, p) are standardised; ``codes`` (n,) are released labels, columns of the channel
    T[y, z], which is the identity where labels are not noisy.
    Patrini et al. (2017), forward correction, Theorem 2.
    """
    likelihood = np.ascontiguousarray(transition.T[codes], dtype=np.float32)
    return fit_logistic(matrix, ForwardLoss(likelihood), len(transition), penalty, start)


def fit_logistic(
    matrix: Real,
    loss: LogitLoss,
    k: int,
    penalty: float,
    start: LogisticModel | None = None,
    stopping: Stopping | None = None,
) -> LogisticModel:
    """Minimise a mean loss of the logits plus penalty/(2n)·‖weights‖² by L-BFGS."""
    # Intercepts are free. Features (n, p) are standardised; float32 is faster, float64 exact. It
    # starts at zero unless told otherwise.
    n, p = matrix.shape
    kind, stopping = matrix.dtype, stopping or Stopping()
    # In the coordinates Fᵀ·weights, with F Fᵀ the features' second moments, all directions are
    # equally steep, and a third of the steps is enough.
    factor = _moment_factor(matrix, penalty)
    # The factor is finite; looking at all of a large one at every step takes as long as the step.
    solved = partial(solve_triangular, factor, lower=True, check_finite=False)

    def objective(flat: FloatArray) -> tuple[float, FloatArray]:
        weights = solved(flat.reshape(p + 1, k), trans="T")
        logits = weights[:p].T.astype(kind) @ matrix.T
        logits += weights[p].astype(kind)[:, None]
        value, residual = loss(logits)
        gradient = np.empty((p + 1, k))
        gradient[:p] = (residual @ matrix).T / n + penalty / n * weights[:p]
        gradient[p] = residual.sum(axis=1, dtype=np.float64) / n
        ridge = penalty / (2 * n) * float((weights[:p] ** 2).sum())
        return value + ridge, solved(gradient).ravel()

    first = np.zeros((p + 1, k))
    if start is not None:
        first[:p], first[p] = start.weights, start.intercepts
    begin = (factor.T @ first).ravel()
    optimum = minimize(
        objective,
        begin,
        jac=True,
        method="L-BFGS-B",
        options={
            "maxiter": stopping.iterations,
            "gtol": stopping.slope,
            "ftol": stopping.gain,
        },
    )
    weights = solved(optimum.x.reshape(p + 1, k), trans="T")
    return LogisticModel(weights[:p].astype(kind), weights[p].astype(kind))


def _moment_factor(matrix: Real, penalty: float) -> FloatArray:
    """Return the Cholesky factor of the second moments of (features, 1), plus the ridge."""
    n, p = matrix.shape
    sample = matrix[:: n // _MOMENT_ROWS + 1]
    moments = np.zeros((p + 1, p + 1))
    moments[:p, :p] = sample.T @ sample / len(sample)
    moments[p, :p] = moments[:p, p] = sample.mean(axis=0, dtype=np.float64)
    moments[p, p] = 1.0
    moments[np.diag_indices(p + 1)] += _JITTER + penalty / n
    return np.asarray(cholesky(moments, lower=True))


def softmax_in_place(logits: Real) -> Real:
    """Return the probabilities of k labels by their logits (k, n), in the place of these."""
    logits -= logits.max(axis=0)
    probability: Real = np.exp(logits, out=logits)
    probability /= probability.sum(axis=0)
    return probability
