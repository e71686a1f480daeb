"""Label inference: how often an attacker with the release guesses a person's true label.

Every attack is fitted on one half of the rows and scored on the other, both ways; one learns from
all that is released, as a real attacker does. It is compared with guessing the most frequent label,
with an attacker who has the features but no release, and with what the claim allows at most. Being
no better than the features alone is what good privacy looks like.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from ldpaudit.attacks.scoring.measures import ACCURACY, average
from ldpaudit.audits.assumptions.standing import as_it_stands
from ldpaudit.audits.claimed_channel import aligned_channel, why_unscored
from ldpaudit.audits.interface import AuditContext, Cost, Counts
from ldpaudit.audits.label_inference.budget import LeftOut, predicted_cost
from ldpaudit.audits.label_inference.curve import confidence_curve
from ldpaudit.audits.label_inference.estimates import (
    best_estimates,
    score_estimates,
    strongest,
)
from ldpaudit.audits.label_inference.groups import class_estimates, slice_estimates
from ldpaudit.audits.label_inference.missing import not_learnt, not_run, sampling
from ldpaudit.audits.label_inference.outsider import outsider_estimates
from ldpaudit.audits.label_inference.references import (
    AUDIT_ID,
    ceiling_estimates,
    utility_estimate,
)
from ldpaudit.audits.label_inference.runs import AttackRun, folds_of, run_attacks
from ldpaudit.errors import InsufficientDataError
from ldpaudit.mechanisms.channel import Channel
from ldpaudit.result import Curve, Estimate, Finding, Note

PLAIN = "released-label"
"""The attack that takes the released label for the true one."""
MIN_ROWS = 40
"""With fewer rows there is nothing to fit and score an attack on."""


class LabelInferenceAudit:
    """Runs every attack and compares it with its references."""

    id = AUDIT_ID
    counts: Counts = "rows"

    def unavailable(self, context: AuditContext) -> str | None:
        """Return why no attack can be scored, None where one can."""
        return why_unscored(context, "an attack cannot be scored")

    def cost(self, context: AuditContext) -> Cost:
        """Return what the attacks will take."""
        return predicted_cost(context, aligned_channel(context))

    def run(self, context: AuditContext) -> Finding:
        """Fit every attack on one half of the rows, score it on the other, and the reverse.

        Raise InsufficientDataError with fewer than 40 rows: each half must suffice for fitting.
        """
        if len(context.release) < MIN_ROWS:
            raise InsufficientDataError(f"Attacks need at least {MIN_ROWS} rows.")
        channel = aligned_channel(context)
        if context.release.truth is None:
            assert channel is not None
            return as_it_stands(context, _outsider(context, channel))
        return as_it_stands(context, _insider(context, channel))


def _insider(context: AuditContext, channel: Channel | None) -> Finding:
    confidence = context.plan.confidence
    folds = folds_of(context)
    runs, missing = run_attacks(context, folds)
    estimates = [e for run in runs for e in score_estimates(run, confidence)]
    best, bounds = best_estimates(runs, confidence, missing.possible)
    closer, curves, remarks = _closer(context, runs, missing.possible)
    model = np.concatenate([fold.posterior for fold in folds])
    ceilings = ceiling_estimates(context, channel, model, _reached(runs))
    utility, notes = utility_estimate(context, channel)
    return Finding(
        estimates=(*best, *closer, *estimates, *ceilings, *utility, *_budget_needed(missing)),
        curves=curves,
        notes=(*notes, *remarks, *sampling(context, len(model)), *_remarks(context, missing)),
        bounds=bounds,
    )


def _reached(runs: Sequence[AttackRun]) -> float:
    """Return the strongest attack's accuracy."""
    champion = strongest(runs)
    return 0.0 if champion is None else average(champion.folds, ACCURACY.value)


def _closer(
    context: AuditContext, runs: Sequence[AttackRun], possible: int
) -> tuple[list[Estimate], tuple[Curve, ...], list[Note]]:
    """Return the strongest attack by class and slice, and its curve against confidence."""
    champion = strongest(runs)
    if champion is None:
        return [], (), []
    blind = strongest([run for run in runs if not run.given_release])
    classes, remarks = ([], []) if blind is None else class_estimates(context, blind, possible)
    if classes and blind is not None and blind is not champion:
        text = (
            f"For each class the attack {blind.name} is scored, the strongest of those that learn "
            "nothing from the rows they guess."
        )
        remarks.append(Note.info(AUDIT_ID, text))
    slices, names = slice_estimates(context, champion, possible)
    curve = confidence_curve(champion, context.plan.confidence, possible)
    curves = () if curve is None else (curve,)
    return classes + slices, curves, remarks + names


def _outsider(context: AuditContext, channel: Channel) -> Finding:
    estimates, missing = outsider_estimates(context, channel)
    ceilings = ceiling_estimates(context, channel, None)
    utility, notes = utility_estimate(context, channel)
    return Finding(
        estimates=(*estimates, *ceilings, *utility),
        notes=(*notes, *_remarks(context, missing)),
    )


def _budget_needed(missing: LeftOut) -> Iterator[Estimate]:
    """Yield the budget that lets all attacks run, where some were left out for it."""
    if missing.too_dear:
        yield Estimate.estimated(
            "attack.budget_needed",
            "Budget in seconds at which all attacks run",
            missing.needed,
            method="the predicted seconds of all attacks that apply, shared parts once",
            assumptions=("one core of an ordinary machine",),
        )


def _remarks(context: AuditContext, missing: LeftOut) -> tuple[Note, ...]:
    return (*not_learnt(context.release.features), *not_run(missing, context))
