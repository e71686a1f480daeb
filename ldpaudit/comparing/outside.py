"""Differences outside of the corrected family: exact ones, and estimates at their own level."""

import math
from collections.abc import Iterator

from ldpaudit.comparing.auditing import Audited
from ldpaudit.comparing.unpaired import stored_interval
from ldpaudit.comparison import Difference
from ldpaudit.result import Estimate

BEST = "attack.best.accuracy"
_OWN_LEVEL = ("instance_loss.mean", "numeric.best.", BEST)
_OWN = "the two results' own intervals; their error probabilities add up"


def outside_family(a: Audited, b: Audited) -> Iterator[Difference]:
    """Yield exact differences, and those of estimates at their own level."""
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
    for estimate in a.result.estimates:
        other = b.result.estimate(estimate.id)
        if other is None or not estimate.id.startswith(_OWN_LEVEL):
            continue
        if estimate.id == BEST and estimate.kind == other.kind == "certified":
            continue
        if (made := _own(letters, estimate, other)) is not None:
            yield made


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
