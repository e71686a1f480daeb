"""From the repeated draws of a setting to one point: averages with intervals, and verdicts."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from ldpaudit.commands.sweep.grid import Grid, Parameter
from ldpaudit.estimators.intervals.binomial import clopper_pearson
from ldpaudit.result import Decision, readable

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
    "power.min_detectable_excess",
)
"""The audit's estimates that a point repeats; the files of --out hold all of them."""
_LEAST_LEVEL: Final = 0.5
_WORST_FIRST: Final = ("fail", "inconclusive", "pass")


@dataclass(frozen=True)
class Mean:
    """A number averaged over repeated draws.

    Attributes
    ----------
    id, title, kind, unit : str
        Of the single numbers.
    value : float
        The average.
    low, high : float or None
        Averages of the single ends: by the union bound they hold at ``level`` together.
    level : float or None
        1 − R(1 − level of one); no interval where that is not above one half.
    repeats : tuple of float
        The single numbers.
    """

    id: str
    title: str
    kind: str
    unit: str
    value: float
    low: float | None
    high: float | None
    level: float | None
    repeats: tuple[float, ...]

    @classmethod
    def of(cls, estimates: Sequence[Mapping[str, Any]]) -> "Mean":
        """Average stored estimates of one id."""
        first, r = estimates[0], len(estimates)
        values = tuple(_number(e["value"]) for e in estimates)
        levels = [e["level"] for e in estimates]
        level = None if None in levels else 1 - sum(1 - value for value in levels)
        if level is not None and level <= _LEAST_LEVEL:
            level = None
        low = None if level is None else _mean(estimates, "low")
        high = None if level is None else _mean(estimates, "high")
        mean = math.fsum(values) / r if all(map(math.isfinite, values)) else math.inf
        title = str(first.get("title") or readable(first["id"]))
        names = (first["id"], title, first["kind"], first["unit"])
        return cls(*names, mean, low, high, level, values)

    def stored(self) -> dict[str, Any]:
        """Return what the JSON file holds."""
        content = asdict(self) | {"repeats": list(self.repeats)}
        del content["id"]  # The key that it stands under.
        return content


def _mean(estimates: Sequence[Mapping[str, Any]], end: str) -> float | None:
    ends = [e[end] for e in estimates]
    if any(value is None for value in ends):
        return None
    return sum(map(_number, ends)) / len(ends)


def _number(value: float | str) -> float:
    return float(value)  # Infinities are stored as text.


@dataclass(frozen=True)
class Setting:
    """A mechanism at one value of its parameter, after R draws.

    Attributes
    ----------
    mechanism : str
    parameter : {"lambda", "epsilon"}
    value : float
    epsilon, noise : float or None
        ε in nats and λ of the mechanism, exact.
    verdicts, decisions : tuples of str
        Of the measured draws.
    failed : tuple of str
        Why the others could not be measured.
    means : tuple of Mean
        The audit's estimates that every measured draw has.
    test : Mean or None
        The learner's score.
    correction : str
        The correction of its loss.
    reason : str
        The worst verdict in a sentence.
    """

    mechanism: str
    parameter: Parameter
    value: float
    epsilon: float | None
    noise: float | None
    verdicts: tuple[str, ...]
    decisions: tuple[Decision, ...]
    failed: tuple[str, ...]
    means: tuple[Mean, ...]
    test: Mean | None
    correction: str
    reason: str

    @property
    def verdict(self) -> str:
        """The worst verdict of all draws; ``"failed"`` where one could not be measured."""
        if self.failed or not self.verdicts:
            return "failed"
        return next(word for word in _WORST_FIRST if word in self.verdicts)

    @property
    def decision(self) -> Decision:
        """Whether such a release may be published, by the worst draw."""
        worst = ("do not publish", "not yet", "publish")
        if self.failed or not self.decisions:
            return "not yet"
        return min(self.decisions, key=worst.index)

    @property
    def passes(self) -> int:
        """How many draws passed."""
        return self.verdicts.count("pass")

    @property
    def draws(self) -> int:
        """How many draws there were, measured or not."""
        return len(self.verdicts) + len(self.failed)

    def mean(self, identifier: str) -> Mean | None:
        """Return the average of an estimate; None where there is none."""
        return next((m for m in self.means if m.id == identifier), None)

    @property
    def value_text(self) -> str:
        """The parameter's symbol and value."""
        return f"{'λ' if self.parameter == 'lambda' else 'ε'} = {self.value:.6g}"

    @property
    def outcome(self) -> str:
        """The verdict and how many draws passed."""
        return f"{self.verdict}, {self.passes} of {self.draws}"

    def pass_share(self, level: float) -> tuple[float, float] | None:
        """Return the Clopper–Pearson interval of the share of draws that would pass.

        Draws are independent given the data. None where no draw was measured.
        """
        if not self.verdicts:
            return None
        low, high = clopper_pearson(self.passes, len(self.verdicts), 1 - level)
        return float(low), float(high)

    def stored(self, level: float) -> dict[str, Any]:
        """Return what the JSON file holds."""
        share = self.pass_share(level)
        return {
            "mechanism": self.mechanism,
            "parameter": self.parameter,
            "value": self.value,
            "epsilon": self.epsilon,
            "lambda": self.noise,
            "verdict": self.verdict,
            "decision": self.decision,
            "verdicts": dict(Counter(self.verdicts)),
            "sentence": self.reason,
            "pass_share": None
            if share is None
            else {
                "value": self.passes / len(self.verdicts),
                "low": share[0],
                "high": share[1],
                "level": level,
                "n": len(self.verdicts),
                "count": self.passes,
            },
            "failed": list(self.failed),
            "correction": self.correction,
            **{mean.id: mean.stored() for mean in self.means},
            **({} if self.test is None else {self.test.id: self.test.stored()}),
        }


def setting_of(
    mechanism: str,
    grid: Grid,
    value: float,
    contents: Sequence[Mapping[str, Any]],
    failed: Sequence[str],
) -> Setting:
    """Combine the draws of one setting.

    ``contents`` are those of the files of the measured draws, in their order; ``failed`` says why
    the others could not be measured.
    """
    tests = [content["test"] for content in contents]
    corrections = sorted({str(content["correction"]) for content in contents})
    first: Mapping[str, Any] = contents[0] if contents else {}
    return Setting(
        mechanism,
        grid.parameter,
        value,
        _maybe(first.get("epsilon")),
        _maybe(first.get("lambda")),
        tuple(str(content["verdict"]) for content in contents),
        tuple(content.get("decision", "not yet") for content in contents),
        tuple(failed),
        tuple(_means(contents)),
        Mean.of(tests) if tests else None,
        ", ".join(corrections),
        _reason(contents, failed),
    )


def _maybe(value: Any) -> float | None:
    return None if value is None else _number(value)


def _means(contents: Sequence[Mapping[str, Any]]) -> list[Mean]:
    draws = [{e["id"]: e for e in content["result"]["estimates"]} for content in contents]
    common = [name for name in REPORTED if draws and all(name in draw for draw in draws)]
    return [Mean.of([draw[name] for draw in draws]) for name in common]


def _reason(contents: Sequence[Mapping[str, Any]], failed: Sequence[str]) -> str:
    if failed:
        return failed[0]
    for word in _WORST_FIRST:
        for content in contents:
            if content["verdict"] == word:
                return str(content["sentence"])
    return ""
