"""Uniform candidate labels out of a table of real ones, for the one-run analysis.

The one-run bound needs labels drawn uniformly and independently. Real labels are not, but rows are
exchangeable within their class: drawing the class counts from a uniform multinomial first, and
then that many rows of each class, gives rows whose labels are i.i.d. uniform.
"""

from dataclasses import dataclass

import numpy as np
from scipy.stats import binom

from ldpaudit.estimators.epsilon.accuracy_design import expected_bound
from ldpaudit.estimators.epsilon.bounds import CountTable, EpsilonBound, class_counts, one_run_bound
from ldpaudit.release import FloatArray, IndexArray, IntArray

# The probability, shared by all classes, that a uniform draw asks for more rows than a class has.
OVERFLOW = 1e-4


@dataclass(frozen=True)
class CandidateDesign:
    """Which labels may be candidates and how many candidates there are.

    Attributes
    ----------
    labels : int32 array of shape (j,)
        The candidate labels, chosen from the class counts alone; j < 2: nothing can be drawn.
    candidates : int
        How many candidates are drawn.
    guess : int32 array of shape (m,)
        The label guessed at each output, −1 to abstain.
    overflow : float
        A bound of the probability that a uniform draw asks for more rows than a class has; the
        draw is then repeated, so the labels' law is within ``overflow`` of i.i.d. uniform.
    """

    labels: IntArray
    candidates: int
    guess: IntArray
    overflow: float

    def chances(self, within: FloatArray) -> tuple[float, float]:
        """Return how likely a candidate is guessed right, and guessed at all.

        ``within``: the channel's rows of ``labels``, in that order, float64 of shape (j, m).
        """
        right = np.where(self.guess == self.labels[:, None], within, 0.0).sum()
        made = within[:, self.guess >= 0].sum()
        # Sums of probabilities may round to above 1.
        return min(float(right / len(within)), 1.0), min(float(made / len(within)), 1.0)


@dataclass(frozen=True)
class BalancedGuesses:
    """Guesses of uniform candidate labels: what :func:`one_run_bound` takes.

    Attributes
    ----------
    guesses, correct, candidates, k : int
        Guesses made, right ones, candidates in all, labels that a candidate may have.
    overflow : float
        Error probability used up by the drawing of candidates.
    """

    guesses: int
    correct: int
    candidates: int
    k: int
    overflow: float

    def bound(self, alpha: float) -> EpsilonBound:
        """Return the one-run lower bound of ε at level 1 − alpha, in nats."""
        if self.k < 2 or alpha <= self.overflow:
            return EpsilonBound(0.0, alpha, self.guesses, "one-run", 0)
        found = one_run_bound(self.guesses, self.correct, alpha - self.overflow, k=self.k)
        return EpsilonBound(found.epsilon, alpha, found.n, found.method, found.smallest_cell)


def design_candidates(
    sizes: IndexArray, channel: FloatArray, alpha: float
) -> tuple[CandidateDesign, float]:
    """Choose candidate labels, their number and the guesses, without looking at outcomes.

    Parameters
    ----------
    sizes : int64 array of shape (k,)
        Rows of each true label.
    channel : float64 array of shape (k, m)
        The channel under which the expected bound is made as large as possible.
    alpha : float
        The level at which designs are compared.

    Returns
    -------
    CandidateDesign, float
        The design and the bound to expect of it, in nats.
    """
    order = np.argsort(-sizes, kind="stable").astype(np.int32)
    options = [_design(order[:j], sizes, channel) for j in _subset_sizes(sizes)]
    if not options:
        nobody = np.full(channel.shape[1], -1, dtype=np.int32)
        return CandidateDesign(order[:0], 0, nobody, 0.0), 0.0
    expected = [_expected_bound(option, channel, alpha) for option in options]
    best = int(np.argmax(expected))
    return options[best], expected[best]


def balanced_guesses(
    counts: CountTable, rng: np.random.Generator, design: CandidateDesign | None = None
) -> BalancedGuesses:
    """Draw candidates with i.i.d. uniform labels from a table and guess their labels.

    Parameters
    ----------
    counts : integer array of shape (k, m)
        Rows by true label and output.
    rng : numpy.random.Generator
        Draws the candidates.
    design : CandidateDesign or None
        Which candidates; by default the best for randomized response at ε = 1, so outputs and
        labels must then have one order.
    """
    counts = np.asarray(counts, dtype=np.int64)
    sizes = class_counts(counts)
    if design is None:
        design, _ = design_candidates(sizes, _symmetric(*counts.shape), 0.05)
    if design.candidates == 0:
        return BalancedGuesses(0, 0, 0, len(design.labels), design.overflow)
    drawn = _uniform_class_counts(design, sizes, rng)
    made = counts[design.labels][:, design.guess >= 0]
    right = np.where(design.guess == design.labels[:, None], counts[design.labels], 0)
    guessed, correct = 0, 0
    for y, take in enumerate(drawn):
        hits, misses = int(right[y].sum()), int(made[y].sum() - right[y].sum())
        rest = int(sizes[design.labels[y]]) - hits - misses
        picked = rng.multivariate_hypergeometric(
            [hits, misses, rest], int(take), method="marginals"
        )
        correct, guessed = correct + int(picked[0]), guessed + int(picked[0] + picked[1])
    return BalancedGuesses(guessed, correct, design.candidates, len(design.labels), design.overflow)


def _symmetric(k: int, m: int) -> FloatArray:
    weights = np.eye(k, m) * (np.e - 1) + 1
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))


def _subset_sizes(sizes: IndexArray) -> list[int]:
    most = int(np.count_nonzero(sizes))
    grid = np.unique(np.round(np.geomspace(2, max(most, 2), 16)).astype(int))
    return [int(j) for j in grid if j <= most]


def _design(labels: IntArray, sizes: IndexArray, channel: FloatArray) -> CandidateDesign:
    within = channel[labels]
    guess = labels[within.argmax(axis=0)]
    told_apart = within.max(axis=0) > within.min(axis=0) * (1 + 1e-12)
    candidates, overflow = _most_candidates(len(labels), int(sizes[labels].min()))
    return CandidateDesign(labels, candidates, np.where(told_apart, guess, -1), overflow)


def _most_candidates(j: int, smallest: int) -> tuple[int, float]:
    """Return the largest number of uniform draws that hardly ever exceeds a class, and how rarely.

    The class counts are Binomial(N, 1/j); the union bound is over the j classes.
    """
    low, high = smallest, j * smallest
    while low < high:
        middle = (low + high + 1) // 2
        if j * binom.sf(smallest, middle, 1 / j) <= OVERFLOW:
            low = middle
        else:
            high = middle - 1
    return low, float(j * binom.sf(smallest, low, 1 / j))


def _expected_bound(design: CandidateDesign, channel: FloatArray, alpha: float) -> float:
    within = channel[design.labels]
    right, made = design.chances(within)
    n = design.candidates * made
    if n < 1:
        return 0.0
    equal = np.full(len(design.labels), n / len(design.labels))
    return float(expected_bound(np.array(design.candidates * right), equal, alpha))


def _uniform_class_counts(
    design: CandidateDesign, sizes: IndexArray, rng: np.random.Generator
) -> IndexArray:
    j = len(design.labels)
    while True:
        drawn = rng.multinomial(design.candidates, np.full(j, 1 / j))
        if (drawn <= sizes[design.labels]).all():
            return drawn
