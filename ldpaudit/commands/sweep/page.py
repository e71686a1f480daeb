"""The page of a sweep: the answer, the frontier of leakage against utility, every point."""

from typing import Final

from ldpaudit.commands.sweep.result import (
    SIMULATED,
    Mean,
    Neighbour,
    Sweep,
    cell,
    named,
    value_text,
)
from ldpaudit.mechanisms import traits_of
from ldpaudit.reports.charts.figure import Figure, Rule, Table
from ldpaudit.reports.charts.planes import MOST_LINES, Outcome, Path, Spot, frontier_figure
from ldpaudit.reports.pages.page import Section, Tile, render_sheet
from ldpaudit.result.access import CONFIDENTIAL
from ldpaudit.result.numbers import number, percent, rows

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
    mechanisms, settings = len(sweep.least_noise), len(sweep.points)
    least = "; ".join(f"{one.mechanism}: {named(one)}" for one in sweep.least_noise.values())
    return render_sheet(
        what="Sweep before releasing",
        title=f"{_amount(mechanisms, 'mechanism')}, {_amount(settings, 'setting')}",
        lead=" ".join([f"Least noise with no violation found: {least}.", *sweep.contrasts()][:2]),
        tiles=_tiles(sweep),
        sections=(_frontier_part(sweep), _least_part(sweep)),
        more=(_points_part(sweep),),
        notes=_notes(sweep),
        access=CONFIDENTIAL,
    )


def _amount(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"


def _tiles(sweep: Sweep) -> tuple[Tile, ...]:
    tiles = [
        Tile("rows released in each draw", rows(sweep.run.rows)),
        Tile("draws of each setting", str(sweep.run.repeats)),
    ]
    if sweep.run.test_rows is not None:
        tiles.append(Tile("rows held out", rows(sweep.run.test_rows)))
    if sweep.from_truth is not None:
        value = number(sweep.from_truth)
        tiles.append(Tile(sweep.measures[1], value, "learnt from the true labels"))
    return tuple(tiles)


def _notes(sweep: Sweep) -> tuple[str, ...]:
    level = percent(sweep.level)
    return (
        SIMULATED,
        "No violation found is not a proof of privacy: a stronger attack may exist, and choosing "
        "among many settings by their verdicts favours those that passed by luck.",
        f"Intervals of one draw hold at {level}; averages of several draws at the lower level "
        "that the JSON states. Utility is that of one kind of learner.",
        *sweep.notes[1:],
    )


def _least_part(sweep: Sweep) -> Section:
    parameter = sweep.points[0].parameter
    body = tuple(
        (
            least.mechanism,
            "none of the grid" if least.value is None else value_text(parameter, least.value),
            "–" if least.value is None else f"{least.passes} of {least.draws}",
            "–" if least.pass_share is None else number(least.pass_share.low, "down"),
            _neighbour(parameter, least.less_noise),
            _neighbour(parameter, least.more_noise),
            ", ".join(value_text(parameter, v) for v in least.more_noise_that_does_not_pass)
            or "none",
        )
        for least in sweep.least_noise.values()
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
        "The setting of least noise at which every draw passed and may be published. The "
        "bound on the share holds for all settings of a mechanism together, because one of them "
        "was chosen by its verdicts. That more noise passes too is checked, not assumed."
    )
    lead = " ".join([*(one.sentence for one in sweep.least_noise.values()), *sweep.contrasts()])
    tables = (("By mechanism", Table(head, body)),)
    return Section("least-noise", "Least noise", (lead, intro), tables=tables)


def _neighbour(parameter: str, one: Neighbour | None) -> str:
    if one is None:
        return "none on the grid"
    outcome = f"{one.verdict}, {one.passes} of {one.draws}"
    return f"{value_text(parameter, one.value)}: {outcome} passed"


def _points_part(sweep: Sweep) -> Section:
    table = _settings_table(sweep)
    means = {name: [s.means[name] for s in sweep.points if name in s.means] for name in _AUDIT}
    titles = {name: some[0].title for name, some in means.items() if some}
    more = Table(
        ("Mechanism", "Value", *titles.values()),
        tuple(
            (s.mechanism, s.value_text, *(cell(s.means.get(name)) for name in titles))
            for s in sweep.points
        ),
    )
    tables = [("Leakage and utility", table), ("More of the audit", more)]
    if reasons := _reasons(sweep):
        head = ("Mechanism", "Values", "Verdict", "The worst draw")
        tables.append(("Why a setting did not pass", Table(head, reasons)))
    intro = "Every setting, averaged over its draws, with confidence intervals in brackets."
    return Section("points", "Every setting", (intro,), tables=tuple(tables))


def _reasons(sweep: Sweep) -> tuple[tuple[str, ...], ...]:
    """Return why settings did not pass, each reason once for a mechanism."""
    values: dict[tuple[str, str, str], list[str]] = {}
    for setting in sweep.points:
        if setting.verdict != "pass":
            key = (setting.mechanism, setting.verdict, setting.sentence)
            values.setdefault(key, []).append(setting.value_text)
    return tuple(
        (mechanism, ", ".join(texts), verdict, reason)
        for (mechanism, verdict, reason), texts in values.items()
    )


def _frontier_part(sweep: Sweep) -> Section:
    figure = leakage_figure(sweep)
    intro = (
        "Each mark is one setting. Further left, attackers learn less; further up, an honest "
        "learner learns more. Filled: every draw passed; hollow: not; orange: a draw violated the "
        "policy. A mechanism that lies above and left of another is better at that leakage."
    )
    if sweep.numeric:
        intro = intro.replace("further up", "further down").replace("above", "below")
    missing = "" if figure is not None else "Not drawn: leakage or utility was not measured."
    drawn = () if figure is None else (figure,)
    return Section("frontier", "Leakage against utility", (intro,), drawn, missing=missing)


def leakage_figure(sweep: Sweep) -> Figure | None:
    """Return leakage against utility, a line for each mechanism; None without a point."""
    paths, table = (
        [_path(sweep, name) for name in list(sweep.least_noise)[:MOST_LINES]],
        _settings_table(sweep),
    )
    title, rules = "Leakage against utility", _references(sweep)
    return frontier_figure(title, paths, sweep.measures, rules, table)


def _settings_table(sweep: Sweep) -> Table:
    return Table(sweep.headers, tuple(s.row() for s in sweep.points))


def _path(sweep: Sweep, mechanism: str) -> Path:
    able = [
        (s, leak, s.test)
        for s in sweep.points
        if s.mechanism == mechanism and (leak := s.leakage) and s.test
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


def _references(sweep: Sweep) -> tuple[Rule | None, Rule | None]:
    """Return the accuracy from the features alone, and a learner's score with the true labels."""
    name = "attack.features-only.accuracy"
    whole = (s for s in sweep.points if traits_of(s.mechanism).features == "unchanged")
    alone = [s.means[name].value for s in whole if name in s.means]
    upright = level = None
    if alone and not sweep.numeric:
        mean = sum(alone) / len(alone)
        legend = f"attacker who sees the true features alone: {number(mean)}"
        upright = Rule(mean, "", legend, 2)
    if (value := sweep.from_truth) is not None:
        level = Rule(value, "", f"learnt from the true labels: {number(value)}", 1)
    return upright, level
