"""Label inference: how often an attacker with the release guesses a person's true label.

Every attack is fitted on one half of the rows and scored on the other, both ways. It is held
against guessing the most frequent label, against an attacker who has the features but no release,
and against what the claim allows at most. Being no better than the features alone is what good
privacy looks like.
"""

from collections.abc import Mapping

from ldpaudit.audits.attack_estimates import (
    best_estimates,
    confidence_curve,
    score_estimates,
    strongest,
)
from ldpaudit.audits.attack_outsider import outsider_estimates
from ldpaudit.audits.attack_references import AUDIT_ID, ceiling_estimates, utility_estimate
from ldpaudit.audits.attack_runs import run_attacks
from ldpaudit.audits.claimed_channel import aligned_channel, why_no_channel
from ldpaudit.audits.interface import AuditContext
from ldpaudit.audits.models import cross_fitted_posterior
from ldpaudit.errors import InsufficientDataError
from ldpaudit.mechanisms.channel import Channel
from ldpaudit.result import Finding, Note

MIN_ROWS = 40
"""With fewer rows there is nothing to fit and score an attack on."""


class LabelInferenceAudit:
    """Runs every attack and holds it against its references."""

    id = AUDIT_ID

    def unavailable(self, context: AuditContext) -> str | None:
        """Return why no attack can be scored, None where one can."""
        if context.release.truth is not None:
            return None
        reason = why_no_channel(context)
        if reason is None:
            return None
        return f"without true labels an attack cannot be scored: {reason}"

    def run(self, context: AuditContext) -> Finding:
        """Run it.

        Raises
        ------
        ldpaudit.errors.InsufficientDataError
            With fewer than 40 rows.
        """
        if len(context.release) < MIN_ROWS:
            raise InsufficientDataError(f"Attacks need at least {MIN_ROWS} rows.")
        channel = aligned_channel(context)
        if context.release.truth is None:
            assert channel is not None
            return _outsider(context, channel)
        return _insider(context, channel)


def _insider(context: AuditContext, channel: Channel | None) -> Finding:
    confidence = context.plan.confidence
    found = run_attacks(context)
    estimates = [e for run in found.runs for e in score_estimates(run, confidence)]
    best, bounds = best_estimates(found.runs, confidence)
    champion = strongest(found.runs)
    curve = None if champion is None else confidence_curve(champion, confidence)
    ceilings = ceiling_estimates(context, channel, cross_fitted_posterior(context, "truth"))
    utility, notes = utility_estimate(context, channel)
    return Finding(
        estimates=(*best, *estimates, *ceilings, *utility),
        curves=() if curve is None else (curve,),
        notes=(*notes, *_skipped(found.skipped)),
        bounds=bounds,
    )


def _outsider(context: AuditContext, channel: Channel) -> Finding:
    estimates, skipped = outsider_estimates(context, channel)
    ceilings = ceiling_estimates(context, channel, None)
    utility, notes = utility_estimate(context, channel)
    return Finding(
        estimates=(*estimates, *ceilings, *utility),
        notes=(*notes, *_skipped(skipped)),
    )


def _skipped(reasons: Mapping[str, str]) -> list[Note]:
    return [
        Note(audit=AUDIT_ID, text=f"The attack {name} was left out: {reason.rstrip('.')}.")
        for name, reason in reasons.items()
    ]
