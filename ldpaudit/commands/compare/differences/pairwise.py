"""What is subtracted: each number that two releases have, and how its difference is bounded."""

from collections.abc import Callable, Iterator, Mapping
from functools import partial

from ldpaudit.audits.held_out_guesses import HeldOutGuesses
from ldpaudit.commands.compare.differences.numeric import numeric_differences
from ldpaudit.commands.compare.differences.outside import ADVANTAGE, BEST, same_classes
from ldpaudit.commands.compare.differences.pairing import (
    REFERENCE,
    accuracy_folds,
    advantage_folds,
)
from ldpaudit.commands.compare.differences.pending import PendingDifference
from ldpaudit.commands.compare.differences.unpaired import (
    Count,
    best_count_interval,
    count_interval,
)
from ldpaudit.commands.compare.side import Side, attack_scores, given_release
from ldpaudit.estimators.intervals.paired import (
    Folds,
    Interval,
    best_interval,
    paired_interval,
)
from ldpaudit.result import AuditResult

_PAIRED_ATTACK = (
    "b's right guesses less a's on the same held-out rows, betting bounds on each of two folds"
)
_PAIRED_BEST = (
    "the strongest attack on b less the strongest on a, on the same held-out rows; betting bounds, "
    "corrected for choosing the attack"
)
_PAIRED_ADVANTAGE = (
    "right guesses of the strongest attack beyond those from the released features alone, b less "
    "a, on the same held-out rows; betting bounds, corrected for choosing the attack"
)
_UNPAIRED = "one Clopper–Pearson interval for each release at half the error probability"
_PAIRED_TEST = "scores on the same test rows, betting bounds"

Pair = Callable[[HeldOutGuesses, str, HeldOutGuesses, str], Folds]


def pending_differences(a: Side, b: Side) -> Iterator[PendingDifference]:
    """Yield every difference of the corrected family: headlines first."""
    classes = same_classes(a.result, b.result)
    if classes and attack_scores(a.result) and attack_scores(b.result):
        yield _best(a, b)
        if (advantage := _advantage(a, b)) is not None:
            yield advantage
    if (test := _test(a, b)) is not None:
        yield test
    yield from numeric_differences(a, b)
    if classes:
        theirs = attack_scores(b.result)
        for name in attack_scores(a.result):
            if name in theirs:
                yield _attack(a, b, name)


def _best(a: Side, b: Side) -> PendingDifference:
    if b.paired and a.guesses is not None and b.guesses is not None:
        ours, theirs = attack_scores(a.result), attack_scores(b.result)
        bound = partial(_best_of, accuracy_folds, a.guesses, b.guesses, ours, theirs)
        return PendingDifference(a, b, BEST, True, bound, _PAIRED_BEST)
    return PendingDifference(
        a, b, BEST, True, partial(_best_counted, a, b), _UNPAIRED, paired=False
    )


def _advantage(a: Side, b: Side) -> PendingDifference | None:
    """Return the difference of the advantages, paired; None where rows cannot be."""
    if not b.paired or a.guesses is None or b.guesses is None:
        return None
    if any(REFERENCE not in side.outcomes for side in (a.guesses, b.guesses)):
        return None
    ours, theirs = (attack_scores(side.result, "advantage") for side in (a, b))
    if not ours or not theirs:
        return None
    bound = partial(_best_of, advantage_folds, a.guesses, b.guesses, ours, theirs)
    return PendingDifference(a, b, ADVANTAGE, True, bound, _PAIRED_ADVANTAGE)


def _best_of(
    pair: Pair,
    a: HeldOutGuesses,
    b: HeldOutGuesses,
    ours: Mapping[str, float],
    theirs: Mapping[str, float],
    alpha: float,
) -> Interval:
    return best_interval(lambda i, j: pair(a, i, b, j), ours, theirs, alpha)


def _attack(a: Side, b: Side, name: str) -> PendingDifference:
    identifier = f"attack.{name}.accuracy"
    if b.paired and a.guesses is not None and b.guesses is not None:
        folds = partial(accuracy_folds, a.guesses, name, b.guesses, name)
        return PendingDifference(
            a, b, identifier, False, lambda alpha: paired_interval(folds(), alpha), _PAIRED_ATTACK
        )
    bound = partial(_counted, a, b, identifier)
    return PendingDifference(a, b, identifier, False, bound, _UNPAIRED, paired=False)


def _counted(a: Side, b: Side, identifier: str, alpha: float) -> Interval | None:
    ours, theirs = (Count.of(side.result.estimate(identifier)) for side in (a, b))
    return None if ours is None or theirs is None else count_interval(ours, theirs, alpha)


def _best_counted(a: Side, b: Side, alpha: float) -> Interval | None:
    ours, theirs = _counts(a.result), _counts(b.result)
    # An audit in a comparison has no attack on the whole release: one of a stored result must
    # neither count for its side alone nor be the best of that side.
    lone = given_release(a.result) ^ given_release(b.result)
    for counts in (ours, theirs):
        if counts and max(counts, key=lambda name: counts[name].share) in lone:
            return None
    ours, theirs = ({n: c for n, c in side.items() if n not in lone} for side in (ours, theirs))
    if not ours or not theirs:
        return None
    return best_count_interval(ours, theirs, alpha)


def _counts(result: AuditResult) -> dict[str, Count]:
    """Return each attack's counts; nothing where those of one are missing."""
    counts = {n: Count.of(result.estimate(f"attack.{n}.accuracy")) for n in attack_scores(result)}
    known = {name: count for name, count in counts.items() if count is not None}
    return known if len(known) == len(counts) else {}


def _no_interval(_alpha: float) -> None:
    """Return that there is no interval: the tests were not on the same rows."""


def _test(a: Side, b: Side) -> PendingDifference | None:
    ours, theirs = a.utility, b.utility
    if ours is None or theirs is None or ours.estimate.id != theirs.estimate.id:
        return None
    bound: Callable[[float], Interval | None] = _no_interval
    if ours.reach == theirs.reach and len(ours.scores) == len(theirs.scores):
        folds = Folds((theirs.scores - ours.scores,), ours.reach)
        bound = partial(paired_interval, folds)
    unit = ours.estimate.unit
    return PendingDifference(a, b, ours.estimate.id, True, bound, _PAIRED_TEST, unit=unit)
