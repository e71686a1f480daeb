"""The observational audit: can the true label be told from one re-drawn given the features?

Somebody who sees features and released label is shown the true label or one drawn again from
P(label | features), and guesses which it is. An ε-label-DP channel shifts the odds by at most ε,
also where it uses the features, as model-based randomized response does: there counts of true
against released labels alone prove nothing, and this audit is what bounds ε.

It is certified where the re-drawn label's distribution is known by construction: among rows with
equal features (the re-drawn label is another person's), and for canaries, whose labels the auditor
drew. A model of P(label | features) may be wrong, and what the mechanism knows of the features
beyond the model looks like a leak: with it the bound is estimated.

References
----------
Kalemaj et al. (2025), Observational Auditing of Label Privacy, arXiv 2511.14084.
"""

import math
from collections.abc import Iterator
from functools import partial
from typing import Final

import numpy as np

from ldpaudit.audits.interface import Part
from ldpaudit.audits.models import cross_fitted_posterior, feature_dependence
from ldpaudit.doors import (
    AuditContext,
    Curve,
    Estimate,
    FeatureTable,
    FloatArray,
    IndexArray,
    InputError,
    InsufficientDataError,
    IntArray,
    Note,
    mean_lower,
    mean_upper,
    shift_lower,
)
from ldpaudit.estimators.epsilon.bounds import EpsilonBound
from ldpaudit.estimators.intervals.binomial import shift_upper
from ldpaudit.extras.kinds.observational.evidence import (
    Proof,
    evidence_at_hand,
    guessed_events,
    table_guess,
)
from ldpaudit.models.label_model import PROBABILITY_FLOOR, fit_posterior
from ldpaudit.release import BoolArray
from ldpaudit.result import Bound
from ldpaudit.result.stated import INDEPENDENT

AUDIT_ID = "observational"
LOWER = "observational.epsilon_lower"
MIN_ROWS = 40
_TITLE = "Re-drawn labels"
_UNCERTIFIED = (
    "No bound of ε is certified for a mechanism that uses the features: too few rows have the same "
    "features as a row with another true label, no canaries are given, and no public model that "
    "agrees with the released labels."
)
_REFERENCE = "Kalemaj et al. (2025); Hoeffding (1956), Theorem 5"


def observational_parts(context: AuditContext) -> Iterator[Part]:
    """Yield what the game shows with rows that are alike, canaries, and a model of the labels."""
    # Raise InsufficientDataError with fewer than 40 rows, and InputError if a public table or the
    # canaries cannot belong to the release.
    if len(context.release) < MIN_ROWS:
        raise InsufficientDataError(f"The observational audit needs at least {MIN_ROWS} rows.")
    context.progress.step("true labels against re-drawn ones")
    evidence, alpha = evidence_at_hand(context), 1 - context.plan.confidence
    if evidence:
        found = [(part.bound(alpha / len(evidence)), part) for part in evidence]
        best, strongest = max(found, key=lambda pair: pair[0].epsilon)
        words = strongest.how(best)
        if len(evidence) > 1:
            words += f"; the stronger of {len(evidence)}, each at half the error probability"
        yield _estimate(context, LOWER, _TITLE, best, words, strongest)
    for part in evidence:
        bound = part.bound(alpha)
        title, words = f"{_TITLE}, {part.title}", f"{part.how(bound)}; at its own level"
        yield _estimate(context, f"{LOWER}.{part.name}", title, bound, words, part)
    yield from proxy_parts(context)
    # Where no feature is used, the counts of the mechanism audit bound ε better, and a second
    # bound would only use up part of their error probability.
    if feature_dependence(context) is None:
        return
    if evidence:
        yield Bound(LOWER, partial(strongest_bound, evidence))
    else:
        yield Note.info(AUDIT_ID, _UNCERTIFIED)


def strongest_bound(evidence: list[Proof], alpha: float) -> float:
    """Return the largest bound of several kinds of evidence, which share the error equally."""
    return max(part.bound(alpha / len(evidence)).epsilon for part in evidence)


def _estimate(
    context: AuditContext,
    identifier: str,
    title: str,
    bound: EpsilonBound,
    method: str,
    part: Proof,
) -> Estimate:
    return Estimate.lower_bound(
        identifier,
        title,
        bound.epsilon,
        context.plan.confidence,
        axis="epsilon",
        unit="nats",
        n=bound.n,
        method=method,
        assumptions=(part.assumption, INDEPENDENT),
        reference=_REFERENCE,
    )


_MOST_ROWS_GUESSED: Final = 200_000
_FEWEST_INSIDE: Final = 20
_SHIFTS: Final = tuple(float(s) for s in np.round(np.arange(0, 2.01, 0.1), 1))
_MODEL: Final = (
    "the mechanism knows no more of the label from the features than the model of P(label | "
    "features) does"
)
_EVEN: Final = "the model's log-odds are off by no more than the shift, the same for all rows"
_GAME: Final = "Kalemaj et al. (2025)"


def proxy_parts(context: AuditContext) -> Iterator[Part]:
    """Yield the game's estimates, and the bound by assumed shift."""
    # Shown a label, the attacker says "true" if it is the one that the released label points to.
    # Over a fair coin and a label drawn from the model P̂, both averaged out, row i is answered
    # rightly with probability ½ + ½(1{y_i = g_i} − P̂(g_i | x_i)). The same guess with the released
    # label of another row that the model finds alike must do no better than ½ if the model is
    # right: what it does better is the model's error.
    rows, posterior, source = _scored(context)
    table, _ = guessed_events(context)
    guess = table_guess(table, context)[context.release.released[rows]]
    truth = context.truth[rows]
    right, prior = guess == truth, posterior[np.arange(len(rows)), guess]
    # Every other row in the order of the model, and the guess for its neighbour there.
    order = np.lexsort((posterior.max(axis=1), posterior.argmax(axis=1)))
    first, swapped = order[: len(order) // 2 * 2 : 2], guess[order[1::2]]
    control_right, control_prior = swapped == truth[first], posterior[first, swapped]
    confidence, n = context.plan.confidence, len(rows)
    raw = shift_lower(prior, int(right.sum()), (1 - confidence) / 2)
    shift = max(shift_upper(control_prior, int(control_right.sum()), (1 - confidence) / 2), 0.0)
    yield _game(context, "accuracy", right, prior, source)
    yield _game(context, "features_only", control_right, control_prior, source)
    yield Estimate.lower_bound(
        "observational.epsilon",
        "Re-drawn labels, by a model",
        max(raw - shift, 0.0) if math.isfinite(shift) else 0.0,
        confidence,
        kind="estimated",
        axis="epsilon",
        unit="nats",
        n=n,
        method=f"right guesses against a model from {source} (Poisson-binomial tail), less the "
        "shift of the model's odds that rows alike show",
        assumptions=(_MODEL, _EVEN),
        reference=_GAME,
    )
    yield Estimate.upper_bound(
        "observational.proxy_shift",
        "How far the model’s log-odds are off at most",
        shift,
        confidence,
        kind="estimated",
        unit="log-odds",
        n=len(first),
        method=f"by how much the odds of a model from {source} are too small for guesses that "
        "cannot know the row's own label; at most",
        assumptions=(_EVEN,),
    )
    values = tuple(max(raw - shift, 0.0) for shift in _SHIFTS)
    yield Curve(
        id="observational.epsilon_by_shift",
        title="Re-drawn labels, by how far the model is off",
        kind="estimated",
        x=_SHIFTS,
        value=values,
        low=values,
        side="lower",
        level=(1 + confidence) / 2,
        x_label="how far the model's log-odds may be off",
        unit="nats",
        n=n,
        method=f"right guesses against a model from {source}; if its log-odds are off by at "
        "most x in every row, ε is at least this",
        assumptions=("the model's log-odds are off by at most x in every row",),
        reference=_GAME,
    )


def _scored(context: AuditContext) -> tuple[IndexArray, FloatArray, str]:
    """Return the rows that are scored, P̂ of each, and where the model comes from."""
    release = context.release
    rows = context.sample(guessed_events(context)[1], _MOST_ROWS_GUESSED, "observational", "rows")
    if release.public_posterior is not None:
        posterior = release.public_posterior[rows]
        check_support(posterior, context.truth[rows])
        # No probability is 0: a stated certainty is an error of the model.
        floored = np.maximum(posterior, PROBABILITY_FLOOR)
        floored = floored / floored.sum(axis=1, keepdims=True)
        return rows, floored, "the public probabilities"
    if release.public is None:
        return rows, cross_fitted_posterior(context, "truth")[rows], "other rows"
    check_overlap(release.public.features, release.features)
    model = fit_posterior(
        release.public.features,
        release.public.labels,
        len(release.classes),
        context.rng("observational", "public"),
        context.plan.threads,
    )
    return rows, model.predict(release.features.take(rows)), "the public table"


def check_support(posterior: FloatArray, truth: IntArray) -> None:
    """Raise InputError if fewer than 20 rows' true labels have a public probability above 0.

    ``posterior`` is float64 of shape (n, k), ``truth`` int32 of shape (n,).
    """
    possible = int((posterior[np.arange(len(truth)), truth] > 0).sum())
    if possible < _FEWEST_INSIDE:
        raise InputError(
            f"The public probabilities must overlap the release: at least {_FEWEST_INSIDE} rows' "
            f"true labels must have a probability above 0; {possible:,} of {len(truth):,} have. "
            "Are they in the release's row order?"
        )


def check_overlap(public: FeatureTable, released: FeatureTable) -> None:
    """Raise InputError if a model of the public table would have to extrapolate to all rows."""
    # At least 20 released rows must lie within its ranges and have levels that occur there.
    inside = np.ones(len(released), dtype=bool)
    with np.errstate(invalid="ignore"):
        for column in range(public.numeric.shape[1]):
            known = public.numeric[:, column]
            known = known[~np.isnan(known)]
            values = released.numeric[:, column]
            within = (values >= known.min()) & (values <= known.max()) if len(known) else False
            inside &= within | np.isnan(values)
    for column in range(public.categorical.shape[1]):
        inside &= np.isin(released.categorical[:, column], public.categorical[:, column])
    if inside.sum() < _FEWEST_INSIDE:
        raise InputError(
            f"The public table must overlap the release: at least {_FEWEST_INSIDE} released rows "
            "must lie within the ranges and levels of its features, or no model of it applies to "
            f"them; of {len(released):,} rows {int(inside.sum()):,} do."
        )


def _game(
    context: AuditContext, name: str, right: BoolArray, prior: FloatArray, source: str
) -> Estimate:
    values = 0.5 + 0.5 * (right.astype(np.float64) - prior)
    tail = (1 - context.plan.confidence) / 2
    given, title = "the features and the released label", "guessed with the release"
    if name == "features_only":
        given = "the features and the released label of a row that the model finds alike"
        title = "guessed without"
    return Estimate.interval(
        f"observational.game.{name}",
        f"True or re-drawn label, {title}",
        float(values.mean()),
        (mean_lower(values, tail, 0.0, 1.0), mean_upper(values, tail, 0.0, 1.0)),
        context.plan.confidence,
        kind="estimated",
        unit="proportion",
        n=len(values),
        method=f"how often {given} tell the true label from one drawn from a model from "
        f"{source}; coin and drawn label are averaged out",
        assumptions=("above one half by the model's error as well as by the release",),
        reference=_GAME,
    )
