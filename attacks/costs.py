"""What attacks cost, predicted from the size of the release alone.

A budget is spent on predicted seconds of one core of an ordinary machine, not on measured ones: so
the choice of attacks, and every number, is the same on every machine.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

Parts = Mapping[str, float]
"""Predicted seconds by part; a part that several attacks share (by name) is paid once."""


@dataclass(frozen=True)
class Size:
    """What the cost of an attack depends on."""

    rows: int
    """Rows that the attack is fitted on in each of two folds; it guesses as many."""
    width: int
    """Feature columns as arrays."""
    classes: int

    @property
    def work(self) -> float:
        """Rows × columns × classes, in millions."""
        return self.rows * max(self.width, 1) * self.classes / 1e6


@dataclass(frozen=True)
class Price:
    """Seconds of a part, both folds, as measured by benchmarks/attack_set.py.

    Attributes
    ----------
    fixed : float
        On any release.
    each : float
        More for a million rows × columns × labels.
    most : float
        As many millions from which a sample is learnt from, and no more is paid.
    """

    fixed: float
    each: float
    most: float

    def seconds(self, size: Size) -> float:
        """Return the predicted seconds."""
        return self.fixed + self.each * min(size.work, self.most)


@runtime_checkable
class Costed(Protocol):
    """An attack that states its cost; one that does not counts as free."""

    def cost(self, size: Size) -> Parts:
        """Return the predicted seconds of both folds, by part."""


@dataclass(frozen=True)
class Choice:
    """The attacks that a budget allows, and those that it leaves out."""

    names: tuple[str, ...]
    """In the order in which they run, cheap ones first."""
    too_dear: Mapping[str, float]
    """The predicted seconds of each attack that is left out."""


def cost_of(attack: object, size: Size) -> Parts:
    """Return the predicted seconds of an attack by part; empty where it states none."""
    return attack.cost(size) if isinstance(attack, Costed) else {}


def affordable(costs: Sequence[tuple[str, Parts]], budget: float) -> Choice:
    """Choose attacks by predicted cost until the budget is spent.

    Parameters
    ----------
    costs : sequence of (name, parts)
        In the order of preference: an attack is taken if it fits into what those before it leave.
    budget : float
        Seconds.
    """
    paid: set[str] = set()
    spent, chosen, too_dear = 0.0, [], {}
    for name, parts in costs:
        price = sum(seconds for part, seconds in parts.items() if part not in paid)
        if spent + price > budget:
            too_dear[name] = price
            continue
        spent += price
        paid |= set(parts)
        chosen.append((name, parts))
    ordered = sorted(chosen, key=lambda pair: sum(pair[1].values()))
    return Choice(tuple(name for name, _ in ordered), too_dear)
