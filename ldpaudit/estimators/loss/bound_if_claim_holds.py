"""A lower bound on E[ν] that takes a claimed channel for true, and so needs no true labels.

If the released label depends on the true label alone, through a known channel T, then for every
function h of (y, x, z) and any A with TA = I

    E[h(Y, X, Z)] = E[Σ_y A[Z, y] Σ_z T[y, z] h(y, X, z)],

because E[A[Z, y] | X] = P(Y = y | X). An outsider can average the right side. With h the payoff of
:mod:`ldpaudit.estimators.loss.mean_loss` this bounds E[ν] from below, provided that the
claim is true: the bound is "estimated", never certified. An insider puts
1{Y = y} in the place of A[Z, y].
"""

import math
from dataclasses import dataclass

import numpy as np

from ldpaudit.errors import InsufficientDataError
from ldpaudit.estimators.intervals.bounded_mean import mean_lower
from ldpaudit.estimators.loss.instance_loss import PosteriorBox, centred_inverse
from ldpaudit.estimators.loss.mean_loss import margin, share_slope, share_term
from ldpaudit.models.corrections import onto_simplex
from ldpaudit.release import BoolArray, FloatArray, IntArray

_FEWEST_ROWS = 100
# The least posterior of a label, as a share of its prior, that is tried.
_FLOORS = np.exp(-np.arange(1.0, 9.01))
_HIGHEST = 30.0


@dataclass(frozen=True)
class ClaimedLossBound:
    """Payoffs of held-out rows, each averaged over its released label under the claim.

    Attributes
    ----------
    values : float64 array of shape (n,)
    low, high : float
        Bounds of the values that follow from the tuning rows.
    released_counts : int32 array of shape (m,)
        Held-out rows of each released label.
    prior : float64 array of shape (k,)
        The guess of the true labels' shares.
    kept : bool array of shape (k,)
        Labels whose terms are used; the others', never negative, are left out.
    channel : float64 array of shape (k, m)
        The claim.
    """

    values: FloatArray
    low: float
    high: float
    released_counts: IntArray
    prior: FloatArray
    kept: BoolArray
    channel: FloatArray

    def at(self, alpha: float) -> float:
        """Return the bound, in nats, at error probability ``alpha`` if the claim is true."""
        spent = 0.02 * alpha
        total = np.array([self.released_counts.sum()], dtype=np.int32)
        box = PosteriorBox.from_counts(self.released_counts[None], total, spent)
        box = box.through(self.channel)
        ends = np.stack([box.low[0], box.high[0]])[:, self.kept]
        shares = (share_term(ends) - share_slope(self.prior[self.kept]) * ends).min(axis=0).sum()
        if not self.kept.any():
            return 0.0
        return max(0.0, mean_lower(self.values, alpha - spent, self.low, self.high) + float(shares))


def claimed_mean_loss(
    released_posterior: FloatArray,
    released: IntArray,
    channel: FloatArray,
    prior: FloatArray,
    *,
    rng: np.random.Generator,
) -> ClaimedLossBound:
    """Prepare the outsider's lower bound on E[ν].

    Parameters
    ----------
    released_posterior : float64 array of shape (n, m)
        P(z | x) of held-out rows by a model of other rows.
    released : int32 array of shape (n,)
        Their released labels.
    channel : float64 array of shape (k, m)
        The claimed P(z | y), of rank k.
    prior : float64 array of shape (k,)
        True labels' shares as the other rows give them, inside (0, 1).
    rng : numpy.random.Generator
        Picks the tuning rows, a tenth, and thins the rest where labels are very many.

    Returns
    -------
    ClaimedLossBound

    Raises
    ------
    InsufficientDataError
        If there are fewer than 100 rows.
    InputError
        If the channel loses a label.
    """
    n = len(released)
    if n < _FEWEST_ROWS:
        raise InsufficientDataError(f"The bound on E[ν] needs at least 100 held-out rows, got {n}.")
    order = rng.permutation(n)[: max(_FEWEST_ROWS, 200_000_000 // channel.size)]
    first = int(0.1 * len(order))
    tuning, test = order[:first], np.sort(order[first:])
    game = _Averaged.of(channel, prior, len(test))
    floor = game.best_floor(released_posterior[tuning], released[tuning])
    values = game.values(released_posterior[test], released[test], floor)
    counts = np.bincount(released[test], minlength=channel.shape[1]).astype(np.int32)
    low, high = game.range(floor)
    return ClaimedLossBound(values, low, high, counts, prior, game.kept, channel)


@dataclass(frozen=True)
class _Averaged:
    channel: FloatArray
    prior: FloatArray
    inverse: FloatArray
    offset: FloatArray
    kept: BoolArray

    @classmethod
    def of(cls, channel: FloatArray, prior: FloatArray, n: int) -> "_Averaged":
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

    def _amplification(self) -> FloatArray:
        seen = self.channel[:, self.channel.max(axis=0) > 0]
        if (seen == 0).any():
            return np.full(len(seen), np.inf)
        return np.asarray((seen @ (seen / seen.min(axis=0)).T).max(axis=1))

    def range(self, floor: float) -> tuple[float, float]:
        """Return bounds of the values.

        Averaged over z, a label y pays at most (1 − η_y)/η_y, and at most Σ_j R_yj η_j/(1 − η_j)
        with R_yj = Σ_z T[y,z] T[j,z]/min_l T[l,z]; only one of these odds can exceed 1, and the
        others are at most 2 together.
        """
        gain = 1 + share_slope(self.prior)
        least = floor * self.prior / (1 + floor)
        odds = (1 + floor) / (floor * (1 - self.prior.max()))
        paid = np.minimum(1 / least, self._amplification() * (odds + 2))
        low = np.where(self.kept, gain + np.log(least) - _HIGHEST, 0.0) - paid
        high = np.where(self.kept, gain + _HIGHEST, 0.0)
        ends = np.stack([self.weights * low, self.weights * high])
        return float(ends.min(axis=0).sum(axis=1).min()), float(ends.max(axis=0).sum(axis=1).max())
