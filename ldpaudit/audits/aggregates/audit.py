"""Aggregates of labels: what the released sum of a bag gives away about each label in it.

The attacker knows the mechanism, and P(label | features) from other people; the posterior of every
label given the bag's released sum is exact. Bags, not rows, are independent: models are fitted on
one half of the bags and scored on the other, both ways, and every interval counts bags.
"""

from functools import partial
from typing import Final

from ldpaudit.audits.aggregates.estimates import attack_estimates, expectation_findings
from ldpaudit.audits.aggregates.noise import bag_bound, noise_estimates, unclipped_residuals
from ldpaudit.audits.aggregates.runs import run_attacks, shared_priors
from ldpaudit.audits.interface import AuditContext, Counts, Need
from ldpaudit.errors import InsufficientDataError
from ldpaudit.mechanisms.capabilities import BagSums
from ldpaudit.result import Finding, Note

AUDIT_ID: Final = "aggregates"
LOWER: Final = "aggregates.epsilon_lower"
MIN_BAGS: Final = 20


class AggregatesAudit:
    """Attacks the labels in bags whose sums were released."""

    id = AUDIT_ID
    counts: Counts = "rows"
    needs: tuple[Need, ...] = ("labels",)

    def unavailable(self, context: AuditContext) -> str | None:
        """Return why it does not apply, None where it does."""
        if context.release.bags is None or not isinstance(context.claim, BagSums):
            return "the release is not one of aggregates of labels"
        return None

    def run(self, context: AuditContext) -> Finding:
        """Run it.

        Raise InsufficientDataError with fewer than 20 bags, InputError if a bag is too large for
        its exact posterior to be computed.
        """
        bags, claim = context.bags, context.claim
        assert isinstance(claim, BagSums)
        if len(bags.released) < MIN_BAGS:
            raise InsufficientDataError(
                f"Attacks on bags need at least {MIN_BAGS} bags; there are {len(bags.released)}."
            )
        context.progress.step("the posterior of every label in its bag")
        if context.release.truth is None:
            priors = shared_priors(bags)
            curves, expected = expectation_findings(context, claim, priors, "the bags' own sums")
            return Finding(estimates=tuple(expected), curves=curves, notes=_limits(claim))
        return _insider(context, claim)


def _insider(context: AuditContext, claim: BagSums) -> Finding:
    runs, priors = run_attacks(context, claim)
    estimates, bounds = attack_estimates(runs, context.plan.confidence)
    curves, expected = expectation_findings(context, claim, priors, "a model of other bags")
    every = (*estimates, *expected, *noise_estimates(context, claim))
    if claim.noise != "none":
        bounds = {**bounds, LOWER: partial(bag_bound, unclipped_residuals(context))}
    return Finding(estimates=every, curves=curves, notes=_limits(claim), bounds=bounds)


def _limits(claim: BagSums) -> tuple[Note, ...]:
    if claim.noise != "none":
        return ()
    text = (
        "Without noise no ε holds: where all labels of a bag are the same, its sum reveals every "
        "one, and the multiplicative advantage is infinite."
    )
    return (Note.warning(AUDIT_ID, text),)
