"""What a sweep found: each setting's summary, and the least noise that keeps a verdict."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final, Literal

from pydantic import ConfigDict, Field

from ldpaudit.doors import AuditResult, Frozen, clopper_pearson, number, percent
from ldpaudit.extras.choose.sweep.request import Parameter
from ldpaudit.extras.compare.differences import Side, all_differences
from ldpaudit.extras.learn.utility.scores import ACCURACY, SQUARED_ERROR
from ldpaudit.reports.text.wording import PUBLISH
from ldpaudit.result import (
    Check,
    Decision,
    Kind,
    Number,
    Unit,
    Verdict,
    holding_up,
    readable,
)

# The audit's estimates that a point repeats; the files of --out hold all of them.
REPORTED: Final = (
    "attack.best.accuracy",
    "attack.best.advantage",
    "attack.features-only.accuracy",
    "attack.prior.accuracy",
    "attack.utility_bound",
    "instance_loss.mean",
    "instance_loss.mean_lower",
    "mechanism.epsilon_lower",
    "numeric.best.bin_accuracy",
    "numeric.best.bin_advantage",
    "numeric.best.mse",
    "numeric.best.within_5",
    "numeric.features-only.bin_accuracy",
    "numeric.features-only.mse",
    "numeric.features-only.within_5",
    "power.min_detectable_excess",
)
SIMULATED: Final = (
    "Every draw is a simulation with a seeded generator: nothing was released, and no table that "
    "was simulated is kept."
)
_LEAST_LEVEL: Final = 0.5
_WORST_FIRST: Final[tuple[Verdict, ...]] = ("fail", "inconclusive", "pass")
_GRAVEST_FIRST: Final[tuple[Decision, ...]] = ("do not publish", "not yet", "publish")

# The worst verdict of a setting's draws; "failed" where one could not be measured.
Ended = Verdict | Literal["failed"]


# Curves over the order α that a point repeats: Δ̂, ε by Theorem 7.1 with it, and the floor.
DIVERGENCE, CONDITIONAL, FLOOR = (
    "renyi.synthetic",
    "renyi.double_rr_epsilon",
    "renyi.double_rr_floor",
)


class OrderCurve(Frozen):
    """A Rényi curve of one setting, averaged over its draws."""

    id: str = Field(description="Its id in the audit.")
    title: str = Field(description="What people call it.")
    kind: Kind = Field(description="How sure it is.")
    x: list[float] = Field(description="Orders α.")
    value: list[Number] = Field(description="The mean over the draws, in nats.")


def order_curves(contents: Sequence[Mapping[str, Any]]) -> list[OrderCurve]:
    """Return the Rényi curves that every draw has, over the orders that all of them have."""
    draws = [{c["id"]: c for c in content["result"].get("curves", ())} for content in contents]
    found = []
    for name in (DIVERGENCE, f"{DIVERGENCE}.estimate", CONDITIONAL, FLOOR):
        each = [draw[name] for draw in draws if name in draw]
        if not each or len(each) < len(draws):
            continue
        points = [dict(zip(c["x"], c["value"], strict=True)) for c in each]
        orders = sorted(set.intersection(*map(set, points)))
        means = [math.fsum(float(one[a]) for one in points) / len(points) for a in orders]
        first = each[0]
        found.append(
            OrderCurve(id=name, title=first["title"], kind=first["kind"], x=orders, value=means)
        )
    return found


class Mean(Frozen):
    """A number of the audits of one setting, averaged over its draws."""

    title: str = Field(description="What people call it.")
    kind: Kind = Field(description="How sure it is.")
    unit: Unit = Field(description="The unit of the value.")
    value: Number = Field(description="The mean.")
    low: Number | None = Field(
        description="The mean of the lower ends: by the union bound they hold at level together."
    )
    high: Number | None = Field(description="The mean of the upper ends.")
    level: float | None = Field(
        description="The confidence of the interval, one minus the sum of the draws' errors; null "
        "where that is not above one half, and there is no interval."
    )
    repeats: list[Number] = Field(description="The number of each draw.")

    @classmethod
    def of(cls, estimates: Sequence[Mapping[str, Any]]) -> "Mean":
        """Average stored estimates of one id."""
        first, values = estimates[0], [float(e["value"]) for e in estimates]
        levels = [e["level"] for e in estimates]
        level = None if None in levels else 1 - sum(1 - value for value in levels)
        level = None if level is None or level <= _LEAST_LEVEL else level
        ends: dict[str, float | None] = {"low": None, "high": None}
        for end in ends:
            if level is not None and all(e[end] is not None for e in estimates):
                ends[end] = sum(float(e[end]) for e in estimates) / len(estimates)
        finite = all(map(math.isfinite, values))
        return cls(
            title=str(first.get("title") or readable(first["id"])),
            kind=first["kind"],
            unit=first["unit"],
            value=math.fsum(values) / len(values) if finite else math.inf,
            **ends,
            level=level,
            repeats=values,
        )


class Ends(Frozen):
    """The probability that a draw passes, by an interval."""

    low: float = Field(description="The lower end.")
    high: float = Field(description="The upper end.")
    level: float = Field(description="The confidence of the interval.")


class Share(Ends):
    """The share of draws that pass."""

    value: float = Field(description="The share.")
    n: int = Field(description="The draws that were measured.")
    count: int = Field(description="Those that pass.")


def _interval(passes: int, measured: int, level: float) -> dict[str, float]:
    """Return the Clopper–Pearson interval of the share of draws that would pass."""
    low, high = clopper_pearson(passes, measured, 1 - level)
    return {"low": float(low), "high": float(high), "level": level}


def value_text(parameter: str, value: float) -> str:
    """Return a parameter's symbol and value."""
    return f"{'λ' if parameter == 'lambda' else 'ε'} = {value:.6g}"


class Setting(Frozen):
    """A mechanism at one amount of noise; what audits and learners measured stands under its id."""

    model_config = ConfigDict(extra="allow", populate_by_name=True)
    __pydantic_extra__: dict[str, Mean] = Field(init=False)

    mechanism: str = Field(description="Its name.")
    parameter: Parameter = Field(description="Which parameter was set: lambda or epsilon.")
    value: Number = Field(description="Its value.")
    epsilon: Number | None = Field(description="ε in nats, exact.")
    noise: Annotated[
        Number | None, Field(alias="lambda", description="λ, exact, where it has one.")
    ]
    verdict: Ended = Field(
        description="The worst verdict of the draws; failed where one could not be measured."
    )
    decision: Decision = Field(
        description="Whether a release made this way may be published, by the worst draw."
    )
    verdicts: dict[Verdict, int] = Field(description="How many draws have which verdict.")
    sentence: str = Field(description="The worst verdict in words.")
    reason: str = Field("", description="Why the worst decision is not to publish, in words.")
    stopped_by: dict[str, str] = Field(
        default_factory=dict,
        description="The gravest checks that held draws up, by id, each with what it found first.",
    )
    pass_share: Share | None = Field(
        description="The share of draws that pass; null where none could be measured."
    )
    failed: list[str] = Field(description="Why draws could not be measured.")
    correction: str = Field(description="How the learner's loss is corrected for the noise.")
    curves: list[OrderCurve] = Field(
        default_factory=list,
        description="Rényi curves over the order, where features are replaced by synthetic ones.",
    )

    def curve(self, name: str) -> dict[float, float]:
        """Return a Rényi curve as nats by order; empty where there is none."""
        found = (dict(zip(c.x, c.value, strict=True)) for c in self.curves if c.id == name)
        return next(found, {})

    @property
    def means(self) -> dict[str, Mean]:
        """What was measured, by id."""
        return self.__pydantic_extra__

    @property
    def test(self) -> Mean | None:
        """The learner's score."""
        return self.means.get(ACCURACY) or self.means.get(SQUARED_ERROR)

    @property
    def leakage(self) -> Mean | None:
        """The measure of leakage; None where there is none."""
        # Groups of numeric labels differ between mechanisms, so guesses of numbers are compared by
        # how many lie within 5 % of the declared range.
        numeric = SQUARED_ERROR in self.means
        return self.means.get("numeric.best.within_5" if numeric else "attack.best.accuracy")

    @property
    def passes(self) -> int:
        """How many draws passed."""
        return self.verdicts.get("pass", 0)

    @property
    def publishable(self) -> bool:
        """Whether every draw passed and may be published."""
        return self.verdict == "pass" and self.decision == "publish"

    @property
    def draws(self) -> int:
        """How many draws there were, measured or not."""
        return sum(self.verdicts.values()) + len(self.failed)

    @property
    def value_text(self) -> str:
        """The parameter's symbol and value."""
        return value_text(self.parameter, self.value)


def setting_of(
    mechanism: str,
    parameter: Parameter,
    value: float,
    contents: Sequence[Mapping[str, Any]],
    failed: Sequence[str],
    level: float,
) -> Setting:
    """Combine the draws of one setting."""
    # ``contents`` are those of the files of the measured draws, in their order; ``failed`` says why
    # the others could not be measured; ``level``: of the interval of the share that passes.
    first: Mapping[str, Any] = contents[0] if contents else {}
    counts: Counter[Verdict] = Counter(content["verdict"] for content in contents)
    worst = next((word for word in _WORST_FIRST if word in counts), None)
    decisions = [content.get("decision", "not yet") for content in contents]
    passes, n, share, means = counts["pass"], len(contents), None, dict[str, Any]()
    if n:
        share = Share(**_interval(passes, n, level), value=passes / n, n=n, count=passes)
        draws = [{e["id"]: e for e in content["result"]["estimates"]} for content in contents]
        found = {name: [draw[name] for draw in draws if name in draw] for name in REPORTED}
        means = {name: Mean.of(each) for name, each in found.items() if len(each) == n}
        for tests in zip(*([c["test"], *c.get("beside", ())] for c in contents), strict=False):
            means[tests[0]["id"]] = Mean.of(tests)
    sentences = [str(one["sentence"]) for one in contents if one["verdict"] == worst]
    gravest = min(decisions, key=_GRAVEST_FIRST.index) if decisions else "not yet"
    unpublished = [
        _first_step(one) for one in contents if one.get("decision", "not yet") == gravest
    ]
    exact = {name: first.get(name) for name in ("epsilon", "lambda")}
    return Setting(
        mechanism=mechanism,
        parameter=parameter,
        value=value,
        **{name: None if known is None else float(known) for name, known in exact.items()},
        verdict="failed" if failed or worst is None else worst,
        decision="not yet" if failed or not decisions else min(decisions, key=_GRAVEST_FIRST.index),
        verdicts=dict(counts),
        sentence=[*failed, *sentences, ""][0],
        reason="" if gravest == "publish" or not unpublished else unpublished[0],
        stopped_by=_stopped_by(contents),
        pass_share=share,
        failed=list(failed),
        correction=", ".join(sorted({str(content["correction"]) for content in contents})),
        curves=order_curves(contents),
        **means,
    )


def _first_step(content: Mapping[str, Any]) -> str:
    """Return what an audit says should happen first before the release may be published."""
    steps = content["result"].get("next_steps") or ()
    return str(steps[0]) if steps else ""


def _stopped_by(contents: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Return the gravest checks that hold draws up, each with the reason of the first such draw."""
    every = [one for content in contents for one in content["result"].get("checks") or ()]
    grave, found = holding_up(map(Check.model_validate, every)), dict[str, str]()
    for check in grave:
        if (check.level, check.verdict) == (grave[0].level, grave[0].verdict):
            found.setdefault(check.id, check.reason)
    return found


class Neighbour(Frozen):
    """The next setting of the grid with less, or more, noise."""

    value: Number = Field(description="The value of its parameter.")
    verdict: Ended = Field(description="Its worst verdict.")
    passes: int = Field(description="Draws that pass.")
    draws: int = Field(description="Draws that were measured.")

    @classmethod
    def of(cls, setting: Setting | None) -> "Neighbour | None":
        """Return a setting as a neighbour."""
        names = cls.model_fields
        return None if setting is None else cls(**{name: getattr(setting, name) for name in names})


class LeastNoise(Frozen):
    """The least noise of one mechanism at which every draw passed and may be published.

    That more noise passes too is checked, never assumed: draws are random, and an audit of little
    power may be inconclusive at any noise."""

    mechanism: str = Field(description="Its name.")
    parameter: str | None = Field(
        description="Which parameter was set; null where no setting passes, or none may be "
        "published."
    )
    value: Number | None = Field(description="Its value.")
    epsilon: Number | None = Field(description="ε in nats.")
    passes: int | None = Field(description="Draws that pass.")
    draws: int | None = Field(description="Draws that were measured.")
    pass_share: Ends | None = Field(
        description="The probability that a draw passes there, valid for all settings of the "
        "mechanism together, since one of them is chosen by its verdicts."
    )
    less_noise: Neighbour | None = Field(description="The next setting with less noise.")
    more_noise: Neighbour | None = Field(description="The next setting with more noise.")
    more_noise_that_does_not_pass: list[Number] = Field(
        description="Values with more noise at which draws do not pass all the same."
    )
    sentence: str = Field(description="The answer in words.")


def least_noise(mechanism: str, settings: Sequence[Setting], level: float) -> LeastNoise:
    """Return the least noise of one mechanism at which every draw passed and may be published."""
    # ``settings``: of this mechanism, the least noise first; ``level``: the confidence of the
    # interval, for all of them together (Bonferroni).
    place = next((i for i, s in enumerate(settings) if s.publishable), None)
    stated = ("parameter", "value", "epsilon", "passes", "draws")
    if place is None:
        best = max(settings, key=lambda s: s.passes, default=None)
        best = best if best is not None and best.passes else None
        passing = any(s.verdict == "pass" for s in settings)
        missed = "passed and may be published" if passing else "passed"
        nearest = f" Nearest to it: {named(best)}, {_outcome(best)}." if best else ""
        if best is not None and passing:
            nearest = f" Nearest to it: {named(best)}, but: {_reason(best)}"
        return LeastNoise(
            mechanism=mechanism,
            **dict.fromkeys((*stated, "pass_share", "less_noise")),
            more_noise=Neighbour.of(best),
            more_noise_that_does_not_pass=[],
            sentence=f"{mechanism}: no setting of the grid {missed} in every draw.{nearest}"
            f"{_what_stops(settings)}",
        )
    least, rest = settings[place], settings[place + 1 :]
    less = settings[place - 1] if place else None
    ends = _interval(least.passes, least.passes, 1 - (1 - level) / len(settings))
    share, exceptions = ends | {"level": level}, [s for s in rest if not s.publishable]
    draws = f"any of {least.draws} draws"
    if least.draws == 1:
        draws = "the one draw (not confirmed: --repeats 2 or more would)"
    low = number(share["low"], "down")
    parts = [
        f"{mechanism}: {named(least)}, no violation found in {draws}",
        f"a draw passes with probability {low} or more ({percent(level)})",
        "it is the least noise of the grid, so less may do"
        if less is None
        else f"less noise, {named(less)}: {_outcome(less)}",
    ]
    if exceptions:
        values = ", ".join(setting.value_text for setting in exceptions)
        parts.append(f"more noise does not always pass: {values}")
    return LeastNoise(
        mechanism=mechanism,
        **{name: getattr(least, name) for name in stated},
        pass_share=Ends(**share),
        less_noise=Neighbour.of(less),
        more_noise=Neighbour.of(rest[0] if rest else None),
        more_noise_that_does_not_pass=[setting.value for setting in exceptions],
        sentence="; ".join(parts) + ".",
    )


def _what_stops(settings: Sequence[Setting]) -> str:
    """Return which check holds most settings up, and what it found at the one with most noise."""
    counts = Counter(check for setting in settings for check in setting.stopped_by)
    if not counts:
        return ""
    (check, count), last = counts.most_common(1)[0], settings[-1]
    found = next(one for one in reversed(settings) if check in one.stopped_by)
    text = f" The check {check} stopped {count} of {len(settings)} settings"
    where = (
        f"even at {named(found)}" if found is last and len(settings) > 1 else f"at {named(found)}"
    )
    return f"{text}; {where}: {found.stopped_by[check]}."


def named(setting: Setting | LeastNoise) -> str:
    """Return a setting's value, with ε where that is not it."""
    if setting.parameter is None or setting.value is None:
        return "none of the grid"
    text = value_text(setting.parameter, setting.value)
    if setting.epsilon is None or setting.parameter == "epsilon":
        return text
    return f"{text} (ε = {number(setting.epsilon)})"


def _reason(setting: Setting) -> str:
    """Return why a setting without a violation may not be published, as a sentence."""
    text = setting.reason or setting.sentence or _outcome(setting)
    return text if text.endswith((".", "!", "?")) else f"{text}."


def _outcome(setting: Setting) -> str:
    if setting.verdict == "failed":
        return "could not be measured"
    held = f" (publish: {PUBLISH[setting.decision]})" if setting.verdict == "pass" else ""
    return f"{setting.verdict}, {setting.passes} of {setting.draws} draws passed{held}"


class Contrast(Frozen):
    """A number of one mechanism less that of the first at the same noise, with its interval."""

    id: str = Field(description="Which number.")
    title: str = Field(description="What people call it.")
    mechanism: str = Field(description="The mechanism.")
    setting: float = Field(description="The value of the grid.")
    value: Number = Field(description="The difference, of the first draws.")
    low: Number = Field(description="The lower end.")
    high: Number = Field(description="The upper end.")
    level: float = Field(description="The confidence of the interval.")


_COMPARED: Final = ("attack.best.accuracy", "attack.best.advantage")


def contrasts_of(
    mechanism: str,
    setting: float,
    first: Mapping[str, Any],
    other: Mapping[str, Any],
    level: float,
) -> list[Contrast]:
    """Return the differences of the first draws of two mechanisms at one noise."""
    # As ``compare`` has them of two stored results; the score on test rows by both own intervals.
    results = [AuditResult.model_validate(one["result"]) for one in (first, other)]
    sides = [
        Side(letter, one, None, None, paired=False)
        for letter, one in zip("AB", results, strict=True)
    ]
    found = [
        Contrast(
            id=one.id,
            title=one.title,
            mechanism=mechanism,
            setting=setting,
            value=one.value,
            low=one.low,
            high=one.high,
            level=level,
        )
        for one in all_differences(sides, level)
        if one.id in _COMPARED and one.low is not None and one.high is not None
    ]
    tests = [one["test"] for one in (first, other)]
    if all(one["low"] is not None and one["high"] is not None for one in tests):
        lows, highs = ([float(one[end]) for one in tests] for end in ("low", "high"))
        values = [float(one["value"]) for one in tests]
        found.append(
            Contrast(
                id=tests[0]["id"],
                title=str(tests[0].get("title") or readable(tests[0]["id"])),
                mechanism=mechanism,
                setting=setting,
                value=values[1] - values[0],
                low=lows[1] - highs[0],
                high=highs[1] - lows[0],
                level=max(0.0, 2 * float(tests[0]["level"]) - 1),
            )
        )
    return found


class Facts(Frozen):
    """How to repeat the sweep."""

    seed: int = Field(description="The root of all randomness.")
    rows: int = Field(description="Rows of each simulated release.")
    test_rows: int | None = Field(description="Rows that learners were tested on.")
    repeats: int = Field(description="Draws of each setting.")
    learner: str = Field(description="The learner.")
