"""How often the audits were right, and whether that is what is documented."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from ldpaudit.commands.selftest.leaks import COLUMNS, LEAKS, NOISE
from ldpaudit.commands.selftest.trial import Outcome
from ldpaudit.estimators.intervals.binomial import clopper_pearson

CHANCE: Final = 1e-4
"""How often a good installation is said not to work, by all figures together."""
LEVEL: Final = 0.95
"""The confidence of each interval, and of certified bounds and policies by default."""
FOUND: Final = 0.95
"""The share of strong leaks that is documented to be found."""
POWER: Final = 0.9
"""With this probability the excess is found that an audit says it would find."""
Finding = Literal["as documented", "refuted", "too few"]


@dataclass(frozen=True)
class Figure:
    """How often something happened, against what is documented.

    Attributes
    ----------
    id, title : str
    count, n : int
        How often, and of how many releases.
    stated : float
        The share that is documented.
    side : {"at least", "at most"}
        What it is of the true share.
    share : float
        Of the chance that a good installation is refuted.
    """

    id: str
    title: str
    count: int
    n: int
    stated: float
    side: Literal["at least", "at most"]
    share: float = 1.0

    @property
    def rate(self) -> float | None:
        """The observed share, None of no releases."""
        return self.count / self.n if self.n else None

    @property
    def interval(self) -> tuple[float, float]:
        """The Clopper–Pearson interval of the true share, at the level of :data:`LEVEL`."""
        low, high = clopper_pearson(self.count, self.n, 1 - LEVEL) if self.n else (0.0, 1.0)
        return float(low), float(high)

    @property
    def p_value(self) -> float:
        """How likely a count this bad is where the documented share is true."""
        return self._p_value(self.count)

    @property
    def finding(self) -> Finding:
        """Whether the count fits what is documented; "too few" if no count could refute it."""
        worst = self.n if self.side == "at most" else 0
        if self.p_value <= CHANCE * self.share:
            return "refuted"
        return "too few" if self._p_value(worst) > CHANCE * self.share else "as documented"

    def _p_value(self, count: int) -> float:
        from scipy.stats import binom

        if self.side == "at most":
            return float(binom.sf(count - 1, self.n, self.stated))
        return float(binom.cdf(count, self.n, self.stated))


def figures(outcomes: Collection[Outcome]) -> tuple[Figure, ...]:
    """Return every figure; each has an equal share of the chance of refuting by bad luck."""
    every = [*_faults(outcomes), *_coverage(outcomes), *_alarms(outcomes), *_power(outcomes)]
    judged = sum(figure.stated > 0 for figure in every)
    return tuple(Figure(f.id, f.title, f.count, f.n, f.stated, f.side, 1 / judged) for f in every)


def _faults(outcomes: Collection[Outcome]) -> Iterator[Figure]:
    broken = sum(one.verdict == "error" for one in outcomes)
    yield Figure("faults", "audits that could not run", broken, len(outcomes), 0.0, "at most")


def _coverage(outcomes: Collection[Outcome]) -> Iterator[Figure]:
    for name in sorted({name for one in outcomes for name in one.held}):
        held = [one.held[name] for one in outcomes if name in one.held]
        title = f"certified bound {name} above the truth"
        missed = len(held) - sum(held)
        yield Figure(f"missed.{name}", title, missed, len(held), 1 - LEVEL, "at most")


def _alarms(outcomes: Collection[Outcome]) -> Iterator[Figure]:
    honest = [one for one in outcomes if not one.leaking and one.verdict != "error"]
    accused = sum(one.verdict == "fail" for one in honest)
    title = "honest releases in which a violation is claimed"
    yield Figure("false_alarms", title, accused, len(honest), 1 - LEVEL, "at most")
    warned = sum(bool(one.warned) for one in honest)
    title = "honest releases in which a check warns without cause"
    yield Figure("false_warnings", title, warned, len(honest), 1 - LEVEL, "at most")


def _power(outcomes: Collection[Outcome]) -> Iterator[Figure]:
    strong = [one for one in outcomes if one.leaking and one.strong]
    for name, title, kinds in _GROUPS:
        of = [one for one in strong if one.setting.kind in kinds]
        yield Figure(f"found.{name}", title, _found(of), len(of), FOUND, "at least")
    promised = [one for one in outcomes if one.leaking and one.promised]
    title = "leaks found that the audit says it would find"
    yield Figure("found.promised", title, _found(promised), len(promised), POWER, "at least")


def _found(outcomes: Sequence[Outcome]) -> int:
    return sum(one.found for one in outcomes)


_REST: Final = tuple(kind for kind in LEAKS if kind not in (*NOISE, *COLUMNS))
_GROUPS: Final[tuple[tuple[str, str, Collection[str]], ...]] = (
    ("noise", "strong leaks of too little noise that are found", NOISE),
    ("draws", "strong leaks of draws that are not as declared that are found", _REST),
    ("columns", "strong leaks beside the label that are found", COLUMNS),
)
