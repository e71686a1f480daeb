"""What neighbourhoods show of the instance-based loss: J(τ), E[ν], quantiles and a histogram."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ldpaudit.audits.instance_loss.labels import LossLabels
from ldpaudit.audits.instance_loss.queries import Neighborhoods
from ldpaudit.estimators.loss.bounds import mean_loss_lower, row_loss_lower
from ldpaudit.estimators.loss.exceedance import (
    ErrorBudget,
    Exceedance,
    exceedance,
    expected_exceedance,
    loss_grid,
)
from ldpaudit.estimators.loss.instance_loss import features_mean, label_mean, mean_loss, row_loss
from ldpaudit.estimators.loss.posterior_intervals import PosteriorBox
from ldpaudit.release import FloatArray, Label
from ldpaudit.result import Curve, Estimate, Histogram

MEAN, EXCEEDANCE = "instance_loss.mean", "instance_loss.exceedance"
_REFERENCE = "Busa-Fekete et al. (2023), Theorem 6.6, with exact binomial intervals"
_QUANTILES = (50, 90, 99)
_BEYOND = 10
_MOST_PRIORS = 10
_HISTOGRAM_STEP = 0.5
_AT_GRID = "at a τ between two points the bound at the next larger point holds"


@dataclass(frozen=True)
class LossReport:
    """The estimates, curves and histogram of the neighbour method."""

    estimates: tuple[Estimate, ...]
    curves: tuple[Curve, ...]
    histograms: tuple[Histogram, ...]
    mean: float
    """E[ν]."""
    unlimited: bool
    """Whether the loss of some queries is infinite."""
    losses: FloatArray
    """The estimated loss of each query, float64 of shape (m,)."""


def loss_report(
    labels: LossLabels,
    asked: Neighborhoods,
    budget: ErrorBudget,
    assumptions: tuple[str, ...],
    names: Sequence[Label],
) -> LossReport:
    """Turn label counts around queries into estimates, each with the ``assumptions``.

    The error budget is that of each point of the curves' lower bounds; ``names`` are the labels.
    """
    box = labels.box(asked.counts, asked.totals, budget.per_query)
    losses = mean_loss(box.estimate, labels.prior, labels.channel)
    lower = mean_loss_lower(box, labels.prior_low, labels.prior_high, labels.channel)
    averaged = exceedance(losses, np.minimum(lower, losses), budget, loss_grid(losses))
    writer = _Writer(labels, asked, budget, assumptions)
    return LossReport(
        (
            writer.mean(losses),
            *writer.parts(box.estimate),
            *writer.quantiles(losses),
            *writer.priors(names),
        ),
        (
            writer.curve(
                EXCEEDANCE,
                "J(τ): share of people who lose τ nats or more",
                averaged,
                "averaged over the labels",
            ),
            writer.curve(
                "instance_loss.exceedance_unaveraged",
                "Share of people whose own released row loses τ or more",
                _unaveraged(labels, asked, box, budget),
                "of the label that each row has",
            ),
        ),
        (writer.histogram(losses),),
        float(losses.mean()),
        bool(np.isinf(losses).any()),
        losses,
    )


def _unaveraged(
    labels: LossLabels, asked: Neighborhoods, box: PosteriorBox, budget: ErrorBudget
) -> Exceedance:
    """Return the exceedance of ν(Y, Z, X): of each query's own labels, or an outsider's guess."""
    released = labels.released[asked.queries]
    if labels.truth is None:
        return _expected(labels, box, released)
    truth = labels.truth[asked.queries]
    losses = row_loss(box.estimate, truth, released, labels.prior, labels.channel)
    lower = row_loss_lower(box, truth, released, labels.prior_high, labels.channel)
    return exceedance(losses, np.minimum(lower, losses), budget, loss_grid(losses))


def _expected(labels: LossLabels, box: PosteriorBox, released: Any) -> Exceedance:
    k = len(labels.prior)
    assert labels.channel is not None
    weights = box.estimate * labels.channel.T[released]
    total = weights.sum(axis=1, keepdims=True)
    weights = np.where(total > 0, weights / np.where(total > 0, total, 1.0), labels.prior)
    losses = np.empty_like(weights)
    for y in range(k):
        truth = np.full(len(released), y, dtype=np.int32)
        losses[:, y] = row_loss(box.estimate, truth, released, labels.prior, labels.channel)
    # A released label that the claim excludes reveals nothing: 0 − 0 likelihoods give NaN.
    losses = np.where(np.isnan(losses), 0.0, losses)
    possible = losses[weights > 0]
    return expected_exceedance(losses, weights, loss_grid(possible))


@dataclass(frozen=True)
class _Writer:
    labels: LossLabels
    asked: Neighborhoods
    budget: ErrorBudget
    assumptions: tuple[str, ...]

    @property
    def _method(self) -> str:
        part = " of the features' part alone" if self.labels.source == "none" else ""
        return (
            f"labels of about {self.asked.k} neighbours{part}, half a row added to each label; "
            f"{self.asked.method}"
        )

    def _estimated(
        self, name: str, title: str, value: float, method: str, *, counted: bool = True
    ) -> Estimate:
        return Estimate.estimated(
            f"instance_loss.{name}",
            title,
            value,
            unit="nats",
            n=len(self.asked.queries) if counted else None,
            method=method,
            assumptions=self.assumptions,
            reference=_REFERENCE,
        )

    def mean(self, losses: FloatArray) -> Estimate:
        """Return E[ν]."""
        title, method = "Mean loss E[ν], by neighbours", f"the mean over queries; {self._method}"
        return self._estimated("mean", title, float(losses.mean()), method)

    def parts(self, posterior: FloatArray) -> Iterator[Estimate]:
        """Return what features and released label would give away, each without the other."""
        prior, channel = self.labels.prior, self.labels.channel
        yield self._estimated(
            "features_mean",
            "Mean loss through the features, by neighbours",
            features_mean(posterior, prior),
            f"the mean loss if the released label were hidden; {self._method}",
        )
        if channel is not None:
            yield self._estimated(
                "label_mean",
                "Mean loss through the released label",
                label_mean(prior, channel),
                f"the mean loss if the features were hidden; {self.labels.source} channel, "
                "observed label shares",
                counted=False,
            )

    def quantiles(self, losses: FloatArray) -> Iterator[Estimate]:
        """Return quantiles of ν(x) with at least ten queries beyond them."""
        for percent in _QUANTILES:
            if len(losses) * (100 - percent) >= 100 * _BEYOND:
                # The order statistic below: interpolation fails between infinite losses.
                value = np.quantile(losses, percent / 100, method="lower")
                yield self._estimated(
                    f"quantile-{percent}",
                    f"Loss, percentile {percent}",
                    float(value),
                    f"{percent} % of queries lose less; {self._method}",
                )

    def priors(self, names: Sequence[Label]) -> Iterator[Estimate]:
        """Return the label shares, unless they are many."""
        n, truth = len(self.labels.released), self.labels.truth
        shares = self.labels.prior
        if len(shares) > _MOST_PRIORS:
            return
        words = "share of rows" if truth is not None else "released shares through the channel"
        for y, share in enumerate(shares):
            code = int(self.labels.classes[y])
            low, high = float(self.labels.prior_low[y]), float(self.labels.prior_high[y])
            yield Estimate.interval(
                f"instance_loss.prior.class-{code + 1}",
                f"Share of class {names[code]}",
                float(share),
                (min(low, float(share)), max(high, float(share))),
                1 - self.budget.prior,
                kind="estimated",
                unit="proportion",
                n=n,
                method=words,
                assumptions=self.assumptions[-1:] if truth is not None else self.assumptions,
            )

    def curve(self, identifier: str, title: str, shares: Exceedance, what: str) -> Curve:
        """Return J(τ) on its grid."""
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
            level=1 - self.budget.total if bounded else None,
            x_label="privacy loss τ in nats",
            unit="proportion",
            n=shares.queries,
            method=f"share of queries that lose τ or more, {what}; {self._method}"
            + (f"; {_AT_GRID}" if bounded else ""),
            assumptions=self.assumptions,
            reference=_REFERENCE,
        )

    def histogram(self, losses: FloatArray) -> Histogram:
        """Return the counts of queries by loss, the last bin open where a loss is infinite."""
        finite = losses[np.isfinite(losses)]
        least = float(finite.min()) if len(finite) else 0.0
        most = float(finite.max()) if len(finite) else 0.0
        first, last = np.floor(least / _HISTOGRAM_STEP), np.floor(most / _HISTOGRAM_STEP) + 1
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
            method=self._method,
            assumptions=self.assumptions,
            reference=_REFERENCE,
        )
