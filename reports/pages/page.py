"""A page about mechanisms: tiles, parts with figures and tables, notes; no script, no request."""

from dataclasses import dataclass

from ldpaudit import __version__
from ldpaudit.reports.html import rendered
from ldpaudit.reports.parts.part import Part, Tile
from ldpaudit.reports.text.wording import WORDS

__all__ = ["Sheet", "Tile", "render_sheet"]


@dataclass(frozen=True)
class Sheet:
    """What a page shows.

    Parameters
    ----------
    what, title : str
        The kind of page, and what it is about.
    lead : str
        The page in one sentence.
    tiles : tuple of Tile
    parts : tuple of Part
    notes : tuple of str
    more : tuple of Part
        Folded away.
    access : str
        Who may see it, where not everybody may.
    """

    what: str
    title: str
    lead: str
    tiles: tuple[Tile, ...]
    parts: tuple[Part, ...]
    notes: tuple[str, ...] = ()
    more: tuple[Part, ...] = ()
    access: str = ""


def render_sheet(sheet: Sheet) -> str:
    """Return the page."""
    return rendered("sheet.html.j2", sheet=sheet, words=WORDS, version=__version__)
