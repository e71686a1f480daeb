"""The kinds of certified evidence that a release allows about a channel that uses features."""

from ldpaudit.audits.interface import AuditContext
from ldpaudit.audits.observational.canaries import CanaryEvidence, canary_evidence
from ldpaudit.audits.observational.evidence import MatchedEvidence, matched_evidence
from ldpaudit.audits.observational.public_model import ModelEvidence, model_evidence

Proof = MatchedEvidence | CanaryEvidence | ModelEvidence


def evidence_at_hand(context: AuditContext) -> list[Proof]:
    """Return the evidence that there is; its kinds share the error probability equally."""
    every = (matched_evidence(context), canary_evidence(context), model_evidence(context))
    return [part for part in every if part is not None]
