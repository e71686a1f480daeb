"""What a sweep says: on the terminal, and on its page with the frontier of leakage and utility."""

from typing import Final

from ldpaudit.commands.sweep.result import (
    SIMULATED,
    Mean,
    Neighbour,
    Setting,
    Sweep,
    named,
    value_text,
)
from ldpaudit.commands.utility.scores import AUC, CONSTANT, SQUARED_ERROR
from ldpaudit.mechanisms import traits_of
from ldpaudit.reports.charts.figure import Rule, Table
from ldpaudit.reports.charts.planes import MOST_LINES, Outcome, Path, Spot, frontier_figure
from ldpaudit.reports.pages.page import Section, Tile, render_sheet
from ldpaudit.reports.text.wording import PUBLISH
from ldpaudit.result.access import CONFIDENTIAL
from ldpaudit.result.numbers import DIGITS, exactly, number, percent, rows
from ldpaudit.terminal import say, show

_OUTCOMES: Final[dict[str, Outcome]] = {"pass": "pass", "fail": "fail"}
# Of squared errors, which may be large.
_DIGITS: Final = 5
_AUDIT: Final = (
    "attack.best.advantage",
    "mechanism.epsilon_lower",
    "instance_loss.mean_lower",
    "instance_loss.mean",
    "numeric.best.mse",
    "numeric.best.within_5",
    "power.min_detectable_excess",
)


def print_summary(sweep: Sweep, *, quiet: bool) -> None:
    """Print the least noise of each mechanism, then every setting."""
    if not quiet:
        say(CONFIDENTIAL)
    for sentence in (*sweep.contrasts(), *(one.sentence for one in sweep.least_noise.values())):
        say(sentence)
    if quiet:
        return
    show("Every setting", *_settings(sweep))
    for setting in sweep.points:
        if setting.failed:
            say(f"  {'not measured':<12} {setting.mechanism}: {setting.failed[0]}")
    if sweep.from_truth is not None:
        say(f"\n  learnt from the true labels: {number(sweep.from_truth)}")
    if poor := [f"{s.mechanism} at {s.value_text}" for s in sweep.points if _no_better(s)]:
        say(f"  {'warning':<12} No better on test rows than the best single answer: learners of")
        say(f"  {'':<12} {', '.join(poor)}.")
    for text in sweep.notes[1:]:
        say(f"  {'warning':<12} {text}")
    say("Simulated draws; nothing was released.")


def _no_better(setting: Setting) -> bool:
    """Return whether the learner is no better than the best single answer."""
    test, constant = setting.test, setting.means.get(CONSTANT)
    if test is None or constant is None:
        return False
    gain = test.value - constant.value
    return (-gain if SQUARED_ERROR in setting.means else gain) <= 0


def _settings(sweep: Sweep) -> tuple[tuple[str, ...], tuple[tuple[str, ...], ...]]:
    head = ("Mechanism", "Value", "ε (nats)", "Verdict", "Publish", "Passed", *sweep.measures)
    body = tuple(
        (
            s.mechanism,
            s.value_text,
            "–" if s.epsilon is None else exactly(s.epsilon, DIGITS),
            s.verdict,
            PUBLISH[s.decision],
            f"{s.passes} of {s.draws}",
            *(_cell(mean) for mean in (s.leakage, s.test, s.means.get(CONSTANT), s.means.get(AUC))),
        )
        for s in sweep.points
    )
    return (*head, "best single answer", "AUC"), body


def _cell(mean: Mean | None) -> str:
    """Return a number with its interval; a one-sided bound is marked."""
    if mean is None:
        return "–"
    digits = _DIGITS if mean.unit == "squared label units" else DIGITS
    value = number(mean.value, digits=digits)
    if mean.low is not None and mean.high is not None:
        low, high = number(mean.low, "down", digits), number(mean.high, "up", digits)
        return f"{value} [{low}, {high}]"
    if mean.low is not None:
        return f"≥ {number(mean.value, 'down', digits)}"
    return value if mean.high is None else f"≤ {number(mean.value, 'up', digits)}"


def sweep_page(sweep: Sweep) -> str:
    """Return the page."""
    counts = {"mechanism": len(sweep.least_noise), "setting": len(sweep.points)}
    least = "; ".join(f"{one.mechanism}: {named(one)}" for one in sweep.least_noise.values())
    return render_sheet(
        what="Sweep before releasing",
        title=", ".join(f"{n} {what}{'s' * (n != 1)}" for what, n in counts.items()),
        lead=" ".join([f"Least noise with no violation found: {least}.", *sweep.contrasts()][:2]),
        tiles=_tiles(sweep),
        sections=(_frontier_part(sweep), _least_part(sweep)),
        more=(_points_part(sweep),),
        notes=_notes(sweep),
        access=CONFIDENTIAL,
    )


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
    means = {name: [s.means[name] for s in sweep.points if name in s.means] for name in _AUDIT}
    titles = {name: some[0].title for name, some in means.items() if some}
    more = tuple(
        (s.mechanism, s.value_text, *(_cell(s.means.get(name)) for name in titles))
        for s in sweep.points
    )
    # Each reason once for a mechanism.
    values: dict[tuple[str, str, str], list[str]] = {}
    for setting in sweep.points:
        if setting.verdict != "pass":
            key = (setting.mechanism, setting.verdict, setting.sentence)
            values.setdefault(key, []).append(setting.value_text)
    reasons = tuple((m, ", ".join(texts), v, why) for (m, v, why), texts in values.items())
    tables = [
        ("Leakage and utility", Table(*_settings(sweep))),
        ("More of the audit", Table(("Mechanism", "Value", *titles.values()), more)),
    ]
    if reasons:
        head = ("Mechanism", "Values", "Verdict", "The worst draw")
        tables.append(("Why a setting did not pass", Table(head, reasons)))
    intro = "Every setting, averaged over its draws, with confidence intervals in brackets."
    return Section("points", "Every setting", (intro,), tables=tuple(tables))


def _frontier_part(sweep: Sweep) -> Section:
    paths = [_path(sweep, name) for name in list(sweep.least_noise)[:MOST_LINES]]
    figure = frontier_figure(
        "Leakage against utility",
        paths,
        sweep.measures,
        _references(sweep),
        Table(*_settings(sweep)),
    )
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
