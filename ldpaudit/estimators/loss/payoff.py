"""One bounded variable per row whose mean bounds E[ν] from below: a critic, clipped.

For the critic's log-odds ψ, clipped to within ``reach`` of the prior's, a row with label y pays

    V = ψ_y + 1 + g′(p_y) − Σ_{j≠y} e^{ψ_j},      g(p) = −p logit p,

and E[V] + Σ_y (g(p_y) − g′(p̂_y) p_y) ≤ E[ν]; see :mod:`ldpaudit.estimators.loss.donsker_varadhan`.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import logit, xlogy

from ldpaudit.estimators.loss.critic import Critic, HeldOut
from ldpaudit.release import BoolArray, FloatArray

_REACHES = np.arange(0.5, 12.01, 0.5)
_ERRORS = 1.8
"""The distance in standard errors that is expected between a mean and its bound at 95 %."""
_RANGE_COST = 3.0
"""What the possibility of one far value costs a bound, in units of that value over n."""
_BATCH = 50_000


@dataclass(frozen=True)
class Payoff:
    """A clipped critic.

    Attributes
    ----------
    critic : Critic
    prior : float64 array of shape (k,)
        The guess p̂ of the label shares, inside (0, 1).
    reach : float64 array of shape (k,)
        How far each label's log-odds may stray from those of its share; NaN for a label whose
        term, never negative, is left out.
    """

    critic: Critic
    prior: FloatArray
    reach: FloatArray

    @classmethod
    def fit(cls, critic: Critic, tuning: HeldOut, n: int) -> "Payoff":
        """Choose each label's reach as the one that promises the largest bound on n rows.

        The farther, the larger the mean of the label's part of V, but also its spread and range.
        """
        scores = critic.log_odds(tuning.posterior, tuning.released)
        k = len(tuning.prior)
        reach, best = np.full(k, np.nan), np.zeros(k)
        for y in range(k):
            is_label, share = tuning.labels == y, tuning.prior[y]
            constant = share_term(share) - share_slope(share) * share
            for candidate in _REACHES:
                part = _part(scores[:, y], is_label, share, candidate)
                most = share / (1 - share) * np.exp(candidate)
                promise = part.mean() + constant - margin(part, most, n)
                if promise > best[y]:
                    reach[y], best[y] = candidate, promise
        return cls(critic, tuning.prior, reach)

    @property
    def kept(self) -> BoolArray:
        """The labels whose terms are used, bool of shape (k,)."""
        return np.isfinite(self.reach)

    @property
    def constant(self) -> float:
        """Σ_y (g(p̂_y) − g′(p̂_y) p̂_y): the rest of the bound if the guessed shares were right."""
        p = self.prior[self.kept]
        return float((share_term(p) - share_slope(p) * p).sum())

    def values(self, data: HeldOut) -> FloatArray:
        """Return V of each row, float64 of shape (n,)."""
        parts = [slice(start, start + _BATCH) for start in range(0, len(data), _BATCH)]
        return np.concatenate([self._of_batch(data.take(part)) for part in parts])

    def _of_batch(self, data: HeldOut) -> FloatArray:
        scores = self.critic.log_odds(data.posterior, data.released)
        value = np.zeros(len(data))
        for y in np.flatnonzero(self.kept):
            value += _part(scores[:, y], data.labels == y, self.prior[y], self.reach[y])
        return value

    def range(self) -> tuple[float, float]:
        """Return bounds of V for every possible row.

        A row pays the odds of all labels but its own. If they come from one posterior, at most one
        exceeds 1 and the others together are at most 2; lifting them to the clip's floor adds
        little.
        """
        if not self.kept.any():
            return 0.0, 0.0
        p, reach = self.prior[self.kept], self.reach[self.kept]
        gain = logit(p) + 1 + share_slope(p)
        ceiling, floor = p / (1 - p) * np.exp(reach), p / (1 - p) * np.exp(-reach)
        table = self.critic.largest_odds()
        if table is None:
            most = min(float(ceiling.sum()), float(ceiling.max() + 2 + floor.sum()))
        else:
            most = float(np.clip(table[self.kept], floor, ceiling).sum())
        return min(0.0, float((gain - reach).min())) - most, max(0.0, float((gain + reach).max()))


def margin(values: FloatArray, most: float, n: int) -> float:
    """Return about how far below its mean a variable like this is bounded by n values.

    ``most`` is the largest loss that one value could bring; values so rare that the tuning rows
    lack them still cost, because bets must survive them.
    """
    return float(_ERRORS * values.std() / np.sqrt(n) + _RANGE_COST * most / n)


def share_term(p: FloatArray) -> FloatArray:
    """Return g(p) = −p logit p, 0 at 0 and −∞ at 1."""
    return np.asarray(xlogy(p, 1 - p) - xlogy(p, p))


def share_slope(p: FloatArray) -> FloatArray:
    """Return g′(p) = −logit p − 1/(1 − p)."""
    return np.asarray(-logit(p) - 1 / (1 - p))


def _part(scores: FloatArray, is_label: BoolArray, share: float, reach: float) -> FloatArray:
    """Return one label's part of V."""
    centre = float(logit(share))
    psi = np.clip(scores, centre - reach, centre + reach)
    slope = float(share_slope(np.array(share)))
    return np.asarray(np.where(is_label, psi + 1 + slope, -np.exp(psi)))
