"""Judging a whole of several parts: its own checks, the verdicts of the parts, one sentence.

The parts are private columns of one release, or releases of the same people. The family-wise error
probability of the policy is shared in equal shares among the parts and the whole (Bonferroni), and
within each part as ever.
"""

import datetime
from collections.abc import Sequence
from dataclasses import dataclass

from ldpaudit.errors import PolicyError
from ldpaudit.judging.advising import advice_step
from ldpaudit.judging.checks.interface import Evidence
from ldpaudit.judging.checks.of_whole import Whole, drafts_of
from ldpaudit.judging.policy import Policy
from ldpaudit.judging.verdict import Judgement, decided
from ldpaudit.judging.waivers import apply_waivers
from ldpaudit.judging.whole_words import Words, sentence_of, steps_of
from ldpaudit.release import DeclaredColumns
from ldpaudit.result import AuditRecord, AuditResult, overall


def shared(policy: Policy, nodes: int) -> Policy:
    """Return the policy of one of several nodes: with its share of the error, and no claim.

    With the correction "none" each check keeps the confidence of its own, as the policy asks.

    Raises
    ------
    PolicyError
        If the policy claims a mechanism or λ, which is that of one column.
    """
    claim, audit = policy.claim, policy.audit
    if claim is not None and (claim.mechanism is not None or claim.lambda_ is not None):
        raise PolicyError(
            "The policy's [claim] is about all columns or releases together: state its epsilon "
            "alone. A mechanism or lambda is that of one column."
        )
    if audit.correction != "none":
        confidence = 1 - (1 - audit.confidence) / nodes
        audit = audit.model_copy(update={"confidence": confidence})
    return policy.model_copy(update={"audit": audit, "claim": None})


@dataclass(frozen=True)
class About:
    """What a whole is judged by besides its evidence.

    Attributes
    ----------
    policy : Policy
        With its share of the error, and what it allows to be declared here.
    epsilon : float or None
        What is claimed of the whole, in nats.
    words : Words
        What the parts are called.
    records : tuple of AuditRecord
        The whole's own audits.
    bounded : bool
        Whether its ε can be bounded at all; else each part's own bounds count alone.
    odd : str
        How draws go together where they do not as declared, in words; empty: as usual.
    rests_on_draws : bool
        Whether the claimed ε holds only if draws go together as declared.
    advisable : bool
        Whether ``ldpaudit advise`` can take the release with its true labels.
    declared : DeclaredColumns or None
        All private columns that are declared, where some are not audited.
    audited : int
        How many columns are.
    """

    policy: Policy
    epsilon: float | None
    words: Words
    records: tuple[AuditRecord, ...] = ()
    bounded: bool = True
    odd: str = ""
    rests_on_draws: bool = True
    advisable: bool = False
    declared: DeclaredColumns | None = None
    audited: int = 0


def judge_whole(
    about: About,
    evidence: Evidence,
    parts: Sequence[AuditResult],
    *,
    sha256: str | None,
    today: datetime.date,
) -> Judgement:
    """Judge a whole by a policy.

    Parameters
    ----------
    about : About
    evidence : Evidence
        The whole's own numbers.
    parts : sequence of AuditResult
        As they were judged, each by its share of the error.
    sha256, today : str or None, datetime.date
        The release's digest and the date, for waivers.
    """
    policy = about.policy
    whole = Whole(
        *(policy, policy.claim, about.words.all, about.epsilon, evidence),
        extent=about.words.extent,
        declared=about.declared,
        audited=about.audited,
        boundable=about.bounded,
        odd=about.odd,
        rests_on_draws=about.rests_on_draws,
    )
    checks, families = decided(drafts_of(whole, about.records), policy)
    checks, notes = apply_waivers(checks, about.policy.waivers, sha256, today)
    verdict = overall(checks, parts)
    wanted = about.advisable and verdict != "pass"
    advice = advice_step(about.policy) if wanted else None
    records = (*about.records, *(record for part in parts for record in part.audits))
    ran = any(record.id == "person" for record in records)
    return Judgement(
        verdict,
        sentence_of(verdict, checks, parts, whole, about.words),
        steps_of(checks, parts, about.words, advice, ran=ran),
        tuple(checks),
        tuple(notes),
        tuple(families),
    )
