"""What the commands about mechanisms have in common: a result with a page."""

from abc import abstractmethod
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from ldpaudit.doors import Stored
from ldpaudit.result.shown import Shown
from ldpaudit.work.documents import as_json

if TYPE_CHECKING:
    pass
from ldpaudit.reports.pages.page import GLOSSARY, Page, Section, Tile, render_page


def render_sheet(
    what: str,
    title: str,
    lead: str,
    tiles: tuple[Tile, ...],
    sections: tuple[Section, ...],
    *,
    notes: tuple[str, ...] = (),
    more: tuple[Section, ...] = (),
    access: str = "",
) -> str:
    """Return the page of a command about mechanisms; ``more`` is folded away."""
    items = (("", tuple(("", note) for note in notes)),)
    end = (
        *((Section("notes", "Notes", notes=items),) if notes else ()),
        *((Section("to-look-up", "To look up", folded=more),) if more else ()),
        GLOSSARY,
    )
    page = Page(what, title, (*sections, *end), access=access, lead=lead, tiles=tiles)
    return render_page(page)


class Paged(Shown, Stored):
    """What a command found, with a page."""

    @property
    def _private(self) -> bool:
        return self.confidential

    def _html(self) -> str:
        return self.page()

    def _json(self) -> str:
        return as_json(self.stored())

    @abstractmethod
    def page(self) -> str:
        """Return its page, as HTML."""

    def makers(self) -> Mapping[str, Callable[[], str]]:
        """Return what makes the JSON file and the page."""
        return {**super().makers(), "html": self.page}
