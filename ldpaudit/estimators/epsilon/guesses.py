"""Certified bounds of a randomizer's ε and δ from guesses of which of two inputs was given.

Each of N candidates is given one of two inputs by a fair coin and its output is mapped to a guess
of the input, or to none, by a rule that was fixed beforehand. (ε, δ)-DP of the two inputs' laws
P₁ and P₂ means, for the outputs A with guess 1 and B with guess 2,

    P₁(A) ≤ e^ε P₂(A) + δ   and   P₂(B) ≤ e^ε P₁(B) + δ,

so the chance a of a right guess and b of a wrong one obey a ≤ e^ε b + δ·sides/2, where ``sides`` is
how many of A and B are not empty. Candidates are independent, so given that r guesses were made the
right ones are Binomial(r, a/(a + b)).
"""

import math
from dataclasses import dataclass

from scipy.special import betaincinv
from scipy.stats import binom

from ldpaudit.estimators.epsilon.bounds import EpsilonBound
from ldpaudit.estimators.intervals.binomial import clopper_pearson_lower, clopper_pearson_upper

GUESS_SHARE = 0.1
"""Of the error probability, for how often a guess is made; needed where δ > 0 only."""


@dataclass(frozen=True)
class GuessCounts:
    """The outcome of guessing the inputs of fresh candidates.

    Attributes
    ----------
    candidates : int
        N, each with one of two inputs by a fair coin.
    right, wrong : int
        Guesses that were right and wrong; the rest are abstentions.
    sides : int
        1 where only one of the two inputs is ever guessed, else 2.
    """

    candidates: int
    right: int
    wrong: int
    sides: int = 2

    @property
    def guesses(self) -> int:
        """How many guesses were made."""
        return self.right + self.wrong


def epsilon_lower(counts: GuessCounts, alpha: float, delta: float = 0.0) -> EpsilonBound:
    """Return the lower confidence bound of ε at level 1 − alpha.

    Parameters
    ----------
    counts : GuessCounts
    alpha : float
        One-sided error probability.
    delta : float
        δ of the hypothesis (ε, δ)-DP, in [0, 1).

    Returns
    -------
    EpsilonBound
        In nats, at least 0 and always finite: N candidates support at most about log N.

    Notes
    -----
    With s = a + b, a ≤ e^ε b + δ·sides/2 reads a/s ≤ q + d(1 − q), q = e^ε/(1 + e^ε) and
    d = δ·sides/(2s); s is bounded from below by Clopper–Pearson at a tenth of alpha.

    References
    ----------
    Steinke, Nasr & Jagielski (2023), Theorem 5.2, for δ = 0; the term for δ is smaller here than
    there because candidates are independent.
    """
    share, spent = _delta_share(counts, alpha, delta)
    if counts.guesses == 0 or share >= 1:
        return EpsilonBound(0.0, alpha, counts.candidates, "black-box")
    level = float(clopper_pearson_lower(counts.right, counts.guesses, alpha - spent))
    odds = max((level - share) / (1 - level), 0.0)
    epsilon = max(math.log(odds), 0.0) if odds > 0 else 0.0
    return EpsilonBound(epsilon, alpha, counts.candidates, "black-box")


def delta_lower(counts: GuessCounts, epsilon: float, alpha: float) -> float:
    """Return the lower confidence bound of δ at a given ε, at level 1 − alpha.

    δ ≥ (a − e^ε b)·2/sides, with Clopper–Pearson bounds of a and b at alpha/2 each.
    """
    right = float(clopper_pearson_lower(counts.right, counts.candidates, alpha / 2))
    wrong = float(clopper_pearson_upper(counts.wrong, counts.candidates, alpha / 2))
    return max((right - math.exp(epsilon) * wrong) * 2 / counts.sides, 0.0)


def detectable_epsilon(
    counts: GuessCounts, claim: float, alpha: float, delta: float = 0.0, power: float = 0.9
) -> float:
    """Return the smallest ε of the same event whose bound exceeds a claim with a given power.

    Parameters
    ----------
    counts : GuessCounts
        Only the number of candidates and how often a guess is made are used.
    claim : float
        The claimed ε in nats.
    alpha, delta : float
        As for :func:`epsilon_lower`.
    power : float
        How likely it must be found.

    Returns
    -------
    float
        Nats; ∞ where no ε would be found so often. It holds for a randomizer that lets the event's
        guesses be made as often as they were.
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
    spent = GUESS_SHARE * alpha
    guessed = float(clopper_pearson_lower(counts.guesses, counts.candidates, spent))
    return (delta * counts.sides / (2 * guessed) if guessed > 0 else math.inf), spent
