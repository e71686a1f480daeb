"""From the counts of attacks to the estimates and the curve of the result.

Every attack and reference has its scores; the strongest is also shown by class, by slice and by
confidence, corrected for choosing it; the claim implies ceilings.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from ldpaudit.attacks.scoring import (
    ACCURACY,
    ADVANTAGE,
    GAINS,
    SCORES,
    SHARES,
    FoldScore,
    Measure,
    average,
)
from ldpaudit.audits.interface import AuditContext
from ldpaudit.audits.label_inference.runs import AttackRun
from ldpaudit.audits.scores import BEST, best_estimate, score_estimate, score_id, score_of
from ldpaudit.estimators.advantage import (
    accuracy_ceiling,
    advantage_ceiling,
    utility_bound,
)
from ldpaudit.estimators.intervals.binomial import clopper_pearson_upper
from ldpaudit.estimators.intervals.ranking import auc_lower as chernoff_lower
from ldpaudit.estimators.intervals.ranking import auc_upper as chernoff_upper
from ldpaudit.mechanisms.channel import Channel
from ldpaudit.release import FloatArray, Slices
from ldpaudit.result import Curve, Estimate, Note, Score

_REFERENCE: Final = "Busa-Fekete et al. (2024); Wu et al. (2023)"
_CHOSEN: Final = (
    "the strongest of {count} attacks, here {best}; the {end} end's error probability is divided "
    "by {possible}"
)
GIVEN: Final = (
    "; of these people, given all that is released and the true labels of the other fold: rows are "
    "then independent but not alike (Hoeffding 1956, Theorem 5)"
)


BEST_TITLE: Final = "Strongest attack"


def score_estimates(run: AttackRun, confidence: float) -> list[Estimate]:
    """Return every score of one attack and, where there is one, its in-sample accuracy.

    Scores are certified; for an attack that learns from the rows it guesses, only those that need
    no more than independent rows.
    """
    return [
        *(_estimate(run, measure, confidence) for measure in SCORES),
        *(_estimate(run, measure, confidence) for measure in GAINS if run.uses_release),
        *([_in_sample(run)] if run.fitted_n else []),
    ]


def _estimate(run: AttackRun, measure: Measure[FoldScore], confidence: float) -> Estimate:
    if run.given_release and not measure.unlike:
        score = score_of(run.name, run.title, measure)
        return Estimate.estimated(
            score_id(score),
            score.title,
            average(run.folds, measure.value),
            score=score,
            unit=measure.unit,
            n=sum(fold.n for fold in run.folds),
            method="as counted, mean over labels and folds; no interval: the attack learns from "
            "the rows that it guesses, and an interval would need rows that are alike",
            assumptions=("the number describes these people only",),
        )
    return score_estimate(
        run,
        measure,
        confidence,
        count=sum(fold.correct for fold in run.folds) if measure is ACCURACY else None,
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
    given = any(run.given_release for run in attacks)
    if given:
        attacks = [
            replace(run, folds=tuple(replace(fold, alike=False) for fold in run.folds))
            for run in attacks
        ]
    words = _CHOSEN + (GIVEN if given else "")
    found = [
        best_estimate(
            attacks,
            measure,
            confidence,
            possible,
            BEST_TITLE,
            words,
            reference=_REFERENCE if measure is ADVANTAGE else None,
        )
        for measure in (ACCURACY, ADVANTAGE)
    ]
    return [estimate for estimate, _ in found], {e.id: strength for e, strength in found}


def strongest(runs: Sequence[AttackRun]) -> AttackRun | None:
    """Return the most accurate attack, None without an attack."""
    attacks = [run for run in runs if run.uses_release]
    return max(attacks, key=lambda run: average(run.folds, ACCURACY.value), default=None)


AUDIT_ID: Final = "label-inference"
MOST_CLASSES: Final = 20
"""With more classes none is shown separately."""


_Group = tuple[str, str, str, list[FoldScore]]
"""Some rows: their key in ids, title, words, and of each fold what was counted on them."""


def class_estimates(
    context: AuditContext, run: AttackRun, attacks: int
) -> tuple[list[Estimate], list[Note]]:
    """Return how many people of each class the strongest attack guesses right.

    Every interval holds at once with all others, and for whichever of the attacks is the strongest.
    The number of people in a class depends on their true labels, so only an attack that learns
    nothing from the rows it guesses can be scored this way.
    """
    k = len(context.release.classes)
    if k > MOST_CLASSES:
        text = f"With {k} classes the strongest attack is not scored for each class separately."
        return [], [Note.info(AUDIT_ID, text)]
    groups: list[_Group] = []
    for y, name in enumerate(context.release.classes):
        counted = [(f, int(f.class_rows[y]), int(f.class_correct[y])) for f in run.folds]
        folds = [replace(fold, n=rows, correct=right) for fold, rows, right in counted]
        groups.append((f"class-{y + 1}", f"class {name}", f"people of class {name}", folds))
    return _of_groups(run, groups, ACCURACY, context.plan.confidence, attacks), []


def slice_estimates(
    context: AuditContext, run: AttackRun, attacks: int
) -> tuple[list[Estimate], list[Note]]:
    """Return accuracy and advantage of the strongest attack in each slice, and what slices are."""
    confidence, slices = context.plan.confidence, context.plan.slices
    estimates: list[Estimate] = []
    notes: list[Note] = []
    for place, column in enumerate(slices):
        groups = _groups(run, slices, place)
        estimates += _of_groups(run, groups, ACCURACY, confidence, attacks)
        estimates += _of_groups(run, groups, ADVANTAGE, confidence, attacks)
        named = (f"{i + 1}: {name}" for i, name in enumerate(column.names))
        text = f"Slices {place + 1} are by the column {column.column}: {'; '.join(named)}."
        notes.append(Note.info(AUDIT_ID, text))
    return estimates, notes


def _groups(run: AttackRun, slices: Sequence[Slices], place: int) -> list[_Group]:
    shape, folds = [len(column) for column in slices], list[list[FoldScore]]()
    for fold in run.folds:
        table = np.zeros((int(np.prod(shape)), 4), dtype=np.int64)
        table[: len(fold.slices)] = fold.slices
        others = tuple(i for i in range(len(shape)) if i != place)
        counts = table.reshape(*shape, 4).sum(axis=others).tolist()
        names = "n", "correct", "gained", "lost"
        folds.append([replace(fold, **dict(zip(names, one, strict=True))) for one in counts])
    return [
        (f"slice-{place + 1}-{i}", f"column {place + 1}, slice {i}", f"rows of slice {i}", [*both])
        for i, both in enumerate(zip(*folds, strict=True), 1)
    ]


def _of_groups(
    run: AttackRun,
    groups: Sequence[_Group],
    measure: Measure[FoldScore],
    confidence: float,
    attacks: int,
) -> list[Estimate]:
    """Return a measure of each group, all of them at once and for whichever attack was chosen."""
    alpha, estimates = (1 - confidence) / 2 / (2 * len(groups) * attacks), []
    for key, title, words, every in groups:
        folds = [fold for fold in every if fold.n]
        if not folds:
            continue
        low = average(folds, lambda fold: measure.lower(fold, alpha))
        high = average(folds, lambda fold: measure.upper(fold, alpha))
        method = (
            f"{run.name}, chosen among {attacks} attacks, on {words}; on each of two folds, "
            f"error probability divided by {len(groups)} groups and {attacks} attacks"
        )
        score = score_of(BEST, title, measure).model_copy(update={"group": key})
        found = Estimate.interval(
            score_id(score),
            f"{BEST_TITLE}, {score.title}",
            average(folds, measure.value),
            (low, high),
            confidence,
            score=score,
            unit="proportion",
            n=sum(fold.n for fold in folds),
            count=sum(fold.correct for fold in folds) if measure is ACCURACY else None,
            method=method + (GIVEN if run.given_release else ""),
        )
        estimates.append(found)
    return estimates


def confidence_curve(run: AttackRun, confidence: float, attacks: int = 1) -> Curve | None:
    """Return accuracy among the most confident guesses against the share of rows guessed.

    Points that add no row are left out; None where nothing is left. The confidence is that of the
    whole curve at once; the run is chosen among ``attacks``, and the error probability is divided
    by their number.

    Notes
    -----
    Given features and released labels the guesses are right independently of one another, but not
    equally often: Clopper–Pearson does not apply once the cut depends on the confidences, but
    Chernoff's bound in its relative-entropy form holds for independent trials that are not alike
    (Hoeffding 1963, Theorem 1), so wherever the cut falls it bounds the mean chance of being right.
    """
    counts = [np.cumsum(fold.steps, axis=0) for fold in run.folds]
    added = np.sum([fold.steps[:, 0] for fold in run.folds], axis=0)
    ends = np.flatnonzero(added).tolist()
    if not ends:
        return None
    tail = (1 - confidence) / 2 / (len(counts) * len(SHARES) * attacks)
    points = [_curve_point([fold[end].tolist() for fold in counts], tail) for end in ends]
    last = points[-1][0]
    return Curve(
        id="attack.best.accuracy_by_confidence",
        title="Accuracy among the most confident guesses",
        kind="certified",
        x=tuple(rows / last for rows, *_ in points),
        value=tuple(value for _, value, _, _ in points),
        low=tuple(low for *_, low, _ in points),
        high=tuple(high for *_, high in points),
        side="two-sided",
        level=confidence,
        simultaneous=True,
        x_label="share of people guessed, the most confident guesses first",
        unit="proportion",
        n=int(last),
        method=(
            f"held-out guesses of {run.name}, the strongest of {attacks} attacks; relative-entropy "
            f"form of Chernoff's bound on each of two folds, error probability divided by "
            f"{len(SHARES)} points and {attacks} attacks; bounds the mean chance of being right "
            "given what is released"
        ),
        reference="Hoeffding (1963), Theorem 1",
    )


def _curve_point(folds: list[list[int]], tail: float) -> tuple[float, float, float, float]:
    """Return rows, the share right, and its bounds averaged over folds by their rows."""
    rows, correct = (sum(counts) for counts in zip(*folds, strict=True))
    low = high = 0.0
    for n, right in folds:
        if n:
            low += n / rows * chernoff_lower(right / n, n, tail)
            high += n / rows * chernoff_upper(right / n, n, tail)
    return float(rows), correct / rows, low, high


_UTILITY_BOUND = ("attack.utility_bound", "Bound on every attack’s accuracy")
_OF_FEATURES = "features are released unchanged, so the claim alone bounds no attack"
_FEATURES_NOTE = (
    "The claim protects the label given the features. It does not bound what the features "
    "themselves give away, so the bound on any attack's accuracy is 1."
)
_OF_DOUBLE = (
    "the bound needs the divergence of true from synthetic features, which the claim does not state"
)
_DOUBLE_NOTE = (
    "What the features themselves give away depends on the divergence of true from synthetic "
    "features, which the claim does not state: without it, the bound on any attack's accuracy is "
    "1. The audit renyi estimates that divergence, and the bound that follows from it."
)
_MODEL = "P(label | features) is as the cross-fitted model has it"


def ceiling_estimates(
    context: AuditContext,
    channel: Channel | None,
    posterior: FloatArray | None,
    best: float = 0.0,
) -> list[Estimate]:
    """Return the ceilings of accuracy and advantage under the claim.

    The channel is the claimed one, aligned with the release; ``posterior``, float64 of shape
    (n, k), is P(y | x) for each row, from the features alone; ``best`` is the strongest
    attack's accuracy.
    """
    epsilon, k = context.claim.epsilon, len(context.release.classes)
    if epsilon is None:
        return []
    score = score_of("ceiling", "Ceiling of the claim", ADVANTAGE)
    highest = Estimate.exact(
        score_id(score),
        score.title,
        advantage_ceiling(epsilon, k),
        score=score,
        unit="proportion",
        method="½ tanh(ε/2), over all priors" if k == 2 else "tanh(ε/4), over all priors",
        reference="tight form of the bound of Wu et al. (2023)",
    )
    if posterior is None:
        return [highest]
    ceiling = max(float(accuracy_ceiling(posterior.max(axis=1), epsilon).mean()), best)
    how = (
        "p e^ε/(1 + p(e^ε − 1)) with p the largest P(label | features), averaged over rows; the "
        "strongest attack's accuracy where that is higher"
    )
    names = "ceiling-estimate", "Ceiling of the claim, estimated"
    found = [(names, ceiling, how, "Wu et al. (2023)")]
    if channel is not None:
        optimum = float(channel.informed_accuracy(posterior).mean())
        how, source = (
            "Σ_z max_y P(y | features) T[y, z], averaged over rows",
            "Busa-Fekete et al. (2024)",
        )
        found.append((("optimum", "Optimum against the claim, estimated"), optimum, how, source))
    estimates = [highest]
    for (name, title), value, method, reference in found:
        score = score_of(name, title, ACCURACY)
        one = Estimate.estimated(
            score_id(score),
            score.title,
            value,
            score=score,
            unit="proportion",
            n=len(posterior),
            method=method,
            assumptions=(_MODEL, "the claim holds"),
            reference=reference,
        )
        estimates.append(one)
    return estimates


def utility_estimate(
    context: AuditContext, channel: Channel | None
) -> tuple[list[Estimate], list[Note]]:
    """Return the bound on every attack's accuracy that Rényi label privacy of the claim implies.

    The features leave a release unprotected, so with features that vary the bound is 1 and a note
    says why. Without any, the claimed channel is all there is, and the frequency of the most
    frequent label is bounded from above where true labels are known.
    """
    if channel is None:
        return [], []
    reference, truth = "Busa-Fekete et al. (2023), Theorem 5.2", context.release.truth
    if not context.release.features.is_constant():
        double = context.claim.traits.features == "partly synthetic"
        bound = Estimate.exact(
            *_UTILITY_BOUND,
            1.0,
            unit="proportion",
            method=_OF_DOUBLE if double else _OF_FEATURES,
            reference=f"{reference} with Theorem 7.1" if double else reference,
        )
        text = _DOUBLE_NOTE if double else _FEATURES_NOTE
        return [bound], [Note.info(AUDIT_ID, text)]
    if truth is None:
        return [], []
    alpha, k = 1 - context.plan.confidence, len(context.release.classes)
    # The largest of k frequencies: a bound for each at alpha/k.
    counts = np.bincount(truth, minlength=k)
    p_star = float(clopper_pearson_upper(counts, len(truth), alpha / k).max())
    bound = Estimate.upper_bound(
        *_UTILITY_BOUND,
        utility_bound(channel.rdp, p_star, k),
        context.plan.confidence,
        unit="proportion",
        n=len(truth),
        method="no feature varies: Rényi divergence of the claimed channel, minimised over δ and "
        "α; the most frequent label's share bounded from above",
        assumptions=("the claim holds",),
        reference=reference,
    )
    return [bound], []
