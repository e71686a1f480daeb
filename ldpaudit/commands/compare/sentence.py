"""The comparison in one sentence: what the strongest attack loses, and what the model costs.

A change is named only where its interval leaves its sign in no doubt. Each named difference stands
with its interval, at one level at which all of them hold together. Where an attack's accuracy and
its advantage over the features alone do not change in the same way, both are named: replaced
features tell less on their own, so an attack can be right less often although the release adds
more.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ldpaudit.commands.compare.differences.outside import ADVANTAGE, BEST, NUMBERS
from ldpaudit.commands.compare.titles import setting, titles
from ldpaudit.commands.compare.wording import Intervals, apart, points
from ldpaudit.commands.utility.scores import ACCURACY, SQUARED_ERROR
from ldpaudit.result import AuditResult
from ldpaudit.result.comparison import Difference

_NOT_ALIKE = "was not attacked in the same way"


def sentence(
    releases: Sequence[AuditResult], differences: Sequence[Difference], confidence: float
) -> str:
    """Return the comparison in one sentence.

    ``releases`` are in the order of their letters; the simultaneous differences hold together at
    ``confidence``.
    """
    letters = [chr(ord("B") + i) for i in range(len(releases) - 1)]
    first, called = releases[0], titles(releases)
    named = [_named(first, {d.id: d for d in differences if d.b == letter}) for letter in letters]
    intervals = Intervals.of([d for by_id in named for d in by_id.values()], confidence)
    clauses = [
        f"{title} {_Clause(first, other, by_id, intervals).text()}"
        for title, other, by_id in zip(called[1:], releases[1:], named, strict=True)
    ]
    text = f"{setting(releases)}{'; '.join(clauses)}, against {called[0]}{intervals.remark()}."
    return text[:1].upper() + text[1:]


def _named(first: AuditResult, by_id: Mapping[str, Difference]) -> dict[str, Difference]:
    """Return the differences that the sentence names."""
    ids = [NUMBERS] if first.estimate(NUMBERS) is not None else [BEST]
    if ids == [BEST] and _diverge(by_id):
        ids.append(ADVANTAGE)
    ids.append(ACCURACY if ACCURACY in by_id else SQUARED_ERROR)
    return {identifier: by_id[identifier] for identifier in ids if identifier in by_id}


def _diverge(by_id: Mapping[str, Difference]) -> bool:
    """Return whether the advantage changes as the accuracy does not, or does not show."""
    if BEST not in by_id or ADVANTAGE not in by_id:
        return False
    accuracy, advantage = by_id[BEST], by_id[ADVANTAGE]
    opposite = accuracy.value * advantage.value < 0
    return opposite or (advantage.decided and not accuracy.decided)


def _claim(change: Difference) -> str:
    return "" if change.kind == "certified" else ", by estimate,"


@dataclass(frozen=True)
class _Clause:
    """The part of the sentence about one release, with its named differences by id."""

    first: AuditResult
    other: AuditResult
    by_id: Mapping[str, Difference]
    intervals: Intervals

    def text(self) -> str:
        if self.first.estimate(NUMBERS) is None:
            attack = self._attack()
        else:
            attack = self._error(NUMBERS, "the best attack's squared error") or _NOT_ALIKE
        advantage, test = self._advantage(), self._test()
        comma = "," if advantage and test else ""
        return f"{attack}{advantage}{comma}{' and ' + test if test else ''}"

    def _values(self, identifier: str) -> tuple[float, float] | None:
        ours, theirs = (result.estimate(identifier) for result in (self.first, self.other))
        return None if ours is None or theirs is None else (ours.value, theirs.value)

    def _attack(self) -> str:
        values, change = self._values(BEST), self.by_id.get(BEST)
        if values is None:
            return _NOT_ALIKE
        old, new = (f"{share} %" for share in apart(*values))
        if change is None:
            return f"has its best attack at {new} (no interval for the change from {old})"
        interval = self.intervals.points(change)
        if not change.decided:
            return f"leaves the best attack at {new}, no change shown from {old} {interval}"
        verb = "lowers" if change.high < 0 else "raises"
        return f"{verb}{_claim(change)} the best attack from {old} to {new} {interval}"

    def _advantage(self) -> str:
        """Return the change of the advantage where the accuracy alone would hide it."""
        values, change = self._values(ADVANTAGE), self.by_id.get(ADVANTAGE)
        if change is None or values is None:
            return ""
        old, new = apart(*values)
        subject = "its advantage over the features alone"
        words = f"from {old} to {new} points {self.intervals.points(change)}"
        if not change.decided:
            return f", though {subject} went {words}, no change shown"
        verb = "falls" if change.high < 0 else "rises"
        return f", though {subject} {verb}{_claim(change)} {words}"

    def _test(self) -> str:
        change = self.by_id.get(ACCURACY)
        if change is None:
            return self._error(SQUARED_ERROR, "the squared error on test rows")
        interval = self.intervals.points(change)
        if not change.decided:
            return f"shows no change of test accuracy {interval}"
        verb = "costs" if change.high < 0 else "gains"
        return f"{verb} {points(abs(change.value))} points of test accuracy {interval}"

    def _error(self, identifier: str, what: str) -> str:
        """Return the change of a squared error; "" without a difference."""
        values, change = self._values(identifier), self.by_id.get(identifier)
        if change is None:
            return ""
        interval = self.intervals.plain(change)
        if not change.decided:
            return f"shows no change of {what} {interval}"
        verb = "raises" if change.low > 0 else "lowers"
        shown = "" if values is None else f" from {values[0]:.4g} to {values[1]:.4g}"
        return f"{verb} {what}{shown} {interval}"
