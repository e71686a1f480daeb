"""All checks in the order in which a report shows them; a new one is a row of the table."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from ldpaudit.judging.checks.claimed_epsilon import claimed_epsilon
from ldpaudit.judging.checks.columns import features_reveal, identifiers
from ldpaudit.judging.checks.interface import Answer, Case, Draft, drafted
from ldpaudit.judging.checks.leakage import attack_score, exceedance, renyi_divergence
from ldpaudit.judging.checks.noise import (
    OWN_ERROR,
    claimed_channel,
    composition,
    feature_noise,
    guessable_seed,
    p_value_of,
    rare_classes,
    undetected_excess,
)
from ldpaudit.judging.checks.reading import (
    cells_read,
    labels_written,
    made_as_assumed,
    min_rows,
    replay,
    truth_fits,
    truth_taken_out,
    whole_file,
)
from ldpaudit.receipt.words import REPLAYED
from ldpaudit.release import DeclaredColumns
from ldpaudit.result import CheckLevel
from ldpaudit.result.stated import AGREEMENT_TEST, SHARED_NOISE_TEST

PRIVATE_COLUMNS: Final = "private-columns"
# What a replay that proves the noise answers for good.
TESTS_OF_NOISE: Final = frozenset(
    (
        "claimed-epsilon",
        "undetected-excess",
        "claimed-channel",
        "rare-classes",
        "guessable-seed",
        "shared-noise",
    )
)


@dataclass(frozen=True)
class Row:
    """A check: what it asks, and what answers that."""

    question: str
    """As a report shows it, where ``look`` asks nothing more exact."""
    look: Callable[[Case, Any], Draft | None]
    """What is asked of a case by its section of the policy; None: there is nothing to ask."""
    audit: str | None = None
    """The audit behind it, where it looks at one's numbers alone."""
    level: CheckLevel | None = None
    """Where no section of the policy asks for it."""
    no_test: bool = False
    """As in a draft."""
    own_error: float | None = None
    """As in a draft."""
    where_found: bool = False
    """Whether it is there only where its audit found something; open where that was left out."""

    def draft(self, name: str, case: Case) -> Draft | None:
        """Return the check of a case; None where it is not asked for, or there is none."""
        section: Any = getattr(case.policy.checks, name.replace("-", "_"), None)
        found = None if section is None and self.level is None else self.look(case, section)
        return None if found is None else self._of(found, name, self.level or section.level)

    def unseen(self, name: str, case: Case) -> Draft | None:
        """Return the check as open where its audit was left out and drafted none, else None."""
        circumstances = case.circumstances
        could = circumstances.truth or name != "shared-noise"
        # Without a policy, whoever runs some audits alone asks no question that others answer.
        by_name = circumstances.left_out.get(self.audit or "") == "--skip"
        named = case.policy.sha256 is not None or by_name
        asked = named and name in case.policy.checks.asked()
        if not (self.where_found and asked and could and self.audit in circumstances.left_out):
            return None
        found = drafted(Answer("inconclusive", None, "nothing was looked for"), no_test=True)
        level = getattr(case.policy.checks, name.replace("-", "_")).level
        return replace(self._of(found, name, level), own_error=None)

    def _of(self, found: Draft, name: str, level: str) -> Draft:
        return replace(
            found,
            id=name,
            level=level,
            question=found.question or self.question,
            no_test=found.no_test or self.no_test,
            own_error=self.own_error,
        )


def draft_checks(case: Case) -> list[Draft]:
    """Return the checks of a policy in their order, those switched off left out."""
    found = {name: row.draft(name, case) for name, row in CHECKS.items()}
    unseen = {name: CHECKS[name].unseen(name, case) for name in found if found[name] is None}
    every = [*found.items(), *unseen.items()]
    if case.circumstances.proven:
        every = [(name, _as_proven(name, draft, case)) for name, draft in every]
    return [draft for _, draft in every if draft is not None and draft.level != "off"]


def _as_proven(name: str, draft: Draft | None, case: Case) -> Draft | None:
    """Return the check of a release whose noise is proven: no test of the noise counts any more."""
    beyond = name == "claimed-epsilon" and draft is not None and draft.no_test
    if draft is None or name not in TESTS_OF_NOISE or beyond:
        return draft  # More is declared than the policy allows, whatever was drawn.
    if name == "claimed-epsilon" and case.claim.epsilon == math.inf:
        return draft  # Labels that are released as they are: it promises nothing about these.
    answer = Answer("pass", None, "the noise was drawn again, and every label is as drawn")
    return replace(draft, test=lambda _: answer, failure=None, no_test=True, evidence=(REPLAYED,))


def audit_behind(check: str) -> str | None:
    """Return the audit whose numbers alone a check looks at, None where there are several."""
    return CHECKS[check].audit if check in CHECKS else None


def left_out_columns(declared: DeclaredColumns | None, audited: int) -> Draft | None:
    """Return the check, None where all declared columns were audited; no policy switches it off."""
    if declared is None:
        return None
    was = "was" if audited == 1 else "were"
    reason = f"{audited} of {declared.count} private columns {was} audited"
    found = drafted(Answer("fail", None, reason), no_test=True)
    return replace(
        found, id=PRIVATE_COLUMNS, level="warn", question=CHECKS[PRIVATE_COLUMNS].question
    )


CHECKS: Final[Mapping[str, Row]] = {
    PRIVATE_COLUMNS: Row(
        "Was every private column that is declared audited?",
        lambda case, _: left_out_columns(case.circumstances.columns, 1),
        level="warn",
    ),
    "made-as-assumed": Row(
        "Was the release made as its promise assumes?",
        made_as_assumed,
        level="warn",
        no_test=True,
    ),
    "truth-taken-out": Row(
        "Were the true labels taken out of the table, as far as names tell?",
        truth_taken_out,
        level="warn",
        no_test=True,
    ),
    "whole-file": Row(
        "Did the audit look at all that is in the file?", whole_file, level="warn", no_test=True
    ),
    "cells-read": Row(
        "Was every cell of the columns read as what it is?", cells_read, level="warn", no_test=True
    ),
    "labels-written": Row(
        "Is every released label written in one way?", labels_written, level="error", no_test=True
    ),
    "truth-fits": Row(
        "Do the true labels belong to the released rows?", truth_fits, level="error", no_test=True
    ),
    "min-rows": Row(
        "Has the release as many rows as the policy asks for?",
        min_rows,
        level="error",
        no_test=True,
    ),
    "replay": Row(
        "Is every released label what the declared mechanism draws with the committed key?",
        replay,
    ),
    "claimed-epsilon": Row(
        "Does the release leak more about a label than the claimed ε?", claimed_epsilon
    ),
    "undetected-excess": Row(
        "How large an excess over the claimed ε could this audit have missed?",
        undetected_excess,
        no_test=True,
    ),
    "claimed-channel": Row(
        "Are the released labels distributed as the claimed mechanism makes them (p-value)?",
        claimed_channel,
        "mechanism",
    ),
    "rare-classes": Row(
        "Were the labels of rare classes released as claimed (p-value)?",
        rare_classes,
        "mechanism",
    ),
    "feature-noise": Row(
        "Do the released features have the noise that is claimed of them?",
        feature_noise,
        "mechanism",
    ),
    "features-reveal-label": Row(
        "Do the features alone reveal the labels, whatever the noise?",
        features_reveal,
        no_test=True,
    ),
    "identifiers": Row(
        "Are there columns that may lead back to a person?", identifiers, no_test=True
    ),
    "guessable-seed": Row(
        "Can anybody compute the noise, from a common seed or a checksum (p-value)?",
        guessable_seed,
        "seeds",
        own_error=OWN_ERROR,
        where_found=True,
    ),
    "shared-noise": Row(
        "Was noise drawn for each row on its own (p-value)?",
        p_value_of(
            {
                SHARED_NOISE_TEST: (
                    "one row's noise reveals another's, or noise changes along the file",
                    "no noise shared by rows was found, and none that changes along the file",
                ),
                AGREEMENT_TEST: (
                    "in one part of the file the released labels relate to the features "
                    "differently than elsewhere: noise may have been added differently there",
                    "released labels relate to the features in the same way along the file; only "
                    "true labels show whether rows share noise",
                ),
            }
        ),
        "assumptions",
        where_found=True,
    ),
    "composition": Row(
        "Is one person's label released several times, each time with fresh noise?",
        composition,
        "assumptions",
        no_test=True,
        where_found=True,
    ),
    "instance-loss-exceedance": Row("", exceedance, "instance-loss"),
    "label-inference-advantage": Row(
        "Is the best label-inference attack's advantage above the limit?",
        attack_score("advantage"),
        "label-inference",
    ),
    "label-inference-accuracy": Row(
        "Is the best label-inference attack's accuracy above the limit?",
        attack_score("accuracy"),
        "label-inference",
    ),
    "renyi-epsilon": Row("", renyi_divergence, "renyi"),
}
