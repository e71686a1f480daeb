"""Faults of the channel: noise that is too small, for all rows or for some of them."""

import math
from collections.abc import Callable

import numpy as np

from ldpaudit.extras.selftest.planting import People
from zoo.specimen import (
    CLAIM,
    Fault,
    Specimen,
    Trace,
    keep,
    noisy,
    of_people,
    release,
)

WRONG_CHANNEL = Trace(("fail:claimed-channel",))
BY_SUBGROUP = Trace(("warning:assumptions: The released labels depend on the features.*",))
Chance = Callable[[People, np.random.Generator], np.ndarray | float]


def _kept(k: int, chance: Chance) -> Callable[[int, np.random.Generator], Specimen]:
    """Return releases whose labels are kept with a chance that depends on the row."""

    def work(persons: People, rng: np.random.Generator) -> Specimen:
        return release(persons, noisy(persons, chance(persons, rng), rng))

    return of_people(k, work)


def compensated(clear: np.ndarray, claimed: float) -> np.ndarray:
    """Return chances: 1 for some rows, and so much less for the others that the mean fits."""
    share = clear.mean()
    return np.where(clear, 1.0, (claimed - share) / (1 - share))


def _made_at(epsilon: float, k: int) -> Fault:
    return Fault(
        f"made-{epsilon:g}" + _suffix(k),
        f"The noise is that of ε = {epsilon:g}, and the declaration says 1.",
        _kept(k, lambda *_: keep(epsilon, k)),
        epsilon,
        WRONG_CHANNEL,
        WRONG_CHANNEL,
    )


def _one_class(k: int) -> Fault:
    chance = np.full(k, keep(CLAIM, k))
    chance[-1] = keep(3.0, k)
    worst = math.log(chance[0] * (k - 1) / (1 - chance[-1]))
    return Fault(
        "one-class" + _suffix(k),
        "The labels of one class are kept more often than those of the others (as at ε = 3).",
        _kept(k, lambda persons, _: chance[persons.codes]),
        worst,
        WRONG_CHANNEL,
        WRONG_CHANNEL,
    )


def _clear_at_random(percent: int) -> Fault:
    share, chance = percent / 100, keep(CLAIM, 2)
    mixed = share + (1 - share) * chance
    return Fault(
        f"clear-{percent}",
        f"{percent} % of the rows, at random, keep their labels without noise.",
        _kept(2, lambda *_: mixed),
        math.log(mixed / (1 - mixed)),
        WRONG_CHANNEL,
        WRONG_CHANNEL,
    )


def _older(age: int, percent: int, k: int = 2) -> Fault:
    def chance(persons: People, _: np.random.Generator) -> np.ndarray:
        return compensated(persons.age > age, keep(CLAIM, k))

    return Fault(
        f"age-{age}" + _suffix(k),
        f"People older than {age} ({percent} %) keep their labels; the others get more noise, so "
        "that the averages are as claimed.",
        _kept(k, chance),
        math.inf,
        BY_SUBGROUP,
        BY_SUBGROUP,
    )


def _older_plain(persons: People, _: np.random.Generator) -> np.ndarray:
    return np.where(persons.age > 80, 1.0, keep(CLAIM, 2))


def _by_feature(persons: People, _: np.random.Generator) -> np.ndarray:
    high = persons.frame["x0"].to_numpy() > np.median(persons.frame["x0"])
    mean = keep(CLAIM, 2)
    return np.where(high, keep(3.2, 2), 2 * mean - keep(3.2, 2))


def _by_zip(persons: People, _: np.random.Generator) -> np.ndarray:
    return np.where(persons.frame["zip"].to_numpy() < "024", 1.0, keep(CLAIM, 2))


def _lambda_as_flip(k: int) -> Fault:
    noise = k / (k - 1 + math.exp(CLAIM))
    wrong = 1 - noise
    return Fault(
        "lambda-as-flip" + _suffix(k),
        "λ, the chance of a label drawn anew, is used as the chance of another label: more noise "
        "than declared.",
        _kept(k, lambda *_: wrong),
        abs(math.log(wrong * (k - 1) / (1 - wrong))),
        WRONG_CHANNEL,
        WRONG_CHANNEL,
    )


def _flip_as_lambda(k: int) -> Fault:
    flip = 1 - keep(CLAIM, k)
    wrong = 1 - flip + flip / k
    return Fault(
        "flip-as-lambda" + _suffix(k),
        "The chance of another label is used as λ, so some labels are drawn anew and stay: less "
        "noise than declared.",
        _kept(k, lambda *_: wrong),
        math.log(wrong * (k - 1) / (1 - wrong)),
        WRONG_CHANNEL,
        WRONG_CHANNEL,
    )


def with_rare_class(persons: People, rng: np.random.Generator) -> People:
    """Return the people with a third class of 12."""
    codes = persons.codes.copy()
    others = rng.permutation(np.flatnonzero(codes == 2))[12:]
    codes[others] = rng.integers(0, 2, len(others))
    return People(persons.frame, codes, persons.classes)


def _rare_in_the_clear(persons: People, rng: np.random.Generator) -> Specimen:
    persons = with_rare_class(persons, rng)
    chance = np.where(persons.codes == 2, 1.0, keep(CLAIM, 3))
    return release(persons, noisy(persons, chance, rng))


def _corrected(persons: People, rng: np.random.Generator) -> np.ndarray:
    chance = keep(CLAIM, 2)
    return np.where(rng.random(len(persons)) < 0.3, 1.0, chance)


def _suffix(k: int) -> str:
    return "" if k == 2 else f"-{k}-classes"


_CORRECTED = 0.3 + 0.7 * keep(CLAIM, 2)
CHANNELS = (
    *(_made_at(epsilon, k) for epsilon in (3.0, 1.25) for k in (2, 5)),
    *(_one_class(k) for k in (2, 5)),
    Fault(
        "rare-class-clear",
        "The labels of the 12 people with a rare label are released as they are.",
        of_people(3, _rare_in_the_clear),
        math.inf,
        Trace(("fail:rare-classes",)),
        Trace((), "nobody can see from the release alone who has the rare label"),
    ),
    *(_clear_at_random(percent) for percent in (1, 5, 20)),
    Fault(
        "age-80-plain",
        "People older than 80 (7 %) keep their labels.",
        _kept(2, _older_plain),
        math.inf,
        BY_SUBGROUP,
        BY_SUBGROUP,
    ),
    _older(80, 7),
    _older(75, 15),
    _older(75, 15, 5),
    Fault(
        "noise-by-feature",
        "One half of the people, told by a feature, get the noise of ε = 3.2 and the others so "
        "much more that the averages are as claimed.",
        _kept(2, _by_feature),
        3.2,
        BY_SUBGROUP,
        BY_SUBGROUP,
    ),
    *(_lambda_as_flip(k) for k in (2, 5)),
    *(_flip_as_lambda(k) for k in (2, 5)),
    Fault(
        "corrected-by-zip",
        "A clerk who knows the truth corrects the released labels of some places (12 % of rows).",
        _kept(2, _by_zip),
        math.inf,
        BY_SUBGROUP,
        BY_SUBGROUP,
    ),
    Fault(
        "corrected-at-random",
        "A data check compares with the source and puts back 30 % of the changed labels.",
        _kept(2, _corrected),
        math.log(_CORRECTED / (1 - _CORRECTED)),
        WRONG_CHANNEL,
        WRONG_CHANNEL,
    ),
)
