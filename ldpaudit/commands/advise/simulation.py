"""Simulated releases: privatized, audited as ``ldpaudit run`` would, and learnt from."""

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from ldpaudit.audits.interface import Plan
from ldpaudit.commands.advise.column import Column
from ldpaudit.commands.advise.ranking import Line, Parts, share_error, words
from ldpaudit.commands.sweep.points import Simulation, mechanism_at, reading_of, score
from ldpaudit.commands.sweep.request import Point
from ldpaudit.datasets import read_file_columns
from ldpaudit.errors import LdpAuditError
from ldpaudit.judging.policy import Policy
from ldpaudit.mechanisms.view import DeclaredCoding
from ldpaudit.pipeline.audit import audit
from ldpaudit.pipeline.nodes import Node, node_of
from ldpaudit.randomness import child_generator, seed_from
from ldpaudit.release import ColumnsDeclaration, Declaration, LabelDeclaration
from ldpaudit.result import AuditResult, Check, Estimate
from ldpaudit.result.numbers import against
from ldpaudit.work.progress import Progress, Stop

# Releases that are looked at, at most: their intervals hold together, whichever is chosen.
MOST_SIMULATED: Final = 40
# Checks of whether the noise is as declared: a simulated release fails them by chance alone.
_AS_DECLARED: Final = ("claimed-channel", "guessable-seed", "rare-classes", "shared-noise")
# Audits that only one check of a policy needs.
_NEEDED: Final = {"instance-loss": "instance_loss_exceedance", "renyi": "renyi_epsilon"}


@dataclass(frozen=True)
class Tried:
    """A release that was simulated.

    ``results``: of the audit of each draw; ``utility``: of each private column; ``why_not``: the
    first limit that it broke, or why it cannot be made; ``unclear``: an audit cannot tell whether
    it breaks that.
    """

    parts: Parts
    results: tuple[AuditResult, ...] = ()
    utility: tuple[Estimate | None, ...] = ()
    why_not: str = ""
    unclear: bool = False

    @property
    def passes(self) -> bool:
        """Whether every draw met the policy."""
        return not self.why_not

    def of_column(self, place: int) -> AuditResult:
        """Return what the audit of the first draw found of a private column."""
        return self.results[0].labels[place] if self.results[0].labels else self.results[0]


@dataclass
class Search:
    """Simulates releases as far as the time goes, and keeps what it found.

    ``level``: of each interval; ``deadline``: on the clock ``time.monotonic``.
    """

    columns: Sequence[Column]
    policy: Policy
    level: float
    deadline: float
    progress: Progress
    tried: dict[Parts, Tried] = field(default_factory=dict)
    drawn: int = 0

    def least_noise(self, line: Line, share: float) -> bool:
        """Look for the least noise of a line that passes twice; False where the time is over.

        From where the closed form says to start, in ever longer steps to less noise or more, then
        by halving; ``share``: of the time that is left.
        """
        until = time.monotonic() + share * (self.deadline - time.monotonic())
        low, high, place, step = -1, len(line.parts), line.start, 1
        while high - low > 1:
            if (tried := self.measured(line.parts[place], until)) is None:
                return False
            low, high = (place, high) if tried.passes else (low, place)
            if low < 0:
                place = max(high - step, 0)
            elif high == len(line.parts):
                place = min(low + step, high - 1)
            else:
                place = (low + high) // 2
            step *= 2
        while low >= 0:  # One draw that passes may be luck.
            again = self.measured(line.parts[low], until, draws=2)
            if again is None or again.passes:
                return again is not None
            low -= 1
        return True

    def measured(self, parts: Parts, until: float, draws: int = 1) -> Tried | None:
        """Return what so many simulated releases show; None where the time is over."""
        known = self.tried.get(parts, Tried(parts))
        if known.why_not or len(known.results) >= draws:
            return known
        if time.monotonic() >= until or len(self.tried) >= MOST_SIMULATED:
            return None
        self.progress.step(f"simulating {words(parts)}")
        try:
            while len(known.results) < draws and known.passes:
                numbered = [replace(one, repeat=len(known.results) + 1) for one in parts]
                self.drawn += 1
                if (result := self._audited(numbered, until)) is None:
                    return None
                stopping = next((one for one in _checks(result) if stops(one)), None)
                known = replace(known, results=(*known.results, result))
                if stopping is not None:
                    unclear = stopping.verdict == "inconclusive"
                    known = replace(known, why_not=reason(stopping), unclear=unclear)
            if not known.utility:
                known = replace(known, utility=tuple(self._utility(parts)))
        except LdpAuditError as error:
            known = replace(known, why_not=str(error))
        self.tried[parts] = known
        return known

    def _audited(self, parts: Sequence[Point], until: float) -> AuditResult | None:
        """Return the audit of a simulated release of all rows; None where the time is over."""
        pairs = zip(self.columns, parts, strict=True)
        drawn = [column.drawn(column.audited, point) for column, point in pairs]
        checks = self.policy.checks
        skip = [name for name, check in _NEEDED.items() if getattr(checks, check) is None]
        threads = self.columns[0].request.threads or 1
        plan = Plan(seed=seed_from(child_generator(drawn[0].seed, "audit")), threads=threads)
        stop = Stop.after(until - time.monotonic())
        result = audit(
            self._node(drawn),
            plan,
            self._policy(),
            skip=("seeds", *skip),
            command="ldpaudit advise …",
            stop=stop,
        )
        return None if stop.obeyed else result

    def _policy(self) -> Policy:
        """Return the policy, which asks for rows of the whole table and not of a part of it."""
        least, waived = self.policy.audit.min_rows, {"waivers": ()}
        enough = least is not None and self.columns[0].rows >= least
        fixed = {"seed": None, "min_rows": None if enough else least}
        settled = self.policy.audit.model_copy(update=fixed)
        return self.policy.model_copy(update={"audit": settled, **waived})

    def _node(self, drawn: Sequence[Simulation]) -> Node:
        """Return a simulated release of every private column, as an insider reads it."""
        first = self.columns[0]
        if len(drawn) == 1:
            tables = replace(first.tables, training=first.audited, test=None)
            reading = reading_of(tables, drawn[0].table, drawn[0].mechanism, None)
            return node_of(reading.release)
        names = [column.asked.label for column in self.columns]
        table, truth = drawn[0].table, first.audited.select(names[:1])
        for name, column, one in zip(names[1:], self.columns[1:], drawn[1:], strict=True):
            table = table.append_column(name, one.table.column(name))
            truth = truth.append_column(name, column.audited.column(name))
        claims = (
            Declaration(one.mechanism.name, dict(one.mechanism.declaration()), "api")
            for one in drawn
        )
        declared = ColumnsDeclaration(tuple(map(LabelDeclaration, names, claims)))
        report = read_file_columns(
            table.replace_schema_metadata(),
            labels=names,
            declaration=declared,
            truth=truth.replace_schema_metadata(),
            coding=DeclaredCoding,
        )
        return node_of(report.file)

    def _utility(self, parts: Parts) -> Iterator[Estimate | None]:
        """Yield what a learner makes of each private column, the others' values among features."""
        for column, point in zip(self.columns, parts, strict=True):
            if column.request.use == "counts":
                yield _share_error(column, point)
                continue
            seen = beside(self.columns, parts, column)
            drawn = seen.drawn(seen.tables.training, point)
            reading = reading_of(seen.tables, drawn.table, drawn.mechanism, None)
            found = score(seen.tables, reading, self.policy, drawn.seed, level=self.level)
            yield found.estimate


def beside(columns: Sequence[Column], parts: Parts, column: Column) -> Column:
    """Return a private column with the others' released values among its features."""
    pairs = zip(columns, parts, strict=True)
    others = {one.asked.label: (one, point) for one, point in pairs if one is not column}
    return column.beside(others) if others else column


def _share_error(column: Column, point: Point) -> Estimate:
    channel = column.channel(mechanism_at(column.tables, point))
    return Estimate.exact(
        "share_error",
        "Typical error of a label's share",
        share_error(column.prior, channel, column.rows),
        section="utility",
        unit="proportion",
        method="root mean square over the labels of the error of the unbiased estimate, the noise "
        "being all that is random",
    )


def _checks(result: AuditResult) -> Iterator[Check]:
    """Yield the checks of a result and of its parts."""
    yield from result.checks
    for part in result.labels:
        yield from part.checks


def stops(check: Check) -> bool:
    """Return whether a check of a simulated release speaks against releasing so.

    The noise is as declared by construction, so of the claim only the audit's power counts; columns
    that may name people are left out or asked to be kept.
    """
    if check.id in (*_AS_DECLARED, "identifiers"):
        return False
    if check.verdict == "fail":
        return check.id != "claimed-epsilon"
    return check.verdict == "inconclusive" and check.level == "error"


def reason(check: Check) -> str:
    """Return what a check found, in words."""
    if check.verdict == "fail" and check.observed is not None and check.limit is not None:
        observed, most = against(check.observed, check.limit)
        return f"{check.id}: {observed}; the policy allows {most}"
    return f"{check.id}: {check.reason}"


def costs(utility: Iterable[Estimate | None], *, optimistic: bool = False) -> Iterator[float]:
    """Yield what each utility is as a cost, the less the better; or the least it may be."""
    for one in utility:
        if one is not None:
            better = one.id == "test_accuracy"
            end = one.high if better else one.low
            value = end if optimistic and end is not None else one.value
            yield -value if better else value
