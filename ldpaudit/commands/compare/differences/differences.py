"""All differences of a comparison, each against the first release, with one error budget.

The error probability of the whole family is split in two: one half for the headlines (the best
attack, its advantage, the score on test rows), shared evenly among them, the other half for every
other attack, shared evenly too. So all of these intervals hold together at the stated confidence
(Bonferroni). Exact numbers need no share. Numbers outside the family keep their own level.
"""

from collections.abc import Sequence

from ldpaudit.commands.compare.differences.outside import outside_family
from ldpaudit.commands.compare.differences.pairwise import pending_differences
from ldpaudit.commands.compare.differences.pending import PendingDifference
from ldpaudit.commands.compare.side import Side
from ldpaudit.errors import InsufficientDataError
from ldpaudit.result import Estimate
from ldpaudit.result.comparison import Difference


def all_differences(sides: Sequence[Side], confidence: float) -> tuple[Difference, ...]:
    """Return the differences of every release against the first.

    All differences of the family hold together at ``confidence``, in (0, 1).
    """
    family = [pending for side in sides[1:] for pending in pending_differences(sides[0], side)]
    alphas = _shares(family, 1 - confidence)
    bounded = [_bounded(pending, alpha) for pending, alpha in zip(family, alphas, strict=True)]
    every = [difference for difference in bounded if difference is not None]
    for side in sides[1:]:
        known = {d.id for d in every if d.b == side.letter}
        more = outside_family(sides[0], side)
        every += [difference for difference in more if difference.id not in known]
    return tuple(sorted(every, key=lambda d: d.b))


def _shares(family: Sequence[PendingDifference], alpha: float) -> list[float]:
    main = sum(pending.headline for pending in family)
    rest = len(family) - main
    both = 2 if main and rest else 1
    return [alpha / both / (main if pending.headline else rest) for pending in family]


def _bounded(pending: PendingDifference, alpha: float) -> Difference | None:
    try:
        interval = pending.interval(alpha)
    except InsufficientDataError:
        return None
    if interval is None:
        return None
    estimate = Estimate.interval(
        pending.id,
        pending.a.result.title(pending.id),
        interval.value,
        (interval.low, interval.high),
        interval.level,
        unit=pending.unit,
        n=interval.n,
        method=pending.method,
    )
    letters = (pending.a.letter, pending.b.letter)
    return Difference.between(letters, estimate, simultaneous=True, paired=pending.paired)
