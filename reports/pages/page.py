"""What a page is made of, and its HTML: no script, no request to anywhere."""

import base64
import hashlib
import re
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Final

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from ldpaudit.reports.charts.figure import Figure, Table
from ldpaudit.reports.text.quantities import Quantity
from ldpaudit.reports.text.wording import MARKS, WORDS
from ldpaudit.surfaces import on_page, spelt, spoken
from ldpaudit.version import __version__

Pair = tuple[str, str]
"""A term and its text."""
_OPTION: Final = re.compile(r"(?<![\w-])--[a-z]+(-[a-z]+)*|(?<![\w-])[a-z_]+=(?=[\s,.;:)]|$)")
LARGEST: Final = 300_000
"""Bytes of a page; the contract's limit."""


@dataclass(frozen=True)
class Tile:
    """One of the few numbers at the top of a page."""

    label: str
    text: str
    words: str = ""
    mark: str = ""
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True)
class Answer:
    """The answer to a question in a line; the look is "pass", "fail" or "inconclusive"."""

    look: str
    name: str
    text: str
    quiet: str = ""
    place: str = ""
    """The key of the section that tells more."""


@dataclass(frozen=True)
class Section:
    """A part of a page: its sentences, its figures, its numbers and tables, all optional.

    ``missing`` says why it holds no number. ``within`` are its parts, ``folded`` what is read
    only where somebody unfolds it.
    ``notes``: lists with their titles; an item may begin with a name.
    """

    key: str
    title: str
    sentences: tuple[str, ...] = ()
    figures: tuple[Figure, ...] = ()
    quantities: tuple[Quantity, ...] = ()
    tables: tuple[tuple[str, Table], ...] = ()
    missing: str = ""
    answers: tuple[Answer, ...] = ()
    pairs: tuple[Pair, ...] = ()
    notes: tuple[tuple[str, tuple[Pair, ...]], ...] = ()
    code: str = ""
    within: tuple["Section", ...] = ()
    folded: tuple["Section", ...] = ()

    @property
    def tells(self) -> bool:
        """Whether it holds a number."""
        return bool(self.figures or self.quantities or self.tables)

    def small(self) -> "Section":
        """Return the section with the narrow pictures alone, which are then always shown."""
        figures = tuple(replace(figure, small=True) for figure in self.figures)
        within = tuple(part.small() for part in self.within)
        folded = tuple(replace(part, figures=()) for part in self.folded)
        return replace(self, figures=figures, within=within, folded=folded)

    def but(self, key: str) -> "Section":
        """Return the section without what is folded into it, at any depth, under a key."""
        folded = tuple(part.but(key) for part in self.folded if part.key != key)
        return replace(self, folded=folded)

    def without(self, *fields: str) -> "Section":
        """Return the section and those within it without some fields."""
        less: dict[str, Any] = dict.fromkeys(fields, ())
        return replace(self, within=tuple(p.without(*fields) for p in self.within), **less)


@dataclass(frozen=True)
class Banner:
    """The answer at the top of a page; the look is that of an :class:`Answer`, or empty."""

    look: str
    word: str
    sentences: tuple[Pair, ...]
    steps: tuple[str, ...] = ()
    remark: str = ""


@dataclass(frozen=True)
class Page:
    """What a page shows, in its order; ``head`` is its title in a browser."""

    what: str
    title: str
    sections: tuple[Section, ...]
    head: str = ""
    access: str = ""
    date: str = ""
    lead: str = ""
    banners: tuple[Banner, ...] = ()
    facts: tuple[Pair, ...] = ()
    tiles: tuple[Tile, ...] = ()
    version: str = __version__


GLOSSARY: Final = Section("glossary", "Ten words", pairs=WORDS)
"""The ten words that a reader of any page needs."""


def unbroken(text: str) -> Markup:
    """Return a sentence as HTML, spelt for who reads it; no line ends within an option's name."""
    if spoken() == "page" and not isinstance(text, Markup):
        # The server of the page makes links to the fields of these.
        return Markup(on_page(str(escape(text)), _field))  # escaped # nosec B704
    named = _OPTION.sub(r"<kbd>\g<0></kbd>", str(escape(spelt(text))))
    return Markup(named)  # escaped # nosec B704


def _field(title: str, option: str) -> str:
    return f'<kbd data-option="{option}">{escape(title)}</kbd>'


def render_page(page: Page) -> str:
    """Return the page as HTML."""
    loader = _environment().loader
    assert loader is not None
    style = loader.get_source(_environment(), "report.css")[0]
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    marked = Markup(style)  # a file of this package # nosec B704
    template = _environment().get_template("page.html.j2")
    return template.render(page=page, style=marked, style_hash=f"sha256-{digest}")


def size_of(section: Section) -> int:
    """Return how many bytes a folded section takes on a page."""
    macros: Any = _environment().get_template("macros.html.j2").module
    return len(macros.folded(section).encode())


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("ldpaudit.reports", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals["marks"] = MARKS
    environment.filters["unbroken"] = unbroken
    return environment
