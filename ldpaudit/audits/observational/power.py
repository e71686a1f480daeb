"""What the observational audit could have found of a mechanism that uses the features.

The supposed violation is the claimed model-based randomized response with less noise, the same
model and the same floor. How improbable the model finds the released labels of the rows at hand is
taken from their counts, at the less informative end of a confidence interval, and without
believing the claim's λ.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from typing import Final

import numpy as np
from scipy.special import expit, logit

from ldpaudit.audits.epsilon_proofs import EXCESS, EXCESS_TITLE
from ldpaudit.audits.interface import AuditContext
from ldpaudit.audits.observational.evidence import (
    CanaryGuesses,
    ModelEvidence,
    Proof,
    evidence_at_hand,
)
from ldpaudit.errors import InsufficientDataError
from ldpaudit.estimators.epsilon.bounds import GroupTest
from ldpaudit.estimators.epsilon.matched import ModelBasedFamily, guessed_chance, target_chance
from ldpaudit.estimators.epsilon.power import WANTED_POWER, is_found, smallest_excess
from ldpaudit.estimators.intervals.binomial import ShiftedCoins, trials_lower, trials_upper
from ldpaudit.mechanisms.capabilities import PublicModelLabel
from ldpaudit.release import BoolArray, FloatArray
from ldpaudit.result import Estimate, Finding, Note

_FAMILY: Final = (
    "a violation is the claimed mechanism with less noise, the same model and the same floor"
)


Find = Callable[[float, float, int, np.random.Generator], BoolArray]
"""From the error probability of a kind of evidence, the true ε, a number of releases and their
randomness: in which of them the test finds more than is claimed, bool."""


@dataclass(frozen=True)
class Detector:
    """One test: what it finds in simulated releases, and what the model gives released labels.

    ``chance``: on average in the rows behind the bound.
    """

    find: Find
    chance: float


def observational_power(context: AuditContext) -> Finding:
    """Return the smallest excess over the claim that is found with 90 % probability.

    Raise InsufficientDataError if there is no certified bound for the mechanism.
    """
    claim, release = context.claim.offers(PublicModelLabel), context.release
    assert claim is not None
    if release.outputs != release.classes:
        raise InsufficientDataError("the released values are not the classes")
    evidence = evidence_at_hand(context)
    if not evidence:
        raise InsufficientDataError(
            "too few rows have the same features as a row with another true label, and neither "
            "canaries nor the public model are given"
        )
    family, limit = ModelBasedFamily(claim.floor), claim.epsilon
    alpha = 1 - context.plan.confidence
    detectors = [
        _detector(test, part, family, limit, alpha) for part in evidence for test in part.tests
    ]

    def excess(error: float) -> float:
        share = error / len(evidence)
        return smallest_excess(
            lambda epsilon: any(is_found(partial(d.find, share, epsilon)) for d in detectors), limit
        )

    value, known = excess(alpha), release.public_posterior is not None
    found = "as stated" if known else "counted, at the less informative end of an interval"
    drawn = (
        "the public probabilities are those that the mechanism draws from, where the counts do "
        "not contradict them"
    )
    estimate = Estimate.estimated(
        EXCESS,
        EXCESS_TITLE,
        value,
        unit="nats",
        n=sum(max(test.bound(alpha).n for test in part.tests) for part in evidence),
        method="the smallest excess at which the certified bound from rows with equal features, "
        "canaries or the public model exceeds the claim in "
        f"{WANTED_POWER:.0%} of simulated releases; how improbable the released labels there are "
        f"to the model is {found}",
        assumptions=(
            _FAMILY,
            "as many guesses could be made at a larger ε as were made here",
            *((drawn,) if known else ()),
        ),
    )
    notes = tuple(_missing(context, value, detectors, family, limit))
    return Finding(estimates=(estimate,), notes=notes, bounds={EXCESS: excess})


def _detector(
    test: GroupTest | CanaryGuesses | ModelEvidence,
    part: Proof,
    family: ModelBasedFamily,
    limit: float,
    alpha: float,
) -> Detector:
    """Return how a test fares in releases with another ε of the claimed family."""
    if isinstance(test, GroupTest):
        target = min(max(target_chance(test, alpha), family.floor), 1 - family.floor)

        def matched(
            error: float, epsilon: float, draws: int, rng: np.random.Generator
        ) -> BoolArray:
            outputs = family.outputs(epsilon, target)
            return test.simulated(outputs, error, draws, rng) > limit

        return Detector(matched, min(target, 1 - target))
    if isinstance(test, CanaryGuesses):
        chance, fewest = _guessed(part, test, family, alpha), cache(partial(test.fewest, limit))

        def guessed(
            error: float, epsilon: float, draws: int, rng: np.random.Generator
        ) -> BoolArray:
            with np.errstate(divide="ignore"):
                right = expit(logit(test.priors) + family.shift(epsilon, chance))
            return ShiftedCoins.of(right, up=False).draw(draws, rng) >= fewest(error)

        return Detector(guessed, float(np.mean(chance)))

    def changed(error: float, epsilon: float, draws: int, rng: np.random.Generator) -> BoolArray:
        # The binomial distribution spreads at least as far as the changes do.
        share = min(family.noise(epsilon) * test.drawn_otherwise, 1.0)
        return test.epsilon(rng.binomial(test.rows, share, draws), error) > limit

    return Detector(changed, family.floor)


def _guessed(
    part: Proof, guesses: CanaryGuesses, family: ModelBasedFamily, alpha: float
) -> FloatArray | float:
    """Return what the model gives the guessed labels: as stated, or at most, as counts show.

    A released label is the canary's own more often than another label drawn for it would be, by
    (1 − λ) times the probability that the two differ: that gives λ, without the claim.
    """
    every = part.tests[-1]
    assert isinstance(every, CanaryGuesses)
    other = float(every.priors.mean())
    right = [
        float(end(every.correct, len(every.priors), alpha / 2))
        for end in (trials_upper, trials_lower)
    ]
    least, most = (min(max(1 - (r - other) / part.spread, 1e-12), 1.0) for r in right)
    low, high = guessed_chance(
        guesses.priors, guesses.correct, (least, most), family.floor, alpha / 2
    )
    # The harmonic mean represents all of them: the shifts' average is what is seen.
    if guesses.chances is not None and low <= float(1 / np.mean(1 / guesses.chances)) <= high:
        return guesses.chances
    return high


def _missing(
    context: AuditContext,
    value: float,
    detectors: list[Detector],
    family: ModelBasedFamily,
    limit: float,
) -> Iterator[Note]:
    """Yield what the release lacks for the wanted power."""
    wanted = context.plan.max_undetected_excess.at(limit)
    if value <= wanted:
        return
    blind = min(family.blind_up_to(limit, d.chance) - limit for d in detectors)
    if blind > wanted:
        upward = math.ceil(100 * blind) / 100
        text = (
            f"However many rows like these there were, an excess up to {upward:g} nats would go "
            "unnoticed: ε is reached only in rows in which the model gives a label its floor, and "
            "the rows that can be compared lie above it. More power needs rows with equal "
            "features, or canaries, for which the model finds one label as improbable as the floor."
        )
    else:
        text = (
            f"Too few rows can be compared to find an excess of {wanted:g} nats. That needs more "
            "rows with equal features and different true labels, or more canaries, where the model "
            "finds one label improbable."
        )
    yield Note.warning("power", text)
