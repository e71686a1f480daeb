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
        """Return what the JSON file holds."""
        names = ("value", "parameter", "epsilon", "passes", "draws")
        share = self.share and {"low": self.share[0], "high": self.share[1], "level": self.level}
        return {
            "mechanism": self.mechanism,
            **{name: getattr(self.found, name, None) for name in names},
            "pass_share": share,
            "less_noise": _neighbour(self.less),
            "more_noise": _neighbour(self.more),
            "more_noise_that_does_not_pass": [setting.value for setting in self.exceptions],
            "sentence": self.sentence(),
        }

    def sentence(self) -> str:
        """Return the answer in words."""
        setting = self.found
        if setting is None:
            best = self.more
            nearest = f" Nearest to it: {_named(best)}, {_outcome(best)}." if best else ""
            return f"{self.mechanism}: no setting of the grid passed in every draw.{nearest}"
        draws = "the one draw" if setting.draws == 1 else f"any of {setting.draws} draws"
        parts = [f"{self.mechanism}: {_named(setting)}, no violation found in {draws}"]
        if self.share is not None:
            low = number(self.share[0], "down")
            parts.append(f"a draw passes with probability {low} or more ({percent(self.level)})")
        if self.less is None:
            parts.append("it is the least noise of the grid, so less may do")
        else:
            parts.append(f"less noise, {_named(self.less)}: {_outcome(self.less)}")
        if self.exceptions:
            values = ", ".join(setting.value_text for setting in self.exceptions)
            parts.append(f"more noise does not always pass: {values}")
        return "; ".join(parts) + "."

    def short(self) -> str:
        """Return the answer in a few words."""
        return f"{self.mechanism}: {_named(self.found) if self.found else 'none of the grid'}"


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
    least, rest = settings[place], settings[place + 1 :]
    corrected = 1 - (1 - level) / len(settings)
    return LeastNoise(
        mechanism,
        least,
        least.pass_share(corrected),
        level,
        settings[place - 1] if place else None,
        rest[0] if rest else None,
        tuple(setting for setting in rest if setting.verdict != "pass"),
    )


def _neighbour(setting: Setting | None) -> dict[str, Any] | None:
    names = ("value", "verdict", "passes", "draws")
    return None if setting is None else {name: getattr(setting, name) for name in names}


def _named(setting: Setting) -> str:
    if setting.epsilon is None or setting.parameter == "epsilon":
        return setting.value_text
    return f"{setting.value_text} (ε = {number(setting.epsilon)})"


def _outcome(setting: Setting) -> str:
    if setting.verdict == "failed":
        return "could not be measured"
    return f"{setting.outcome} draws passed"
