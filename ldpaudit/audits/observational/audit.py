"""The observational audit: can the true label be told from one re-drawn given the features?

Somebody who sees features and released label is shown the true label or one drawn again from
P(label | features), and guesses which it is. An ε-label-DP channel shifts the odds by at most ε,
also where it uses the features, as model-based randomized response does: there counts of true
against released labels alone prove nothing, and this audit is what bounds ε.

It is certified where the re-drawn label's distribution is known by construction: among rows with
equal features (the re-drawn label is another person's), and for canaries, whose labels the auditor
drew. A model of P(label | features) may be wrong, and what the mechanism knows of the features
beyond the model looks like a leak: with it the bound is estimated.

References
----------
Kalemaj et al. (2025), Observational Auditing of Label Privacy, arXiv 2511.14084.
"""

from collections.abc import Iterator
from functools import partial

from ldpaudit.audits.assumptions.stated import INDEPENDENT
from ldpaudit.audits.claimed_channel import feature_dependence
from ldpaudit.audits.interface import AuditContext, Counts, Need
from ldpaudit.audits.observational.evidence import Proof, evidence_at_hand
from ldpaudit.audits.observational.game import proxy_findings
from ldpaudit.errors import InsufficientDataError
from ldpaudit.estimators.epsilon.bounds import EpsilonBound
from ldpaudit.result import Estimate, Finding, Note

AUDIT_ID = "observational"
LOWER = "observational.epsilon_lower"
MIN_ROWS = 40
_TITLE = "Re-drawn labels"
_UNCERTIFIED = (
    "No bound of ε is certified for a mechanism that uses the features: too few rows have the same "
    "features as a row with another true label, no canaries are given, and no public model that "
    "agrees with the released labels."
)
_REFERENCE = "Kalemaj et al. (2025); Hoeffding (1956), Theorem 5"


class ObservationalAudit:
    """Plays the game of true against re-drawn labels."""

    id = AUDIT_ID
    counts: Counts = "rows"
    needs: tuple[Need, ...] = ("truth", "labels", "rows")

    def unavailable(self, context: AuditContext) -> str | None:  # noqa: ARG002
        """Return None: true labels are all that it needs."""
        return None

    def run(self, context: AuditContext) -> Finding:
        """Play the game with rows that are alike, with canaries, and with a model of the labels.

        Raise InsufficientDataError with fewer than 40 rows, and InputError if a public table or the
        canaries cannot belong to the release.
        """
        if len(context.release) < MIN_ROWS:
            raise InsufficientDataError(f"The observational audit needs at least {MIN_ROWS} rows.")
        context.progress.step("true labels against re-drawn ones")
        evidence = evidence_at_hand(context)
        estimates = list(_certified(context, evidence))
        game, curve = proxy_findings(context)
        # Where no feature is used, the counts of the mechanism audit bound ε better, and a second
        # bound would only use up part of their error probability.
        needed = feature_dependence(context) is not None
        return Finding(
            estimates=(*estimates, *game),
            curves=(curve,),
            notes=(Note.info(AUDIT_ID, _UNCERTIFIED),) if needed and not evidence else (),
            bounds={LOWER: partial(_strongest, evidence)} if needed and evidence else {},
        )


def _strongest(evidence: list[Proof], alpha: float) -> float:
    return max(part.bound(alpha / len(evidence)).epsilon for part in evidence)


def _certified(context: AuditContext, evidence: list[Proof]) -> Iterator[Estimate]:
    alpha = 1 - context.plan.confidence
    if not evidence:
        return
    found = [(part.bound(alpha / len(evidence)), part) for part in evidence]
    best, strongest = max(found, key=lambda pair: pair[0].epsilon)
    words = strongest.how(best)
    if len(evidence) > 1:
        words += f"; the stronger of {len(evidence)}, each at half the error probability"
    yield _estimate(context, LOWER, _TITLE, best, words, strongest)
    for part in evidence:
        bound = part.bound(alpha)
        title, words = f"{_TITLE}, {part.title}", f"{part.how(bound)}; at its own level"
        yield _estimate(context, f"{LOWER}.{part.name}", title, bound, words, part)


def _estimate(
    context: AuditContext,
    identifier: str,
    title: str,
    bound: EpsilonBound,
    method: str,
    part: Proof,
) -> Estimate:
    return Estimate.lower_bound(
        identifier,
        title,
        bound.epsilon,
        context.plan.confidence,
        axis="epsilon",
        unit="nats",
        n=bound.n,
        method=method,
        assumptions=(part.assumption, INDEPENDENT),
        reference=_REFERENCE,
    )
