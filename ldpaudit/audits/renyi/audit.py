"""Rényi divergences: how far apart the released rows of two true labels are."""

# Label differential privacy with conditional features (Definition 4.3) asks that D_α between the
# released rows of any two true labels be at most ε. That is bounded from below here for any
# mechanism, and estimated. For double randomized response the distance of synthetic from true
# features is measured as well, and what it implies.

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from ldpaudit.audits.instance_loss.neighbourhoods import (
    has_features,
    measured_channel,
    measured_shares,
)
from ldpaudit.audits.interface import AuditContext, BuiltIn, Part
from ldpaudit.audits.models import aligned_channel, feature_dependence, half_model
from ldpaudit.audits.renyi.curves import (
    AUDIT_ID,
    MOST_LABELS,
    Measured,
    bounds_of_orders,
    certified_curve,
    curve_consequences,
    estimated_curve,
    largest_points,
    most_promising,
    support_estimates,
)
from ldpaudit.errors import InsufficientDataError
from ldpaudit.estimators.renyi import (
    AUDITED_ORDERS,
    FEWEST_ROWS,
    TUNING_SHARE,
    Scores,
    bounds_on,
    calibration_error,
    renyi_points,
    screened_promise,
)
from ldpaudit.mechanisms.channel import Channel
from ldpaudit.release import BoolArray, FloatArray, IndexArray, IntArray
from ldpaudit.result import Curve, Note
from ldpaudit.result.stated import (
    FEATURE_BLIND,
    INDEPENDENT,
    RELEASE_CURVE,
)

# With fewer rows neither half has enough to fit a model and to bound a divergence.
_MIN_ROWS = 400


def _parts(context: AuditContext) -> Iterator[Part]:
    if len(context.release) < _MIN_ROWS:
        raise InsufficientDataError(f"The Rényi audit needs at least {_MIN_ROWS} rows.")
    traits = context.claim.traits
    yield from _of_release(context)
    # Of synthetic features the estimated divergence is what double randomized response is told by.
    compared = None
    if context.release.synthetic is not None or traits.features_replaced:
        from ldpaudit.audits.renyi.features import double_rr_curves, synthetic_parts

        compared = synthetic_parts(context)
        yield from compared or ()
        yield from double_rr_curves(context, compared or ())
    if traits.features == "unchanged" and has_features(context):
        yield Note.info(
            AUDIT_ID,
            "The features are released unchanged, so the claim bounds no Rényi divergence "
            "between released rows of two labels (Theorems 6.1 and 6.4 of Busa-Fekete et al. "
            "2023): where features settle the label it is infinite, however small ε is.",
        )
    if traits.features == "partly synthetic" and compared is None:
        yield Note.info(
            AUDIT_ID,
            "How far synthetic features are from true ones was not measured: that needs the "
            "original features (--original) or the synthetic table (--synthetic).",
        )
    if traits.label_depends_on_features:
        yield Note.info(
            AUDIT_ID,
            "The model behind the bounds takes the released label to depend on the true label "
            "alone. Where it does not, the bounds remain valid but are weaker.",
        )


AUDIT: Final = BuiltIn(AUDIT_ID, _parts, counts="people", needs=("truth", "labels", "rows"))


_SCREENED_ROWS = 1_500
_TUNED_ROWS = 5_000
_FINALISTS = 3
_SCREENING_ORDER = 2.0


@dataclass(frozen=True)
class _Pair:
    """Labels on the left (P) and on the right (Q), as masks over the k labels."""

    left: BoolArray
    right: BoolArray


@dataclass(frozen=True)
class GuessedRows:
    """Held-out rows with a model's guess for each label."""

    weights: FloatArray
    """Float64 (n, k): positive, proportional within a row to the joint probability of the label and
    what was released."""
    labels: IntArray
    prior: FloatArray
    """Float64 (k,): shares of the labels among the fitting rows."""

    def take(self, rows: IndexArray) -> "GuessedRows":
        """Return the given rows."""
        return GuessedRows(self.weights[rows], self.labels[rows], self.prior)

    def scores(self, pair: _Pair, most: int | None = None) -> Scores:
        """Return guesses of log dP/dQ for the rows on either side, the first ``most`` of each."""
        return Scores(self._side(pair, pair.left, most), self._side(pair, pair.right, most))

    def _side(self, pair: _Pair, side: BoolArray, most: int | None) -> FloatArray:
        rows = np.flatnonzero(side[self.labels])[:most]
        weights, left, right = self.weights[rows], pair.left, pair.right
        here = weights[:, left].sum(axis=1) / self.prior[left].sum()
        other = weights[:, right].sum(axis=1) / self.prior[right].sum()
        return np.asarray(np.log(here) - np.log(other))


@dataclass(frozen=True)
class _WorstPair(Measured):
    """Bounds and estimates for the pairs that looked farthest apart."""

    pairs: tuple[_Pair, ...]
    """The pair behind each bound."""
    estimated_labels: int
    """How many labels estimates are of, each for the largest of all their ordered pairs; 0 where
    fewer than two labels have 50 rows."""
    compared: int
    """How many ordered pairs or groups were candidates for the bounds."""


def worst_pair(
    data: GuessedRows, orders: Sequence[float], *, rng: np.random.Generator
) -> _WorstPair:
    """Choose pairs of labels on tuning rows and prepare their bounds on all others."""
    # Raise InsufficientDataError if no two groups of labels have 50 rows each.
    order, k = rng.permutation(len(data.labels)), len(data.prior)
    first = max(int(TUNING_SHARE * len(order)), min(4 * FEWEST_ROWS, len(order) // 2))
    tuning, test = data.take(order[:first]), data.take(order[first:])
    tuned, counts = (np.bincount(part.labels, minlength=k) for part in (tuning, test))
    pairs = [
        pair
        for pair in candidate_pairs(data.prior)
        for sides in [(pair.left, pair.right)]
        if all(tuned[s].sum() >= 8 and counts[s].sum() >= FEWEST_ROWS // 2 for s in sides)
    ]
    if not pairs:
        raise InsufficientDataError(
            f"A Rényi divergence needs two labels, or groups of them, with {FEWEST_ROWS} "
            "held-out rows each."
        )
    finalists = pairs
    if len(pairs) > _FINALISTS:
        promises = [
            screened_promise(
                tuning.scores(pair, _SCREENED_ROWS),
                *(int(counts[pair.left].sum()), int(counts[pair.right].sum())),
                _SCREENING_ORDER,
            )
            for pair in pairs
        ]
        best = np.argsort(-np.asarray(promises), kind="stable")[:_FINALISTS]
        finalists = [pairs[i] for i in best]
    families = [
        bounds_on(tuning.scores(pair, _TUNED_ROWS), test.scores(pair), orders) for pair in finalists
    ]
    chosen = most_promising(families)
    frequent = np.sort(np.argsort(-counts, kind="stable")[:MOST_LABELS])
    labels = frequent[counts[frequent] >= FEWEST_ROWS]
    labels = labels if len(labels) > 1 else labels[:0]
    sides = [test.scores(pair) for pair in _single_pairs(labels, k)]
    points = [renyi_points(scores, orders) for scores in sides]
    errors = [calibration_error(scores) for scores in sides]
    return _WorstPair(
        bounds=tuple(families[c][i] for i, c in enumerate(chosen)),
        points=largest_points(points),
        calibration=max(errors, default=None),
        rows=len(test.labels),
        pairs=tuple(finalists[c] for c in chosen),
        estimated_labels=len(labels),
        compared=len(pairs),
    )


def candidate_pairs(prior: FloatArray) -> list[_Pair]:
    """Return every ordered pair of the most frequent labels, and each against all others."""
    k, one = len(prior), np.eye(len(prior), dtype=bool)
    frequent = np.sort(np.argsort(-prior, kind="stable")[:MOST_LABELS])
    pairs = _single_pairs(frequent, k)
    for label in frequent if k > 2 else ():
        pairs += [_Pair(one[label], ~one[label]), _Pair(~one[label], one[label])]
    return pairs


def _single_pairs(labels: IndexArray, k: int) -> list[_Pair]:
    one = np.eye(k, dtype=bool)
    return [_Pair(one[a], one[b]) for a in labels for b in labels if a != b]


# Held-out rows that bounds are taken on; more are sampled.
_MOST_HELD_OUT = 120_000
_TITLE = "Released rows of two labels"
_DEFINITION = "Busa-Fekete et al. (2023), Definition 4.3"


def _of_release(context: AuditContext) -> Iterator[Part]:
    """Yield certified and estimated curves between released rows of two true labels."""
    # Raise InsufficientDataError if there are no two labels, or groups of them, with enough rows.
    release = context.release
    classes, codes = np.unique(context.truth, return_inverse=True)
    if len(classes) < 2:
        raise InsufficientDataError("The Rényi audit needs two true labels that occur.")
    labels, k, m = codes.astype(np.int32), len(classes), len(release.outputs)
    fitting, available = context.half(1), context.half(0)
    held = context.sample(available, _MOST_HELD_OUT, AUDIT_ID, "rows")
    prior = measured_shares(labels[fitting], k)
    posterior = np.tile(prior, (len(held), 1))
    if has_features(context):
        model = half_model(context, "truth", 1)
        posterior = model.predict(release.features.take(held))[:, classes]
        posterior = posterior / posterior.sum(axis=1, keepdims=True)
    channel = measured_channel(labels[fitting], release.released[fitting], k, m)
    context.progress.step("bounding Rényi divergences of the release")
    joint = GuessedRows(posterior * channel.T[release.released[held]], labels[held], prior)
    worst = worst_pair(joint, AUDITED_ORDERS, rng=context.rng(AUDIT_ID, "release"))
    yield certified_curve(RELEASE_CURVE, _TITLE, worst, context.plan.confidence, _words(worst))
    yield from bounds_of_orders(RELEASE_CURVE, worst.bounds)
    unseen = k - worst.estimated_labels
    given = f"{unseen} labels with fewer rows are no farther from the others than those compared"
    estimate = estimated_curve(
        RELEASE_CURVE,
        _TITLE,
        worst,
        "Donsker–Varadhan form with a model's log-odds, the largest over ordered pairs of "
        f"{worst.estimated_labels} labels, at orders that the rows of every pair support",
        (given,) if unseen else (),
    )
    names = "model behind the Rényi estimates", "released rows"
    yield from support_estimates(RELEASE_CURVE, names, worst)
    if estimate is not None:
        titles = "that the estimated curve implies", "by the estimated curve"
        which = "the estimated Rényi curve"
        yield estimate
        yield from curve_consequences(context, estimate, RELEASE_CURVE, which, titles, estimate.n)
    declared = aligned_channel(context)
    if declared is not None and not feature_dependence(context) and has_features(context):
        features = GuessedRows(posterior, labels[held], prior)
        yield from _if_claim_holds(context, features, declared, classes.astype(np.int64))
    few = int((prior * 2 * len(available) < 100).sum())
    unsupported = [point.order for point in worst.points if not point.supported]
    if len(available) > len(held):
        yield Note.info(
            AUDIT_ID,
            f"{len(held)} of {len(available)} held-out rows were drawn at random for "
            "Rényi divergences; the bounds remain valid.",
        )
    if few:
        yield Note.info(
            AUDIT_ID,
            f"{few} labels have fewer than 100 rows; they were compared only as part of a group, "
            "for which a lower bound holds as well. Estimates leave them out.",
        )
    if not worst.points:
        yield Note.info(
            AUDIT_ID,
            "The Rényi divergence was not estimated: fewer than two labels have 50 held-out rows "
            "each. The certified bound holds at every order.",
        )
    if unsupported:
        yield Note.info(
            AUDIT_ID,
            f"{worst.rows} rows cannot support an estimate of the Rényi divergence from order "
            f"{min(unsupported, default=0):g} on: it would depend on fewer than 30 effective rows. "
            "The certified bound holds at every order.",
        )


def _if_claim_holds(
    context: AuditContext, features: GuessedRows, channel: Channel, classes: IndexArray
) -> list[Curve]:
    """Return the features' own curve, and its sum with the exact one of the claimed channel."""
    # D_α(T[y]‖T[y']) is added for the bound's own pairs; in a group of labels the pair with the
    # least divergence of the channel counts.
    worst = worst_pair(features, AUDITED_ORDERS, rng=context.rng(AUDIT_ID, "features"))
    words = f"the features alone, released label unseen; {_words(worst)}"
    names, level = (
        (f"{RELEASE_CURVE}.features", "Features of two labels"),
        context.plan.confidence,
    )
    alone = certified_curve(*names, worst, level, words)
    total = []
    for order, value, pair in zip(alone.x, alone.value, worst.pairs, strict=True):
        between = channel.divergences(order)[np.ix_(classes[pair.left], classes[pair.right])]
        total.append(value + float(between.min()))
    claimed = {
        "id": f"{RELEASE_CURVE}.if_claim_holds",
        "title": "Claimed channel and features together",
        "kind": "estimated",
        "value": tuple(total),
        "low": tuple(total),
        "method": "D_α of the claimed channel, exact, plus the lower bound for the features alone",
        "assumptions": ("the claim holds", FEATURE_BLIND, INDEPENDENT),
        "reference": _DEFINITION,
    }
    return [alone, alone.model_copy(update=claimed)]


def _words(worst: _WorstPair) -> str:
    ways = "two ways round" if worst.compared == 2 else f"{worst.compared} ordered pairs or groups"
    return (
        "Donsker–Varadhan or tangent form with a clipped model of other rows; labels, form, clip "
        f"and order α' ≤ α chosen among {ways} on rows that the bound does not use"
    )
