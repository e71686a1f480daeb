"""The finding about columns: those that may lead back to a person, and those that tell labels."""

from collections.abc import Iterator
from typing import Final

from ldpaudit.audits.columns.telling import telling
from ldpaudit.audits.interface import AuditContext
from ldpaudit.columns import ColumnSurvey, Concern
from ldpaudit.release import Sketch
from ldpaudit.result import Estimate, Finding, Note

TRUTH_INSIDE: Final = "columns.truth"
_CONCERNS: Final[dict[Concern, tuple[str, str]]] = {
    "index": ("columns.indices", "Columns that number the rows"),
    "identifier": ("columns.identifiers", "Columns that are different in (nearly) every row"),
    "text": ("columns.texts", "Columns of free text"),
    "date": ("columns.dates", "Columns of exact dates"),
}

_LISTED: Final = 5


def columns_finding(context: AuditContext) -> Finding:
    """Return what the columns of a release may give away besides what the noise lets through."""
    told = telling(context)
    finding = Finding(
        estimates=(
            *told.estimates,
            *_estimates(context.release.columns),
            *_true_labels(context),
            *_distortion(context.release.sketch),
        ),
        notes=(*told.notes, *_notes(context)),
        bounds=told.bounds,
    )
    return finding.in_section("columns")


def _estimates(columns: tuple[ColumnSurvey, ...]) -> Iterator[Estimate]:
    if not columns:
        return
    for concern, (name, title) in _CONCERNS.items():
        amount = sum(column.concern == concern for column in columns)
        yield Estimate.estimated(
            name,
            title,
            amount,
            method="by the columns' values and names",
            assumptions=("a column is what it looks like",),
        )


def _true_labels(context: AuditContext) -> Iterator[Estimate]:
    if context.release.holds_truth:
        yield Estimate.exact(
            TRUTH_INSIDE,
            "Columns of true labels in the release",
            1,
            method="the true labels were read from the release itself (--truth-column)",
        )


def _distortion(sketch: Sketch | None) -> Iterator[Estimate]:
    """Yield how far the projection of sparse features moves distances."""
    if sketch is None or not sketch.shared:
        return
    share = f"{100 * sketch.share:.0f} %"
    method = (
        f"{sketch.features:,} sparse features, projected without labels: the {sketch.single} most "
        f"frequent ones of the first rows have a column each, the others are summed with random "
        f"signs in {sketch.shared} columns (count sketch)"
    )
    yield Estimate.estimated(
        "features.distortion_bound",
        f"Error of the squared distance of a pair of rows, at most, in {share} of projections",
        sketch.bound,
        unit="proportion",
        method=f"{method}; Chebyshev's inequality with a relative variance of 2/{sketch.shared}",
        assumptions=("hashed places and signs are like independent draws",),
    )
    if sketch.error is not None:
        yield Estimate.estimated(
            "features.distortion",
            f"Error of the squared distance that {share} of pairs of rows do not exceed",
            sketch.error,
            unit="proportion",
            n=sketch.pairs,
            method=f"{method}; random pairs of near-by lines, before columns are standardised",
            assumptions=("the pairs looked at are like the others",),
        )


def _notes(context: AuditContext) -> Iterator[Note]:
    columns = context.release.columns
    for concern, (_, title) in _CONCERNS.items():
        found = [column for column in columns if column.concern == concern]
        if found:
            more = f" and {len(found) - _LISTED} more" if len(found) > _LISTED else ""
            names = ", ".join(column.name for column in found[:_LISTED])
            yield Note.warning("columns", f"{title}: {names}{more}.")
    if left_out := context.release.left_out:
        yield Note.warning(
            "columns",
            f"{left_out} column{'s' if left_out > 1 else ''} of the release took no part in this "
            "audit (--drop, --features): what such a column tells of labels is not known, so "
            "publish the file without it.",
        )
    unused = sum(column.unused for column in columns)
    if unused:
        yield Note.warning(
            "columns",
            "Categories that no row has are in the file, perhaps of people who were left out "
            f"({sum(column.unused > 0 for column in columns)} columns). Write it without them.",
        )
