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

An outsider has no true labels, but may take a claimed channel T for true. If the released label
depends on the true label alone, through T, then for every function h of (y, x, z) and any A with
TA = I

    E[h(Y, X, Z)] = E[Σ_y A[Z, y] Σ_z T[y, z] h(y, X, z)],

because E[A[Z, y] | X] = P(Y = y | X). The right side can be averaged without true labels; with h
the payoff V it bounds E[ν] from below, provided that the claim is true: the bound is "estimated",
never certified. An insider puts 1{Y = y} in the place of A[Z, y].

References
----------
Donsker & Varadhan (1975) and, in the form used here, Nguyen, Wainwright, Jordan (2010), Estimating
divergence functionals and the likelihood ratio by convex risk minimization, Eq. (9).
Busa-Fekete et al. (2023), Corollary 6.3: E[ν] bounds the label-Rényi divergence from below.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import logit, xlogy

from ldpaudit.error_budget import MEAN_LOSS
from ldpaudit.errors import InsufficientDataError
from ldpaudit.estimators.instance_loss import PosteriorBox, centred_inverse
from ldpaudit.estimators.intervals.binomial import clopper_pearson_lower, clopper_pearson_upper
from ldpaudit.estimators.intervals.bounded_mean import mean_lower
from ldpaudit.models.corrections import onto_simplex
from ldpaudit.release import BoolArray, FloatArray, IndexArray, IntArray

_REACHES = np.arange(0.5, 12.01, 0.5)
_FEWEST_ROWS = 100
# The least posterior of a label, as a share of its prior, that is tried without true labels.
_FLOORS = np.exp(-np.arange(1.0, 9.01))
_HIGHEST = 30.0


@dataclass(frozen=True)
class HeldOut:
    """Rows that no model has seen, and what the fitting rows say about them."""

    posterior: FloatArray
    """Float64 array of shape (n, k): P(y | x) of the held-out rows by a model of the fitting rows,
    positive."""
    labels: IntArray
    released: IntArray
    """``labels`` and ``released``: int32 arrays of shape (n,): the held-out rows' true and released
    labels."""
    prior: FloatArray
    """Float64 array of shape (k,): label shares among the fitting rows, inside (0, 1)."""
    channel: FloatArray
    """Float64 array of shape (k, m): P(z | y) measured on the fitting rows, positive."""

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
    """V: log-odds of a model, cut at bounds that were fixed on other rows."""

    prior: FloatArray
    """Float64 array of shape (k,): the guess p̂ of the label shares, inside (0, 1)."""
    reach: FloatArray
    """Float64 array of shape (k,): how far each label's log-odds may stray from those of its share;
    NaN for a label whose term, never negative, is left out."""

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

    def values(self, data: HeldOut) -> FloatArray:
        """Return V of each row, float64 of shape (n,)."""
        value = np.zeros(len(data))
        for start in range(0, len(data), 50_000):
            rows = slice(start, start + 50_000)
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
class AveragedPayoff:
    """V averaged over the true label, given the released one, under a claimed channel (k, m)."""

    channel: FloatArray
    prior: FloatArray
    inverse: FloatArray
    offset: FloatArray
    """``inverse`` and ``offset``: of :func:`centred_inverse`."""
    kept: BoolArray
    """Bool (k,): labels whose terms are used."""

    @classmethod
    def of(cls, channel: FloatArray, prior: FloatArray, n: int) -> "AveragedPayoff":
        """Keep labels whose share n released labels can tell from none."""
        inverse, offset = centred_inverse(channel)
        seen = prior @ channel
        error = np.sqrt((seen * (1 - seen)) @ inverse**2 / n)
        # A label is kept if its share is this many standard errors.
        return cls(channel, prior, inverse, offset, prior > 6.0 * error)

    @property
    def weights(self) -> FloatArray:
        """A with the offset put back: float64 of shape (m, k), TA = I."""
        return self.inverse + self.offset

    def best_floor(self, posterior: FloatArray, released: IntArray) -> float:
        """Return the floor with the best bound on as many rows as these.

        With a low floor the mean of the tuning rows is large by luck now and then; their own
        margin guards against that.
        """
        promises = []
        for floor in _FLOORS:
            values = self.values(posterior, released, floor)
            promises.append(values.mean() - margin(values, -self.range(floor)[0], len(values)))
        return float(_FLOORS[int(np.argmax(promises))])

    def values(self, posterior: FloatArray, released: IntArray, floor: float) -> FloatArray:
        """Return V of rows with P(z | x) by a model (n, m) and their released labels (n,)."""
        result = np.empty(len(released))
        batch = max(1, 4_000_000 // self.channel.size)
        for start in range(0, len(result), batch):
            rows = slice(start, start + batch)
            table = self._label_payoffs(posterior[rows], floor)
            result[rows] = (self.weights[released[rows]] * table).sum(axis=1)
        return result

    def _label_payoffs(self, posterior: FloatArray, floor: float) -> FloatArray:
        eta = onto_simplex(self.offset + posterior @ self.inverse)
        eta = np.maximum(eta, floor * self.prior)
        eta /= eta.sum(axis=1, keepdims=True)
        rows = self.channel[self.kept]
        joint = eta[:, self.kept, None] * rows
        others = np.maximum((eta @ self.channel)[:, None, :] - joint, math.exp(-_HIGHEST) * joint)
        odds = np.divide(joint, others, out=np.zeros_like(joint), where=joint > 0)
        logs = np.log(np.where(odds > 0, odds, 1.0))
        payoffs = -odds.sum(axis=1) @ self.channel.T
        gain = 1 + share_slope(self.prior[self.kept])
        payoffs[:, self.kept] += gain + (rows * (logs + odds)).sum(axis=2)
        return np.asarray(payoffs)

    def range(self, floor: float) -> tuple[float, float]:
        """Return bounds of the values.

        Averaged over z, a label y pays at most (1 − η_y)/η_y, and at most Σ_j R_yj η_j/(1 − η_j)
        with R_yj = Σ_z T[y,z] T[j,z]/min_l T[l,z]; only one of these odds can exceed 1, and the
        others are at most 2 together.
        """
        gain = 1 + share_slope(self.prior)
        least = floor * self.prior / (1 + floor)
        odds = (1 + floor) / (floor * (1 - self.prior.max()))
        seen = self.channel[:, self.channel.max(axis=0) > 0]
        with np.errstate(divide="ignore", invalid="ignore"):
            amplified = (seen @ (seen / seen.min(axis=0)).T).max(axis=1)
        amplified = np.where((seen == 0).any(), np.inf, amplified)
        paid = np.minimum(1 / least, amplified * (odds + 2))
        low = np.where(self.kept, gain + np.log(least) - _HIGHEST, 0.0) - paid
        high = np.where(self.kept, gain + _HIGHEST, 0.0)
        ends = np.stack([self.weights * low, self.weights * high])
        return float(ends.min(axis=0).sum(axis=1).min()), float(ends.max(axis=0).sum(axis=1).max())


@dataclass(frozen=True)
class MeanLossBound:
    """Payoffs on rows that played no part in their choice."""

    values: FloatArray
    """Float64 array of shape (n,): V of each row; of an outsider averaged over the released label
    under the claim."""
    ends: tuple[float, float]
    """Bounds of V for every possible row, fixed before these rows were looked at."""
    prior: FloatArray
    """Float64 array of shape (k',): the guess of the shares of the labels whose terms are used; the
    others' are never negative."""
    shares: Callable[[float], FloatArray]
    """From an error probability to both ends of the intervals of these shares, shape (2, k')."""

    def at(self, alpha: float) -> float:
        """Return the lower bound on E[ν], in nats, at one-sided error probability ``alpha``.

        The shares' part is Σ_y (g(p_y) − g′(p̂_y) p_y): each summand is concave in p_y, so it is
        least at an end of the interval of p_y. The intervals have their share of ``alpha``.
        """
        if not len(self.prior):
            return 0.0
        spent = MEAN_LOSS.of(alpha, "labels")
        ends = self.shares(spent)
        rest = (share_term(ends) - share_slope(self.prior) * ends).min(axis=0).sum()
        return max(0.0, mean_lower(self.values, alpha - spent, *self.ends) + float(rest))

    @property
    def centre(self) -> float:
        """The bound without its margin: estimates a number that is at most E[ν]."""
        rest = share_term(self.prior) - share_slope(self.prior) * self.prior
        return max(0.0, float(self.values.mean() + rest.sum()))


def _tuned(n: int, most: int, rng: np.random.Generator) -> tuple[IndexArray, IndexArray]:
    """Return a tenth of the rows to tune on, and the others in order; at most so many in all."""
    if n < _FEWEST_ROWS:
        raise InsufficientDataError(f"The bound on E[ν] needs at least 100 held-out rows, got {n}.")
    order = rng.permutation(n)[: max(_FEWEST_ROWS, most)]
    first = int(0.1 * len(order))
    return order[:first], np.sort(order[first:])


def certified_mean_loss(data: HeldOut, *, rng: np.random.Generator) -> MeanLossBound:
    """Prepare the lower bound on E[ν] by a model's log-odds; ``rng`` picks a tenth to tune on.

    Raise InsufficientDataError if there are fewer than 100 held-out rows.
    """
    tuning, rest = _tuned(len(data), len(data), rng)
    test = data.take(rest)
    payoff = Payoff.fit(data.take(tuning), len(test))
    counts = np.bincount(test.labels, minlength=len(test.prior))[payoff.kept]

    def shares(error: float) -> FloatArray:
        ends, tail = (clopper_pearson_lower, clopper_pearson_upper), error / (2 * len(counts))
        return np.stack([end(counts, len(test), tail) for end in ends])

    prior = payoff.prior[payoff.kept]
    return MeanLossBound(payoff.values(test), payoff.range(), prior, shares)


def claimed_mean_loss(
    released_posterior: FloatArray,
    released: IntArray,
    channel: FloatArray,
    prior: FloatArray,
    *,
    rng: np.random.Generator,
) -> MeanLossBound:
    """Prepare the outsider's lower bound on E[ν], of a claimed channel (k, m) of rank k.

    ``released_posterior``, float64 (n, m): P(z | x) of held-out rows by a model of other rows;
    ``prior``, float64 (k,): true labels' shares as the other rows give them, inside (0, 1).
    ``rng`` picks the tuning rows, a tenth, and thins the rest where labels are very many. Raise
    InsufficientDataError below 100 rows, InputError if the channel loses a label.
    """
    tuning, test = _tuned(len(released), 200_000_000 // channel.size, rng)
    game = AveragedPayoff.of(channel, prior, len(test))
    floor = game.best_floor(released_posterior[tuning], released[tuning])
    values = game.values(released_posterior[test], released[test], floor)
    counts = np.bincount(released[test], minlength=channel.shape[1]).astype(np.int32)
    shares = claimed_shares(counts, channel, game.kept)
    return MeanLossBound(values, game.range(floor), prior[game.kept], shares)


def claimed_shares(
    counts: IntArray, channel: FloatArray, kept: BoolArray
) -> Callable[[float], FloatArray]:
    """Return the intervals of true labels' shares that released labels' counts (m,) give."""

    def shares(error: float) -> FloatArray:
        box = PosteriorBox.from_counts(counts[None], counts.sum(keepdims=True), error)
        box = box.through(channel)
        return np.stack([box.low[0], box.high[0]])[:, kept]

    return shares
