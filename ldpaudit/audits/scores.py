"""Scores of attacks on held-out folds as estimates: each attack's own, and the strongest's."""

# Whatever is scored (labels, numbers, bags; with or without true labels), the strongest of several
# is corrected for choosing it in the same way.

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, Generic, Unpack

from ldpaudit.attacks.scoring import F, Measure, average, lower_bound, upper_bound
from ldpaudit.result import Bound, Estimate, Score
from ldpaudit.result.estimate import Bounded

BEST: Final = "best"


@dataclass(frozen=True)
class Scored(Generic[F]):
    """One attack or reference: its stable name, what people call it, and its held-out folds."""

    name: str
    title: str
    folds: tuple[F, ...]


def score_id(score: Score, prefix: str = "attack") -> str:
    """Return the id of an attack's score."""
    return ".".join(filter(None, (prefix, score.subject, score.group, score.measure)))


def score_of(name: str, title: str, measure: Measure[F]) -> Score:
    """Return what an estimate of an attack's or reference's measure is a score of."""
    return Score(subject=name, measure=measure.name, row=title, column=measure.title)


def score_estimate(
    run: Scored[F],
    measure: Measure[F],
    confidence: float,
    prefix: str = "attack",
    ends: tuple[float, float] | None = None,
    **details: Unpack[Bounded],
) -> Estimate:
    """Return one score with its interval, each of its ends at half of the error probability."""
    tail, score = (1 - confidence) / 2, score_of(run.name, run.title, measure)
    if ends is None:
        ends = lower_bound(run.folds, measure, tail), upper_bound(run.folds, measure, tail)
    value, rows = average(run.folds, measure.value), sum(fold.n for fold in run.folds)
    # Unbiased values without true labels need not average to a proportion.
    if details.get("kind") == "estimated":
        low, high = (min(max(end, -1.0), 1.0) for end in ends)
        ends, value = (low, high), min(max(value, low), high)
    stated = Bounded(score=score, unit=measure.unit, n=rows, method=measure.method) | details
    name = score_id(score, prefix)
    return Estimate.interval(name, score.title, value, ends, confidence, **stated)


def best_bound(
    runs: Sequence[Scored[F]],
    measure: Measure[F],
    confidence: float,
    possible: int,
    title: str,
    words: str,
    prefix: str = "attack",
    **details: Unpack[Bounded],
) -> Bound:
    """Return a measure of its strongest attack, corrected for choosing it.

    The end for its least strength is the best of all bounds, each at the error probability
    divided by how many attacks were ``possible``; the other end needs no correction, since the
    strongest attack's own bound is among them. The bound at other levels is of the former end.
    ``words``: the method, with {count}, {best}, {method}, {end} and
    {possible}.
    """
    best = max(runs, key=lambda run: measure.better * average(run.folds, measure.value))
    strength = partial(_strength, runs, measure, max(possible, len(runs)))
    tail, corrected = (1 - confidence) / 2, "lower" if measure.better > 0 else "upper"
    ends = sorted([strength(tail), _extreme(runs, measure, tail, -measure.better)])
    facts = {"count": len(runs), "best": best.name, "method": measure.method, "end": corrected}
    details["method"] = words.format(**facts, possible=max(possible, len(runs)))
    chosen, both = Scored(BEST, title, best.folds), (ends[0], ends[1])
    shown = score_estimate(chosen, measure, confidence, prefix, both, **details)
    return Bound.of(shown, strength)


def _strength(runs: Sequence[Scored[F]], measure: Measure[F], possible: int, alpha: float) -> float:
    """Return how strong the strongest attack is at least, at level 1 − alpha."""
    return _extreme(runs, measure, alpha / possible, measure.better)


def _extreme(runs: Sequence[Scored[F]], measure: Measure[F], alpha: float, side: int) -> float:
    """Return the strongest attack's bound from below (``side`` 1) or from above (−1)."""
    bound, pick = lower_bound if side > 0 else upper_bound, max if measure.better > 0 else min
    return pick(bound(run.folds, measure, alpha) for run in runs)
