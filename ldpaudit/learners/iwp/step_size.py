"""The step size that the convergence theorem of IWP-SGD asks for."""

import math
from dataclasses import dataclass

from ldpaudit.learners.iwp.sgd import Objective


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
