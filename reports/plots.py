"""The pictures of a result, one by one, for notebooks and slides."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ldpaudit.errors import InputError, did_you_mean, quoted
from ldpaudit.reports.charts.figure import WIDE, Figure
from ldpaudit.reports.pages.page import Section
from ldpaudit.reports.pages.sections import sections_of
from ldpaudit.reports.text.quantities import Printer
from ldpaudit.result import AuditResult
from ldpaudit.result.harmless import as_identifier
from ldpaudit.work.files import WholeFiles

_ALL: Final = "all-"


@dataclass(frozen=True)
class Picture:
    """One chart of a result; a notebook shows it."""

    figure: Figure
    """The chart, with its title, its description and the table of its numbers."""
    private: bool = True
    """Whether files of it are readable by their owner alone."""

    def __repr__(self) -> str:
        return f"Picture({self.figure.title}: {self.figure.description})"

    def _repr_html_(self) -> str:
        return f"<figure>{self.figure.drawing.wide!s}</figure>"

    def save(self, path: Path | str) -> None:
        """Write the chart as SVG or PNG, by the name's ending, on white.

        Raises
        ------
        InputError
            If the name ends in neither.
        """
        import vl_convert

        path = Path(path)
        if path.suffix not in (".svg", ".png"):
            raise InputError(f"A picture is saved as .svg or .png. Got {quoted(path.name)}.")
        chart = self.figure.specification(WIDE)
        chart = chart | {"config": chart["config"] | {"background": "white"}}
        svg: str = vl_convert.vegalite_to_svg(chart, allowed_base_urls=[])
        data: bytes = svg.encode() if path.suffix == ".svg" else vl_convert.svg_to_png(svg, scale=2)
        with WholeFiles() as files:
            files.add(path, private=self.private).write(data)


def figures_of(result: AuditResult) -> dict[str, Figure]:
    """Return the figures of a result's page by name or id, those of its first sections first."""
    ids = {as_identifier(part.id): part.id for part in (*result.curves, *result.histograms)}
    found: dict[str, Figure] = {}
    for figure in _figures(sections_of(result, Printer(result))):
        name = figure.key.removeprefix(_ALL)
        if figure.key == f"{_ALL}epsilon":  # Of all bounds; the other shows what decides.
            found[name] = figure
        found.setdefault(ids.get(name, name), figure)
    return found


def _figures(sections: Iterable[Section]) -> Iterator[Figure]:
    for section in sections:
        yield from section.figures
        yield from _figures((*section.within, *section.folded))


def by_name(sections: Iterable[Section]) -> dict[str, Figure]:
    """Return the figures of some sections of a page by their names."""
    return {figure.key: figure for figure in _figures(sections)}


def one_of(figures: Mapping[str, Figure], what: str | None, *, private: bool) -> Picture:
    """Return the picture of that name, the first by default (InputError without one)."""
    name = next(iter(figures), "") if what is None else what
    if name not in figures:
        known = f"; there are {', '.join(figures)}." if figures else "; it has none."
        near = did_you_mean(str(name), figures, known)
        raise InputError(f"The result has no picture {quoted(str(name))}{near}")
    return Picture(figures[name], private)


def picture(result: AuditResult, what: str) -> Picture:
    """Return the picture of that name, or of the curve with that id.

    Raises
    ------
    InputError
        If the result has no such picture.
    """
    return one_of(figures_of(result), what, private=result.confidential)
