"""Released rows of two true labels: Definition 4.3 audited directly, for any mechanism."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ldpaudit.audits.claimed_channel import aligned_channel
from ldpaudit.audits.instance_loss.labels import measured_channel, measured_shares
from ldpaudit.audits.instance_loss.queries import has_features
from ldpaudit.audits.interface import AuditContext
from ldpaudit.audits.mechanism.evidence import FEATURE_BLIND, INDEPENDENT, feature_dependence
from ldpaudit.audits.models import half_model
from ldpaudit.audits.renyi.curves import (
    AUDIT_ID,
    X_LABEL,
    bound_functions,
    certified_curve,
    curve_consequences,
    estimated_curve,
    support_estimates,
)
from ldpaudit.audits.renyi.pairs import GuessedRows, WorstPair, worst_pair
from ldpaudit.errors import InsufficientDataError
from ldpaudit.estimators.renyi.divergence import ORDERS
from ldpaudit.mechanisms.channel import Channel
from ldpaudit.release import FloatArray, IndexArray, IntArray
from ldpaudit.result import Curve, Finding, Note

RELEASE = "renyi.release"
MOST_HELD_OUT = 120_000
"""Held-out rows that bounds are taken on; more are sampled."""
_TITLE = "Released rows of two labels"
_DEFINITION = "Busa-Fekete et al. (2023), Definition 4.3"


@dataclass(frozen=True)
class _HeldOut:
    """Held-out rows, posteriors of their labels from the features, and the measured channel."""

    posterior: FloatArray
    labels: IntArray
    released: IntArray
    prior: FloatArray
    channel: FloatArray
    classes: IndexArray
    sampled_from: int


def release_finding(context: AuditContext) -> Finding:
    """Return certified and estimated curves between released rows of two true labels.

    Raise InsufficientDataError if there are no two labels, or groups of them, with enough rows.
    """
    data = _held_out(context)
    context.progress.step("bounding Rényi divergences of the release")
    joint = GuessedRows(data.posterior * data.channel.T[data.released], data.labels, data.prior)
    worst = worst_pair(joint, ORDERS, rng=context.rng(AUDIT_ID, "release"))
    confidence = context.plan.confidence
    words = _words(worst)
    curves = [certified_curve(RELEASE, _TITLE, worst.bounds, confidence, words, worst.rows)]
    estimate = estimated_curve(
        f"{RELEASE}.estimate",
        f"{_TITLE}, by a model",
        worst.points,
        "Donsker–Varadhan form with a model's log-odds, the largest over ordered pairs of "
        f"{worst.estimated_labels} labels, at orders that the rows of every pair support",
        worst.rows,
        _unseen(worst, len(data.prior)),
    )
    names = "model behind the Rényi estimates", "released rows"
    estimates = support_estimates(RELEASE, names, worst.points, worst.calibration, worst.rows)
    if estimate is not None:
        curves.append(estimate)
        titles = "that the estimated curve implies", "by the estimated curve"
        which = "the estimated Rényi curve"
        estimates += curve_consequences(context, estimate, RELEASE, which, titles, estimate.n)
    curves += _parts(context, data)
    return Finding(
        estimates=tuple(estimates),
        curves=tuple(curves),
        notes=tuple(Note.info(AUDIT_ID, text) for text in _notes(data, worst)),
        bounds=bound_functions(RELEASE, worst.bounds),
    )


def _held_out(context: AuditContext) -> _HeldOut:
    release = context.release
    classes, codes = np.unique(context.truth, return_inverse=True)
    if len(classes) < 2:
        raise InsufficientDataError("The Rényi audit needs two true labels that occur.")
    labels = codes.astype(np.int32)
    fitting, available = context.half(1), context.half(0)
    held = context.sample(available, MOST_HELD_OUT, AUDIT_ID, "rows")
    k, m = len(classes), len(release.outputs)
    prior = measured_shares(labels[fitting], k)
    posterior = np.tile(prior, (len(held), 1))
    if has_features(context):
        predicted = half_model(context, "truth", 1).predict(release.features.take(held))
        posterior = predicted[:, classes]
        posterior = posterior / posterior.sum(axis=1, keepdims=True)
    channel = measured_channel(labels[fitting], release.released[fitting], k, m)
    return _HeldOut(
        posterior,
        labels[held],
        release.released[held],
        prior,
        channel,
        classes.astype(np.int64),
        len(available),
    )


def _parts(context: AuditContext, data: _HeldOut) -> list[Curve]:
    """Return the features' own curve, and its sum with the exact one of the claimed channel."""
    declared = aligned_channel(context)
    if declared is None or feature_dependence(context) or not has_features(context):
        return []
    features = GuessedRows(data.posterior, data.labels, data.prior)
    worst = worst_pair(features, ORDERS, rng=context.rng(AUDIT_ID, "features"))
    confidence = context.plan.confidence
    words = f"the features alone, released label unseen; {_words(worst)}"
    names = f"{RELEASE}.features", "Features of two labels"
    alone = certified_curve(*names, worst.bounds, confidence, words, worst.rows)
    return [alone, _sum_with_label(alone, worst, declared, data.classes)]


def _sum_with_label(
    features: Curve, worst: WorstPair, channel: Channel, classes: IndexArray
) -> Curve:
    """Return D_α(T[y]‖T[y']) of the claim plus the features' bound, for the bound's pairs.

    In a group of labels the pair with the least divergence of the channel counts.
    """
    total = []
    for order, value, pair in zip(features.x, features.value, worst.pairs, strict=True):
        between = channel.divergences(order)[np.ix_(classes[pair.left], classes[pair.right])]
        total.append(value + float(between.min()))
    return Curve(
        id=f"{RELEASE}.if_claim_holds",
        title="Claimed channel and features together",
        kind="estimated",
        axis="divergence",
        x=features.x,
        value=tuple(total),
        low=tuple(total),
        side="lower",
        level=features.level,
        x_label=X_LABEL,
        unit="nats",
        n=features.n,
        method="D_α of the claimed channel, exact, plus the lower bound for the features alone",
        assumptions=("the claim holds", FEATURE_BLIND, INDEPENDENT),
        reference=_DEFINITION,
    )


def _words(worst: WorstPair) -> str:
    ways = "two ways round" if worst.compared == 2 else f"{worst.compared} ordered pairs or groups"
    return (
        "Donsker–Varadhan or tangent form with a clipped model of other rows; labels, form, clip "
        f"and order α' ≤ α chosen among {ways} on rows that the bound does not use"
    )


def _unseen(worst: WorstPair, k: int) -> tuple[str, ...]:
    left = k - worst.estimated_labels
    given = f"{left} labels with fewer rows are no farther from the others than those compared"
    return (given,) if left else ()


def _notes(data: _HeldOut, worst: WorstPair) -> Iterator[str]:
    if data.sampled_from > len(data.labels):
        yield (
            f"{len(data.labels)} of {data.sampled_from} held-out rows were drawn at random for "
            "Rényi divergences; the bounds remain valid."
        )
    few = int((data.prior * 2 * data.sampled_from < 100).sum())
    if few:
        yield (
            f"{few} labels have fewer than 100 rows; they were compared only as part of a group, "
            "for which a lower bound holds as well. Estimates leave them out."
        )
    if not worst.points:
        yield (
            "The Rényi divergence was not estimated: fewer than two labels have 50 held-out rows "
            "each. The certified bound holds at every order."
        )
    unsupported = [point.order for point in worst.points if not point.supported]
    if unsupported:
        yield (
            f"{worst.rows} rows cannot support an estimate of the Rényi divergence from order "
            f"{min(unsupported):g} on: it would rest on fewer than 30 effective rows. The "
            "certified bound holds at every order."
        )
