"""The log-linear blend of several models of P(y | x), and which of them it needs."""

import numpy as np
from scipy.optimize import minimize
from scipy.special import log_softmax, softmax

from ldpaudit.attacks.interface import Model
from ldpaudit.learners.corrections import forward_loss, forward_losses
from ldpaudit.release import FeatureTable, FloatArray

_PRUNING_NATS = 2e-4
_PRUNING_SHARE = 0.01
_ANCHOR_ROWS = 25.0


def part_logs(prior: FloatArray, parts: tuple[Model, ...], features: FeatureTable) -> FloatArray:
    """Return log-probabilities of the class frequencies and of each part, (1 + parts, n, k)."""
    shape = (len(features), len(prior))
    logs = [np.broadcast_to(np.log(prior), shape)]
    logs += [np.log(part.predict(features)) for part in parts]
    return np.stack(logs)


def blended(weights: FloatArray, logs: FloatArray) -> FloatArray:
    """Return softmax(Σ_i w_i log p_i), float64 of shape (n, k)."""
    return np.asarray(softmax(np.tensordot(weights, logs, axes=1), axis=1))


def pruned(
    logs: FloatArray, likelihood: FloatArray, contrast: float
) -> tuple[list[int], FloatArray]:
    """Return the parts that the blend needs, and its weights; other parts only cost time."""
    needed = list(range(len(logs) - 1))
    weights = blend_weights(logs, likelihood)
    loss = forward_loss(blended(weights, logs), likelihood)
    # Behind a channel, differences of the loss shrink with the square of its contrast.
    allowed = loss + contrast**2 * min(_PRUNING_NATS, _PRUNING_SHARE * loss)
    for dropped in reversed(needed):
        fewer = [i for i in needed if i != dropped]
        remaining = logs[[0, *(i + 1 for i in fewer)]]
        trial = blend_weights(remaining, likelihood)
        if fewer and forward_loss(blended(trial, remaining), likelihood) <= allowed:
            needed, weights = fewer, trial
    return needed, weights


def blend_weights(logs: FloatArray, likelihood: FloatArray) -> FloatArray:
    """Return the non-negative weights of the log-linear blend of least forward log-loss.

    Parameters
    ----------
    logs : float64 array of shape (parts, n, k)
        Logarithms of each part's probabilities.
    likelihood : float64 array of shape (n, k)
        T[y, z] for each row's released label z; one-hot where labels are not noisy.

    Returns
    -------
    float64 array of shape (parts,)
        w ≥ 0 of softmax(Σ_i w_i log p_i); with few rows drawn towards the best single part.
    """
    n = logs.shape[1]
    alone = np.stack([forward_losses(np.exp(part), likelihood) for part in logs])
    anchor = np.eye(len(logs))[alone.mean(axis=1).argmin()]

    def objective(weights: FloatArray) -> tuple[float, FloatArray]:
        log_p = log_softmax(np.tensordot(weights, logs, axes=1), axis=1)
        joint = np.exp(log_p) * likelihood
        evidence = np.maximum(joint.sum(axis=1, keepdims=True), 1e-300)
        residual = np.exp(log_p) - joint / evidence
        away = weights - anchor
        pull = _ANCHOR_ROWS / n
        loss = -float(np.log(evidence).mean()) + pull * float(away @ away)
        slope = np.array([(part * residual).sum() for part in logs]) / n
        return loss, slope + 2 * pull * away

    bounds = [(0.0, 3.0)] * len(logs)
    optimum = minimize(objective, anchor, jac=True, method="L-BFGS-B", bounds=bounds)
    return np.asarray(optimum.x, dtype=np.float64)
