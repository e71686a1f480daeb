"""Tables of scores: a row for each attack or group of rows, a column for each measure."""

from collections.abc import Callable, Iterable

from ldpaudit.reports.charts.intervals import Cell, Table
from ldpaudit.reports.text.harmless import shown
from ldpaudit.reports.text.quantities import Quantity
from ldpaudit.result import Score

Rows = dict[tuple[str, str], dict[str, Quantity]]


def score_table(
    quantities: Iterable[Quantity], first: str, rank: Callable[[str], int] | None = None
) -> Table:
    """Return scores as a table, its columns in the order of the row that has most of them.

    Parameters
    ----------
    quantities : iterable of Quantity
        Of estimates that are scores.
    first : str
        The header of the names.
    rank : function from the name of a subject to its place, optional
        Without it rows stand in the order of the result.
    """
    rows: Rows = {}
    names: dict[tuple[str, str], str] = {}
    columns: dict[str, str] = {}
    for quantity in quantities:
        score = score_of(quantity)
        key = (score.subject, score.group)
        rows.setdefault(key, {})[score.measure] = quantity
        names[key], columns[score.measure] = score.row, score.column
    longest: dict[str, Quantity] = max(rows.values(), key=len, default={})
    measures = list(dict.fromkeys((*longest, *columns)))
    body: list[tuple[Cell, ...]] = []
    for key in sorted(rows, key=lambda key: 0 if rank is None else rank(key[0])):
        cells = (rows[key].get(measure, "–") for measure in measures)
        body.append((shown(names[key], 60), *cells))
    heads = (shown(columns[measure], 60) for measure in measures)
    return Table((first, *(head[:1].upper() + head[1:] for head in heads)), tuple(body))


def by_measure(quantities: Iterable[Quantity], measure: str) -> dict[str, Quantity]:
    """Return the scores of one measure on all rows, by the name of what is scored."""
    scored = ((score_of(quantity), quantity) for quantity in quantities)
    return {s.subject: q for s, q in scored if s.measure == measure and not s.group}


def score_of(quantity: Quantity) -> Score:
    """Return what a number is a score of; it is one."""
    assert quantity.estimate.score is not None
    return quantity.estimate.score
