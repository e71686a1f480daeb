"""All differences of a comparison, each against the first release, with one error budget.

The error probability of the whole family is split in two: one half for the headlines (the best
attack, the score on test rows), shared evenly among them, the other half for every other attack,
shared evenly too. So all of these intervals hold together at the stated confidence (Bonferroni).
Exact numbers need none of it. Estimates have their own level and lie outside of the family.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ldpaudit.audits.held_out_guesses import NOT_ASKED, HeldOutGuesses
from ldpaudit.comparing.auditing import Audited
from ldpaudit.comparing.outside import BEST, outside_family
from ldpaudit.comparing.paired import Folds, Interval, best_interval, paired_interval
from ldpaudit.comparing.unpaired import (
    Count,
    best_count_interval,
    count_interval,
)
from ldpaudit.comparing.utility import Utility
from ldpaudit.comparison import Difference
from ldpaudit.errors import InsufficientDataError
from ldpaudit.result import AuditResult

_PAIRED_ATTACK = (
    "b's right guesses less a's on the same held-out rows, betting bounds on each of two folds"
)
_PAIRED_BEST = (
    "the strongest attack on b less the strongest on a, on the same held-out rows; betting bounds, "
    "corrected for choosing the attack"
)
_UNPAIRED = "one Clopper–Pearson interval for each release at half the error probability"
_PAIRED_TEST = "scores on the same test rows, betting bounds"


@dataclass(frozen=True)
class Side:
    """One release of a comparison with all that is known of it.

    ``paired`` says whether its rows can be paired with those of the first release.
    """

    audited: Audited
    utility: Utility | None
    paired: bool

    @property
    def result(self) -> AuditResult:
        """Its result."""
        return self.audited.result


@dataclass(frozen=True)
class _Draft:
    """A difference to be made once its share of the error is known."""

    a: Side
    b: Side
    id: str
    headline: bool


def all_differences(sides: Sequence[Side], confidence: float) -> tuple[Difference, ...]:
    """Return the differences of every release against the first.

    Parameters
    ----------
    sides : sequence of Side
        The first is what the others are held against.
    confidence : float
        At which all differences of the family hold together, in (0, 1).
    """
    drafts = [draft for side in sides[1:] for draft in _drafts(sides[0], side)]
    alphas = _shares(drafts, 1 - confidence)
    found = [_family(draft, alpha) for draft, alpha in zip(drafts, alphas, strict=True)]
    more = [d for side in sides[1:] for d in outside_family(sides[0].audited, side.audited)]
    every = [*(d for d in found if d is not None), *more]
    return tuple(sorted(every, key=lambda d: d.b))


def _drafts(a: Side, b: Side) -> Iterator[_Draft]:
    if attack_accuracies(a.result) and attack_accuracies(b.result) and _same_classes(a, b):
        yield _Draft(a, b, BEST, True)
    both = [side.utility.estimate.id for side in (a, b) if side.utility is not None]
    if len(both) == 2 and both[0] == both[1]:
        yield _Draft(a, b, both[0], True)
    if _same_classes(a, b):
        theirs = attack_accuracies(b.result)
        for name in attack_accuracies(a.result):
            if name in theirs:
                yield _Draft(a, b, f"attack.{name}.accuracy", False)


def _same_classes(a: Side, b: Side) -> bool:
    # Labels that are numbers are grouped as each mechanism's view has it.
    ours, theirs = a.result.release, b.result.release
    grouped = any(s.result.estimate("numeric.range") is not None for s in (a, b))
    return ours.classes == theirs.classes and not grouped


def _shares(drafts: Sequence[_Draft], alpha: float) -> list[float]:
    main = sum(draft.headline for draft in drafts)
    rest = len(drafts) - main
    both = 2 if main and rest else 1
    return [alpha / both / (main if draft.headline else rest) for draft in drafts]


def _family(draft: _Draft, alpha: float) -> Difference | None:
    try:
        return _difference(draft, alpha)
    except InsufficientDataError:
        return None


def _difference(draft: _Draft, alpha: float) -> Difference | None:
    a, b = draft.a, draft.b
    if not draft.id.startswith("attack."):
        return _test(draft, alpha)
    ours, theirs = a.audited.guesses, b.audited.guesses
    name = draft.id.split(".")[1]
    if b.paired and ours is not None and theirs is not None:
        if draft.id == BEST:
            found = best_interval(
                lambda i, j: _folds(ours, i, theirs, j),
                attack_accuracies(a.result),
                attack_accuracies(b.result),
                alpha,
            )
            return _made(draft, found, _PAIRED_BEST, paired=True)
        found = paired_interval(_folds(ours, name, theirs, name), alpha)
        return _made(draft, found, _PAIRED_ATTACK, paired=True)
    return _counted(draft, name, alpha)


def _test(draft: _Draft, alpha: float) -> Difference | None:
    ours, theirs = draft.a.utility, draft.b.utility
    assert ours is not None
    assert theirs is not None
    if ours.reach != theirs.reach or len(ours.scores) != len(theirs.scores):
        return None
    folds = Folds((theirs.scores - ours.scores,), ours.reach)
    unit = ours.estimate.unit
    return _made(draft, paired_interval(folds, alpha), _PAIRED_TEST, paired=True, unit=unit)


def _counted(draft: _Draft, name: str, alpha: float) -> Difference | None:
    if draft.id == BEST:
        counts = [_counts(side.result) for side in (draft.a, draft.b)]
        if not all(counts) or any(None in c.values() for c in counts):
            return None
        known = [{n: c for n, c in found.items() if c is not None} for found in counts]
        found = best_count_interval(known[0], known[1], alpha)
    else:
        both = [Count.of(s.result.estimate(f"attack.{name}.accuracy")) for s in (draft.a, draft.b)]
        if both[0] is None or both[1] is None:
            return None
        found = count_interval(both[0], both[1], alpha)
    return _made(draft, found, _UNPAIRED, paired=False)


def _made(
    draft: _Draft, found: Interval, method: str, *, paired: bool, unit: str = "proportion"
) -> Difference:
    letters = (draft.a.audited.letter, draft.b.audited.letter)
    return Difference.redacted(
        letters,
        simultaneous=True,
        paired=paired,
        id=draft.id,
        kind="certified",
        value=found.value,
        low=found.low,
        high=found.high,
        side="two-sided",
        level=found.level,
        unit=unit,
        n=found.n,
        smallest_cell=found.smallest_cell,
        method=method,
    )


def _folds(a: HeldOutGuesses, name_a: str, b: HeldOutGuesses, name_b: str) -> Folds:
    """Return b less a on the rows that both attacks were asked about, half by half."""
    ours, theirs = a.outcomes[name_a], b.outcomes[name_b]
    asked = (ours != NOT_ASKED) & (theirs != NOT_ASKED)
    parts = [np.flatnonzero(asked & (a.halves == half)) for half in (0, 1)]
    return Folds(
        tuple(theirs[rows].astype(np.float64) - ours[rows].astype(np.float64) for rows in parts)
    )


def attack_accuracies(result: AuditResult) -> dict[str, float]:
    """Return the certified accuracy of each attack on a release, references left out.

    Only attacks that look at the release have an accuracy in sample.
    """
    inside = ".in_sample.accuracy"
    names = [e.id.split(".")[1] for e in result.estimates if e.id.endswith(inside)]
    scored = {name: result.estimate(f"attack.{name}.accuracy") for name in names}
    return {n: e.value for n, e in scored.items() if e is not None and e.kind == "certified"}


def _counts(result: AuditResult) -> dict[str, Count | None]:
    names = attack_accuracies(result)
    return {name: Count.of(result.estimate(f"attack.{name}.accuracy")) for name in names}
