"""Simulated releases of the few candidates that are left: privatize, audit, learn."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from ldpaudit.audits.costs import cost_of
from ldpaudit.audits.interface import Plan
from ldpaudit.audits.listing import AUDITS
from ldpaudit.audits.running import load
from ldpaudit.commands.advise.clock import Clock
from ldpaudit.commands.advise.closed_forms.candidates import Candidate
from ldpaudit.commands.advise.closed_forms.limits import AUDITS as SAID_BY
from ldpaudit.commands.advise.closed_forms.limits import Limit, Limits
from ldpaudit.commands.advise.closed_forms.study import Study
from ldpaudit.commands.sweep.grid import Point
from ldpaudit.commands.sweep.points.measuring import reading_of, score
from ldpaudit.commands.sweep.points.simulation import simulate
from ldpaudit.datasets.reading import ReadReport
from ldpaudit.errors import LdpAuditError
from ldpaudit.judging.policy import Policy
from ldpaudit.pipeline import run_audit
from ldpaudit.randomness import child_generator, seed_from
from ldpaudit.result import Check, Estimate
from ldpaudit.running.stopping import Stop

_ATTACKS: Final = 0.1
"""The share of all the time that the attacks on one simulated release may take."""
_LEARNING: Final = 2.0
_PER_ROW: Final = 6e-5
_ALLOWANCE: Final = 2.0
"""How much longer than predicted a simulation may take."""


@dataclass(frozen=True)
class Simulation:
    """What one simulated release showed.

    Attributes
    ----------
    checks : tuple of Check
        The policy's checks of what noise changes.
    utility : Estimate or None
        Of a learner, on rows that no choice has seen.
    rows : int
        Rows of the simulated release.
    """

    checks: tuple[Check, ...]
    utility: Estimate | None
    rows: int

    @property
    def failed(self) -> tuple[Check, ...]:
        """The checks that were not passed: at level ``warn`` those that failed."""
        return tuple(
            check
            for check in self.checks
            if check.verdict == "fail" or (check.level == "error" and check.verdict != "pass")
        )


@dataclass(frozen=True)
class Simulator:
    """Simulates releases of one column.

    Attributes
    ----------
    study : Study
    limits : Limits
    policy : Policy
    level : float
        Of the intervals.
    clock : Clock
    """

    study: Study
    limits: Limits
    policy: Policy
    level: float
    clock: Clock

    @property
    def audits(self) -> tuple[str, ...]:
        """The audits that say more of what the policy limits than a closed form does."""
        return self._audits(self.limits.limits)

    def _audits(self, limits: Iterable[Limit]) -> tuple[str, ...]:
        numeric = self.study.release.numeric is not None
        asked = {SAID_BY[limit.measure] for limit in limits if limit.measure in SAID_BY}
        return tuple(sorted(asked - ({"label-inference"} if numeric else set())))

    def audits_of(self, candidate: Candidate) -> tuple[str, ...]:
        """The audits of the limits that a candidate comes near to."""
        return self._audits(held.limit for held in candidate.held if not held.far)

    @property
    def learns(self) -> bool:
        """Whether the wanted use is learning."""
        return self.study.request.use != "counts"

    @property
    def needed(self) -> bool:
        """Whether a simulation would say anything that is not known exactly."""
        return self.learns or bool(self.audits)

    def predicted(self, candidate: Candidate | None = None) -> float:
        """Return the seconds that one simulation will take at most, by a rough prediction."""
        learning = _LEARNING + _PER_ROW * self.study.parts.released if self.learns else 0.0
        names = self.audits if candidate is None else self.audits_of(candidate)
        context = self.study.context
        audits = (cost_of(name, load(AUDITS[name]), context).seconds for name in names)
        return _ALLOWANCE * (learning + sum(min(each, self._budget + 30) for each in audits))

    @property
    def _budget(self) -> float:
        return min(60.0, _ATTACKS * self.clock.seconds)

    def draw(self, candidate: Candidate, number: int = 1) -> Simulation:
        """Simulate a release, audit it and, if it is the first one, learn from it.

        Raises
        ------
        LdpAuditError
            One line about why that cannot be done.
        """
        study = self.study
        drawn = simulate(
            study.tables, Point(candidate.name, "epsilon", candidate.epsilon, number), None
        )
        reading = reading_of(study.tables, drawn.table, drawn.mechanism, None)
        learnt = None
        if self.learns and number == 1:
            reported = slice(study.parts.compared, None)
            learnt = score(
                *(study.tables, reading, self.policy, drawn.seed),
                level=self.level,
                reported=reported,
            ).estimate
        return Simulation(
            self._checks(reading, drawn.seed, candidate), learnt, study.parts.released
        )

    def _checks(self, reading: ReadReport, seed: int, candidate: Candidate) -> tuple[Check, ...]:
        audits = self.audits_of(candidate)
        if not audits:
            return ()
        near = (held.limit for held in candidate.held if not held.far)
        asked = {limit.check for limit in near if limit.measure in SAID_BY}
        plan = Plan(
            seed=seed_from(child_generator(seed, "audit")),
            threads=self.study.request.threads or 1,
            budget=self._budget,
        )
        stop = Stop.after(max(self.clock.left, 1.0))
        result = run_audit(
            reading.release,
            plan,
            _only(self.policy, asked),
            only=audits,
            command="ldpaudit advise …",
            stop=stop,
        )
        if stop.obeyed:
            raise LdpAuditError("the time was up (--minutes).")
        return tuple(check for check in result.checks if check.id in asked)


def _only(policy: Policy, checks: set[str]) -> Policy:
    """Return the policy with these checks alone: others do not depend on how much noise there is.

    The claim, the rows and the power of the whole table are settled by closed forms.
    """
    kept = {
        name: getattr(policy.checks, name)
        for name in type(policy.checks).model_fields
        if name.replace("_", "-") in checks
    }
    sections = type(policy.checks).model_construct(
        **dict.fromkeys(type(policy.checks).model_fields) | kept
    )
    audit = policy.audit.model_copy(update={"min_rows": None, "seed": None})
    return policy.model_copy(
        update={"claim": None, "checks": sections, "audit": audit, "waivers": ()}
    )


def try_to_draw(simulator: Simulator, candidate: Candidate, number: int = 1) -> Simulation | str:
    """Return a simulation, or why there is none."""
    try:
        return simulator.draw(candidate, number)
    except LdpAuditError as error:
        return str(error)
