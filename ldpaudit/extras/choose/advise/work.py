"""`ldpaudit advise`: a sweep with a question. The best by closed form are simulated, halved in."""

import math
import shlex
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from ldpaudit import __version__
from ldpaudit.api import policy_of
from ldpaudit.commands.outputs import stem_of
from ldpaudit.datasets.formats.locations import unchanged
from ldpaudit.doors import (
    AuditResult,
    Declaration,
    Estimate,
    LdpAuditError,
    NoProgress,
    Plan,
    Progress,
    Release,
    Stop,
    number,
)
from ldpaudit.errors import quoted
from ldpaudit.extras.choose.advise.candidates import (
    MOST,
    MOST_ROWS_RELEASED,
    Column,
    Line,
    Parts,
    checked,
    cost,
    left_out,
    limits_nothing,
    limits_of_guesses,
    lines,
    read_column,
    replaces_features,
    share_error,
    spent,
    stretch,
    words,
)
from ldpaudit.extras.choose.advise.page import Advice
from ldpaudit.extras.choose.advise.request import AdviseRequest
from ldpaudit.extras.choose.advise.result import (
    AdviceRun,
    Candidate,
    Choice,
    Dropped,
    Limit,
    Outcome,
    Recommendation,
    constant_words,
    found_words,
    least_sure,
)
from ldpaudit.extras.choose.sweep.points import (
    Simulation,
    audit_seed,
    mechanism_at,
    reading_of,
    score,
)
from ldpaudit.extras.choose.sweep.request import Point
from ldpaudit.extras.release.privatize.plan import options_of
from ldpaudit.extras.several.reading import read_file_columns
from ldpaudit.extras.several.walk import AnswersTree
from ldpaudit.judging.policy import Policy, default_policy
from ldpaudit.mechanisms.registry import applicable
from ldpaudit.mechanisms.view import DeclaredCoding
from ldpaudit.options import LabelOptions, PlanOptions
from ldpaudit.pipeline.audit import audit
from ldpaudit.pipeline.terms import Terms
from ldpaudit.release import ColumnsDeclaration, LabelDeclaration
from ldpaudit.result import Check
from ldpaudit.result.numbers import against

# Releases that are looked at, at most: their intervals hold together, whichever is chosen.
MOST_SIMULATED: Final = 40
# The share of the time that the search for columns to leave out may take.
_SHARE: Final = 0.4
# Checks of whether the noise is as declared: a simulated release fails them by chance alone.
_AS_DECLARED: Final = (
    *("claimed-channel", "feature-noise", "guessable-seed", "rare-classes", "shared-noise"),
)
# Audits that only one check of a policy needs.
_NEEDED: Final = {"instance-loss": "instance_loss_exceedance", "renyi": "renyi_epsilon"}
# What an audit finds, under the ids of advice: of a mechanism that replaces features, too.
_FOUND: Final = {
    "attack.best.accuracy": "advice.accuracy",
    "attack.best.advantage": "advice.advantage",
}
_LOSSES: Final = ("instance_loss.exceedance", "instance_loss.exceedance_learned")
_ONE_DRAW: Final = (
    "is not confirmed: it passed one simulated audit, which may be luck, and the time was up "
    "before a second (--minutes)."
)


@unchanged()
def advise(request: AdviseRequest, progress: Progress | None = None) -> Advice:
    """Recommend a release that meets a policy."""
    progress, start = progress or NoProgress(), time.monotonic()
    request.check()
    policy = policy_of(PlanOptions(policy=request.policy)) or default_policy()
    request = checked(request)
    if request.apart:
        progress.remark(
            "The true labels are in a file of their own, so the commands say TABLE: put the true "
            "labels into the table first, in place of the released ones."
        )
    progress.step("reading the table")
    columns = [read_column(request, i, progress) for i in range(len(request.columns()))]
    # Of each column: three numbers of every release that is looked at, and what features reveal.
    intervals = (3 * MOST_SIMULATED + 4) * len(columns)
    level = 1 - (1 - policy.audit.confidence) / intervals
    seconds = 60 * request.minutes
    progress.step("which columns to leave out")
    columns, dropped, searched = left_out(columns, policy, level, start + _SHARE * seconds)
    hopeless = any(stretch(column, policy, column.tested, level) > 1 for column in columns)
    if dropped and request.use != "counts":
        hopeless |= any(not column.tables.features.names for column in columns)
    if request.public is not None and len(columns) == 1:
        progress.step("fitting the generator")
        name = next(filter(replaces_features, applicable()))
        tables = columns[0].tables.with_generator(Point(name, "epsilon", 1.0, 1), progress)
        columns = [replace(columns[0], tables=tables)]
    search = Search(columns, policy, level, start + seconds, progress)
    progress.step("ranking mechanisms")
    ways = lines(columns, policy, hopeless=hopeless)
    done = [search.least_noise(way, 1 / (len(ways) - at)) for at, way in enumerate(ways)]
    return _Answer(request, search, ways, dropped, searched and all(done), hopeless).advice()


@dataclass(frozen=True)
class Tried:
    """A release that was simulated."""

    parts: Parts
    results: tuple[AuditResult, ...] = ()
    """Of the audit of each draw."""
    utility: tuple[Estimate | None, ...] = ()
    """Of each private column."""
    why_not: str = ""
    """The first limit that it broke, or why it cannot be made."""
    unclear: bool = False
    """An audit cannot tell whether it breaks that."""
    made: bool = True
    """Whether the mechanism makes such a release at all."""

    @property
    def passes(self) -> bool:
        """Whether every draw met the policy."""
        return not self.why_not

    @property
    def confirmed(self) -> bool:
        """Whether a second simulated audit found what the first did."""
        return self.passes and len(self.results) >= 2


@dataclass
class Search:
    """Simulates releases as far as the time goes, and keeps what it found."""

    columns: Sequence[Column]
    policy: Policy
    level: float
    """Of each interval."""
    deadline: float
    """On the clock ``time.monotonic``."""
    progress: Progress
    tried: dict[Parts, Tried] = field(default_factory=dict)
    drawn: int = 0

    def least_noise(self, line: Line, share: float) -> bool:
        """Look for the least noise of a line that passes twice; False where the time is over."""
        # From where the closed form says to start, in ever longer steps to less noise or more, then
        # by halving; ``share``: of the time that is left.
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
            if not known.results:
                known = self._by_interval(parts)
            while len(known.results) < draws and known.passes:
                numbered = [replace(one, repeat=len(known.results) + 1) for one in parts]
                if (result := self._audited(numbered, until)) is None:
                    return None
                self.drawn += 1
                checks = (one for part in (result, *result.labels) for one in part.checks)
                stopping = next(filter(stops, checks), None)
                known = replace(known, results=(*known.results, result))
                if stopping is not None:
                    unclear = stopping.verdict == "inconclusive"
                    known = replace(known, why_not=reason(stopping), unclear=unclear)
            if not known.utility:
                known = replace(known, utility=tuple(self._utility(parts)))
        except LdpAuditError as error:
            known = replace(known, why_not=str(error), made=False)
        self.tried[parts] = known
        return known

    def _by_interval(self, parts: Parts) -> Tried:
        """Return a release with the first limit that its own intervals do not show to be met."""
        # One simulated audit may pass by luck; the interval on held-out rows allows for the choice.
        asked = limits_of_guesses(self.policy)
        for point, column in zip(parts, self.columns, strict=True):
            if not asked or replaces_features(point.mechanism):
                continue
            for one in self.among(parts, column).leakage(point, self.level):
                check, limit, level = asked.get(one.id, ("", math.inf, ""))
                if one.low is None or one.high is None or one.high <= limit:
                    continue
                if one.low > limit:
                    observed, most = against(one.low, limit)
                    why = f"{check}: at least {observed}; the policy allows {most}"
                    return Tried(parts, why_not=why)
                if level == "error":
                    why = f"{check}: {straddles(one, limit)}"
                    return Tried(parts, why_not=why, unclear=True)
        return Tried(parts)

    def _audited(self, parts: Sequence[Point], until: float) -> AuditResult | None:
        """Return the audit of a simulated release of all rows; None where the time is over."""
        pairs = zip(self.columns, parts, strict=True)
        drawn = [column.drawn(column.audited, point) for column, point in pairs]
        checks, asked = self.policy.checks, self.policy.audit
        skip = [name for name, check in _NEEDED.items() if getattr(checks, check) is None]
        threads = self.columns[0].request.threads or 1
        tables = self.columns[0].tables
        plan = Plan(seed=audit_seed(tables, drawn[0].point), threads=threads)
        # The policy asks for rows of the whole table and not of a part of it.
        enough = asked.min_rows is not None and self.columns[0].rows >= asked.min_rows
        fixed = {"seed": None, "min_rows": None if enough else asked.min_rows}
        settled = {"audit": asked.model_copy(update=fixed), "waivers": ()}
        stop = Stop.after(until - time.monotonic())
        terms = Terms(
            plan,
            self.policy.model_copy(update=settled),
            command="ldpaudit advise …",
            skip=("seeds", *skip),
            outsiders=False,
        )
        run = terms.execution(stop=stop, shared=tables.shared)
        result = audit(self._released(drawn), terms, run)
        return None if stop.obeyed else result

    def _released(self, drawn: Sequence[Simulation]) -> Release | AnswersTree:
        """Return a simulated release of every private column, as an insider reads it."""
        first = self.columns[0]
        if len(drawn) == 1:
            tables = replace(first.tables, training=first.audited, test=None)
            return reading_of(tables, drawn[0]).release
        names = [column.asked.label for column in self.columns]
        table, truth = drawn[0].table, first.audited.select(names[:1])
        for name, column, one in zip(names[1:], self.columns[1:], drawn[1:], strict=True):
            table = table.append_column(name, one.table.column(name))
            truth = truth.append_column(name, column.audited.column(name))
        claims = (
            Declaration(one.mechanism.name, dict(one.mechanism.declaration()), "api")
            for one in drawn
        )
        report = read_file_columns(
            table.replace_schema_metadata(),
            labels=names,
            declaration=ColumnsDeclaration(tuple(map(LabelDeclaration, names, claims))),
            truth=truth.replace_schema_metadata(),
            coding=DeclaredCoding,
        )
        return AnswersTree.of(report.file)

    def among(self, parts: Parts, column: Column) -> Column:
        """Return a private column with the others' released values among its features."""
        pairs = zip(self.columns, parts, strict=True)
        others = {one.asked.label: (one, point) for one, point in pairs if one is not column}
        return column.among(others) if others else column

    def _utility(self, parts: Parts) -> Iterator[Estimate | None]:
        """Yield what a learner makes of each private column, the others' values among features."""
        for column, point in zip(self.columns, parts, strict=True):
            if column.request.use == "counts":
                channel = column.channel(mechanism_at(column.tables, point))
                yield Estimate.exact(
                    "share_error",
                    "Typical error of a label's share",
                    share_error(column.prior, channel, column.rows),
                    section="utility",
                    unit="proportion",
                    method="root mean square over the labels of the error of the unbiased "
                    "estimate, the noise being all that is random",
                )
                continue
            seen = self.among(parts, column)
            drawn = seen.drawn(seen.tables.training, point)
            reading = reading_of(seen.tables, drawn)
            yield score(seen.tables, reading, self.level, drawn.seed).estimate


def stops(check: Check) -> bool:
    """Return whether a check of a simulated release speaks against releasing so."""
    # The noise is as declared by construction, so of the claim only the audit's power counts;
    # columns that may name people are left out or asked to be kept.
    if check.id in (*_AS_DECLARED, "identifiers"):
        return False
    if check.verdict == "fail":
        return check.id != "claimed-epsilon"
    return check.verdict == "inconclusive" and check.level == "error"


def reason(check: Check) -> str:
    """Return what a check found, in words."""
    if check.verdict == "fail" and check.observed is not None and check.limit is not None:
        observed, most = against(check.observed, check.limit)
        bound = {"lower": "at least ", "upper": "at most "}.get(check.side or "", "")
        return f"{check.id}: {bound}{observed}; the policy allows {most}"
    return f"{check.id}: {check.reason}"


def straddles(estimate: Estimate, limit: float) -> str:
    """Return that an interval holds a limit, in words."""
    assert estimate.low is not None
    assert estimate.high is not None
    low, high = number(estimate.low, "down"), number(estimate.high, "up")
    return f"the interval [{low}, {high}] straddles the limit {number(limit)}"


def costs(utility: Iterable[Estimate | None], *, optimistic: bool = False) -> float:
    """Return the sum of utilities as costs, the less the better; or the least it may be."""
    total = 0.0
    for one in utility:
        if one is not None:
            better = one.id == "test_accuracy"
            end = one.high if better else one.low
            value = end if optimistic and end is not None else one.value
            total += -value if better else value
    return total


@dataclass(frozen=True)
class _Answer:
    """What is known when the time is over."""

    request: AdviseRequest
    search: Search
    ways: Sequence[Line]
    dropped: Sequence[Dropped]
    done: bool
    hopeless: bool

    def advice(self) -> Advice:
        """Return the result."""
        search, columns, tried = self.search, self.search.columns, self.search.tried
        # Of each line the least noise of those that passed most often.
        passed = [[one for one in self._known(way) if one.passes] for way in self.ways]
        chances = [max(of, key=lambda t: (len(t.results), spent(t.parts))) for of in passed if of]
        best = self._ordered(chances)[:MOST]
        undecided = not self.done or any(one.unclear for one in tried.values())
        outcome: Outcome = "found" if best else "undecided" if undecided else "none"
        first = [Tried(way.parts[way.start]) for way in self.ways]
        able = [one for one in first if None not in map(Column.guessed, columns, one.parts)]
        shown = best if best or self.done else able
        found = [self._recommended(one) for one in shown]
        every = [*tried.values(), *(one for one in shown if one.parts not in tried)]
        return Advice(
            ldpaudit_version=__version__,
            outcome=outcome,
            sentence=self._sentence(outcome, found),
            recommendations=found,
            candidates=[self._candidate(one) for one in every],
            dropped=list(self.dropped),
            notes=list(dict.fromkeys(self._notes(best, found))),
            run=AdviceRun(
                seed=columns[0].tables.seed,
                rows=columns[0].rows,
                reported=len(columns[0].tested.truth),
                level=search.policy.audit.confidence,
                simulated=search.drawn,
                use=self.request.use,
                policy_sha256=search.policy.sha256,
            ),
        )

    @property
    def _gone(self) -> list[str]:
        return list(dict.fromkeys(name for one in self.dropped for name in one.names))

    @property
    def _useless(self) -> bool:
        """Whether no release that passed is shown to beat one answer for everybody."""
        passed = [one for way in self.ways for one in self._known(way) if one.passes]
        alone = [one.utility[0] for one in passed if len(one.utility) == 1]
        utility = [one for one in alone if one is not None]
        constant = self.search.columns[0].constant
        return bool(utility) and all(is_useless(one, constant) for one in utility)

    def _known(self, way: Line) -> list[Tried]:
        return [self.search.tried[parts] for parts in way.parts if parts in self.search.tried]

    def _ordered(self, found: list[Tried]) -> list[Tried]:
        """Return releases: confirmed ones first, then those not shown to be worse than the best."""
        # Among these the closed form decides: test rows are few, and the best of them may be luck.
        value = min((costs(one.utility) for one in found), default=0.0)

        def key(one: Tried) -> tuple[bool, bool, float]:
            worse = costs(one.utility, optimistic=True) > value
            return not one.confirmed, worse, math.fsum(map(cost, self.search.columns, one.parts))

        return sorted(found, key=key)

    def _sentence(self, outcome: str, found: Sequence[Recommendation]) -> str:
        """Return what to release, or why there is nothing."""
        columns, gone = self.search.columns, [*map(quoted, self._gone)]
        more = f" and {len(gone) - 3} more" if len(gone) > 3 else ""
        them = "it" if len(gone) == 1 else "them"
        these = f"{', '.join(gone[:3])}{more} (--drop)"
        left = f" Leave out {these}: no noise makes up for {them}." if gone else ""
        if outcome == "found":
            return found_words(found[0], columns[0].constant if self._useless else None) + left
        if self.hopeless and self.done:
            offered = len(columns) > 1 or columns[0].release.numeric is not None or self.ways
            double = (
                " Double randomized response replaces features, too: with --public FILE, a public "
                "labelled table, advise simulates it."
            )
            return (
                "Nothing in reach passes: the features alone reveal the label, and no noise on the "
                "label changes that. Do not release these features with this label."
                f"{'' if offered else double}"
            )
        failed = [one for one in self.search.tried.values() if one.why_not]
        # One that could not be made says nothing of those that were.
        made = [one for one in failed if one.made] or failed
        most = min(made, key=lambda one: spent(one.parts), default=None)
        why = f" With the most noise that was tried: {most.why_not.rstrip('.')}." if most else ""
        if outcome == "none":
            return f"Nothing in reach passes: every mechanism breaks a limit at every noise.{why}"
        if self.done:
            fewer = "fewer private columns" if len(columns) > 1 else "a policy that allows more"
            # Rows make an audit surer; they change no limit that is broken.
            fewer = f"more rows, or {fewer}" if most and most.unclear else fewer
            return f"Found no release that is known to meet the policy.{why} It takes {fewer}."
        first = ", ".join(choice.words for choice in found[0].choices) if found else ""
        first = f" By closed form, first try {first}." if first else ""
        return (
            "Found no release that is known to meet the policy within --minutes "
            f"{self.request.minutes:g}: give more time.{first}{left}"
        )

    def _notes(self, best: Sequence[Tried], found: Sequence[Recommendation]) -> Iterator[str]:
        columns = self.search.columns
        if self.request.policy is None:
            yield (
                "No policy was given: ldpaudit:default limits neither ε nor what attackers learn. "
                "Give your limits with --policy."
            )
        elif limits_nothing(self.search.policy):
            yield (
                "The policy limits neither ε nor what attackers learn, but for what the release "
                "itself claims: state the largest ε in its [claim]."
            )
        if not self.done:
            yield "The time was up before the search for less noise was done (--minutes)."
            for way in self.ways:
                if way.parts[way.start] not in self.search.tried:
                    yield f"Not simulated: {words(way.parts[way.start])}."
        for one in best:
            if not one.confirmed:
                yield f"{words(one.parts)} {_ONE_DRAW}"
        for way in self.ways:
            for failed in [one for one in self._known(way) if not one.passes][:1]:
                yield f"{words(failed.parts)} was left out: {failed.why_not}"
        if any(replaces_features(one.parts[0].mechanism) for one in best):
            yield (
                "Where features are replaced, too, what an attacker learns is measured by the "
                "audit of the first simulated release, each number at the audit's own level, and "
                "held against what the released features reveal alone."
            )
        if columns[0].inside:
            yield columns[0].inside
        if len(columns[0].audited) < columns[0].rows:
            yield (
                f"Simulations release {MOST_ROWS_RELEASED:,} of the {columns[0].rows:,} rows, at "
                "random."
            )
        if len(columns) > 1 and found:
            yield (
                "The leakage and utility of each column count the other columns' released values "
                "among its features, as one simulated release has them."
            )
            if (claim := self.search.policy.of_all().claim) and claim.epsilon is not None:
                yield (
                    "The policy's ε is for all private columns together; it was shared out where "
                    "a nat is worth most."
                )
        for column, choice in zip(columns, found[0].choices if found else (), strict=False):
            utility, shown = choice.utility, bool(best) and self._useless
            if utility is not None and is_useless(utility, column.constant) and not shown:
                label = quoted(column.asked.label) if len(columns) > 1 else ""
                yield no_use(utility, column.constant, label)

    def _candidate(self, tried: Tried) -> Candidate:
        point, epsilon = tried.parts[0], spent(tried.parts)
        utility = tried.utility[0] if tried.utility else None
        accuracy = self.search.columns[0].guessed(point)
        if replaces_features(point.mechanism):
            measured = tried.results[0].estimate("attack.best.accuracy") if tried.results else None
            accuracy = None if measured is None else measured.value
        return Candidate(
            mechanism=point.mechanism if len(tried.parts) == 1 else "independent",
            value=epsilon,
            epsilon=epsilon,
            passes=bool(tried.results) and tried.passes,
            utility=None if utility is None else utility.value,
            accuracy=accuracy,
            kind="estimated" if utility is None else "certified",
            why_not=tried.why_not if tried.results or tried.why_not else "it was not simulated",
        )

    def _recommended(self, tried: Tried) -> Recommendation:
        choices = [self._choice(tried, place) for place in range(len(tried.parts))]
        command = self._command(tried.parts)
        if len(choices) == 1:
            return Recommendation(**dict(choices[0]), command=command)
        return Recommendation(
            mechanism="independent",
            **dict.fromkeys(("value", "utility", "leakage", "limits")),
            epsilon=spent(tried.parts),
            simulated=all(one.simulated for one in choices),
            passed=len(tried.results),
            kind=least_sure(one.kind for one in choices),
            labels=choices,
            command=command,
        )

    def _choice(self, tried: Tried, place: int) -> Choice:
        search, point = self.search, tried.parts[place]
        leakage, utility, limits = list[Estimate](), None, list[Limit]()
        if not replaces_features(point.mechanism):
            column = search.among(tried.parts, search.columns[place])
            leakage += column.leakage(point, search.level)
        if tried.results:
            result, utility = tried.results[0], tried.utility[place]
            result = result.labels[place] if result.labels else result
            limits = [limit for check in result.checks if (limit := Limit.of(check)) is not None]
            limits = [self._by_own_interval(limit, leakage) for limit in limits]
            named = {} if leakage else _FOUND
            leakage += [
                one.model_copy(update={"id": named[one.id]})
                for one in result.estimates
                if one.id in named
            ]
            if search.policy.checks.instance_loss_exceedance is not None:
                found = [one for one in result.estimates if one.id in _LOSSES]
                worst = sorted(found, key=lambda one: one.value)[-1:]
                leakage += [one.model_copy(update={"id": "advice.exceedance"}) for one in worst]
        kinds = [one.kind for one in (utility, *leakage) if one is not None]
        return Choice(
            mechanism=point.mechanism,
            value=point.value,
            epsilon=point.value,
            utility=utility,
            leakage={one.id: one for one in leakage},
            limits=limits,
            simulated=bool(tried.results),
            passed=len(tried.results),
            kind=least_sure(kinds) if tried.results else "estimated",
        )

    def _by_own_interval(self, limit: Limit, leakage: Sequence[Estimate]) -> Limit:
        """Return a limit, kept only where the interval on held-out rows keeps it, too."""
        asked = {check: name for name, (check, *_) in limits_of_guesses(self.search.policy).items()}
        one = next((one for one in leakage if one.id == asked.get(limit.check)), None)
        if one is None or one.high is None or one.high <= limit.limit:
            return limit
        return limit.model_copy(update={"passes": False})

    def _command(self, parts: Parts) -> str:
        """Return the command that makes a release."""
        request = self.request
        name = f"{stem_of(request.data)}.released.parquet"
        # A word in capitals where there is no such file.
        table = "TABLE" if request.apart else request.table
        out = ["ldpaudit", "privatize", table, "-o", name]
        for column, point in zip(self.search.columns, parts, strict=True):
            out += _label_words(column, point.mechanism, point.value, alone=len(parts) == 1)
        given = {"drop": (*request.drop, *self._gone), "keep": request.keep}
        given |= {"text": (*request.text,), "missing-values": (*request.missing_values,)}
        out += [
            word for option, names in given.items() for n in names for word in (f"--{option}", n)
        ]
        for name in ("separator", "decimal", "encoding", "sheet"):
            if (value := getattr(request, name)) is not None:
                out += [f"--{name}", value]
        out += ["--missing", request.missing] if request.missing != "refuse" else []
        return shlex.join([*out, *["--header"] * bool(request.header)])


def is_useless(utility: Estimate, constant: float) -> bool:
    """Return whether what can be learnt is not shown to beat one answer for everybody.

    ``constant`` is what that answer is worth: an accuracy, or a squared error.
    """
    if utility.id == "test_accuracy":
        return (utility.value if utility.low is None else utility.low) <= constant
    if utility.id == "test_squared_error":
        return (utility.value if utility.high is None else utility.high) >= constant
    return False


def no_use(utility: Estimate, constant: float, label: str) -> str:
    """Return the remark on a recommendation of which that holds; of several columns on one."""
    guessing = constant_words(utility, constant, label)
    return (
        f"{guessing[0].upper()}{guessing[1:]}: a model that learns {label and 'it '}from the first "
        "recommendation is not shown to do better."
    )


def _label_words(column: Column, name: str, epsilon: float, *, alone: bool) -> list[str]:
    """Return the options of a private column; of several each states its own."""
    asked, takes = column.asked, options_of(name)
    stated = LabelOptions(
        label=asked.label,
        mechanism=name,
        epsilon=epsilon,
        labels=asked.labels if "labels" in takes else None,
        prior=asked.prior if "prior" in takes else None,
        private_prior="auto" if asked.buys_prior(name) else None,
    )
    if not alone:
        return ["--label", stated.text()]
    out = ["--label", asked.label, "--mechanism", name, "--epsilon", f"{epsilon:g}"]
    for option in ("labels", "prior", "private_prior"):
        if (value := getattr(stated, option)) is not None:
            out += [f"--{option.replace('_', '-')}", str(value)]
    if replaces_features(name):
        out += ["--generator", "mixture", "--generator-data", str(asked.generator_data)]
    return out
