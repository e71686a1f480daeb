"""Certified bounds of ε from guesses of which of two inputs was given.

Each of N candidates is given one of two inputs by a fair coin and its output is mapped to a guess
of the input, or to none, by a rule that was fixed beforehand. (ε, δ)-DP of the two inputs' laws
P₁ and P₂ means, for the outputs A with guess 1 and B with guess 2,

    P₁(A) ≤ e^ε P₂(A) + δ   and   P₂(B) ≤ e^ε P₁(B) + δ,

so the chance a of a right guess and b of a wrong one obey a ≤ e^ε b + δ·sides/2, where ``sides`` is
how many of A and B are not empty. Of a randomizer the candidates are independent, so given that r
guesses were made the right ones are Binomial(r, a/(a + b)).
"""

import math
from dataclasses import dataclass

from scipy.special import betaincinv
from scipy.stats import binom

from ldpaudit.error_budget import GUESSES
from ldpaudit.estimators.epsilon.bounds import EpsilonBound
from ldpaudit.estimators.intervals.binomial import clopper_pearson_lower


@dataclass(frozen=True)
class GuessCounts:
    """The outcome of guessing the inputs of fresh candidates."""

    candidates: int
    """N, each with one of two inputs by a fair coin."""
    right: int
    wrong: int
    """``right`` and ``wrong``: guesses that were right and wrong; the rest are abstentions."""
    sides: int = 2
    """1 where only one of the two inputs is ever guessed, else 2."""

    @property
    def guesses(self) -> int:
        """How many guesses were made."""
        return self.right + self.wrong


def epsilon_lower(counts: GuessCounts, alpha: float, delta: float = 0.0) -> EpsilonBound:
    """Return the lower bound of a randomizer's ε at level 1 − alpha, under (ε, δ)-DP.

    With s = a + b, a ≤ e^ε b + δ·sides/2 reads a/s ≤ q + d(1 − q), q = e^ε/(1 + e^ε) and
    d = δ·sides/(2s); s is bounded from below by Clopper–Pearson at its share of alpha, a tenth. N
    candidates support at most about log N.
    """
    share, spent = _delta_share(counts, alpha, delta)
    if counts.guesses == 0 or share >= 1:
        return EpsilonBound(0.0, alpha, counts.candidates, "black-box")
    level = float(clopper_pearson_lower(counts.right, counts.guesses, alpha - spent))
    epsilon = math.log(max((level - share) / (1 - level), 1.0))
    return EpsilonBound(epsilon, alpha, counts.candidates, "black-box")


def detectable_epsilon(
    counts: GuessCounts, claim: float, alpha: float, delta: float = 0.0, power: float = 0.9
) -> float:
    """Return the smallest ε of the same event whose bound exceeds a claim with a given power.

    ∞ where no ε would be found so often. It holds for a randomizer that lets the event's guesses be
    made as often as they were.
    """
    share, spent = _delta_share(counts, alpha, delta)
    if counts.guesses == 0 or share >= 1:
        return math.inf
    claimed = 1 / (1 + math.exp(-claim))
    least = int(binom.isf(alpha - spent, counts.guesses, claimed + share * (1 - claimed))) + 1
    if least > counts.guesses:
        return math.inf
    needed = float(betaincinv(least, counts.guesses - least + 1, power))
    return max(math.log(max(needed - share, 0.0)) - math.log1p(-needed), claim)


def _delta_share(counts: GuessCounts, alpha: float, delta: float) -> tuple[float, float]:
    """Return an upper bound of d = δ·sides/(2s), and the error probability that it costs."""
    if delta == 0:
        return 0.0, 0.0
    spent = GUESSES.of(alpha, "made")
    guessed = float(clopper_pearson_lower(counts.guesses, counts.candidates, spent))
    return (delta * counts.sides / (2 * guessed) if guessed > 0 else math.inf), spent
