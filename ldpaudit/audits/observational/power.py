"""What the observational audit could have found of a mechanism that uses the features.

The supposed violation is the claimed model-based randomized response with less noise, the same
model and the same floor. How improbable the model finds the released labels of the rows at hand is
taken from their counts, at the less informative end of a confidence interval, and without
believing the claim's λ.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np

from ldpaudit.audits.interface import AuditContext
from ldpaudit.audits.observational.at_hand import Proof, evidence_at_hand
from ldpaudit.audits.observational.canaries import CanaryEvidence, CanaryGuesses
from ldpaudit.audits.observational.evidence import MatchedEvidence
from ldpaudit.audits.observational.public_model import ModelEvidence
from ldpaudit.errors import InsufficientDataError
from ldpaudit.estimators.epsilon.matched.bound import MatchedTest
from ldpaudit.estimators.epsilon.matched.power import (
    MatchedPower,
    ModelBasedFamily,
    canary_power,
    guessed_chance,
    target_chance,
)
from ldpaudit.estimators.epsilon.power import smallest_detectable
from ldpaudit.estimators.intervals.binomial import trials_lower, trials_upper
from ldpaudit.mechanisms.capabilities import PublicModelLabel
from ldpaudit.release import FloatArray
from ldpaudit.result import Estimate, Finding, Note

EXCESS: Final = "power.min_detectable_excess"
EXCESS_TITLE: Final = "Smallest excess ε found with 90 % power"
WANTED_POWER: Final = 0.9
_FAMILY: Final = (
    "a violation is the claimed mechanism with less noise, the same model and the same floor"
)


@dataclass(frozen=True)
class Detector:
    """One bound of ε: what it is likely to find, and what no number of its rows would.

    Attributes
    ----------
    power : callable
        From the true ε and the whole error probability of this kind of evidence to the probability
        that the claim is refuted.
    chance : float
        What the model gives the released label on average in the rows behind the bound.
    """

    power: Callable[[float, float], float]
    chance: float


def observational_power(context: AuditContext) -> Finding:
    """Return the smallest excess over the claim that is found with 90 % probability.

    Raise InsufficientDataError if there is no certified bound for the mechanism.
    """
    claim, release = context.claim, context.release
    assert isinstance(claim, PublicModelLabel)
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
    detectors = [d for part in evidence for d in _detectors(part, family, limit, alpha)]

    def excess(error: float) -> float:
        share = error / len(evidence)

        def power(epsilon: float) -> float:
            return max(detector.power(epsilon, share) for detector in detectors)

        return smallest_detectable(power, limit, WANTED_POWER) - limit

    value = excess(alpha)
    estimate = _estimate(context, value, sum(_rows(part) for part in evidence))
    notes = tuple(_missing(context, value, detectors, family, limit))
    return Finding(estimates=(estimate,), notes=notes, bounds={EXCESS: excess})


def _rows(part: Proof) -> int:
    if isinstance(part, ModelEvidence):
        return part.rows
    if isinstance(part, MatchedEvidence):
        return max(test.counts.cases + test.counts.controls for test in part.tests())
    return len(part.every.priors)


def _detectors(
    part: Proof, family: ModelBasedFamily, limit: float, alpha: float
) -> Iterator[Detector]:
    if isinstance(part, ModelEvidence):
        model = part
        yield Detector(lambda epsilon, error: model.power(epsilon, limit, error), family.floor)
        return
    if isinstance(part, CanaryEvidence):
        for guesses, share in part.tests():
            chance = _guessed(part, guesses, family, alpha)
            yield _canary_detector(guesses, share, chance, family, limit)
        return
    for test in part.tests():
        yield _matched_detector(test, family, limit, alpha)


def _matched_detector(
    test: MatchedTest, family: ModelBasedFamily, limit: float, alpha: float
) -> Detector:
    chance = min(max(target_chance(test.counts, alpha), family.floor), 1 - family.floor)

    def power(epsilon: float, error: float) -> float:
        return MatchedPower(test, family, chance, limit, error)(epsilon)

    return Detector(power, min(chance, 1 - chance))


def _canary_detector(
    guesses: CanaryGuesses,
    share: float,
    chance: FloatArray | float,
    family: ModelBasedFamily,
    limit: float,
) -> Detector:
    def power(epsilon: float, error: float) -> float:
        shift = family.shift(epsilon, chance)
        return canary_power(guesses.priors, shift, limit, error * share)

    return Detector(power, float(np.mean(chance)))


def _guessed(
    part: CanaryEvidence, guesses: CanaryGuesses, family: ModelBasedFamily, alpha: float
) -> FloatArray | float:
    """Return what the model gives the guessed labels: as stated, or at most, as counts show.

    A released label is the canary's own more often than another label drawn for it would be, by
    (1 − λ) times the probability that the two differ: that gives λ, without the claim.
    """
    every, other = part.every, float(part.every.priors.mean())
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


def _estimate(context: AuditContext, value: float, n: int) -> Estimate:
    drawn = (
        "the public probabilities are those that the mechanism draws from, where the counts do "
        "not contradict them"
    )
    known = context.release.public_posterior is not None
    return Estimate.estimated(
        EXCESS,
        EXCESS_TITLE,
        value,
        unit="nats",
        n=n,
        method="the smallest excess at which the certified bound from rows with equal features, "
        f"canaries or the public model exceeds the claim with probability {WANTED_POWER:.0%}; how "
        "improbable the released labels there are to the model "
        + ("is as stated" if known else "is counted, at the less informative end of an interval"),
        assumptions=(
            _FAMILY,
            "as many guesses could be made at a larger ε as were made here",
            *((drawn,) if known else ()),
        ),
    )


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
