"""Lower bounds on the mean instance-based loss: certified with true labels, claimed without.

Models and shares come from one half of the rows, bounds from the other. Bounding both halves at
half the error probability and averaging was measured to be slightly weaker.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from ldpaudit.audits.instance_loss.labels import (
    REFUTED,
    LossLabels,
    measured_channel,
    measured_shares,
    prior_box,
)
from ldpaudit.audits.instance_loss.queries import has_features
from ldpaudit.audits.instance_loss.scores import scored_rows, scores
from ldpaudit.audits.interface import AuditContext
from ldpaudit.audits.mechanism.evidence import FEATURE_BLIND, INDEPENDENT
from ldpaudit.errors import InsufficientDataError
from ldpaudit.estimators.epsilon.consistency import marginal_consistency
from ldpaudit.estimators.loss.bound_if_claim_holds import claimed_mean_loss
from ldpaudit.estimators.loss.critic import HeldOut
from ldpaudit.estimators.loss.donsker_varadhan import MeanLossBound, certified_mean_loss, strongest
from ldpaudit.release import FloatArray, IndexArray
from ldpaudit.result import Estimate

MEAN_LOWER = "instance_loss.mean_lower"
CLAIMED = "instance_loss.mean_lower_if_claim_holds"
_REFERENCE = "Busa-Fekete et al. (2023), Corollary 6.3; Nguyen, Wainwright & Jordan (2010), Eq. (9)"
_WORDS = {
    "cells": "cells of a model's score crossed with the released label, learnt on other rows",
    "donsker-varadhan": "a model's log-odds, fitted on other rows and cut at bounds fixed there",
}
_TITLES = {"cells": "by score cells", "donsker-varadhan": "Donsker–Varadhan form"}


@dataclass(frozen=True)
class Certificates:
    """Bounds on E[ν] as estimates, and as functions of the error probability."""

    estimates: tuple[Estimate, ...] = ()
    bounds: Mapping[str, Callable[[float], float]] | None = None
    missing: str = ""

    @property
    def lower(self) -> float:
        """The strongest bound, 0 where there is none."""
        return self.estimates[0].value if self.estimates else 0.0


def certificates(context: AuditContext, labels: LossLabels) -> Certificates:
    """Return the lower bounds on E[ν] that the release allows."""
    try:
        return _claimed(context, labels) if labels.truth is None else _certified(context, labels)
    except InsufficientDataError as error:
        return Certificates(missing=str(error))


def _certified(context: AuditContext, labels: LossLabels) -> Certificates:
    context.progress.step("bounding the mean privacy loss")
    rng = context.rng("instance-loss", "certificate")
    bounds = certified_mean_loss(held_out_rows(context, labels), rng=rng)
    best, level = strongest(bounds), context.plan.confidence
    chosen = f"by {_WORDS[best]}; chosen between two forms on rows that the bound does not use"
    title = "Mean loss E[ν], the stronger bound"
    estimates = [_estimate(MEAN_LOWER, title, bounds[best], level, chosen)]
    for name, bound in bounds.items():
        words = f"by {_WORDS[name]}; at its own level"
        identifier, title = f"{MEAN_LOWER}.{name}", f"Mean loss E[ν], {_TITLES[name]}"
        estimates.append(_estimate(identifier, title, bound, level, words))
    estimates.append(_centre(bounds[best]))
    return Certificates(tuple(estimates), {MEAN_LOWER: bounds[best].at})


def _centre(bound: MeanLossBound) -> Estimate:
    return Estimate.estimated(
        "instance_loss.mean_by_model",
        "Mean loss E[ν], by a model",
        bound.centre,
        unit="nats",
        n=len(bound.values),
        method="the certified bound without its margin for chance",
        assumptions=("the model's log-odds are the best there are", INDEPENDENT),
        reference=_REFERENCE,
    )


def held_out_rows(context: AuditContext, labels: LossLabels) -> HeldOut:
    """Return the scored rows of one half with what a model of the other half says of them."""
    truth, k = labels.truth, len(labels.classes)
    assert truth is not None
    fitting, held_out = context.half(1), scored_rows(context)
    prior = measured_shares(truth[fitting], k)
    channel = measured_channel(truth[fitting], labels.released[fitting], k, labels.outputs)
    posterior = np.tile(prior, (len(held_out), 1))
    if has_features(context):
        posterior = scores(context, "truth", held_out)[:, labels.classes]
        posterior = posterior / posterior.sum(axis=1, keepdims=True)
    return HeldOut(posterior, truth[held_out], labels.released[held_out], prior, channel)


def _estimate(
    identifier: str, title: str, bound: MeanLossBound, level: float, method: str
) -> Estimate:
    return Estimate.lower_bound(
        identifier,
        title,
        bound.at(1 - level),
        level,
        unit="nats",
        n=len(bound.values),
        method=f"a lower bound on the mean of one bounded variable per held-out row, {method}",
        assumptions=(INDEPENDENT,),
        reference=_REFERENCE,
    )


def _claimed(context: AuditContext, labels: LossLabels) -> Certificates:
    context.progress.step("bounding the mean privacy loss under the claim")
    assert labels.channel is not None
    counts = np.bincount(labels.released, minlength=labels.outputs).astype(np.int64)
    p_value = marginal_consistency(counts, labels.channel)
    if p_value is not None and p_value <= REFUTED:
        return Certificates(
            missing="The released shares contradict the declared channel, so no bound uses it; do "
            "not rely on estimates that do."
        )
    released, fitting, held_out = labels.released, context.half(1), scored_rows(context)
    shares = measured_shares(released[fitting], labels.outputs)
    posterior = np.tile(shares, (len(held_out), 1))
    if has_features(context):
        posterior = scores(context, "released", held_out)
    bound = claimed_mean_loss(
        posterior,
        released[held_out],
        labels.channel,
        _implied_shares(labels, fitting),
        rng=context.rng("instance-loss", "certificate"),
    )
    estimate = Estimate.lower_bound(
        CLAIMED,
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
    return Certificates((estimate,))


def _implied_shares(labels: LossLabels, rows: IndexArray) -> FloatArray:
    assert labels.channel is not None
    return np.asarray(prior_box(labels.released[rows], labels.channel, 0.05).estimate[0])
