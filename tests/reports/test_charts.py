"""Charts: what is drawn, that no label is cut or doubled, and that colours stand out."""

import json
import math
import re
from xml.etree import ElementTree

import pytest
from browser import browse

from ldpaudit.errors import InputError
from ldpaudit.extras.choose.lines import line_figure
from ldpaudit.extras.choose.planes import Path as Course
from ldpaudit.extras.choose.planes import Spot, channel_figure, frontier_figure
from ldpaudit.extras.compare.overlay import overlay_figure
from ldpaudit.extras.probe.bars import Bar, bars_figure
from ldpaudit.reports.charts import figure as charts
from ldpaudit.reports.charts.curves import curve_figure, histogram_figure, lines_chart
from ldpaudit.reports.charts.figure import ACCENT, BEYOND, DASHES, Axis, Figure, Line, Rule, Table
from ldpaudit.reports.charts.rows import Row, group_figure, rows_chart
from ldpaudit.reports.plots import figures_of
from ldpaudit.reports.text.quantities import Printer
from ldpaudit.result import Curve, Estimate, Histogram

FILE = "a_release_of_the_year_2026_made_by_randomized_response"
TITLE = "True against re-drawn labels, a classifier of the whole release with noise-aware training"
NAMES = (TITLE, f"{TITLE}, a second one", f"{FILE}.parquet", "W" * 60 + "版" * 30, "short", "short")
TABLE = Table(("Number",), ())
ROWS = (
    Row("within", "≥ 0.9", "certified", "lower", 0.9),
    Row("beyond", "≥ 1.4", "certified", "lower", 1.4, color=BEYOND),
    Row("guess", "1.1", "estimated", "estimated", 1.1, 1.0, 1.2),
    Row("counted", "0.5", "certified", "interval", 0.5, 0.4, 0.6),
)


def luminance(color):
    parts = [int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("color", [ACCENT, BEYOND])
@pytest.mark.parametrize("paper", ["#ffffff", "#fcfcfa", "#14181c", "#1b2025"])
def test_colours_stand_out_on_light_and_dark_paper(color, paper):
    light, dark = sorted((luminance(color), luminance(paper)), reverse=True)
    assert (light + 0.05) / (dark + 0.05) >= 3


def four_rows(title="title", description="description"):
    rules, axis = (Rule(1.0, "claimed ε = 1", "", 0, True),), Axis("ε", 0.0, 2.0)
    names = ("key", title, description)
    return Figure.of(names, lambda width: rows_chart(ROWS, rules, axis, width), TABLE)


def test_marks_have_a_shape_and_a_place():
    root = ElementTree.fromstring(four_rows().drawing.wide)
    texts = [element.text for element in root.iter("text")]
    for expected in ("within", "≥ 1.4", "claimed ε = 1", "ε", "estimated"):
        assert expected in texts
    fills = [e.attrib.get("fill") for e in root.iter("path")]
    assert (fills.count(BEYOND), fills.count("Canvas"), fills.count(ACCENT)) == (2, 1, 6)


def test_titles_are_escaped_and_the_narrow_chart_waits_for_the_style_sheet():
    figure = four_rows("<b>&", "</svg><script>")
    wide, narrow = map(ElementTree.fromstring, (figure.drawing.wide, figure.drawing.narrow))
    assert "<b>" not in figure.drawing.wide
    assert "<script>" not in figure.drawing.narrow
    assert [wide[0].text, wide[1].text] == ["<b>&", "</svg><script>"]
    assert wide.attrib["aria-labelledby"] == f"{wide[0].attrib['id']} {wide[1].attrib['id']}"
    assert float(narrow.attrib["width"]) <= 350
    assert narrow.attrib["display"] == "none"
    assert "display" not in wide.attrib
    assert four_rows().drawing == four_rows().drawing


def test_curves_leave_out_points_at_infinity_and_show_both_of_two_equal_ones():
    axes = Axis("α", 1, 2), Axis("nats", 0, 1)
    line = Line("rdp", (1.0, 2.0, math.inf), (0.5, math.inf, 1.0))
    spec = lines_chart([line], [], *axes, charts.WIDE)
    assert spec["layer"][0]["data"]["values"] == [{"x": 1.0, "y": 0.5, "fill": 0.5}]
    lines = [Line(name, (1.0, 2.0), (0.5, 1.0), dash) for name, dash in (("b", 1), ("a", 0))]
    spec = lines_chart(lines, [], *axes, charts.WIDE)
    whole, dashed = (layer["mark"] for layer in spec["layer"])
    assert whole["strokeDash"] == DASHES[0]
    assert dashed["strokeWidth"] > whole["strokeWidth"]


@pytest.mark.parametrize(
    ("x", "value", "drawn"),
    [((1, 2), (math.inf, 3), False), ((), (), False), ((0, 1), (0, 0), True)],
)
def test_a_curve_needs_two_points(build, x, value, drawn):
    curve = Curve(id="a.b", kind="exact", x=x, value=value)
    assert (curve_figure([curve], Printer(build("pass")), "title") is not None) == drawn


def test_long_curves_are_thinned_in_the_table_and_keep_their_ends(build):
    xs = tuple(float(i) for i in range(1001))
    curve = Curve(id="a.b", kind="exact", x=xs, value=xs)
    figure = curve_figure([curve], Printer(build("pass")), "title")
    shown = [row[1] for row in figure.table.rows]
    assert (shown[0], shown[-1]) == ("0", "1,000")
    assert len(shown) <= 26
    assert "JSON" in figure.table.remark
    assert len(figure.drawing.wide) < 12_000


@pytest.mark.parametrize(
    ("edges", "counts", "shares"),
    [
        ((-math.inf, 0, 1, 3, math.inf), (10, 20, 60, 10), ["0.1", "0.2", "0.6", "0.1"]),
        ((0, 1), (0,), None),
        ((-math.inf, math.inf), (50,), None),
        ((0, 0, 1), (20, 20), None),
    ],
)
def test_histogram_areas_are_shares_where_it_can_be_drawn(edges, counts, shares):
    histogram = Histogram(id="a.b", kind="estimated", edges=edges, counts=counts)
    figure = histogram_figure(histogram, [], "title")
    assert (None if figure is None else [row[3] for row in figure.table.rows]) == shares
    assert figure is None or figure.table.rows[0][:2] == ("−∞", "0")


@pytest.mark.parametrize(("mean", "drawn"), [(0.0, True), (0.5, True), (2.0, True), (2.5, False)])
def test_a_mean_inside_of_a_histogram_is_a_rule_in_it(build, mean, drawn):
    histogram = Histogram(id="a.b", kind="estimated", edges=(0, 1, 2), counts=(10, 20))
    number = Estimate(id="a.mean", kind="estimated", value=mean, unit="nats")
    printer = Printer(build("pass"))
    without = histogram_figure(histogram, [], "title")
    found = histogram_figure(histogram, [printer.quantity(number)], "title")
    marks, others = (
        len(list(ElementTree.fromstring(figure.drawing.wide).iter())) for figure in (found, without)
    )
    assert (marks > others) is drawn


def test_numbers_a_hundred_times_apart_stand_on_a_logarithmic_axis():
    """A bar beyond the others would hide them, and a cut one would be an untrue picture."""
    assert not charts.far_apart([1.0, 99.0])
    rows = [Bar(str(value), str(value), value) for value in (1.0, 2704.0, 124_218.0, math.inf)]
    figure = bars_figure(("bars", "t", ""), "loss", rows, TABLE)
    root = ElementTree.fromstring(figure.drawing.wide)
    texts = {text.text for text in root.iter("text")}
    assert {"loss (logarithmic axis)", "100", "10,000", "inf"} <= texts
    assert sum(path.attrib.get("fill") == "currentColor" for path in root.iter("path")) == 3
    assert Axis.around("", [3.0, math.inf, 4.0]).high < 4.2


def estimate(i, value, side="two-sided"):
    ends = {"low": value * 0.9, "high": value * 1.1} if side == "two-sided" else {}
    fields = {"id": f"a.b{i}", "kind": "certified", "level": 0.95, "side": side, "unit": "nats"}
    return Estimate.model_validate(fields | {"value": value} | ends)


def figures(result):
    """Return a chart of every kind, all with long names."""
    printer = Printer(result)
    named = [
        (name, printer.quantity(estimate(i, 10.0**i, "lower" if i % 2 else "two-sided")))
        for i, name in enumerate(NAMES)
    ]
    points = {"x": (0.5, 900.0), "value": (0.1, 7e5)}
    curves = [Curve(id="a.b", kind="exact", title=n, x_label=TITLE, **points) for n in NAMES[:3]]
    rules = [Rule(at, f"{FILE}: features alone", "") for at in (3.0, 9e3)]
    histogram = Histogram(
        id="a.h", kind="estimated", edges=(0, 1, 2), counts=(40, 60), x_label=TITLE
    )
    bars = [Bar(name, "123,456,789", 10.0**i) for i, name in enumerate(NAMES)]
    spots = tuple(Spot(x, x**2, (x, x), (x, x**2), f"{FILE[:20]} = {x}") for x in (1.0, 50.0, 2e3))
    rule = Rule(2.0, "", "")
    return [
        group_figure(("intervals", TITLE, TITLE), [("", named)], TABLE, rules),
        group_figure(("groups", TITLE, TITLE), [(TITLE, named[:3]), (FILE, named[3:])], TABLE),
        curve_figure(curves[:1], printer, TITLE, rules=[Rule(5.0, "", FILE)]),
        overlay_figure("over", TITLE, [(n, result, curves[0]) for n in NAMES[:3]], TITLE),
        histogram_figure(histogram, [], TITLE),
        line_figure("line", TITLE, (TITLE, TITLE), [("a", [(0, 1), (1e6, 2e6)])], "exact"),
        channel_figure(NAMES, NAMES, [[1 / 6] * 6] * 6),
        bars_figure(("bars", TITLE, ""), TITLE, bars, TABLE),
        frontier_figure(TITLE, [Course(FILE, spots)], (TITLE, TITLE), (rule, rule), TABLE),
    ]


def test_no_label_is_cut_and_no_two_rows_read_alike(build, tmp_path):
    drawn = [figure for figure in figures(build("pass")) if figure is not None]
    assert len(drawn) == 9
    svgs = [(f.key, svg) for f in drawn for svg in (f.drawing.wide, f.drawing.narrow)]
    for key, svg in svgs:
        root = ElementTree.fromstring(svg)
        texts = ["".join(text.itertext()) for text in root.iter("text")]
        assert not [text for text in texts if "…" in text], key
        if key in ("intervals", "bars"):
            joined = re.sub(r"\W", "", "".join(texts))
            assert all(re.sub(r"\W", "", name) in joined for name in NAMES), key
            assert texts.count("short") == texts.count("short (2)") == 1, key
        limit = 1100 if "-w-title" in svg else 430
        assert float(root.attrib["width"]) <= limit, key
    page = "".join(svg.replace('display="none"', "") for _, svg in svgs)
    script = """
      const cut = [];
      for (const svg of document.querySelectorAll('svg')) {
        const box = svg.getBoundingClientRect();
        for (const text of svg.querySelectorAll('text')) {
          const t = text.getBoundingClientRect();
          if (t.left < box.left - 16 || t.right > box.right + 16 || t.top < box.top - 3
              || t.bottom > box.bottom + 3)
            cut.push([svg.getAttribute('aria-labelledby'), text.textContent, t.right - box.right]);
        }
      }
      document.title = JSON.stringify(cut);"""
    file = tmp_path / "charts.html"
    file.write_text(f"<!DOCTYPE html><meta charset=utf-8>{page}<script>{script}</script>")
    title = re.search(r"<title>(.*?)</title>", browse(file, tmp_path, "--dump-dom"))
    assert json.loads(title[1]) == []


def test_each_picture_of_a_result_can_be_had_alone(build, tmp_path):
    result = build("pass")
    figures = figures_of(result)
    assert {"epsilon", "attacks", "instance_loss.exceedance"} <= figures.keys()
    for name in figures:
        assert "<svg" in result.plot(name)._repr_html_()
    for ending, start in ((".svg", b"<svg"), (".png", b"\x89PNG")):
        result.plot("attacks").save(tmp_path / f"attacks{ending}")
        assert (tmp_path / f"attacks{ending}").read_bytes().startswith(start)
    with pytest.raises(InputError, match="did you mean 'epsilon'"):
        result.plot("epsilom")
    with pytest.raises(InputError, match=r"saved as \.svg or \.png"):
        result.plot().save(tmp_path / "attacks.gif")
