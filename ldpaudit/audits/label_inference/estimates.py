"""From the counts of attacks to the estimates and the curve of the result."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from ldpaudit.attacks.scoring.measures import (
    ACCURACY,
    ADVANTAGE,
    GAINS,
    SCORES,
    Measure,
    average,
    lower_bound,
    upper_bound,
)
from ldpaudit.audits.label_inference.runs import AttackRun
from ldpaudit.result import Estimate, Score

_REFERENCE = "Busa-Fekete et al. (2024); Wu et al. (2023)"
GIVEN = (
    "; of these people, given all that is released and the true labels of the other fold: rows are "
    "then independent but not alike (Hoeffding 1956, Theorem 5)"
)


BEST, BEST_TITLE = "best", "Strongest attack"


def score_id(score: Score) -> str:
    """Return the id of an attack's score."""
    return ".".join(filter(None, ("attack", score.subject, score.group, score.measure)))


def attack_score(name: str, title: str, measure: Measure) -> Score:
    """Return what an estimate of an attack's or reference's measure is a score of."""
    return Score(subject=name, measure=measure.name, row=title, column=measure.title)


def score_estimates(run: AttackRun, confidence: float) -> list[Estimate]:
    """Return every score of one attack and, where there is one, its in-sample accuracy.

    Scores are certified; for an attack that learns from the rows it guesses, only those that need
    no more than independent rows.
    """
    measures = SCORES + GAINS if run.uses_release else SCORES
    estimates = [
        _point(run, measure)
        if run.given_release and not measure.unlike
        else _estimate(run, measure, confidence)
        for measure in measures
    ]
    return estimates + ([_in_sample(run)] if run.fitted_n else [])


def _point(run: AttackRun, measure: Measure) -> Estimate:
    score = attack_score(run.name, run.title, measure)
    return Estimate.estimated(
        score_id(score),
        score.title,
        average(run.folds, measure.value),
        score=score,
        unit=measure.unit,
        n=sum(fold.n for fold in run.folds),
        method="as counted, mean over labels and folds; no interval: the attack learns from the "
        "rows that it guesses, and an interval would need rows that are alike",
        assumptions=("the number describes these people only",),
    )


def _estimate(run: AttackRun, measure: Measure, confidence: float) -> Estimate:
    tail = (1 - confidence) / 2
    counted = measure is ACCURACY
    score = attack_score(run.name, run.title, measure)
    return Estimate.interval(
        score_id(score),
        score.title,
        average(run.folds, measure.value),
        (lower_bound(run.folds, measure, tail), upper_bound(run.folds, measure, tail)),
        confidence,
        score=score,
        unit=measure.unit,
        n=sum(fold.n for fold in run.folds),
        count=sum(fold.correct for fold in run.folds) if counted else None,
        method=measure.method + (GIVEN if run.given_release else ""),
        reference=_REFERENCE if measure in GAINS else None,
    )


def _in_sample(run: AttackRun) -> Estimate:
    measure, column = "in_sample.accuracy", "Accuracy in sample"
    score = Score(subject=run.name, measure=measure, row=run.title, column=column)
    return Estimate.estimated(
        score_id(score),
        score.title,
        run.fitted_correct / run.fitted_n,
        score=score,
        unit="proportion",
        n=run.fitted_n,
        count=run.fitted_correct,
        method="guesses on rows that the attack was fitted on (of large releases, a sample)",
        assumptions=(
            "exact for these rows; an attack that memorises its rows does differently on new ones",
        ),
    )


def best_estimates(
    runs: Sequence[AttackRun], confidence: float, possible: int = 1
) -> tuple[list[Estimate], dict[str, Callable[[float], float]]]:
    """Return accuracy and advantage of the strongest attack, corrected for choosing it.

    The lower end is the largest lower bound, each at the error probability divided by the number
    of attacks, or by ``possible`` where more could have run; the upper end is the largest upper
    bound, which needs no correction: the strongest attack's own bound is among them. Where one
    learns from the rows it guesses, all are bounded given what is released, so that chance does not
    decide which is the strongest. The second result is by id the lower bound as a function of its
    error probability.
    """
    attacks = [run for run in runs if run.uses_release]
    if not attacks:
        return [], {}
    if any(run.given_release for run in attacks):
        attacks = [_given_release(run) for run in attacks]
    estimates: list[Estimate] = []
    bounds: dict[str, Callable[[float], float]] = {}
    possible = max(possible, len(attacks))
    for measure in (ACCURACY, ADVANTAGE):
        lower = partial(_best_lower, attacks, measure, possible)
        estimate = _best(attacks, measure, confidence, lower, possible)
        estimates.append(estimate)
        bounds[estimate.id] = lower
    return estimates, bounds


def _given_release(run: AttackRun) -> AttackRun:
    folds = tuple(replace(fold, alike=False) for fold in run.folds)
    return replace(run, folds=folds, given_release=True)


def strongest(runs: Sequence[AttackRun], measure: Measure = ACCURACY) -> AttackRun | None:
    """Return the attack of the highest average score, None without an attack."""
    attacks = [run for run in runs if run.uses_release]
    return max(attacks, key=lambda run: average(run.folds, measure.value), default=None)


def _best_lower(
    attacks: Sequence[AttackRun], measure: Measure, possible: int, alpha: float
) -> float:
    return max(lower_bound(run.folds, measure, alpha / possible) for run in attacks)


def _best(
    attacks: Sequence[AttackRun],
    measure: Measure,
    confidence: float,
    lower: Callable[[float], float],
    possible: int,
) -> Estimate:
    tail = (1 - confidence) / 2
    best = strongest(attacks, measure)
    assert best is not None
    score = attack_score(BEST, BEST_TITLE, measure)
    return Estimate.interval(
        score_id(score),
        score.title,
        average(best.folds, measure.value),
        (lower(tail), max(upper_bound(run.folds, measure, tail) for run in attacks)),
        confidence,
        score=score,
        unit=measure.unit,
        n=sum(fold.n for fold in best.folds),
        method=(
            f"the strongest of {len(attacks)} attacks, here {best.name}; the lower end's error "
            f"probability is divided by {possible}" + (GIVEN if best.given_release else "")
        ),
        reference=_REFERENCE if measure is ADVANTAGE else None,
    )
