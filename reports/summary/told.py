"""A short section of a page: sentences, one picture, and where all of its numbers are."""

from dataclasses import dataclass

from ldpaudit.reports.charts.intervals import Figure
from ldpaudit.reports.text.quantities import Quantity


@dataclass(frozen=True)
class Told:
    """A short section.

    Attributes
    ----------
    key, title : str
        Its place on the page, and its heading.
    sentences : tuple of str
        Its paragraphs.
    figures : tuple of Figure
    quantities : tuple of Quantity
        Numbers that no sentence holds.
    missing : str
        Why there is no number; or empty.
    more : str
        The key of the part that holds all of its numbers; or empty.
    """

    key: str
    title: str
    sentences: tuple[str, ...] = ()
    figures: tuple[Figure, ...] = ()
    quantities: tuple[Quantity, ...] = ()
    missing: str = ""
    more: str = ""
