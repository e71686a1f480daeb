"""Certified lower bounds on E[ν] = Σ_y p_y KL(P_y ‖ P_{¬y}), the mean instance-based loss.

P_y is the distribution of features and released label (x, z) under the true label y, P_{¬y} that
under all other labels. The only assumption is that rows are independent.

With q_y = p_y P_y the mean loss is Σ_y ∫ q_y log(q_y/q_{¬y}) + Σ_y g(p_y), g(p) = −p logit p, and
for any fixed ψ, from log t ≤ t − 1,

    ∫ q_y log(q_y/q_{¬y}) ≥ E[1{Y=y}(ψ_y + 1) − 1{Y≠y} e^{ψ_y}],

with equality at the true log-odds ψ_y. Summed over y the right side is the mean of one bounded
variable V of a row, so one bound for one mean suffices. g is expanded at a guess of p_y from other
rows: its tangent joins V, and what it loses against its tangent is bounded by an interval for p_y.
To the first order V has the variance of the efficient estimator, so no other way of bounding the
expectations one by one can be much tighter with the same ψ.

References
----------
Donsker & Varadhan (1975) and, in the form used here, Nguyen, Wainwright, Jordan (2010), Estimating
divergence functionals and the likelihood ratio by convex risk minimization, Eq. (9).
Busa-Fekete et al. (2023), Corollary 6.3: E[ν] bounds the label-Rényi divergence from below.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from ldpaudit.errors import InsufficientDataError
from ldpaudit.estimators.intervals.binomial import clopper_pearson_lower, clopper_pearson_upper
from ldpaudit.estimators.intervals.bounded_mean import mean_lower
from ldpaudit.estimators.loss.critic import CellCritic, Critic, HeldOut, ModelCritic
from ldpaudit.estimators.loss.payoff import Payoff, margin, share_slope, share_term
from ldpaudit.release import FloatArray, IndexArray

_TUNING_SHARE = 0.1
_FEWEST_ROWS = 100
_TRUSTS = (10.0, 50.0, 250.0, 1000.0)
_PRIOR_SHARE = 0.02
"""The part of the error probability that the intervals of the label shares get."""

_Fit = Callable[[HeldOut], Critic]


@dataclass(frozen=True)
class MeanLossBound:
    """Payoffs on rows that played no part in their choice.

    Attributes
    ----------
    payoff : Payoff
        Fixed before these rows were looked at.
    values : float64 array of shape (n,)
        V of each row.
    counts : int64 array of shape (k,)
        Rows of each label.
    foreseen : float
        The bound at confidence 95 % that the tuning rows promised, to choose between critics.
    doubt : float
        The standard error of that promise.
    """

    payoff: Payoff
    values: FloatArray
    counts: IndexArray
    foreseen: float
    doubt: float

    def at(self, alpha: float) -> float:
        """Return the lower bound on E[ν], in nats, at one-sided error probability ``alpha``."""
        if not self.payoff.kept.any():
            return 0.0
        spent = _PRIOR_SHARE * alpha
        mean = mean_lower(self.values, alpha - spent, *self.payoff.range())
        return max(0.0, mean + self._shares_part(spent))

    @property
    def centre(self) -> float:
        """The bound without its margin: estimates a number that is at most E[ν]."""
        return max(0.0, float(self.values.mean()) + self.payoff.constant)

    def _shares_part(self, alpha: float) -> float:
        """Return a lower bound of Σ_y (g(p_y) − g′(p̂_y) p_y).

        Each summand is concave in p_y, so it is least at an end of the interval of p_y.
        """
        used = self.payoff.kept
        counts, n = self.counts[used], int(self.counts.sum())
        tail = alpha / (2 * len(counts))
        low, high = clopper_pearson_lower(counts, n, tail), clopper_pearson_upper(counts, n, tail)
        ends = np.stack([low, high])
        slope = share_slope(self.payoff.prior[used])
        return float((share_term(ends) - slope * ends).min(axis=0).sum())


def certified_mean_loss(data: HeldOut, *, rng: np.random.Generator) -> dict[str, MeanLossBound]:
    """Prepare lower bounds on E[ν] by score cells and by a model's own log-odds.

    Parameters
    ----------
    data : HeldOut
    rng : numpy.random.Generator
        Picks the tuning rows, a tenth.

    Returns
    -------
    dict of str to MeanLossBound
        Under "cells" and "donsker-varadhan". Each bound holds at its level alone.
        :func:`strongest` names the one to report, without any correction.

    Raises
    ------
    InsufficientDataError
        If there are fewer than 100 held-out rows.
    """
    n = len(data)
    if n < _FEWEST_ROWS:
        raise InsufficientDataError(f"The bound on E[ν] needs at least 100 held-out rows, got {n}.")
    order = rng.permutation(n)
    first = int(_TUNING_SHARE * n)
    tuning, test = data.take(order[:first]), data.take(np.sort(order[first:]))
    families: dict[str, list[_Fit]] = {
        "donsker-varadhan": [lambda rows: ModelCritic(rows.channel)],
        "cells": [partial(CellCritic.fit, trust=trust) for trust in _TRUSTS],
    }
    return {name: _bound(fits, tuning, test) for name, fits in families.items()}


def strongest(bounds: dict[str, MeanLossBound]) -> str:
    """Return the name of the bound that the tuning rows promise to be larger.

    The choice looks at tuning rows only, so the chosen bound keeps its full level. The model's own
    log-odds are preferred unless cells promise a standard error more: cells were chosen from
    several, so the best of them promises too much.
    """
    model, cells = bounds["donsker-varadhan"], bounds["cells"]
    return "cells" if cells.foreseen > model.foreseen + model.doubt else "donsker-varadhan"


def _bound(fits: list[_Fit], tuning: HeldOut, test: HeldOut) -> MeanLossBound:
    """Choose among the fits by cross-validation within the tuning rows and apply the best."""
    promises = [_foreseen(fit, tuning, len(test)) for fit in fits]
    best = int(np.argmax(promises))
    payoff = Payoff.fit(fits[best](tuning), tuning, len(test))
    counts = np.bincount(test.labels, minlength=len(test.prior)).astype(np.int64)
    doubt = float(payoff.values(tuning).std() / np.sqrt(len(tuning)))
    return MeanLossBound(payoff, payoff.values(test), counts, promises[best], doubt)


def _foreseen(fit: _Fit, tuning: HeldOut, n: int) -> float:
    """Return the bound on n rows that fits on half of the tuning rows promise on the others."""
    middle = len(tuning) // 2
    halves = tuning.take(slice(middle)), tuning.take(slice(middle, None))
    total = 0.0
    for one, other in (halves, halves[::-1]):
        payoff = Payoff.fit(fit(one), one, n)
        values = payoff.values(other)
        total += float(values.mean()) - margin(values, -payoff.range()[0], n) + payoff.constant
    return total / 2
