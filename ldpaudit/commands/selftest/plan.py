"""Which releases are planted: each drawn from the seed and its own number alone."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from ldpaudit.commands.selftest.attacks import to_attack
from ldpaudit.commands.selftest.honest import HONEST
from ldpaudit.commands.selftest.leaks import LEAKS
from ldpaudit.commands.selftest.planted import Setting
from ldpaudit.commands.selftest.stated import OF_CLASSES, OF_NUMBERS
from ldpaudit.randomness import child_generator

EPSILONS: Final = (0.5, 1.0, 2.0, 3.0)
_SHARES: Final = (0.6, 0.1, 0.1, 0.1, 0.1)
"""Of the honest ways, as they are listed."""
_ALONE: Final = 0.2
"""The share of honest releases that are audited without their true labels."""
_FREQUENT: Final = 3
"""Randomized response is so much more frequent than each of the other mechanisms."""


@dataclass(frozen=True)
class Plan:
    """How many releases there are, and of which sizes.

    Attributes
    ----------
    honest, leaking : int
    rows : tuple of int
        The fewest and the most; most releases are small, since large ones take long.
    leaking_rows : tuple of int
        Those of leaks.
    excess : tuple of float
        The least and the most that noise which is too small gives away, in nats.
    attacked : int
        Honest releases that are made so that label inference is audited, too.
    """

    honest: int
    leaking: int
    rows: tuple[int, int]
    leaking_rows: tuple[int, int]
    excess: tuple[float, float]
    attacked: int = 0


QUICK: Final = Plan(30, 21, (500, 3000), (2500, 3500), (1.5, 3.0), attacked=5)
THOROUGH: Final = Plan(1000, 300, (500, 50_000), (500, 50_000), (0.25, 3.0))


def settings(plan: Plan, seed: int) -> tuple[Setting, ...]:
    """Return what every planted release is to be, honest and leaking ones mixed."""
    honest = [_honest(plan, seed, number) for number in range(plan.honest)]
    leaking = [_leaking(plan, seed, number) for number in range(plan.leaking)]
    at = [(place + 0.5) / len(part) for part in (honest, leaking) for place in range(len(part))]
    order = np.argsort(at, kind="stable")
    every = [*honest, *leaking]
    return tuple(every[place] for place in order)


def generator(setting: Setting, seed: int, part: str) -> np.random.Generator:
    """Return the generator of a part of one planted release."""
    name = "leaking" if setting.kind in LEAKS else "honest"
    return child_generator(seed, "selftest", name, str(setting.number), part)


def _honest(plan: Plan, seed: int, number: int) -> Setting:
    rng = child_generator(seed, "selftest", "honest", str(number), "setting")
    names = [*["randomized-response"] * _FREQUENT, *OF_CLASSES, *OF_NUMBERS]
    kind = str(rng.choice(list(HONEST), p=_SHARES))
    rows, truth = _between(plan.rows, rng), bool(rng.random() >= _ALONE)
    setting = _setting(number, kind, str(rng.choice(names)), rows, 0.0, truth, rng)
    return to_attack(setting) if number < plan.attacked else setting


def _leaking(plan: Plan, seed: int, number: int) -> Setting:
    rng = child_generator(seed, "selftest", "leaking", str(number), "setting")
    kind, leak = list(LEAKS.items())[number % len(LEAKS)]
    rows, excess = _between(plan.leaking_rows, rng), rng.uniform(*plan.excess)
    name = str(rng.choice(list(leak.mechanisms)))
    return _setting(number, kind, name, rows, float(excess), True, rng)


def _setting(
    number: int,
    kind: str,
    name: str,
    rows: int,
    excess: float,
    truth: bool,
    rng: np.random.Generator,
) -> Setting:
    k, epsilon = int(rng.integers(2, 11)), float(rng.choice(EPSILONS))
    return Setting(number, kind, name, k, rows, epsilon, excess, truth)


def _between(bounds: Sequence[int], rng: np.random.Generator) -> int:
    low, high = (math.log(bound) for bound in bounds)
    return round(math.exp(low + (high - low) * rng.random() ** 2))
