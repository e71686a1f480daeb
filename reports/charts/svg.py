"""Static SVG that inherits the page's colour and font and needs no style sheet."""

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final
from xml.etree import ElementTree

from markupsafe import Markup

from ldpaudit.reports.charts.measuring import width
from ldpaudit.running.memory import has_addresses_for

_NAMESPACE: Final = "{http://www.w3.org/2000/svg}"
_DROPPED: Final = frozenset({"class", "role", "pointer-events", "font-family", "stroke-miterlimit"})
_DEFAULTS: Final = {
    "opacity": "1",
    "stroke-width": "1",
    "stroke-opacity": "1",
    "text-anchor": "start",
    "font-weight": "normal",
    "transform": "translate(0,0)",
    "fill": "transparent",
}
_LONG_DECIMAL: Final = re.compile(r"-?\d+\.\d{2,}(?:e-?\d+)?")
_TRANSLATION: Final = re.compile(r"translate\(([-\d.e]+)[, ]+([-\d.e]+)\)")
_SIZE: Final = 13
"""Of letters that state no size, in pixels."""
_GEOMETRY: Final = frozenset({"d", "transform", "x", "y", "x1", "x2", "y1", "y2", "cx", "cy"})

_ADDRESSES: Final = 72 << 30
"""Bytes of addresses that the engine behind the charts reserves; it aborts where it cannot."""
_NOT_DRAWN: Final = Markup(
    "<p>This chart is not drawn, because the memory of the process was limited (<code>ulimit -v"
    "</code>). The table has its numbers.</p>"
)


@dataclass(frozen=True)
class Drawing:
    """A chart in two widths: one for a wide page, one for a narrow one."""

    wide: Markup
    narrow: Markup


def inline_svg(
    specification: dict[str, Any],
    title: str,
    description: str,
    key: str,
    *,
    twin: str | None = None,
) -> Markup:
    """Return a Vega-Lite chart as an ``<svg>`` element for an HTML page.

    Parameters
    ----------
    specification : dict
        The Vega-Lite chart, its data inside.
    title, description : str
        What a screen reader says instead.
    key : str
        The beginning of the element ids, unique on the page.
    twin : str, optional
        The key of the same chart in another size: this one is shown only where a style sheet says
        so, and has the description of its twin.
    """
    if not has_addresses_for(_ADDRESSES):
        return Markup("") if twin else _NOT_DRAWN
    import vl_convert

    # vl-convert runs Vega in a sandbox of its own; no base URL means that it may load nothing.
    text = vl_convert.vegalite_to_svg(specification, allowed_base_urls=[])
    root = ElementTree.fromstring(text)  # drawn here, a moment ago # nosec B314
    _clean(root)
    left, top, right, bottom = _extent(root)
    root.attrib.clear()
    root.attrib |= {
        "width": str(right - left),
        "height": str(bottom - top),
        "viewBox": f"{left} {top} {right - left} {bottom - top}",
        "role": "img",
        "aria-labelledby": f"{key}-title {twin or key}-desc",
        "font-family": "system-ui, sans-serif",
        "font-size": str(_SIZE),
    } | ({"display": "none"} if twin else {})
    texts = [("title", title)] if twin else [("title", title), ("desc", description)]
    for position, (tag, words) in enumerate(texts):
        element = ElementTree.Element(tag, {"id": f"{key}-{tag}"})
        element.text = words
        root.insert(position, element)
    drawn = ElementTree.tostring(root, encoding="unicode")
    return Markup(drawn)  # escapes text # nosec B704


def _extent(root: ElementTree.Element) -> tuple[int, int, int, int]:
    """Return left, top, right and bottom of a picture that cuts no word, in whole pixels."""
    boxes = [(0.0, 0.0, float(root.attrib["width"]), float(root.attrib["height"])), *words(root)]
    lefts, tops, rights, bottoms = zip(*boxes, strict=True)
    return (
        math.floor(min(lefts)),
        math.floor(min(tops)),
        *map(math.ceil, (max(rights), max(bottoms))),
    )


def words(
    element: ElementTree.Element, x: float = 0.0, y: float = 0.0
) -> Iterator[tuple[float, float, float, float]]:
    """Yield left, top, right and bottom of each line of words in a chart, in pixels."""
    if place := _TRANSLATION.search(element.attrib.get("transform", "")):
        x, y = x + float(place[1]), y + float(place[2])
    if element.tag == "text":
        yield from _lines(element, x, y)
    for child in element if element.tag != "text" else ():
        yield from words(child, x, y)


def _lines(
    text: ElementTree.Element, x: float, y: float
) -> Iterator[tuple[float, float, float, float]]:
    size = float(text.attrib.get("font-size", _SIZE))
    bold = text.attrib.get("font-weight") == "bold"
    share = {"end": 1.0, "middle": 0.5}.get(text.attrib.get("text-anchor", ""), 0.0)
    for line in list(text) or [text]:
        y += float(line.attrib.get("dy", 0.0))
        wide = width(line.text or "", size, bold=bold)
        yield x - share * wide, y - size, x + (1 - share) * wide, y + size / 3


def _clean(element: ElementTree.Element) -> None:
    """Drop what draws nothing, in ``element`` and below it."""
    element.tag = element.tag.removeprefix(_NAMESPACE)
    element.attrib = dict(_kept(element))
    if element.tag == "text" and "stroke" in element.attrib:
        element.attrib |= {"paint-order": "stroke", "stroke-linejoin": "round"}
    for child in list(element):
        _clean(child)
        if _is_empty(child):
            element.remove(child)
        elif child.tag == "g" and not child.attrib:
            position = list(element).index(child)
            element.remove(child)
            for offset, grandchild in enumerate(list(child)):
                element.insert(position + offset, grandchild)


def _kept(element: ElementTree.Element) -> Iterator[tuple[str, str]]:
    for attribute, value in element.attrib.items():
        if attribute in _DROPPED or attribute.startswith("aria-"):
            continue
        if _DEFAULTS.get(attribute) == value:
            continue
        yield attribute, _shortened(attribute, value)


def _shortened(attribute: str, value: str) -> str:
    if attribute in _GEOMETRY:
        return _LONG_DECIMAL.sub(_short, value)
    return value.removesuffix("px") if attribute == "font-size" else value


def _short(match: re.Match[str]) -> str:
    return f"{float(match[0]):.1f}".removesuffix(".0").replace(
        "-0", "0", 1 if match[0] == "-0" else 0
    )


def _is_empty(element: ElementTree.Element) -> bool:
    if element.tag in ("g", "defs"):
        return len(element) == 0
    if element.attrib.get("stroke-opacity") == "0":
        return True
    draws = element.attrib.get("stroke") or element.attrib.get("fill", "") not in ("", "none")
    invisible = element.tag in ("path", "line", "rect") and not draws
    return (
        invisible
        or element.attrib.get("d") == ""
        or (element.tag == "text" and not element.text and len(element) == 0)
    )
