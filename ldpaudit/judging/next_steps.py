"""What to do after a verdict: at most three sentences, the most important first."""

import math
from collections.abc import Iterator, Sequence
from typing import Final

from ldpaudit.judging.advising import advice_step, with_advice
from ldpaudit.judging.causes import BY_CHECK, Signs, causes
from ldpaudit.judging.checks.interface import Case
from ldpaudit.judging.circumstances import Circumstances
from ldpaudit.judging.remedies import Open
from ldpaudit.result import Check, Decision

CLAIM_CHECKS: Final = ("claimed-epsilon", "claimed-channel", "rare-classes", "guessable-seed")
"""The checks whose violation refutes the claim."""
MOST: Final = 3
CLOSE: Final = 1e-3
"""A violation with a p-value above this may be chance: one honest release in a thousand."""
_MEND = "Mend the release code, draw the noise anew and audit that release."
_CHANCE = (
    "If the code is right, it may be chance: draw the noise once more, audit it at confidence = "
    "0.99 (in the policy, before the draw), and keep that verdict. Drawing until one passes proves "
    "nothing."
)
_PUBLISH = "Publish this very file, with its declaration; audit again if anything in it changes."
_PUBLISH_THE_REST = (
    "Take the columns out of the file that this audit left out (--drop, --features), audit that "
    "file, and publish it with its declaration."
)
_NAME_IT = "Publish this very file, and keep the waiver with it; it counts for no other file."
_SAY_IT = (
    "Tell who receives the file that its claim is refuted: a waiver accepts the violation, and "
    "does not make the claim true. Better declare the ε that holds, and audit that file."
)
_MEND_BEFORE = "Mend what is waived by {}, the last day of the waiver."
_WITHOUT_TRUTH = (
    "Take the column of true labels out of the release, keep it in a file of its own and audit "
    "with that (--truth)."
)
_NO_CHECK = (
    'Give the policy a check of level "error", for instance by extends = "ldpaudit:default" '
    "(ldpaudit policy init writes a policy to start from)."
)
_NOT_AGAIN = (
    "Do not release these people's labels again with fresh noise: every release adds its ε."
)
_LOOK_CLOSER = (
    "Who holds the true labels should audit with them too (--truth): a group of rows released as "
    "it is can hardly be seen from the release alone."
)
_TO_THE_END = (
    "Let the audit run to its end: without --timeout or with a larger one. With --resume DIR it "
    "goes on where it stopped."
)
_READ_ON = "Read in the report what each audit that did not run would need."
_MAY_BE_CHANCE = "It may be chance: at most one honest release in {} is as far off."
_ACCEPTED = "If that is accepted, waive the check for this file ([[waivers]] in the policy)."


def next_steps(
    decision: Decision, case: Case, known: Circumstances, checks: Sequence[Check]
) -> tuple[str, ...]:
    """Return what to do now.

    Parameters
    ----------
    decision : Decision
    case, known : Case, Circumstances
    checks : sequence of Check
        As answered and waived.
    """
    if decision == "publish" and any(check.waived for check in checks):
        return _by_waiver(checks)
    if decision == "publish":
        first = _PUBLISH_THE_REST if known.columns_left_out else _PUBLISH
        return (first, _NOT_AGAIN) if known.truth else (first, _NOT_AGAIN, _LOOK_CLOSER)
    steps = _after_failure if decision == "do not publish" else _to_decide
    found = list(steps(case, known, checks)) or [_READ_ON]
    open_ones = [c for c in checks if c.level == "error" and c.verdict != "pass" and not c.waived]
    advice = advice_step(case.policy) if known.advisable and open_ones else None
    return with_advice(found, advice, MOST)


def _by_waiver(checks: Sequence[Check]) -> tuple[str, ...]:
    """Return what to do where violations are waived: the claim is no truer for it."""
    waived = [check for check in checks if check.waived]
    refuted = any(check.id in CLAIM_CHECKS and check.level == "error" for check in waived)
    first = _SAY_IT if refuted else _NAME_IT
    return first, _MEND_BEFORE.format(min(c.waiver.expires for c in waived if c.waiver)), _NOT_AGAIN


def _after_failure(case: Case, known: Circumstances, checks: Sequence[Check]) -> Iterator[str]:
    found = list(causes(Signs(case, known, checks)))
    grave = [c for c in checks if c.level == "error" and c.verdict == "fail" and not c.waived]
    close = all(is_close(check) for check in grave)
    yield from found[: MOST - 1]
    if any(check.confidence is not None for check in grave) or not grave:
        yield _CHANCE if close else _MEND


def _to_decide(case: Case, known: Circumstances, checks: Sequence[Check]) -> Iterator[str]:
    if known.stopped:
        yield _TO_THE_END
    else:
        for check in checks:
            if check.level == "error" and check.verdict == "inconclusive":
                yield from Open(check, case, known).remedies()
    if known.holds_truth:
        yield _WITHOUT_TRUTH
    warned = [c for c in checks if c.level == "warn" and c.verdict == "fail" and not c.waived]
    for check in warned:
        step = BY_CHECK.get(check.id) or next(causes(Signs(case, known, [check])))
        yield _or_chance(step, check)
    if warned:
        yield _ACCEPTED
    if not any(check.level == "error" for check in checks):
        yield _NO_CHECK


def _or_chance(step: str, check: Check) -> str:
    if check.p_value is None or not is_close(check):
        return step
    return f"{step} {_MAY_BE_CHANCE.format(one_in(check.p_value))}"


def is_close(check: Check) -> bool:
    """Return whether a failed check may well have failed by chance."""
    return check.p_value is not None and check.p_value >= CLOSE


def one_in(p_value: float) -> int:
    """Return the n of "one honest release in n", rounded down."""
    return max(math.floor(1 / p_value), 1)
