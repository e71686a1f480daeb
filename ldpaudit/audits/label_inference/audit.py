"""Label inference: how often an attacker with the release guesses a person's true label.

Every attack is fitted on one half of the rows and scored on the other, both ways; one learns from
all that is released, as a real attacker does. It is compared with guessing the most frequent label,
with an attacker who has the features but no release, and with what the claim allows at most. Being
no better than the features alone is what good privacy looks like.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from ldpaudit.attacks.scoring import ACCURACY, average
from ldpaudit.audits.assumptions.standing import as_it_stands
from ldpaudit.audits.claimed_channel import aligned_channel, why_unscored
from ldpaudit.audits.interface import AuditContext, Counts
from ldpaudit.audits.label_inference.estimates import (
    AUDIT_ID,
    best_estimates,
    ceiling_estimates,
    class_estimates,
    confidence_curve,
    score_estimates,
    slice_estimates,
    strongest,
    utility_estimate,
)
from ldpaudit.audits.label_inference.outsider import outsider_estimates
from ldpaudit.audits.label_inference.runs import AttackRun, LeftOut, folds_of, run_attacks
from ldpaudit.audits.models import learning_rows
from ldpaudit.errors import InsufficientDataError
from ldpaudit.mechanisms.channel import Channel
from ldpaudit.models.screening import MOST_COLUMNS, TREE_COLUMNS, merged, unrepeated
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

    def run(self, context: AuditContext) -> Finding:
        """Fit every attack on one half of the rows, score it on the other, and the reverse.

        Raise InsufficientDataError with fewer than 40 rows: each half must suffice for fitting.
        """
        if len(context.release) < MIN_ROWS:
            raise InsufficientDataError(f"Attacks need at least {MIN_ROWS} rows.")
        channel = aligned_channel(context)
        if context.release.truth is None:
            assert channel is not None
            estimates, missing = outsider_estimates(context, channel)
            ceilings = ceiling_estimates(context, channel, None)
            utility, notes = utility_estimate(context, channel)
            every, said = (*estimates, *ceilings, *utility), (*notes, *_remarks(context, missing))
            return as_it_stands(context, Finding(estimates=every, notes=said))
        return as_it_stands(context, _insider(context, channel))


def _insider(context: AuditContext, channel: Channel | None) -> Finding:
    confidence, folds = context.plan.confidence, folds_of(context)
    runs, missing = run_attacks(context, folds)
    estimates = [e for run in runs for e in score_estimates(run, confidence)]
    best, bounds = best_estimates(runs, confidence, missing.possible)
    closer, curves, remarks = _closer(context, runs, missing.possible)
    model, champion = np.concatenate([fold.posterior for fold in folds]), strongest(runs)
    reached = 0.0 if champion is None else average(champion.folds, ACCURACY.value)
    ceilings = ceiling_estimates(context, channel, model, reached)
    utility, notes = utility_estimate(context, channel)
    return Finding(
        estimates=(*best, *closer, *estimates, *ceilings, *utility),
        curves=curves,
        notes=(*notes, *remarks, *_sampling(context, len(model)), *_remarks(context, missing)),
        bounds=bounds,
    )


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


def _sampling(context: AuditContext, scored: int) -> Iterator[Note]:
    """Say how many rows attacks learn from and are scored on, where they are not all."""
    n, grouped = len(context.release), context.release.groups is not None
    learnt = sum(len(learning_rows(context, half)) for half in (0, 1))
    said = {
        "Attacks are scored on one row of each group (--group, a repeated --id), drawn at random: "
        "rows that belong together are no independent guesses.": grouped,
        f"Of {n:,} rows, attacks learn from {learnt:,} and are scored on "
        f"{'the groups of ' if grouped else ''}{scored:,}, each a random sample; intervals allow "
        "for it. Attacks that are slow are scored on fewer, as their counts say.": (
            min(scored, learnt) < n
        ),
    }
    yield from (Note.info(AUDIT_ID, text) for text, applies in said.items() if applies)


def _remarks(context: AuditContext, missing: LeftOut) -> Iterator[Note]:
    """Say which columns models do not, or not wholly, learn from, and which attacks did not run."""
    features = context.release.features
    alone, rare = unrepeated(features), merged(features)
    said = {
        f"Feature columns: {features.width}. Models of trees learn from {TREE_COLUMNS} of them "
        f"and every model from {MOST_COLUMNS} at most: those that go most clearly with the labels "
        "that the model learns from, never with labels of rows that are scored.": (
            features.width > TREE_COLUMNS
        ),
        f"Feature columns with another value in nearly every row: {alone}. Models learn nothing "
        "from a value that does not come again, so attacks leave such columns out, but for the "
        "words of free texts.": alone > 0,
        f"Feature columns with values on fewer than 10 rows: {rare}. The attacks' models take the "
        "rare values of a column as one.": rare > 0,
    }
    yield from (Note.info(AUDIT_ID, text) for text, applies in said.items() if applies)
    for make, left_out in ((Note.warning, missing.broken), (Note.info, missing.unfit)):
        for name, reason in left_out.items():
            yield make(AUDIT_ID, f"The attack {name} was left out: {reason.rstrip('.')}.")
    if missing.stopped:
        text = (
            f"Attacks are missing, because {context.run.stop.reason}: "
            f"{', '.join(missing.stopped)}. The strongest may be among them."
        )
        yield Note.warning(AUDIT_ID, text)
