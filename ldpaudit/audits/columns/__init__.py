"""Columns of a release that should not be published: names of people, and what shows labels.

In: a release, with or without true labels. Out: estimates and warnings of each column that numbers
rows or names people, and of what single columns, representations of them, rows near by and the
order of the rows show of labels.
"""

from collections.abc import Iterator

import numpy as np

from ldpaudit.audits.columns.labels import labels_of
from ldpaudit.audits.columns.order import order_of_rows
from ldpaudit.audits.columns.readings import read_off
from ldpaudit.audits.columns.single import single_columns
from ldpaudit.audits.columns.survey import concerned, surveyed
from ldpaudit.audits.interface import AuditContext, Part, collected
from ldpaudit.estimators.readable import MOST_SCANNED, rows_to_scan, worth_scanning
from ldpaudit.result import Finding, Note

__all__ = ["columns_finding", "concerned"]

_FEWEST, _LAST_MARK = 40, 3


def columns_finding(context: AuditContext) -> Finding:
    """Return what the columns of a release may reveal besides what the noise allows."""
    return collected([*_telling(context), *surveyed(context.release)]).in_section("columns")


def _telling(context: AuditContext) -> Iterator[Part]:
    """Yield what columns and the order of the rows show; nothing where no label is known."""
    release, labels = context.release, labels_of(context)
    if labels is None or len(release) < _FEWEST or labels.classes < 2:
        return
    width = release.features.width
    places = list(range(width))
    looked = min(len(places), MOST_SCANNED)
    rows = rows_to_scan(len(release), looked, labels.classes, context.rng("columns"))
    if looked < len(places):
        places = worth_scanning(release.features, labels.codes, rows, places)
    scanned = list(places)
    extra = () if release.features.extra is None else release.features.extra.T
    # Which gaps and zeros are odd ones, from 0 to 3; hashed words are no whole numbers.
    marks = [x for x in extra if x.min() >= 0 and x.max() <= _LAST_MARK and (x == np.rint(x)).all()]
    every = (*release.features.numeric.T, *release.features.categorical.T, *release.keys, *marks)
    places += range(width, len(every))
    yield from single_columns(context, labels, rows, {place: every[place] for place in places})
    yield from read_off(context, labels, rows, scanned)
    yield from order_of_rows(context, labels)
    if width > MOST_SCANNED:
        yield Note.info(
            "columns",
            f"Of {width} feature columns about {MOST_SCANNED} were looked at one by one for "
            "labels that they tell: those that go most clearly with the label of their row, or of "
            "a row near by.",
        )
