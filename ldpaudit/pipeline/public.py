"""What everybody may see of an audit besides its decision: computed without true labels."""

import datetime
import math
import re
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from typing import Any, Final

import numpy as np

from ldpaudit.audits.allowed_excess import AllowedExcess
from ldpaudit.audits.interface import AuditContext
from ldpaudit.audits.mechanism.exact import exact_curves, exact_estimates
from ldpaudit.audits.power.outsider import excess_by_released_labels
from ldpaudit.datasets.domains import declared_labels
from ldpaudit.errors import InputError
from ldpaudit.judging.policy import Policy
from ldpaudit.judging.policy.explaining import WORDS
from ldpaudit.judging.policy.limits import Loss
from ldpaudit.mechanisms import UNKNOWN, Mechanism, from_declaration
from ldpaudit.pipeline.about import (
    digest_of,
    mechanism_info,
    node_info,
    node_mechanism_info,
    release_info,
)
from ldpaudit.pipeline.nodes import Column, Columns, Files, Node, Releases
from ldpaudit.release import Release, ReleasedLabels
from ldpaudit.result import AuditResult, MechanismInfo, PublicFacts, Question
from ldpaudit.running.stopping import Stopped

_ADDS_UP: Final = "claimed-epsilon"
"""The check that [claim] limits."""


def public_facts(
    context: AuditContext, policy: Policy, left_out: AbstractSet[str], today: datetime.date
) -> PublicFacts:
    """Return what everybody may see of one private column; ``context`` has all of its rows."""
    release = released_alone(context.release)
    claim = _claim(release)
    seen = release_info(release)
    # What is not held against the claim shows no excess, whatever the rows could show.
    looked = _ADDS_UP in policy.checks.asked() and left_out.isdisjoint(("mechanism", "power"))
    return PublicFacts(
        release=seen.model_copy(update={"truth": context.release.truth is not None}),
        mechanism=_mechanism(release, claim),
        estimates=() if claim is None else tuple(exact_estimates(claim)),
        curves=() if claim is None else tuple(exact_curves(claim)),
        excess=_excess(context, release, claim, policy) if looked else None,
        questions=questions(policy, release.sha256, today),
        left_out=tuple(sorted(left_out)),
    )


def public_facts_of(
    node: Columns | Releases | Files,
    parts: Sequence[AuditResult],
    epsilon: float | None,
    policy: Policy,
    today: datetime.date,
) -> PublicFacts:
    """Return what everybody may see of several columns or releases; ``epsilon``: as claimed."""
    sha256 = digest_of(node)
    bare = node
    if isinstance(node, Columns):
        columns = tuple(map(released_alone, node.file.columns))
        bare = replace(node, file=replace(node.file, columns=columns))
    shown = claimed_alone(node, epsilon)
    try:
        mechanism = node_mechanism_info(bare, shown)
    except InputError:  # One released label for all, and no classes declared.
        mechanism = MechanismInfo(name=UNKNOWN, declared=None, parameters={}, epsilon=None)
    facts = [part.public for part in parts if part.public is not None]
    seen = {"classes": 0, "class_names": ()}
    return PublicFacts(
        release=node_info(node, parts, sha256).model_copy(update=seen),
        mechanism=mechanism,
        questions=questions(policy, sha256, today),
        left_out=facts[0].left_out if facts else (),
    )


def claimed_alone(node: Node, epsilon: float | None) -> float | None:
    """Return the claimed ε of a node, which is ``epsilon``, without a look at true labels.

    Where a claim depends on them, that of the parts added up, or the largest where answers are
    remembered.
    """
    if all(map(_states_labels, node.leaves)):
        return epsilon
    if isinstance(node, Column):
        claim = _claim(released_alone(node.release))
        return None if claim is None else claim.epsilon
    parts = node.releases or node.columns or tuple(map(Column, node.leaves))
    known = [claimed_alone(part, part.epsilon) for part in parts]
    if None in known:
        return None
    once = not isinstance(node, Columns) and node.noise == "remembered"
    return (max if once else math.fsum)(value for value in known if value is not None)


def released_alone(release: Release) -> Release:
    """Return a release without its true labels, and with no class that only they have."""
    bare = replace(release, truth=None, canaries=None)
    if release.numeric is not None:
        bare = replace(bare, numeric=replace(release.numeric, truth=None))
    if _states_labels(release):
        return bare
    if declared_labels(release.declaration, "outputs") is not None:
        return replace(bare, classes=release.outputs)
    found, codes = np.unique(release.released, return_inverse=True)
    labels = tuple(release.outputs[code] for code in found)
    coded = ReleasedLabels(codes.reshape(-1).astype(np.int32))
    return replace(bare, classes=labels, outputs=labels, released=coded)


def _states_labels(release: Release) -> bool:
    """Return whether the claim names the labels, so that none is taken from the data."""
    apart = release.numeric is not None or release.bags is not None or release.reports is not None
    return apart or declared_labels(release.declaration, "classes") is not None


def _claim(release: Release) -> Mechanism | None:
    try:
        return from_declaration(release.declaration, release.classes)
    except InputError:  # One released label for all, and no classes declared.
        return None


def _mechanism(release: Release, claim: Mechanism | None) -> MechanismInfo:
    if claim is not None:
        return mechanism_info(release, claim)
    assert release.declaration is not None
    stated: dict[str, Any] = dict(release.declaration.parameters)
    return MechanismInfo(
        name=release.declaration.name,
        declared=release.declaration.source,
        parameters=stated,
        epsilon=stated.get("epsilon"),
    )


def _excess(
    context: AuditContext, release: Release, claim: Mechanism | None, policy: Policy
) -> float | None:
    """Return the smallest excess that true labels would show, at the level of one check of many."""
    if claim is None:
        return None
    alone = replace(
        context, release=release, claim=claim, guesses=None, companions=None, _shared={}
    )
    tests = [q for q in questions(policy) if q.level == "error"]
    shared = 1 if policy.audit.correction == "none" else max(len(tests), 1)
    try:
        return excess_by_released_labels(alone, (1 - context.plan.confidence) / shared)
    except Stopped:  # The audit was to end in time.
        return None


def questions(
    policy: Policy, sha256: str | None = None, today: datetime.date | None = None
) -> tuple[Question, ...]:
    """Return what a policy asks of a file, and which violations it accepts there on a day."""
    accepted = {
        waiver.check: waiver.expires.isoformat()
        for waiver in sorted(policy.waivers, key=lambda waiver: waiver.expires)
        if today and waiver.release_sha256 == sha256 and waiver.expires >= today
    }
    return tuple(
        Question(
            check=name,
            text=re.split(r"[.:] ", WORDS["checks"][name])[0] + ".",
            limits=_limits(policy, name),
            level=getattr(policy.checks, name.replace("-", "_")).level,
            accepted_until=accepted.get(name),
        )
        for name in policy.checks.asked()
    )


def _limits(policy: Policy, name: str) -> dict[str, float | str]:
    section = dict(getattr(policy.checks, name.replace("-", "_")))
    stated = {key: value for key, value in section.items() if key != "level"}
    if name == _ADDS_UP:
        stated |= {} if policy.claim is None else dict(policy.claim)
        audit = policy.audit
        stated |= {"min_rows": audit.min_rows, "confidence": audit.confidence}
        stated |= {"max_undetected_excess": audit.max_undetected_excess}
    return {k.rstrip("_"): _plain(value) for k, value in stated.items() if value is not None}


def _plain(value: Any) -> float | str:
    """Return a limit as a number, or as a policy spells it."""
    if isinstance(value, AllowedExcess):
        return "any" if math.isinf(value.nats) else f"{value.nats:g} or {value.share:.0%} of ε"
    if isinstance(value, Loss):
        return f"claim + {value.nats:g}" if value.above_claim else value.nats
    return value if isinstance(value, str) else float(value)
