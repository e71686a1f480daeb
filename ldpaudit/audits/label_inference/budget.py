"""Which attacks run: those that apply, in the set that the plan asks for, within a budget.

The budget is spent on seconds predicted from the size of the release, so the choice is the same on
every machine; no clock ends an attack. An audit that is told to end keeps the attacks that ran.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, TypeVar

import numpy as np

from ldpaudit.attacks import ATTACKS, available_attacks, create_attack, in_default_set
from ldpaudit.attacks.costs import Choice, Size, affordable, cost_of
from ldpaudit.attacks.foreign import given_attacks
from ldpaudit.attacks.interface import Attack, Knowledge, missing_need
from ldpaudit.audits.interface import AuditContext, Cost
from ldpaudit.audits.models import threads_of_each
from ldpaudit.errors import AttackError, LdpAuditError
from ldpaudit.mechanisms.channel import Channel
from ldpaudit.modelling.screening import MOST_COLUMNS
from ldpaudit.release import IntArray, Release
from ldpaudit.running.stopping import Stopped

T = TypeVar("T")

_FEW: Final = 1_000
_ALWAYS: Final = 1.0
"""Seconds of scoring and of bounds."""

Candidates = Mapping[str, list[Attack]]
"""By name, an attack for each fold."""
WhyNeedless = Callable[[Attack, Sequence[T]], str | None]
"""Returns why an attack need not run after the results of others; None where it is to run."""


@dataclass
class LeftOut:
    """Attacks that did not run.

    Attributes
    ----------
    unfit : dict from name to str
        Why those that do not apply to the release, or failed on it, did not run.
    broken : dict from name to str
        Why parts of other packages could not be made.
    too_dear : mapping from name to float
        The predicted seconds of those that did not fit.
    needless : dict from name to str
        Why those that could not be the strongest did not run.
    stopped : tuple of str
        Those that the end of the audit's time left out.
    not_asked : tuple of str
        Those that only a thorough audit runs.
    needed : float
        The predicted seconds of all attacks that apply.
    possible : int
        How many attacks, references apart, could have run: fixed before any was scored, so what is
        said of the strongest is corrected for choosing among so many.
    """

    unfit: dict[str, str] = field(default_factory=dict)
    broken: dict[str, str] = field(default_factory=dict)
    too_dear: Mapping[str, float] = field(default_factory=dict)
    needless: dict[str, str] = field(default_factory=dict)
    stopped: tuple[str, ...] = ()
    not_asked: tuple[str, ...] = ()
    needed: float = 0.0
    possible: int = 1


def run_affordable(
    context: AuditContext,
    candidates: Candidates,
    left_out: LeftOut,
    run: Callable[[str, list[Attack]], T],
    needless: WhyNeedless[T] | None = None,
) -> tuple[list[T], LeftOut]:
    """Return what ``run`` gives for every attack that the plan affords, and what did not run.

    Where the audit is told to end, what has run is kept.
    """
    choice = _chosen(context, candidates, left_out)
    results: list[T] = []
    for place, name in enumerate(choice.names):
        reason = needless(candidates[name][0], results) if needless and results else None
        if reason is not None:
            left_out.needless[name] = reason
            continue
        try:
            # Reported first: this is also where an audit that is told to end does so.
            context.progress.step(f"attack: {name}")
            context.progress.advance(place, len(choice.names))
            results.append(run(name, candidates[name]))
        except Stopped:
            left_out.stopped = choice.names[place:]
            break
        except AttackError:
            raise
        except LdpAuditError as error:
            left_out.unfit[name] = str(error)
    return results, left_out


def predicted_cost(context: AuditContext, channel: Channel | None) -> Cost:
    """Return what the attacks will take that the plan has room for.

    Which apply is told from the first rows of the release, by an attacker who knows ``channel``.
    """
    rows = np.arange(min(len(context.release), _FEW))
    few = replace(context.release.take(rows), places=rows)
    candidates, left_out = candidate_attacks(context, few, [knowledge_of(context, channel, 0)])
    choice, size = _chosen(context, candidates, left_out), _size(context)
    parts: dict[str, float] = {}
    for name in choice.names:
        parts |= cost_of(candidates[name][0], size)
    return Cost(_ALWAYS + sum(parts.values()), words=f"{left_out.possible} attacks")


def _size(context: AuditContext) -> Size:
    release = context.release
    width = min(release.features.width, MOST_COLUMNS)
    return Size(len(release) // 2, width, len(release.classes))


def _chosen(context: AuditContext, candidates: Candidates, left_out: LeftOut) -> Choice:
    """Return which attacks the budget has room for; all of them where the plan is thorough."""
    plan, size = context.plan, _size(context)
    own = given_attacks(plan.attacks)  # Asked for by name: whatever they take.
    costs = [
        (name, {} if name in own else cost_of(attacks[0], size))
        for name, attacks in candidates.items()
    ]
    choice = affordable(costs, math.inf if plan.thorough else plan.budget)
    every = {part: seconds for _, parts in costs for part, seconds in parts.items()}
    left_out.too_dear, left_out.needed = choice.too_dear, sum(every.values())
    left_out.possible = max(sum(candidates[name][0].uses_release for name in choice.names), 1)
    return choice


def candidate_attacks(
    context: AuditContext, release: Release, knowledge: Sequence[Knowledge]
) -> tuple[Candidates, LeftOut]:
    """Build every attack of the plan for each fold.

    Parameters
    ----------
    context : AuditContext
    release : Release
        What is learnt from.
    knowledge : sequence of Knowledge
        Of each fold.

    Returns
    -------
    tuple
        The attacks that apply to the release, and those that do not, or were not asked for.
    """
    candidates: dict[str, list[Attack]] = {}
    left_out, size = LeftOut(), _size(context)
    given = context.plan.attacks
    own = given_attacks(given)
    for name in available_attacks(given):
        asked = context.plan.thorough or in_default_set(name, knowledge[0], size)
        try:
            attacks = [create_attack(name, known, given) for known in knowledge]
            reason = missing_need(attacks[0], release, knowledge[0])
        except LdpAuditError as error:
            if name in own or isinstance(error, AttackError):
                raise
            reason = str(error)
            if name not in ATTACKS:
                left_out.broken[name] = reason
                continue
        if reason is None and asked:
            candidates[name] = attacks
        elif reason is None:
            left_out.not_asked += (name,)
        elif asked:
            left_out.unfit[name] = reason
    return candidates, left_out


def without_learners_from_asked(
    candidates: Candidates, left_out: LeftOut, reason: str
) -> Candidates:
    """Return the attacks that learn nothing from the rows they guess; others become unfit."""
    fewer = [name for name, attacks in candidates.items() if attacks[0].learns_from_asked]
    left_out.unfit.update(dict.fromkeys(fewer, reason))
    return {name: attacks for name, attacks in candidates.items() if name not in fewer}


def knowledge_of(
    context: AuditContext, channel: Channel | None, seed: int, in_order: IntArray | None = None
) -> Knowledge:
    """Return what an attacker knows who attacks with this channel."""
    threads, device = threads_of_each(context), context.plan.device
    progress, claim = context.progress, context.claim
    return Knowledge(channel, threads, seed, progress, claim, device, in_order)
