"""Faults beside the label: the truth is left in the order of rows, or in another column."""

import hashlib
import math
from collections.abc import Callable

import numpy as np

from ldpaudit.extras.selftest.planting import People
from zoo.specimen import CLAIM, Fault, Specimen, Trace, honest_labels, of_people, release

REVEALED = Trace(
    (
        "fail:features-reveal-label",
        r"warning:columns: .* tells?,? .*",
        "warning:reading: .*determine.*",
    )
)
DECIDED = Trace(("fail:features-reveal-label", "warning:columns: The true label of .*"))
ORDERED = Trace(("fail:features-reveal-label", "warning:columns: The order of the rows reveals .*"))
IDENTIFIED = Trace(("fail:identifiers",))
Columns = Callable[[People, np.random.Generator], dict[str, np.ndarray]]
Order = Callable[[People, np.random.Generator], np.ndarray]


def _column(name: str, what: str, columns: Columns, needs: tuple[str, ...] = ()) -> Fault:
    def work(persons: People, rng: np.random.Generator) -> Specimen:
        return release(persons, honest_labels(persons, rng), columns(persons, rng))

    return Fault(name, what, of_people(2, work), math.inf, REVEALED, REVEALED, needs=needs)


def _some(name: str, what: str, columns: Columns) -> Fault:
    def work(persons: People, rng: np.random.Generator) -> Specimen:
        return release(persons, honest_labels(persons, rng), columns(persons, rng))

    alone = Trace((), "a column made from released labels looks alike, and gives nothing away")
    return Fault(name, what, of_people(2, work), math.inf, DECIDED, alone)


def _ordered(name: str, what: str, order: Order) -> Fault:
    def work(persons: People, rng: np.random.Generator) -> Specimen:
        return release(persons, honest_labels(persons, rng), rows=order(persons, rng))

    return Fault(name, what, of_people(2, work), math.inf, ORDERED, ORDERED)


def _hashed(salt: str) -> Columns:
    def columns(persons: People, _: np.random.Generator) -> dict[str, np.ndarray]:
        digests = [hashlib.sha256((salt + c).encode()).hexdigest()[:12] for c in persons.classes]
        return {"token": np.array(digests)[persons.codes]}

    return columns


def _salted_rows(persons: People, rng: np.random.Generator) -> dict[str, np.ndarray]:
    salts = [f"{salt:08x}" for salt in rng.integers(0, 2**32, len(persons))]
    labels = np.array(persons.classes)[persons.codes]
    pairs = zip(salts, labels, strict=True)
    tokens = [hashlib.sha256((salt + label).encode()).hexdigest()[:16] for salt, label in pairs]
    return {"salt": np.array(salts), "token": np.array(tokens)}


def _finer(persons: People, rng: np.random.Generator) -> dict[str, np.ndarray]:
    return {"group": 3 * persons.codes + rng.integers(0, 3, len(persons)) + 100}


def _sum(persons: People, rng: np.random.Generator) -> dict[str, np.ndarray]:
    total = rng.integers(0, 10, len(persons)) + 10 * persons.codes
    first = rng.integers(0, total + 1)
    return {"part1": first, "part2": total - first}


def _mostly(persons: People, rng: np.random.Generator) -> dict[str, np.ndarray]:
    wrong = rng.random(len(persons)) < 0.02
    return {"claims": np.where(wrong, 1 - persons.codes, persons.codes) * 3 + 1}


def _neighbour(persons: People, _: np.random.Generator) -> dict[str, np.ndarray]:
    return {"previous": np.roll(persons.codes, 1)}


def _weights(persons: People, _: np.random.Generator) -> dict[str, np.ndarray]:
    counts = np.bincount(persons.codes)
    return {"weight": (len(persons) / counts)[persons.codes]}


def _balanced_split(persons: People, rng: np.random.Generator) -> dict[str, np.ndarray]:
    chance = 0.3 * 0.5 / np.bincount(persons.codes) * len(persons)
    return {"test": (rng.random(len(persons)) < chance[persons.codes]).astype(np.int64)}


def _stratified_folds(persons: People, _: np.random.Generator) -> dict[str, np.ndarray]:
    """Assign folds class by class in the order of the rows, as without shuffling."""
    fold = np.empty(len(persons), dtype=np.int64)
    for code in range(2):
        rows = np.flatnonzero(persons.codes == code)
        fold[rows] = np.arange(len(rows)) * 5 // len(rows)
    return {"fold": fold}


def _blocks(persons: People, rng: np.random.Generator) -> np.ndarray:
    """Return rows in blocks of up to 500 with one true label each, in random order."""
    blocks = []
    for code in range(len(persons.classes)):
        rows = rng.permutation(np.flatnonzero(persons.codes == code))
        blocks += [rows[start : start + 500] for start in range(0, len(rows), 500)]
    return np.concatenate([blocks[i] for i in rng.permutation(len(blocks))])


def _encoded(persons: People, rng: np.random.Generator) -> dict[str, np.ndarray]:
    return {"place_mean": place_means(persons.codes, rng)}


def _filled_in(persons: People, rng: np.random.Generator) -> dict[str, np.ndarray]:
    return {"income": incomes(persons.codes, rng)}


def place_means(labels: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return the mean label in each person's place, about two people in each."""
    places = rng.integers(0, len(labels) // 2, len(labels))
    sums, sizes = np.bincount(places, labels), np.bincount(places)
    return np.round(sums[places] / sizes[places], 4)


def incomes(labels: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return numbers, a tenth of them missing and filled in by the mean of the label."""
    values = np.rint(np.exp(rng.normal(7 + 0.2 * labels, 1)))
    means = np.array([values[labels == label].mean() for label in (0, 1)]).round(2)
    return np.where(rng.random(len(labels)) < 0.1, means[labels], values)


def _plain(persons: People, rng: np.random.Generator) -> Specimen:
    return release(persons, honest_labels(persons, rng))


LEFT_BEHIND = (
    _ordered(
        "sorted-by-truth",
        "The table was sorted by the true label before the noise was added.",
        lambda persons, _: np.argsort(persons.codes, kind="stable"),
    ),
    _ordered(
        "sorted-within",
        "The table is sorted by the true label, and by age within.",
        lambda persons, _: np.lexsort((persons.age, persons.codes)),
    ),
    _ordered("row-groups", "The file's blocks of rows have one true label each.", _blocks),
    Fault(
        "file-name",
        "The true label is in the file's name, one file for each class.",
        of_people(2, _plain),
        math.inf,
        Trace((), "one file is audited at a time, and its name is not read as data"),
        Trace((), "one file is audited at a time, and its name is not read as data"),
    ),
    _column("lag-column", "A column holds the true label of the row before.", _neighbour),
    _column(
        "copy", "A column is the true label.", lambda p, _: {"c": np.array(p.classes)[p.codes]}
    ),
    _column("code", "A column is a number for the true label.", lambda p, _: {"c": p.codes + 1}),
    _column("hash", "A column is the hash of the true label.", _hashed("")),
    _column("salted-hash", "A column is its hash with one secret salt.", _hashed("s3cret")),
    Fault(
        "salted-rows",
        "A column is its hash with a salt for each row, and the salt is beside it.",
        of_people(2, lambda p, rng: release(p, honest_labels(p, rng), _salted_rows(p, rng))),
        math.inf,
        IDENTIFIED,
        IDENTIFIED,
    ),
    _column("finer", "A column is a finer category than the label.", _finer),
    _column(
        "sum", "Two columns add up to a number that decides the label.", _sum, ("label-inference",)
    ),
    _column("decides-98", "A column decides the label in 98 % of rows.", _mostly),
    _column("weights", "Weights are one over the true label's share.", _weights),
    _some("target-encoding", "A column is the mean true label of about two people.", _encoded),
    _some("filled-in-by-class", "Missing numbers are the mean of the true class.", _filled_in),
    Fault(
        "split-balanced",
        "The test rows were drawn so that the true labels are equally frequent there.",
        of_people(2, lambda p, rng: release(p, honest_labels(p, rng), _balanced_split(p, rng))),
        CLAIM + math.log(0.62 / 0.38),
        Trace((), "it says no more about the label than an ordinary feature does"),
        Trace((), "it says no more about the label than an ordinary feature does"),
    ),
    Fault(
        "folds-stratified",
        "Folds were cut within each true class in the order of the rows.",
        of_people(2, lambda p, rng: release(p, honest_labels(p, rng), _stratified_folds(p, rng))),
        CLAIM,
        Trace((), "only rows near the ends of folds tell anything"),
        Trace((), "only rows near the ends of folds tell anything"),
    ),
)
