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

from dataclasses import dataclass

import numpy as np
from scipy.special import logit, xlogy

from ldpaudit.errors import InsufficientDataError
from ldpaudit.estimators.intervals.binomial import clopper_pearson_lower, clopper_pearson_upper
from ldpaudit.estimators.intervals.bounded_mean import mean_lower
from ldpaudit.release import BoolArray, FloatArray, IndexArray, IntArray

_REACHES = np.arange(0.5, 12.01, 0.5)
_BATCH = 50_000
_FEWEST_ROWS = 100


@dataclass(frozen=True)
class HeldOut:
    """Rows that no model has seen, and what the fitting rows say about them.

    Attributes
    ----------
    posterior : float64 array of shape (n, k)
        P(y | x) of the held-out rows by a model of the fitting rows, positive.
    labels, released : int32 arrays of shape (n,)
        The held-out rows' true and released labels.
    prior : float64 array of shape (k,)
        Label shares among the fitting rows, inside (0, 1).
    channel : float64 array of shape (k, m)
        P(z | y) measured on the fitting rows, positive.
    """

    posterior: FloatArray
    labels: IntArray
    released: IntArray
    prior: FloatArray
    channel: FloatArray

    def __len__(self) -> int:
        """Return the number of rows n."""
        return len(self.labels)

    def take(self, rows: IndexArray | slice) -> "HeldOut":
        """Return the given rows."""
        return HeldOut(
            self.posterior[rows], self.labels[rows], self.released[rows], self.prior, self.channel
        )

    def log_odds(self) -> FloatArray:
        """Return the model's log of η_y T[y,z] / Σ_{j≠y} η_j T[j,z], float64 of shape (n, k)."""
        weights = self.posterior * self.channel.T[self.released]
        others = weights.sum(axis=1, keepdims=True) - weights
        return np.asarray(np.log(weights) - np.log(np.maximum(others, 1e-9 * weights)))


@dataclass(frozen=True)
class Payoff:
    """V: log-odds of a model, cut at bounds that were fixed on other rows.

    Attributes
    ----------
    prior : float64 array of shape (k,)
        The guess p̂ of the label shares, inside (0, 1).
    reach : float64 array of shape (k,)
        How far each label's log-odds may stray from those of its share; NaN for a label whose
        term, never negative, is left out.
    """

    prior: FloatArray
    reach: FloatArray

    @classmethod
    def fit(cls, tuning: HeldOut, n: int) -> "Payoff":
        """Choose each label's reach as the one that promises the largest bound on n rows.

        The farther, the larger the mean of the label's part of V, but also its spread and range.
        """
        scores, k = tuning.log_odds(), len(tuning.prior)
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
        return cls(tuning.prior, reach)

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
        value = np.zeros(len(data))
        for start in range(0, len(data), _BATCH):
            rows = slice(start, start + _BATCH)
            scores = data.take(rows).log_odds()
            for y in np.flatnonzero(self.kept):
                is_label = data.labels[rows] == y
                value[rows] += _part(scores[:, y], is_label, self.prior[y], self.reach[y])
        return value

    def range(self) -> tuple[float, float]:
        """Return bounds of V for every possible row.

        A row pays the odds of all labels but its own. They come from one posterior, so at most one
        exceeds 1 and the others together are at most 2; lifting them to the clip's floor adds
        little.
        """
        if not self.kept.any():
            return 0.0, 0.0
        p, reach = self.prior[self.kept], self.reach[self.kept]
        gain = logit(p) + 1 + share_slope(p)
        ceiling, floor = p / (1 - p) * np.exp(reach), p / (1 - p) * np.exp(-reach)
        most = min(float(ceiling.sum()), float(ceiling.max() + 2 + floor.sum()))
        return min(0.0, float((gain - reach).min())) - most, max(0.0, float((gain + reach).max()))


def margin(values: FloatArray, most: float, n: int) -> float:
    """Return about how far below its mean a variable like this is bounded by n values.

    ``most`` is the largest loss that one value could bring; values so rare that the tuning rows
    lack them still cost, because bets must survive them.
    """
    # The distance in standard errors that is expected between a mean and its bound at 95 %.
    # What the possibility of one far value costs a bound, in units of that value over n.
    return float(1.8 * values.std() / np.sqrt(n) + 3.0 * most / n)


def share_term(p: FloatArray) -> FloatArray:
    """Return g(p) = −p logit p, 0 at 0 and −∞ at 1."""
    return np.asarray(xlogy(p, 1 - p) - xlogy(p, p))


def share_slope(p: FloatArray) -> FloatArray:
    """Return g′(p) = −logit p − 1/(1 − p)."""
    return np.asarray(-logit(p) - 1 / (1 - p))


def _part(scores: FloatArray, is_label: BoolArray, share: float, reach: float) -> FloatArray:
    centre = float(logit(share))
    psi = np.clip(scores, centre - reach, centre + reach)
    slope = float(share_slope(np.array(share)))
    return np.asarray(np.where(is_label, psi + 1 + slope, -np.exp(psi)))


@dataclass(frozen=True)
class MeanLossBound:
    """Payoffs on rows that played no part in their choice.

    ``payoff`` was fixed before these rows were looked at; ``values``, float64 (n,), is V of each of
    them, and ``counts``, int64 (k,), how many have each label.
    """

    payoff: Payoff
    values: FloatArray
    counts: IndexArray

    def at(self, alpha: float) -> float:
        """Return the lower bound on E[ν], in nats, at one-sided error probability ``alpha``.

        The shares' part is Σ_y (g(p_y) − g′(p̂_y) p_y): each summand is concave in p_y, so it is
        least at an end of the interval of p_y.
        """
        # The part of the error probability that the intervals of the label shares get.
        used, spent = self.payoff.kept, 0.02 * alpha
        if not used.any():
            return 0.0
        counts, n = self.counts[used], int(self.counts.sum())
        tail = spent / (2 * len(counts))
        low, high = clopper_pearson_lower(counts, n, tail), clopper_pearson_upper(counts, n, tail)
        ends, slope = np.stack([low, high]), share_slope(self.payoff.prior[used])
        shares = float((share_term(ends) - slope * ends).min(axis=0).sum())
        return max(0.0, mean_lower(self.values, alpha - spent, *self.payoff.range()) + shares)

    @property
    def centre(self) -> float:
        """The bound without its margin: estimates a number that is at most E[ν]."""
        return max(0.0, float(self.values.mean()) + self.payoff.constant)


def certified_mean_loss(data: HeldOut, *, rng: np.random.Generator) -> MeanLossBound:
    """Prepare the lower bound on E[ν] by a model's log-odds; ``rng`` picks a tenth to tune on.

    Raises
    ------
    InsufficientDataError
        If there are fewer than 100 held-out rows.
    """
    n = len(data)
    if n < _FEWEST_ROWS:
        raise InsufficientDataError(f"The bound on E[ν] needs at least 100 held-out rows, got {n}.")
    order, first = rng.permutation(n), int(0.1 * n)
    test = data.take(np.sort(order[first:]))
    payoff = Payoff.fit(data.take(order[:first]), len(test))
    counts = np.bincount(test.labels, minlength=len(test.prior)).astype(np.int64)
    return MeanLossBound(payoff, payoff.values(test), counts)
