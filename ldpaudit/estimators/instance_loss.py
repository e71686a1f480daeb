"""The instance-based privacy loss ν: how much one released row says about one person's label.

ν(y, z, x) is the log-odds of "the true label is y" given the features x and the released label z,
minus the log-odds of y before the release. All losses are in nats. Without a channel only the
features' part remains: what x alone says.

J(τ) = P(ν ≥ τ) is the share of people who lose at least τ nats. Its lower bound follows the
theorem's proof with exact binomial intervals in place of its Chernoff bound, and with the branches
of H as they are (its Eq. (14) lacks a factor 1/n and takes the same branch twice). Each query's
loss is bounded from below with error probability δ′ ≤ γs over the index labels, so by Markov's
inequality at most a share s of all people have a wrong bound, with probability at least 1 − γ.
Independent queries then give a binomial count.

References
----------
Busa-Fekete, Muñoz Medina, Syed, Vassilvitskii (2023), "Label differential privacy and private
training data release", section 6 and appendix D. Two statements are corrected here: the first
denominator of Eq. (2) is P(z | 1 − y), and the loss of two labels is symmetric around η = 1/2, and
least there, only when these are equally frequent. Theorem 6.6 and Lemmas D.2–D.6 there bound J(τ).
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import logit, rel_entr
from scipy.stats import beta

from ldpaudit.error_budget import EXCEEDANCE
from ldpaudit.errors import InputError
from ldpaudit.estimators.intervals.binomial import clopper_pearson_lower, trials_lower, trials_upper
from ldpaudit.models.corrections import onto_simplex
from ldpaudit.release import FloatArray, IndexArray, IntArray

_FEW_DIGITS = 1e-4


def mean_loss(posterior: FloatArray, prior: FloatArray, channel: FloatArray | None) -> FloatArray:
    """Return ν(x) = E[ν(Y, Z, x) | x] for each posterior, in nats.

    Parameters
    ----------
    posterior : float64 array of shape (n, k)
        η(x), rows summing to 1.
    prior : float64 array of shape (k,)
        P(Y = y), positive.
    channel : float64 array of shape (k, m) or None
        P(z | y), the same for all x; None for the features' part alone.

    Returns
    -------
    float64 array of shape (n,)
        ν(y, z, x) is one-versus-rest (the log-odds of y against all other labels together) and
        averaged over Y and Z given x; for two labels that is the paper's definition. A sum of terms
        a log(a/b) with a and b linear in η, so convex; infinite where a label is certain.

    References
    ----------
    Lemma D.1, for any channel and number of labels.
    """
    posterior, k = np.asarray(posterior, dtype=np.float64), posterior.shape[1]
    matrix = np.ones((k, 1)) if channel is None else np.asarray(channel, dtype=np.float64)
    result = -(posterior @ logit(np.asarray(prior)))
    batch = max(1, 4_000_000 // matrix.shape[1])
    for start in range(0, len(posterior), batch):
        part = posterior[start : start + batch]
        every = part @ matrix
        for y in range(k):
            own = part[:, y, None] * matrix[y]
            others = every - own
            # Where little is left the difference has few digits.
            few = (others < _FEW_DIGITS * every).any(axis=1)
            others[few] = np.delete(part[few], y, axis=1) @ np.delete(matrix, y, axis=0)
            result[start : start + batch] += rel_entr(own, others).sum(1)
    return np.asarray(result)


def row_loss(
    posterior: FloatArray,
    labels: IntArray,
    released: IntArray,
    prior: FloatArray,
    channel: FloatArray | None,
) -> FloatArray:
    """Return ν(y_i, z_i, x_i) for each row, in nats.

    Parameters
    ----------
    posterior : float64 array of shape (n, k)
        η(x_i).
    labels, released : int32 arrays of shape (n,)
        True label y_i and released label z_i; ``released`` is not looked at without a channel.
    prior : float64 array of shape (k,)
    channel : float64 array of shape (k, m) or None

    Returns
    -------
    float64 array of shape (n,)
        log η_y T[y,z] − log Σ_{j≠y} η_j T[j,z] − logit p_y; for two labels Theorem 6.4 (with its
        misprint corrected). Infinite where (x, z) leave one label only; 0 where the channel
        excludes z, whatever the label is.
    """
    rows = np.arange(len(posterior))
    weights = np.array(posterior, dtype=np.float64)
    if channel is not None:
        weights *= np.asarray(channel, dtype=np.float64).T[released]
    weight = weights[rows, labels]
    weights[rows, labels] = 0
    rest = weights.sum(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        losses = np.log(weight) - np.log(rest) - logit(np.asarray(prior))[labels]
    return np.where((weight > 0) | (rest > 0), losses, 0.0)


def features_mean(posterior: FloatArray, prior: FloatArray) -> float:
    """Return the features' part of E[ν]: the mean of ν(x) without a channel, in nats."""
    return float(mean_loss(posterior, prior, None).mean())


def label_mean(prior: FloatArray, channel: FloatArray) -> float:
    """Return the label's part of E[ν], that of a release with no features, in nats.

    Σ_y p_y KL(T_y ‖ T_{¬y}), T_{¬y} being the channel's mixture over all other labels. Exact for a
    given prior. For two labels E[ν] is the sum of both parts; for more it is at least each of them.
    """
    p = np.asarray(prior, dtype=np.float64)
    joint = p[:, None] * np.asarray(channel, dtype=np.float64)
    others = (joint.sum(axis=0) - joint) / (1 - p)[:, None]
    divergences = rel_entr(joint / p[:, None], np.maximum(others, 0)).sum(axis=1)
    return float(p @ divergences)


# Added to each label's count in the estimate, so that no estimated loss is infinite.
SMOOTHING = 0.5


@dataclass(frozen=True)
class PosteriorBox:
    """Posteriors of m rows, each with an interval for every label."""

    estimate: FloatArray
    """Float64 array of shape (m, k): rows sum to 1, entries strictly inside (0, 1)."""
    low: FloatArray
    high: FloatArray
    """``low`` and ``high``: float64 arrays of shape (m, k): ends of the intervals; low ≤ estimate ≤
    high."""
    sizes: IntArray
    """Int32 array of shape (m,): the neighbourhoods' sizes."""

    @classmethod
    def from_counts(cls, counts: IntArray, totals: IntArray, error: float) -> "PosteriorBox":
        """Build it from label counts in neighbourhoods.

        Parameters
        ----------
        counts : int32 array of shape (m, k)
        totals : int32 array of shape (m,)
            Neighbourhood sizes, at least 1.
        error : float
            The probability, for each row, that its box misses the mean posterior of the row's
            neighbourhood: Bonferroni over the labels, half of it in each tail. Two labels share one
            interval.

        Returns
        -------
        PosteriorBox
            The estimate is (count + 1/2)/(total + k/2).

        Notes
        -----
        Given the features a count is a sum of independent indicators with different probabilities;
        the bounds of :func:`~ldpaudit.estimators.intervals.binomial.trials_lower` hold for their
        mean.
        """
        counts = np.asarray(counts)
        k = counts.shape[1]
        sizes = np.broadcast_to(np.asarray(totals)[:, None], counts.shape)
        estimate = (counts + SMOOTHING) / (sizes + SMOOTHING * k)
        tail = error / 2 if k == 2 else error / (2 * k)
        # Each distinct pair of count and size is computed once.
        pairs = counts.astype(np.int64) << 32 | sizes.astype(np.int64)
        distinct, place = np.unique(pairs, return_inverse=True)
        low, high = (
            end(distinct >> 32, distinct & 0xFFFFFFFF, tail)[place].reshape(counts.shape)
            for end in (trials_lower, trials_upper)
        )
        return cls(estimate, np.minimum(low, estimate), np.maximum(high, estimate), sizes[:, 0])

    def widened(self, by: float) -> "PosteriorBox":
        """Return the box of a row whose posteriors lie that near to the neighbourhood's mean."""
        low, high = np.maximum(self.low - by, 0.0), np.minimum(self.high + by, 1.0)
        return PosteriorBox(self.estimate, low, high, self.sizes)

    def through(self, channel: FloatArray) -> "PosteriorBox":
        """Carry a box for released labels back to true labels.

        Parameters
        ----------
        channel : float64 array of shape (k, m)
            P(z | y), of rank k, the same for all features.

        Returns
        -------
        PosteriorBox
            Contains η whenever this box contains ηT. For two labels and two outputs the ends of the
            interval are mapped by η = (η̃ − T[0,1])/(T[1,1] − T[0,1]) and cut at 0 and 1. The
            estimate is mapped likewise, put on the simplex, and kept half a standard error away
            from 0, since no finite sample can tell a smaller share from none.

        Raises
        ------
        InputError
            If the channel loses a label (rank below k).
        """
        inverse, offset = centred_inverse(channel)
        falling, rising = np.minimum(inverse, 0), np.maximum(inverse, 0)
        low = np.clip(offset + self.low @ rising + self.high @ falling, 0, 1)
        high = np.clip(offset + self.high @ rising + self.low @ falling, 0, 1)
        variance = (self.estimate * (1 - self.estimate)) @ inverse**2 / self.sizes[:, None]
        estimate = np.maximum(
            onto_simplex(offset + self.estimate @ inverse), SMOOTHING * np.sqrt(variance)
        )
        estimate /= estimate.sum(axis=1, keepdims=True)
        return PosteriorBox(
            estimate, np.minimum(low, estimate), np.maximum(high, estimate), self.sizes
        )


def centred_inverse(channel: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return (A, c), float64 of shapes (m, k) and (k,), with η = c + η̃A for every η̃ = ηT.

    Any column of the inverse may be shifted, since released shares sum to 1; shifting it by its
    median makes intervals for η narrowest. For randomized response each true label's share then
    depends on its own released share alone.

    Raises
    ------
    InputError
        If the rank of the channel is below k.
    """
    channel = np.asarray(channel, dtype=np.float64)
    if np.linalg.matrix_rank(channel, tol=1e-9) < len(channel):
        raise InputError("The channel cannot be inverted: some label leaves no trace (ε → 0).")
    inverse = np.linalg.pinv(channel)
    offset = np.median(inverse, axis=0)
    return np.asarray(inverse - offset), np.asarray(offset)


_LEAST_PROBABILITY = 1e-12


def mean_loss_lower(
    box: PosteriorBox, prior_low: FloatArray, prior_high: FloatArray, channel: FloatArray | None
) -> FloatArray:
    """Return a lower bound of ν(x) for every posterior in the box and prior in the interval.

    Parameters
    ----------
    box : PosteriorBox
        m rows, k labels.
    prior_low, prior_high : float64 arrays of shape (k,)
        Intervals of the label shares, inside (0, 1).
    channel : float64 array of shape (k, m) or None
        P(z | y); None for the features' part alone.

    Returns
    -------
    float64 array of shape (m,)
        For two labels the exact minimum, that of a convex function cut to the interval, at the
        worse end of the prior's (the loss is linear in its log-odds). For more labels a tangent's
        minimum: below the exact one by the gap of a few Frank–Wolfe steps, never above it.
    """
    if box.estimate.shape[1] > 2:
        return _tangent_bound(box, prior_high, channel)
    bounds = []
    for prior in (prior_low[1], prior_high[1]):

        def loss(z: FloatArray, prior: float = float(prior)) -> FloatArray:
            posterior = np.stack([1 - z, z], axis=-1).reshape(-1, 2)
            return mean_loss(posterior, np.array([1 - prior, prior]), channel)

        least = 0.5
        if np.isfinite(loss(np.array(least))).all():
            found = minimize_scalar(
                lambda z: float(loss(z)[0]),
                bounds=(0.0, 1.0),
                method="bounded",
                options={"xatol": 1e-10},
            )
            least = float(found.x)
        bounds.append(loss(np.clip(least, box.low[:, 1], box.high[:, 1])))
    return np.minimum(*bounds)


def row_loss_lower(
    box: PosteriorBox,
    labels: IntArray,
    released: IntArray,
    prior_high: FloatArray,
    channel: FloatArray | None,
) -> FloatArray:
    """Return a lower bound of ν(y_i, z_i, x_i) for every posterior in the box.

    ν grows with the share of y and falls with the others' likelihood of z, so the bound puts the
    share of y at its least and fills the rest with the labels that make z likeliest. Parameters as
    in :func:`ldpaudit.estimators.instance_loss.row_loss`, the prior at its upper ends.
    """
    rows = np.arange(len(labels))
    k = box.estimate.shape[1]
    matrix = np.ones((k, 1)) if channel is None else np.asarray(channel, dtype=np.float64)
    likelihood = matrix[:, np.zeros_like(labels) if channel is None else released].T
    least = box.low[rows, labels]
    low, high = box.low.copy(), box.high.copy()
    low[rows, labels] = high[rows, labels] = least
    others = np.array(likelihood)
    others[rows, labels] = 0.0
    rest = (others * _least_point(-others, low, high)).sum(axis=1)
    own = likelihood[rows, labels]
    with np.errstate(divide="ignore", invalid="ignore"):
        odds = np.log(least * own) - np.log(rest)
    # What no other label explains proves y, also where its share may be 0.
    odds = np.where(rest > 0, odds, np.where(own > 0, np.inf, -np.inf))
    return np.asarray(odds - logit(np.asarray(prior_high))[labels])


def _tangent_bound(
    box: PosteriorBox, prior_high: FloatArray, channel: FloatArray | None
) -> FloatArray:
    k = box.estimate.shape[1]
    matrix = np.ones((k, 1)) if channel is None else np.asarray(channel, dtype=np.float64)
    # The labels that some output proves: possible under them and under no other label.
    possible = matrix > 0
    alone = possible & (possible.sum(axis=0) == 1)
    betraying = np.flatnonzero(alone.any(axis=1))
    matrix = np.maximum(matrix, _LEAST_PROBABILITY)
    work = max(1, len(box.estimate) * matrix.size)
    # Terms of the loss that are differentiated at most: many rows of many labels get fewer steps.
    steps = int(np.clip(4e8 / work, 2, 24))
    cost = logit(np.asarray(prior_high))
    bounds = np.empty(len(box.estimate))
    batch = max(1, 2_000_000 // matrix.size)
    for start in range(0, len(bounds), batch):
        part = slice(start, start + batch)
        bounds[part] = _frank_wolfe(
            box.estimate[part], box.low[part], box.high[part], matrix, cost, steps
        )
    return np.where((box.low[:, betraying] > 0).any(axis=1), np.inf, bounds)


def _frank_wolfe(
    start: FloatArray,
    low: FloatArray,
    high: FloatArray,
    matrix: FloatArray,
    cost: FloatArray,
    steps: int,
) -> FloatArray:
    """Return the best tangent bound of the least mean loss F over each box."""
    # F is homogeneous of degree 1, so F(η) ≥ ∇F(η₀)·η for any η₀, with equality at η₀.
    point = np.maximum(start, _LEAST_PROBABILITY)
    best = np.full(len(point), -np.inf)
    for step in range(steps):
        gradient = _gradient(point, matrix) - cost
        vertex = _least_point(gradient, low, high)
        best = np.maximum(best, (gradient * vertex).sum(axis=1))
        point = point + 2.0 / (step + 3.0) * (np.maximum(vertex, _LEAST_PROBABILITY) - point)
    return best


def _gradient(point: FloatArray, matrix: FloatArray) -> FloatArray:
    joint = point[:, :, None] * matrix
    total = joint.sum(axis=1, keepdims=True)
    ratio = joint / np.maximum(total - joint, 1e-15 * total)
    inner = np.log(ratio) + 1 + ratio - ratio.sum(axis=1, keepdims=True)
    return np.asarray((matrix * inner).sum(axis=2))


def _least_point(gradient: FloatArray, low: FloatArray, high: FloatArray) -> FloatArray:
    """Return the probability vector in each box that makes ⟨gradient, ·⟩ least: greedy filling."""
    order = np.argsort(gradient, axis=1)
    room = np.take_along_axis(high - low, order, 1)
    before = np.cumsum(room, axis=1) - room
    left = 1 - low.sum(axis=1, keepdims=True)
    filled = np.clip(left - before, 0.0, room)
    point = np.empty_like(low)
    np.put_along_axis(point, order, np.take_along_axis(low, order, 1) + filled, 1)
    return point


@dataclass(frozen=True)
class ErrorBudget:
    """How the error probability δ of a bound on J(τ) is spent."""

    total: float
    """δ = ``count`` + ``markov`` + ``prior``."""
    count: float
    """δ″, the binomial bound of the share of queries."""
    markov: float
    """γ, the event that more than a share ``slack`` of all people have a wrong loss bound."""
    prior: float
    """The event that a label's share lies outside its interval."""
    slack: float
    """What is taken off the bound, s."""

    @classmethod
    def of(cls, total: float, slack: float = 0.001) -> "ErrorBudget":
        """Split δ among the count, γ and the prior, by :data:`ldpaudit.error_budget.EXCEEDANCE`."""
        count, markov, prior = (EXCEEDANCE.of(total, part) for part in EXCEEDANCE)
        return cls(total, count, markov, prior, slack)

    @property
    def per_query(self) -> float:
        """δ′ = γs, the error probability of each query's loss bound."""
        return self.markov * self.slack


def smoothness_bias(n: int, k: int, error: float, constant: float, power: float = 1.0) -> float:
    """Return how far a neighbourhood's mean posterior may lie from its row's, at 1 − error.

    P(label | features) changes by at most C·μ^β within a ball of nearer rows that holds the share μ
    of people (Assumption 6.5). What the ball up to the k-th nearest of n independent rows holds has
    a Beta(k, n − k + 1) law, or is smaller where distances tie: exact where Lemma D.3 has 2k/n.
    """
    share = float(beta.ppf(1 - error, k, n - k + 1))
    return constant * math.pow(share, power)


@dataclass(frozen=True)
class Exceedance:
    """J(τ) on a grid."""

    grid: FloatArray
    """Float64 array of shape (g,): τ in nats, ascending, every multiple of 1/2 within its range
    included."""
    value: FloatArray
    """Float64 array of shape (g,): the share of queries whose estimated loss is at least τ."""
    low: FloatArray | None
    """Float64 array of shape (g,) or None: a lower confidence bound at each point alone."""
    queries: int
    """How many rows asked, m."""


def exceedance(
    losses: FloatArray, lower: FloatArray, budget: ErrorBudget, grid: FloatArray
) -> Exceedance:
    """Return J(τ) from the losses of m independent queries.

    Parameters
    ----------
    losses : float64 array of shape (m,)
        Estimated losses; may be infinite.
    lower : float64 array of shape (m,)
        Lower bounds L_i ≤ losses, each with error probability ``budget.per_query``.
    budget : ErrorBudget
        Its ``count`` is the error probability of the binomial bound, at each τ alone.
    grid : float64 array of shape (g,)
        Ascending.

    Returns
    -------
    Exceedance
        low(τ) = max(0, CP_lower(#{L_i ≥ τ}, m; δ″) − s).
    """
    m = len(losses)
    value = _at_least(losses, grid) / m
    counts = _at_least(lower, grid)
    low = np.maximum(clopper_pearson_lower(counts, m, budget.count) - budget.slack, 0.0)
    return Exceedance(grid, value, np.minimum(low, value), m)


def expected_exceedance(losses: FloatArray, weights: FloatArray, grid: FloatArray) -> Exceedance:
    """Return J(τ) without a bound from losses that each query has with some probability.

    Parameters
    ----------
    losses, weights : float64 arrays of shape (m, r)
        What each of m queries may lose, and with what probability; rows of weights sum to 1.
    grid : float64 array of shape (g,)
        Ascending.
    """
    m = len(losses)
    order = np.argsort(losses, axis=None)
    below = np.concatenate([[0.0], np.cumsum(weights.ravel()[order])])
    place = np.searchsorted(losses.ravel()[order], grid, side="left")
    counts = np.floor(m - below[place] + 1e-6).astype(np.int64)
    return Exceedance(grid, np.clip(counts, 0, m) / m, None, m)


def loss_grid(losses: FloatArray) -> FloatArray:
    """Return the grid of τ for these losses: tenths over their range, then halves up to 25.

    Starts at the last multiple of 1/2 at or below the least loss, or at 0 if that is lower.
    """
    finite = losses[np.isfinite(losses)]
    least = min(0.0, float(finite.min())) if len(finite) else 0.0
    most = max(1.0, float(finite.max())) if len(finite) else 1.0
    first, last = math.floor(2 * least), math.ceil(2 * most)
    fine = np.arange(5 * first, 5 * last + 1) * 0.1
    # The grid of losses reaches at least this far, in nats, so that a policy's τ lies on it.
    coarse = np.arange(last + 1, int(2 * 25.0) + 1) / 2
    return np.asarray(np.round(np.concatenate([fine, coarse]), 10))


def _at_least(losses: FloatArray, grid: FloatArray) -> IndexArray:
    ordered = np.sort(losses)
    return (len(losses) - np.searchsorted(ordered, grid, side="left")).astype(np.int64)
