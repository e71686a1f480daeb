"""Invariant PRAM: the channel that keeps the labels' distribution, and most labels, at an ε."""

from typing import Any, Final

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import block_array, eye_array, kron

from ldpaudit.doors import Channel, FloatArray, InputError, check_classes, check_epsilon
from ldpaudit.mechanisms.parameters import check_prior
from ldpaudit.release import Label

_MOST_LABELS: Final = 64
# The least share of "draw from the prior" that is mixed in where rounding exceeds ε.
_LEAST_MIXED: Final = 1e-12


def invariant_channel(classes: tuple[Label, ...], prior: FloatArray, epsilon: float) -> Channel:
    """Return the P with prior · P = prior and ε-label-DP that keeps a label most often."""
    # A linear program: maximise Σ_y p_y P[y, y] over channels with Σ_y p_y P[y, z] = p_z and m_z ≤
    # P[y, z] ≤ e^ε m_z. Its rounding is taken off, and where that leaves ε exceeded, a share of the
    # channel that draws every label from the prior, which has ε = 0 and is invariant, is mixed in.
    # Gouweleeuw, Kooiman, Willenborg & de Wolf (1998), Post randomisation for statistical
    # disclosure control, section 4 (invariance).
    labels, epsilon = check_classes(classes), check_epsilon(epsilon)
    k, weights = len(labels), check_prior(prior, len(labels))
    if k > _MOST_LABELS:
        raise InputError(f"An invariant channel takes at most {_MOST_LABELS} labels. Got {k}.")
    one, own, every = np.ones((1, k)), eye_array(k), eye_array(k * k)
    least = kron(one.T, own)  # m_z at each entry P[y, z], row by row.
    sums: Any = [[kron(own, one), np.zeros((k, k))], [kron(weights[None, :], own), None]]
    between: Any = block_array([[-every, least], [every, -np.exp(epsilon) * least]])
    equal: Any = block_array(sums)
    found = linprog(
        np.concatenate([-np.diag(weights).ravel(), np.zeros(k)]),
        A_ub=between,
        b_ub=np.zeros(2 * k * k),
        A_eq=equal,
        b_eq=np.concatenate([np.ones(k), weights]),
        method="highs",
    )
    if found.x is None:
        raise InputError("No invariant channel was found; round the prior or epsilon.")
    matrix = found.x[: k * k].reshape(k, k)
    matrix -= np.outer(matrix.sum(axis=1) - 1, weights)
    matrix -= weights @ matrix - weights
    mixed, channel = 0.0, Channel(np.tile(weights, (k, 1)), labels, labels)
    while mixed < 1:
        kept = np.maximum((1 - mixed) * matrix + mixed * weights, 0.0)
        tried = Channel(kept / kept.sum(axis=1, keepdims=True), labels, labels)
        if tried.epsilon <= epsilon:
            return tried
        mixed = max(2 * mixed, _LEAST_MIXED)
    return channel
