"""Stochastic gradient descent on the inverse-Weierstrass loss of a linear model.

Each batch gives an unbiased estimate of the clean gradient; the parameters take a step against it
and are led back to a ball.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from ldpaudit.errors import InputError
from ldpaudit.learners.iwp.losses import MarginLoss
from ldpaudit.release import FloatArray, IndexArray

StepSize = Callable[[int], float]
"""The step size as a function of the number of the step, from 1."""


class RowLoss(Protocol):
    """How the scores θᵀx̃ of released rows are judged."""

    def derivative_bounds(self, reach: float) -> tuple[float, float, float]:
        """Return the largest first, second and third derivative for clean |θᵀx| ≤ ``reach``."""

    def value(self, scores: FloatArray, answers: FloatArray, variance: float) -> FloatArray:
        """Return the corrected loss of each row, float64 of shape (b,)."""

    def slopes(
        self, scores: FloatArray, answers: FloatArray, variance: float
    ) -> tuple[FloatArray, FloatArray]:
        """Return the derivatives of :meth:`value` in the score and in the variance, (b,) each."""


@dataclass(frozen=True)
class ClassificationLoss:
    """f(y θᵀx) of a label y = ±1; answers are its soft labels (of −1, of +1), shape (b, 2)."""

    loss: MarginLoss

    def derivative_bounds(self, reach: float) -> tuple[float, float, float]:
        """Return those of the loss of the margin."""
        return self.loss.derivative_bounds(reach)

    def value(self, scores: FloatArray, answers: FloatArray, variance: float) -> FloatArray:
        """Return the IWP loss of each row (Dufraiche et al., section 5.2)."""
        negative, positive = answers.T
        loss = positive * self.loss.corrected(scores, variance)
        return np.asarray(loss + negative * self.loss.corrected(-scores, variance))

    def slopes(
        self, scores: FloatArray, answers: FloatArray, variance: float
    ) -> tuple[FloatArray, FloatArray]:
        """Return its derivatives (Dufraiche et al., Eq. (16))."""
        both = np.concatenate([scores, -scores])
        slope, drift = self.loss.slope(both, variance), self.loss.drift(both, variance)
        b, (negative, positive) = len(scores), answers.T
        return (
            positive * slope[:b] - negative * slope[b:],
            positive * drift[:b] + negative * drift[b:],
        )


@dataclass(frozen=True)
class RegressionLoss:
    """½(θᵀx − y)²; answers are unbiased labels, shape (b,) (Dufraiche et al., appendix E.2)."""

    def derivative_bounds(self, reach: float) -> tuple[float, float, float]:
        """Return 1 + reach, 1 and 0, for labels within ±1."""
        return 1.0 + reach, 1.0, 0.0

    def value(self, scores: FloatArray, answers: FloatArray, variance: float) -> FloatArray:
        """Return ½(score − y)² − s/2, unbiased up to the label noise's own variance/2."""
        return np.asarray(0.5 * (scores - answers) ** 2 - variance / 2)

    def slopes(
        self,
        scores: FloatArray,
        answers: FloatArray,
        variance: float,  # noqa: ARG002
    ) -> tuple[FloatArray, FloatArray]:
        """Return score − y and −1/2."""
        return scores - answers, np.full_like(scores, -0.5)


@dataclass(frozen=True)
class Objective:
    """What is minimised, and where.

    Attributes
    ----------
    loss : RowLoss
        The rows' loss.
    sigma : float
        σ ≥ 0 of the features' noise.
    ridge : float
        The constant of ridge/2·‖θ‖²; the intercept is free.
    radius : float
        The parameters, intercept included, stay in the ball of this radius.
    intercept : bool
        Whether the last parameter is an intercept, which meets no noise.
    """

    loss: RowLoss
    sigma: float
    ridge: float
    radius: float
    intercept: bool

    def split(self, theta: FloatArray) -> tuple[FloatArray, float]:
        """Return the slopes, float64 of shape (p,), and the intercept, 0 without one."""
        return (theta[:-1], float(theta[-1])) if self.intercept else (theta, 0.0)

    def scores(self, theta: FloatArray, matrix: FloatArray) -> FloatArray:
        """Return θᵀx plus the intercept, float64 of shape (n,)."""
        slopes, intercept = self.split(theta)
        return np.asarray(matrix @ slopes + intercept)

    def variance(self, theta: FloatArray) -> float:
        """Return σ²‖θ‖², the variance that the noise gives a score."""
        slopes, _ = self.split(theta)
        return self.sigma**2 * float(slopes @ slopes)

    def risk(
        self, theta: FloatArray, matrix: FloatArray, answers: FloatArray, weights: FloatArray
    ) -> float:
        """Return the weighted mean corrected loss plus the ridge, an unbiased estimate."""
        variance = self.variance(theta)
        losses = self.loss.value(self.scores(theta, matrix), answers, variance)
        slopes, _ = self.split(theta)
        return float(weights @ losses / weights.sum() + self.ridge / 2 * (slopes @ slopes))

    def gradient(
        self, theta: FloatArray, matrix: FloatArray, answers: FloatArray, weights: FloatArray
    ) -> FloatArray:
        """Return the gradient of :meth:`risk`, float64 of the shape of ``theta``.

        References
        ----------
        Dufraiche et al., Eqs. (7) and (16).
        """
        slope, drift = self.loss.slopes(self.scores(theta, matrix), answers, self.variance(theta))
        share = weights / weights.sum()
        by_score = slope * share
        pull = 2 * self.sigma**2 * float(drift @ share) + self.ridge
        if not self.intercept:
            return np.asarray(by_score @ matrix + pull * theta)
        return np.append(by_score @ matrix + pull * theta[:-1], by_score.sum())

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

    @classmethod
    def start(cls, width: int) -> "Iterate":
        """Return where a descent begins: at 0."""
        return cls(np.zeros(width), np.zeros(width), 0)


def descend(
    problem: Objective,
    matrix: FloatArray,
    answers: FloatArray,
    weights: FloatArray,
    order: IndexArray | None,
    step_size: StepSize,
    batch_size: int,
    start: Iterate,
) -> Iterate:
    """Take one pass over the rows.

    Parameters
    ----------
    problem : Objective
        What is minimised.
    matrix : float64 array of shape (n, p)
        Released features.
    answers : float64 array of shape (n, 2) or (n,)
        Soft or unbiased labels.
    weights : float64 array of shape (n,)
        Not negative; a batch whose weights are all zero is passed over.
    order : int64 array of shape (n,), optional
        The order of the rows; default: as they come.
    step_size : callable
        The step size of each step.
    batch_size : int
        Rows of a batch; the last one may be smaller.
    start : Iterate
        Where to start.

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
    theta, mean, steps = start.theta, start.mean, start.steps
    with np.errstate(over="ignore", invalid="ignore"):
        for first in range(0, len(matrix), batch_size):
            chosen = slice(first, first + batch_size)
            rows = chosen if order is None else order[chosen]
            share = weights[rows]
            if not share.any():
                continue
            steps += 1
            gradient = problem.gradient(theta, matrix[rows], answers[rows], share)
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
    """Return the rule for a problem.

    Parameters
    ----------
    problem : Objective
        With a ridge above 0.
    dimension : int
        p, the number of features.
    feature_radius : float
        The largest norm of a clean feature vector.
    label_factor : float
        S̃(S̃ − 1) of the label noise, S̃ = 1/(1 − e^{−ε}); 0 without any.
    batch_size : int
        Rows of a batch: its mean gradient has so much less variance.
    """
    norm = math.sqrt(feature_radius**2 + problem.intercept)
    reach, sigma2 = norm * problem.radius, problem.sigma**2
    steep, curved, bent = problem.loss.derivative_bounds(reach)
    # C of Eq. (8): the gradient, and the mixed derivative of Eq. (17) in the Frobenius norm.
    mixed = math.sqrt(dimension) * steep + reach * curved + sigma2 * problem.radius**2 * bent
    bound = max(norm * steep, mixed)
    spread = bound**2 * (4 * label_factor * (1 + sigma2) + sigma2) / batch_size
    smooth = curved * norm**2 + problem.ridge
    return StepRule(problem.ridge, smooth, max(spread, 1e-300), problem.radius)
