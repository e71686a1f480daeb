"""Differences outside of the corrected family: exact ones, and others at their own level."""

import math
from collections.abc import Iterator

from ldpaudit.commands.compare.differences.unpaired import stored_interval
from ldpaudit.commands.compare.side import Side
from ldpaudit.comparison import Difference
from ldpaudit.result import AuditResult, Estimate

BEST = "attack.best.accuracy"
ADVANTAGE = "attack.best.advantage"
NUMBERS = "numeric.best.mse"
_OWN_LEVEL = ("instance_loss.mean", "numeric.best.", BEST, ADVANTAGE)
_SLICES = "attack.best.slice-"
_OWN = "the two results' own intervals; their error probabilities add up"


def outside_family(a: Side, b: Side) -> Iterator[Difference]:
    """Yield exact differences, and others at their own level, also where the family has one."""
    letters = (a.letter, b.letter)
    ours, theirs = a.result.mechanism.epsilon, b.result.mechanism.epsilon
    if ours is not None and theirs is not None and math.isfinite(theirs - ours):
        yield Difference.redacted(
            letters,
            simultaneous=False,
            paired=False,
            id="mechanism.epsilon",
            kind="exact",
            value=theirs - ours,
            unit="nats",
            method="the declared parameters",
        )
    # Stored results may have been cut into other slices.
    sliced = (_SLICES,) if a.guesses is not None and b.guesses is not None else ()
    for estimate in a.result.estimates:
        other = b.result.estimate(estimate.id)
        if other is None or not estimate.id.startswith((*_OWN_LEVEL, *sliced)):
            continue
        if estimate.id in (BEST, ADVANTAGE) and not same_classes(a.result, b.result):
            continue
        if (made := _own(letters, estimate, other)) is not None:
            yield made


def same_classes(a: AuditResult, b: AuditResult) -> bool:
    """Return whether guesses of classes can be compared.

    Labels that are numbers are grouped as each mechanism's view has it.
    """
    grouped = any(result.estimate("numeric.range") is not None for result in (a, b))
    return a.release.classes == b.release.classes and not grouped


def _own(letters: tuple[str, str], ours: Estimate, theirs: Estimate) -> Difference | None:
    found = stored_interval(ours, theirs)
    if found is None or ours.unit != theirs.unit or found.level <= 0:
        return None
    certified = ours.kind == theirs.kind == "certified"
    return Difference.redacted(
        letters,
        simultaneous=False,
        paired=False,
        id=ours.id,
        kind="certified" if certified else "estimated",
        value=found.value,
        low=found.low,
        high=found.high,
        side="two-sided",
        level=found.level,
        unit=ours.unit,
        n=found.n or None,
        method=_OWN,
        assumptions=tuple(dict.fromkeys((*ours.assumptions, *theirs.assumptions))),
    )
