"""The page of a sweep: the answer, the frontier of leakage against utility, every point."""

import math
from collections.abc import Sequence
from typing import Final

from ldpaudit.commands.sweep.result import SIMULATED, Sweep
from ldpaudit.commands.sweep.summary import Mean, Setting
from ldpaudit.commands.sweep.text import (
    cell,
    headers,
    leakage_of,
    leakage_words,
    setting_row,
    utility_words,
)
from ldpaudit.mechanisms import traits_of
from ldpaudit.reports.charts import specifications as charts
from ldpaudit.reports.charts.frontier import (
    MOST_LINES,
    Outcome,
    Path,
    Spot,
    frontier,
    sample_of,
    shape_of,
)
from ldpaudit.reports.charts.intervals import Figure, Sample, Table, rule_sample
from ldpaudit.reports.pages.page import Sheet, Tile, render_sheet
from ldpaudit.reports.parts.part import Part
from ldpaudit.reports.text.numbers import number, percent, rows
from ldpaudit.result.access import CONFIDENTIAL

_OUTCOMES: Final[dict[str, Outcome]] = {"pass": "pass", "fail": "fail"}
_AUDIT: Final = (
    "attack.best.advantage",
    "mechanism.epsilon_lower",
    "instance_loss.mean_lower",
    "instance_loss.mean",
    "numeric.best.mse",
    "numeric.best.within_5",
    "power.min_detectable_excess",
)


def sweep_page(sweep: Sweep) -> str:
    """Return the page."""
    request = sweep.request
    settings = len(sweep.settings)
    sheet = Sheet(
        what="Sweep before releasing",
        title=f"{_amount(len(request.mechanisms), 'mechanism')}, {_amount(settings, 'setting')}",
        lead=f"Least noise with no violation found: {'; '.join(n.short() for n in sweep.least)}.",
        tiles=_tiles(sweep),
        parts=(_frontier_part(sweep), _least_part(sweep)),
        more=(_points_part(sweep),),
        notes=_notes(sweep),
        access=CONFIDENTIAL,
    )
    return render_sheet(sheet)


def _amount(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"


def _tiles(sweep: Sweep) -> tuple[Tile, ...]:
    tiles = [
        Tile("rows released in each draw", rows(sweep.rows)),
        Tile("draws of each setting", str(sweep.request.repeats)),
    ]
    if sweep.test_rows is not None:
        tiles.append(Tile("rows held out", rows(sweep.test_rows)))
    if sweep.reference is not None:
        value = number(float(sweep.reference["value"]))
        tiles.append(Tile(utility_words(sweep), value, "learnt from the true labels"))
    return tuple(tiles)


def _notes(sweep: Sweep) -> tuple[str, ...]:
    level = percent(sweep.level)
    return (
        SIMULATED,
        "No violation found is not a proof of privacy: a stronger attack may exist, and choosing "
        "among many settings by their verdicts favours those that passed by luck.",
        f"Intervals of one draw hold at {level}; averages of several draws at the lower level "
        "that the JSON states. Utility is that of one kind of learner.",
        *sweep.warnings,
    )


def _least_part(sweep: Sweep) -> Part:
    body = tuple(
        (
            least.mechanism,
            "none of the grid" if least.found is None else least.found.value_text,
            "–" if least.found is None else f"{least.found.passes} of {least.found.draws}",
            "–" if least.share is None else number(least.share[0], "down"),
            _neighbour(least.less),
            _neighbour(least.more),
            ", ".join(s.value_text for s in least.exceptions) or "none",
        )
        for least in sweep.least
    )
    head = (
        "Mechanism",
        "Least noise that passed",
        "Draws passed",
        f"Share that would pass, at least ({percent(sweep.level)})",
        "Next with less noise",
        "Next with more noise",
        "More noise, not passed",
    )
    intro = (
        "The setting of least noise at which no draw was found in violation of the policy. The "
        "bound on the share holds for all settings of a mechanism together, because one of them "
        "was chosen by its verdicts. That more noise passes too is checked, not assumed."
    )
    lead = " ".join(least.sentence() for least in sweep.least)
    tables = (("By mechanism", Table(head, body)),)
    return Part("least-noise", "Least noise", intro, tables=tables, lead=lead)


def _neighbour(setting: Setting | None) -> str:
    if setting is None:
        return "none on the grid"
    return f"{setting.value_text}: {setting.outcome} passed"


def _points_part(sweep: Sweep) -> Part:
    table = Table(headers(sweep), tuple(setting_row(s) for s in sweep.settings))
    means = {name: [m for s in sweep.settings if (m := s.mean(name))] for name in _AUDIT}
    titles = {name: some[0].title for name, some in means.items() if some}
    more = Table(
        ("Mechanism", "Value", *titles.values()),
        tuple(
            (s.mechanism, s.value_text, *(cell(s.mean(name)) for name in titles))
            for s in sweep.settings
        ),
    )
    tables = [("Leakage and utility", table), ("More of the audit", more)]
    if reasons := _reasons(sweep):
        head = ("Mechanism", "Values", "Verdict", "The worst draw")
        tables.append(("Why a setting did not pass", Table(head, reasons)))
    intro = "Every setting, averaged over its draws, with confidence intervals in brackets."
    return Part("points", "Every setting", intro, tables=tuple(tables))


def _reasons(sweep: Sweep) -> tuple[tuple[str, ...], ...]:
    """Return why settings did not pass, each reason once for a mechanism."""
    values: dict[tuple[str, str, str], list[str]] = {}
    for setting in sweep.settings:
        if setting.verdict != "pass":
            key = (setting.mechanism, setting.verdict, setting.reason)
            values.setdefault(key, []).append(setting.value_text)
    return tuple(
        (mechanism, ", ".join(texts), verdict, reason)
        for (mechanism, verdict, reason), texts in values.items()
    )


def _frontier_part(sweep: Sweep) -> Part:
    figure = frontier_figure(sweep)
    intro = (
        "Each mark is one setting. Further left, attackers learn less; further up, an honest "
        "learner learns more. Filled: every draw passed; hollow: not; orange: a draw violated the "
        "policy. A mechanism that lies above and left of another is better at that leakage."
    )
    if sweep.request.numeric:
        intro = intro.replace("further up", "further down").replace("above", "below")
    missing = "" if figure is not None else "Not drawn: leakage or utility was not measured."
    drawn = () if figure is None else (figure,)
    return Part("frontier", "Leakage against utility", intro, drawn, missing=missing)


def frontier_figure(sweep: Sweep) -> Figure | None:
    """Return leakage against utility, a line for each mechanism; None without a point."""
    paths = [
        path for name in sweep.request.mechanisms[:MOST_LINES] if (path := _path(sweep, name)).spots
    ]
    spots = [spot for path in paths for spot in path.spots]
    if not spots:
        return None
    upright, level = _references(sweep)
    x = axis_around(leakage_words(sweep), [e for s in spots for e in s.x_ends], upright)
    y = axis_around(utility_words(sweep), [e for s in spots for e in s.y_ends], level)
    title = "Leakage against utility"
    description = " ".join(
        f"{path.label}: from {number(path.spots[0].x)} and {number(path.spots[0].y)} at the least "
        f"noise to {number(path.spots[-1].x)} and {number(path.spots[-1].y)} at the most."
        for path in paths
    )
    drawing = charts.draw(
        lambda width: frontier(paths, (upright, level), x, y, width), title, description, "paths"
    )
    legend: list[tuple[Sample, str]] = [
        (sample_of(i), f"{path.label} ({shape_of(i)})") for i, path in enumerate(paths)
    ]
    legend += [(rule_sample(rule), rule.legend) for rule in (upright, level) if rule is not None]
    table = Table(headers(sweep), tuple(setting_row(s) for s in sweep.settings))
    return Figure("paths", title, description, drawing, table, tuple(legend))


def _path(sweep: Sweep, mechanism: str) -> Path:
    able = [
        (s, leak, s.test)
        for s in sweep.settings
        if s.mechanism == mechanism and (leak := leakage_of(s)) and s.test
    ]
    spots = tuple(
        Spot(
            leak.value,
            test.value,
            _ends(leak),
            _ends(test),
            f"{s.value_text[0]} = {s.value:.4g}",
            _OUTCOMES.get(s.verdict, "other"),
        )
        for s, leak, test in able
    )
    return Path(mechanism, spots)


def _ends(mean: Mean) -> tuple[float, float]:
    low = mean.value if mean.low is None else mean.low
    return low, mean.value if mean.high is None else mean.high


def _references(sweep: Sweep) -> tuple[charts.Rule | None, charts.Rule | None]:
    """Return the accuracy from the features alone, and a learner's score with the true labels."""
    name = "attack.features-only.accuracy"
    whole = (s for s in sweep.settings if traits_of(s.mechanism).features == "unchanged")
    alone = [m.value for s in whole if (m := s.mean(name)) is not None]
    upright = level = None
    if alone and not sweep.request.numeric:
        value = sum(alone) / len(alone)
        legend = f"attacker who sees the true features alone: {number(value)}"
        upright = charts.Rule(value, "", legend, 2)
    if sweep.reference is not None:
        value = float(sweep.reference["value"])
        level = charts.Rule(value, "", f"learnt from the true labels: {number(value)}", 1)
    return upright, level


def axis_around(title: str, ends: Sequence[float], rule: charts.Rule | None) -> charts.Axis:
    """Return an axis that shows these ends and a rule, with some room around them."""
    shown = [end for end in [*ends, *([] if rule is None else [rule.at])] if math.isfinite(end)]
    low, high = min(shown), max(shown)
    share = low >= 0 and high <= 1
    if not share and charts.far_apart(shown):
        return charts.Axis.around(title, shown, 0.06)
    pad = 0.06 * (high - low) or 0.05 * max(abs(high), 1.0)
    top = min(high + 1.6 * pad, 1.0) if share else high + 1.6 * pad
    return charts.Axis(title, max(low - pad, 0.0) if low >= 0 else low - pad, top)
