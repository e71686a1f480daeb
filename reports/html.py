"""The report as one HTML page, and as a fragment for a notebook."""

from collections.abc import Iterable
from typing import Final

from markupsafe import Markup

from ldpaudit.reports.interface import NOWHERE, Surroundings
from ldpaudit.reports.pages.audit import audit_page, tiles_of
from ldpaudit.reports.pages.page import Tile
from ldpaudit.reports.plots import figures_of
from ldpaudit.reports.text.quantities import Printer
from ldpaudit.reports.text.wording import publish_answer
from ldpaudit.result import AuditResult
from ldpaudit.result.harmless import PHRASE, shown
from ldpaudit.surfaces import spelt

_MOST_PLOTS: Final = 6


def render(result: AuditResult, surroundings: Surroundings = NOWHERE) -> str:  # noqa: ARG001
    """Return one file with everything in it, static charts included."""
    return audit_page(result)


def embedded(result: AuditResult) -> str:
    """Return a result as a short fragment for a notebook."""
    answer = Markup("<strong>Publish: {}.</strong> {}").format(
        publish_answer(result), spelt(shown(result.sentence))
    )
    tiles = tiles_of(result, Printer(result))
    names = ", ".join(f"plot({name!r})" for name in list(figures_of(result))[:_MOST_PLOTS])
    pictures = f"; pictures: {names}" if names else ""
    return fragment(answer, result.next_steps, tiles, result.access, pictures)


def short(sentence: str, pictures: list[str]) -> str:
    """Return what a notebook shows of a result that has no tiles: its sentence and the way on."""
    named = ", ".join(f"plot({name!r})" for name in pictures[:_MOST_PLOTS])
    more = "to_html(path) writes the page; to_frame() has its numbers"
    return str(
        Markup("<p>{}</p>\n<p><small>{}{}.</small></p>\n").format(
            shown(sentence, 3 * PHRASE), more, f"; pictures: {named}" if named else ""
        )
    )


def fragment(
    answer: str, steps: Iterable[str], tiles: Iterable[Tile], access: str, pictures: str = ""
) -> str:
    """Return what a notebook shows: the answer, what to do, the main numbers, the way on."""
    # It has no style, no script and no link, so every notebook shows it.
    listed = Markup("").join(Markup("<li>{}</li>").format(spelt(shown(step))) for step in steps)
    rows = Markup("").join(
        Markup("<tr><th>{}</th><td>{}</td><td>{}</td></tr>").format(
            tile.label, tile.text, "; ".join(filter(None, (tile.words, *tile.remarks)))
        )
        for tile in tiles
    )
    more = f"to_html(path) writes the page; to_frame() has every number{pictures}"
    return str(
        Markup("<p>{}</p>\n{}<table>{}</table>\n<p><small>{}<br>{}.</small></p>\n").format(
            answer, listed and Markup("<ol>{}</ol>\n").format(listed), rows, spelt(access), more
        )
    )
