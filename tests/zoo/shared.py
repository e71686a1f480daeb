"""Faults of the noise: drawn once for several rows, again for one person, or predictable."""

import math
import random
import zlib
from collections.abc import Callable
from datetime import date
from typing import Any

import numpy as np

from ldpaudit.extras.selftest.planting import People, people, repeated
from zoo.specimen import (
    CLAIM,
    Fault,
    Specimen,
    Trace,
    honest_labels,
    keep,
    of_people,
    release,
    replaced,
)

SHARED = Trace(("warning:assumptions: .*share noise.*",))
ALONG = Trace(("fail:shared-noise", "warning:assumptions: .*(noise|changed labels).*"))
AGREEMENT = Trace(("fail:shared-noise",))
GUESSED = Trace(("fail:guessable-seed",))
SEEDED = Trace(("warning:seeds: .*",))
COMPOSED = Trace(("fail:composition",))
FOLDED = Trace(("warning:assumptions: .*fresh noise.*",))
_KEEP = keep(CLAIM, 2)


def _with_uniforms(
    draw: Callable[[int, np.random.Generator], np.ndarray], **options: Any
) -> Callable[[int, np.random.Generator], Specimen]:
    """Return releases that keep row i's label where ``draw(n, rng)[i]`` is below the chance."""

    def work(persons: People, rng: np.random.Generator) -> Specimen:
        kept = draw(len(persons), rng) < _KEEP
        return release(persons, replaced(persons.codes, 2, kept, rng), **options)

    return of_people(2, work)


def _period(length: int) -> Fault:
    return Fault(
        f"period-{length}",
        f"The same {length} random numbers are used again for the next {length} rows.",
        _with_uniforms(lambda n, rng: np.resize(rng.random(length), n)),
        math.inf,
        SHARED,
        SHARED,
    )


def _household(size: int, shuffled: bool) -> Fault:
    def work(persons: People, rng: np.random.Generator) -> Specimen:
        n = len(persons)
        home = np.arange(n) // size
        zips = persons.frame["zip"].to_numpy()[home * size]
        kept = rng.random(home[-1] + 1)[home] < _KEEP
        order = rng.permutation(n) if shuffled else None
        columns = {"zip": zips, "household": rng.permutation(n)[home]}
        released = replaced(persons.codes, 2, kept, rng)
        return release(persons, released, columns, order, group="household")

    where = ", in no order" if shuffled else ""
    return Fault(
        f"household-{size}" + ("-shuffled" if shuffled else ""),
        f"One random draw decides for a whole household of {size}{where}.",
        of_people(2, work),
        math.inf,
        SHARED,
        SHARED,
    )


REGIONS = np.array(["north", "east", "south", "west", "islands"])


def _by_region(persons: People, rng: np.random.Generator) -> Specimen:
    """Noise of a seed that is set again for each region, as groupby(...).apply(...) would."""
    region = rng.choice(5, len(persons), p=[0.35, 0.25, 0.2, 0.15, 0.05])
    draws, kept = rng.random(len(persons)), np.zeros(len(persons), dtype=bool)
    for code in range(5):
        rows = np.flatnonzero(region == code)
        kept[rows] = draws[: len(rows)] < _KEEP
    return release(persons, replaced(persons.codes, 2, kept, rng), {"region": REGIONS[region]})


def _site(persons: People, rng: np.random.Generator, length: int, mean: bool = False) -> Specimen:
    """Neighbouring rows in the clear; with ``mean`` all others get so much more noise."""
    n, start = len(persons), int(rng.integers(len(persons) - length))
    kept = rng.random(n) < ((_KEEP - length / n) / (1 - length / n) if mean else _KEEP)
    kept[start : start + length] = True
    return release(persons, replaced(persons.codes, 2, kept, rng))


def _exactly(lost: int, size: int) -> Callable[[int, np.random.Generator], np.ndarray]:
    """Return draws of which so many in each block of rows mean another label."""

    def draw(n: int, rng: np.random.Generator) -> np.ndarray:
        block = np.r_[np.ones(lost), np.zeros(size - lost)]
        return np.concatenate([rng.permutation(block) for _ in range(-(-n // size))])[:n]

    return draw


def _copied(n: int, rng: np.random.Generator) -> np.ndarray:
    draws = rng.random(n)
    for row in np.flatnonzero(rng.random(n) < 0.1):
        draws[row] = draws[row - 1]
    return draws


def _changed_last(persons: People, rng: np.random.Generator) -> Specimen:
    kept = rng.random(len(persons)) < _KEEP
    released = replaced(persons.codes, 2, kept, rng)
    return release(persons, released, rows=np.argsort(~kept, kind="stable"))


def _composition(n: int, rng: np.random.Generator) -> Specimen:
    persons = repeated(n, 3, rng)
    return release(persons, honest_labels(persons, rng), rows=rng.permutation(n))


def _visits(n: int, rng: np.random.Generator) -> Specimen:
    persons = repeated(n, 3, rng)
    visit = {"hours": rng.integers(5, 80, n), "person": rng.permutation(n)[np.arange(n) // 3]}
    return release(persons, honest_labels(persons, rng), visit, rng.permutation(n), group="person")


def _two_releases(n: int, rng: np.random.Generator) -> Specimen:
    once = people(-(-n // 2), 2, rng)
    both = once.take(np.r_[np.arange(len(once)), np.arange(len(once))][:n])
    number = {"person": np.r_[np.arange(len(once)), np.arange(len(once))][:n]}
    return release(both, honest_labels(both, rng), number, group="person")


def _remembered(n: int, rng: np.random.Generator) -> Specimen:
    persons = repeated(n, 5, rng)
    kept = np.repeat(rng.random(-(-n // 5)), 5)[:n] < _KEEP
    return release(persons, replaced(persons.codes, 2, kept, rng))


def numpy_stream(n: int, _: np.random.Generator) -> np.ndarray:
    return np.random.default_rng(42).random(n)


def numpy_legacy(n: int, _: np.random.Generator) -> np.ndarray:
    return np.random.RandomState(123).rand(n)


def python_stream(n: int, _: np.random.Generator) -> np.ndarray:
    source = random.Random(20240517)
    return np.array([source.random() for _ in range(n)])


def unix_time(n: int, _: np.random.Generator) -> np.ndarray:
    return np.random.default_rng(1_767_312_345).random(n)


def row_numpy(n: int, _: np.random.Generator) -> np.ndarray:
    return np.array([np.random.default_rng(row).random() for row in range(n)])


def row_python(n: int, _: np.random.Generator) -> np.ndarray:
    return np.array([random.Random(row + 1).random() for row in range(n)])


def _of_checksum(persons: People, rng: np.random.Generator) -> Specimen:
    customer = rng.permutation(len(persons))
    kept = np.array([zlib.crc32(str(c).encode()) % 1000 < 1000 * _KEEP for c in customer])
    return release(persons, replaced(persons.codes, 2, kept, rng), {"customer": customer})


def secret_seed(n: int, _: np.random.Generator) -> np.ndarray:
    return np.random.default_rng(0x9E3779B97F4A7C15F39CC0605CEDC834).random(n)


def _seeded(
    name: str, what: str, draw: Callable[[int, np.random.Generator], np.ndarray], **options: Any
) -> Fault:
    make = _with_uniforms(draw, **options)
    return Fault(f"seed-{name}", what, make, math.inf, GUESSED, SEEDED)


SHARED_NOISE = (
    _period(1000),
    _period(20),
    _household(4, False),
    _household(20, False),
    _household(20, True),
    Fault(
        "seed-by-region",
        "A secret seed is set again for each region, so the j-th people of all regions share "
        "their noise; rows are in another order.",
        of_people(2, _by_region),
        math.inf,
        SHARED,
    ),
    *(
        Fault(name, what, of_people(2, work), math.inf, ALONG, AGREEMENT)
        for name, what, work in (
            (
                "site-8",
                "A site (8 % of the rows, all neighbours) releases its labels as they are.",
                lambda p, rng: _site(p, rng, round(0.08 * len(p))),
            ),
            (
                "site-8-compensated",
                "The same, and all others get so much more noise that the averages are as claimed.",
                lambda p, rng: _site(p, rng, round(0.08 * len(p)), mean=True),
            ),
            (
                "burst-250",
                "250 neighbouring rows are released as they are.",
                lambda p, rng: _site(p, rng, min(250, len(p) // 4)),
            ),
            (
                "changed-last",
                "Kept and changed rows are put together at the end, without a shuffle.",
                _changed_last,
            ),
        )
    ),
    *(
        Fault(
            f"exactly-{lost}-of-{size}",
            f"Exactly {lost} labels are changed in each {size} rows: all others reveal the last.",
            _with_uniforms(_exactly(lost, size)),
            math.inf,
            ALONG,
        )
        for lost, size in ((27, 100), (3, 10))
    ),
    Fault(
        "copied-noise",
        "One row in ten gets the noise of the row before: two threads share a generator.",
        _with_uniforms(_copied),
        math.inf,
        SHARED,
    ),
    Fault(
        "composition-3",
        "Each person has three equal rows, and each row gets noise of its own: ε adds up to 3.",
        _composition,
        3 * CLAIM,
        COMPOSED,
        FOLDED,
    ),
    Fault(
        "composition-visits",
        "Three visits of each person, with noise of their own; a column tells the person.",
        _visits,
        3 * CLAIM,
        COMPOSED,
        COMPOSED,
    ),
    Fault(
        "two-releases",
        "The same people are released twice with new noise, here as one table: ε adds up to 2.",
        _two_releases,
        2 * CLAIM,
        COMPOSED,
        COMPOSED,
    ),
    _seeded("numpy", "The noise is numpy's default_rng(42).", numpy_stream),
    _seeded("numpy-legacy", "The noise is numpy's RandomState(123).", numpy_legacy),
    _seeded("python", "The noise is Python's Random(20240517), a date.", python_stream),
    _seeded(
        "unix-time",
        "The noise is numpy's default_rng(seconds since 1970), and the day is known.",
        unix_time,
        made_on=date(2026, 1, 2),
    ),
    _seeded("row-numpy", "Each row has its own default_rng(row number).", row_numpy),
    _seeded("row-python", "Each row has its own Random(row number).", row_python),
    Fault(
        "seed-checksum",
        "The noise is the CRC32 of the customer's number modulo 1,000.",
        of_people(2, _of_checksum),
        math.inf,
        GUESSED,
        SEEDED,
    ),
    Fault(
        "seed-secret",
        "The noise is numpy's with a seed of 128 random bits that was kept: it could be redone.",
        _with_uniforms(secret_seed),
        CLAIM,
        Trace((), "nobody can try so many seeds: as good as noise"),
        Trace((), "nobody can try so many seeds: as good as noise"),
    ),
)
REMEMBERED = Fault(
    "remembered",
    "Each person has five equal rows and one remembered answer: nothing is lost twice.",
    _remembered,
    CLAIM,
    honest=True,
)
