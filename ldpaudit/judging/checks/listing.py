"""All checks in the order in which a report shows them; a new one is a line here."""

from collections.abc import Callable, Mapping
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
    rare_classes,
    renyi,
    shared_noise,
    undetected_excess,
)
from ldpaudit.judging.checks.interface import Answer, Case, Draft

CHECKS: tuple[Callable[[Case], Draft | None], ...] = (
    min_rows.draft,
    claimed_epsilon.draft,
    undetected_excess.draft,
    claimed_channel.draft,
    rare_classes.draft,
    features_reveal.draft,
    identifiers.draft,
    guessable_seed.draft,
    shared_noise.draft,
    composition.draft,
    exceedance.draft,
    attack_limits.draft_advantage,
    attack_limits.draft_accuracy,
    renyi.draft,
)


def draft_checks(case: Case) -> list[Draft]:
    """Return the checks of a policy in their order, those switched off left out."""
    drafts = [draft(case) for draft in CHECKS]
    return [draft for draft in drafts if draft is not None and draft.level != "off"]


LOOKED_FOR: Final[Mapping[str, str]] = {
    "guessable-seed": guessable_seed.QUESTION,
    "shared-noise": shared_noise.QUESTION,
    "composition": composition.QUESTION,
}
"""The questions of the checks that are there only where an audit found something to look at."""


def not_looked_for(name: str, level: str) -> Draft:
    """Return such a check as open: the policy asks for it, and its audit was left out."""
    open_answer = Answer("inconclusive", None, "nothing was looked for")
    return Draft(name, level, LOOKED_FOR[name], None, (), lambda _: open_answer, counted=True)
