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
    value_text,
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


def sweep_page(found: Sweep) -> str:
    """Return the page."""
    request = found.request
    settings = len(found.settings)
    sheet = Sheet(
        what="Sweep before releasing",
        title=f"{_amount(len(request.mechanisms), 'mechanism')}, {_amount(settings, 'setting')}",
        lead=f"Least noise with no violation found: {'; '.join(n.short() for n in found.least)}.",
        tiles=_tiles(found),
        parts=(_frontier_part(found), _least_part(found), _points_part(found)),
        notes=_notes(found),
    )
    return render_sheet(sheet)


def _amount(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"


def _tiles(found: Sweep) -> tuple[Tile, ...]:
    tiles = [
        Tile("rows released in each draw", rows(found.rows)),
        Tile("draws of each setting", str(found.request.repeats)),
    ]
    if found.test_rows is not None:
        tiles.append(Tile("rows held out", rows(found.test_rows)))
    if found.reference is not None:
        value = number(float(found.reference["value"]))
        tiles.append(Tile(utility_words(found), value, "learnt from the true labels"))
    return tuple(tiles)


def _notes(found: Sweep) -> tuple[str, ...]:
    level = percent(found.level)
    return (
        SIMULATED,
        "No violation found is not a proof of privacy: a stronger attack may exist, and choosing "
        "among many settings by their verdicts favours those that passed by luck.",
        f"Intervals of one draw hold at {level}; averages of several draws at the lower level "
        "that the JSON states. Utility is that of one kind of learner.",
        *found.warnings,
    )


def _least_part(found: Sweep) -> Part:
    body = tuple(
        (
            least.mechanism,
            "none of the grid" if least.found is None else value_text(least.found),
            "–" if least.found is None else f"{least.found.passes} of {least.found.draws}",
            "–" if least.share is None else number(least.share[0], "down"),
            _neighbour(least.less),
            _neighbour(least.more),
            ", ".join(value_text(s) for s in least.exceptions) or "none",
        )
        for least in found.least
    )
    head = (
        "Mechanism",
        "Least noise that passed",
        "Draws passed",
        f"Share that would pass, at least ({percent(found.level)})",
        "Next with less noise",
        "Next with more noise",
        "More noise, not passed",
    )
    intro = (
        "The setting of least noise at which no draw was found in violation of the policy. The "
        "bound on the share holds for all settings of a mechanism together, because one of them "
        "was chosen by its verdicts. That more noise passes as well is looked at, not assumed."
    )
    lead = " ".join(least.sentence() for least in found.least)
    tables = (("By mechanism", Table(head, body)),)
    return Part("least-noise", "Least noise", intro, tables=tables, lead=lead)


def _neighbour(setting: Setting | None) -> str:
    if setting is None:
        return "none on the grid"
    return f"{value_text(setting)}: {setting.verdict}, {setting.passes} of {setting.draws} passed"


def _points_part(found: Sweep) -> Part:
    table = Table(headers(found), tuple(setting_row(s) for s in found.settings))
    means = {name: [m for s in found.settings if (m := s.mean(name))] for name in _AUDIT}
    titles = {name: some[0].title for name, some in means.items() if some}
    more = Table(
        ("Mechanism", "Value", *titles.values()),
        tuple(
            (s.mechanism, value_text(s), *(cell(s.mean(name)) for name in titles))
            for s in found.settings
        ),
    )
    reasons = tuple(
        (s.mechanism, value_text(s), s.verdict, s.reason)
        for s in found.settings
        if s.verdict != "pass"
    )
    tables = [("Leakage and utility", table), ("More of the audit", more)]
    if reasons:
        head = ("Mechanism", "Value", "Verdict", "The worst draw")
        tables.append(("Why a setting did not pass", Table(head, reasons)))
    intro = "Every setting, averaged over its draws, with confidence intervals in brackets."
    return Part("points", "Every setting", intro, tables=tuple(tables))


def _frontier_part(found: Sweep) -> Part:
    figure = frontier_figure(found)
    intro = (
        "Each mark is one setting. Further left, attackers learn less; further up, an honest "
        "learner learns more. Filled: every draw passed; hollow: not; orange: a draw violated the "
        "policy. A mechanism that lies above and left of another is better at that leakage."
    )
    if found.request.numeric:
        intro = intro.replace("further up", "further down").replace("above", "below")
    missing = "" if figure is not None else "Not drawn: leakage or utility was not measured."
    drawn = () if figure is None else (figure,)
    return Part("frontier", "Leakage against utility", intro, drawn, missing=missing)


def frontier_figure(found: Sweep) -> Figure | None:
    """Return leakage against utility, a line for each mechanism; None without a point."""
    paths = [
        path for name in found.request.mechanisms[:MOST_LINES] if (path := _path(found, name)).spots
    ]
    spots = [spot for path in paths for spot in path.spots]
    if not spots:
        return None
    upright, level = _references(found)
    x = _axis(leakage_words(found), [e for s in spots for e in s.x_ends], upright)
    y = _axis(utility_words(found), [e for s in spots for e in s.y_ends], level)
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
    table = Table(headers(found), tuple(setting_row(s) for s in found.settings))
    return Figure("paths", title, description, drawing, table, tuple(legend))


def _path(found: Sweep, mechanism: str) -> Path:
    own = [s for s in found.settings if s.mechanism == mechanism]
    able = [(s, leak, s.test) for s in own if (leak := leakage_of(s)) and s.test]
    spots = tuple(
        Spot(
            leak.value,
            test.value,
            _ends(leak),
            _ends(test),
            f"{value_text(s)[0]} = {s.value:.4g}",
            _OUTCOMES.get(s.verdict, "other"),
        )
        for s, leak, test in able
    )
    return Path(mechanism, spots)


def _ends(mean: Mean) -> tuple[float, float]:
    low = mean.value if mean.low is None else mean.low
    return low, mean.value if mean.high is None else mean.high


def _references(found: Sweep) -> tuple[charts.Rule | None, charts.Rule | None]:
    """Return what an attacker reaches by the features alone, and a learner by the true labels."""
    name = "attack.features-only.accuracy"
    own = (s for s in found.settings if traits_of(s.mechanism).features == "unchanged")
    alone = [m.value for s in own if (m := s.mean(name)) is not None]
    upright = level = None
    if alone and not found.request.numeric:
        value = sum(alone) / len(alone)
        legend = f"attacker who sees the true features alone: {number(value)}"
        upright = charts.Rule(value, "", legend, 2)
    if found.reference is not None:
        value = float(found.reference["value"])
        level = charts.Rule(value, "", f"learnt from the true labels: {number(value)}", 1)
    return upright, level


def _axis(title: str, ends: Sequence[float], rule: charts.Rule | None) -> charts.Axis:
    shown = [end for end in [*ends, *([] if rule is None else [rule.at])] if math.isfinite(end)]
    low, high = min(shown), max(shown)
    pad = 0.06 * (high - low) or 0.05 * max(abs(high), 1.0)
    share = low >= 0 and high <= 1
    top = min(high + 1.6 * pad, 1.0) if share else high + 1.6 * pad
    return charts.Axis(title, max(low - pad, 0.0) if low >= 0 else low - pad, top)
