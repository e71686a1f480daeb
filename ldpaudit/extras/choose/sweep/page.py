"""What a sweep says: on the terminal, and on its page with the frontier of leakage and utility."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from pydantic import Field

from ldpaudit.commands.shell import Confidential
from ldpaudit.doors import Estimate, Said, number, percent
from ldpaudit.extras.choose.lines import line_figure
from ldpaudit.extras.choose.planes import MOST_LINES, Outcome, Path, Spot, frontier_figure
from ldpaudit.extras.choose.sheet import Paged, render_sheet
from ldpaudit.extras.choose.sweep.result import (
    CONDITIONAL,
    DIVERGENCE,
    FLOOR,
    SIMULATED,
    Contrast,
    Facts,
    LeastNoise,
    Mean,
    Neighbour,
    Setting,
    named,
    value_text,
)
from ldpaudit.extras.learn.utility.scores import AUC, CONSTANT, SQUARED_ERROR
from ldpaudit.mechanisms import traits_of
from ldpaudit.reports.charts.figure import Rule, Table
from ldpaudit.reports.pages.page import Section, Tile
from ldpaudit.reports.plots import by_name
from ldpaudit.reports.text.wording import PUBLISH
from ldpaudit.result.numbers import DIGITS, exactly, rows

if TYPE_CHECKING:
    import pandas as pd

_OUTCOMES: Final[dict[str, Outcome]] = {"pass": "pass", "fail": "fail"}
_NO_PROOF: Final = (
    "No violation found is not a proof of privacy: a stronger attack may exist, and choosing among "
    "many settings by their verdicts favours those that passed by luck."
)
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


class Sweep(Confidential, Paged):
    """Mechanisms over a grid of noise: simulated, audited, and learnt from.

    Attributes
    ----------
    ldpaudit_version
        The version that made it.
    points
        The settings, mechanism by mechanism, the least noise first.
    least_noise
        The answer, by the name of the mechanism.
    reference
        The learner's score with the true labels, under its id.
    notes
        Sentences for people.
    run
        How to repeat it.
    differences
        What each further mechanism reveals and keeps less the first, at the same noise.
    """

    ldpaudit_version: str
    points: list[Setting]
    least_noise: dict[str, LeastNoise]
    reference: dict[str, Estimate] | None
    notes: list[str]
    run: Facts
    differences: list[Contrast] = Field(
        default_factory=list,
        description="Numbers of each further mechanism less those of the first, by noise.",
    )

    def __repr__(self) -> str:
        return f"Sweep({len(self.points)} settings of {', '.join(self.least_noise)})"

    @property
    def _sentence(self) -> str:
        return "\n".join(least.sentence for least in self.least_noise.values())

    def _figures(self) -> dict[str, Any]:
        return by_name([_frontier_part(self)])

    def said(self, *, quiet: bool) -> Iterator[Said]:
        """Yield the least noise of each mechanism, then every setting."""
        yield from () if quiet else (self.access,)
        yield from (*self.contrasts(), *(one.sentence for one in self.least_noise.values()))
        if quiet:
            return
        yield "Every setting", *_settings(self)
        if self.differences:
            yield "Differences to the first mechanism", *_differences(self)
        for name in self.least_noise:
            head, body = _by_order(self, name)
            if body:
                yield f"{name}: Rényi ε with features drawn from their label", head, body
        yield from (
            ("not measured", f"{s.mechanism}: {s.failed[0]}") for s in self.points if s.failed
        )
        if self.from_truth is not None:
            yield f"\n  learnt from the true labels: {number(self.from_truth)}"
        if poor := [f"{s.mechanism} at {s.value_text}" for s in self.points if _no_better(s)]:
            yield "warning", "No better on test rows than the best single answer: learners of"
            yield "", f"{', '.join(poor)}."
        yield from (("warning", text) for text in self.notes[1:])
        yield "Simulated draws; nothing was released."

    def page(self) -> str:
        """Return the page."""
        tiles = [
            Tile("rows released in each draw", rows(self.run.rows)),
            Tile("draws of each setting", str(self.run.repeats)),
        ]
        if self.run.test_rows is not None:
            tiles.append(Tile("rows held out", rows(self.run.test_rows)))
        if self.from_truth is not None:
            value, what = number(self.from_truth), self.measures[1]
            tiles.append(Tile(what, value, "learnt from the true labels"))
        counts = {"mechanism": len(self.least_noise), "setting": len(self.points)}
        least = "; ".join(f"{one.mechanism}: {named(one)}" for one in self.least_noise.values())
        return render_sheet(
            what="Sweep before releasing",
            title=", ".join(f"{n} {what}{'s' * (n != 1)}" for what, n in counts.items()),
            lead=" ".join(
                [f"Least noise with no violation found: {least}.", *self.contrasts()][:2]
            ),
            tiles=tuple(tiles),
            sections=(_frontier_part(self), _least_part(self)),
            more=(*_renyi_parts(self), _points_part(self)),
            notes=(
                SIMULATED,
                _NO_PROOF,
                f"Intervals of one draw hold at {percent(self.level)}; averages of several draws "
                "at the lower level that the JSON states. Utility is that of one kind of learner.",
                *self.notes[1:],
            ),
            access=self.access,
        )

    @property
    def numeric(self) -> bool:
        """Whether labels are numbers: learners are then regressors."""
        return traits_of(self.points[0].mechanism).numeric

    @property
    def level(self) -> float:
        """The confidence of intervals of one draw."""
        return next(s.pass_share.level for s in self.points if s.pass_share is not None)

    @property
    def measures(self) -> tuple[str, str]:
        """The names of the measures of leakage and of utility."""
        if self.numeric:
            return "strongest guess: within 5 % of the range", "test squared error"
        return "strongest attack: accuracy", "test accuracy"

    def contrasts(self) -> Iterator[str]:
        """Yield what each further mechanism reveals and keeps next to the first, by value."""
        first, *others = self.least_noise
        bases = {s.value: s for s in self.points if s.mechanism == first}
        alone = (
            "numeric.features-only.within_5" if self.numeric else "attack.features-only.accuracy"
        )
        for setting in self.points:
            base = bases.get(setting.value)
            if setting.mechanism in others and base is not None:
                beyond = "attack.best.advantage"
                pairs = {
                    self.measures[0]: (setting.leakage, base.leakage),
                    "features alone": (setting.means.get(alone), base.means.get(alone)),
                    "beyond the features": (setting.means.get(beyond), base.means.get(beyond)),
                    self.measures[1]: (setting.test, base.test),
                }
                said = [
                    f"{what} {number(one.value)} against {number(other.value)}"
                    for what, (one, other) in pairs.items()
                    if one is not None and other is not None
                ]
                constant = setting.means.get(CONSTANT)
                if constant is not None:
                    said.append(f"best single answer {number(constant.value)}")
                if said:
                    names = f"{setting.mechanism} against {first}"
                    yield f"{setting.value_text}, {names}: {'; '.join(said)}."

    @property
    def from_truth(self) -> float | None:
        """What a learner scores that is given the true labels."""
        return None if self.reference is None else next(iter(self.reference.values())).value

    def to_frame(self) -> "pd.DataFrame":
        """Return one row for each setting: its noise, its verdict, and averages of its numbers."""
        import pandas as pd

        stated = ("mechanism", "parameter", "value", "epsilon", "noise", "verdict")
        rows = [
            {name: getattr(setting, name) for name in stated}
            | {name: mean.value for name, mean in setting.means.items()}
            for setting in self.points
        ]
        return pd.DataFrame(rows)


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
    if sweep.differences:
        tables.insert(1, ("Differences to the first mechanism", Table(*_differences(sweep))))
    if reasons:
        head = ("Mechanism", "Values", "Verdict", "The worst draw")
        tables.append(("Why a setting did not pass", Table(head, reasons)))
    intro = "Every setting, averaged over its draws, with confidence intervals in brackets."
    return Section("points", "Every setting", (intro,), tables=tuple(tables))


def _differences(sweep: Sweep) -> tuple[tuple[str, ...], tuple[tuple[str, ...], ...]]:
    parameter = sweep.points[0].parameter
    body = tuple(
        (
            one.mechanism,
            value_text(parameter, one.setting),
            one.title,
            f"{number(one.value)} [{number(one.low, 'down')}, {number(one.high, 'up')}]",
            percent(one.level),
        )
        for one in sweep.differences
    )
    return ("Mechanism", "Value", "Number", "Difference", "Level"), body


_DRAWN: Final = (1.5, 2.0, 4.0)


def _conditional(sweep: Sweep, mechanism: str) -> dict[float, dict[float, tuple[float, ...]]]:
    """Return Δ̂, ε by Theorem 7.1 and the floor of 7.2, in nats, by value and order."""
    # Δ̂ is of the generator, whatever λ is: one for all of them, the mean over the settings.
    settings = [s for s in sweep.points if s.mechanism == mechanism and s.curve(CONDITIONAL)]
    estimates = [s.curve(f"{DIVERGENCE}.estimate") for s in settings]
    if not settings or not all(estimates):
        return {}
    orders = sorted(set.intersection(*map(set, estimates)))
    mean = {a: sum(one[a] for one in estimates) / len(estimates) for a in orders}
    found: dict[float, dict[float, tuple[float, ...]]] = {}
    for setting, own in zip(settings, estimates, strict=True):
        epsilon, floor = setting.curve(CONDITIONAL), setting.curve(FLOOR)
        # Where Δ̂ is added, as in Theorem 7.1, its mean takes the place of the setting's own.
        added = all(abs(epsilon[a] - own[a] - 2 * (setting.epsilon or 0.0)) < 1e-6 for a in orders)
        found[setting.value] = {
            a: (
                mean[a],
                epsilon[a] + (mean[a] - own[a] if added else 0.0),
                floor.get(a, 0.0),
            )
            for a in orders
            if a in epsilon
        }
    return found


def _by_order(sweep: Sweep, name: str) -> tuple[tuple[str, ...], tuple[tuple[str, ...], ...]]:
    parameter, found = sweep.points[0].parameter, _conditional(sweep, name)
    head = ("Value", "Order α", "Δ̂, estimated", "ε (Theorem 7.1), estimated", "floor (7.2), exact")
    body = tuple(
        (value_text(parameter, value), number(alpha), *map(number, three))
        for value, orders in found.items()
        for alpha, three in orders.items()
    )
    return head, body


def _renyi_parts(sweep: Sweep) -> Iterator[Section]:
    """Yield ε against the noise by order, for each mechanism with synthetic features."""
    for name in sweep.least_noise:
        found = _conditional(sweep, name)
        if not found:
            continue
        known = sorted(set.intersection(*(set(orders) for orders in found.values())))
        drawn = [a for a in _DRAWN if a in known] or known[:3]
        lines = [
            (f"{what}, α = {alpha:g}", [(v, found[v][alpha][place]) for v in sorted(found)])
            for place, what in ((1, "ε"), (2, "floor"))
            for alpha in drawn[:2]
        ]
        symbol = "λ" if sweep.points[0].parameter == "lambda" else "ε of the label (nats)"
        title = f"{name}: Rényi ε with features drawn from their label"
        key = f"renyi-{list(sweep.least_noise).index(name)}"
        figure = line_figure(key, title, (symbol, "nats"), lines, "estimated; the floor is exact")
        intro = (
            "2 log(1 + k(1 − λ)/λ) + Δ̂(α) by Theorem 7.1, with the generator's divergence Δ̂ "
            "estimated once, as the mean over the settings: an estimate, no guarantee. The floor "
            "of Theorem 7.2 is what the label reveals in any case."
        )
        missing = "" if figure is not None else "Not drawn: there is one setting only."
        table = ("By noise and order", Table(*_by_order(sweep, name)))
        shown = () if figure is None else (figure,)
        yield Section(
            key, "Rényi ε over the noise", (intro,), shown, tables=(table,), missing=missing
        )


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
