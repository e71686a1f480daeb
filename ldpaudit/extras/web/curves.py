"""The curves of a sweep: what each tried ε reveals and keeps, as lines of a drawing."""

import math
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

_WIDE, _HIGH, _LEFT, _TOP = 520, 200, 44, 12
"""Of the drawing, in its own units."""
_ATTACKERS: Final = {
    "attack.best.accuracy": "labels that the strongest attacker guesses right",
    "numeric.best.within_5": "numbers that the strongest attacker guesses to 5 % of their range",
}
_LEARNERS: Final = {
    "test_accuracy": "new labels that a model gets right that learnt from the release",
    "test_squared_error": "of what varies, explained by a model that learnt from the release",
}


class Line(NamedTuple):
    """A curve: a share from 0 to 1 for each ε, None where it was not measured."""

    key: str
    title: str
    shares: tuple[float | None, ...]
    reference: float | None
    """The share without the release, or without noise, in ``against``."""
    against: str
    advised: tuple[int, str] | None = None
    """The place of the advised ε, where the share is the advice's own, and its interval in words.
    """

    def reference_at(self, place: int) -> str:
        """Return the interval of what the advice says, where the curve stands at the advice."""
        return self.advised[1] if self.advised and self.advised[0] == place else ""


class Curves(NamedTuple):
    """The tried ε in order, the place of the one that is looked at, and the curves."""

    epsilons: tuple[float, ...]
    at: int
    lines: tuple[Line, ...]

    def x(self, place: int) -> float:
        """Return where an ε stands: all are equally far apart, as on the slider."""
        return _LEFT + _WIDE * place / max(len(self.epsilons) - 1, 1)

    def y(self, share: float) -> float:
        """Return how high a share is drawn."""
        return _TOP + _HIGH * (1 - min(max(share, 0.0), 1.0))

    def points(self, line: Line) -> str:
        """Return the corners of a curve."""
        known = [(n, share) for n, share in enumerate(line.shares) if share is not None]
        return " ".join(f"{self.x(n):.1f},{self.y(share):.1f}" for n, share in known)


def curves_of(sweep: Mapping[str, Any], advice: Mapping[str, Any], at: str | None) -> Curves:
    """Return the curves of a stored sweep.

    ``sweep``, ``advice``: as stored; ``at``: what the slider sent: the place of an ε, by default
    the advised one.
    """
    points = sorted(sweep["points"], key=lambda one: one["value"])
    epsilons = tuple(one["value"] for one in points)
    advised = next((one["epsilon"] for one in advice["recommendations"]), 1.0)
    place = min(range(len(epsilons)), key=lambda n: abs(epsilons[n] - advised))
    best = next(iter(advice["recommendations"]), None)
    measured = _measured(best) if best and epsilons[place] == best["epsilon"] else {}
    own, place = place, next((n for n in range(len(epsilons)) if at == str(n)), place)
    certain = tuple(1 / (1 + math.exp(-value)) for value in epsilons)
    lines = [
        Line(
            "says", "even odds between two labels become at most", certain, 0.5, "nothing released"
        )
    ]
    for key in _ATTACKERS.keys() & points[0].keys():
        alone = _shares(points, "attack.features-only.accuracy")[-1]
        shares = _shares(points, key)
        lines.append(Line("guessed", _ATTACKERS[key], shares, alone, "from the features alone"))
    for key in _LEARNERS.keys() & points[0].keys():
        without = {**points[0], **(sweep.get("reference") or {key: None})}
        learnt = _shares([*points, without], key)
        against = "from the true labels"
        lines.append(Line("learnt", _LEARNERS[key], learnt[:-1], learnt[-1], against))
    lines = [_as_advised(line, own, measured.get(line.key)) for line in lines]
    return Curves(epsilons, place, tuple(lines))


def _measured(best: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """Return the advice's own numbers by the curve that they belong to: shares alone."""
    guessed, learnt = (best.get("leakage") or {}).get("advice.accuracy"), best.get("utility")
    numbers = {"guessed": guessed, "learnt": learnt}
    return {key: one for key, one in numbers.items() if one and one["unit"] == "proportion"}


def _as_advised(line: Line, place: int, measured: Mapping[str, Any] | None) -> Line:
    """Return a curve with what the advice says at its ε, so that a page has one number for it."""
    if measured is None or measured["value"] is None:
        return line
    shares = (*line.shares[:place], measured["value"], *line.shares[place + 1 :])
    ends = [measured.get("low"), measured.get("high")]
    words = " to ".join(f"{100 * end:.1f} %" for end in ends if end is not None)
    return line._replace(shares=shares, advised=(place, f"{words}, on {measured['n']:,} rows"))


def _shares(points: list[Any], key: str) -> tuple[float | None, ...]:
    """Return a mean of each point as a share; of squared errors, what they leave explained."""
    found = [(one.get(key) or {}).get("value") for one in points]
    if key != "test_squared_error":
        return tuple(found)
    whole = [one["test_constant"]["value"] for one in points]
    return tuple(
        None if one is None else 1 - one / of for one, of in zip(found, whole, strict=True)
    )
