"""What a self-test found."""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, Literal

from ldpaudit.commands.selftest.figures import CHANCE, LEVEL, Figure, figures
from ldpaudit.commands.selftest.stored import StoredRow
from ldpaudit.commands.selftest.trial import Outcome

Verdict = Literal["pass", "fail", "inconclusive"]
_SIZES: Final = (1000, 2500, 10_000, 50_001)
_VERDICTS: Final = ("pass", "fail", "inconclusive", "error")


@dataclass(frozen=True)
class Selftest:
    """Planted releases, how their audits ended, and what that says of the installation.

    Attributes
    ----------
    outcomes : tuple of Outcome
        In the order of the plan.
    planned : int
        Releases of the plan.
    seed : int
    thorough : bool
    seconds : float
    """

    outcomes: tuple[Outcome, ...]
    planned: int
    seed: int
    thorough: bool
    seconds: float

    @cached_property
    def figures(self) -> tuple[Figure, ...]:
        """How often audits were right, against what is documented."""
        return figures(self.outcomes)

    @property
    def verdict(self) -> Verdict:
        """Fail where a figure refutes what is documented, pass where each could have."""
        found = {figure.finding for figure in self.figures}
        if "refuted" in found:
            return "fail"
        return "inconclusive" if "too few" in found or not found else "pass"

    @property
    def sentence(self) -> str:
        """What to tell people."""
        honest = [one for one in self.outcomes if not one.leaking]
        leaking = [one for one in self.outcomes if one.leaking]
        accused = sum(one.verdict == "fail" for one in honest)
        found = sum(one.found for one in leaking)
        claimed = f"{accused or 'no'} violation{'s' * (accused != 1)} claimed"
        counts = (
            f"{len(honest):,} honest releases, {claimed}; {len(leaking):,} leaking releases, "
            f"{found:,} found"
        )
        if self.verdict == "fail":
            wrong = "; ".join(f.title for f in self.figures if f.finding == "refuted")
            return f"This installation does not work as documented ({wrong}): {counts}."
        if self.verdict == "inconclusive":
            return f"Too few releases to say whether this installation works: {counts}."
        return f"This installation works as documented: {counts}."

    @property
    def rows(self) -> tuple[StoredRow, ...]:
        """How audits ended, group by group."""
        return tuple(row for group, of in _GROUPS.items() for row in self._rows(group, of))

    def _rows(self, group: str, of: Callable[[Outcome], Any]) -> Iterator[StoredRow]:
        keys = sorted({(one.leaking, of(one)) for one in self.outcomes})
        for leaking, key in keys:
            members = [o for o in self.outcomes if (o.leaking, of(o)) == (leaking, key)]
            ended = Counter(one.verdict for one in members)
            found = sum(one.leaking and one.found for one in members)
            warned = sum(bool(one.warned) for one in members)
            counts = {verdict: ended[verdict] for verdict in _VERDICTS}
            yield StoredRow(
                group=group,
                name=_name(group, key),
                leaking=leaking,
                n=len(members),
                ended=counts,
                found=found,
                warned=warned,
            )

    def stored(self) -> dict[str, Any]:
        """Return what the JSON file holds."""
        return {
            "schema_version": "1.0",
            "verdict": self.verdict,
            "sentence": self.sentence,
            "chance": CHANCE,
            "figures": [_stored(figure) for figure in self.figures],
            "rows": [row.model_dump() for row in self.rows],
            "releases": [one.stored() for one in self.outcomes],
            "planned": self.planned,
            "seed": self.seed,
            "thorough": self.thorough,
            "seconds": self.seconds,
        }


def _size(outcome: Outcome) -> int:
    return next(most for most in _SIZES if outcome.setting.rows < most)


def _name(group: str, key: Any) -> str:
    if group != "rows":
        return str(key)
    place = _SIZES.index(key)
    low = _SIZES[place - 1] if place else 500
    return f"{low:,} to {key - (place < len(_SIZES) - 1):,}" if place < 3 else f"{low:,} to 50,000"


def _stored(figure: Figure) -> dict[str, Any]:
    low, high = figure.interval
    return {
        "id": figure.id,
        "title": figure.title,
        "count": figure.count,
        "n": figure.n,
        "value": figure.rate,
        "low": low,
        "high": high,
        "level": LEVEL,
        "stated": figure.stated,
        "side": figure.side,
        "p_value": figure.p_value,
        "finding": figure.finding,
    }


_GROUPS: Final[dict[str, Callable[[Outcome], Any]]] = {
    "mechanism": lambda one: one.setting.mechanism,
    "rows": _size,
    "labels": lambda one: one.setting.classes,
    "made": lambda one: one.setting.kind,
    "truth": lambda one: one.setting.truth,
}
