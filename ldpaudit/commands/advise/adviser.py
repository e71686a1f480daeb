"""Advice on one private column: closed forms first, then simulations of the few that are left."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from ldpaudit.commands.advise.clock import Clock
from ldpaudit.commands.advise.closed_forms.candidates import GRID, Candidate, Family, families
from ldpaudit.commands.advise.closed_forms.features import (
    IDENTIFIERS,
    REVEAL,
    Search,
    broken,
    columns_that_decide,
    columns_that_name,
    told_estimates,
)
from ldpaudit.commands.advise.closed_forms.leakage import Held, Leakage
from ldpaudit.commands.advise.closed_forms.limits import Limits
from ldpaudit.commands.advise.closed_forms.study import Study
from ldpaudit.commands.advise.closed_forms.utility import yardstick
from ldpaudit.commands.advise.commands import privatize_command
from ldpaudit.commands.advise.deciding import MOST, Decider, Reach
from ldpaudit.commands.advise.request import AdviseRequest
from ldpaudit.commands.advise.result import (
    Advice,
    Choice,
    Dropped,
    Outcome,
    Recommendation,
)
from ldpaudit.commands.advise.sentence import no_use, sentence
from ldpaudit.commands.advise.simulation import Simulator
from ldpaudit.judging.policy import Policy
from ldpaudit.reports.text.numbers import against
from ldpaudit.result import Estimate
from ldpaudit.running.progress import Progress

_INTERVALS: Final = 3 * MOST + 4
"""Intervals of one private column: three of each recommendation, and what the features tell."""
_DECIDE: Final = "they tell the label in every row, and privatize refuses them"
_NAME: Final = "they may lead back to a person (the policy's check identifiers)"
_TELL: Final = "with them the features alone tell more of the labels than the policy allows"
_PICTURE: Final = 10.0
_CLOSED: Final = 0.5
"""The share of the time after which closed forms look no further."""


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
    columns : int
        How many private columns the release has.
    dropped : list of Dropped
        Columns that are left out, so far.
    notes : list of str
    searched : bool
        Whether the search for such columns came to its end.
    simulated : int
        Releases that were simulated.
    refuted : set
        Mechanisms and ε that a simulation refuted.
    """

    request: AdviseRequest
    policy: Policy
    clock: Clock
    progress: Progress
    study: Study
    columns: int = 1
    dropped: list[Dropped] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    searched: bool = True
    simulated: int = 0
    refuted: set[tuple[str, float]] = field(default_factory=set)

    @property
    def limits(self) -> Limits:
        """What the policy limits; several columns and the whole share the error probability."""
        limits = Limits.of(self.policy, len(self.study.release.classes))
        parts = 1 if self.columns == 1 else self.columns + 1
        return replace(limits, tests=limits.tests * parts)

    @property
    def level(self) -> float:
        """The confidence of one interval: with all others it holds at the policy's."""
        return 1 - (1 - self.limits.confidence) / (_INTERVALS * self.columns)

    def advice(self) -> Advice:
        """Return what to release."""
        self.leave_out()
        self.progress.step("closed forms")
        able = [] if self._hopeless() else self.families()
        decider = self._decider()
        reaches = list(self._reaches(able, decider))
        found = [reach.best for reach in reaches]
        choices = list(decider.choices(reaches))
        self._learnt(decider)
        outcome: Outcome = "found" if choices else "none" if self.searched else "undecided"
        if outcome == "none" and not self.broken():
            self.notes += self.in_the_way(able)
        if choices:
            self.notes += no_use(choices[0].utility, float(self.study.prior.max()))
        recommendations = tuple(Recommendation((one,), self._command(one)) for one in choices)
        text = sentence(recommendations, outcome, self.broken(), self.dropped)
        drawn = [*(one.candidate for one in choices), *found]
        told = self.told(outcome, text, recommendations)
        return replace(told, candidates=tuple(self.drawn(drawn, able)))

    def in_the_way(self, able: Sequence[Family]) -> Iterator[str]:
        """Yield the limits that even the most noise breaks."""
        quiet = (one for family in able if (one := family.tried(GRID[0])) is not None)
        for held in next((one.held for one in quiet), ()):
            if not held.passes:
                observed, most = against(held.value, held.most)
                title = held.limit.title
                yield f"Even with the most noise, {title}: {observed}; the policy allows {most}."

    def told(
        self, outcome: Outcome, text: str, recommendations: tuple[Recommendation, ...]
    ) -> Advice:
        """Return the result, without candidates."""
        return Advice(
            request=self.request,
            outcome=outcome,
            sentence=text,
            recommendations=recommendations,
            candidates=(),
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

    def drawn(
        self, found: Sequence[Candidate], able: Sequence[Family] | None = None
    ) -> Iterator[Candidate]:
        """Yield candidates with those of a few ε, for the picture, each once."""
        able = self.families() if able is None else able
        more = [one for family in able if self._has_time() for one in family.frontier()]
        return _each_once([*found, *more])

    def settled(self, name: str, epsilon: float) -> Choice | None:
        """Return a mechanism at the largest ε, up to one, that the policy lets pass here."""
        family = next(one for one in self.families() if one.name == name)
        candidate = family.tried(epsilon)
        if candidate is None or not candidate.passes:
            candidate = family.least_noise(epsilon)
        if candidate is None:
            return None
        decider = self._decider()
        choice = decider.settled(family, candidate)
        self._learnt(decider)
        return choice

    def _decider(self) -> Decider:
        return Decider(Simulator(self.study, self.limits, self.policy, self.level, self.clock))

    def _learnt(self, decider: Decider) -> None:
        self.notes += [note for note in decider.notes if note not in self.notes]
        self.simulated += decider.simulated
        self.refuted |= decider.refuted

    def families(self) -> list[Family]:
        """Return the mechanisms that the column's labels allow."""
        return list(families(self.study, self.limits, yardstick(self.study), self._due))

    def _due(self) -> bool:
        """Return whether closed forms had their share of the time."""
        return self.clock.spent > _CLOSED * self.clock.seconds

    def _reaches(self, able: Sequence[Family], decider: Decider) -> Iterator[Reach]:
        """Yield how little noise each mechanism needs, as far as the time goes."""
        some = False
        for family in able:
            if some and self._due():
                text = "The time was up before every mechanism was looked at (--minutes)."
                self.notes += [text] if text not in self.notes else []
                return
            clear = family.least_noise()
            top = family.least_open(clear) if decider.able else None
            if clear is not None or top is not None:
                some |= clear is not None
                yield Reach(family, clear, top)

    def _has_time(self) -> bool:
        """Return whether the picture may still be computed: it gets a few seconds in any case."""
        return self.clock.spent < self.clock.seconds + _PICTURE

    def _hopeless(self) -> bool:
        """Return whether the features alone break a limit, or none is left to learn from."""
        if self._told_too_much():
            return True
        none_left = bool(self.dropped) and not self.study.tables.features.names
        return none_left and self.request.use != "counts"

    def leave_out(self) -> None:
        """Leave out the columns that give labels or people away, whatever the noise."""
        self._drop(columns_that_decide(self.study), _DECIDE)
        if IDENTIFIERS in self.limits.columns:
            self._drop(columns_that_name(self.study), _NAME)
        if self._told_too_much():
            self.progress.step("which columns to leave out")
            search = Search(self.study, self.limits, self._reveal, self.clock)
            columns, self.searched = search.columns()
            self._drop(columns, _TELL, measured=True)

    def _drop(self, columns: tuple[str, ...], reason: str, *, measured: bool = False) -> None:
        if not columns:
            return
        before = self._told() if measured else ()
        self.study = self.study.without(*columns)
        self.dropped.append(Dropped(columns, reason, before, self._told() if measured else ()))

    def _told(self) -> tuple[Estimate, ...]:
        """Return what the features alone tell of the rows that are reported on."""
        found = told_estimates(self.study, self.level)
        limit = self.limits.of_measure("exceedance")
        if limit is None or limit.at is None:
            return found
        alone = Leakage(self.study, None, 0.0)
        return (*found, alone.reported("exceedance", self.level, limit.at(0.0)))

    @property
    def _reveal(self) -> float | None:
        """The most that the features alone may tell: AUC, or balanced accuracy of classes."""
        section = self.policy.checks.features_reveal_label
        asked = REVEAL in self.limits.columns and self.study.release.numeric is None
        return section.max if asked and section is not None else None

    def _told_too_much(self) -> bool:
        if self.broken():
            return True
        if self._reveal is None:
            return False
        told = Search(self.study, self.limits, self._reveal, self.clock).now()
        return max(told.auc, told.balanced) > self._reveal

    def broken(self) -> tuple[Held, ...]:
        """Return the limits that the features alone break."""
        return broken(self.study, self.limits)

    def _command(self, choice: Choice) -> str:
        candidate, asked = choice.candidate, self.study.asked
        return privatize_command(
            self.request, asked, (candidate.name, candidate.epsilon), asked.drop
        )


def _each_once(candidates: Sequence[Candidate]) -> Iterator[Candidate]:
    seen = {(one.name, one.epsilon): one for one in reversed(candidates)}
    yield from sorted(seen.values(), key=lambda one: (one.name, -one.epsilon))
