"""Leaks: releases that give away more than they declare, and what must find each."""

import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from ldpaudit.commands.selftest.honest import made, persons_of
from ldpaudit.commands.selftest.people import People, repeated
from ldpaudit.commands.selftest.planted import (
    LABEL,
    Planted,
    Setting,
    features,
    noisy,
    released,
    true_labels,
)
from ldpaudit.release import FloatArray

_CLAIM: Final = frozenset({"claimed-epsilon"})
_REVEALED: Final = frozenset({"features-reveal-label"})
_Make = Callable[[Setting, np.random.Generator], Planted]


@dataclass(frozen=True)
class Leak:
    """A way in which a release gives away more than it declares.

    Attributes
    ----------
    make : callable
        From a setting and a generator to the release.
    found_by : frozenset of str
        The checks that name it; one that fails counts.
    mechanisms : collection of str
        Those that it is planted in.
    noise : bool
        Whether every row has too little noise.
    shared : bool
        Whether all rows share the excess, so that the audit says how much of it could be missed.
    """

    make: _Make
    found_by: frozenset[str] = _CLAIM
    mechanisms: Collection[str] = ("randomized-response",)
    noise: bool = False
    shared: bool = False


def _less_noise(setting: Setting, rng: np.random.Generator) -> Planted:
    """Noise as at a larger ε."""
    persons, stronger = persons_of(setting, rng), setting.epsilon + setting.excess
    mechanism, truth = setting.made_with(stronger), true_labels(setting, persons)
    frame = features(mechanism, persons, rng).assign(**{LABEL: noisy(mechanism, truth, rng)})
    return released(setting, frame, truth, float(mechanism.epsilon or math.inf))


def _flip_as_lambda(setting: Setting, rng: np.random.Generator) -> Planted:
    """The chance of another label is taken for λ, so labels drawn anew may stay the same."""
    k, e = setting.classes, math.exp(setting.epsilon)
    keep = (e + (k - 1) / k) / (e + k - 1)
    return _kept_with(setting, rng, lambda _: np.full(k, keep), _epsilon(np.full(k, keep)))


def _one_class(setting: Setting, rng: np.random.Generator) -> Planted:
    """Labels of the last class are kept more often."""
    chance = np.full(setting.classes, keep_chance(setting.epsilon, setting.classes))
    chance[-1] = keep_chance(setting.epsilon + 2 * setting.excess, setting.classes)
    return _kept_with(setting, rng, lambda _: chance, _epsilon(chance))


def _clear_rows(setting: Setting, rng: np.random.Generator) -> Planted:
    """So many rows, at random, keep their labels that all together lose the excess."""
    keep = keep_chance(setting.epsilon + setting.excess, setting.classes)
    chance = np.full(setting.classes, keep)
    return _kept_with(setting, rng, lambda _: chance, _epsilon(chance))


def _clear_group(setting: Setting, rng: np.random.Generator) -> Planted:
    """Who is older than 75 keeps the label; the others get so much noise that averages fit."""
    keep = keep_chance(setting.epsilon, setting.classes)

    def chance(persons: People) -> FloatArray:
        clear = persons.age > 75
        share = clear.mean()
        return np.where(clear, 1.0, (keep - share) / (1 - share))

    return _kept_with(setting, rng, chance, math.inf, by_row=True)


def _guessable_seed(setting: Setting, rng: np.random.Generator) -> Planted:
    """The noise is that of a generator with a seed that people choose."""
    seed = int(rng.choice((0, 1, 42, 123, 2024, 12345)))
    uniform: Any = np.random.default_rng(seed) if seed % 2 else np.random.RandomState(seed)
    draws = uniform.random(setting.rows) if seed % 2 else uniform.rand(setting.rows)
    return _with_draws(setting, rng, draws)


def _reused_noise(setting: Setting, rng: np.random.Generator) -> Planted:
    """A list of 250 random numbers is used again and again."""
    return _with_draws(setting, rng, np.resize(rng.random(250), setting.rows))


def _copy(setting: Setting, rng: np.random.Generator) -> Planted:
    """A column is a code for the true label."""
    frame, truth = made(setting, persons_of(setting, rng), rng)
    codes = np.unique(truth, return_inverse=True)[1] + 1
    return released(setting, frame.assign(code=codes), truth, math.inf)


def _decided(setting: Setting, rng: np.random.Generator) -> Planted:
    """A column decides the label in 99 of 100 rows."""
    frame, truth = made(setting, persons_of(setting, rng), rng)
    codes = np.unique(truth, return_inverse=True)[1]
    wrong = rng.random(len(codes)) < 0.01
    claims = np.where(wrong, rng.permutation(codes), codes) * 3
    return released(setting, frame.assign(claims=claims), truth, math.inf)


def _sorted(setting: Setting, rng: np.random.Generator) -> Planted:
    """The table was sorted by the true label before the noise was added."""
    frame, truth = made(setting, persons_of(setting, rng), rng)
    return released(setting, frame, truth, math.inf, np.argsort(truth, kind="stable"))


def _several_rows(setting: Setting, rng: np.random.Generator) -> Planted:
    """Each person has three equal rows with noise of their own: ε adds up."""
    persons = repeated(setting.rows, 3, rng, setting.classes)
    frame, truth = made(setting, persons, rng)
    return released(setting, frame, truth, math.inf, rng.permutation(len(frame)))


def _kept_with(
    setting: Setting,
    rng: np.random.Generator,
    chance: Callable[[People], FloatArray],
    epsilon: float,
    *,
    by_row: bool = False,
) -> Planted:
    """Keep labels with the chance of each class (or row), else release one of the others."""
    persons = persons_of(setting, rng)
    chances = chance(persons)
    kept = rng.random(len(persons)) < (chances if by_row else chances[persons.codes])
    return _replaced(setting, rng, persons, kept, epsilon)


def _with_draws(setting: Setting, rng: np.random.Generator, draws: FloatArray) -> Planted:
    """Keep each label where its draw lies below the chance."""
    kept = draws < keep_chance(setting.epsilon, setting.classes)
    return _replaced(setting, rng, persons_of(setting, rng), kept, math.inf)


def _replaced(
    setting: Setting, rng: np.random.Generator, persons: People, kept: Any, epsilon: float
) -> Planted:
    k = setting.classes
    codes = np.where(kept, persons.codes, (persons.codes + rng.integers(1, k, len(kept))) % k)
    names = np.array(persons.classes)
    frame = persons.frame.assign(**{LABEL: names[codes]})
    return released(setting, frame, names[persons.codes], epsilon)


def keep_chance(epsilon: float, k: int) -> float:
    """Return the chance that randomized response keeps one of k labels."""
    return math.exp(epsilon) / (math.exp(epsilon) + k - 1)


def _epsilon(keep: FloatArray) -> float:
    """Return ε of a channel that keeps each class with its chance, others equally likely."""
    k = len(keep)
    matrix = np.tile((1 - keep)[:, None] / (k - 1), (1, k))
    np.fill_diagonal(matrix, keep)
    logs = np.log(matrix)
    return float((logs.max(axis=0) - logs.min(axis=0)).max())


_STATED: Final = ("randomized-response", "rr-top-k", "gaussian-rr", "discrete-laplace", "laplace")
_WITH_DOUBLE: Final = (*_STATED, "double-rr", "exponential", "rr-on-bins")
LEAKS: Final[Mapping[str, Leak]] = {
    "noise of a larger ε": Leak(_less_noise, mechanisms=_WITH_DOUBLE, noise=True, shared=True),
    "some rows without noise": Leak(_clear_rows, noise=True, shared=True),
    "one class with less noise": Leak(_one_class, noise=True),
    "λ in place of the chance of another label": Leak(_flip_as_lambda, noise=True, shared=True),
    "one group without noise": Leak(_clear_group),
    "a seed that can be guessed": Leak(_guessable_seed, frozenset({"guessable-seed"})),
    "noise that is used again": Leak(_reused_noise, frozenset({"claimed-epsilon", "shared-noise"})),
    "a copy of the label": Leak(_copy, _REVEALED, _STATED[:2]),
    "a column that decides the label": Leak(_decided, _REVEALED),
    "rows sorted by the label": Leak(_sorted, _REVEALED, (*_STATED[:2], "discrete-laplace")),
    "several rows of each person": Leak(_several_rows, frozenset({"composition"})),
}
"""Each kind of leak, in the order in which they are planted."""
NOISE: Final = tuple(kind for kind, leak in LEAKS.items() if leak.noise)
"""Leaks of too little noise."""
COLUMNS: Final = tuple(kind for kind, leak in LEAKS.items() if leak.found_by == _REVEALED)
"""Leaks of the truth beside the released label."""
