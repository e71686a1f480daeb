"""The papers' linear program over given outputs, as they print it: an oracle for designs."""

import math

import numpy as np
import scipy.optimize
from scipy import sparse

from ldpaudit.mechanisms.bins import debiased_outputs
from ldpaudit.mechanisms.label_range import loss as loss_of


def spanning(labels, epsilon, n):
    """Return n evenly spaced outputs as far apart as those of debiased randomized response."""
    ends = debiased_outputs(np.asarray(labels, dtype=float), math.expm1(epsilon))
    return np.linspace(ends[0], ends[-1], n)


def mesh_loss(labels, prior, epsilon, outputs, loss="squared", unbiased=True):
    """Return the least loss with lowest[z] ≤ T[y, z] ≤ e^ε lowest[z]; NaN where none exists.

    Badanidiyuru et al. (2023), Algorithm 1; Ghazi et al. (2023), LP (2).
    """
    values, k, n = np.asarray(labels, dtype=float), len(labels), len(outputs)
    losses = np.asarray(prior)[:, None] * loss_of(loss, outputs[None, :], values[:, None])
    own, lowest = sparse.identity(k * n), sparse.vstack([sparse.identity(n)] * k)
    scale = np.abs(outputs).max()
    rows = [np.ones(n), outputs / scale][: 1 + unbiased]
    equal = sparse.vstack([sparse.kron(sparse.identity(k), row[None, :]) for row in rows])
    found = scipy.optimize.linprog(
        np.concatenate([losses.ravel(), np.zeros(n)]),
        A_ub=sparse.csr_array(
            sparse.vstack(
                [sparse.hstack([own, -math.exp(epsilon) * lowest]), sparse.hstack([-own, lowest])]
            )
        ),
        b_ub=np.zeros(2 * k * n),
        A_eq=sparse.csr_array(sparse.hstack([equal, sparse.csr_array((len(rows) * k, n))])),
        b_eq=np.concatenate([np.ones(k), values / scale])[: len(rows) * k],
        method="highs",
    )
    return math.nan if found.x is None else float(found.fun)
