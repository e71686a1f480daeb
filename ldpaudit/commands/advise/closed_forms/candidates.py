"""Candidates: mechanisms that the label allows, each at the least noise within the limits."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

from ldpaudit.commands.advise.closed_forms.leakage import Held, Leakage
from ldpaudit.commands.advise.closed_forms.limits import Limits
from ldpaudit.commands.advise.closed_forms.study import Study
from ldpaudit.commands.advise.closed_forms.utility import Worth, Yardstick
from ldpaudit.commands.sweep.grid import Point
from ldpaudit.commands.sweep.points.simulation import mechanism_at
from ldpaudit.errors import LdpAuditError
from ldpaudit.mechanisms.interface import Mechanism, Traits
from ldpaudit.mechanisms.registry import applicable, traits_of

GRID: Final = (
    *(place / 20 for place in range(1, 41)),
    *(place / 10 for place in range(21, 61)),
    *(place / 4 for place in range(25, 33)),
)
"""ε in nats that are tried, the most noise first: 0.05 to 8."""
_STEP: Final = 0.8
_DRAWN: Final = (0.25, 0.5, 1.0, 2.0, 3.0, 4.0, 6.0, 8.0)
"""ε of the frontier besides those that are recommended."""


@dataclass(frozen=True, eq=False)
class Candidate:
    """A mechanism at one ε.

    Attributes
    ----------
    name : str
    epsilon : float
        In nats, what a prior costs included.
    mechanism : Mechanism
    leakage : Leakage
    limits : Limits
    worth : Worth
        What it is expected to be good for, by closed form.
    """

    name: str
    epsilon: float
    mechanism: Mechanism
    leakage: Leakage
    limits: Limits
    worth: Worth

    @cached_property
    def held(self) -> tuple[Held, ...]:
        """What it does about the policy's limits."""
        return tuple(self.leakage.held(self.limits))

    @cached_property
    def passes(self) -> bool:
        """Whether every limit is kept, chance allowed for."""
        return all(held.passes for held in self.held)

    @cached_property
    def open(self) -> bool:
        """Whether closed forms do not rule out that an audit lets it pass."""
        return all(held.open for held in self.held)

    @property
    def words(self) -> str:
        """Name and ε."""
        return f"{self.name} ε = {self.epsilon:g}"


@dataclass(frozen=True, eq=False)
class Family:
    """A mechanism, to be built at any ε for one column."""

    name: str
    study: Study
    limits: Limits
    yardstick: Yardstick
    due: Callable[[], bool] = lambda: False
    _made: dict[float, Candidate | None] = field(default_factory=dict)

    def at(self, epsilon: float) -> Candidate:
        """Return it at an ε (an LdpAuditError where it cannot be built)."""
        point = Point(self.name, "epsilon", epsilon, 1)
        mechanism = mechanism_at(self.study.tables, point)
        leakage = Leakage(self.study, mechanism, epsilon)
        worth = self.yardstick.of(mechanism, leakage.channel)
        return Candidate(self.name, epsilon, mechanism, leakage, self.limits, worth)

    def least_noise(self, most: float = GRID[-1]) -> Candidate | None:
        """Return it at the largest ε up to one within the limits, None where there is none.

        Leakage grows with ε, so ε is halved in; the answer itself is always checked. Where more
        noise is worth as much, there is no reason to give more away.
        """
        grid = [epsilon for epsilon in GRID if epsilon <= most]
        found = self._largest(grid, lambda one: one.passes)
        if found is None:
            return None
        enough = self._no_dearer(found)
        return enough if enough.passes else found

    def least_open(self, clear: Candidate | None) -> Candidate | None:
        """Return it at the largest ε that closed forms do not rule out, to be decided by audits.

        None where that is worth no more than what is ``clear``: within every limit.
        """
        above = [one for one in GRID if clear is None or one > clear.epsilon]
        if clear is not None and (not above or not getattr(self.tried(above[0]), "open", False)):
            return None
        top = self._largest(above, lambda one: one.open)
        if top is None or (clear is not None and clear.worth.as_good(top.worth)):
            return None
        return self._no_dearer(top)

    def _largest(
        self, grid: Sequence[float], able: Callable[[Candidate], bool]
    ) -> Candidate | None:
        """Return it at the largest of ascending ε that is able, as far as the time goes."""
        low, high, found, place = 0, len(grid) - 1, None, len(grid) - 1
        while low <= high and not (found is not None and self.due()):
            candidate = self.tried(grid[place])
            if candidate is not None and able(candidate):
                found, low = candidate, place + 1
            else:
                high = place - 1
            place = (low + high) // 2
        return found

    def between(self, low: float, high: float) -> list[Candidate]:
        """Return it at every ε above ``low`` and up to ``high``, the largest first."""
        made = [self.tried(epsilon) for epsilon in reversed(GRID) if low < epsilon <= high]
        return [one for one in made if one is not None]

    def with_more_noise(self, candidate: Candidate) -> Candidate | None:
        """Return it at the next ε that is clearly smaller, None where there is none."""
        smaller = [epsilon for epsilon in GRID if epsilon <= _STEP * candidate.epsilon]
        return self.tried(smaller[-1]) if smaller else None

    def _no_dearer(self, best: Candidate) -> Candidate:
        """Return the most noise that is expected to be worth as much."""
        low, high, found = 0, GRID.index(best.epsilon), best
        while low < high:
            middle = (low + high) // 2
            candidate = self.tried(GRID[middle])
            if candidate is not None and candidate.worth.as_good(best.worth):
                found, high = candidate, middle
            else:
                low = middle + 1
        return found

    def tried(self, epsilon: float) -> Candidate | None:
        """Return it at an ε, None where it cannot be built."""
        if epsilon not in self._made:
            try:
                self._made[epsilon] = self.at(epsilon)
            except LdpAuditError:
                self._made[epsilon] = None
        return self._made[epsilon]

    def frontier(self) -> Iterator[Candidate]:
        """Yield it at a few ε, for the picture."""
        for epsilon in _DRAWN:
            candidate = self.tried(epsilon)
            if candidate is not None:
                yield candidate


def families(
    study: Study, limits: Limits, yardstick: Yardstick, due: Callable[[], bool] = lambda: False
) -> Iterator[Family]:
    """Yield the mechanisms that the column's labels allow and that this release can apply.

    ``due`` says whether the time is over, so that the best so far has to do.
    """
    numeric = study.release.numeric is not None
    for name in applicable():
        if _fits(traits_of(name), numeric=numeric):
            yield Family(name, study, limits, yardstick, due)


def _fits(traits: Traits, *, numeric: bool) -> bool:
    return (
        traits.swept
        and traits.numeric == numeric
        and traits.features == "unchanged"
        and traits.rows == "independent"
        and not traits.label_depends_on_features
        and "epsilon" in traits.stated_by
    )


def in_order(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Return candidates in the order of their expected worth, the best first.

    Those of no use at all are left out. Of those that are worth as much as the best, the one of
    the smallest ε comes first.
    """
    candidates = [one for one in candidates if math.isfinite(one.worth.cost)]
    best = min(candidates, key=lambda one: one.worth.cost, default=None)
    if best is None:
        return []
    good = [one for one in candidates if one.worth.as_good(best.worth)]
    rest = [one for one in candidates if not one.worth.as_good(best.worth)]
    return sorted(good, key=lambda one: (one.epsilon, one.worth.cost)) + sorted(
        rest, key=lambda one: one.worth.cost
    )
