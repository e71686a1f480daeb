"""Lower bounds on the mean instance-based loss: certified with true labels, claimed without.

Models and shares come from one half of the rows, bounds from the other. Bounding both halves at
half the error probability and averaging was measured to be slightly weaker.
"""

from collections.abc import Callable, Mapping
from functools import cache, partial

import numpy as np

from ldpaudit.audits.assumptions.stated import FEATURE_BLIND, INDEPENDENT
from ldpaudit.audits.instance_loss.neighbourhoods import (
    REFUTED,
    LossLabels,
    Neighborhoods,
    has_features,
    loss_labels,
    measured_channel,
    measured_shares,
    prior_box,
    scored_rows,
    scores,
)
from ldpaudit.audits.interface import AuditContext
from ldpaudit.errors import InsufficientDataError
from ldpaudit.estimators.epsilon.consistency import marginal_consistency
from ldpaudit.estimators.instance_loss import ErrorBudget, exceedance, mean_loss_lower
from ldpaudit.estimators.mean_loss import HeldOut, certified_mean_loss, claimed_mean_loss
from ldpaudit.release import FloatArray
from ldpaudit.result import Curve, Estimate, Finding, Note

# Error probabilities at which the bound is computed; between two of them the smaller one holds.
_LADDER = tuple(0.1 * 0.5**step for step in range(24))


def exceedance_bounds(
    context: AuditContext, asked: Neighborhoods, losses: FloatArray, curve: Curve
) -> Mapping[str, Callable[[float], float]]:
    """Return J's lower bound at each point of a curve as a function of alpha, by id and τ.

    At level 1 − alpha or a little more, in [0, 1]; 0 below an error probability of about 1e-8.
    Computed when a level is first asked for.
    """
    grid = np.array(curve.x)

    @cache
    def at_step(step: float) -> FloatArray:
        budget = ErrorBudget.of(step)
        labels = loss_labels(context, budget.prior)
        box = asked.box(labels, budget.per_query)
        lower = mean_loss_lower(box, labels.prior_low, labels.prior_high, labels.channel)
        low = exceedance(losses, np.minimum(lower, losses), budget, grid).low
        assert low is not None
        return low

    def at(place: int, alpha: float) -> float:
        step = next((step for step in _LADDER if step <= alpha * (1 + 1e-9)), None)
        return 0.0 if step is None else float(at_step(step)[place])

    return {curve.bound_key(place): partial(at, place) for place in range(len(curve.x))}


_MEAN_LOWER = "instance_loss.mean_lower"
_CLAIMED = "instance_loss.mean_lower_if_claim_holds"
_REFERENCE = "Busa-Fekete et al. (2023), Corollary 6.3; Nguyen, Wainwright & Jordan (2010), Eq. (9)"


def certificates(context: AuditContext, labels: LossLabels) -> Finding:
    """Return the lower bounds on E[ν] that the release allows, the strongest first."""
    try:
        return _claimed(context, labels) if labels.truth is None else _certified(context, labels)
    except InsufficientDataError as error:
        return Finding(notes=(Note.info("instance-loss", str(error)),))


def _certified(context: AuditContext, labels: LossLabels) -> Finding:
    """Return the bound from the scored rows of one half, by a model of the other half."""
    context.progress.step("bounding the mean privacy loss")
    truth, k = labels.truth, len(labels.classes)
    assert truth is not None
    fitting, held_out = context.half(1), scored_rows(context)
    prior = measured_shares(truth[fitting], k)
    channel = measured_channel(truth[fitting], labels.released[fitting], k, labels.outputs)
    posterior = np.tile(prior, (len(held_out), 1))
    if has_features(context):
        posterior = scores(context, "truth", held_out)[:, labels.classes]
        posterior = posterior / posterior.sum(axis=1, keepdims=True)
    data = HeldOut(posterior, truth[held_out], labels.released[held_out], prior, channel)
    bound = certified_mean_loss(data, rng=context.rng("instance-loss", "certificate"))
    level, n = context.plan.confidence, len(bound.values)
    lower = Estimate.lower_bound(
        _MEAN_LOWER,
        "Mean loss E[ν], certified",
        bound.at(1 - level),
        level,
        unit="nats",
        n=n,
        method="a lower bound on the mean of one bounded variable per held-out row, by a model's "
        "log-odds, fitted on other rows and cut at bounds fixed there",
        assumptions=(INDEPENDENT,),
        reference=_REFERENCE,
    )
    centre = Estimate.estimated(
        "instance_loss.mean_by_model",
        "Mean loss E[ν], by a model",
        bound.centre,
        unit="nats",
        n=n,
        method="the certified bound without its margin for chance",
        assumptions=("the model's log-odds are the best there are", INDEPENDENT),
        reference=_REFERENCE,
    )
    return Finding((lower, centre), bounds={_MEAN_LOWER: bound.at})


def _claimed(context: AuditContext, labels: LossLabels) -> Finding:
    context.progress.step("bounding the mean privacy loss under the claim")
    assert labels.channel is not None
    counts = np.bincount(labels.released, minlength=labels.outputs).astype(np.int64)
    p_value = marginal_consistency(counts, labels.channel)
    if p_value is not None and p_value <= REFUTED:
        text = (
            "The released shares contradict the declared channel, so no bound uses it; do "
            "not rely on estimates that do."
        )
        return Finding(notes=(Note.info("instance-loss", text),))
    released, fitting, held_out = labels.released, context.half(1), scored_rows(context)
    shares = measured_shares(released[fitting], labels.outputs)
    posterior = np.tile(shares, (len(held_out), 1))
    if has_features(context):
        posterior = scores(context, "released", held_out)
    implied = prior_box(released[fitting], labels.channel, 0.05).estimate[0]
    bound = claimed_mean_loss(
        posterior,
        released[held_out],
        labels.channel,
        implied,
        rng=context.rng("instance-loss", "certificate"),
    )
    estimate = Estimate.lower_bound(
        _CLAIMED,
        "Mean loss E[ν], a bound if the claim holds",
        bound.at(1 - context.plan.confidence),
        context.plan.confidence,
        kind="estimated",
        unit="nats",
        n=len(bound.values),
        method="a lower bound on the mean of one bounded variable per held-out row, true labels "
        "replaced by released ones weighted with the inverse of the declared channel",
        assumptions=("the declared channel is the true one", FEATURE_BLIND, INDEPENDENT),
        reference=_REFERENCE,
    )
    return Finding((estimate,))
