"""Power: what this audit could have found, and how many rows would find more.

An audit that finds nothing is worth as much as what it could have found.
"""

import math

import numpy as np

from ldpaudit.audits.claimed_channel import aligned_channel
from ldpaudit.audits.interface import AuditContext, Counts, Need
from ldpaudit.audits.mechanism.evidence import feature_dependence, insider_evidence, label_counts
from ldpaudit.audits.mechanism.local_reports import report_counts
from ldpaudit.audits.observational.power import (
    EXCESS,
    EXCESS_TITLE,
    WANTED_POWER,
    observational_power,
)
from ldpaudit.audits.power.insider import insiders_power, reports_power
from ldpaudit.audits.power.outsider import outsiders_channel, outsiders_power
from ldpaudit.errors import InsufficientDataError
from ldpaudit.estimators.epsilon.bounds import class_counts
from ldpaudit.estimators.epsilon.power import detection_power, smallest_detectable
from ldpaudit.estimators.epsilon.strongest import PILOT_SHARE, design_bounds
from ldpaudit.mechanisms import RandomizedResponse
from ldpaudit.mechanisms.capabilities import PublicModelLabel
from ldpaudit.release import IndexArray
from ldpaudit.result import Estimate, Finding, Note

_NEARLY = 1e-9


class PowerAudit:
    """Computes what the bounds of ε would have found."""

    id = "power"
    counts: Counts = "rows"
    needs: tuple[Need, ...] = ("rows",)

    def unavailable(self, context: AuditContext) -> str | None:
        """Return why the power is not known, None where it is."""
        if context.claim.by_stratum:
            return "each stratum has its own claim, and an audit of its own"
        dependent = feature_dependence(context)
        if dependent is not None and not isinstance(context.claim, PublicModelLabel):
            return f"no bound of ε applies: {dependent}"
        epsilon = context.claim.epsilon
        if epsilon is not None and math.isinf(epsilon):
            return "the claimed ε is infinite: there is no excess to find"
        if context.release.truth is None and outsiders_channel(context) is None:
            return "there are no true labels, and no channel is declared that could be sharpened"
        return None

    def run(self, context: AuditContext) -> Finding:
        """Run it; raise InsufficientDataError if no bound of ε could be computed at all."""
        if isinstance(context.claim, PublicModelLabel):
            return observational_power(context)
        if _is_constant(context):
            return _constant(context)
        if context.release.truth is None:
            outsiders = outsiders_channel(context)
            assert outsiders is not None
            return outsiders_power(context, outsiders)
        if insider_evidence(context) is None:
            raise InsufficientDataError("fewer than two classes occur among the true labels")
        reports = report_counts(context)
        if reports is not None:
            return reports_power(context, reports)
        channel = aligned_channel(context)
        sizes = class_counts(label_counts(context))
        if channel is None:
            return _unclaimed(context, sizes)
        return insiders_power(context, channel, sizes)


def _is_constant(context: AuditContext) -> bool:
    """Return whether the claim gives everybody one label, and the release has just that one."""
    channel, released = aligned_channel(context), context.release.released
    return (
        context.release.constant
        and channel is not None
        and bool(np.all(channel.matrix[:, released[0]] > 1 - _NEARLY))
    )


def _constant(context: AuditContext) -> Finding:
    estimate = Estimate.estimated(
        EXCESS,
        EXCESS_TITLE,
        0.0,
        unit="nats",
        n=len(context.release),
        method="every row has the same released label, whatever the true one",
        assumptions=("a mechanism that gave anybody another label would have done so in one row",),
    )
    return Finding(estimates=(estimate,))


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
