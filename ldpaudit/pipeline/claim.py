"""The claim that a release is held against, and what a policy pins of the plan."""

import math
from dataclasses import replace

from ldpaudit.audits.interface import Plan
from ldpaudit.errors import PolicyError
from ldpaudit.judging.policy import Policy
from ldpaudit.mechanisms import Mechanism, from_declaration, traits_of
from ldpaudit.release import Declaration, Release


def claim_of(release: Release, policy: Policy) -> tuple[Release, Mechanism]:
    """Return the release with the claim that counts, and that claim: the policy's or the file's.

    Raises
    ------
    InputError
        If the claim is not one that can be audited.
    PolicyError
        If the policy's claim cannot be held against the declared mechanism.
    """
    declared = release.declaration
    if policy.claim is None:
        return release, from_declaration(declared, release.classes)
    claimed = policy.claim.declaration(None if declared is None else declared.name)
    same = declared is not None and claimed.name == declared.name
    if same and (policy.claim.epsilon is not None or not traits_of(claimed.name).whole):
        mechanism = from_declaration(declared, release.classes)
        if "lambda" in claimed.parameters:
            raise PolicyError(f"A claim of {claimed.name!r} must be stated by its epsilon.")
        if policy.checks.claimed_epsilon is None or mechanism.epsilon is None:
            _check_within(mechanism, claimed)
        return release, mechanism
    if declared is not None and "classes" in declared.parameters:
        classes = declared.parameters["classes"]
        claimed = replace(claimed, parameters={**claimed.parameters, "classes": classes})
    release = replace(release, declaration=claimed)
    return release, from_declaration(release.declaration, release.classes)


def _check_within(declared: Mechanism, claimed: Declaration) -> None:
    """Check that the declared ε is within the policy's limit, where no check of it does.

    Raises
    ------
    PolicyError
        If the declared ε lies above the limit.
    """
    limit = claimed.parameters.get("epsilon")
    epsilon = math.inf if declared.epsilon is None else declared.epsilon
    if limit is not None and epsilon > limit * (1 + 1e-9):
        raise PolicyError(
            f"The policy allows ε = {limit:.6g}, but the release declares ε = {epsilon:.6g}."
        )


def pinned(plan: Plan, policy: Policy) -> Plan:
    """Return the plan with what the policy fixes."""
    seed = plan.seed if policy.audit.seed is None else policy.audit.seed
    return replace(
        plan,
        seed=seed,
        confidence=policy.audit.confidence,
        max_undetected_excess=policy.audit.max_undetected_excess.or_default(),
    )
