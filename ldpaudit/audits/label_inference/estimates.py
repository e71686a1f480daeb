"""From the counts of attacks to the estimates and the curve of the result."""

# Every attack and reference has its scores; the strongest is also shown by class, by slice and by
# confidence, corrected for choosing it; the claim implies ceilings.

from collections.abc import Iterator, Sequence
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
from ldpaudit.audits.interface import AuditContext, Part
from ldpaudit.audits.label_inference.runs import AttackRun
from ldpaudit.audits.scores import BEST, best_bound, score_estimate, score_id, score_of
from ldpaudit.estimators.advantage import (
    accuracy_ceiling,
    advantage_ceiling,
    utility_bound,
)
from ldpaudit.estimators.intervals.binomial import clopper_pearson_upper
from ldpaudit.estimators.intervals.ranking import auc_lower as chernoff_lower
from ldpaudit.estimators.intervals.ranking import auc_upper as chernoff_upper
from ldpaudit.mechanisms.channel import Channel
from ldpaudit.release import FloatArray
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
AUDIT_ID: Final = "label-inference"
BEST_TITLE: Final = "Strongest attack"
MOST_CLASSES: Final = 20  # With more classes none is shown separately.
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
_CEILING = (
    "ceiling-estimate",
    "Ceiling of the claim, estimated",
    "p e^ε/(1 + p(e^ε − 1)) with p the largest P(label | features), averaged over rows; the "
    "strongest attack's accuracy where that is higher",
    "Wu et al. (2023)",
)
_OPTIMUM = (
    "optimum",
    "Optimum against the claim, estimated",
    "Σ_z max_y P(y | features) T[y, z], averaged over rows",
    "Busa-Fekete et al. (2024)",
)
_MODEL = "P(label | features) is as the cross-fitted model has it"


def score_estimates(run: AttackRun, confidence: float) -> Iterator[Estimate]:
    """Yield every score of one attack and, where there is one, its in-sample accuracy."""
    # Scores are certified; for an attack that learns from the rows it guesses, only those that need
    # no more than independent rows.
    for measure in (*SCORES, *(GAINS if run.uses_release else ())):
        if run.given_release and not measure.unlike:
            score = score_of(run.name, run.title, measure)
            yield Estimate.estimated(
                score_id(score),
                score.title,
                average(run.folds, measure.value),
                score=score,
                unit=measure.unit,
                n=sum(fold.n for fold in run.folds),
                method="as counted, mean over labels and folds; no interval: the attack learns "
                "from the rows that it guesses, and an interval would need rows that are alike",
                assumptions=("the number describes these people only",),
            )
            continue
        count = sum(fold.correct for fold in run.folds) if measure is ACCURACY else None
        method = f"{measure.method}{GIVEN}" if run.given_release else measure.method
        reference = _REFERENCE if measure in GAINS else None
        yield score_estimate(
            run, measure, confidence, count=count, method=method, reference=reference
        )
    if run.fitted_n:
        measured = {"measure": "in_sample.accuracy", "column": "Accuracy in sample"}
        score = Score(subject=run.name, row=run.title, **measured)
        yield Estimate.estimated(
            score_id(score),
            score.title,
            run.fitted_correct / run.fitted_n,
            score=score,
            unit="proportion",
            n=run.fitted_n,
            count=run.fitted_correct,
            method="guesses on rows that the attack was fitted on (of large releases, a sample)",
            assumptions=(
                "exact for these rows; an attack that memorises its rows does differently on new "
                "ones",
            ),
        )


def best_parts(runs: Sequence[AttackRun], confidence: float, possible: int = 1) -> Iterator[Part]:
    """Yield accuracy and advantage of the strongest attack, corrected for choosing it.

    The lower end is the largest lower bound, each at the error probability divided by the number
    of attacks, or by ``possible`` where more could have run; the upper end is the largest upper
    bound, which needs no correction: the strongest attack's own bound is among them. Where one
    learns from the rows it guesses, all are bounded given what is released, so that chance does
    not decide which is the strongest.
    """
    attacks = [run for run in runs if run.uses_release]
    given = any(run.given_release for run in attacks)
    if given:
        attacks = [
            replace(run, folds=tuple(replace(fold, alike=False) for fold in run.folds))
            for run in attacks
        ]
    words = _CHOSEN + (GIVEN if given else "")
    for measure in (ACCURACY, ADVANTAGE) if attacks else ():
        asked = attacks, measure, confidence, possible, BEST_TITLE, words
        reference = _REFERENCE if measure is ADVANTAGE else None
        yield best_bound(*asked, reference=reference)


def strongest(runs: Sequence[AttackRun]) -> AttackRun | None:
    """Return the most accurate attack, None without an attack."""
    attacks = [run for run in runs if run.uses_release]
    return max(attacks, key=lambda run: average(run.folds, ACCURACY.value), default=None)


_Group = tuple[str, str, str, list[FoldScore]]
# Some rows: their key in ids, title, words, and of each fold what was counted on them.


def class_parts(context: AuditContext, run: AttackRun, attacks: int) -> Iterator[Part]:
    """Yield how many people of each class the strongest attack guesses right."""
    # Every interval holds at once with all others, and for whichever of the attacks is the
    # strongest. The number of people in a class depends on their true labels, so only an attack
    # that learns nothing from the rows it guesses can be scored this way.
    k = len(context.release.classes)
    if k > MOST_CLASSES:
        text = f"With {k} classes the strongest attack is not scored for each class separately."
        yield Note.info(AUDIT_ID, text)
        return
    groups: list[_Group] = []
    for y, name in enumerate(context.release.classes):
        counted = [(f, int(f.class_rows[y]), int(f.class_correct[y])) for f in run.folds]
        folds = [replace(fold, n=rows, correct=right) for fold, rows, right in counted]
        groups.append((f"class-{y + 1}", f"class {name}", f"people of class {name}", folds))
    yield from _of_groups(run, groups, ACCURACY, context.plan.confidence, attacks)


def slice_parts(context: AuditContext, run: AttackRun, attacks: int) -> Iterator[Part]:
    """Yield accuracy and advantage of the strongest attack in each slice, and what slices are."""
    confidence, slices = context.plan.confidence, context.plan.slices
    shape, names = [len(column) for column in slices], ("n", "correct", "gained", "lost")
    for place, column in enumerate(slices):
        folds, at = list[list[FoldScore]](), place + 1
        for fold in run.folds:
            table = np.zeros((int(np.prod(shape)), 4), dtype=np.int64)
            table[: len(fold.slices)] = fold.slices
            others = tuple(i for i in range(len(shape)) if i != place)
            counts = table.reshape(*shape, 4).sum(axis=others).tolist()
            folds.append([replace(fold, **dict(zip(names, one, strict=True))) for one in counts])
        groups: list[_Group] = [
            (f"slice-{at}-{i}", f"column {at}, slice {i}", f"rows of slice {i}", [*both])
            for i, both in enumerate(zip(*folds, strict=True), 1)
        ]
        for measure in (ACCURACY, ADVANTAGE):
            yield from _of_groups(run, groups, measure, confidence, attacks)
        # Their values are cells of a feature, which no form contains.
        order = "1 has the most rows" + (", the last one is all others" if column.rest else "")
        yield Note.info(AUDIT_ID, f"Slices {at} are by the column {column.column}: {order}.")


def _of_groups(
    run: AttackRun,
    groups: Sequence[_Group],
    measure: Measure[FoldScore],
    confidence: float,
    attacks: int,
) -> Iterator[Estimate]:
    """Yield a measure of each group, all of them at once and for whichever attack was chosen."""
    alpha = (1 - confidence) / 2 / (2 * len(groups) * attacks)
    for key, title, words, every in groups:
        folds = [fold for fold in every if fold.n]
        if not folds:
            continue
        score = score_of(BEST, title, measure).model_copy(update={"group": key})
        method = (
            f"{run.name}, chosen among {attacks} attacks, on {words}; on each of two folds, "
            f"error probability divided by {len(groups)} groups and {attacks} attacks"
        )
        low = average(folds, lambda fold: measure.lower(fold, alpha))
        high = average(folds, lambda fold: measure.upper(fold, alpha))
        yield Estimate.interval(
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
    points = list[tuple[float, float, float, float]]()
    for end in ends:
        folds = [fold[end].tolist() for fold in counts]
        rows, correct = (sum(both) for both in zip(*folds, strict=True))
        low = sum(n / rows * chernoff_lower(right / n, n, tail) for n, right in folds if n)
        high = sum(n / rows * chernoff_upper(right / n, n, tail) for n, right in folds if n)
        points.append((rows, correct / rows, low, high))
    guessed, value, lows, highs = zip(*points, strict=True)
    last = guessed[-1]
    return Curve(
        id="attack.best.accuracy_by_confidence",
        title="Accuracy among the most confident guesses",
        kind="certified",
        x=tuple(rows / last for rows in guessed),
        value=value,
        low=lows,
        high=highs,
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


def claim_parts(
    context: AuditContext,
    channel: Channel | None,
    posterior: FloatArray | None,
    best: float = 0.0,
) -> Iterator[Part]:
    """Yield the ceilings of accuracy and advantage under the claim, and the bound on accuracy.

    The channel is the claimed one, aligned with the release; ``posterior``, float64 of shape (n,
    k), is P(y | x) for each row, from the features alone; ``best`` is the strongest attack's
    accuracy.
    The bound on every attack's accuracy is that of Rényi label privacy. The features leave a
    release unprotected, so with features that vary it is 1 and a note says why. Without any, the
    claimed channel is all there is, and the frequency of the most frequent label is bounded from
    above where true labels are known.
    """
    epsilon, k, truth = context.claim.epsilon, len(context.release.classes), context.release.truth
    if epsilon is not None:
        score = score_of("ceiling", "Ceiling of the claim", ADVANTAGE)
        yield Estimate.exact(
            score_id(score),
            score.title,
            advantage_ceiling(epsilon, k),
            score=score,
            unit="proportion",
            method="½ tanh(ε/2), over all priors" if k == 2 else "tanh(ε/4), over all priors",
            reference="tight form of the bound of Wu et al. (2023)",
        )
    if epsilon is not None and posterior is not None:
        ceiling = max(float(accuracy_ceiling(posterior.max(axis=1), epsilon).mean()), best)
        found = [(*_CEILING, ceiling)]
        if channel is not None:
            found.append((*_OPTIMUM, float(channel.informed_accuracy(posterior).mean())))
        for name, title, method, reference, value in found:
            score = score_of(name, title, ACCURACY)
            yield Estimate.estimated(
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
    source = "Busa-Fekete et al. (2023), Theorem 5.2"
    if channel is not None and not context.release.features.is_constant():
        double = context.claim.traits.features == "partly synthetic"
        yield Estimate.exact(
            *_UTILITY_BOUND,
            1.0,
            unit="proportion",
            method=_OF_DOUBLE if double else _OF_FEATURES,
            reference=f"{source} with Theorem 7.1" if double else source,
        )
        yield Note.info(AUDIT_ID, _DOUBLE_NOTE if double else _FEATURES_NOTE)
    elif channel is not None and truth is not None:
        # The largest of k frequencies: a bound for each at alpha/k.
        counts, alpha = np.bincount(truth, minlength=k), 1 - context.plan.confidence
        p_star = float(clopper_pearson_upper(counts, len(truth), alpha / k).max())
        yield Estimate.upper_bound(
            *_UTILITY_BOUND,
            utility_bound(channel.rdp, p_star, k),
            context.plan.confidence,
            unit="proportion",
            n=len(truth),
            method="no feature varies: Rényi divergence of the claimed channel, minimised over δ "
            "and α; the most frequent label's share bounded from above",
            assumptions=("the claim holds",),
            reference=source,
        )
