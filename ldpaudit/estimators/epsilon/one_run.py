"""Uniform candidate labels out of a table of real ones, for the one-run analysis.

The one-run bound needs labels drawn uniformly and independently. Real labels are not, but rows are
exchangeable within their class: drawing the class counts from a uniform multinomial first, and
then that many rows of each class, gives rows whose labels are i.i.d. uniform.
"""

from bisect import bisect_left
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import bdtrc

from ldpaudit.estimators.epsilon.accuracy_design import expected_bound
from ldpaudit.estimators.epsilon.bounds import CountTable, EpsilonBound, one_run_bound
from ldpaudit.release import FloatArray, IndexArray, IntArray

OVERFLOW = 1e-4
"""The probability, shared by all classes, that a uniform draw asks for more rows than one has."""


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
        guessed = within[:, self.guess >= 0].sum()
        # Sums of probabilities may round to above 1.
        return min(float(right / len(within)), 1.0), min(float(guessed / len(within)), 1.0)

    def draw(self, counts: CountTable, rng: np.random.Generator) -> tuple[int, int]:
        """Draw candidates with i.i.d. uniform labels; return the guesses made, and the right ones.

        ``counts``: rows by true label and output, integers of shape (k, m).
        """
        if self.candidates == 0:
            return 0, 0
        table = np.asarray(counts, dtype=np.int64)[self.labels]
        hits = np.where(self.guess == self.labels[:, None], table, 0).sum(axis=1)
        misses = table[:, self.guess >= 0].sum(axis=1) - hits
        parts = np.stack([hits, misses, table.sum(axis=1) - hits - misses], axis=1)
        drawn = self._class_counts(parts.sum(axis=1), rng)
        picked = [
            rng.multivariate_hypergeometric(part, int(take), method="marginals")
            for part, take in zip(parts, drawn, strict=True)
        ]
        right, wrong, _ = np.sum(picked, axis=0)
        return int(right + wrong), int(right)

    def _class_counts(self, sizes: IndexArray, rng: np.random.Generator) -> IndexArray:
        j = len(self.labels)
        while True:
            drawn = rng.multinomial(self.candidates, np.full(j, 1 / j))
            if (drawn <= sizes).all():
                return drawn

    def bound(self, guesses: int, correct: int, alpha: float) -> EpsilonBound:
        """Return the one-run lower bound of ε at level 1 − alpha, in nats, from drawn guesses."""
        if len(self.labels) < 2 or alpha <= self.overflow:
            return EpsilonBound(0.0, alpha, guesses, "one-run")
        bound = one_run_bound(guesses, correct, alpha - self.overflow, k=len(self.labels))
        return replace(bound, alpha=alpha)


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
        The design and its expected bound, in nats.
    """
    order = np.argsort(-sizes, kind="stable").astype(np.int32)
    options = [_design(order[:j], sizes, channel) for j in _subset_sizes(sizes)]
    if not options:
        nobody = np.full(channel.shape[1], -1, dtype=np.int32)
        return CandidateDesign(order[:0], 0, nobody, 0.0), 0.0
    expected = [_expected_bound(option, channel, alpha) for option in options]
    best = int(np.argmax(expected))
    return options[best], expected[best]


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

    def overflow(candidates: int) -> float:
        return float(j * bdtrc(smallest, candidates, 1 / j))

    more = range(smallest + 1, j * smallest + 1)
    most = smallest + bisect_left(more, True, key=lambda n: overflow(n) > OVERFLOW)
    return most, overflow(most)


def _expected_bound(design: CandidateDesign, channel: FloatArray, alpha: float) -> float:
    within = channel[design.labels]
    right, guessed = design.chances(within)
    n = design.candidates * guessed
    if n < 1:
        return 0.0
    equal = np.full(len(design.labels), n / len(design.labels))
    return float(expected_bound(np.array(design.candidates * right), equal, alpha))
