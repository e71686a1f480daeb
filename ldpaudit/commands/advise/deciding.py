"""Deciding by simulated releases: what audits let pass of what closed forms leave."""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from ldpaudit.commands.advise.closed_forms.candidates import Candidate, Family, in_order
from ldpaudit.commands.advise.result import Choice
from ldpaudit.commands.advise.simulation import Simulation, Simulator, try_to_draw
from ldpaudit.reports.text.numbers import against
from ldpaudit.result import Estimate

MOST: Final = 3
"""Recommendations at most."""
_DRAWS: Final = 2
"""Simulations that must be affordable before audits decide what closed forms leave open."""
_TRIES: Final = 3
"""Simulations of one mechanism at most, each with more noise than the one before."""


@dataclass(frozen=True)
class Reach:
    """How little noise a mechanism needs.

    Attributes
    ----------
    family : Family
    clear : Candidate or None
        The least noise within every limit by closed forms, chance allowed for.
    top : Candidate or None
        The least noise that they do not rule out, where that is less: audits decide.
    """

    family: Family
    clear: Candidate | None
    top: Candidate | None

    @property
    def best(self) -> Candidate:
        """The least noise that may pass."""
        best = self.top or self.clear
        assert best is not None
        return best


@dataclass
class Decider:
    """Decides by simulated releases, as far as the time goes.

    Attributes
    ----------
    simulator : Simulator
    notes : list of str
    refuted : set
        Mechanisms and ε that a simulation refuted.
    simulated : int
        Releases that were simulated.
    """

    simulator: Simulator
    notes: list[str] = field(default_factory=list)
    refuted: set[tuple[str, float]] = field(default_factory=set)
    simulated: int = 0

    @property
    def able(self) -> bool:
        """Whether there is time for audits to decide what closed forms leave open."""
        if not self.simulator.audits:
            return False
        clock = self.simulator.clock
        return clock.has(_DRAWS * clock.pace * self.simulator.predicted())

    def choices(self, reaches: Sequence[Reach]) -> Iterator[Choice]:
        """Yield three candidates at most, simulated as far as the time goes.

        What audits alone let pass is followed by the same mechanism within every limit.
        """
        by_name = {reach.family.name: reach for reach in reaches}
        ordered = [by_name[one.name] for one in in_order([reach.best for reach in reaches])]
        self._announce([reach.best for reach in ordered[:MOST]])
        made = (choice for reach in ordered for choice in self._of(reach))
        yield from itertools.islice(made, MOST)

    def _of(self, reach: Reach) -> Iterator[Choice]:
        if (raised := self._raised(reach)) is not None:
            yield raised
        if reach.clear is not None:
            clear = self.settled(reach.family, reach.clear)
            if clear is not None:
                yield clear

    def _raised(self, reach: Reach) -> Choice | None:
        """Return the least noise that two simulated audits let pass; None where none is found.

        What closed forms leave open is decided so: the least noise first, then by halving.
        """
        if reach.top is None:
            return None
        low = 0.0 if reach.clear is None else reach.clear.epsilon
        between = reach.family.between(low, reach.top.epsilon)
        place, first, last, found = 0, 0, len(between) - 1, None
        while first <= last:
            verdict = self._twice(between[place])
            if verdict is None:
                break
            if isinstance(verdict, Simulation):
                found, last = self._choice(between[place], verdict), place - 1
            else:
                first = place + 1
            place = (first + last) // 2
        if found is not None:
            self._say_open(found)
        return found

    def _twice(self, candidate: Candidate) -> Simulation | bool | None:
        """Return the first of two simulations that both pass, False if one fails, None if unknown.

        One draw that passes may be luck.
        """
        drawn = [self._drawn(candidate)]
        if drawn[0] is not None and not drawn[0].failed:
            drawn.append(self._drawn(candidate, 2))
        if any(one is not None and one.failed for one in drawn):
            self.refuted.add((candidate.name, candidate.epsilon))
            return False
        return None if drawn[-1] is None else drawn[0]

    def _say_open(self, choice: Choice) -> None:
        """Say which limits the audits let pass though closed forms are not sure of them."""
        rows = self.simulator.study.parts.released
        for held in choice.held:
            if not held.passes:
                value, most = against(held.value, held.most)
                self.notes.append(
                    f"{choice.candidate.words} passed two simulated audits of "
                    f"{rows:,} rows each, but it is not shown to keep the policy's "
                    f"{held.limit.check} (level {held.limit.level}): {value} is expected, "
                    f"{most} is the limit. More noise is the careful choice."
                )

    def _announce(self, some: Sequence[Candidate]) -> None:
        count = len(some)
        if self.simulator.needed and count:
            clock, minutes = self.simulator.clock, self.simulator.study.request.minutes
            seconds = clock.pace * sum(self.simulator.predicted(one) for one in some)
            self.simulator.study.progress.remark(
                f"{count} simulated release{'s' if count > 1 else ''}, at most about "
                f"{seconds:.0f} s; --minutes {minutes:g} leaves {clock.left:.0f} s."
            )

    def settled(self, family: Family, candidate: Candidate) -> Choice | None:
        """Return a candidate that its simulation does not refute, with more noise if need be."""
        current: Candidate | None = candidate
        for _ in range(_TRIES):
            if current is None:
                break
            drawn = self._drawn(current)
            if drawn is None or not drawn.failed:
                return self._choice(current, drawn)
            names = ", ".join(check.id for check in drawn.failed)
            self.notes.append(f"{current.words} was left out: a simulated release failed {names}.")
            self.refuted.add((current.name, current.epsilon))
            current = family.with_more_noise(current)
        return None

    def _drawn(self, candidate: Candidate, number: int = 1) -> Simulation | None:
        if not self.simulator.needed:
            return None
        clock = self.simulator.clock
        if not clock.has(clock.pace * self.simulator.predicted(candidate)):
            text = "The time was up before every recommendation was simulated (--minutes)."
            self.notes += [text] if text not in self.notes else []
            return None
        self.simulator.study.progress.step(f"simulating {candidate.words}")
        drawn = try_to_draw(self.simulator, candidate, number)
        self.simulated += 1
        if isinstance(drawn, str):
            self.notes.append(f"{candidate.words} was not simulated: {drawn}")
            return None
        return drawn

    def _choice(self, candidate: Candidate, drawn: Simulation | None) -> Choice:
        utility = None if drawn is None else drawn.utility
        return Choice(
            candidate,
            candidate.held,
            utility or candidate.worth.estimate(),
            tuple(self._leakage(candidate)),
            drawn,
        )

    def _leakage(self, candidate: Candidate) -> Iterator[Estimate]:
        yield candidate.leakage.reported("accuracy", self.simulator.level)
        if self.simulator.study.release.numeric is None:
            yield candidate.leakage.reported("advantage", self.simulator.level)
        limit = self.simulator.limits.of_measure("exceedance")
        if limit is not None and limit.at is not None:
            at = limit.at(candidate.epsilon)
            yield candidate.leakage.reported("exceedance", self.simulator.level, at)
