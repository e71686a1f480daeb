"""Static SVG that inherits the page's colour and font and needs no style sheet."""

import re
import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final
from xml.etree import ElementTree

from markupsafe import Markup

from ldpaudit.work.memory import has_addresses_for

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


def prepare() -> None:
    """Start the engine behind the charts, which takes half a second, in a thread of its own."""
    if has_addresses_for(_ADDRESSES):
        threading.Thread(target=_started, name="charts").start()


def _started() -> None:
    import vl_convert

    # A page says itself what it lacks.
    with suppress(Exception):
        nothing = {"data": {"values": []}, "mark": "point"}
        vl_convert.vegalite_to_svg(nothing, allowed_base_urls=[])


def inline_svg(
    specification: dict[str, Any],
    title: str,
    description: str,
    key: str,
    *,
    twin: str | None = None,
    hidden: bool = True,
) -> Markup:
    """Return a Vega-Lite chart as an ``<svg>`` element: a screen reader says title and description.

    Ids begin with ``key``. ``twin`` is the key of the same chart in another size, whose description
    this one has; unless it is not ``hidden``, a style sheet says where it is shown.
    """
    if not has_addresses_for(_ADDRESSES):
        return Markup("") if twin and hidden else _NOT_DRAWN
    import vl_convert

    # vl-convert runs Vega in a sandbox of its own; no base URL means that it may load nothing.
    text = vl_convert.vegalite_to_svg(specification, allowed_base_urls=[])
    root = ElementTree.fromstring(text)  # drawn here, a moment ago # nosec B314
    _clean(root)
    wide, tall = root.attrib["width"], root.attrib["height"]
    root.attrib = {
        "width": wide,
        "height": tall,
        "viewBox": f"0 0 {wide} {tall}",
        "role": "img",
        "aria-labelledby": f"{key}-title {twin or key}-desc",
        "font-family": "system-ui, sans-serif",
        "font-size": "13",
    }
    root.attrib |= {"display": "none"} if twin and hidden else {}
    for place, (tag, words) in enumerate((("title", title), ("desc", description))):
        if not (twin and tag == "desc"):
            element = ElementTree.Element(tag, {"id": f"{key}-{tag}"})
            element.text = words
            root.insert(place, element)
    drawn = ElementTree.tostring(root, encoding="unicode")
    return Markup(drawn)  # escapes text # nosec B704


def _clean(element: ElementTree.Element) -> None:
    """Drop what draws nothing, in ``element`` and below it."""
    element.tag = element.tag.removeprefix(_NAMESPACE)
    element.attrib = dict(_kept(element))
    if element.tag == "text" and "stroke" in element.attrib:
        element.attrib |= {"paint-order": "stroke", "stroke-linejoin": "round"}
    for child in list(element):
        _clean(child)
        plain = child.tag == "g" and not child.attrib
        if plain or _is_empty(child):
            place = list(element).index(child)
            element[place : place + 1] = list(child) if plain else []


def _kept(element: ElementTree.Element) -> Iterator[tuple[str, str]]:
    for name, value in element.attrib.items():
        unused = name in _DROPPED or name.startswith("aria-") or _DEFAULTS.get(name) == value
        if not unused:
            short = _LONG_DECIMAL.sub(_short, value) if name in _GEOMETRY else value
            yield name, short.removesuffix("px") if name == "font-size" else short


def _short(match: re.Match[str]) -> str:
    return f"{float(match[0]):.1f}".removesuffix(".0").replace("-0", "0", match[0] == "-0")


def _is_empty(element: ElementTree.Element) -> bool:
    if element.tag in ("g", "defs"):
        return len(element) == 0
    if element.tag == "text":  # A label that has no room is written without being seen.
        unseen = element.attrib.get("opacity") == "0"
        return unseen or (not element.text and len(element) == 0)
    drawn = element.attrib.get("stroke") or element.attrib.get("fill", "") not in ("", "none")
    unseen = element.attrib.get("stroke-opacity") == "0" or element.attrib.get("d") == ""
    return unseen or (element.tag in ("path", "line", "rect") and not drawn)
