"""Differences between releases, each against the first, with one error budget."""

# Half of the error probability goes to the headlines (the best attack, its advantage, the score on
# test rows), shared evenly among them; the other half to every other attack, shared evenly too. So
# all of these intervals hold together at the given confidence (Bonferroni). Exact numbers need no
# share. Numbers outside the family keep their own level.
#
# Scores of the same rows are paired. Of a stored result no row is at hand, so one interval for each
# is combined, each at half the error probability: that holds however the two depend on each other,
# and is wider. Numeric guesses are compared where both releases declare the same range of labels,
# which is the scale of errors; each mechanism groups labels in its own way, so scores of groups are
# not paired.

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import numpy as np
from scipy.special import betaincinv

from ldpaudit.attacks.numeric import ATTACKS
from ldpaudit.audits.interface import NOT_ASKED, HeldOutGuesses
from ldpaudit.doors import AuditResult, Estimate, FloatArray, InsufficientDataError
from ldpaudit.estimators.intervals.bounded_mean import (
    Folds,
    Interval,
    best_interval,
    paired_interval,
)
from ldpaudit.extras.compare.comparison import Difference
from ldpaudit.extras.learn.utility.scores import Utility
from ldpaudit.result import Unit

BEST: Final = "attack.best.accuracy"
ADVANTAGE: Final = "attack.best.advantage"
NUMBERS: Final = "numeric.best.mse"
# The reference of advantages: a guess from each release's features alone.
REFERENCE: Final = "features-only"
_SHARES: Final = ("within_1", "within_5", "within_10", "exact")
_SUM: Final = "the two results' own intervals; their error probabilities add up"
_UNPAIRED: Final = "one Clopper–Pearson interval for each release at half the error probability"
_PAIRED_TEST: Final = "scores on the same test rows, betting bounds"
_PAIRED_ATTACK: Final = (
    "b's right guesses less a's on the same held-out rows, betting bounds on each of two folds"
)
_PAIRED_BEST: Final = (
    "the strongest attack on b less the strongest on a, on the same held-out rows; betting bounds, "
    "corrected for choosing the attack"
)
_PAIRED_ADVANTAGE: Final = (
    "right guesses of the strongest attack beyond those from the released features alone, b less "
    "a, on the same held-out rows; betting bounds, corrected for choosing the attack"
)
_PAIRED_NUMBERS: Final = (
    "the strongest attack on b less the strongest on a, on the same held-out people; betting "
    "bounds on each of two folds, corrected for choosing the attack"
)


@dataclass(frozen=True)
class Side:
    """One release of a comparison: its result, and in memory only what was guessed right.

    ``utility`` has the scores of a model trained on it; ``paired``: whether its rows can be
    paired with those of the first release.
    """

    letter: str
    result: AuditResult
    guesses: HeldOutGuesses | None
    utility: Utility | None
    paired: bool


def attack_scores(result: AuditResult, measure: str = "accuracy") -> dict[str, float]:
    """Return a certified score of each attack on a release by name, references left out."""
    # Only attacks that use the release have an advantage over the features alone.
    attacks = _scores(result, "label-inference", "multiplicative_advantage")
    scored = _scores(result, "label-inference", measure)
    return {n: e.value for n, e in scored.items() if n in attacks and e.kind == "certified"}


def _scores(result: AuditResult, section: str, measure: str) -> dict[str, Estimate]:
    """Return the scores of one measure on all rows, by the name of what is scored."""
    return {
        e.score.subject: e
        for e in result.estimates
        if e.score and e.section == section and e.score.measure == measure and not e.score.group
    }


def all_differences(sides: Sequence[Side], confidence: float) -> tuple[Difference, ...]:
    """Return the differences of every release against the first.

    All differences of the family hold together at ``confidence``, in (0, 1).
    """
    first, *others = sides
    family = [(side, one) for side in others for one in _family(first, side)]
    main = sum(one.headline for _, one in family)
    each = (1 - confidence) / (2 if 0 < main < len(family) else 1)
    found: list[Difference] = []
    for side, one in family:
        alpha = each / (main if one.headline else len(family) - main)
        found += one.difference(first, side, alpha)
    for side in others:
        known = {difference.id for difference in found if difference.b == side.letter}
        found += (d for d in _outside_family(first, side) if d.id not in known)
    return tuple(sorted(found, key=lambda d: d.b))


@dataclass(frozen=True)
class _Pending:
    """A number of b less that of a, waiting for its share of the error probability."""

    id: str
    headline: bool
    method: str
    bound: Callable[[float], Interval | None]
    paired: bool = True
    unit: Unit = "proportion"

    def difference(self, a: Side, b: Side, alpha: float) -> Iterator[Difference]:
        """Yield the difference, nothing where there are too few rows for an interval."""
        try:
            interval = self.bound(alpha)
        except InsufficientDataError:
            return
        if interval is not None:
            about: dict[str, Any] = {"unit": self.unit, "method": self.method}
            estimate = _estimate(self.id, a.result.title(self.id), interval, **about)
            letters = (a.letter, b.letter)
            yield Difference.between(letters, estimate, simultaneous=True, paired=self.paired)


def _estimate(name: str, title: str, interval: Interval, **about: Any) -> Estimate:
    ends, n = (interval.low, interval.high), interval.n or None
    return Estimate.interval(name, title, interval.value, ends, interval.level, n=n, **about)


def _family(a: Side, b: Side) -> Iterator[_Pending]:
    """Yield every difference of the corrected family: headlines first."""
    ours, theirs = attack_scores(a.result), attack_scores(b.result)
    if not same_classes(a.result, b.result):
        ours = theirs = {}
    guesses = (a.guesses, b.guesses) if b.paired and a.guesses and b.guesses else None
    if ours and theirs and guesses:
        best = partial(_best_of, *guesses, "accuracy", ours, theirs, 1.0)
        yield _Pending(BEST, True, _PAIRED_BEST, best)
        gains = attack_scores(a.result, "advantage"), attack_scores(b.result, "advantage")
        if all(gains) and all(REFERENCE in one.outcomes for one in guesses):
            bound = partial(_best_of, *guesses, "advantage", *gains, 2.0)
            yield _Pending(ADVANTAGE, True, _PAIRED_ADVANTAGE, bound)
    elif ours and theirs:
        counted = partial(best_counted, a.result, b.result)
        yield _Pending(BEST, True, _UNPAIRED, counted, paired=False)
    if a.utility and b.utility and a.utility.estimate.id == b.utility.estimate.id:
        scored, other_scored = a.utility, b.utility

        def tested(alpha: float) -> Interval | None:  # Of other rows none, for the same share.
            if len(scored.scores) != len(other_scored.scores) or scored.reach != other_scored.reach:
                return None
            return paired_interval(
                Folds((other_scored.scores - scored.scores,), scored.reach), alpha
            )

        unit = scored.estimate.unit
        yield _Pending(scored.estimate.id, True, _PAIRED_TEST, tested, unit=unit)
    if guesses:
        yield from _numbers(a, b, guesses)
    for name in ours:
        identifier = f"attack.{name}.accuracy"
        if name in theirs and guesses:
            rows = row_folds(*guesses, name, name, "accuracy")
            yield _Pending(identifier, False, _PAIRED_ATTACK, partial(paired_interval, rows))
        elif name in theirs:
            one, other = (_counts(side.result, [name]) for side in (a, b))
            counted = partial(counted_interval, one, other)
            yield _Pending(identifier, False, _UNPAIRED, counted, paired=False)


def _numbers(
    a: Side, b: Side, guesses: tuple[HeldOutGuesses, HeldOutGuesses]
) -> Iterator[_Pending]:
    """Yield the paired differences of the strongest guess, the squared error as a headline."""
    widths = [side.result.estimate("numeric.range") for side in (a, b)]
    if widths[0] is None or widths[1] is None or widths[0].value != widths[1].value:
        return
    square = widths[0].value ** 2
    # Gains lie within the squared range's ±.
    reaches = {"mse": square, "mse_gain": 2 * square, **dict.fromkeys(_SHARES, 1.0)}
    for measure, reach in reaches.items():
        known = [
            {name: e.value for name, e in scored.items() if name in ATTACKS}
            for scored in (_scores(side.result, "numeric-inference", measure) for side in (a, b))
        ]
        if all(known):
            bound = partial(_best_of, *guesses, measure, known[0], known[1], reach)
            unit: Unit = "proportion" if measure in _SHARES else "squared label units"
            name = f"numeric.best.{measure}"
            yield _Pending(name, name == NUMBERS, _PAIRED_NUMBERS, bound, unit=unit)


def row_folds(
    a: HeldOutGuesses,
    b: HeldOutGuesses,
    name_a: str,
    name_b: str,
    measure: str,
    reach: float = 1.0,
    sign: float = 1.0,
) -> Folds:
    """Return b's scores less a's on the rows that both attacks were asked about, by halves."""
    less = sign * (_row_scores(b, name_b, measure) - _row_scores(a, name_a, measure))
    asked = np.isfinite(less)
    return Folds(tuple(less[asked & (a.halves == half)] for half in (0, 1)), reach)


def _row_scores(guesses: HeldOutGuesses, name: str, measure: str) -> FloatArray:
    """Return what an attack scores on each row, NaN where it was not asked."""
    if measure == "advantage":
        alone = _row_scores(guesses, REFERENCE, "accuracy")
        return np.asarray(_row_scores(guesses, name, "accuracy") - alone)
    if measure != "accuracy":
        return guesses.values[f"{name}.{measure}"]
    outcomes = guesses.outcomes[name]
    return np.where(outcomes == NOT_ASKED, np.nan, outcomes.astype(np.float64))


def _best_of(
    a: HeldOutGuesses,
    b: HeldOutGuesses,
    measure: str,
    ours: Mapping[str, float],
    theirs: Mapping[str, float],
    reach: float,
    alpha: float,
) -> Interval:
    """Return the difference of the strongest, at level 1 − alpha: the least squared error."""
    sign = -1.0 if measure == "mse" else 1.0
    signed = [{name: sign * value for name, value in side.items()} for side in (ours, theirs)]
    found = best_interval(
        lambda i, j: row_folds(a, b, i, j, measure, reach, sign), signed[0], signed[1], alpha
    )
    low, high = sorted((sign * found.low, sign * found.high))
    return Interval(sign * found.value, low, high, found.level, found.n)


def _counts(result: AuditResult, names: Iterable[str]) -> dict[str, tuple[int, int]]:
    """Return right guesses and rows of attacks on a result; none where those of one are missing."""
    found = {}
    for name in names:
        one = result.estimate(f"attack.{name}.accuracy")
        if one is None or one.count is None or not one.n:
            return {}
        found[name] = one.count, one.n
    return found


def count_lower(count: int, n: int, alpha: float) -> float:
    """Return a lower bound of the mean accuracy of two held-out halves at level 1 − alpha."""
    # How the right guesses are shared between the halves is not known. Clopper–Pearson's bound is
    # convex in the count, so an equal share gives the smallest mean of their bounds.
    return float(betaincinv(count / 2, (n - count) / 2 + 1, alpha / 2)) if count else 0.0


def counted_interval(
    a: Mapping[str, tuple[int, int]], b: Mapping[str, tuple[int, int]], alpha: float
) -> Interval | None:
    """Return the difference of the best accuracies, b's less a's, at level 1 − alpha."""
    # Each end of each side is at alpha/4. The best accuracy is at least each attack's, so its lower
    # end is corrected for choosing among the attacks; it is at most the largest upper end, which
    # needs no correction. None where a side has no counts.
    if not a or not b:
        return None
    tail, sides = alpha / 4, [list(side.values()) for side in (a, b)]
    lows = [max(count_lower(c, n, tail / len(side)) for c, n in side) for side in sides]
    highs = [max(1.0 - count_lower(n - c, n, tail) for c, n in side) for side in sides]
    best = [max(c / n for c, n in side) for side in sides]
    rows = sum(max(n for _, n in side) for side in sides)
    return Interval(best[1] - best[0], lows[1] - highs[0], highs[1] - lows[0], 1 - alpha, rows)


def best_counted(a: AuditResult, b: AuditResult, alpha: float) -> Interval | None:
    """Return the difference of the best of two results alone."""
    # An audit in a comparison has no attack that learns from the rows it guesses (those have no
    # accuracy in sample): one of a stored result must neither count for its side alone nor be the
    # best of that side.
    own = [
        attack_scores(one).keys() - _scores(one, "label-inference", "in_sample.accuracy").keys()
        for one in (a, b)
    ]
    lone, both = own[0] ^ own[1], [_counts(result, attack_scores(result)) for result in (a, b)]
    for counts in both:
        shares = {name: count / n for name, (count, n) in counts.items()}
        if not shares or max(shares, key=lambda name: shares[name]) in lone:
            return None
    ours, theirs = ({n: c for n, c in counts.items() if n not in lone} for counts in both)
    return counted_interval(ours, theirs, alpha)


def same_classes(a: AuditResult, b: AuditResult) -> bool:
    """Return whether guesses of classes can be compared."""
    # Numeric labels are grouped by each mechanism in its own way.
    grouped = any(result.estimate("numeric.range") is not None for result in (a, b))
    return a.release.classes == b.release.classes and not grouped


def _outside_family(a: Side, b: Side) -> Iterator[Difference]:
    """Yield exact differences, and others at their own level, also where the family has one."""
    letters, alone = (a.letter, b.letter), {"simultaneous": False, "paired": False}
    ours, theirs = a.result.mechanism.epsilon, b.result.mechanism.epsilon
    if ours is not None and theirs is not None and math.isfinite(theirs - ours):
        names, method = ("mechanism.epsilon", "Declared ε"), "the declared parameters"
        exact = Estimate.exact(*names, theirs - ours, unit="nats", method=method)
        yield Difference.between(letters, exact, **alone)
    # Stored results may have other slices.
    sliced, classes = bool(a.guesses and b.guesses), same_classes(a.result, b.result)
    for one in a.result.estimates:
        other, best = b.result.estimate(one.id), one.id in (BEST, ADVANTAGE)
        if other is None or one.unit != other.unit or (best and not classes):
            continue
        interval = stored_interval(one, other) if _is_compared(one, sliced=sliced) else None
        if interval is not None and interval.level > 0:
            found = _estimate(
                *(one.id, one.title, interval),
                kind="certified" if one.kind == other.kind == "certified" else "estimated",
                unit=one.unit,
                method=_SUM,
                assumptions=tuple(dict.fromkeys((*one.assumptions, *other.assumptions))),
            )
            yield Difference.between(letters, found, **alone)


def _is_compared(estimate: Estimate, *, sliced: bool) -> bool:
    score = estimate.score
    if score is None or score.subject != "best":
        return estimate.id == "instance_loss.mean"
    if score.group:
        return sliced and score.group.startswith("slice-")
    return estimate.section == "numeric-inference" or estimate.id in (BEST, ADVANTAGE)


def stored_interval(a: Estimate, b: Estimate) -> Interval | None:
    """Return b less a from the stored intervals, which both have; their errors add up."""
    ends = [end for e in (a, b) for end in (e.low, e.high) if end is not None]
    two_sided = a.side == b.side == "two-sided" and len(ends) == 4
    if not two_sided or a.level is None or b.level is None:
        return None
    # Without the last digits, which would let 90 % be printed as 89 %.
    level, n = round(a.level + b.level - 1, 12), (a.n or 0) + (b.n or 0)
    return Interval(b.value - a.value, ends[2] - ends[1], ends[3] - ends[0], level, n)
