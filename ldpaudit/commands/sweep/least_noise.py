"""The least noise that satisfies a policy, as far as simulated draws can tell."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ldpaudit.commands.sweep.summary import Setting
from ldpaudit.reports.text.numbers import number, percent


@dataclass(frozen=True)
class LeastNoise:
    """The least noise of one mechanism at which every draw passed.

    That more noise passes too is checked, never assumed: draws are random, and an audit of little
    power may be inconclusive at any noise.

    Attributes
    ----------
    mechanism : str
    found : Setting or None
        None where there is no such setting on the grid.
    share : tuple of float or None
        Simultaneous Clopper–Pearson interval of the share of draws that would pass there.
    level : float
        Its confidence, together with those of all other settings of the mechanism.
    less, more : Setting or None
        The neighbours on the grid with less and with more noise.
    exceptions : tuple of Setting
        Settings with more noise that did not pass.
    """

    mechanism: str
    found: Setting | None
    share: tuple[float, float] | None
    level: float
    less: Setting | None
    more: Setting | None
    exceptions: tuple[Setting, ...]

    def stored(self) -> dict[str, Any]:
        """Return it for JSON."""
        found = self.found
        return {
            "mechanism": self.mechanism,
            "value": None if found is None else found.value,
            "parameter": None if found is None else found.parameter,
            "epsilon": None if found is None else found.epsilon,
            "passes": None if found is None else found.passes,
            "draws": None if found is None else found.draws,
            "pass_share": None
            if self.share is None
            else {"low": self.share[0], "high": self.share[1], "level": self.level},
            "less_noise": _neighbour(self.less),
            "more_noise": _neighbour(self.more),
            "more_noise_that_does_not_pass": [setting.value for setting in self.exceptions],
            "sentence": self.sentence(),
        }

    def sentence(self) -> str:
        """Return the answer in words."""
        found = self.found
        if found is None:
            return f"{self.mechanism}: no setting of the grid passed in every draw.{self._best()}"
        parts = [f"{self.mechanism}: {_named(found)}, {_drawn(found)}"]
        if self.share is not None:
            low = number(self.share[0], "down")
            parts.append(f"a draw passes with probability {low} or more ({percent(self.level)})")
        if self.less is None:
            parts.append("it is the least noise of the grid, so less may do")
        else:
            parts.append(f"less noise, {_named(self.less)}: {_outcome(self.less)}")
        if self.exceptions:
            values = ", ".join(_value(setting) for setting in self.exceptions)
            parts.append(f"more noise does not always pass: {values}")
        return "; ".join(parts) + "."

    def short(self) -> str:
        """Return the answer in a few words."""
        if self.found is None:
            return f"{self.mechanism}: none of the grid"
        return f"{self.mechanism}: {_named(self.found)}"

    def _best(self) -> str:
        return (
            ""
            if self.more is None
            else f" Nearest to it: {_named(self.more)}, {_outcome(self.more)}."
        )


def least_noise(mechanism: str, settings: Sequence[Setting], level: float) -> LeastNoise:
    """Return the least noise of one mechanism at which every draw passed.

    Parameters
    ----------
    mechanism : str
    settings : sequence of Setting
        Of this mechanism, the least noise first.
    level : float
        The confidence of the interval, for all settings of the mechanism together (Bonferroni),
        since one of them is chosen by its verdicts.
    """
    place = next((i for i, s in enumerate(settings) if s.verdict == "pass"), None)
    if place is None:
        best = max(settings, key=lambda s: s.passes, default=None)
        shown = best if best is not None and best.passes else None
        return LeastNoise(mechanism, None, None, level, None, shown, ())
    found, rest = settings[place], settings[place + 1 :]
    corrected = 1 - (1 - level) / len(settings)
    return LeastNoise(
        mechanism,
        found,
        found.pass_share(corrected),
        level,
        settings[place - 1] if place else None,
        rest[0] if rest else None,
        tuple(setting for setting in rest if setting.verdict != "pass"),
    )


def _neighbour(setting: Setting | None) -> dict[str, Any] | None:
    if setting is None:
        return None
    return {
        "value": setting.value,
        "verdict": setting.verdict,
        "passes": setting.passes,
        "draws": setting.draws,
    }


def _value(setting: Setting) -> str:
    symbol = "λ" if setting.parameter == "lambda" else "ε"
    return f"{symbol} = {setting.value:.6g}"


def _named(setting: Setting) -> str:
    other = f" (ε = {number(setting.epsilon)})" if setting.epsilon is not None else ""
    return _value(setting) + (other if setting.parameter == "lambda" else "")


def _drawn(setting: Setting) -> str:
    draws = "the one draw" if setting.draws == 1 else f"any of {setting.draws} draws"
    return f"no violation found in {draws}"


def _outcome(setting: Setting) -> str:
    if setting.verdict == "failed":
        return "could not be measured"
    return f"{setting.verdict}, {setting.passes} of {setting.draws} draws passed"
