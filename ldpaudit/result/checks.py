"""The checks of a result, and what they decide."""

from collections.abc import Iterable, Sequence
from typing import Annotated, Final, Literal

from pydantic import Field

from ldpaudit.result.estimate import Frozen, Identifier, Number, Side

Verdict = Literal["pass", "fail", "inconclusive"]
CheckLevel = Literal["error", "warn"]
Decision = Literal["publish", "not yet", "do not publish"]
IsoDate = Annotated[str, Field(pattern=r"^\d{4}-\d{2}-\d{2}$")]


class Waived(Frozen):
    """Who answers for a violation, and until when; the violation stays one.

    Attributes
    ----------
    approved_by
        Who answers for it.
    reason
        Why it is accepted.
    expires
        The last day on which it counts, by UTC.
    """

    approved_by: str
    reason: str
    expires: IsoDate


class Family(Frozen):
    """Checks of one level that share an error probability.

    Attributes
    ----------
    level
        Whether they decide the verdict.
    checks
        How many they are.
    correction
        How they share it.
    confidence
        Of all of them together; with the correction "none" of each alone.
    """

    level: CheckLevel
    checks: int
    correction: Literal["holm", "bonferroni", "none"]
    confidence: float


class Check(Frozen):
    """One question of the policy and its answer.

    Attributes
    ----------
    id
        Its name in policies.
    question
        What it asks.
    limit
        What must not be exceeded.
    observed
        What was measured against the limit.
    side
        Whether ``observed`` is a confidence bound, and which; None for a plain number.
    verdict
        The answer.
    level
        Whether it decides (error) or only warns.
    confidence
        Of its answer, after the correction for several checks; None for one that counts.
    p_value
        The smallest error probability at which it fails; None where that is above the policy's.
    reason
        The answer in words.
    waived
        Whether the policy accepts its failure for this file.
    waiver
        By whom and until when, where it is waived.
    evidence
        Ids of the numbers and curves that it looked at.
    """

    id: Identifier
    question: str
    limit: Number | None
    observed: Number | None
    side: Side | None = None
    verdict: Verdict
    level: CheckLevel
    confidence: float | None = None
    p_value: float | None = None
    reason: str = ""
    waived: bool = False
    waiver: Waived | None = None
    evidence: tuple[str, ...] = ()

    @property
    def may_be_chance(self) -> bool:
        """Whether one honest release in a thousand, or more, fails it as clearly."""
        return self.p_value is not None and self.p_value >= _CHANCE


def decision_of(verdict: Verdict, checks: Iterable[Check]) -> Decision:
    """Return whether to publish a release."""
    # A failed check that only warns changes neither the verdict nor the exit status, but somebody
    # has to look at it first, and waive it or not: "not yet".
    if verdict == "fail":
        return "do not publish"
    warned = any(c.level == "warn" and c.verdict == "fail" and not c.waived for c in checks)
    return "not yet" if warned or verdict == "inconclusive" else "publish"


_CHANCE: Final = 1e-3
_GRAVITY: Final = (("error", "fail"), ("error", "inconclusive"), ("warn", "fail"))


def holding_up(checks: Iterable[Check]) -> list[Check]:
    """Return the checks that hold a release up, the gravest first; a waived one holds up none."""
    # Of equally grave ones those that may be chance come last.
    found = [c for c in checks if (c.level, c.verdict) in _GRAVITY and not c.waived]
    return sorted(found, key=lambda c: (_GRAVITY.index((c.level, c.verdict)), c.may_be_chance))


def verdict_of(checks: Sequence[Check]) -> Verdict:
    """Return the verdict of checks: the worst of those that decide and are not waived."""
    errors = [check for check in checks if check.level == "error"]
    grave = [check for check in errors if not check.waived]
    if any(check.verdict == "fail" for check in grave):
        return "fail"
    if not errors or any(check.verdict == "inconclusive" for check in grave):
        return "inconclusive"
    return "pass"


def worst(verdicts: Iterable[Verdict]) -> Verdict:
    """Return the worst of verdicts: a violation, then what was not decided."""
    return max(verdicts, key=("pass", "inconclusive", "fail").index)
