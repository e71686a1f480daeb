"""`ldpaudit advise`: mechanisms ranked by one closed form, the best simulated and halved in."""

import math
import shlex
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ldpaudit import __version__
from ldpaudit.api import policy_of
from ldpaudit.commands.advise.column import JOIN, MOST_ROWS, Column, checked, read_columns
from ldpaudit.commands.advise.leaving_out import left_out, stretch
from ldpaudit.commands.advise.ranking import MOST, Line, Parts, cost, lines, spent, words
from ldpaudit.commands.advise.request import AdviseRequest
from ldpaudit.commands.advise.result import (
    Advice,
    AdviceRun,
    Candidate,
    Choice,
    Dropped,
    Limit,
    Outcome,
    Recommendation,
    found_words,
    least_sure,
)
from ldpaudit.commands.advise.simulation import (
    MOST_SIMULATED,
    Search,
    Tried,
    beside,
    costs,
)
from ldpaudit.commands.privatize.plan import options_of
from ldpaudit.datasets.formats.locations import unchanged
from ldpaudit.judging.policy import default_policy
from ldpaudit.options import LabelOptions, PlanOptions
from ldpaudit.result import Estimate
from ldpaudit.result.numbers import as_percent, number
from ldpaudit.work.progress import NoProgress, Progress

# The share of the time that the search for columns to leave out may take.
_SHARE: Final = 0.4
_SUFFIXES: Final = (".gz", ".parquet", ".pq", ".csv", ".tsv", ".jsonl", ".feather", ".xlsx")
_BESIDE: Final = (
    "The leakage and utility of each column count the other columns' released values among its "
    "features, as one simulated release has them."
)
_SHARED_OUT: Final = (
    "The policy's ε is for all private columns together; it was shared out where a nat is worth "
    "most."
)
_ONE_DRAW: Final = "passed one simulated audit, which may be luck: the time was up before a second."
_TIME_UP: Final = "The time was up before the search for less noise was done (--minutes)."
_HOPELESS: Final = (
    "Nothing in reach passes: the features alone reveal the label, and no noise on the label "
    "changes that. Do not release these features with this label."
)
_DOUBLE: Final = (
    " Double randomized response replaces features, too: given a public table, 'ldpaudit sweep "
    "--mechanism double-rr --public FILE' measures what that would reveal and keep."
)


@unchanged()
def advise(request: AdviseRequest, progress: Progress | None = None) -> Advice:
    """Recommend a release that meets a policy."""
    progress, start = progress or NoProgress(), time.monotonic()
    request.check()
    policy = policy_of(PlanOptions(policy=request.policy)) or default_policy()
    request = checked(request)
    if request.apart:
        progress.remark(JOIN)
    progress.step("reading the table")
    columns = read_columns(request, request.columns(), progress)
    # Of each column: three numbers of every release that is looked at, and what features tell.
    intervals = (3 * MOST_SIMULATED + 4) * len(columns)
    level = 1 - (1 - policy.audit.confidence) / intervals
    seconds = 60 * request.minutes
    progress.step("which columns to leave out")
    columns, dropped, searched = left_out(columns, policy, level, start + _SHARE * seconds)
    search = Search(columns, policy, level, start + seconds, progress)
    hopeless = any(stretch(column, policy, column.tested) > 1 for column in columns)
    if dropped and request.use != "counts":
        hopeless |= any(not column.tables.features.names for column in columns)
    progress.step("ranking mechanisms")
    ways = [] if hopeless else lines(columns, policy)
    done = [search.least_noise(way, 1 / (len(ways) - at)) for at, way in enumerate(ways)]
    return _Answer(request, search, ways, dropped, searched and all(done), hopeless).advice()


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
        search, columns = self.search, self.search.columns
        best = self._ordered([one for way in self.ways for one in self._best(way)])[:MOST]
        unclear = any(one.unclear for one in search.tried.values())
        outcome: Outcome = "none" if self.done and not unclear else "undecided"
        outcome = "found" if best else outcome
        first = [Tried(way.parts[way.start]) for way in self.ways if self._can_be_made(way)]
        shown = best if best or self.done else first
        tried = [*search.tried.values(), *(one for one in shown if one.parts not in search.tried)]
        recommendations = [self._recommended(one) for one in shown]
        names = dict.fromkeys(name for one in self.dropped for name in one.names)
        return Advice(
            ldpaudit_version=__version__,
            outcome=outcome,
            sentence=self._sentence(outcome, recommendations, len(names)),
            recommendations=recommendations,
            candidates=[self._candidate(one) for one in tried],
            dropped=list(self.dropped),
            notes=list(dict.fromkeys(self._notes(best, recommendations))),
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

    def _can_be_made(self, way: Line) -> bool:
        """Return whether the mechanisms that a line starts with can be made for the columns."""
        made = map(Column.guessed, self.search.columns, way.parts[way.start])
        return all(one is not None for one in made)

    def _best(self, way: Line) -> Iterator[Tried]:
        """Yield the least noise of a line that passed, twice where there was time."""
        known = [self.search.tried[parts] for parts in way.parts if parts in self.search.tried]
        passed = [one for one in known if one.passes]
        yield from sorted(passed, key=lambda one: (len(one.results), spent(one.parts)))[-1:]

    def _ordered(self, found: list[Tried]) -> list[Tried]:
        """Return releases, those first that no interval shows to be worse than the best.

        Among these the closed form decides: test rows are few, and the best of them may be luck.
        """
        value = min((sum(costs(one.utility)) for one in found), default=0.0)

        def key(one: Tried) -> tuple[bool, float]:
            worse = sum(costs(one.utility, optimistic=True)) > value
            return worse, math.fsum(map(cost, self.search.columns, one.parts))

        return sorted(found, key=key)

    def _sentence(self, outcome: Outcome, found: Sequence[Recommendation], gone: int) -> str:
        """Return what to release, or why there is nothing."""
        columns = self.search.columns
        these = "1 column" if gone == 1 else f"{gone} columns"
        left = f" Leave out {these} that no noise makes up for (--drop)." if gone else ""
        if outcome == "found":
            return found_words(found[0]) + left
        if self.hopeless and self.done:
            alone = len(columns) == 1 and columns[0].release.numeric is None
            return _HOPELESS + (_DOUBLE if alone else "")
        failed = [one.why_not.rstrip(".") for one in self.search.tried.values() if one.why_not]
        why = f" With the most noise that was tried: {failed[-1]}." if failed else ""
        if outcome == "none":
            return f"Nothing in reach passes: every mechanism breaks a limit at every noise.{why}"
        if self.done:
            fewer = "fewer private columns" if len(columns) > 1 else "a policy that allows more"
            return (
                f"Found no release that is known to meet the policy.{why} It takes more rows, or "
                f"{fewer}."
            )
        first = f" By closed form, first try {_called(found[0])}." if found else ""
        return (
            "Found no release that is known to meet the policy within --minutes "
            f"{self.request.minutes:g}: give more time.{first}{left}"
        )

    def _notes(self, best: Sequence[Tried], found: Sequence[Recommendation]) -> Iterator[str]:
        columns = self.search.columns
        if not self.done:
            yield _TIME_UP
        for one in best:
            if len(one.results) == 1:
                yield f"{words(one.parts)} {_ONE_DRAW}"
        for way in self.ways:
            above = [self.search.tried[parts] for parts in way.parts if parts in self.search.tried]
            for failed in [one for one in above if not one.passes][:1]:
                yield f"{words(failed.parts)} was left out: {failed.why_not}"
        for column in columns[:1]:
            if len(column.audited) < column.rows:
                yield f"Simulations release {MOST_ROWS:,} of the {column.rows:,} rows, at random."
        if len(columns) > 1 and found:
            yield _BESIDE
            if (claim := self.search.policy.of_all().claim) and claim.epsilon is not None:
                yield _SHARED_OUT
        if len(columns) == 1 and found:
            yield from no_use(found[0].utility, float(columns[0].prior.max()))

    def _candidate(self, tried: Tried) -> Candidate:
        column, point, epsilon = self.search.columns[0], tried.parts[0], spent(tried.parts)
        utility = tried.utility[0] if tried.utility else None
        return Candidate(
            mechanism=point.mechanism if len(tried.parts) == 1 else "independent",
            value=epsilon,
            epsilon=epsilon,
            passes=bool(tried.results) and tried.passes,
            utility=None if utility is None else utility.value,
            accuracy=column.guessed(point),
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
            value=None,
            epsilon=spent(tried.parts),
            utility=None,
            leakage=None,
            limits=None,
            simulated=all(one.simulated for one in choices),
            kind=least_sure(one.kind for one in choices),
            labels=choices,
            command=command,
        )

    def _choice(self, tried: Tried, place: int) -> Choice:
        search, point = self.search, tried.parts[place]
        column = beside(search.columns, tried.parts, search.columns[place])
        leakage = list(column.leakage(point, search.level))
        utility, limits = None, []
        if tried.results:
            result, utility = tried.of_column(place), tried.utility[place]
            limits = [limit for check in result.checks if (limit := Limit.of(check)) is not None]
            leakage += _exceedance(result.estimates, search)
        kinds = [one.kind for one in (utility, *leakage) if one is not None]
        return Choice(
            mechanism=point.mechanism,
            value=point.value,
            epsilon=point.value,
            utility=utility,
            leakage={one.id: one for one in leakage},
            limits=limits,
            simulated=bool(tried.results),
            kind=least_sure(kinds) if tried.results else "estimated",
        )

    def _command(self, parts: Parts) -> str:
        """Return the command that makes a release."""
        request, columns = self.request, self.search.columns
        out = ["ldpaudit", "privatize", request.shown_table, "-o", released_name(request.data)]
        for column, point in zip(columns, parts, strict=True):
            out += _label_words(column, point.mechanism, point.value, alone=len(parts) == 1)
        gone = dict.fromkeys(name for one in self.dropped for name in one.names)
        return shlex.join([*out, *_shared_words(request, (*request.drop, *gone))])


def _called(one: Recommendation) -> str:
    return ", ".join(choice.words for choice in one.choices)


def _exceedance(estimates: Iterable[Estimate], search: Search) -> list[Estimate]:
    """Return the share of people who lose too much, where the policy limits that."""
    if search.policy.checks.instance_loss_exceedance is None:
        return []
    names = ("instance_loss.exceedance", "instance_loss.exceedance_learned")
    found = [one for one in estimates if one.id in names]
    worst = sorted(found, key=lambda one: one.value)[-1:]
    return [one.model_copy(update={"id": "advice.exceedance"}) for one in worst]


def no_use(utility: Estimate | None, commonest: float) -> Iterator[str]:
    """Yield a remark where what can be learnt is not shown to beat a constant guess.

    ``commonest`` is the share of the commonest label.
    """
    if utility is None or utility.id != "test_accuracy":
        return
    if (utility.value if utility.low is None else utility.low) <= commonest:
        share = as_percent(number(commonest))
        yield (
            f"Always guessing the commonest label is right in {share} of cases: a model "
            "that learns from the first recommendation is not shown to do better."
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
    return out


def _shared_words(request: AdviseRequest, dropped: Iterable[str]) -> Iterator[str]:
    """Yield the options of the table, whatever the mechanism."""
    for option, names in (("--drop", dropped), ("--keep", request.keep)):
        for column in names:
            yield from (option, column)
    for name in ("separator", "decimal", "encoding", "sheet"):
        value = getattr(request, name)
        if value is not None:
            yield from (f"--{name}", value)
    if request.header:
        yield "--header"


def released_name(data: str) -> str:
    """Return what the release is to be called: beside nothing that is there, in this folder."""
    stem = Path(data.rstrip("/")).name
    for suffix in _SUFFIXES:
        stem = stem.removesuffix(suffix)
    return f"{stem}.released.parquet"
