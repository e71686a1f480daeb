"""No label is cut in any chart at any width, and no two rows are called the same."""

import json
import math
import re
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import pytest
from browser import browse

from ldpaudit.reports.charts import specifications as charts
from ldpaudit.reports.charts.comparison import NamedCurve, overlay_figure
from ldpaudit.reports.charts.curves import curve_figure, histogram_figure
from ldpaudit.reports.charts.frontier import Path as Line
from ldpaudit.reports.charts.frontier import Spot, frontier
from ldpaudit.reports.charts.intervals import Figure, Table, group_figure, interval_figure
from ldpaudit.reports.charts.matrix import Bar
from ldpaudit.reports.charts.measuring import distinct, width, wrapped
from ldpaudit.reports.charts.mechanism import bars_figure, channel_figure, line_figure
from ldpaudit.reports.charts.svg import words
from ldpaudit.reports.text.quantities import Printer
from ldpaudit.result import AuditResult, Curve, Estimate, Histogram

Build = Callable[..., AuditResult]
FILE = "a_release_of_the_year_2026_made_by_randomized_response"
TITLE = "True against re-drawn labels, a classifier of the whole release with noise-aware training"
NAMES = (TITLE, f"{TITLE}, a second one", f"{FILE}.parquet", "W" * 60, "short", "short")
TABLE = Table(("Number",), ())


def estimate(i: int, value: float, side: str = "two-sided") -> Estimate:
    ends = {"low": value * 0.9, "high": value * 1.1} if side == "two-sided" else {}
    fields = {"id": f"a.b{i}", "kind": "certified", "level": 0.95, "side": side, "unit": "nats"}
    return Estimate.model_validate(fields | {"value": value} | ends)


def curve(title: str) -> Curve:
    points = {"x": (0.5, 900.0), "value": (0.1, 7e5)}
    return Curve(id="a.b", kind="exact", title=title, x_label=TITLE, **points)


def figures(result: AuditResult) -> list[Figure]:
    """Return a chart of every kind, all with long names."""
    printer = Printer(result)
    named = [
        (name, printer.quantity(estimate(i, 10.0**i, "lower" if i % 2 else "two-sided")))
        for i, name in enumerate(NAMES)
    ]
    rules = [charts.Rule(at, f"{FILE}: features alone", "") for at in (3.0, 9e3)]
    groups = [(TITLE, named[:3]), (FILE, named[3:])]
    overlaid = [NamedCurve(name, result, curve(name)) for name in NAMES[:3]]
    histogram = Histogram(
        id="a.h", kind="estimated", edges=(0, 1, 2), counts=(40, 60), x_label=TITLE
    )
    bars = [Bar(name, "123,456,789", 10.0**i) for i, name in enumerate(NAMES)]
    spots = tuple(Spot(x, x**2, (x, x), (x, x**2), f"{FILE[:20]} = {x}") for x in (1.0, 50.0, 2e3))
    axis = charts.Axis(TITLE, 0.5, 1e7, logarithmic=True)
    rule = charts.Rule(2.0, "", "")
    drawing = charts.draw(
        lambda w: frontier([Line(FILE, spots)], (rule, rule), axis, axis, w), TITLE, "", "frontier"
    )
    every = [
        interval_figure("intervals", TITLE, TITLE, named, TABLE, rules),
        group_figure(("groups", TITLE, TITLE), groups, TABLE, rules),
        curve_figure([curve(TITLE)], printer, TITLE, [charts.Rule(5.0, "", FILE)]),
        overlay_figure("over", TITLE, overlaid, TITLE),
        histogram_figure(histogram, [], TITLE),
        line_figure("line", TITLE, (TITLE, TITLE), [("a", [(0, 1), (1e6, 2e6)])], "exact"),
        channel_figure(NAMES, NAMES, [[1 / 6] * 6] * 6),
        bars_figure(("bars", TITLE, ""), TITLE, bars, TABLE),
        Figure("frontier", TITLE, "", drawing, TABLE),
    ]
    return [figure for figure in every if figure is not None]


@pytest.fixture(scope="module")
def drawn(build: Build) -> list[tuple[str, str]]:
    every = figures(build("pass"))
    assert len(every) == 9
    return [(f.key, svg) for f in every for svg in (f.drawing.wide, f.drawing.narrow)]


def test_every_label_lies_within_its_chart(drawn: list[tuple[str, str]]) -> None:
    for key, svg in drawn:
        root = ElementTree.fromstring(svg)
        left, top, wide, tall = map(float, root.attrib["viewBox"].split())
        for x0, y0, x1, y1 in words(root):
            assert left <= x0 <= x1 <= left + wide, key
            assert top <= y0 <= y1 <= top + tall, key
        assert wide <= 1100 if "-w-title" in svg else wide <= 420, key


def test_no_label_is_shortened_and_no_two_rows_read_alike(drawn: list[tuple[str, str]]) -> None:
    for key, svg in drawn:
        texts = ["".join(text.itertext()) for text in ElementTree.fromstring(svg).iter("text")]
        assert not [text for text in texts if "…" in text], key
        if key in ("intervals", "bars"):
            joined = re.sub(r"\W", "", "".join(texts))
            assert all(re.sub(r"\W", "", name) in joined for name in NAMES), key
            assert texts.count("short") == texts.count("short (2)") == 1, key


def test_a_line_is_broken_after_a_hyphen_rather_than_anywhere() -> None:
    lines = wrapped(f"{FILE}.parquet", 205, 13)
    assert len(lines) > 1
    assert all(line.endswith("_") for line in lines[:-1])
    assert "".join(lines) == f"{FILE}.parquet"
    assert max(width(line, 13) for line in wrapped("i" * 500 + " " + "W" * 80, 100, 13)) <= 100
    assert wrapped("", 10, 13) == [""]
    assert distinct(["a", "a", "a (2)", "b"]) == ["a", "a (2)", "a (2) (2)", "b"]


def test_ticks_are_written_as_all_numbers_are(drawn: list[tuple[str, str]]) -> None:
    texts = {text.text for text in ElementTree.fromstring(dict(drawn)["bars"]).iter("text")}
    assert {"1", "100", "10,000"} <= texts
    assert charts.Axis.around("", [3.0, math.inf, 4.0]).high < 4.2


def test_a_browser_draws_every_label_within_its_chart(
    drawn: list[tuple[str, str]], tmp_path: Path
) -> None:
    page = "".join(svg.replace('display="none"', "") for _, svg in drawn)
    script = """
      const cut = [];
      for (const svg of document.querySelectorAll('svg')) {
        const box = svg.getBoundingClientRect();
        for (const text of svg.querySelectorAll('text')) {
          const t = text.getBoundingClientRect();
          if (t.left < box.left - 1 || t.right > box.right + 1 || t.top < box.top - 3
              || t.bottom > box.bottom + 3) cut.push(text.textContent);
        }
      }
      document.title = JSON.stringify(cut);"""
    file = tmp_path / "charts.html"
    file.write_text(f"<!DOCTYPE html><meta charset=utf-8>{page}<script>{script}</script>")
    title = re.search(r"<title>(.*?)</title>", browse(file, tmp_path, "--dump-dom"))
    assert title is not None
    assert json.loads(title[1]) == []
