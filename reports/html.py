"""The report as one HTML page: no script, no request to anywhere."""

import base64
import hashlib
from functools import cache, partial

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from ldpaudit.reports.interface import NOWHERE, Surroundings
from ldpaudit.reports.pages.nodes import LEVELS, anchored, facts_of, fitting, node_page_of, views_of
from ldpaudit.reports.pages.numbers import MOST_NUMBERS, number_table
from ldpaudit.reports.pages.view import DERIVED, MOST_WARNINGS, View, view_of, with_numbers
from ldpaudit.reports.text.harmless import shown
from ldpaudit.reports.text.pieces import Piece
from ldpaudit.reports.text.wording import LIMITS, MARKS, TERMS, WORDS
from ldpaudit.result import AuditResult

LARGEST_PAGE = 300_000
"""Bytes; the contract's limit."""


class HtmlReport:
    """One file with everything in it, static charts included."""

    @property
    def name(self) -> str:
        """The name in the contract."""
        return "html"

    @property
    def suffix(self) -> str:
        """How the names of its files end."""
        return ".html"

    def render(self, result: AuditResult, surroundings: Surroundings = NOWHERE) -> str:  # noqa: ARG002
        """Return the page; where it grows too large, its list of numbers gives way."""
        paged = _node_page if result.parts else _page
        view = view_of(result)
        page = paged(view, MOST_NUMBERS)
        return page if len(page.encode()) < LARGEST_PAGE else paged(with_numbers(view, most=0), 0)


def _page(view: View, most: int, template: str = "report.html.j2", **more: object) -> str:  # noqa: ARG001
    numbers, methods = number_table(view.numbers)
    return rendered(
        template,
        view=view,
        numbers=numbers,
        methods=methods,
        marks=MARKS,
        limits=LIMITS,
        words=WORDS,
        terms=TERMS,
        most_warnings=MOST_WARNINGS,
        most_derived=DERIVED,
        **more,
    )


def _node_page(view: View, most: int) -> str:
    """Return the page of several parts; as much of each as the page has room for."""
    node = node_page_of(view.result, most)
    page = partial(_page, view, most, "node.html.j2", node=node)
    bodies = [_bodies(piece) for piece in node.pieces]
    empty = page(bodies=[(piece, "") for piece in node.pieces])
    sizes = [[len(body.encode()) for body in each] for each in bodies]
    levels = fitting(sizes, LARGEST_PAGE - len(empty.encode()) - 1)
    chosen = [each[level] for each, level in zip(bodies, levels, strict=True)]
    return page(bodies=list(zip(node.pieces, chosen, strict=True)))


def _bodies(piece: Piece) -> list[str]:
    """Return what a page says of a part, from the fullest to the shortest."""
    template, facts = _environment().get_template("piece.html.j2"), tuple(facts_of(piece))
    shared = {"facts": facts, "most_warnings": MOST_WARNINGS}
    return [
        anchored(template.render(view=view, left_out=left_out, **shared), piece.place)
        for view, left_out in zip(views_of(piece), LEVELS, strict=True)
    ]


def rendered(template: str, **values: object) -> str:
    """Return a page from one of the templates, with the style sheet and its hash."""
    style = _style()
    marked = Markup(style)  # a file of this package # nosec B704
    page = _environment().get_template(template)
    return page.render(style=marked, style_hash=_hash(style), **values)


def embedded(result: AuditResult) -> str:
    """Return the page as a fragment for a notebook: the verdict, then the page in a frame.

    The frame may run nothing and reach nothing; where a notebook takes frames away, the verdict is
    still there.
    """
    page = HtmlReport().render(result)
    return str(
        Markup(
            "<p><strong>{sentence}</strong></p>\n"
            '<iframe title="Report of the audit" sandbox="" width="100%" height="800" '
            'frameborder="0" srcdoc="{page}"></iframe>\n'
        ).format(sentence=escape(shown(result.sentence)), page=escape(str(page)))
    )


@cache
def _environment() -> Environment:
    return Environment(
        loader=PackageLoader("ldpaudit.reports", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def _style() -> str:
    loader = _environment().loader
    assert loader is not None
    return loader.get_source(_environment(), "report.css")[0]


def _hash(style: str) -> str:
    """Return the hash by which a content-security policy allows the style sheet."""
    digest = hashlib.sha256(style.encode()).digest()
    return f"sha256-{base64.b64encode(digest).decode()}"
