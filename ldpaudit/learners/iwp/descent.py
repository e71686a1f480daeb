"""Stochastic gradient descent on the inverse-Weierstrass loss of a linear model.

Each batch gives an unbiased estimate of the clean gradient; the parameters take a step against it
and are led back to a ball.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ldpaudit.errors import InputError
from ldpaudit.learners.iwp.losses import MarginLoss
from ldpaudit.release import FloatArray, IndexArray

StepSize = Callable[[int], float]
"""The step size as a function of the number of the step, from 1."""


@dataclass(frozen=True)
class Objective:
    """What is minimised, and where: the mean of f(y θᵀx) of a label y = ±1, plus a ridge.

    A row's label is given by its soft labels (of −1, of +1), an array of shape (b, 2). With the
    quadratic loss the soft labels (1 ∓ t)/2 give the squared loss ½(θᵀx − t)² of a number t, up to
    a constant (Dufraiche et al., appendix E.2).

    Attributes
    ----------
    loss : MarginLoss
    sigma : float
        σ ≥ 0 of the features' noise.
    ridge : float
        The constant of ridge/2·‖θ‖²; the intercept is free.
    radius : float
        The parameters, intercept included, stay in the ball of this radius.
    intercept : bool
        Whether the last parameter is an intercept, which meets no noise.
    """

    loss: MarginLoss
    sigma: float
    ridge: float
    radius: float
    intercept: bool

    def split(self, theta: FloatArray) -> tuple[FloatArray, float]:
        """Return the slopes, float64 of shape (p,), and the intercept, 0 without one."""
        return (theta[:-1], float(theta[-1])) if self.intercept else (theta, 0.0)

    def variance(self, theta: FloatArray) -> float:
        """Return σ²‖θ‖², the variance that the noise gives a score."""
        slopes, _ = self.split(theta)
        return self.sigma**2 * float(slopes @ slopes)

    def risk(
        self, theta: FloatArray, matrix: FloatArray, answers: FloatArray, weights: FloatArray
    ) -> float:
        """Return the weighted mean corrected loss plus the ridge, an unbiased estimate."""
        slopes, intercept = self.split(theta)
        scores, variance = matrix @ slopes + intercept, self.variance(theta)
        negative, positive = answers.T
        losses = positive * self.loss.corrected(scores, variance)
        losses = losses + negative * self.loss.corrected(-scores, variance)
        return float(weights @ losses / weights.sum() + self.ridge / 2 * (slopes @ slopes))

    def gradient(
        self, theta: FloatArray, matrix: FloatArray, answers: FloatArray, weights: FloatArray
    ) -> FloatArray:
        """Return the gradient of :meth:`risk` (Dufraiche et al., Eqs. (7) and (16))."""
        slopes, intercept = self.split(theta)
        scores, variance = matrix @ slopes + intercept, self.variance(theta)
        both, b, (negative, positive) = np.concatenate([scores, -scores]), len(scores), answers.T
        slope, bend = (self.loss.corrected(both, variance, j) for j in (1, 2))
        share = weights / weights.sum()
        by_score = (positive * slope[:b] - negative * slope[b:]) * share
        # The derivative in the variance, by the heat equation.
        by_variance = -0.5 * float((positive * bend[:b] + negative * bend[b:]) @ share)
        gradient = by_score @ matrix + (2 * self.sigma**2 * by_variance + self.ridge) * slopes
        return np.append(gradient, by_score.sum()) if self.intercept else np.asarray(gradient)

    def project(self, theta: FloatArray) -> FloatArray:
        """Return the nearest parameters in the ball."""
        norm = float(np.sqrt(theta @ theta))
        return theta if norm <= self.radius else theta * (self.radius / norm)


class Iterate(NamedTuple):
    """How far a descent has come.

    Attributes
    ----------
    theta : float64 array of shape (d,)
        The parameters after the last step.
    mean : float64 array of shape (d,)
        Their average over the steps, the t-th with a weight proportional to t.
    steps : int
    """

    theta: FloatArray
    mean: FloatArray
    steps: int


def descend(
    problem: Objective,
    rows: tuple[FloatArray, FloatArray, FloatArray],
    order: IndexArray | None,
    step_size: StepSize,
    batch_size: int,
    start: Iterate,
) -> Iterate:
    """Take one pass over rows: features (n, p), soft labels (n, 2) and weights (n,).

    ``order`` is the order of the rows, None as they come; the last batch may be smaller, and one
    whose weights are all zero is passed over.

    Raises
    ------
    InputError
        If the gradient overflows.

    References
    ----------
    Dufraiche et al., Algorithm 1 (a descent: the text once prints a plus sign).
    Lacoste-Julien, Schmidt & Bach (2012), A simpler approach to obtaining an O(1/t) convergence
    rate for the projected stochastic subgradient method, for the weights of the average.
    """
    matrix, answers, weights = rows
    theta, mean, steps = start
    with np.errstate(over="ignore", invalid="ignore"):
        for first in range(0, len(matrix), batch_size):
            chosen = slice(first, first + batch_size)
            batch = chosen if order is None else order[chosen]
            share = weights[batch]
            if not share.any():
                continue
            steps += 1
            gradient = problem.gradient(theta, matrix[batch], answers[batch], share)
            theta = problem.project(theta - step_size(steps) * gradient)
            if not np.isfinite(theta).all():
                raise InputError(
                    f"The gradient overflowed at step {steps}: the noise is too large for this "
                    "loss and radius. Use a smaller radius or step, or the quadratic loss."
                )
            mean = mean + 2 / (steps + 1) * (theta - mean)
    return Iterate(theta, mean, steps)


@dataclass(frozen=True)
class StepRule:
    """γ = min(1/(2𝒦), log(max(2, μ² D² t/A))/(μ t)).

    Attributes
    ----------
    strong : float
        μ > 0, the strong convexity that the ridge grants.
    smooth : float
        𝒦 of the risk on the ball.
    spread : float
        A, a bound of the gradient's variance for one batch; for a series cut off, an estimate.
    distance : float
        D, a bound of the distance from the start to the minimum.

    References
    ----------
    Dufraiche et al., Theorem 5.5 and appendix D.8.
    """

    strong: float
    smooth: float
    spread: float
    distance: float

    def at(self, steps: int) -> float:
        """Return γ for a run of ``steps`` steps."""
        gain = self.strong**2 * self.distance**2 * steps / self.spread
        return min(1 / (2 * self.smooth), math.log(max(2.0, gain)) / (self.strong * steps))


def theorem_rule(
    problem: Objective, dimension: int, feature_radius: float, label_factor: float, batch_size: int
) -> StepRule:
    """Return the rule for a problem with a ridge above 0.

    ``feature_radius`` is the largest norm of a clean feature vector, ``label_factor`` S̃(S̃ − 1) of
    the label noise, S̃ = 1/(1 − e^{−ε}); 0 without any.
    """
    norm = math.sqrt(feature_radius**2 + problem.intercept)
    reach, sigma2 = norm * problem.radius, problem.sigma**2
    steep, curved, bent = problem.loss.derivative_bounds(reach)
    # C of Eq. (8): the gradient, and the mixed derivative of Eq. (17) in the Frobenius norm.
    mixed = math.sqrt(dimension) * steep + reach * curved + sigma2 * problem.radius**2 * bent
    bound = max(norm * steep, mixed)
    # The mean gradient of a batch has so much less variance than a row's.
    spread = bound**2 * (4 * label_factor * (1 + sigma2) + sigma2) / batch_size
    smooth = curved * norm**2 + problem.ridge
    return StepRule(problem.ridge, smooth, max(spread, 1e-300), problem.radius)
