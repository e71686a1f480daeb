"""How many rows to ask, decided on rows that the bound does not use.

The shares J(τ) of a pilot say how many further rows pin all of them down. These are other rows, so
their number is fixed before any of them is asked: the binomial bound on them keeps its whole error
probability, at every level, and the pilot costs none of it.
"""

from typing import Final

import numpy as np

from ldpaudit.audits.instance_loss.labels import LossLabels
from ldpaudit.estimators.loss.bounds import mean_loss_lower
from ldpaudit.estimators.loss.exceedance import ErrorBudget, loss_grid
from ldpaudit.estimators.loss.instance_loss import mean_loss
from ldpaudit.estimators.neighbors.counts import NeighborCounts
from ldpaudit.estimators.neighbors.sizes import queries_needed
from ldpaudit.release import FloatArray

PRECISION: Final = 0.005
"""How far below the observed share its bound may lie."""
PILOT: Final = 2_000
"""Rows of the pilot."""
FEWEST: Final = 10_000
"""E[ν] and its quantiles, which are not looked at here, want so many rows in any case."""
_DEVIATIONS: Final = 3.0


def most_queries(error: float) -> int:
    """Return how many rows are enough whatever the shares, for a bound of this error."""
    return queries_needed(PRECISION, error)


def enough(labels: LossLabels, pilot: NeighborCounts, budget: ErrorBudget) -> int:
    """Return how many further rows are enough, given the label counts around the pilot's rows.

    Only the share closest to 1/2, which chance moves most, matters: it is taken as 3 standard
    deviations closer than observed. Where the curve passes 1/2 nothing is saved.
    """
    box = labels.box(pilot.counts, pilot.totals, budget.per_query)
    losses = mean_loss(box.estimate, labels.prior, labels.channel)
    lower = mean_loss_lower(box, labels.prior_low, labels.prior_high, labels.channel)
    worst = _closest_to_half(np.minimum(lower, losses), loss_grid(losses))
    return max(FEWEST, queries_needed(PRECISION, budget.count, worst))


def _closest_to_half(lower: FloatArray, grid: FloatArray) -> float:
    """Return how close to 1/2 the share of losses beyond a grid point may come, in [0, 0.5]."""
    shares = (lower[:, None] >= grid).mean(axis=0)
    smaller = np.minimum(shares, 1 - shares)
    # A share that was not seen at all in the pilot may still be some 5 of its rows.
    spread = np.sqrt(np.maximum(smaller * (1 - smaller), 5 / len(lower)) / len(lower))
    return float(min(0.5, (smaller + _DEVIATIONS * spread).max()))
