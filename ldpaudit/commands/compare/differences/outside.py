"""Differences outside of the corrected family: exact ones, and others at their own level."""

import math
from collections.abc import Iterator

from ldpaudit.commands.compare.differences.unpaired import stored_interval
from ldpaudit.commands.compare.side import Side
from ldpaudit.result import AuditResult, Estimate
from ldpaudit.result.comparison import Difference

BEST = "attack.best.accuracy"
ADVANTAGE = "attack.best.advantage"
NUMBERS = "numeric.best.mse"
_MEAN = "instance_loss.mean"
_SUM = "the two results' own intervals; their error probabilities add up"


def outside_family(a: Side, b: Side) -> Iterator[Difference]:
    """Yield exact differences, and others at their own level, also where the family has one."""
    letters = (a.letter, b.letter)
    ours, theirs = a.result.mechanism.epsilon, b.result.mechanism.epsilon
    if ours is not None and theirs is not None and math.isfinite(theirs - ours):
        names = ("mechanism.epsilon", "Declared ε")
        method = "the declared parameters"
        exact = Estimate.exact(*names, theirs - ours, unit="nats", method=method)
        yield Difference.between(letters, exact, simultaneous=False, paired=False)
    # Stored results may have other slices.
    sliced = a.guesses is not None and b.guesses is not None
    for estimate in a.result.estimates:
        other = b.result.estimate(estimate.id)
        if other is None or not _is_compared(estimate, sliced=sliced):
            continue
        if estimate.id in (BEST, ADVANTAGE) and not same_classes(a.result, b.result):
            continue
        if (difference := _stored(letters, estimate, other)) is not None:
            yield difference


def _is_compared(estimate: Estimate, *, sliced: bool) -> bool:
    score = estimate.score
    if score is None or score.subject != "best":
        return estimate.id == _MEAN
    if score.group:
        return sliced and score.group.startswith("slice-")
    return estimate.section == "numeric-inference" or estimate.id in (BEST, ADVANTAGE)


def same_classes(a: AuditResult, b: AuditResult) -> bool:
    """Return whether guesses of classes can be compared.

    Numeric labels are grouped by each mechanism in its own way.
    """
    grouped = any(result.estimate("numeric.range") is not None for result in (a, b))
    return a.release.classes == b.release.classes and not grouped


def _stored(letters: tuple[str, str], ours: Estimate, theirs: Estimate) -> Difference | None:
    interval = stored_interval(ours, theirs)
    if interval is None or ours.unit != theirs.unit or interval.level <= 0:
        return None
    certified = ours.kind == theirs.kind == "certified"
    estimate = Estimate.interval(
        ours.id,
        ours.title,
        interval.value,
        (interval.low, interval.high),
        interval.level,
        kind="certified" if certified else "estimated",
        unit=ours.unit,
        n=interval.n or None,
        method=_SUM,
        assumptions=tuple(dict.fromkeys((*ours.assumptions, *theirs.assumptions))),
    )
    return Difference.between(letters, estimate, simultaneous=False, paired=False)
