"""Instance-based privacy loss: how much each released row says about its person's label.

An insider counts true labels among a row's neighbours, an outsider released labels, and inverts the
declared channel. J(τ), the share of people who lose at least τ nats, and E[ν] are estimates that
rest on smooth label probabilities; the lower bound on E[ν] with true labels rests on nothing.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from ldpaudit.audits.assumptions.standing import over_all_rows
from ldpaudit.audits.assumptions.stated import FEATURE_BLIND, INDEPENDENT
from ldpaudit.audits.claimed_channel import why_unscored
from ldpaudit.audits.instance_loss.certificates import (
    certificates,
    exceedance_bounds,
)
from ldpaudit.audits.instance_loss.neighbourhoods import (
    LossLabels,
    Neighborhoods,
    loss_labels,
    neighborhoods,
)
from ldpaudit.audits.interface import AuditContext, Counts
from ldpaudit.estimators.instance_loss import (
    ErrorBudget,
    Exceedance,
    PosteriorBox,
    exceedance,
    expected_exceedance,
    features_mean,
    label_mean,
    loss_grid,
    mean_loss,
    mean_loss_lower,
    row_loss,
    row_loss_lower,
)
from ldpaudit.release import FloatArray, Label
from ldpaudit.result import Curve, Estimate, Finding, Histogram, Note

AUDIT_ID = "instance-loss"
MEAN, EXCEEDANCE = "instance_loss.mean", "instance_loss.exceedance"
_REFERENCE = "Busa-Fekete et al. (2023), Theorem 6.6, with exact binomial intervals"
_QUANTILES = (50, 90, 99)
_BEYOND = 10
_MOST_PRIORS = 10
_HISTOGRAM_STEP = 0.5
_AT_GRID = "; at a τ between two points the bound at the next larger point holds"
# The error probability δ of each point of J's lower bound, unless more confidence is asked for.
_LARGEST_ERROR = 0.01

_SMOOTHNESS = (
    "label probabilities are smooth (Assumption 6.5 of Busa-Fekete et al. 2023): they change "
    "little within a ball that holds as many people as a neighbourhood does"
)


class InstanceLossAudit:
    """Estimates J(τ) and E[ν] by neighbours, and bounds E[ν]."""

    id = AUDIT_ID
    counts: Counts = "people"

    def unavailable(self, context: AuditContext) -> str | None:
        """Return why the loss cannot be estimated, None where it can."""
        return why_unscored(context, "the loss cannot be estimated")

    def run(self, context: AuditContext) -> Finding:
        """Run it; with fewer than 100 rows or only one true label raise InsufficientDataError."""
        budget = ErrorBudget.of(min(_LARGEST_ERROR, 1 - context.plan.confidence))
        every = over_all_rows(context)
        labels = loss_labels(every, budget.prior)
        asked = neighborhoods(every, labels)
        report, losses = loss_report(every, labels, asked, budget)
        modelled = labels if every is context else loss_labels(context, budget.prior)
        learned = _in_learned_metric(context, modelled, budget) if asked.features else Finding()
        certified = certificates(context, modelled)
        return Finding(
            estimates=(*certified.estimates, *report.estimates, *learned.estimates),
            curves=(*report.curves, *learned.curves),
            histograms=report.histograms,
            notes=tuple(_notes(labels, asked, losses, certified)),
            bounds={
                **certified.bounds,
                **exceedance_bounds(every, asked, losses, report.curves[0]),
                **learned.bounds,
            },
        )


def _in_learned_metric(context: AuditContext, labels: LossLabels, budget: ErrorBudget) -> Finding:
    """Return J(τ) and E[ν] by neighbours in the space of a model's score, in addition.

    Distances between columns follow the labels poorly where there are many columns: neighbourhoods
    then mix people, and losses come out too small. A policy looks at both curves.
    """
    if context.plan.metric == "learned":
        return Finding()
    context = replace(context, plan=replace(context.plan, metric="learned"))
    asked = neighborhoods(context, labels)
    report, losses = loss_report(context, labels, asked, budget)
    mean, curve = report.estimates[0], report.curves[0]
    by = "by neighbours in a learned metric"
    curve = curve.model_copy(update={"id": f"{EXCEEDANCE}_learned", "title": f"J(τ) {by}"})
    mean = mean.model_copy(update={"id": f"{MEAN}_learned", "title": f"Mean loss E[ν], {by}"})
    return Finding(
        estimates=(mean,),
        curves=(curve,),
        bounds=exceedance_bounds(context, asked, losses, curve),
    )


def _given(labels: LossLabels, asked: Neighborhoods) -> tuple[str, ...]:
    channel = {
        "declared": (FEATURE_BLIND, "the declared channel is the true one"),
        "measured": (FEATURE_BLIND, "the channel is the one measured from true labels"),
        "none": (),
    }
    smooth = _SMOOTHNESS
    if asked.smoothness is not None:
        constant, power = asked.smoothness
        smooth = (
            f"label probabilities change by at most {constant:g} μ^{power:g} within a ball that "
            "holds the share μ of people (Assumption 6.5 of Busa-Fekete et al. 2023)"
        )
    return (*((smooth,) if asked.features else ()), *channel[labels.source], INDEPENDENT)


def _notes(
    labels: LossLabels, asked: Neighborhoods, losses: FloatArray, certified: Finding
) -> Iterator[Note]:
    yield Note.info(
        AUDIT_ID,
        f"{len(asked.queries)} people were asked for their loss, with about {asked.k} neighbours "
        f"each among {asked.index_rows} other people; {asked.method}.",
    )
    if not asked.features:
        yield Note.info(
            AUDIT_ID,
            "No feature distinguishes two rows: only the released label's part was audited.",
        )
    else:
        yield Note.info(
            AUDIT_ID,
            "Where label probabilities change faster than the neighbourhoods can follow, the "
            "estimate is drawn towards the average person: some people's true loss is larger.",
        )
    if labels.source == "measured":
        yield Note.info(
            AUDIT_ID,
            "The channel was measured from true against released labels, because none is declared "
            "or the counts contradict the declared one.",
        )
    if labels.source == "none":
        yield Note.info(
            AUDIT_ID,
            "The mechanism uses the features, so the estimates cover the features' part alone: "
            "what the features reveal about the label without the released label.",
        )
    if np.isinf(losses).any():
        text = "Some released labels prove the true label, so their loss has no limit."
        yield Note.warning(AUDIT_ID, text)
    yield from certified.notes
    if certified.estimates and certified.estimates[0].value > losses.mean():
        yield Note.info(
            AUDIT_ID,
            "The certified bound on E[ν] lies above the neighbours' estimate: neighbourhoods are "
            "too coarse in this metric, so J(τ) is estimated too low as well. The estimate in the "
            "learned metric follows the labels more closely.",
        )


def loss_report(
    context: AuditContext, labels: LossLabels, asked: Neighborhoods, budget: ErrorBudget
) -> tuple[Finding, FloatArray]:
    """Return what label counts around queries show, and each query's loss, float64 (m,).

    The error budget is that of each point of the curves' lower bounds.
    """
    box, assumptions = asked.box(labels, budget.per_query), _given(labels, asked)
    losses = mean_loss(box.estimate, labels.prior, labels.channel)
    lower = mean_loss_lower(box, labels.prior_low, labels.prior_high, labels.channel)
    part = " of the features' part alone" if labels.source == "none" else ""
    method = (
        f"labels of about {asked.k} neighbours{part}, half a row added to each label; "
        f"{asked.method}"
    )
    averaged = exceedance(losses, np.minimum(lower, losses), budget, loss_grid(losses))
    curves = (
        _curve(
            EXCEEDANCE,
            "J(τ): share of people who lose τ nats or more",
            f"averaged over the labels; {method}",
            averaged,
            budget,
            assumptions,
        ),
        _curve(
            "instance_loss.exceedance_unaveraged",
            "Share of people whose own released row loses τ or more",
            f"of the label that each row has; {method}",
            _unaveraged(labels, asked, box, budget),
            budget,
            assumptions,
        ),
    )
    estimates = (
        *_losses(labels, asked, assumptions, method, box.estimate, losses),
        *_priors(labels, budget, assumptions, context.release.classes),
    )
    histograms = (_histogram(losses, method, assumptions),)
    return Finding(estimates, curves, histograms), losses


def _unaveraged(
    labels: LossLabels, asked: Neighborhoods, box: PosteriorBox, budget: ErrorBudget
) -> Exceedance:
    """Return the exceedance of ν(Y, Z, X): of each query's own labels, or an outsider's guess."""
    released, prior, channel = labels.released[asked.queries], labels.prior, labels.channel
    if labels.truth is not None:
        truth = labels.truth[asked.queries]
        losses = row_loss(box.estimate, truth, released, prior, channel)
        lower = row_loss_lower(box, truth, released, labels.prior_high, channel)
        return exceedance(losses, np.minimum(lower, losses), budget, loss_grid(losses))
    assert channel is not None
    weights = box.estimate * channel.T[released]
    total = weights.sum(axis=1, keepdims=True)
    weights = np.where(total > 0, weights / np.where(total > 0, total, 1.0), prior)
    losses = np.empty_like(weights)
    for y in range(len(prior)):
        every = np.full(len(released), y, dtype=np.int32)
        losses[:, y] = row_loss(box.estimate, every, released, prior, channel)
    # A released label that the claim excludes reveals nothing: 0 − 0 likelihoods give NaN.
    losses = np.where(np.isnan(losses), 0.0, losses)
    return expected_exceedance(losses, weights, loss_grid(losses[weights > 0]))


def _losses(
    labels: LossLabels,
    asked: Neighborhoods,
    assumptions: tuple[str, ...],
    method: str,
    posterior: FloatArray,
    losses: FloatArray,
) -> Iterator[Estimate]:
    """Yield E[ν], its parts by the features and the label alone, and quantiles of ν(x).

    Of quantiles those with at least ten queries beyond them.
    """
    features = features_mean(posterior, labels.prior)
    found = [
        ("mean", "Mean loss E[ν], by neighbours", float(losses.mean()), "the mean over queries"),
        (
            *("features_mean", "Mean loss through the features, by neighbours", features),
            "the mean loss if the released label were hidden",
        ),
    ]
    if labels.channel is not None:
        alone = label_mean(labels.prior, labels.channel)
        words = f"the mean loss if the features were hidden; {labels.source} channel, "
        title = "Mean loss through the released label"
        found.append(("label_mean", title, alone, f"{words}observed label shares"))
    for percent in _QUANTILES:
        if len(losses) * (100 - percent) >= 100 * _BEYOND:
            # The order statistic below: interpolation fails between infinite losses.
            value = float(np.quantile(losses, percent / 100, method="lower"))
            words = f"{percent} % of queries lose less"
            found.append((f"quantile-{percent}", f"Loss, percentile {percent}", value, words))
    for name, title, value, words in found:
        counted = name != "label_mean"
        yield Estimate.estimated(
            f"instance_loss.{name}",
            title,
            value,
            unit="nats",
            n=len(asked.queries) if counted else None,
            method=f"{words}; {method}" if counted else words,
            assumptions=assumptions,
            reference=_REFERENCE,
        )


def _priors(
    labels: LossLabels, budget: ErrorBudget, assumptions: tuple[str, ...], names: Sequence[Label]
) -> Iterator[Estimate]:
    """Yield the label shares, unless they are many."""
    told = labels.truth is not None
    for y, share in enumerate(labels.prior if len(labels.prior) <= _MOST_PRIORS else ()):
        code = int(labels.classes[y])
        low, high = float(labels.prior_low[y]), float(labels.prior_high[y])
        yield Estimate.interval(
            f"instance_loss.prior.class-{code + 1}",
            f"Share of class {names[code]}",
            float(share),
            (min(low, float(share)), max(high, float(share))),
            1 - budget.prior,
            kind="estimated",
            unit="proportion",
            n=len(labels.released),
            method="share of rows" if told else "released shares through the channel",
            assumptions=assumptions[-1:] if told else assumptions,
        )


def _curve(
    identifier: str,
    title: str,
    what: str,
    shares: Exceedance,
    budget: ErrorBudget,
    assumptions: tuple[str, ...],
) -> Curve:
    bounded = shares.low is not None
    return Curve(
        id=identifier,
        title=title,
        kind="estimated",
        axis="share of people",
        x=tuple(shares.grid.tolist()),
        value=tuple(shares.value.tolist()),
        low=tuple(shares.low.tolist()) if shares.low is not None else None,
        side="lower" if bounded else None,
        level=1 - budget.total if bounded else None,
        x_label="privacy loss τ in nats",
        unit="proportion",
        n=shares.queries,
        method=f"share of queries that lose τ or more, {what}{_AT_GRID if bounded else ''}",
        assumptions=assumptions,
        reference=_REFERENCE,
    )


def _histogram(losses: FloatArray, method: str, assumptions: tuple[str, ...]) -> Histogram:
    """Return the counts of queries by loss, the last bin open where a loss is infinite."""
    finite = losses[np.isfinite(losses)]
    ends = (float(finite.min()), float(finite.max())) if len(finite) else (0.0, 0.0)
    first, last = np.floor(ends[0] / _HISTOGRAM_STEP), np.floor(ends[1] / _HISTOGRAM_STEP) + 1
    edges = (np.arange(first, last + 1) * _HISTOGRAM_STEP).tolist()
    counts = np.histogram(finite, edges)[0].tolist()
    if len(finite) < len(losses):
        edges, counts = [*edges, np.inf], [*counts, len(losses) - len(finite)]
    return Histogram(
        id="instance_loss.histogram",
        title="Instance-based loss of the people in the release",
        kind="estimated",
        edges=tuple(edges),
        counts=tuple(counts),
        x_label="privacy loss ν in nats",
        method=method,
        assumptions=assumptions,
        reference=_REFERENCE,
    )
