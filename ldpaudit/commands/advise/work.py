"""The work of ``advise``: closed forms first, then simulations of the few that are left."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from ldpaudit.api import policy_of
from ldpaudit.commands.advise.candidates import Candidate, Family, families, in_order
from ldpaudit.commands.advise.commands import privatize_command
from ldpaudit.commands.advise.leakage import Held, Leakage
from ldpaudit.commands.advise.limits import Limits
from ldpaudit.commands.advise.request import AdviseRequest
from ldpaudit.commands.advise.result import (
    Advice,
    Choice,
    Dropped,
    Outcome,
    Recommendation,
)
from ldpaudit.commands.advise.sentence import sentence
from ldpaudit.commands.advise.simulation import Clock, Simulation, Simulator, try_to_draw
from ldpaudit.commands.advise.study import Study, read_study
from ldpaudit.commands.advise.tables import checked
from ldpaudit.commands.advise.utility import yardstick
from ldpaudit.judging.policy import Policy, default_policy
from ldpaudit.options import PlanOptions
from ldpaudit.result import Estimate
from ldpaudit.running.progress import NoProgress, Progress

MOST: Final = 3
"""Recommendations at most."""
_TRIES: Final = 3
"""Simulations of one mechanism at most, each with more noise than the one before."""


def advise(request: AdviseRequest, progress: Progress | None = None) -> Advice:
    """Say what to release, so that a policy lets it pass.

    Raises
    ------
    LdpAuditError
        One line about what is wrong with the table, the policy or the options.
    """
    progress = progress or NoProgress()
    clock = Clock(60 * request.minutes)
    request.check()
    policy = policy_of(PlanOptions(policy=request.policy)) or default_policy()
    request = checked(request)
    progress.step("reading the table")
    study = read_study(request, request.label[0], request.drop, progress)
    return Adviser(request, policy, clock, progress, study).advice()


@dataclass
class Adviser:
    """Looks for what to release of one private column.

    Attributes
    ----------
    request : AdviseRequest
    policy : Policy
    clock : Clock
    progress : Progress
    study : Study
    """

    request: AdviseRequest
    policy: Policy
    clock: Clock
    progress: Progress
    study: Study
    dropped: list[Dropped] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    simulated: int = 0
    refuted: set[tuple[str, float]] = field(default_factory=set)

    @property
    def limits(self) -> Limits:
        """What the policy limits."""
        return Limits.of(self.policy, len(self.study.release.classes))

    @property
    def level(self) -> float:
        """The confidence of one interval: with all others it holds at the policy's."""
        return 1 - (1 - self.limits.confidence) / (2 * MOST)

    def advice(self) -> Advice:
        """Return what to release."""
        self.progress.step("closed forms")
        able = list(families(self.study, self.limits, yardstick(self.study)))
        found = [one for family in able if (one := family.least_noise()) is not None]
        drawn = [one for family in able for one in family.frontier()]
        choices = list(self._choices(able, in_order(found)))
        outcome: Outcome = "found" if choices else "none"
        recommendations = tuple(Recommendation((one,), self._command(one)) for one in choices)
        return Advice(
            request=self.request,
            outcome=outcome,
            sentence=sentence(recommendations, outcome, self._floor()),
            recommendations=recommendations,
            candidates=tuple(_each_once([*(one.candidate for one in choices), *found, *drawn])),
            dropped=tuple(self.dropped),
            notes=tuple(self.notes),
            level=self.limits.confidence,
            rows=self.study.rows,
            reported=self.study.parts.reported,
            seed=self.study.tables.seed,
            simulated=self.simulated,
            refuted=frozenset(self.refuted),
            policy_sha256=self.policy.sha256,
        )

    def _floor(self) -> tuple[Held, ...]:
        """Return the limits where nothing is released of the label."""
        return tuple(Leakage(self.study, None, 0.0).held(self.limits))

    def _choices(self, able: Sequence[Family], found: Sequence[Candidate]) -> Iterator[Choice]:
        """Yield three candidates at most, simulated as far as the time goes."""
        simulator = Simulator(self.study, self.limits, self.policy, self.level, self.clock.seconds)
        by_name = {family.name: family for family in able}
        kept = 0
        self._announce(simulator, min(len(found), MOST))
        for candidate in found:
            if kept == MOST:
                return
            choice = self._settled(simulator, by_name[candidate.name], candidate)
            if choice is not None:
                kept += 1
                yield choice

    def _announce(self, simulator: Simulator, count: int) -> None:
        if simulator.needed and count:
            seconds = count * simulator.predicted()
            self.progress.remark(
                f"{count} simulated release{'s' if count > 1 else ''}, about {seconds:.0f} s; "
                f"--minutes {self.request.minutes:g} leaves "
                f"{max(self.clock.seconds - self.clock.spent, 0):.0f} s."
            )

    def _settled(self, simulator: Simulator, family: Family, candidate: Candidate) -> Choice | None:
        """Return a candidate that its simulation does not refute, with more noise if need be."""
        current: Candidate | None = candidate
        for _ in range(_TRIES):
            if current is None:
                break
            drawn = self._drawn(simulator, current)
            if drawn is None or not drawn.failed:
                return self._choice(current, drawn)
            names = ", ".join(check.id for check in drawn.failed)
            self.notes.append(f"{current.words} was left out: a simulated release failed {names}.")
            self.refuted.add((current.name, current.epsilon))
            current = family.with_more_noise(current)
        return None

    def _drawn(self, simulator: Simulator, candidate: Candidate) -> Simulation | None:
        if not simulator.needed:
            return None
        if not self.clock.has(simulator.predicted()):
            text = "The time was up before every recommendation was simulated (--minutes)."
            self.notes += [text] if text not in self.notes else []
            return None
        self.progress.step(f"simulating {candidate.words}")
        drawn = try_to_draw(simulator, candidate)
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
        yield candidate.leakage.reported("accuracy", self.level)
        if self.study.release.numeric is None:
            yield candidate.leakage.reported("advantage", self.level)
        limit = self.limits.of_measure("exceedance")
        if limit is not None and limit.at is not None:
            at = limit.at(candidate.epsilon)
            yield candidate.leakage.reported("exceedance", self.level, at)

    def _command(self, choice: Choice) -> str:
        candidate, asked = choice.candidate, self.study.asked
        return privatize_command(
            self.request, asked, (candidate.name, candidate.epsilon), asked.drop
        )


def _each_once(candidates: Sequence[Candidate]) -> Iterator[Candidate]:
    seen = {(one.name, one.epsilon): one for one in reversed(candidates)}
    yield from sorted(seen.values(), key=lambda one: (one.name, -one.epsilon))
