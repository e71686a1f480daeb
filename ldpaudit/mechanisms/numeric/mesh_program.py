"""The linear program over a given set of outputs: the papers' method, kept as a reference.

Its variables are, for each output, the lowest probability over the labels and each label's excess
over it, at most e^ε − 1 times the lowest; so it needs k·n rows for n outputs, not k²·n.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.optimize
import scipy.sparse

from ldpaudit.errors import InputError, LdpAuditError
from ldpaudit.mechanisms.channel import Channel
from ldpaudit.mechanisms.design import Design, Problem
from ldpaudit.mechanisms.explicit import ExplicitChannel
from ldpaudit.mechanisms.interface import UNBIASED, Mechanism
from ldpaudit.mechanisms.losses import Loss
from ldpaudit.mechanisms.losses import loss as loss_of
from ldpaudit.mechanisms.numeric.debiased_rr import debiased_outputs
from ldpaudit.mechanisms.numeric.interval.columns import lowered_growth
from ldpaudit.mechanisms.parameters import check_epsilon, check_numeric_classes, check_prior
from ldpaudit.release import FloatArray, Label

_FEASIBILITY = 1e-10
_MESH_CELLS = 160_000
_MESH_LABELS = 500


@dataclass(frozen=True, eq=False)
class MeshRandomizer(ExplicitChannel):
    """A channel found by the linear program and declared entry by entry."""

    @property
    def error_tolerance(self) -> float:
        """The largest absolute bias that is the solver's rounding."""
        return UNBIASED

    @property
    def description(self) -> str:
        """Its size and ε."""
        k, m = self.channel.matrix.shape
        return f"a linear program's channel of {k} labels and {m} outputs, ε = {self.epsilon:.6g}"


def feasible_outputs(classes: Sequence[Label], epsilon: float, n: int) -> FloatArray:
    """Return n evenly spaced outputs on which an unbiased ε-DP randomizer exists.

    They span the outputs of the debiased randomized response.

    Parameters
    ----------
    classes : sequence of k numbers
        The labels in increasing order.
    epsilon : float
        ε in nats.
    n : int
        At least 2.

    References
    ----------
    Badanidiyuru et al. (2023), Algorithm 2 and Proposition 7.
    """
    labels = np.asarray(check_numeric_classes(classes), dtype=np.float64)
    growth = lowered_growth(check_epsilon(epsilon))
    if n < 2:
        raise InputError(f"A mesh must have at least 2 outputs. Got {n} instead.")
    outputs = debiased_outputs(labels, growth)
    return np.linspace(outputs[0], outputs[-1], n)


def design_on_outputs(
    classes: Sequence[Label],
    prior: Sequence[float] | FloatArray,
    epsilon: float,
    outputs: FloatArray,
    loss: Loss = "squared",
    *,
    unbiased: bool = True,
) -> Design:
    """Return the ε-DP randomizer of least loss among those with the given outputs.

    The design's bound is the program's dual value: the solver's own bound, to its tolerance.

    Parameters
    ----------
    classes : sequence of k numbers
        The labels in increasing order.
    prior : float64 array of shape (k,)
        Their probabilities.
    epsilon : float
        ε in nats.
    outputs : float64 array of shape (n,)
        Increasing.
    loss : {"squared", "absolute", "poisson"}
        What to minimise.
    unbiased : bool
        Whether E[ŷ | y] = y is required.

    Raises
    ------
    InputError
        If no such randomizer exists on these outputs.

    References
    ----------
    Badanidiyuru et al. (2023), Algorithm 1; Ghazi et al. (2023), LP (2).
    """
    labels = check_numeric_classes(classes)
    weights, growth = check_prior(prior, len(labels)), lowered_growth(check_epsilon(epsilon))
    values, outputs = np.asarray(labels, dtype=np.float64), np.asarray(outputs, dtype=np.float64)
    losses = weights[:, None] * loss_of(loss, outputs[None, :], values[:, None])
    # A margin of the size of the solver's rounding keeps ε.
    raw, bound = _solve(values, outputs, losses, growth * (1 - 1e-8), unbiased)
    matrix, outputs = _rounded(raw, outputs, growth)
    losses = weights[:, None] * loss_of(loss, outputs[None, :], values[:, None])
    mechanism = MeshRandomizer(Channel(matrix, labels, tuple(outputs.tolist())))
    return Design(mechanism, float(np.sum(matrix * losses)), bound, "linear-program")


def mesh_randomizer(problem: Problem) -> Mechanism:
    """Return the unbiased optimum over a mesh of feasible outputs.

    Raises
    ------
    InputError
        If there are more than 500 labels, or the loss is not defined on the mesh.

    References
    ----------
    Badanidiyuru et al. (2023), section 3.
    """
    classes = problem.labels.classes
    k = len(classes)
    if k > _MESH_LABELS:
        raise InputError(f"The linear program takes at most {_MESH_LABELS} labels.")
    if problem.loss == "poisson":
        raise InputError("The linear program's mesh holds outputs below 0.")
    mesh = feasible_outputs(classes, problem.epsilon, max(k, min(8 * k, _MESH_CELLS // k)))
    return design_on_outputs(classes, problem.prior, problem.epsilon, mesh, problem.loss).mechanism


def _solve(
    labels: FloatArray, outputs: FloatArray, losses: FloatArray, growth: float, unbiased: bool
) -> tuple[FloatArray, float]:
    """Return the program's probabilities, shape (k, n), and its dual value."""
    k, n = losses.shape
    centre, scale = labels.mean(), float(np.abs(outputs - labels.mean()).max())
    size = float(np.abs(losses).max()) or 1.0
    rows = np.concatenate([np.ones(k), (labels - centre) / scale])[: k * (1 + unbiased)]
    solved = scipy.optimize.linprog(
        np.concatenate([losses.sum(axis=0), losses.ravel()]) / size,
        A_ub=_privacy_rows(k, n, growth),
        b_ub=np.zeros(k * n),
        A_eq=_row_equations((outputs - centre) / scale, k, unbiased),
        b_eq=rows,
        method="highs",
        options={"primal_feasibility_tolerance": _FEASIBILITY},
    )
    if solved.status == 2:
        raise InputError("No unbiased randomizer exists on these outputs; use a wider set.")
    if solved.x is None:
        raise LdpAuditError(f"The linear program's solver stopped with status {solved.status}.")
    low, excess = np.clip(solved.x[:n], 0, None), solved.x[n:].reshape(k, n)
    bound = float(solved.eqlin.marginals @ rows) * size
    return low + np.clip(excess, 0, growth * low), bound


def _privacy_rows(k: int, n: int, growth: float) -> Any:
    """State excess ≤ growth · lowest for each label and output."""
    lowest = scipy.sparse.vstack([scipy.sparse.identity(n)] * k)
    return scipy.sparse.csr_array(
        scipy.sparse.hstack([-growth * lowest, scipy.sparse.identity(k * n)])
    )


def _row_equations(outputs: FloatArray, k: int, unbiased: bool) -> Any:
    """State that each row sums to 1 and, if unbiased, has the label as its mean."""
    blocks: list[Any] = []
    for row in [np.ones(len(outputs)), outputs][: 1 + unbiased]:
        each: Any = scipy.sparse.kron(scipy.sparse.identity(k), row[None, :])
        lowest: Any = np.tile(row, (k, 1))
        blocks.append(scipy.sparse.hstack([lowest, each]))
    return scipy.sparse.csr_array(scipy.sparse.vstack(blocks))


def _rounded(raw: FloatArray, outputs: FloatArray, growth: float) -> tuple[FloatArray, FloatArray]:
    """Drop unused outputs, make row sums 1, and mix with a constant row until ε holds.

    Mixing moves every mean towards the constant row's; stretching the outputs reverses this.
    """
    used = raw.max(axis=0) > 1e-12
    matrix, outputs = raw[:, used], outputs[used]
    matrix = matrix / matrix.sum(axis=1, keepdims=True)
    constant = matrix.max(axis=0)
    constant = constant / constant.sum()
    high, low = matrix.max(axis=0), matrix.min(axis=0)
    # (1 − t)high + t·c ≤ e^ε((1 − t)low + t·c), c the constant row.
    over = np.maximum(high - (1 + growth) * low, 0) / (growth * constant)
    share = float(np.max(over / (1 + over)))
    mixed = (1 - share) * matrix + share * constant
    stretched = (outputs - share * float(constant @ outputs)) / (1 - share)
    return mixed / mixed.sum(axis=1, keepdims=True), stretched
