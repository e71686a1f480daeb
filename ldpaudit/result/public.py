"""The public form of a result: the one way to share it."""

# It holds the decision, the claim, the policy, and what the audit computed without any true label.

from collections.abc import Iterable
from decimal import ROUND_CEILING, Decimal
from typing import Final, Literal

from ldpaudit.errors import InputError
from ldpaudit.result.access import PUBLIC
from ldpaudit.result.audit_result import AuditResult
from ldpaudit.result.checks import Decision, IsoDate
from ldpaudit.result.described import MechanismInfo, PublicFacts, Question, ReleaseInfo
from ldpaudit.result.estimate import Curve, Estimate, Frozen, Number

_SENTENCES: Final[dict[Decision, str]] = {
    "publish": "No violation was found. That does not prove the claim.",
    "not yet": "The audit could not decide, or there is a warning.",
    "do not publish": "The release breaks its claim or a limit of its policy.",
}
_NO_PROOF: Final = " That does not prove the claim."
_PROVEN: Final = "The noise was proven by replay{}, by people who hold its key."
_ACCEPTED: Final = (
    "No violation was found, other than perhaps one that the policy accepts in this file."
)


class PublicPart(Frozen):
    """A release, one of its private columns, or one of several releases.

    Attributes
    ----------
    release
        What the released file shows.
    mechanism
        What was claimed.
    estimates
        Exact numbers of the claim.
    curves
        Exact curves of the claim.
    excess
        An excess of ε over the claim that an audit with true labels finds with 90 % probability, in
        nats, from the released labels alone, rounded up to one digit; None where it is not known.
    parts
        Its private columns, the releases, or the strata of a column.
    """

    release: ReleaseInfo
    mechanism: MechanismInfo
    estimates: tuple[Estimate, ...]
    curves: tuple[Curve, ...]
    excess: Number | None
    parts: tuple["PublicPart", ...]


class PublicResult(Frozen):
    """What may be shared of an audit: apart from the decision nothing depends on a true label.

    Attributes
    ----------
    access
        Who may see it; the first key of the file.
    schema_version
        The version of this form.
    ldpaudit_version
        The version that made it.
    decision
        Whether to publish.
    sentence
        The decision in words.
    date
        When the audit was run.
    truth
        Whether the auditor had the true labels.
    policy
        The name of the policy.
    policy_sha256
        The digest of the policy file; None for a built-in policy.
    questions
        What the policy asks.
    left_out
        The audits that the options left out.
    released
        The release.
    """

    access: str = PUBLIC
    schema_version: Literal["1.0"] = "1.0"
    ldpaudit_version: str
    decision: Decision
    sentence: str
    date: IsoDate | None
    truth: bool
    policy: str | None
    policy_sha256: str | None
    questions: tuple[Question, ...]
    left_out: tuple[str, ...]
    released: PublicPart


class PublicComparison(Frozen):
    """What may be shared of a comparison: the public form of each of its results.

    Attributes
    ----------
    access
        Who may see it; the first key of the file.
    schema_version
        The version of this form.
    releases
        The results, in their order.
    """

    access: str = PUBLIC
    schema_version: Literal["1.0"] = "1.0"
    releases: tuple[PublicResult, ...]


def public(result: AuditResult) -> PublicResult:
    """Return the public form of a result.

    Raises
    ------
    InputError
        If the result was stored by a version that did not keep what it needs.
    """
    facts = _facts(result)
    every = [facts, *(_facts(part) for part in result.parts.values())]
    until = {
        question.check: question.accepted_until
        for question in sorted(
            (q for one in every for q in one.questions if q.accepted_until),
            key=lambda question: question.accepted_until or "",
        )
    }
    accepted = bool(until) and result.decision == "publish"
    sentence = _ACCEPTED if accepted else _SENTENCES[result.decision]
    if _proven(result):
        when = f" on {result.date}" if result.date else ""
        sentence = f"{sentence.removesuffix(_NO_PROOF)} {_PROVEN.format(when)}"
    return PublicResult(
        ldpaudit_version=result.ldpaudit_version,
        decision=result.decision,
        sentence=sentence,
        date=result.date,
        truth=facts.release.truth,
        policy=result.run.policy,
        policy_sha256=result.run.policy_sha256,
        questions=tuple(
            q.model_copy(update={"accepted_until": until.get(q.check)}) for q in facts.questions
        ),
        left_out=facts.left_out,
        released=_part(result),
    )


def _proven(result: AuditResult) -> bool:
    """Return whether all noise was drawn again from its key; one bit depends on true labels."""
    parts = (*result.labels, *result.releases)
    if parts:
        return all(map(_proven, parts))
    return any(check.id == "replay" and check.verdict == "pass" for check in result.checks)


def public_comparison(results: Iterable[AuditResult]) -> PublicComparison:
    """Return the public form of results that were compared."""
    return PublicComparison(releases=tuple(map(public, results)))


def _facts(result: AuditResult) -> PublicFacts:
    if result.public is None:
        raise InputError(
            "The result was stored by a version of ldpaudit that kept nothing for the public "
            "profile; run the audit again."
        )
    return result.public


def _part(result: AuditResult) -> PublicPart:
    facts = _facts(result)
    return PublicPart(
        release=facts.release,
        mechanism=facts.mechanism,
        estimates=facts.estimates,
        curves=facts.curves,
        excess=None if facts.excess is None else one_digit_up(facts.excess),
        parts=tuple(_part(part) for some in result.held.values() for part in some),
    )


def one_digit_up(value: float) -> float:
    """Return a number from 0 up, rounded up to one significant digit."""
    exact = Decimal(repr(float(value)))
    if not exact.is_finite() or not exact:
        return value
    return float(exact.quantize(Decimal(1).scaleb(exact.adjusted()), rounding=ROUND_CEILING))
