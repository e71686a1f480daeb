"""What the columns' names and values look like."""

from collections.abc import Iterator
from typing import Final

from ldpaudit.audits.interface import Part
from ldpaudit.release import Release, Sketch
from ldpaudit.release.features import Concern
from ldpaudit.result import Estimate, Note
from ldpaudit.result.stated import (
    DATES,
    IDENTIFIERS,
    INDICES,
    OTHERWISE_WRITTEN,
    TEXTS,
    TRUTH_INSIDE,
    UNREAD,
    WHOLE_REPORTS,
)

_LISTED: Final = 5
_CONCERNS: Final[dict[Concern, tuple[str, str]]] = {
    "index": (INDICES, "Columns that number the rows"),
    "identifier": (IDENTIFIERS, "Columns that are different in (nearly) every row"),
    "text": (TEXTS, "Columns of free text"),
    "date": (DATES, "Columns of exact dates"),
}


def concerned(release: Release) -> dict[str, tuple[str, ...]]:
    """Return the columns that may lead back to a person, by the estimate that counts them."""
    return {
        name: tuple(column.name for column in release.columns if column.concern == concern)
        for concern, (name, _) in _CONCERNS.items()
    }


def surveyed(release: Release) -> Iterator[Part]:
    """Yield what the columns' names and values look like."""
    names = concerned(release)
    for name, title in _CONCERNS.values():
        alike = names[name]
        if release.columns:
            method, given = "by the columns' values and names", ("a column is what it looks like",)
            yield Estimate.estimated(name, title, len(alike), method=method, assumptions=given)
        if alike:
            more = f" and {len(alike) - _LISTED} more" if len(alike) > _LISTED else ""
            yield Note.warning("columns", f"{title}: {', '.join(alike[:_LISTED])}{more}.")
    if doubtful := [one for one in release.columns if one.reading.others]:
        method = "cells that are neither numbers (or dates) nor a known mark of a missing value"
        title = "Columns with cells that were not read as they stand"
        yield Estimate.exact(UNREAD, title, len(doubtful), method=method)
    if release.otherwise_written:
        method = "cells of the released column that mean the same"
        title = "Rows whose label is written otherwise than in most rows with that label"
        yield Estimate.exact(OTHERWISE_WRITTEN, title, release.otherwise_written, method=method)
    if release.whole_reports:
        method = "more than ten times as many as independent entries would make by chance"
        title = "Reports of whole numbers alone, where noise leaves hardly any so"
        yield Estimate.exact(WHOLE_REPORTS, title, release.whole_reports, method=method)
    if release.holds_truth:
        method = "the true labels were read from the release itself (--truth-column)"
        title = "Columns of true labels in the release"
        yield Estimate.exact(TRUTH_INSIDE, title, 1, method=method)
    if release.sketch is not None and release.sketch.shared:
        yield from _distortion(release.sketch)


def _distortion(sketch: Sketch) -> Iterator[Estimate]:
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
