"""Several private columns: each one's advice, the split of ε, and each beside the others.

Every column is studied alone first. Then each is studied again with the others' noisy values among
its features, as an attacker and an analyst will have them.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Final

import pyarrow as pa

from ldpaudit.commands.advise.adviser import Adviser
from ldpaudit.commands.advise.clock import Clock
from ldpaudit.commands.advise.closed_forms.candidates import GRID, Candidate, Family, in_order
from ldpaudit.commands.advise.closed_forms.columns import too_weak
from ldpaudit.commands.advise.closed_forms.study import Study, read_study, study_of
from ldpaudit.commands.advise.closed_forms.utility import Worth
from ldpaudit.commands.advise.commands import vector_command
from ldpaudit.commands.advise.request import AdviseRequest
from ldpaudit.commands.advise.result import Advice, Choice, Dropped, Outcome, Recommendation
from ldpaudit.commands.advise.sentence import sentence
from ldpaudit.commands.sweep.grid import Point
from ldpaudit.commands.sweep.points.simulation import simulate
from ldpaudit.commands.sweep.points.tables import SweepTables
from ldpaudit.judging.policy import Policy
from ldpaudit.running.progress import Progress

BESIDE: Final = (
    "The leakage and utility of each column count the other columns' released values among its "
    "features, as one simulated release has them."
)
_SHARED_OUT: Final = (
    "The policy's ε is for all private columns together; it was shared out where a nat is worth "
    "most."
)


def advise_several(
    request: AdviseRequest, policy: Policy, clock: Clock, progress: Progress
) -> Advice:
    """Say what to release of several private columns.

    Raises
    ------
    LdpAuditError
        One line about what is wrong with the table or a column.
    """
    advisers = _advisers(request, policy, clock, progress)
    _leave_out_together(advisers)
    found = [_best(adviser) for adviser in advisers]
    chosen = _shared_out(found, policy) if all(found) else None
    weak = too_weak([one.study for one in advisers], chosen, policy) if chosen else None
    choices = () if chosen is None or weak else tuple(_beside(advisers, chosen))
    whole = len(choices) == len(advisers)
    recommendations = (_recommended(request, advisers, choices),) if whole else ()
    searched = not weak and all(adviser.searched for adviser in advisers)
    outcome: Outcome = "found" if whole else "none" if searched else "undecided"
    broken = next((b for adviser in advisers if (b := adviser.broken())), ())
    dropped = tuple(_each_once(one for adviser in advisers for one in adviser.dropped))
    first = advisers[0]
    text = weak or sentence(recommendations, outcome, broken, dropped)
    notes = [note for adviser in advisers for note in adviser.notes]
    if whole:
        notes += [BESIDE, *([_SHARED_OUT] if _total(policy) is not None else [])]
    return replace(
        first.told(outcome, text, recommendations),
        request=request,
        candidates=tuple(first.drawn(chosen[:1])) if chosen else (),
        dropped=dropped,
        notes=tuple(dict.fromkeys(notes)),
        simulated=sum(adviser.simulated for adviser in advisers),
        refuted=frozenset(),
    )


def _advisers(
    request: AdviseRequest, policy: Policy, clock: Clock, progress: Progress
) -> list[Adviser]:
    columns = request.columns()
    names = [one.label[0] for one in columns]
    found = []
    for one in columns:
        others = tuple(name for name in names if name != one.label[0])
        study = read_study(one, one.label[0], (*request.drop, *others), progress)
        found.append(Adviser(one, policy, clock, progress, study, columns=len(columns)))
    return found


def _leave_out_together(advisers: Sequence[Adviser]) -> None:
    """Leave out what any column needs to be left out: there is one table for all."""
    for adviser in advisers:
        adviser.leave_out()
    for adviser in advisers:
        here = set(adviser.study.tables.features.names)
        gone = [n for other in advisers for one in other.dropped for n in one.columns]
        extra = [name for name in dict.fromkeys(gone) if name in here]
        if extra:
            adviser.study = adviser.study.without(*extra)


def _each_once(dropped: Iterable[Dropped]) -> Iterator[Dropped]:
    """Yield what is left out; a column that several private columns leave out is named once."""
    seen: set[str] = set()
    for one in dropped:
        fresh = tuple(name for name in one.columns if name not in seen)
        seen.update(fresh)
        if fresh:
            yield replace(one, columns=fresh)


def _best(adviser: Adviser) -> tuple[Family, Candidate] | None:
    """Return the mechanism that is worth most within the limits, None where none is."""
    able = adviser.families()
    passing = [one for family in able if (one := family.least_noise()) is not None]
    ordered = in_order(passing)
    if not ordered:
        return None
    best = ordered[0]
    return next(family for family in able if family.name == best.name), best


def _total(policy: Policy) -> float | None:
    """Return the ε that the policy allows the whole release; None where it states none."""
    claim = policy.of_all().claim
    return None if claim is None else claim.epsilon


def _shared_out(
    found: Sequence[tuple[Family, Candidate] | None], policy: Policy
) -> list[Candidate] | None:
    """Return each column's mechanism at its share of ε; None where ε does not go round."""
    known = [one for one in found if one is not None]
    total = _total(policy)
    if total is None or sum(best.epsilon for _, best in known) <= total:
        return [best for _, best in known]
    shares = shared_out([_worths(family, best) for family, best in known], total)
    if shares is None:
        return None
    made = [family.tried(share) for (family, _), share in zip(known, shares, strict=True)]
    able = [one for one in made if one is not None and one.passes]
    return able if len(able) == len(known) else None


def _worths(family: Family, best: Candidate) -> list[tuple[float, Worth]]:
    """Return what a mechanism is worth at every ε up to its largest."""
    made = [family.tried(epsilon) for epsilon in GRID if epsilon <= best.epsilon]
    return [(one.epsilon, one.worth) for one in made if one is not None]


def shared_out(
    columns: Sequence[Sequence[tuple[float, Worth]]], total: float
) -> list[float] | None:
    """Return the ε of each column: each nat goes where it lowers the cost most.

    Costs are in units of what a column can gain at all, so that they can be added.

    Parameters
    ----------
    columns : sequence of sequences of (float, Worth)
        Of each column ε in nats, ascending, and what it is worth there.
    total : float
        The most that the sum may be.

    Returns
    -------
    list of float, or None
        None where even the smallest are too much together.
    """
    places = [0] * len(columns)
    if any(not one for one in columns) or sum(one[0][0] for one in columns) > total + 1e-9:
        return None
    while True:
        spent = sum(one[place][0] for one, place in zip(columns, places, strict=True))
        steps = [
            (gain, index, place)
            for index, one in enumerate(columns)
            for gain, place in _steps(one, places[index], total - spent)
        ]
        if not steps:
            return [one[place][0] for one, place in zip(columns, places, strict=True)]
        _, index, place = max(steps)
        places[index] = place


def _steps(
    column: Sequence[tuple[float, Worth]], here: int, left: float
) -> Iterator[tuple[float, int]]:
    """Yield every further ε that can be paid, with its gain for each nat."""
    costs = [worth.cost for _, worth in column]
    scale = max(max(costs) - min(costs), 1e-12)
    for place in range(here + 1, len(column)):
        paid = column[place][0] - column[here][0]
        if paid <= left + 1e-9:
            yield (costs[here] - costs[place]) / scale / paid, place


def _beside(advisers: Sequence[Adviser], chosen: Sequence[Candidate]) -> Iterator[Choice]:
    """Yield each column's choice where the others' noisy values are known, too."""
    noisy = [
        _released(adviser.study, candidate)
        for adviser, candidate in zip(advisers, chosen, strict=True)
    ]
    for place, adviser in enumerate(advisers):
        others = {other.study.label: noisy[i] for i, other in enumerate(advisers) if i != place}
        adviser.study = _with_columns(adviser.study, others)
        choice = adviser.settled(chosen[place].name, chosen[place].epsilon)
        if choice is None:
            return
        yield choice


def _released(study: Study, candidate: Candidate) -> tuple[pa.ChunkedArray, ...]:
    """Return a column as it would be released: of the training, the test, and all rows."""
    tables, point = study.tables, Point(candidate.name, "epsilon", candidate.epsilon, 1)

    def drawn(rows: pa.Table, number: int) -> pa.ChunkedArray:
        part: SweepTables = replace(tables, training=rows, seed=tables.seed + number)
        return simulate(part, point, None).table.column(study.label)

    return (
        drawn(tables.training, 1),
        drawn(tables.test, 2),
        drawn(tables.everything.table, 3),
    )


def _with_columns(study: Study, others: dict[str, tuple[pa.ChunkedArray, ...]]) -> Study:
    """Return the study of the same rows with the other columns' released values as features."""
    tables = study.tables
    training, test, every = tables.training, tables.test, tables.everything.table
    for name, (in_training, in_test, in_all) in others.items():
        training = training.append_column(name, in_training)
        test = test.append_column(name, in_test)
        every = every.append_column(name, in_all)
    left_out = tuple(name for name in tables.request.drop if name not in others)
    more = replace(
        tables,
        request=replace(tables.request, drop=left_out),
        training=training,
        test=test,
        everything=replace(tables.everything, table=every),
    )
    return study_of(study.request, more, study.parts, study.progress)


def _recommended(
    request: AdviseRequest, advisers: Sequence[Adviser], choices: Sequence[Choice]
) -> Recommendation:
    gone = [name for adviser in advisers for one in adviser.dropped for name in one.columns]
    dropped = (*request.drop, *dict.fromkeys(gone))
    parts = [
        (adviser.study.asked, choice.candidate.name, choice.candidate.epsilon)
        for adviser, choice in zip(advisers, choices, strict=True)
    ]
    return Recommendation(tuple(choices), vector_command(request, parts, dropped))
