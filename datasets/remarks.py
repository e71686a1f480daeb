"""What is said of how files, columns and rows are read."""

from collections.abc import Iterator, Sequence

from ldpaudit.datasets.as_read import said_of
from ldpaudit.datasets.cells import Cells
from ldpaudit.datasets.companions import Companion
from ldpaudit.datasets.formats.tables import TableSource, allowed
from ldpaudit.datasets.spelling import MOST_ROWS_SURVEYED
from ldpaudit.datasets.truth import Truth
from ldpaudit.release.features import ColumnSurvey
from ldpaudit.work.memory import shown


def remarks_on_files(
    table: TableSource, known: Truth | None, companions: Sequence[Companion]
) -> Iterator[str]:
    """Yield how the files are read, where that was detected and is unusual."""
    said = [("release", table.remark)]
    if known is not None:
        said.append(("true labels", known.remark))
    said += [(f"{companion.role} table", companion.table.remark) for companion in companions]
    for what, remark in said:
        if remark:
            yield f"Read the {what} as {remark}."


def remarks_on_columns(table: TableSource, columns: Sequence[ColumnSurvey]) -> Iterator[str]:
    """Yield how columns are read, where that is not plain."""
    places = {name: place for place, name in enumerate(table.names, start=1)}
    for column in columns:
        remark = said_of(places[column.name], column.reading)
        if remark:
            yield remark


def remarks_on_rows(table: TableSource, cells: Cells) -> Iterator[str]:
    """Yield that of some rows less is looked at, and that a sample is read for lack of memory."""
    writing = "How the cells of features are written (decimals, quotes) was looked at in"
    if table.text and cells.looked_at is not None:
        yield f"{writing} no row, as not all of them were read."
    elif table.text and cells.rows > MOST_ROWS_SURVEYED:
        yield f"{writing} the first {MOST_ROWS_SURVEYED:,} rows."
    if cells.looked_at is not None:
        yield (
            f"Read {len(cells.looked_at):,} of the {cells.rows:,} rows, drawn blind to all labels: "
            "all of them take too much of the memory that may be used "
            f"({shown(allowed())}, --memory)."
        )
