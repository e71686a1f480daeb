"""What everybody may see of an audit besides its decision: computed without true labels."""

import datetime
import math
import re
from collections.abc import Set as AbstractSet
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final

import numpy as np

from ldpaudit.audits.interface import AuditContext, in_part
from ldpaudit.audits.mechanism.claimed import exact_curves, exact_estimates
from ldpaudit.audits.models import known_of_features
from ldpaudit.audits.power import excess_by_released_labels
from ldpaudit.datasets.domains import declared_labels
from ldpaudit.errors import InputError
from ldpaudit.judging.policy import Policy
from ldpaudit.judging.policy.explaining import CHECKS
from ldpaudit.judging.policy.sections import Loss
from ldpaudit.mechanisms import Mechanism
from ldpaudit.mechanisms.capabilities import NoisyFeatures
from ldpaudit.options.allowed_excess import AllowedExcess
from ldpaudit.pipeline.described import claim_of, mechanism_info, release_info
from ldpaudit.release import Release, ReleasedLabels
from ldpaudit.result import MechanismInfo, PublicFacts, Question
from ldpaudit.work.progress import Stopped

_ADDS_UP: Final = "claimed-epsilon"
"""The check that [claim] limits."""
_OF_FEATURES: Final = "feature-noise"


def public_facts(
    context: AuditContext,
    policy: Policy,
    left_out: AbstractSet[str],
    today: datetime.date,
    *,
    power: bool = True,
) -> PublicFacts:
    """Return what everybody may see of one private column; ``context`` has all of its rows.

    ``power``: whether to state the excess that true labels would show.
    """
    release, truth = released_alone(context.release), context.release.truth is not None
    claim = claim_alone(release)
    noisy, replayed = has_noisy_features(claim), context.replay is not None
    asked = questions(policy, release.sha256, today, replayed=replayed, noisy=noisy)
    declaration = release.declaration
    if claim is not None:
        mechanism = mechanism_info(release, claim, claim.epsilon)
    else:
        assert declaration is not None
        stated: dict[str, Any] = dict(declaration.parameters)
        known = {"name": declaration.name, "declared": declaration.source}
        mechanism = MechanismInfo(**known, parameters=stated, epsilon=stated.get("epsilon"))
    # What is not held against the claim shows no excess, whatever the rows could show.
    excess = None
    if (
        power
        and claim
        and _ADDS_UP in policy.checks.asked()
        and left_out.isdisjoint(("mechanism", "power"))
    ):
        # Where audits look at a part of the rows, what they know is of that part.
        memo = known_of_features(context) if in_part(context) is context else {}
        alone = replace(
            context.of(release, claim=claim, memo=memo), run=replace(context.run, guesses=None)
        )
        tests = sum(question.level == "error" for question in asked)
        shared = 1 if policy.audit.correction == "none" else max(tests, 1)
        with alone.run.stop.part(), suppress(Stopped):  # The audit was to end in time.
            excess = excess_by_released_labels(alone, (1 - context.plan.confidence) / shared)
    shared_release = release_info(release).model_copy(update={"truth": truth, "before": None})
    estimates = () if claim is None else tuple(exact_estimates(claim))
    curves = () if claim is None else tuple(exact_curves(claim))
    return PublicFacts(
        release=shared_release,
        mechanism=mechanism,
        estimates=estimates,
        curves=curves,
        excess=excess,
        questions=asked,
        left_out=tuple(sorted(left_out)),
    )


def has_noisy_features(claim: Mechanism | None) -> bool:
    """Return whether noise is claimed of the features."""
    return claim is not None and claim.offers(NoisyFeatures) is not None


def released_alone(release: Release) -> Release:
    """Return a release without its true labels, and with no class that only they have."""
    bare = replace(release, truth=None, canaries=None)
    if release.numeric is not None:
        bare = replace(bare, numeric=replace(release.numeric, truth=None))
    if states_labels(release):
        return bare
    if declared_labels(release.declaration, "outputs") is not None:
        return replace(bare, classes=release.outputs)
    found, codes = np.unique(release.released, return_inverse=True)
    labels = tuple(release.outputs[code] for code in found)
    coded = ReleasedLabels(codes.reshape(-1).astype(np.int32))
    return replace(bare, classes=labels, outputs=labels, released=coded)


def states_labels(release: Release) -> bool:
    """Return whether the claim names the labels, so that none is taken from the data."""
    apart = release.numeric is not None or release.bags is not None or release.reports is not None
    return apart or declared_labels(release.declaration, "classes") is not None


def claim_alone(release: Release) -> Mechanism | None:
    """Return what a release without true labels declares; None where that needs more labels."""
    try:
        return claim_of(release)
    except InputError:  # One released label for all, and no classes declared.
        return None


def questions(
    policy: Policy,
    sha256: str | None = None,
    today: datetime.date | None = None,
    *,
    replayed: bool = False,
    noisy: bool = False,
) -> tuple[Question, ...]:
    """Return what a policy asks of a file, and which violations it accepts there on a day.

    ``replayed``: whether the noise was drawn again; else that is asked only where it is required.
    ``noisy``: whether noise is claimed of the features; else nothing is asked of it.
    """
    accepted = {
        waiver.check: waiver.expires.isoformat()
        for waiver in sorted(policy.waivers, key=lambda waiver: waiver.expires)
        if today and waiver.release_sha256 == sha256 and waiver.expires >= today
    }
    found = []
    for name in policy.checks.asked():
        section = getattr(policy.checks, name.replace("-", "_"))
        if not replayed and not getattr(section, "required", True):
            continue
        if name == _OF_FEATURES and not noisy:
            continue
        limits = {key: value for key, value in dict(section).items() if key != "level"}
        if name == _ADDS_UP:
            audit = policy.audit
            limits |= {} if policy.claim is None else dict(policy.claim)
            limits |= {"min_rows": audit.min_rows, "confidence": audit.confidence}
            limits |= {"max_undetected_excess": audit.max_undetected_excess}
        question = Question(
            check=name,
            text=re.split(r"[.:] ", CHECKS[name])[0] + ".",
            limits={k.rstrip("_"): _plain(v) for k, v in limits.items() if v is not None},
            level=section.level,
            accepted_until=accepted.get(name),
        )
        found.append(question)
    return tuple(found)


def _plain(value: Any) -> float | str:
    """Return a limit as a number, or as a policy spells it."""
    if isinstance(value, AllowedExcess):
        spelt = (value.nats, f"{value.nats:g}"), (value.share, f"{100 * value.share:g}% of ε")
        of_both = " or ".join(text for number, text in spelt if number)
        return "any" if math.isinf(value.nats) else of_both or "0"
    if isinstance(value, Loss):
        return f"claim + {value.nats:g}" if value.above_claim else value.nats
    return value if isinstance(value, str) else float(value)
