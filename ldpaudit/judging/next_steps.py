"""What to do after a verdict: at most three sentences, the most important first."""

import math
from collections.abc import Iterator, Sequence
from typing import Final

from ldpaudit.judging.advising import advice_step, with_advice
from ldpaudit.judging.causes import OF_THE_CODE, ORDERED, Signs, causes
from ldpaudit.judging.checks.interface import Case
from ldpaudit.judging.circumstances import Circumstances
from ldpaudit.judging.remedies import Open
from ldpaudit.result import Check, Decision, holding_up

CLAIM_CHECKS: Final = ("claimed-epsilon", "claimed-channel", "rare-classes", "guessable-seed")
"""The checks whose violation refutes the claim."""
MOST: Final = 3
DECLARE: Final = "Write the claim into the file, or beside it, and publish it: "
_COMMAND = "ldpaudit declare RELEASE"
_FIX = "Fix the release code, draw the noise again and audit that release."
_CHANCE = (
    "If the code is right, it may be chance: draw the noise once more, audit it at confidence = "
    "0.99 (in the policy, before the draw), and keep that verdict. Drawing until one passes proves "
    "nothing."
)
_DECLARED = ", with its declaration"
PUBLISH: Final = f"Publish this very file{_DECLARED}; audit again if anything in it changes."
_SHUFFLE = "Shuffle the rows: their order reveals labels."
_THEN = "Then audit the new file, and publish that."
_NAME_IT = "Publish this very file, and keep the waiver with it; it counts for no other file."
_SAY_IT = (
    "Tell the people who receive the file that its claim is refuted: a waiver accepts the "
    "violation, and does not make the claim true. Better declare the ε that holds, and audit that "
    "file."
)
_FIX_BEFORE = "Fix what is waived by {}, the last day of the waiver."
_WITHOUT_TRUTH = (
    "Remove the column of true labels from the release, keep it in a file of its own and audit "
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
    "Somebody who holds the true labels should audit with them too (--truth): a group of rows "
    "released as it is can hardly be seen from the release alone."
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
    """Return what to do now, first about the gravest of the checks, as answered and waived."""
    if decision == "publish" and any(check.waived for check in checks):
        return _by_waiver(checks)
    if decision == "publish":
        return tuple(_to_publish(case, known))[:MOST]
    grave = holding_up(checks)
    steps = _after_failure if decision == "do not publish" else _to_decide
    found = list(steps(Signs(case, known, checks), grave)) or [_READ_ON]
    open_ones = [check for check in grave if check.level == "error"]
    advice = advice_step(case.policy) if known.advisable and open_ones else None
    return with_advice(found, advice, MOST)


def _to_publish(case: Case, known: Circumstances) -> Iterator[str]:
    ordered = case.evidence.estimates.get(ORDERED)
    changes = [_SHUFFLE] if ordered is not None and ordered.value else []
    changes += known.changes
    if changes:
        yield " ".join([*changes, _THEN])
    elif known.declared:
        yield PUBLISH
    elif case.claim.epsilon is None:
        yield PUBLISH.replace(_DECLARED, "")
    else:
        yield f"{DECLARE}{_COMMAND}{_options(case)}"
    yield _NOT_AGAIN
    if not known.truth:
        yield _LOOK_CLOSER


def _options(case: Case) -> str:
    """Return the claim as options of ``declare``, where its name and ε are enough."""
    claim = case.claim
    if not claim.traits.whole or "epsilon" not in claim.traits.stated_by:
        return ""
    return f" --mechanism {claim.name} --epsilon {claim.epsilon:.12g}"


def _by_waiver(checks: Sequence[Check]) -> tuple[str, ...]:
    """Return what to do where violations are waived: the claim is no truer for it."""
    waived = [check for check in checks if check.waived]
    refuted = any(check.id in CLAIM_CHECKS and check.level == "error" for check in waived)
    first = _SAY_IT if refuted else _NAME_IT
    return first, _FIX_BEFORE.format(min(c.waiver.expires for c in waived if c.waiver)), _NOT_AGAIN


def _after_failure(signs: Signs, grave: Sequence[Check]) -> Iterator[str]:
    """Yield the causes of each violation, and to fix the code where it is the code's fault."""
    failed = [check for check in grave if (check.level, check.verdict) == ("error", "fail")]
    found = dict.fromkeys(step for check in failed for step in causes(signs, check))
    faults = [c for c in failed if c.id in OF_THE_CODE and c.confidence is not None]
    warned = (step for check in grave if check.level == "warn" for step in causes(signs, check))
    if not faults:
        yield from dict.fromkeys((*found, *warned))
        return
    yield from list(found)[: MOST - 1]
    yield _CHANCE if all(check.may_be_chance for check in faults) else _FIX
    yield from warned


def _to_decide(signs: Signs, grave: Sequence[Check]) -> Iterator[str]:
    case, known = signs.case, signs.known
    if known.stopped:
        yield _TO_THE_END
    for check in grave:
        if check.verdict == "inconclusive" and not known.stopped:
            yield from Open(check, case, known).remedies()
    if known.holds_truth:
        yield _WITHOUT_TRUTH
    warned = [check for check in grave if check.level == "warn"]
    for check in warned:
        weak = check.id == "undetected-excess"
        steps = Open(check, case, known).remedies() if weak else causes(signs, check)
        yield _or_chance(next(steps), check)
    if any(check.id != "private-columns" for check in warned):
        yield _ACCEPTED
    if not (case.by_strata or any(check.level == "error" for check in signs.checks)):
        yield _NO_CHECK


def _or_chance(step: str, check: Check) -> str:
    if check.p_value is None or not check.may_be_chance:
        return step
    return f"{step} {_MAY_BE_CHANCE.format(one_in(check.p_value))}"


def one_in(p_value: float) -> int:
    """Return the n of "one honest release in n", rounded down."""
    return max(math.floor(1 / p_value), 1)
