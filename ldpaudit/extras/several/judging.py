"""Judging a node with parts: its checks, the verdicts of the parts, one sentence."""

# The parts are private columns of one release, or releases of the same people. The family-wise
# error probability of the policy is shared in equal shares among all nodes (Bonferroni). The checks
# have the names of a column's checks, so that a policy needs no other keys.

import datetime
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from ldpaudit.doors import AuditResult, number
from ldpaudit.error_budget import Split
from ldpaudit.errors import PolicyError
from ldpaudit.extras.several.words import Words, sentence_of, steps_of
from ldpaudit.judging.advice import advice_step
from ldpaudit.judging.checks.claimed_epsilon import POWER_NOT_KNOWN, beyond_the_policy
from ldpaudit.judging.checks.interface import Answer, Draft, Evidence
from ldpaudit.judging.checks.listing import left_out_columns
from ldpaudit.judging.policy import Policy
from ldpaudit.judging.verdict import Judgement, decided
from ldpaudit.judging.waivers import apply_waivers
from ldpaudit.receipt.found import Replay
from ldpaudit.receipt.words import REPLAYED
from ldpaudit.release import DeclaredColumns
from ldpaudit.result import AuditRecord, overall
from ldpaudit.result.stated import PERSON_EXCESS, PERSON_LOWER, PERSON_NOISE

PROOFS: Final = Split({"bound": 0.9, "draws": 1 - 0.9})
"""Of the check of the claim: the bound of ε, and the test of how draws go together."""


def shared(policy: Policy, nodes: int) -> Policy:
    """Return the policy of one of several nodes: with its share of the error, and no claim."""
    claim = policy.claim
    if claim is not None and (claim.mechanism is not None or claim.lambda_ is not None):
        raise PolicyError(
            "The policy's [claim] is about all columns or releases together: state its epsilon "
            "alone. A mechanism or lambda is that of one column."
        )
    return share_of(policy, nodes).model_copy(update={"claim": None})


def share_of(policy: Policy, nodes: int) -> Policy:
    """Return the policy with the share of the error probability that one of several nodes has."""
    # With the correction "none" each check keeps the confidence of its own, as the policy asks.
    if policy.audit.correction == "none":
        return policy
    confidence = 1 - (1 - policy.audit.confidence) / nodes
    audit = policy.audit.model_copy(update={"confidence": confidence})
    return policy.model_copy(update={"audit": audit})


@dataclass(frozen=True)
class NodeCase:
    """What a node is judged by."""

    policy: Policy
    """With the node's share of the error probability, and what may be declared there."""
    words: Words
    """What the node and its parts are called."""
    epsilon: float | None
    """What is claimed of it, in nats."""
    evidence: Evidence
    """Its own numbers."""
    prior_epsilon: float = 0.0
    """What private histograms of its labels cost besides, in nats."""
    records: tuple[AuditRecord, ...] = ()
    """Its own audits."""
    boundable: bool = True
    """Whether its ε can be bounded at all; else each part's own bounds count alone."""
    odd: str = ""
    """How draws go together where they do not as declared, in words; empty: as declared."""
    assumes_draws: bool = True
    """Whether the claimed ε holds only if draws go together as declared, as a sum does.

    That of a joint mechanism is bounded by itself.
    """
    advisable: bool = False
    """Whether ``ldpaudit advise`` can take the release with its true labels."""
    declared: DeclaredColumns | None = None
    """All private columns that are declared, where some are not audited."""
    audited: int = 0
    """How many columns are audited."""
    replays: Sequence[Replay] = ()
    """What drawing the noise of each release again found; empty where one was not tried."""

    @property
    def proven(self) -> bool:
        """Whether all noise of all parts is proven."""
        return bool(self.replays) and all(one.proven for one in self.replays)

    @property
    def bound(self) -> str | None:
        """The id of its certified lower bound of ε: with true labels, else from releases alone."""
        ids = PERSON_LOWER, "person.release_only_epsilon_lower"
        return next((one for one in ids if one in self.evidence.bounds), None)

    def bounded(self, alpha: float) -> float | None:
        """Return the bound at an error probability, None where there is none."""
        if self.bound is None:
            return None
        return self.evidence.bounds[self.bound](PROOFS.of(alpha, "bound"))

    def missed(self, alpha: float) -> float | None:
        """Return the smallest excess that the bound, by its share, finds with 90 % power."""
        return self.evidence.at(PERSON_EXCESS, PROOFS.of(alpha, "bound"))


def judge_node(
    case: NodeCase, parts: Sequence[AuditResult], *, sha256: str | None, today: datetime.date
) -> Judgement:
    """Judge a node by a policy.

    ``parts``: as they were judged, each by its share of the error; ``sha256``, ``today``: the
    release's digest and the date, for waivers.
    """
    checks, families = decided(drafts_of(case), case.policy)
    checks, notes = apply_waivers(checks, case.policy.waivers, sha256, today)
    verdict = overall(checks, parts)
    advice = advice_step(case.policy) if case.advisable and verdict != "pass" else None
    records = (*case.records, *(record for part in parts for record in part.audits))
    ran = any(record.id == "person" for record in records)
    proven = case.proven and not any(check.waived for check in checks)
    return Judgement(
        verdict,
        sentence_of(
            verdict,
            checks,
            parts,
            case.words,
            case.missed,
            case.policy.claim,
            case.replays if proven else (),
            (case.epsilon, case.prior_epsilon),
        ),
        steps_of(checks, parts, case.words, advice, ran=ran),
        tuple(checks),
        tuple(notes),
        tuple(families),
    )


def drafts_of(case: NodeCase) -> list[Draft]:
    """Return the checks of a node that its policy asks for."""
    left_out = left_out_columns(case.declared, case.audited)
    found = (left_out, _epsilon(case), _channel(case))
    return [draft for draft in found if draft is not None and draft.level != "off"]


def _epsilon(case: NodeCase) -> Draft | None:
    section = case.policy.checks.claimed_epsilon
    if section is None:
        return None
    question = f"Do {case.words.all} leak more about a person than the claimed ε?"
    beyond = beyond_the_policy(
        *(case.policy.claim, case.epsilon, case.words.extent, case.declared),
        prior=case.prior_epsilon,
    )
    if beyond is not None:
        return replace(beyond, id="claimed-epsilon", level=section.level, question=question)
    if case.proven and case.epsilon != math.inf:
        answer = Answer("pass", None, "the noise was drawn again, and every label is as drawn")
        return Draft(
            "claimed-epsilon",
            section.level,
            question,
            case.epsilon,
            (REPLAYED,),
            lambda _: answer,
            no_test=True,
        )
    stated = None if case.policy.claim is None else case.policy.claim.epsilon
    limit = stated if case.epsilon is None else case.epsilon
    ids = tuple(
        i for i in (case.bound, PERSON_EXCESS, PERSON_NOISE) if i and i in case.evidence.estimates
    )

    failure = partial(_failure, case, limit)
    return Draft(
        "claimed-epsilon",
        section.level,
        question,
        limit,
        ids,
        lambda alpha: failure(alpha) or _otherwise(case, limit, alpha),
        failure=failure,
    )


def _failure(case: NodeCase, limit: float | None, alpha: float) -> Answer | None:
    if limit is None or math.isinf(limit):
        return None
    value = case.bounded(alpha)
    if value is not None and value > limit:
        reason = f"{case.words.all} leak more than claimed by a certified lower bound"
        return Answer("fail", value, reason, "lower")
    draws = case.evidence.estimates.get(PERSON_NOISE)
    if case.assumes_draws and draws is not None and draws.value <= PROOFS.of(alpha, "draws"):
        return Answer("fail", None, f"the claim is refuted: {case.odd}")
    return None


def _otherwise(case: NodeCase, limit: float | None, alpha: float) -> Answer:
    """Return the answer where the claim is not refuted."""
    if limit is None:
        return Answer("inconclusive", None, f"nothing was claimed about {case.words.all}")
    if math.isinf(limit):
        return Answer("inconclusive", None, "the claim promises nothing: its ε is infinite")
    value = case.bounded(alpha)
    if value is None and not case.boundable:
        return Answer("pass", None, f"nothing speaks against the claim of {case.words.all}")
    if value is None:
        why = [r.reason.rstrip(".") for r in case.records if r.status != "ran" and r.reason]
        reason = ": ".join([f"what {case.words.all} leak was not bounded", *why[:1]])
        return Answer("inconclusive", None, reason)
    allowed, missed = case.policy.audit.max_undetected_excess.at(limit), case.missed(alpha)
    if missed is None and allowed < math.inf:
        return Answer("inconclusive", value, POWER_NOT_KNOWN, "lower")
    if missed is not None and missed > allowed:
        told = number(missed, "up")
        reason = (
            f"the audit of {case.words.all} is too weak: an excess of up to {told} "
            f"over the claimed ε could have gone unnoticed, and the policy allows {number(allowed)}"
        )
        return Answer("inconclusive", value, reason, "lower")
    return Answer(
        "pass", value, f"{case.words.all} are not shown to leak more than claimed", "lower"
    )


def _channel(case: NodeCase) -> Draft | None:
    section = case.policy.checks.claimed_channel
    test = case.evidence.estimates.get(PERSON_NOISE)
    if section is None or test is None or case.proven:
        return None

    def answer(alpha: float) -> Answer:
        if test.value <= alpha:
            return Answer("fail", test.value, case.odd)
        return Answer("pass", test.value, "the joint draws agree with what is declared")

    question = "Is the noise drawn together as declared (p-value)?"
    return Draft("claimed-channel", section.level, question, None, (PERSON_NOISE,), answer)
