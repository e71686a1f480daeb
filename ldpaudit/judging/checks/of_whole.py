"""The checks of a whole: do several columns, or several releases, leak more together than claimed?

They have the names of a column's checks, so that a policy needs no other keys.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ldpaudit.judging.checks import private_columns
from ldpaudit.judging.checks.declared_epsilon import beyond_the_policy
from ldpaudit.judging.checks.interface import Answer, Draft, Evidence
from ldpaudit.judging.policy import Policy
from ldpaudit.judging.policy.sections import ClaimSection
from ldpaudit.release import DeclaredColumns
from ldpaudit.reports.text.numbers import number
from ldpaudit.result import AuditRecord

BOUND_SHARE = 0.9
"""Of the error probability of the claim's check; the rest is the test of how draws go together."""


@dataclass(frozen=True)
class Whole:
    """What the checks of a whole look at.

    Attributes
    ----------
    policy : Policy
        With the whole's share of the error probability.
    claim : ClaimSection or None
        The policy's claim, which is about the whole.
    name : str
        What it is called, such as "the 3 columns together".
    epsilon : float or None
        What is claimed of it, in nats.
    evidence : Evidence
    boundable : bool
        Whether its ε can be bounded at all; else each part's own bounds count alone.
    odd : str
        How draws go together where they do not as declared, in words; empty: as usual.
    rests_on_draws : bool
        Whether the claimed ε holds only if draws go together as declared, as a sum does; that of a
        joint mechanism is bounded by itself.
    extent : str
        What ε is added up over, such as "over 3 columns".
    declared : DeclaredColumns or None
        All private columns that are declared, where some are not audited.
    audited : int
        How many columns are.
    """

    policy: Policy
    claim: ClaimSection | None
    name: str
    epsilon: float | None
    evidence: Evidence
    boundable: bool = True
    odd: str = ""
    rests_on_draws: bool = True
    extent: str = ""
    declared: DeclaredColumns | None = None
    audited: int = 0

    @property
    def bound(self) -> str | None:
        """The id of its certified lower bound of ε: with true labels, else from releases alone."""
        ids = "person.epsilon_lower", "person.release_only_epsilon_lower"
        return next((one for one in ids if one in self.evidence.bounds), None)

    def bounded(self, alpha: float) -> float | None:
        """Return the bound at an error probability, None where there is none."""
        return None if self.bound is None else self.evidence.bounds[self.bound](alpha * BOUND_SHARE)

    @property
    def power(self) -> str:
        """The id of the smallest excess that its bound would find."""
        return "person.min_detectable_excess"

    @property
    def draws(self) -> str:
        """The id of the p-value of joint draws as declared."""
        return "person.independence"

    def missed(self, alpha: float) -> float | None:
        """Return the smallest excess found with 90 % power; None where unknown."""
        estimate, bounds = self.evidence.estimates.get(self.power), self.evidence.bounds
        if estimate is None:
            return None
        found = bounds.get(self.power)  # By the share that the bound itself has.
        return estimate.value if found is None else found(alpha * BOUND_SHARE)

    def oddly_drawn(self, alpha: float) -> bool:
        """Return whether the joint draws are shown not to be as declared."""
        test = self.evidence.estimates.get(self.draws)
        return test is not None and test.value <= alpha


def drafts_of(whole: Whole, records: Sequence[AuditRecord] = ()) -> list[Draft]:
    """Return the checks of a whole that its policy asks for; ``records``: its own audits."""
    left_out = private_columns.draft_of(whole.declared, whole.audited)
    found = (left_out, _epsilon(whole, records), _channel(whole))
    return [draft for draft in found if draft is not None and draft.level != "off"]


def _epsilon(whole: Whole, records: Sequence[AuditRecord]) -> Draft | None:
    section = whole.policy.checks.claimed_epsilon
    if section is None:
        return None
    question = f"Do {whole.name} leak more about a person than the claimed ε?"
    beyond = beyond_the_policy(whole.claim, whole.epsilon, whole.extent, whole.declared)
    if beyond is not None:
        most = beyond.limit
        drawn = Draft("claimed-epsilon", section.level, question, most, (), lambda _: beyond.answer)
        return replace(drawn, counted=True)
    stated = None if whole.claim is None else whole.claim.epsilon
    limit = stated if whole.epsilon is None else whole.epsilon
    ids = tuple(
        i for i in (whole.bound, whole.power, whole.draws) if i and i in whole.evidence.estimates
    )

    def failure(alpha: float) -> Answer | None:
        return _failure(whole, limit, alpha)

    def test(alpha: float) -> Answer:
        return failure(alpha) or _otherwise(whole, limit, alpha, records)

    return Draft("claimed-epsilon", section.level, question, limit, ids, test, failure=failure)


def _failure(whole: Whole, limit: float | None, alpha: float) -> Answer | None:
    if limit is None or math.isinf(limit):
        return None
    value = whole.bounded(alpha)
    if value is not None and value > limit:
        reason = f"{whole.name} leak more than claimed by a certified lower bound"
        return Answer("fail", value, reason, "lower")
    if whole.rests_on_draws and whole.oddly_drawn(alpha * (1 - BOUND_SHARE)):
        return Answer("fail", None, f"the claim is refuted: {whole.odd}")
    return None


def _otherwise(
    whole: Whole, limit: float | None, alpha: float, records: Sequence[AuditRecord]
) -> Answer:
    """Return the answer where the claim is not refuted."""
    if limit is None:
        return Answer("inconclusive", None, f"nothing was claimed about {whole.name}")
    if math.isinf(limit):
        return Answer("inconclusive", None, "the claim promises nothing: its ε is infinite")
    value = whole.bounded(alpha)
    if value is None and not whole.boundable:
        return Answer("pass", None, f"nothing speaks against the claim of {whole.name}")
    if value is None:
        return Answer("inconclusive", None, _unbounded(whole, records))
    allowed, missed = whole.policy.audit.max_undetected_excess.at(limit), whole.missed(alpha)
    if missed is not None and missed > allowed:
        told = number(missed, "up")
        reason = (
            f"the audit of {whole.name} is too weak: an excess of up to {told} "
            f"over the claimed ε could have gone unnoticed, and the policy allows {number(allowed)}"
        )
        return Answer("inconclusive", value, reason, "lower")
    return Answer("pass", value, f"{whole.name} are not shown to leak more than claimed", "lower")


def _unbounded(whole: Whole, records: Sequence[AuditRecord]) -> str:
    why = next((r.reason.rstrip(".") for r in records if r.status != "ran" and r.reason), None)
    return f"what {whole.name} leak was not bounded" + (f": {why}" if why else "")


def _channel(whole: Whole) -> Draft | None:
    section = whole.policy.checks.claimed_channel
    test = whole.evidence.estimates.get(whole.draws)
    if section is None or test is None:
        return None

    def answer(alpha: float) -> Answer:
        if test.value <= alpha:
            return Answer("fail", test.value, whole.odd)
        return Answer("pass", test.value, "the joint draws agree with what is declared")

    question = "Is the noise drawn together as declared (p-value)?"
    return Draft("claimed-channel", section.level, question, None, (whole.draws,), answer)
