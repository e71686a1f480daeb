"""Power: what this audit could have found, and how many rows would find more.

An audit that finds nothing is worth as much as what it could have found.
"""

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from ldpaudit.audits.claimed_channel import aligned_channel
from ldpaudit.audits.epsilon_proofs import INSIDER, INSIDER_SHARES
from ldpaudit.audits.interface import AuditContext
from ldpaudit.audits.mechanism.evidence import (
    FEATURE_BLIND,
    feature_dependence,
    insider_evidence,
    label_counts,
    outsider_evidence,
)
from ldpaudit.audits.mechanism.local_reports import report_counts
from ldpaudit.audits.observational.power import (
    EXCESS,
    EXCESS_TITLE,
    WANTED_POWER,
    observational_power,
)
from ldpaudit.errors import InsufficientDataError
from ldpaudit.estimators.epsilon.bounds import class_counts
from ldpaudit.estimators.epsilon.guesses import GuessCounts, detectable_epsilon
from ldpaudit.estimators.epsilon.power import (
    detection_power,
    group_power,
    sharpened,
    smallest_detectable,
    worth_looking_for,
)
from ldpaudit.estimators.epsilon.strongest import PILOT_SHARE, design_bounds
from ldpaudit.mechanisms import RandomizedResponse
from ldpaudit.mechanisms.capabilities import PublicModelLabel
from ldpaudit.mechanisms.channel import Channel
from ldpaudit.release import IndexArray
from ldpaudit.result import Estimate, Finding, Note

_MOST_ROWS = 1e12


class PowerAudit:
    """Computes what the bounds of ε would have found."""

    id = "power"

    def unavailable(self, context: AuditContext) -> str | None:
        """Return why the power is not known, None where it is."""
        dependent = feature_dependence(context)
        if dependent is not None and not isinstance(context.claim, PublicModelLabel):
            return f"no bound of ε applies: {dependent}"
        epsilon = context.claim.epsilon
        if epsilon is not None and math.isinf(epsilon):
            return "the claimed ε is infinite: there is no excess to find"
        if aligned_channel(context) is None and context.release.truth is None:
            return "there are no true labels, and no channel is declared that could be sharpened"
        return None

    def run(self, context: AuditContext) -> Finding:
        """Run it; raise InsufficientDataError if no bound of ε could be computed at all."""
        if isinstance(context.claim, PublicModelLabel):
            return observational_power(context)
        channel = aligned_channel(context)
        if context.release.truth is None:
            assert channel is not None
            return _outsider(context, channel)
        if insider_evidence(context) is None:
            raise InsufficientDataError("fewer than two classes occur among the true labels")
        reports = report_counts(context)
        if reports is not None:
            return _reports(context, reports)
        sizes = class_counts(label_counts(context))
        if channel is None:
            return _unclaimed(context, sizes)
        return _insider(context, channel, sizes)


def _insider(context: AuditContext, channel: Channel, sizes: IndexArray) -> Finding:
    limit, target = _limit(context, channel), context.plan.max_undetected_excess
    level = (1 - context.plan.confidence) * INSIDER_SHARES[INSIDER]

    def excess(alpha: float) -> float:
        return _smallest(sizes, channel, limit, alpha * INSIDER_SHARES[INSIDER]) - limit

    value = excess(1 - context.plan.confidence)
    family = (
        "the mechanism's family: the claimed channel with every entry raised to one power (for "
        "randomized response: randomized response), in truth at a larger ε"
    )
    words = (
        "from binomial distributions: the smallest excess at which the certified bound from true "
        f"labels, at level {1 - level:.4g}, exceeds the claim with probability "
        f"{WANTED_POWER:.0%}; {family}"
    )
    estimates = (
        Estimate.exact(EXCESS, EXCESS_TITLE, value, unit="nats", method=words),
        Estimate.exact(
            "power.rows_needed",
            "Further rows for the power that the policy asks for",
            _rows_needed(sizes, channel, limit, target, level),
            unit="rows",
            method=f"further rows, in the same classes' proportions, until an excess of {target:g} "
            f"nats is found with probability {WANTED_POWER:.0%} (to 2 %)",
        ),
    )
    return Finding(estimates=estimates, notes=_no_power(value), bounds={EXCESS: excess})


def _reports(context: AuditContext, counts: GuessCounts) -> Finding:
    """Return what the bound from recorded reports could have found."""
    limit = context.claim.epsilon or 0.0

    def excess(alpha: float) -> float:
        return detectable_epsilon(counts, limit, alpha * INSIDER_SHARES[INSIDER]) - limit

    return _estimated(
        excess,
        1 - context.plan.confidence,
        n=counts.candidates,
        method="the smallest excess at which the certified bound from the reports' likelihood "
        f"ratio exceeds the claim with probability {WANTED_POWER:.0%}",
        assumptions=(
            "a protocol at a larger ε lets guesses be made as often as the declared one did here",
        ),
    )


def _estimated(excess: Callable[[float], float], alpha: float, **details: Any) -> Finding:
    """Return the smallest excess that would be found at a level, as a number with assumptions."""
    value = excess(alpha)
    estimate = Estimate.estimated(EXCESS, EXCESS_TITLE, value, unit="nats", **details)
    return Finding(estimates=(estimate,), notes=_no_power(value), bounds={EXCESS: excess})


def _is_randomized_response(channel: Channel) -> bool:
    """Return whether a channel keeps each label with one probability and favours no other."""
    if channel.outputs != channel.classes or not math.isfinite(channel.epsilon):
        return False
    alike = RandomizedResponse.from_epsilon(channel.classes, channel.epsilon).channel
    return bool(np.allclose(alike.matrix, channel.matrix, atol=1e-9))


def _limit(context: AuditContext, channel: Channel) -> float:
    """Return the claimed ε; the channel to the bins of a numeric mechanism may have a smaller."""
    return channel.epsilon if context.claim.epsilon is None else context.claim.epsilon


def _smallest(sizes: IndexArray, channel: Channel, limit: float, alpha: float) -> float:
    design = design_bounds(sizes, worth_looking_for(channel).matrix)
    if design is None:
        return math.inf

    def power(epsilon: float) -> float:
        return detection_power(design, sizes, sharpened(channel, epsilon).matrix, limit, alpha)

    return smallest_detectable(power, limit, WANTED_POWER)


def _rows_needed(
    sizes: IndexArray, channel: Channel, limit: float, target: float, alpha: float
) -> float:
    """Return how many more rows find an excess ``target``, 0 where these do."""
    worse = sharpened(channel, limit + target).matrix

    def enough(factor: float) -> bool:
        larger = np.ceil(sizes * factor).astype(np.int64)
        design = design_bounds(larger, worth_looking_for(channel).matrix)
        assert design is not None
        return detection_power(design, larger, worse, limit, alpha) >= WANTED_POWER

    if enough(1.0):
        return 0.0
    low, high = 1.0, 2.0
    while not enough(high):
        low, high = high, 2 * high
        if high * sizes.sum() > _MOST_ROWS:
            return math.inf
    while high / low > 1.02:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if enough(middle) else (middle, high)
    return float(np.ceil(sizes.sum() * (high - 1)))


def _no_power(excess: float) -> tuple[Note, ...]:
    text = (
        "With these rows and features no excess over the claim, however large, would be found "
        "reliably."
    )
    return (Note.warning("power", text),) if math.isinf(excess) else ()


def _unclaimed(context: AuditContext, sizes: IndexArray) -> Finding:
    release, alpha = context.release, 1 - context.plan.confidence
    if len(release.outputs) != len(release.classes):
        text = "Without a claim the power is computed only where outputs and classes are the same."
        return Finding(notes=(Note.info("power", text),))
    used = (sizes - (PILOT_SHARE * sizes).astype(np.int64)).astype(np.int64)

    def power(epsilon: float) -> float:
        channel = RandomizedResponse.from_epsilon(release.classes, epsilon).channel.matrix
        design = design_bounds(used, channel)
        return 0.0 if design is None else detection_power(design, used, channel, 0.0, alpha)

    estimate = Estimate.estimated(
        "power.detectable_epsilon",
        "Smallest ε found to be above 0 with 90 % power",
        smallest_detectable(power, 0.0, WANTED_POWER),
        unit="nats",
        n=int(sizes.sum()),
        method=f"the smallest ε certified to be above 0 with probability {WANTED_POWER:.0%}",
        assumptions=(
            "the mechanism is randomized response",
            "the method is chosen as well as if its ε were known",
        ),
    )
    return Finding(estimates=(estimate,))


def _outsider(context: AuditContext, channel: Channel) -> Finding:
    evidence = outsider_evidence(context)
    if isinstance(evidence, str):
        raise InsufficientDataError(f"no bound of ε could be computed: {evidence}")
    if not _is_randomized_response(channel):
        text = (
            "What the bound from the release alone could have found is estimated for randomized "
            "response only; for another channel it is not known."
        )
        return Finding(notes=(Note.warning("power", text),))
    limit, k = _limit(context, channel), len(channel.classes)

    def excess(alpha: float) -> float:
        test = evidence.strongest_test(alpha)
        power = partial(group_power, test, k, limit, alpha=alpha)
        return smallest_detectable(power, limit, WANTED_POWER) - limit

    return _estimated(
        excess,
        1 - context.plan.confidence,
        n=int(evidence.strongest_test(1 - context.plan.confidence).sizes.sum()),
        method="probability that the certified bound from the release alone exceeds the claim, "
        f"{WANTED_POWER:.0%}, for the groups of rows that gave the bound",
        assumptions=(
            FEATURE_BLIND,
            "the claim is right about this release, so that the groups' observed agreement shows "
            "how well the features tell the true labels of their rows",
            "groups as good would be found in a release at a larger ε",
        ),
    )
