"""From the rows' values of attacks on numeric labels to the estimates of the result."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

import numpy as np

from ldpaudit.attacks.numeric.scoring import NumericMeasure, Values
from ldpaudit.release import FloatArray
from ldpaudit.result import Estimate, Score

_REFERENCE: Final = "Busa-Fekete et al. (2024), expected attack utility, for numbers"
_GAINS: Final = ("mse_gain", "bin_advantage")
_AGAINST_ITSELF: Final = frozenset(
    {("prior", "mse_gain"), ("prior", "bin_advantage"), ("features-only", "bin_advantage")}
)


@dataclass(frozen=True)
class NumericRun:
    """The values of one reference or attack on two held-out folds."""

    name: str
    title: str
    folds: tuple[Values, ...]

    def of(self, measure: NumericMeasure) -> list[FloatArray]:
        """Return the folds' values of a measure; empty where the attack has none."""
        return [fold[measure.name] for fold in self.folds if measure.name in fold]

    def value(self, measure: NumericMeasure) -> float:
        """Return the average of a measure over all rows."""
        return float(np.concatenate(self.of(measure)).mean())

    def bound(self, measure: NumericMeasure, alpha: float, side: str) -> float:
        """Return a one-sided bound at level 1 − alpha of the two fitted attacks' average score.

        Two folds of cross-fitting depend on each other: each is bounded at half of alpha, and the
        average of the bounds, weighted by rows, bounds the average.
        """
        folds = self.of(measure)
        end = measure.lower if side == "lower" else measure.upper
        total = sum(len(values) for values in folds)
        return sum(len(v) / total * end(v, alpha / len(folds)) for v in folds)


def run_estimates(
    run: NumericRun, every: Sequence[NumericMeasure], confidence: float
) -> Iterator[Estimate]:
    """Yield every score of one attack, certified on both sides."""
    tail = (1 - confidence) / 2
    for measure in every:
        if run.of(measure) and (run.name, measure.name) not in _AGAINST_ITSELF:
            ends = run.bound(measure, tail, "lower"), run.bound(measure, tail, "upper")
            yield _scored(run, measure, ends, confidence, measure.method)


def _scored(
    run: NumericRun,
    measure: NumericMeasure,
    ends: tuple[float, float],
    level: float,
    method: str,
) -> Estimate:
    name = measure.name
    score = Score(subject=run.name, measure=name, row=run.title, column=measure.title)
    return Estimate.interval(
        f"numeric.{run.name}.{name}",
        score.title,
        run.value(measure),
        ends,
        level,
        score=score,
        unit=measure.unit,
        n=sum(len(values) for values in run.of(measure)),
        method=method,
        reference=_REFERENCE if name in _GAINS else None,
    )


def best_estimates(
    attacks: Sequence[NumericRun], every: Sequence[NumericMeasure], confidence: float
) -> tuple[list[Estimate], dict[str, Callable[[float], float]]]:
    """Return each measure of its strongest attack, corrected for choosing it.

    The end for its least strength is the best of all attacks' bounds, each at the error probability
    divided by their number; the other end needs no correction. The bounds are that end by id, as a
    function of its one-sided error probability, for measures whose large values are strong attacks.
    """
    estimates: list[Estimate] = []
    bounds: dict[str, Callable[[float], float]] = {}
    for measure in every:
        able = [run for run in attacks if run.of(measure)]
        estimate = _best(able, measure, confidence)
        estimates.append(estimate)
        if measure.better > 0:
            bounds[estimate.id] = partial(_strength, able, measure)
    return estimates, bounds


def _strength(able: Sequence[NumericRun], measure: NumericMeasure, alpha: float) -> float:
    """Return how strong the strongest attack is at least, at level 1 − alpha."""
    return _extreme(able, measure, alpha / len(able), "lower" if measure.better > 0 else "upper")


def _extreme(able: Sequence[NumericRun], measure: NumericMeasure, alpha: float, side: str) -> float:
    bounds = [run.bound(measure, alpha, side) for run in able]
    return max(bounds) if measure.better > 0 else min(bounds)


def _best(able: Sequence[NumericRun], measure: NumericMeasure, confidence: float) -> Estimate:
    tail = (1 - confidence) / 2
    best = max(able, key=lambda run: measure.better * run.value(measure))
    corrected, other = ("lower", "upper") if measure.better > 0 else ("upper", "lower")
    # How strong it is at most needs no correction: one bound is the strongest attack's own.
    low, high = sorted([_strength(able, measure, tail), _extreme(able, measure, tail, other)])
    return _scored(
        replace(best, name="best", title="Strongest guess of the number"),
        measure,
        (low, high),
        confidence,
        f"the strongest of {len(able)} attacks, here {best.name}: {measure.method}; the "
        f"{corrected} end's error probability is divided by {len(able)}",
    )


def range_estimate(width: float) -> Estimate:
    """Return the width of the declared range, a scale for errors."""
    return Estimate.exact(
        "numeric.range",
        "Width of the declared range",
        width,
        unit="label units",
        method="the highest declared label less the lowest",
    )
