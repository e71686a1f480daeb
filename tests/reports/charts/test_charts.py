import math
from collections.abc import Callable
from xml.etree import ElementTree

import pytest

from ldpaudit.reports.charts import interval_rows
from ldpaudit.reports.charts import specifications as charts
from ldpaudit.reports.charts.curves import curve_figure, histogram_figure
from ldpaudit.reports.charts.matrix import Bar, bars
from ldpaudit.reports.charts.row_words import Row
from ldpaudit.reports.charts.specifications import ACCENT, BEYOND, DASHES, Axis, Line, Rule, draw
from ldpaudit.reports.text.quantities import Printer
from ldpaudit.result import AuditResult, Curve, Histogram

Build = Callable[..., AuditResult]
ROWS = (
    Row("within", "≥ 0.9", "certified", "lower", 0.9),
    Row("beyond", "≥ 1.4", "certified", "lower", 1.4, beyond=True),
    Row("guess", "1.1", "estimated", "estimated", 1.1, 1.0, 1.2),
    Row("counted", "0.5", "certified", "interval", 0.5, 0.4, 0.6),
)


def luminance(color: str) -> float:
    parts = [int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def drawn(title: str = "title", description: str = "description") -> charts.Drawing:
    rules = (Rule(1.0, "claimed ε = 1", "", 0, True),)
    axis = Axis("ε", 0.0, 2.0)
    return draw(lambda w: interval_rows.intervals(ROWS, rules, axis, w), title, description, "key")


@pytest.mark.parametrize("color", [ACCENT, BEYOND])
@pytest.mark.parametrize("paper", ["#ffffff", "#fcfcfa", "#14181c", "#1b2025"])
def test_colours_stand_out_on_light_and_dark_paper(color: str, paper: str) -> None:
    assert contrast(color, paper) >= 3


def test_marks_have_a_shape_and_a_place() -> None:
    root = ElementTree.fromstring(drawn().wide)
    texts = [element.text for element in root.iter("text")]
    for expected in ("within", "≥ 1.4", "claimed ε = 1", "ε", "estimated"):
        assert expected in texts
    fills = [e.attrib.get("fill") for e in root.iter("path")]
    assert fills.count(BEYOND) == 2  # the tint and the one mark beyond the claim
    assert fills.count("Canvas") == 1  # the estimate
    assert fills.count(ACCENT) == 6  # two marks, two intervals with two caps each


def test_titles_are_escaped() -> None:
    drawing = drawn("<b>&", "</svg><script>")
    assert "<b>" not in drawing.wide
    assert "<script>" not in drawing.narrow
    root = ElementTree.fromstring(drawing.wide)
    assert [root[0].text, root[1].text] == ["<b>&", "</svg><script>"]
    assert root.attrib["aria-labelledby"] == f"{root[0].attrib['id']} {root[1].attrib['id']}"


def test_narrow_chart_fits_a_phone_and_waits_for_the_style_sheet() -> None:
    drawing = drawn()
    narrow, wide = ElementTree.fromstring(drawing.narrow), ElementTree.fromstring(drawing.wide)
    assert float(narrow.attrib["width"]) <= 350
    assert narrow.attrib["display"] == "none"
    assert "display" not in wide.attrib


def test_rules_do_not_run_through_labels() -> None:
    axis = Axis("x", 0.0, 1.0)
    rules = [Rule(at, "", "") for at in (0.7, 0.2, 0.9, 0.4)]
    assert [rule.at for rule in interval_rows._in_order(rules, axis)] == [0.9, 0.7, 0.2, 0.4]


def test_curves_leave_out_points_at_infinity() -> None:
    line = Line("rdp", (1.0, 2.0, math.inf), (0.5, math.inf, 1.0))
    spec = charts.curves([line], [], Axis("α", 1, 2), Axis("nats", 0, 1), charts.WIDE)
    assert spec["layer"][0]["data"]["values"] == [{"x": 1.0, "y": 0.5, "fill": 0.5}]


def test_curve_without_two_points_has_no_chart(build: Build) -> None:
    printer = Printer(build("pass"))
    curve = Curve(id="a.b", kind="exact", x=(1, 2), value=(math.inf, 3))
    assert curve_figure([curve], printer, "title") is None
    empty = Curve(id="a.b", kind="exact", x=(), value=())
    assert curve_figure([empty], printer, "title") is None


def test_flat_zero_curve_is_drawn(build: Build) -> None:
    printer = Printer(build("pass"))
    curve = Curve(id="a.b", kind="exact", x=(0, 1), value=(0, 0))
    assert curve_figure([curve], printer, "title") is not None


def test_long_curves_are_thinned_in_the_table_and_keep_their_ends(build: Build) -> None:
    printer = Printer(build("pass"))
    xs = tuple(float(i) for i in range(1001))
    figure = curve_figure([Curve(id="a.b", kind="exact", x=xs, value=xs)], printer, "title")
    assert figure is not None
    shown = [row[1] for row in figure.table.rows]
    assert (shown[0], shown[-1]) == ("0", "1,000")
    assert len(shown) <= 26
    assert "JSON" in figure.table.remark
    assert len(figure.drawing.wide) < 12_000


def test_histogram_areas_are_shares() -> None:
    histogram = Histogram(
        id="a.b", kind="estimated", edges=(-math.inf, 0, 1, 3, math.inf), counts=(10, 20, 60, 10)
    )
    figure = histogram_figure(histogram, [], "title")
    assert figure is not None
    assert [row[3] for row in figure.table.rows] == ["0.1", "0.2", "0.6", "0.1"]
    assert figure.table.rows[0][:2] == ("−∞", "0")


@pytest.mark.parametrize(
    ("edges", "counts"), [((0, 1), (0,)), ((-math.inf, math.inf), (50,)), ((0, 0, 1), (20, 20))]
)
def test_histogram_that_cannot_be_drawn_is_left_out(
    edges: tuple[float, ...], counts: tuple[int, ...]
) -> None:
    histogram = Histogram(id="a.b", kind="estimated", edges=edges, counts=counts)
    assert histogram_figure(histogram, [], "title") is None


def test_drawing_is_the_same_every_time() -> None:
    assert drawn() == drawn()


def test_numbers_a_hundred_times_apart_stand_on_a_logarithmic_axis() -> None:
    """A bar beyond the others would hide them, and a cut one would be an untrue picture."""
    rows = [Bar(str(value), str(value), value) for value in (1.0, 2704.0, 124_218.0, math.inf)]
    spec = bars(rows, "loss", charts.WIDE)
    scales = [layer["encoding"]["x"].get("scale", {}) for layer in spec["layer"]]
    assert [scale.get("type") for scale in scales[:2]] == ["log", "log"]
    points = [datum["x"] for datum in spec["layer"][1]["data"]["values"]]
    assert points == [1.0, 2704.0, 124_218.0]
    near = bars([Bar("a", "1", 1.0), Bar("b", "99", 99.0)], "loss", charts.WIDE)
    assert "type" not in near["layer"][0]["encoding"]["x"]["scale"]


def test_of_two_equal_curves_both_are_seen() -> None:
    lines = [Line(name, (1.0, 2.0), (0.5, 1.0), dash) for name, dash in (("b", 1), ("a", 0))]
    spec = charts.curves(lines, [], Axis("α", 1, 2), Axis("nats", 0, 1), charts.WIDE)
    whole, dashed = (layer["mark"] for layer in spec["layer"])
    assert whole["strokeDash"] == DASHES[0]
    assert dashed["strokeWidth"] > whole["strokeWidth"]
