"""Instance-based privacy loss: how much each released row says about its person's label.

An insider counts true labels among a row's neighbours, an outsider released labels, and inverts the
declared channel. J(τ), the share of people who lose at least τ nats, and E[ν] are estimates that
rest on smooth label probabilities; the lower bound on E[ν] with true labels rests on nothing.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

import numpy as np

from ldpaudit.audits.claimed_channel import why_unscored
from ldpaudit.audits.instance_loss.certificates import Certificates, certificates
from ldpaudit.audits.instance_loss.estimates import EXCEEDANCE, MEAN, LossReport, loss_report
from ldpaudit.audits.instance_loss.labels import LossLabels, loss_labels
from ldpaudit.audits.instance_loss.levels import ExceedanceLevels
from ldpaudit.audits.instance_loss.queries import Neighborhoods, neighborhoods
from ldpaudit.audits.interface import AuditContext, Counts
from ldpaudit.audits.mechanism.evidence import FEATURE_BLIND, INDEPENDENT
from ldpaudit.audits.part import over_all_rows
from ldpaudit.estimators.loss.exceedance import ErrorBudget
from ldpaudit.result import Curve, Finding, Note

AUDIT_ID = "instance-loss"
LARGEST_ERROR = 0.01
"""The error probability δ of each point of J's lower bound, unless more confidence is asked for."""

SMOOTHNESS = (
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
        budget = ErrorBudget.of(min(LARGEST_ERROR, 1 - context.plan.confidence))
        every = over_all_rows(context)
        labels = loss_labels(every, budget.prior)
        asked = neighborhoods(every, labels)
        report = loss_report(
            *(labels, asked, budget, _assumptions(labels, asked)), context.release.classes
        )
        modelled = labels if every is context else loss_labels(context, budget.prior)
        learned = _in_learned_metric(context, modelled, budget) if asked.features else Finding()
        certified = certificates(context, modelled)
        return Finding(
            estimates=(*certified.estimates, *report.estimates, *learned.estimates),
            curves=(*report.curves, *learned.curves),
            histograms=report.histograms,
            notes=tuple(_notes(labels, asked, report, certified)),
            bounds={
                **(certified.bounds or {}),
                **_at_levels(every, asked, report, report.curves[0]),
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
    report = loss_report(
        *(labels, asked, budget, _assumptions(labels, asked)), context.release.classes
    )
    mean = next(e for e in report.estimates if e.id == MEAN)
    curve = next(c for c in report.curves if c.id == EXCEEDANCE)
    curve = curve.model_copy(update=_learned(EXCEEDANCE, "J(τ)"))
    return Finding(
        estimates=(mean.model_copy(update=_learned(MEAN, "Mean loss E[ν],")),),
        curves=(curve,),
        bounds=_at_levels(context, asked, report, curve),
    )


def _at_levels(
    context: AuditContext, asked: Neighborhoods, report: LossReport, curve: Curve
) -> Mapping[str, Callable[[float], float]]:
    """Return the curve's lower bound at each of its points as a function of alpha."""
    levels = ExceedanceLevels(context, asked, report.losses, np.array(curve.x))
    return levels.functions(curve)


def _learned(identifier: str, title: str) -> dict[str, str]:
    return {"id": f"{identifier}_learned", "title": f"{title} by neighbours in a learned metric"}


def _assumptions(labels: LossLabels, asked: Neighborhoods) -> tuple[str, ...]:
    channel = {
        "declared": (FEATURE_BLIND, "the declared channel is the true one"),
        "measured": (FEATURE_BLIND, "the channel is the one measured from true labels"),
        "none": (),
    }
    smooth = (SMOOTHNESS,) if asked.features else ()
    return (*smooth, *channel[labels.source], INDEPENDENT)


def _notes(
    labels: LossLabels, asked: Neighborhoods, report: LossReport, certified: Certificates
) -> Iterator[Note]:
    yield Note.info(
        AUDIT_ID,
        f"{len(asked.queries)} people were asked for their loss, with about {asked.k} neighbours "
        f"each among {asked.index_rows} other people; {asked.method}.",
    )
    if not asked.features:
        yield Note.info(
            AUDIT_ID, "No feature tells two rows apart: only the released label's part was audited."
        )
    else:
        yield Note.info(
            AUDIT_ID,
            "Where label probabilities change faster than the neighbourhoods can follow, the "
            "estimate is drawn towards the average person: some people's true loss is larger.",
        )
    yield from _channel_notes(labels)
    if report.unlimited:
        text = "Some released labels prove the true label, so their loss has no limit."
        yield Note.warning(AUDIT_ID, text)
    if certified.missing:
        yield Note.info(AUDIT_ID, certified.missing)
    if certified.lower > report.mean:
        yield Note.info(
            AUDIT_ID,
            "The certified bound on E[ν] lies above the neighbours' estimate: neighbourhoods are "
            "too coarse in this metric, so J(τ) is estimated too low as well. The estimate in the "
            "learned metric follows the labels more closely.",
        )


def _channel_notes(labels: LossLabels) -> Iterator[Note]:
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
