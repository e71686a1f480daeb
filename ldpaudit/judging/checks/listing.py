"""All checks in the order in which a report shows them; a new one is a line here."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Final

from ldpaudit.judging.checks import (
    attack_limits,
    claimed_channel,
    claimed_epsilon,
    composition,
    exceedance,
    features_reveal,
    guessable_seed,
    identifiers,
    min_rows,
    private_columns,
    rare_classes,
    renyi,
    shared_noise,
    undetected_excess,
)
from ldpaudit.judging.checks.interface import Answer, Case, Draft


@dataclass(frozen=True)
class Listed:
    """A check: how it is drafted, and the audit behind it, where it looks at one's numbers alone.

    One that is there only where an audit found something to look at has a ``question`` to show
    where that audit was left out.
    """

    draft: Callable[[Case], Draft | None]
    audit: str | None = None
    question: str | None = None


CHECKS: Final[Mapping[str, Listed]] = {
    private_columns.ID: Listed(private_columns.draft),
    "min-rows": Listed(min_rows.draft),
    "claimed-epsilon": Listed(claimed_epsilon.draft),
    "undetected-excess": Listed(undetected_excess.draft),
    "claimed-channel": Listed(claimed_channel.draft, "mechanism"),
    "rare-classes": Listed(rare_classes.draft, "mechanism"),
    "features-reveal-label": Listed(features_reveal.draft),
    "identifiers": Listed(identifiers.draft),
    "guessable-seed": Listed(guessable_seed.draft, "seeds", guessable_seed.QUESTION),
    "shared-noise": Listed(shared_noise.draft, "assumptions", shared_noise.QUESTION),
    "composition": Listed(composition.draft, "assumptions", composition.QUESTION),
    "instance-loss-exceedance": Listed(exceedance.draft, "instance-loss"),
    "label-inference-advantage": Listed(attack_limits.draft_advantage, "label-inference"),
    "label-inference-accuracy": Listed(attack_limits.draft_accuracy, "label-inference"),
    "renyi-epsilon": Listed(renyi.draft, "renyi"),
}


def draft_checks(case: Case) -> list[Draft]:
    """Return the checks of a policy in their order, those switched off left out."""
    drafts = [check.draft(case) for check in CHECKS.values()]
    return [draft for draft in drafts if draft is not None and draft.level != "off"]


def audit_behind(check: str) -> str | None:
    """Return the audit whose numbers alone a check looks at, None where there are several."""
    return CHECKS[check].audit if check in CHECKS else None


def not_looked_for(name: str, level: str, left_out: Collection[str]) -> Draft | None:
    """Return a check that was not drafted as open, if its audit was left out; else None."""
    check = CHECKS[name]
    if check.question is None or check.audit not in left_out:
        return None
    answer = Answer("inconclusive", None, "nothing was looked for")
    return Draft(name, level, check.question, None, (), lambda _: answer, counted=True)
