"""Audits decide what closed forms leave open: two draws, then halving, and nothing is hidden."""

import math
from dataclasses import dataclass
from types import SimpleNamespace

import pytest

from ldpaudit.commands.advise.clock import Clock
from ldpaudit.commands.advise.closed_forms.candidates import GRID, Family
from ldpaudit.commands.advise.closed_forms.leakage import Held
from ldpaudit.commands.advise.closed_forms.limits import Limit
from ldpaudit.commands.advise.deciding import Decider, Reach
from ldpaudit.commands.advise.simulation import Simulation

LIMIT = Limit("advantage", "label-inference-advantage", "gain", "proportion", "warn", lambda _: 0.1)


@dataclass
class Worth:
    cost: float

    def as_good(self, other: "Worth") -> bool:
        return self.cost <= other.cost + 0.01


def candidate(epsilon: float) -> SimpleNamespace:
    """Return one that closed forms let pass up to ε = 0.5 and rule out beyond ε = 1.5."""
    value = epsilon / 10
    held = Held(LIMIT, value, 0.1, value + 0.05, "certified", value - 0.05)
    return SimpleNamespace(
        name="rr",
        epsilon=epsilon,
        held=(held,),
        passes=held.passes,
        open=held.open,
        worth=Worth(-epsilon),
        words=f"rr ε = {epsilon:g}",
    )


class Made(Family):
    def tried(self, epsilon):
        return candidate(epsilon)


class Drawn(Decider):
    """Draws that pass up to an ε; the second one up to another."""

    passing = (1.2, 1.1)

    def _drawn(self, one, number=1):
        self.simulated += 1
        passed = one.epsilon <= self.passing[number - 1]
        check = SimpleNamespace(verdict="pass" if passed else "fail", level="warn")
        return Simulation((check,), None, 7000)

    def _choice(self, one, drawn):
        return SimpleNamespace(candidate=one, held=one.held, simulation=drawn)


@pytest.fixture
def decider() -> Drawn:
    study = SimpleNamespace(parts=SimpleNamespace(released=7000))
    return Drawn(SimpleNamespace(study=study, clock=Clock(math.inf)))


@pytest.fixture
def family() -> Made:
    return Made("rr", None, None, None)


@pytest.fixture
def reach(family) -> Reach:
    clear = family.least_noise()
    return Reach(family, clear, family.least_open(clear))


def test_closed_forms_leave_a_range_open(reach):
    assert reach.clear.epsilon == 0.5
    assert reach.best.epsilon == 1.5


def test_the_least_noise_is_the_one_that_passes_twice(decider, reach):
    found = decider._raised(reach)
    assert found.candidate.epsilon == 1.1
    assert decider.simulated <= 10
    assert all(epsilon > 1.1 for _, epsilon in decider.refuted)


def test_what_is_not_shown_is_said(decider, reach):
    decider._raised(reach)
    assert len(decider.notes) == 1
    assert "0.110 is expected, 0.1 is the limit" in decider.notes[0]


def test_where_no_draw_passes_closed_forms_decide(decider, reach):
    decider.passing = (0.0, 0.0)
    assert decider._raised(reach) is None


def test_without_a_second_draw_nothing_is_claimed(decider, reach, monkeypatch):
    first = decider._drawn
    monkeypatch.setattr(decider, "passing", (9.0, 9.0))
    monkeypatch.setattr(
        decider, "_drawn", lambda one, number=1: first(one) if number == 1 else None
    )
    assert decider._raised(reach) is None


def test_the_time_ends_the_search_with_what_is_known(family):
    late = Made("rr", None, None, None, lambda: True)
    assert late.least_noise().passes
    assert family.least_noise(0.4).epsilon == max(e for e in GRID if e <= 0.4)
