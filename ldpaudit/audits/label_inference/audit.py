"""Label inference: how often an attacker with the release guesses a person's true label.

Every attack is fitted on one half of the rows and scored on the other, both ways; one learns from
all that is released, as a real attacker does. It is compared with guessing the most frequent label,
with an attacker who has the features but no release, and with what the claim allows at most. Being
no better than the features alone is what good privacy looks like.
"""

from collections.abc import Iterator, Sequence

from ldpaudit.audits.claimed_channel import aligned_channel, why_unscored
from ldpaudit.audits.interface import AuditContext
from ldpaudit.audits.label_inference.budget import LeftOut
from ldpaudit.audits.label_inference.curve import confidence_curve
from ldpaudit.audits.label_inference.estimates import best_estimates, score_estimates, strongest
from ldpaudit.audits.label_inference.groups import class_estimates, slice_estimates
from ldpaudit.audits.label_inference.outsider import outsider_estimates
from ldpaudit.audits.label_inference.references import AUDIT_ID, ceiling_estimates, utility_estimate
from ldpaudit.audits.label_inference.runs import AttackRun, run_attacks
from ldpaudit.audits.models import cross_fitted_posterior
from ldpaudit.errors import InsufficientDataError
from ldpaudit.mechanisms.channel import Channel
from ldpaudit.modelling.screening import MOST_COLUMNS, TREE_COLUMNS
from ldpaudit.modelling.values import merged, unrepeated
from ldpaudit.release import FeatureTable
from ldpaudit.result import Curve, Estimate, Finding, Note

MIN_ROWS = 40
"""With fewer rows there is nothing to fit and score an attack on."""


class LabelInferenceAudit:
    """Runs every attack and compares it with its references."""

    id = AUDIT_ID

    def unavailable(self, context: AuditContext) -> str | None:
        """Return why no attack can be scored, None where one can."""
        return why_unscored(context, "an attack cannot be scored")

    def run(self, context: AuditContext) -> Finding:
        """Fit every attack on one half of the rows, score it on the other, and the reverse.

        Raise InsufficientDataError with fewer than 40 rows: each half must suffice for fitting.
        """
        if len(context.release) < MIN_ROWS:
            raise InsufficientDataError(f"Attacks need at least {MIN_ROWS} rows.")
        channel = aligned_channel(context)
        if context.release.truth is None:
            assert channel is not None
            return _outsider(context, channel)
        return _insider(context, channel)


def _insider(context: AuditContext, channel: Channel | None) -> Finding:
    confidence = context.plan.confidence
    runs, missing = run_attacks(context)
    estimates = [e for run in runs for e in score_estimates(run, confidence)]
    best, bounds = best_estimates(runs, confidence)
    closer, curves, remarks = _closer(context, runs)
    reached = best[0].value if best else 0.0
    model = cross_fitted_posterior(context, "truth")
    ceilings = ceiling_estimates(context, channel, model, reached)
    utility, notes = utility_estimate(context, channel)
    features = context.release.features
    return Finding(
        estimates=(*best, *closer, *estimates, *ceilings, *utility, *_budget_needed(missing)),
        curves=curves,
        notes=(*notes, *remarks, *_not_learnt(features), *_not_run(missing, context.plan.budget)),
        bounds=bounds,
    )


def _closer(
    context: AuditContext, runs: Sequence[AttackRun]
) -> tuple[list[Estimate], tuple[Curve, ...], list[Note]]:
    """Return the strongest attack by class and slice, and its curve against confidence."""
    champion = strongest(runs)
    if champion is None:
        return [], (), []
    attacks = sum(run.uses_release for run in runs)
    blind = strongest([run for run in runs if not run.given_release])
    classes, remarks = ([], []) if blind is None else class_estimates(context, blind, attacks)
    if classes and blind is not None and blind is not champion:
        text = (
            f"For each class the attack {blind.name} is scored, the strongest of those that learn "
            "nothing from the rows they guess."
        )
        remarks.append(Note.info(AUDIT_ID, text))
    slices, names = slice_estimates(context, champion, attacks)
    curve = confidence_curve(champion, context.plan.confidence, attacks)
    curves = () if curve is None else (curve,)
    return classes + slices, curves, remarks + names


def _outsider(context: AuditContext, channel: Channel) -> Finding:
    estimates, missing = outsider_estimates(context, channel)
    ceilings = ceiling_estimates(context, channel, None)
    utility, notes = utility_estimate(context, channel)
    return Finding(
        estimates=(*estimates, *ceilings, *utility),
        notes=(
            *notes,
            *_not_learnt(context.release.features),
            *_not_run(missing, context.plan.budget),
        ),
    )


def _not_learnt(features: FeatureTable) -> Iterator[Note]:
    """Say which feature columns the attacks' models do not, or not wholly, learn from."""
    if features.width > TREE_COLUMNS:
        text = (
            f"Feature columns: {features.width}. Models of trees learn from {TREE_COLUMNS} of them "
            f"and every model from {MOST_COLUMNS} at most: those that go most clearly with the "
            "labels that the model learns from, never with labels of rows that are scored."
        )
        yield Note.info(AUDIT_ID, text)
    alone, rare = unrepeated(features), merged(features)
    if alone:
        text = (
            f"Feature columns with another value in nearly every row: {alone}. Models learn "
            "nothing from a value that does not come again, so attacks leave such columns out, "
            "but for the words of free texts."
        )
        yield Note.info(AUDIT_ID, text)
    if rare:
        text = (
            f"Feature columns with values on fewer than 10 rows: {rare}. The attacks' models take "
            "the rare values of a column as one."
        )
        yield Note.info(AUDIT_ID, text)


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


def _not_run(missing: LeftOut, budget: float) -> Iterator[Note]:
    for name, reason in missing.unfit.items():
        yield Note.info(AUDIT_ID, f"The attack {name} was left out: {reason.rstrip('.')}.")
    for name, seconds in missing.too_dear.items():
        text = (
            f"The attack {name} was left out: its predicted {seconds:.0f} s do not fit into the "
            f"{budget:g} s for attacks (--budget)."
        )
        yield Note.info(AUDIT_ID, text)
    if missing.too_slow:
        text = (
            f"Attacks took far longer here than the {budget:g} s of --budget, so these were left "
            f"out: {', '.join(missing.too_slow)}. A faster machine would have run them, and the "
            "strongest attack may be another there. A larger budget gives the same numbers "
            "everywhere."
        )
        yield Note.warning(AUDIT_ID, text)
