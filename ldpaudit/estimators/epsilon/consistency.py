"""Do counts of released labels agree with a claimed channel? Exact tests, of few people as well."""

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
from scipy.optimize import linprog
from scipy.special import betainc, betaincc
from scipy.stats import binom, chi2

from ldpaudit.error_budget import RARE_CLASS
from ldpaudit.estimators.epsilon.bounds import CountTable, class_counts
from ldpaudit.estimators.epsilon.pooled import noise_p_value
from ldpaudit.estimators.intervals.binomial import clopper_pearson_lower, clopper_pearson_upper
from ldpaudit.release import FloatArray, IndexArray

SMALLEST_P_VALUE = 1e-12  # a p-value below this is reported as this
# Probabilities that differ by less agree: a declared matrix has finitely many digits.
_ROUNDING = 1e-9
MOST_PEOPLE: Final = 50  # a class with more people is large enough for the bounds of ε
HELD_UP: Final = 0.05  # an honest release is held up by its rare classes at most this often
# And accused of a violation at most this often: so few people are asked about in many releases.
ACCUSED: Final = 0.01


@dataclass(frozen=True)
class Consistency:
    """How counts agree with a claim."""

    p_value: float
    """Valid: if the claim holds it is at most α with probability at most α."""
    noise: float
    """That of less or more noise alone."""
    cells: int
    """The probabilities that were compared."""
    inconsistent: int
    """How many lie outside their simultaneous confidence intervals at the given level."""


def channel_consistency(counts: CountTable, channel: FloatArray, alpha: float) -> Consistency:
    """Test a claimed channel, as a whole and entry by entry, against counts by label and output.

    Parameters
    ----------
    counts : integer array of shape (k, m)
        Rows by true label and output; labels without rows are left out.
    channel : float64 array of shape (k, m)
        The claim.
    alpha : float
        The error probability of the simultaneous intervals that ``inconsistent`` counts.

    Returns
    -------
    Consistency
        Half of the error probability has the exact test of all rows for less or more noise of the
        same kind: what all rows share is spread over many entries and vanishes in each. The other
        half have exact two-sided binomial tests of the entries, Bonferroni; with two outputs an
        entry for each label, since the other follows.

    References
    ----------
    Clopper & Pearson (1934): twice the smaller tail.
    """
    present = class_counts(counts) > 0
    table, claim = np.asarray(counts)[present], channel[present]
    columns = 1 if table.shape[1] == 2 else table.shape[1]
    p_values = binomial_p_value(
        table[:, :columns], table.sum(axis=1, keepdims=True), claim[:, :columns]
    )
    cells = int(p_values.size)
    noise = noise_p_value(counts, channel)
    smallest = min(1.0, 2 * min(noise, cells * float(p_values.min())))
    return Consistency(smallest, noise, cells, int(np.sum(p_values * cells <= alpha)))


def binomial_p_value(count: CountTable, n: IndexArray, probability: FloatArray) -> FloatArray:
    """Return the exact two-sided p-value of a count, twice the smaller tail, at most 1."""
    c, t, p = np.broadcast_arrays(
        np.asarray(count, np.float64), np.asarray(n, np.float64), np.asarray(probability)
    )
    low, high = np.maximum(p - _ROUNDING, 0.0), np.minimum(p + _ROUNDING, 1.0)
    # P(X ≥ c) grows and P(X ≤ c) falls with p: the claim gets the benefit of its rounding.
    above = np.where(c > 0, betainc(np.maximum(c, 1), t - c + 1, high), 1.0)
    below = np.where(c < t, betaincc(c + 1, np.maximum(t - c, 1), low), 1.0)
    return np.asarray(np.minimum(2 * np.minimum(above, below), 1.0))


def likelihood_ratio_p_value(counts: CountTable, channel: FloatArray) -> float:
    """Return the G test's p-value of a claimed channel: approximate for small counts.

    0 where an output was seen that the claim makes impossible.

    References
    ----------
    Wilks (1938): 2 Σ c log(c/expected) is about χ² with (m' − 1) degrees of freedom per label,
    m' its possible outputs.
    """
    table, sizes = np.asarray(counts, dtype=np.float64), class_counts(counts)
    expected = channel * sizes[:, None]
    seen = table > 0
    if (expected[seen] <= 0).any():
        return 0.0
    statistic = 2 * float(np.sum(table[seen] * np.log(table[seen] / expected[seen])))
    possible = (channel > 0)[sizes > 0].sum(axis=1)
    freedom = int(np.sum(possible - 1))
    return float(chi2.sf(max(statistic, 0.0), freedom)) if freedom > 0 else 1.0


def marginal_consistency(released: IndexArray, channel: FloatArray) -> float | None:
    """Test whether the released labels' frequencies can come from a claimed channel at all.

    Whatever the true labels are, the released distribution is a mixture pT of the channel's rows.
    It is refuted at level α when no mixture lies within the simultaneous Clopper–Pearson intervals
    of the outputs' frequencies.

    Parameters
    ----------
    released : int64 array of shape (m,)
        Rows of each output.
    channel : float64 array of shape (k, m)
        The claim.

    Returns
    -------
    float or None
        The smallest α at which the claim is refuted, a valid p-value for rows drawn independently
        from one population, no smaller than 1e-12; None where the linear program would be too
        large (k·m above 200,000).
    """
    if channel.size > 200_000:
        return None
    if _mixture_exists(released, channel, 1.0 - 1e-9):
        return 1.0
    low, high = math.log(SMALLEST_P_VALUE), 0.0
    if not _mixture_exists(released, channel, SMALLEST_P_VALUE):
        return SMALLEST_P_VALUE
    while high - low > 0.01:
        middle = (low + high) / 2
        if _mixture_exists(released, channel, math.exp(middle)):
            low = middle
        else:
            high = middle
    return math.exp(high)


def _mixture_exists(released: IndexArray, channel: FloatArray, alpha: float) -> bool:
    """Return whether some p has lo ≤ pT ≤ hi, the intervals' tails sharing ``alpha``."""
    outputs = 1 if len(released) == 2 else len(released)
    counts, n = np.asarray(released)[:outputs], int(np.sum(released))
    tail = alpha / (2 * outputs)
    low = clopper_pearson_lower(counts, n, tail) - _ROUNDING
    high = clopper_pearson_upper(counts, n, tail) + _ROUNDING
    rows = channel[:, :outputs]
    if outputs == 1:
        return bool(rows.min() <= high[0] and rows.max() >= low[0])
    k = len(channel)
    solution = linprog(
        np.zeros(k),
        A_ub=np.concatenate([rows.T, -rows.T]),
        b_ub=np.concatenate([high, -low]),
        A_eq=np.ones((1, k)),
        b_eq=[1.0],
        bounds=(0, 1),
        method="highs",
    )
    # Only a proof of infeasibility refutes the claim; a solver that gave up does not.
    return int(solution.status) != 2


@dataclass(frozen=True)
class RareClass:
    """The output of a rare class that its channel explains least."""

    label: int
    output: int
    """``label`` and ``output``: their codes."""
    people: int
    count: int
    """``people`` and ``count``: how many people have the label, and how many of them the output."""
    chance: float
    """Of so many or more, under the claim."""
    all_alike: float
    """The chance that everybody gets the usual output: what a full disclosure would look like."""

    @property
    def can_be_seen(self) -> bool:
        """Whether a full disclosure would be noticed, were there no other rare class."""
        return self.all_alike <= RARE_CLASS.of(HELD_UP, "unchanged")


@dataclass(frozen=True)
class RareClasses:
    """All rare classes of a release."""

    p_value: float
    """Valid for all of them together: if the claim holds it is at most α with probability at most
    α."""
    classes: tuple[RareClass, ...]
    """The least likely first."""


def usual_outputs(
    channel: FloatArray, classes: tuple[object, ...], outputs: tuple[object, ...]
) -> IndexArray:
    """Return the output that stands for each class: its own name, else the most likely one."""
    own = {name: place for place, name in enumerate(outputs)}
    likely = channel.argmax(axis=1)
    return np.array([own.get(name, likely[y]) for y, name in enumerate(classes)], dtype=np.int64)


def rare_classes(
    counts: CountTable, channel: FloatArray, epsilon: float, usual: IndexArray
) -> RareClasses | None:
    """Test the labels of all classes with 1 to 50 people against the claimed channel.

    What was done to released labels afterwards is no leak: where the other classes do not get an
    output as often as claimed, a class may get it e^ε times as often as they do.

    Parameters
    ----------
    counts : integer array of shape (k, m)
        People by true label and output.
    channel : float64 array of shape (k, m)
        The claim, of ``epsilon`` nats.
    usual : int64 array of shape (k,)
        The output that a class has when its label is released unchanged.

    Returns
    -------
    RareClasses or None
        None where no class is rare. The smallest weighted p-value over classes and outputs is held
        against its own distribution: rows are independent given the true labels, and a class of
        so few people that no outcome is unlikely costs the others nothing.

    References
    ----------
    Tarone (1990), "A modified Bonferroni method for discrete data".
    """
    counts, sizes = np.asarray(counts, np.int64), class_counts(counts)
    rare = np.flatnonzero((sizes > 0) & (sizes <= MOST_PEOPLE))
    if not rare.size:
        return None
    n, seen, places = sizes[rare, None], counts[rare], np.arange(rare.size)
    claimed = np.clip(_allowed(counts, channel, epsilon)[rare] + _ROUNDING, 0.0, 1.0)
    of_each = RARE_CLASS["other outputs"] / max(seen.shape[1] - 1, 1)
    weights = np.full(seen.shape, of_each)
    weights[places, usual[rare]] = RARE_CLASS["unchanged"]
    chances = np.asarray(binom.sf(seen - 1, n, claimed))
    surprise = chances / weights
    # The probability of a tail, for each class and output, that is as unlikely as the least likely.
    share = np.minimum(surprise.min() * weights * (1 + _ROUNDING), 1.0)
    attained = np.where(share < 1, binom.sf(binom.isf(share, n, claimed), n, claimed), 1.0)
    p_value = -np.expm1(np.log1p(-np.minimum(attained.sum(axis=1), 1 - 1e-16)).sum())
    alike = claimed[places, usual[rare]] ** sizes[rare]
    found = []
    for i in np.argsort(surprise.min(axis=1), kind="stable"):
        y, z = int(rare[i]), int(surprise[i].argmin())
        people, count = int(sizes[y]), int(counts[y, z])
        found.append(RareClass(y, z, people, count, float(chances[i, z]), float(alike[i])))
    return RareClasses(float(p_value), tuple(found))


def _allowed(counts: CountTable, channel: FloatArray, epsilon: float) -> FloatArray:
    """Return how often a class may have an output, also after a change of released labels."""
    sizes = class_counts(counts)[:, None]
    others, got = np.maximum(sizes.sum() - sizes, 1), counts.sum(axis=0) - counts
    expected = ((sizes * channel).sum(axis=0) - sizes * channel) / others
    fits = binomial_p_value(got, others, np.clip(expected, 0, 1)) > 1e-3 / channel.size
    times = np.exp(min(epsilon, 700.0))
    return np.asarray(np.where(fits, channel, np.clip(times * got / others, channel, 1.0)))
