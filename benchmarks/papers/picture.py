"""Small static pictures of curves, panel beside panel."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import vl_convert


@dataclass(frozen=True)
class Line:
    """One curve; of the same name in two panels it has the same colour."""

    name: str
    x: Sequence[float]
    y: Sequence[float]


@dataclass(frozen=True)
class Panel:
    """A coordinate system with its curves."""

    title: str
    x: str
    y: str
    lines: Sequence[Line]
    y_range: tuple[float, float] | None = None
    height: int = 220


def save(path: Path, panels: Sequence[Panel], columns: int = 2) -> None:
    """Write the panels into one SVG file."""
    names = list(dict.fromkeys(line.name for panel in panels for line in panel.lines))
    specification = {
        "background": "white",
        "columns": columns,
        "concat": [_panel(panel, names) for panel in panels],
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    # No base URL is allowed: nothing is ever loaded from elsewhere.
    path.write_text(vl_convert.vegalite_to_svg(specification, allowed_base_urls=[]), "utf-8")


def _panel(panel: Panel, names: list[str]) -> dict[str, Any]:
    rows = [
        {"x": round(float(x), 5), "y": round(float(y), 5), "line": line.name}
        for line in panel.lines
        for x, y in zip(line.x, line.y, strict=True)
    ]
    scale = {"zero": False} if panel.y_range is None else {"domain": list(panel.y_range)}
    legend = {"orient": "bottom", "title": None, "columns": 2, "labelLimit": 320}
    return {
        "title": panel.title,
        "width": 330,
        "height": panel.height,
        "data": {"values": rows},
        "mark": {"type": "line", "clip": True},
        "encoding": {
            "x": {"field": "x", "type": "quantitative", "title": panel.x},
            "y": {"field": "y", "type": "quantitative", "title": panel.y, "scale": scale},
            "color": {
                "field": "line",
                "type": "nominal",
                "scale": {"domain": names, "scheme": "tableau10"},
                "legend": legend,
            },
        },
    }
