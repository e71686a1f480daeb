"""Which attacks run: those that apply, the cheap ones first, within a budget of seconds.

The budget is spent on seconds predicted from the size of the release, so the choice is the same on
every machine. Only where they take far longer than predicted is an attack left out for the
machine's speed; a warning then says so.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from ldpaudit.attacks import available_attacks, create_attack
from ldpaudit.attacks.costs import Choice, Costed, Size, affordable, cost_of
from ldpaudit.attacks.interface import Attack, Knowledge, missing_need
from ldpaudit.audits.interface import AuditContext
from ldpaudit.errors import LdpAuditError
from ldpaudit.mechanisms.channel import Channel
from ldpaudit.stopping import Stopped

T = TypeVar("T")

_PATIENCE = 2.0
_GRACE = 30.0
"""The clock stops attacks after twice the budget and half a minute."""

Candidates = Mapping[str, list[Attack]]
"""By name, an attack for each fold."""


@dataclass
class LeftOut:
    """Attacks that did not run.

    Attributes
    ----------
    unfit : dict from name to str
        Why those that do not apply to the release, or failed on it, did not run.
    too_dear : mapping from name to float
        The predicted seconds of those that did not fit.
    too_slow : list of str
        Those that fitted, but for which the machine was too slow.
    needed : float
        The predicted seconds of all attacks that apply.
    """

    unfit: dict[str, str] = field(default_factory=dict)
    too_dear: Mapping[str, float] = field(default_factory=dict)
    too_slow: list[str] = field(default_factory=list)
    needed: float = 0.0


@dataclass
class Budget:
    """Gives out attacks while there is time."""

    candidates: Candidates
    choice: Choice
    seconds: float
    free: frozenset[str] = frozenset()
    clock: Callable[[], float] = time.perf_counter
    left_out: LeftOut = field(default_factory=LeftOut)

    @classmethod
    def of(cls, context: AuditContext, candidates: Candidates) -> "Budget":
        """Return the budget of a plan, with the attacks that it affords."""
        release = context.release
        size = Size(len(release) // 2, release.features.width, len(release.classes))
        costs = [(name, cost_of(attacks[0], size)) for name, attacks in candidates.items()]
        choice = affordable(costs, context.plan.budget)
        free = frozenset(
            name for name, parts in costs if not parts and isinstance(candidates[name][0], Costed)
        )
        every = {part: seconds for _, parts in costs for part, seconds in parts.items()}
        left_out = LeftOut(too_dear=choice.too_dear, needed=sum(every.values()))
        return cls(candidates, choice, context.plan.budget, free, left_out=left_out)

    def chosen(self) -> Iterator[tuple[str, list[Attack]]]:
        """Yield name and attacks, in the order in which they are to run."""
        end = self.clock() + _PATIENCE * self.seconds + _GRACE
        for name in self.choice.names:
            if name not in self.free and self.clock() > end:
                self.left_out.too_slow.append(name)
            else:
                yield name, self.candidates[name]


def run_affordable(
    context: AuditContext,
    candidates: Candidates,
    unfit: dict[str, str],
    run: Callable[[str, list[Attack]], T],
) -> tuple[list[T], LeftOut]:
    """Return what ``run`` gives for every attack that the budget affords, and what did not run."""
    results, budget = [], Budget.of(context, candidates)
    for name, attacks in budget.chosen():
        try:
            context.progress.step(f"attack: {name}")
            results.append(run(name, attacks))
        except Stopped:
            left = budget.choice.names[budget.choice.names.index(name) :]
            unfit.update(dict.fromkeys(left, context.stop.reason))
            break
        except LdpAuditError as error:
            unfit[name] = str(error)
    budget.left_out.unfit = unfit
    return results, budget.left_out


def candidate_attacks(
    context: AuditContext, knowledge: Sequence[Knowledge]
) -> tuple[Candidates, dict[str, str]]:
    """Build every attack for each fold.

    Returns
    -------
    tuple
        The attacks that apply to the release, and by name why others do not.
    """
    candidates: dict[str, list[Attack]] = {}
    skipped: dict[str, str] = {}
    for name in available_attacks():
        try:
            attacks = [create_attack(name, known) for known in knowledge]
            reason = missing_need(attacks[0], context.release, knowledge[0])
        except LdpAuditError as error:
            reason = str(error)
        if reason is None:
            candidates[name] = attacks
        else:
            skipped[name] = reason
    return candidates, skipped


def without_learners_from_asked(
    candidates: Candidates, skipped: dict[str, str], reason: str
) -> Candidates:
    """Return the attacks that learn nothing from the rows they guess; others become skipped."""
    left_out = [name for name, attacks in candidates.items() if attacks[0].learns_from_asked]
    skipped.update(dict.fromkeys(left_out, reason))
    return {name: attacks for name, attacks in candidates.items() if name not in left_out}


def knowledge_of(context: AuditContext, channel: Channel | None, seed: int) -> Knowledge:
    """Return what an attacker knows who attacks with this channel."""
    threads, device = context.plan.threads, context.plan.device
    return Knowledge(channel, threads, seed, context.progress, context.claim, device)
