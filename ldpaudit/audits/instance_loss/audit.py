"""Instance-based privacy loss: how much each released row says about its person's label."""

# An insider counts true labels among a row's neighbours, an outsider released labels, and inverts
# the declared channel. J(τ), the share of people who lose at least τ nats, and E[ν] are estimates
# that rest on smooth label probabilities; the lower bound on E[ν] with true labels rests on
# nothing: models and shares come from one half of the rows, the bound from the other. (Bounding
# both halves at half the error probability and averaging was measured to be slightly weaker.)

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial

import numpy as np

from ldpaudit.arrays import code_counts
from ldpaudit.audits.assumptions.standing import over_all_rows
from ldpaudit.audits.instance_loss.neighbourhoods import (
    REFUTED,
    LossLabels,
    Neighborhoods,
    has_features,
    loss_labels,
    measured_channel,
    measured_shares,
    neighborhoods,
    prior_box,
    scored_rows,
    scores,
)
from ldpaudit.audits.interface import AuditContext, BuiltIn, Part, collected
from ldpaudit.audits.models import why_unscored
from ldpaudit.errors import InsufficientDataError
from ldpaudit.estimators.epsilon.consistency import marginal_consistency
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
from ldpaudit.estimators.mean_loss import HeldOut, certified_mean_loss, claimed_mean_loss
from ldpaudit.release import FloatArray
from ldpaudit.result import Bound, Curve, Estimate, Histogram, Note
from ldpaudit.result.stated import (
    EXCEEDANCE,
    EXCEEDANCE_LEARNED,
    FEATURE_BLIND,
    INDEPENDENT,
    MEAN_LOSS_LEARNED,
    MEAN_LOSS_LOWER,
)

AUDIT_ID = "instance-loss"
_NEIGHBOURS = "Busa-Fekete et al. (2023), Theorem 6.6, with exact binomial intervals"
_DUAL = "Busa-Fekete et al. (2023), Corollary 6.3; Nguyen, Wainwright & Jordan (2010), Eq. (9)"
_QUANTILES = (50, 90, 99)
_BEYOND, _MOST_PRIORS, _HISTOGRAM_STEP = 10, 10, 0.5
# The error probability δ of each point of J's lower bound, unless more confidence is asked for.
_LARGEST_ERROR = 0.01
# Error probabilities at which the bound is computed; between two of them the smaller one holds.
_LADDER = tuple(0.1 * 0.5**step for step in range(24))
_SMOOTHNESS = (
    "label probabilities are smooth (Assumption 6.5 of Busa-Fekete et al. 2023): they change "
    "little within a ball that holds as many people as a neighbourhood does"
)
_CHANNELS = {
    "declared": (FEATURE_BLIND, "the declared channel is the true one"),
    "measured": (FEATURE_BLIND, "the channel is the one measured from true labels"),
    "none": (),
}


def _parts(context: AuditContext) -> Iterator[Part]:
    budget = ErrorBudget.of(min(_LARGEST_ERROR, 1 - context.plan.confidence))
    every = over_all_rows(context)
    labels = loss_labels(every, budget.prior)
    found = _Loss(every, labels, neighborhoods(every, labels), budget)
    modelled = labels if every is context else loss_labels(context, budget.prior)
    try:
        bound = _claimed if labels.truth is None else _certified
        certified = collected(bound(context, modelled))
    except InsufficientDataError as error:
        certified = collected([Note.info(AUDIT_ID, str(error))])
    yield replace(certified, notes=())
    yield from found.parts()
    yield from found.said()
    yield from certified.notes
    above = bool(certified.estimates) and certified.estimates[0].value > found.losses.mean()
    if above:
        yield Note.info(
            AUDIT_ID,
            "The certified bound on E[ν] lies above the neighbours' estimate: neighbourhoods are "
            "too coarse in this metric, so J(τ) is estimated too low as well. The estimate in the "
            "learned metric follows the labels more closely.",
        )
    if not found.asked.features or context.plan.metric == "learned":
        return
    # Distances between columns follow the labels poorly where there are many columns:
    # neighbourhoods then mix people, and losses come out too small. A policy looks at both curves.
    other = replace(context, plan=replace(context.plan, metric="learned"))
    learned, by = _Loss(other, modelled, neighborhoods(other, modelled), budget), "by neighbours in"
    mean, curve = next(learned.means()), learned.averaged
    curve = curve.model_copy(
        update={"id": EXCEEDANCE_LEARNED, "title": f"J(τ) {by} a learned metric"}
    )
    title = f"Mean loss E[ν], {by} a learned metric"
    yield mean.model_copy(update={"id": MEAN_LOSS_LEARNED, "title": title})
    yield curve
    yield from learned.bounds(curve)


AUDIT = BuiltIn(
    AUDIT_ID,
    _parts,
    lambda context: why_unscored(context, "the loss cannot be estimated"),
    counts="people",
)


@dataclass(frozen=True, eq=False)
class _Loss:
    """What label counts around queries show; the budget is that of each point of the curves."""

    context: AuditContext
    labels: LossLabels
    asked: Neighborhoods
    budget: ErrorBudget

    @cached_property
    def box(self) -> PosteriorBox:
        return self.asked.box(self.labels, self.budget.per_query)

    @cached_property
    def losses(self) -> FloatArray:
        """Each query's loss, float64 (q,)."""
        return mean_loss(self.box.estimate, self.labels.prior, self.labels.channel)

    @property
    def given(self) -> tuple[str, ...]:
        smooth = _SMOOTHNESS
        if self.asked.smoothness is not None:
            constant, power = self.asked.smoothness
            # C of one metric need not be that of another.
            smooth = (
                f"label probabilities change by at most {constant:g} μ^{power:g} within a ball "
                f"that holds the share μ of people in the {self.context.plan.metric} metric "
                "(Assumption 6.5 of Busa-Fekete et al. 2023)"
            )
        known = (smooth,) if self.asked.features else ()
        return (*known, *_CHANNELS[self.labels.source], INDEPENDENT)

    @property
    def method(self) -> str:
        part = " of the features' part alone" if self.labels.source == "none" else ""
        return (
            f"labels of about {self.asked.k} neighbours{part}, half a row added to each label; "
            f"{self.asked.method}"
        )

    def shares(self, budget: ErrorBudget, labels: LossLabels, grid: FloatArray) -> Exceedance:
        """Return J(τ) at the points of a grid, with a lower bound at the budget's level."""
        box = self.asked.box(labels, budget.per_query)
        lower = mean_loss_lower(box, labels.prior_low, labels.prior_high, labels.channel)
        return exceedance(self.losses, np.minimum(lower, self.losses), budget, grid)

    @cached_property
    def averaged(self) -> Curve:
        """J(τ), averaged over the labels."""
        title, what = "J(τ): share of people who lose τ nats or more", "averaged over the labels"
        shares = self.shares(self.budget, self.labels, loss_grid(self.losses))
        return self._curve(EXCEEDANCE, title, what, shares)

    def bounds(self, curve: Curve) -> Iterator[Bound]:
        """Yield J's lower bound at each point of a curve, by id and τ."""
        # At level 1 − alpha or a little more, in [0, 1]; 0 below an error probability of about
        # 1e-8. Computed when a level is first asked for.
        grid = np.array(curve.x)

        @cache
        def at_step(step: float) -> FloatArray:
            budget = ErrorBudget.of(step)
            low = self.shares(budget, loss_labels(self.context, budget.prior), grid).low
            assert low is not None
            return low

        def at(place: int, alpha: float) -> float:
            step = next((step for step in _LADDER if step <= alpha * (1 + 1e-9)), None)
            return 0.0 if step is None else float(at_step(step)[place])

        for place in range(len(curve.x)):
            yield Bound(curve.bound_key(place), partial(at, place))

    def parts(self) -> Iterator[Part]:
        yield from self.means()
        yield from self._priors()
        yield self.averaged
        title = "Share of people whose own released row loses τ or more"
        names = "instance_loss.exceedance_unaveraged", title, "of the label that each row has"
        yield self._curve(*names, self._unaveraged())
        yield self._histogram()
        yield from self.bounds(self.averaged)

    def said(self) -> Iterator[Note]:
        asked, source = self.asked, self.labels.source
        yield Note.info(
            AUDIT_ID,
            f"{len(asked.queries)} people were asked for their loss, with about {asked.k} "
            f"neighbours each among {asked.index_rows} other people; {asked.method}.",
        )
        if not asked.features:
            yield Note.info(
                AUDIT_ID,
                "No feature distinguishes two rows: only the released label's part was audited.",
            )
        if asked.features:
            yield Note.info(
                AUDIT_ID,
                "Where label probabilities change faster than the neighbourhoods can follow, the "
                "estimate is drawn towards the average person: some people's true loss is larger.",
            )
        if source == "measured":
            yield Note.info(
                AUDIT_ID,
                "The channel was measured from true against released labels, because none is "
                "declared or the counts contradict the declared one.",
            )
        if source == "none":
            yield Note.info(
                AUDIT_ID,
                "The mechanism uses the features, so the estimates cover the features' part alone: "
                "what the features reveal about the label without the released label.",
            )
        if np.isinf(self.losses).any():
            yield Note.warning(
                AUDIT_ID, "Some released labels prove the true label, so their loss has no limit."
            )

    def _unaveraged(self) -> Exceedance:
        """Return the exceedance of ν(Y, Z, X): of each query's labels, or an outsider's guess."""
        labels, box, queries = self.labels, self.box, self.asked.queries
        released, prior, channel = labels.released[queries], labels.prior, labels.channel
        if labels.truth is not None:
            truth = labels.truth[queries]
            losses = row_loss(box.estimate, truth, released, prior, channel)
            lower = row_loss_lower(box, truth, released, labels.prior_high, channel)
            lower = np.minimum(lower, losses)
            return exceedance(losses, lower, self.budget, loss_grid(losses))
        assert channel is not None
        weights = box.estimate * channel.T[released]
        total = weights.sum(axis=1, keepdims=True)
        weights = np.where(total > 0, weights / np.where(total > 0, total, 1.0), prior)
        losses = np.empty_like(weights)
        for y in range(len(prior)):
            every = np.full(len(released), y, dtype=np.int32)
            losses[:, y] = row_loss(box.estimate, every, released, prior, channel)
        return expected_exceedance(losses, weights, loss_grid(losses[weights > 0]))

    def means(self) -> Iterator[Estimate]:
        """Yield E[ν], its parts by the features and the label alone, and quantiles of ν(x)."""
        # Of quantiles those with at least ten queries beyond them.
        labels, losses = self.labels, self.losses
        features = features_mean(self.box.estimate, labels.prior)
        hidden = "the mean loss if the released label were hidden"
        found = [
            ("mean", "Mean loss E[ν], by neighbours", losses.mean(), "the mean over queries"),
            ("features_mean", "Mean loss through the features, by neighbours", features, hidden),
        ]
        if labels.channel is not None:
            alone = label_mean(labels.prior, labels.channel)
            words = f"the mean loss if the features were hidden; {labels.source} channel, "
            title = "Mean loss through the released label"
            found.append(("label_mean", title, alone, f"{words}observed label shares"))
        for percent in _QUANTILES:
            if len(losses) * (100 - percent) >= 100 * _BEYOND:
                # The order statistic below: interpolation fails between infinite losses.
                value = np.quantile(losses, percent / 100, method="lower")
                title, words = f"Loss, percentile {percent}", f"{percent} % of queries lose less"
                found.append((f"quantile-{percent}", title, value, words))
        for name, title, value, words in found:
            by_queries = name != "label_mean"
            yield Estimate.estimated(
                f"instance_loss.{name}",
                title,
                float(value),
                unit="nats",
                n=len(self.asked.queries) if by_queries else None,
                method=f"{words}; {self.method}" if by_queries else words,
                assumptions=self.given,
                reference=_NEIGHBOURS,
            )

    def _priors(self) -> Iterator[Estimate]:
        """Yield the label shares, unless they are many."""
        labels, told = self.labels, self.labels.truth is not None
        ends = np.stack([labels.prior, labels.prior_low, labels.prior_high], axis=1).tolist()
        for y, (share, low, high) in enumerate(ends if len(ends) <= _MOST_PRIORS else ()):
            code = int(labels.classes[y])
            yield Estimate.interval(
                f"instance_loss.prior.class-{code + 1}",
                f"Share of class {self.context.release.classes[code]}",
                share,
                (min(low, share), max(high, share)),
                1 - self.budget.prior,
                kind="estimated",
                unit="proportion",
                n=len(labels.released),
                method="share of rows" if told else "released shares through the channel",
                assumptions=self.given[-1:] if told else self.given,
            )

    def _curve(self, identifier: str, title: str, what: str, shares: Exceedance) -> Curve:
        low, level, at = None, None, ""
        if shares.low is not None:
            low, level = tuple(shares.low.tolist()), 1 - self.budget.total
            at = "; at a τ between two points the bound at the next larger point holds"
        return Curve(
            id=identifier,
            title=title,
            kind="estimated",
            axis="share of people",
            x=tuple(shares.grid.tolist()),
            value=tuple(shares.value.tolist()),
            low=low,
            side=None if low is None else "lower",
            level=level,
            x_label="privacy loss τ in nats",
            unit="proportion",
            n=shares.queries,
            method=f"share of queries that lose τ or more, {what}; {self.method}{at}",
            assumptions=self.given,
            reference=_NEIGHBOURS,
        )

    def _histogram(self) -> Histogram:
        """Return the counts of queries by loss, the last bin open where a loss is infinite."""
        finite = self.losses[np.isfinite(self.losses)]
        ends = np.array([finite.min(), finite.max()] if len(finite) else [0.0, 0.0])
        first, last = np.floor(ends / _HISTOGRAM_STEP) + np.array([0, 1])
        edges = (np.arange(first, last + 1) * _HISTOGRAM_STEP).tolist()
        counts = np.histogram(finite, edges)[0].tolist()
        if len(finite) < len(self.losses):
            edges, counts = [*edges, np.inf], [*counts, len(self.losses) - len(finite)]
        return Histogram(
            id="instance_loss.histogram",
            title="Instance-based loss of the people in the release",
            kind="estimated",
            edges=tuple(edges),
            counts=tuple(counts),
            x_label="privacy loss ν in nats",
            method=self.method,
            assumptions=self.given,
            reference=_NEIGHBOURS,
        )


def _certified(context: AuditContext, labels: LossLabels) -> Iterator[Part]:
    """Yield the bound on E[ν] from the scored rows of one half, by a model of the other half."""
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
    shown = Estimate.lower_bound(
        MEAN_LOSS_LOWER,
        "Mean loss E[ν], certified",
        bound.at(1 - level),
        level,
        unit="nats",
        n=n,
        method="a lower bound on the mean of one bounded variable per held-out row, by a model's "
        "log-odds, fitted on other rows and cut at bounds fixed there",
        assumptions=(INDEPENDENT,),
        reference=_DUAL,
    )
    yield Bound.of(shown, bound.at)
    yield Estimate.estimated(
        "instance_loss.mean_by_model",
        "Mean loss E[ν], by a model",
        bound.centre,
        unit="nats",
        n=n,
        method="the certified bound without its margin for chance",
        assumptions=("the model's log-odds are the best there are", INDEPENDENT),
        reference=_DUAL,
    )


def _claimed(context: AuditContext, labels: LossLabels) -> Iterator[Part]:
    """Yield the bound on E[ν] that holds if the claim does, without true labels."""
    context.progress.step("bounding the mean privacy loss under the claim")
    assert labels.channel is not None
    counts = code_counts(labels.released, labels.outputs)
    p_value = marginal_consistency(counts, labels.channel)
    if p_value is not None and p_value <= REFUTED:
        text = (
            "The released shares contradict the declared channel, so no bound uses it; do "
            "not rely on estimates that do."
        )
        yield Note.info(AUDIT_ID, text)
        return
    released, fitting, held_out = labels.released, context.half(1), scored_rows(context)
    posterior = np.tile(measured_shares(released[fitting], labels.outputs), (len(held_out), 1))
    if has_features(context):
        posterior = scores(context, "released", held_out)
    implied = prior_box(released[fitting], labels.channel, 0.05).estimate[0]
    rng, level = context.rng("instance-loss", "certificate"), context.plan.confidence
    seen = posterior, released[held_out], labels.channel, implied
    bound = claimed_mean_loss(*seen, rng=rng)
    yield Estimate.lower_bound(
        "instance_loss.mean_lower_if_claim_holds",
        "Mean loss E[ν], a bound if the claim holds",
        bound.at(1 - level),
        level,
        kind="estimated",
        unit="nats",
        n=len(bound.values),
        method="a lower bound on the mean of one bounded variable per held-out row, true labels "
        "replaced by released ones weighted with the inverse of the declared channel",
        assumptions=("the declared channel is the true one", FEATURE_BLIND, INDEPENDENT),
        reference=_DUAL,
    )
