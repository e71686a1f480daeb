"""The report as one HTML page, and as a fragment for a notebook."""

from typing import Final

from markupsafe import Markup

from ldpaudit.reports.interface import NOWHERE, Surroundings
from ldpaudit.reports.pages.audit import audit_page, tiles_of
from ldpaudit.reports.plots import figures_of
from ldpaudit.reports.text.quantities import Printer
from ldpaudit.reports.text.wording import publish_answer
from ldpaudit.result import AuditResult
from ldpaudit.result.harmless import shown

_MOST_PLOTS: Final = 6


def render(result: AuditResult, surroundings: Surroundings = NOWHERE) -> str:  # noqa: ARG001
    """Return one file with everything in it, static charts included."""
    return audit_page(result)


def embedded(result: AuditResult) -> str:
    """Return a result as a short fragment for a notebook: the answer, its main numbers, the way on.

    It has no style, no script and no link, so every notebook shows it.
    """
    printer = Printer(result)
    publish = Markup("<strong>Publish: {}.</strong> {}").format(
        publish_answer(result), shown(result.sentence)
    )
    steps = Markup("").join(Markup("<li>{}</li>").format(shown(step)) for step in result.next_steps)
    tiles = Markup("").join(
        Markup("<tr><th>{}</th><td>{}</td><td>{}</td></tr>").format(
            tile.label, tile.text, "; ".join(filter(None, (tile.words, *tile.remarks)))
        )
        for tile in tiles_of(result, printer)
    )
    names = ", ".join(f"plot({name!r})" for name in list(figures_of(result))[:_MOST_PLOTS])
    more = ["to_html(path) writes the page", "to_frame() has every number"]
    more += [f"pictures: {names}"] if names else []
    fragment = Markup(
        "<p>{}</p>\n<ol>{}</ol>\n<table>{}</table>\n<p><small>{}<br>{}.</small></p>\n"
    )
    return str(fragment.format(publish, steps, tiles, result.access, "; ".join(more)))
