"""What single columns show: of their row's label, of rows near by, of some people."""

from collections.abc import Iterable, Iterator
from typing import Final

from ldpaudit.audits.columns.labels import ASSUMED, Labels
from ldpaudit.audits.interface import AuditContext, Part
from ldpaudit.estimators.readable import scan
from ldpaudit.estimators.telling import MOST_ERROR, Values
from ldpaudit.release import IndexArray
from ldpaudit.result import Estimate, Note
from ldpaudit.result.stated import DECIDING, LAGGED, POSITION, TOLD

_HOW: Final = {
    True: "guessed from the column's value as learnt on other rows, labels counted alike",
    False: "as with true labels, which the inverse of the claimed channel stands for",
}
_ODD_CELLS: Final = "by which gaps are NaN, or which zeros are negative"


def single_columns(
    context: AuditContext, labels: Labels, rows: IndexArray, looked_at: dict[int, Values]
) -> Iterator[Part]:
    """Yield what single columns show: of their row's label, of rows near by, of some people.

    ``looked_at``: arrays of single columns, by their places among all of the release's.
    """
    release, known = context.release, labels.most_equal is None
    places, arrays = list(looked_at), list(looked_at.values())
    codes, surveyed = labels.codes[rows], release.columns
    of = {place: i for i, column in enumerate(surveyed) for place in column.arrays}
    found = scan(arrays, rows, labels.weights[codes], codes if known else None)

    def columns(some: Iterable[int]) -> list[int]:
        """Return the columns of the file that arrays come from, each once."""
        # Of which column odd gaps and zeros are is not known: −1.
        return list(
            dict.fromkeys(of.get(p, -1 if surveyed else p) for p in (places[i] for i in some))
        )

    def names(which: list[int]) -> str:
        named = (surveyed[i].name if i >= 0 else _ODD_CELLS for i in which)
        return f" ({', '.join(named)})" if surveyed else ""

    method, given = _HOW[known], (ASSUMED[known],)
    deciding, lagged = (*found.deciding, *found.flags), [i for i, _ in found.lagged]
    for name, title, some, asked in (
        (
            DECIDING,
            "Columns that reveal, or follow from, 98 % of the labels",
            deciding,
            found.rows,
        ),
        (
            LAGGED,
            "Columns that reveal 98 % of the labels of nearby rows",
            lagged,
            found.lagged_rows,
        ),
    ):
        count = len(columns(some))
        # How many rows the answer rests on is said where it is not all of them.
        sample = f"; on a random sample of {asked:,} rows" if asked < len(release) else ""
        how = f"{method}{sample}"
        yield Estimate.estimated(name, title, count, method=how, assumptions=given)
    told = [(TOLD, "Labels that the best single column reveals", found.best)]
    if known or found.position.error <= MOST_ERROR:
        told.append((POSITION, "Labels that the row number reveals", found.position))
    for name, title, one in told:
        yield Estimate.estimated(
            name,
            title,
            one.share,
            unit="proportion",
            n=found.rows,
            method=method,
            assumptions=given,
        )
    for some, words in (
        (found.deciding, "at least 98 % of the true labels"),
        (found.flags, "which group of true labels a person is in, in at least 98 % of the rows"),
        (lagged, "at least 98 % of the true labels of rows near by"),
    ):
        if which := columns(some):
            tell = "tells" if len(which) == 1 else "tell, each by itself,"
            counted = f"{len(which)} column{'s' if len(which) > 1 else ''}{names(which)}"
            tell = tell if known else f"{tell.rstrip(',')}, judged by the released labels,"
            made = "" if known else ", unless computed from the released labels"
            yield Note.warning("columns", f"{counted} {tell} {words}{made}.")
