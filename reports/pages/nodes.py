"""The page of several private columns, or of several releases: a table, then each part folded."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from markupsafe import Markup

from ldpaudit.reports.charts.intervals import Figure, Table
from ldpaudit.reports.charts.svg import Drawing
from ldpaudit.reports.pages.common import Pair
from ldpaudit.reports.pages.numbers import numbers_of
from ldpaudit.reports.pages.subject import claim_in_words
from ldpaudit.reports.pages.view import View, view_of
from ldpaudit.reports.parts.part import Part
from ldpaudit.reports.text.harmless import shown
from ldpaudit.reports.text.numbers import rows
from ldpaudit.reports.text.pieces import Piece, kind_of, table_of, worst_first
from ldpaudit.reports.text.quantities import Quantity
from ldpaudit.result import AuditResult, Verdict

LEVELS: Final = (
    "",
    "Its tables are left out to keep this page small; the JSON result has them.",
    "Its pictures and tables are left out to keep this page small; the JSON result has them.",
)
"""How much of a part a page shows, and what it says of the rest."""
_HEADINGS: Final = {"Column": "Private columns", "Release": "Releases", "Stratum": "Strata"}
_PLACES: Final = re.compile(r'(\s(?:id|href|aria-labelledby)=")([^"]*)')


@dataclass(frozen=True)
class PieceRow:
    """A row of the table of parts; ``within`` says whether it is a column of a release above."""

    place: str
    kind: Verdict
    cells: tuple[str, ...]
    within: bool


@dataclass(frozen=True)
class NodePage:
    """What a page of several parts has besides that of one: the worst part first."""

    heading: str
    each: str
    headers: tuple[str, ...]
    rows: tuple[PieceRow, ...]
    pieces: tuple[Piece, ...]
    numbers: Table


def node_page_of(result: AuditResult, most: int) -> NodePage:
    """Return the parts of a result; the table of their numbers lists at most so many of each."""
    parts = worst_first(result)
    kind = kind_of(parts)
    heading, each = _HEADINGS[kind], f"Each {kind.lower()}"
    if any(release.labels for release in result.releases):
        heading, each = "Releases and their columns", "Each release and column"
    headers, cells = table_of(parts)
    table = tuple(map(_row, parts, cells))
    return NodePage(heading, each, headers, table, parts, _numbers(parts, most))


def _row(piece: Piece, cells: tuple[str, ...]) -> PieceRow:
    return PieceRow(piece.place, piece.result.verdict, cells, "/" in piece.key)


def _numbers(parts: Sequence[Piece], most: int) -> Table:
    """Return the numbers of all parts, those of one id in one row."""
    by_id: dict[str, dict[str, Quantity]] = {}
    for piece in parts:
        for _, quantity in numbers_of(piece.result, piece.printer, most):
            by_id.setdefault(quantity.id, {})[piece.key] = quantity
    listed = tuple(_number_row(parts, found) for found in by_id.values())
    left = sum(len(piece.result.estimates) for piece in parts) - sum(map(len, by_id.values()))
    remark = f"{rows(left)} more numbers are in the JSON result." if left else ""
    return Table(("Id", "What", *(piece.short for piece in parts)), listed, remark)


def _number_row(parts: Sequence[Piece], found: dict[str, Quantity]) -> tuple[str, ...]:
    first = next(iter(found.values()))
    unit = first.estimate.unit
    what = f"{first.words}{f'; {unit}' if unit != '1' else ''}"
    return first.id, what, *(_text(found.get(piece.key)) for piece in parts)


def _text(quantity: Quantity | None) -> str:
    if quantity is None:
        return "–"
    return f"{quantity.text} ({quantity.interval})" if quantity.interval else quantity.text


def facts_of(piece: Piece) -> Iterator[Pair]:
    """Yield what a part claims, and what was measured of it."""
    yield "Claim", claim_in_words(piece.result, piece.printer)
    if piece.result.mechanism.description:
        yield "In words", shown(piece.result.mechanism.description)
    yield from piece.found.items()


def views_of(piece: Piece) -> Iterator[View]:
    """Yield the view of a part on a page of several, from the fullest to the shortest."""
    view = view_of(piece.result)
    parts = tuple(filter(_tells, (replace(part, figures=()) for part in view.parts)))
    keys = {part.key for part in parts}
    pictures = tuple(
        replace(t, figures=tuple(map(_small, t.figures)), more=t.more if t.more in keys else "")
        for t in view.told
    )
    alone = tuple(replace(t, more="") for t in pictures)
    yield replace(view, told=pictures, parts=parts)
    yield replace(view, told=alone, parts=())
    yield replace(view, told=tuple(replace(t, figures=()) for t in alone), parts=())


def _tells(part: Part) -> bool:
    return bool(part.quantities or part.tables)


def _small(figure: Figure) -> Figure:
    """Return a figure with its narrow picture alone, which is then always shown."""
    drawn = figure.drawing.narrow.replace(' display="none"', "", 1) or figure.drawing.wide
    narrow = Markup(drawn)  # markup already # nosec B704
    return replace(figure, drawing=Drawing(Markup(), narrow))


def anchored(body: str, place: str) -> Markup:
    """Return a part's body whose ids are its own; marks are those of the page.

    Text and attributes are escaped: only a tag of the template holds such a quote.
    """

    def named(found: re.Match[str]) -> str:
        ids = (re.sub("^(#?)(?!#?mark-)", rf"\g<1>{place}-", word) for word in found[2].split())
        return found[1] + " ".join(ids)

    placed = _PLACES.sub(named, body)
    return Markup(placed)  # markup already # nosec B704


def fitting(sizes: Sequence[Sequence[int]], room: int) -> list[int]:
    """Return the level at which each part fits into so many bytes: the worst part keeps most.

    Parameters
    ----------
    sizes : for each part, the worst first, its size at every level
    room : int
        Bytes for all of them.
    """
    levels = [0] * len(sizes)
    for level in range(1, len(LEVELS)):
        for position in reversed(range(len(sizes))):
            if sum(size[at] for size, at in zip(sizes, levels, strict=True)) <= room:
                return levels
            levels[position] = level
    return levels
