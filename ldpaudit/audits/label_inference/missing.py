"""What the attacks did not look at, and which did not run, in words."""

from collections.abc import Iterator

from ldpaudit.audits.interface import AuditContext
from ldpaudit.audits.label_inference.budget import LeftOut
from ldpaudit.audits.label_inference.references import AUDIT_ID
from ldpaudit.audits.models import learning_rows
from ldpaudit.modelling.screening import MOST_COLUMNS, TREE_COLUMNS
from ldpaudit.modelling.values import merged, unrepeated
from ldpaudit.release import FeatureTable
from ldpaudit.result import Note


def sampling(context: AuditContext, scored: int) -> Iterator[Note]:
    """Say how many rows attacks learn from and are scored on, where they are not all."""
    n, of_groups = len(context.release), ""
    if context.release.groups is not None:
        of_groups = "the groups of "
        text = (
            "Attacks are scored on one row of each group (--group, a repeated --id), drawn at "
            "random: rows that belong together are no independent guesses."
        )
        yield Note.info(AUDIT_ID, text)
    learnt = sum(len(learning_rows(context, half)) for half in (0, 1))
    if min(scored, learnt) < n:
        text = (
            f"Of {n:,} rows, attacks learn from {learnt:,} and are scored on "
            f"{of_groups}{scored:,}, each a random sample; intervals allow for it. Attacks that "
            "are slow are scored on fewer, as their counts say."
        )
        yield Note.info(AUDIT_ID, text)


def not_learnt(features: FeatureTable) -> Iterator[Note]:
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


def not_run(missing: LeftOut, context: AuditContext) -> Iterator[Note]:
    """Say which attacks did not run, and why."""
    for name, reason in missing.broken.items():
        yield Note.warning(AUDIT_ID, f"The attack {name} was left out: {reason.rstrip('.')}.")
    for name, reason in (missing.unfit | missing.needless).items():
        yield Note.info(AUDIT_ID, f"The attack {name} was left out: {reason.rstrip('.')}.")
    for name, seconds in missing.too_dear.items():
        text = (
            f"The attack {name} was left out: its predicted {seconds:.0f} s do not fit into the "
            f"{context.plan.budget:g} s for attacks (--budget)."
        )
        yield Note.info(AUDIT_ID, text)
    if missing.not_asked:
        text = (
            f"{len(missing.not_asked)} more attacks, seldom the strongest where that was measured, "
            "run with --thorough."
        )
        yield Note.info(AUDIT_ID, text)
    if missing.stopped:
        text = (
            f"Attacks are missing, because {context.stop.reason}: {', '.join(missing.stopped)}. "
            "The strongest may be among them."
        )
        yield Note.warning(AUDIT_ID, text)
