"""Certified evidence about a channel that may use the features: labels that the auditor drew."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np

from ldpaudit.audits.claimed_channel import model_claim
from ldpaudit.audits.interface import AuditContext
from ldpaudit.audits.models import cross_fitted_posterior
from ldpaudit.audits.observational.evidence import Certificate, guessed_events, table_guess
from ldpaudit.errors import InputError
from ldpaudit.estimators.intervals.poisson_binomial import ShiftedCoins, shift_lower
from ldpaudit.release import FloatArray, IndexArray, IntArray

_FEWEST_CANARIES: Final = 20
_FEWEST_WRONG: Final = 5.0
_CHOSEN_SHARE: Final = 0.75
_QUANTILE: Final = 2.2
"""Normal deviations that the guesses lose to their confidence bound, about."""
_INCREDIBLE: Final = 1e-9
"""Canary labels less probable than this do not have the stated probabilities."""


DRAWN: Final = "the canaries' labels were drawn independently, with the probabilities stated"


@dataclass(frozen=True)
class CanaryGuesses:
    """Guesses of labels that the auditor drew.

    Attributes
    ----------
    priors : float64 array of shape (c,)
        The probability with which each guessed label was drawn.
    correct : int
        How many of the guesses are the label that was drawn.
    chances : float64 array of shape (c,) or None
        P̂(guessed label | x), with which the mechanism is stated to draw.
    """

    priors: FloatArray
    correct: int
    chances: FloatArray | None = None

    def epsilon(self, alpha: float) -> float:
        """Return the lower bound of ε at a one-sided error probability."""
        return shift_lower(self.priors, self.correct, alpha)


@dataclass(frozen=True)
class CanaryEvidence:
    """Guesses of all canaries' labels, and of the most promising ones.

    Attributes
    ----------
    every : CanaryGuesses
    chosen : CanaryGuesses or None
        Of the canaries whose released label the model finds least probable.
    spread : float
        The probability that two labels drawn for one canary differ, on average.
    """

    every: CanaryGuesses
    chosen: CanaryGuesses | None
    spread: float
    name: str = "canaries"
    title: str = "canaries"

    def tests(self) -> Iterator[tuple[CanaryGuesses, float]]:
        """Return the sets of guesses that are bounded, with their share of alpha."""
        if self.chosen is None:
            yield self.every, 1.0
            return
        yield self.chosen, _CHOSEN_SHARE
        yield self.every, 1 - _CHOSEN_SHARE

    def bound(self, alpha: float) -> Certificate:
        """Return the bound at a one-sided error probability."""
        bounds = [(part.epsilon(alpha * share), part) for part, share in self.tests()]
        epsilon, best = max(bounds, key=lambda pair: pair[0])
        words = (
            "canaries: each guess from the released label is right with a probability of log-odds "
            "at most ε above those with which its label was drawn (Poisson-binomial tail)"
        )
        if len(bounds) > 1:
            words += f"; corrected for {len(bounds)} bounds"
        n = len(best.priors)
        return Certificate(epsilon, n, words, DRAWN)


def canary_evidence(context: AuditContext) -> CanaryEvidence | None:
    """Return the guesses of the canaries' labels, None where there are no canaries.

    Raise InputError if there are too few, or their labels cannot have been drawn as stated.
    """
    if context.release.canaries is None:
        return None
    return context.once("observational.canaries", lambda: _count(context))


def _count(context: AuditContext) -> CanaryEvidence:
    release = context.release
    table, rows = guessed_events(context)
    assert release.canaries is not None
    complete = np.asarray(np.isfinite(release.canaries).all(axis=1))
    _check_canaries(release.canaries[complete], context.truth[complete])
    drawn = rows[complete[rows]]
    guess = table_guess(table, context)[release.released[drawn]]
    priors, right = release.canaries[drawn, guess], guess == context.truth[drawn]
    spread = float(1 - (release.canaries[drawn] ** 2).sum(axis=1).mean())
    chances = _chances(context, drawn)
    known = chances if release.public_posterior is not None else None
    every = CanaryGuesses(priors, int(right.sum()), known)
    chosen = _chosen(context, priors, chances)
    if chosen is None:
        return CanaryEvidence(every, None, spread)
    stated = None if known is None else known[chosen]
    few = CanaryGuesses(priors[chosen], int(right[chosen].sum()), stated)
    return CanaryEvidence(every, few, spread)


def _chances(context: AuditContext, drawn: IndexArray) -> FloatArray | None:
    """Return roughly with what probability a model-based claim draws each canary's label.

    From the public P̂(y | x), or else from a model of the released label: from features and
    released labels alone. None for other mechanisms.
    """
    claim, scores = model_claim(context), context.release.public_posterior
    if claim is None:
        return None
    if scores is None:
        scores = cross_fitted_posterior(context, "released")
    chances = scores[drawn, context.release.released[drawn]]
    return np.asarray(claim.floor + (1 - len(claim.classes) * claim.floor) * chances)


def _chosen(
    context: AuditContext, priors: FloatArray, chance: FloatArray | None
) -> IndexArray | None:
    """Return the canaries whose released label is the least probable, best to guess.

    Chosen by features and released labels alone, given which the canaries' labels are independent:
    abstaining from the others needs no correction.
    """
    claim = model_claim(context)
    if chance is None or claim is None:
        return None
    order = np.argsort(chance, kind="stable")
    count = np.arange(1, len(order) + 1)
    p, q = np.cumsum(chance[order]) / count, np.cumsum(priors[order]) / count
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = 1 + (1 - claim.noise) / (claim.noise * p)
        right = q * ratio / (1 - q + q * ratio)
        value = np.log(ratio) - _QUANTILE / np.sqrt(count * right * (1 - right))
    value[: _FEWEST_CANARIES - 1] = -np.inf
    value = np.where(count * (1 - right) >= _FEWEST_WRONG, value, -np.inf)
    best = int(np.argmax(value))
    return order[: best + 1] if np.isfinite(value[best]) else None


def _check_canaries(drawn: FloatArray, truth: IntArray) -> None:
    """Check the canaries' probabilities, shape (c, k), and true labels, shape (c,)."""
    everyone = np.arange(len(drawn))
    if len(drawn) < _FEWEST_CANARIES:
        raise InputError(
            f"There must be at least {_FEWEST_CANARIES} canaries with probabilities for every "
            f"class; {len(drawn):,} rows have them."
        )
    never = int((drawn[everyone, truth] <= 0).sum())
    if never:
        raise InputError(
            "The canaries' labels must be ones that their probabilities allow (the proxy must "
            f"overlap the release); {never:,} of {len(drawn)} have probability 0."
        )
    likeliest, chance = drawn.argmax(axis=1), drawn.max(axis=1)
    hits = int((likeliest == truth).sum())
    tails = (
        ShiftedCoins.of(chance, up=True).at_least(hits, 0.0),
        ShiftedCoins.of(chance, up=False).at_most(hits, 0.0),
    )
    if min(tails) < _INCREDIBLE:
        raise InputError(
            "The canaries' labels must have been drawn with the probabilities stated; those of "
            f"{len(drawn)} canaries cannot have been (p < 1e-9)."
        )
