"""The lower bound of J(τ) at any level: what a policy needs that asks for several checks."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from ldpaudit.audits.instance_loss.labels import LossLabels, loss_labels
from ldpaudit.audits.instance_loss.queries import Neighborhoods
from ldpaudit.audits.interface import AuditContext
from ldpaudit.estimators.loss.bounds import mean_loss_lower
from ldpaudit.estimators.loss.exceedance import ErrorBudget, exceedance
from ldpaudit.release import FloatArray
from ldpaudit.result import Curve

_LADDER = tuple(0.1 * 0.5**step for step in range(24))
"""Error probabilities at which the bound is computed; between two of them the smaller one holds."""


@dataclass(frozen=True, eq=False)
class ExceedanceLevels:
    """J's lower bound on the grid of a curve, computed when a level is first asked for.

    Attributes
    ----------
    context : AuditContext
    asked : Neighborhoods
        The queries and the labels around them.
    losses : float64 array of shape (m,)
        The estimated loss of each query.
    grid : float64 array of shape (g,)
        τ in nats.
    """

    context: AuditContext
    asked: Neighborhoods
    losses: FloatArray
    grid: FloatArray
    _known: dict[float, FloatArray] = field(default_factory=dict, repr=False)

    def at(self, place: int, alpha: float) -> float:
        """Return a lower bound of J at a grid point, at level 1 − alpha or a little more.

        Shares of people in [0, 1]; 0 below an error probability of about 1e-8.
        """
        step = next((step for step in _LADDER if step <= alpha * (1 + 1e-9)), None)
        if step is None:
            return 0.0
        if step not in self._known:
            self._known[step] = self._low(ErrorBudget.of(step))
        return float(self._known[step][place])

    def _low(self, budget: ErrorBudget) -> FloatArray:
        labels: LossLabels = loss_labels(self.context, budget.prior)
        box = labels.box(self.asked.counts, self.asked.totals, budget.per_query)
        lower = mean_loss_lower(box, labels.prior_low, labels.prior_high, labels.channel)
        low = exceedance(self.losses, np.minimum(lower, self.losses), budget, self.grid).low
        assert low is not None
        return low

    def functions(self, curve: Curve) -> Mapping[str, Callable[[float], float]]:
        """Return the bound at each point of a curve as a function of alpha, by id and τ."""
        return {curve.bound_key(place): partial(self.at, place) for place in range(len(curve.x))}
