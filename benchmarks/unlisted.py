"""Faults of release code that no test was written for, and their honest twins."""

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np
import pandas as pd

import ldpaudit
from benchmarks.runner import Array, Rng, Rows, case, heads
from benchmarks.verdicts import share
from ldpaudit.extras.selftest.planting import keep_chance, people

EPSILON: Final = 1.0
KEPT: Final = keep_chance(EPSILON, 2)
AUDITS: Final = ("assumptions", "mechanism", "power")


@dataclass
class World:
    """People of two classes whose labels are about to be released."""

    # ``told``: the labels that a fault lets through, those of others for an honest twin.
    # ``honest``: whether the noise has no fault.

    frame: pd.DataFrame
    labels: Array
    told: Array
    honest: bool
    rng: Rng

    def noise(self) -> Array:
        """Return a random number for each row; the label is changed where it is 0.73 or more."""
        return self.rng.random(len(self.labels))

    def released(self, numbers: Array | None = None) -> tuple[pd.DataFrame, Array]:
        """Return the release and the true labels, changed by these random numbers."""
        numbers = self.noise() if numbers is None or self.honest else numbers
        labels = np.where(numbers < KEPT, self.labels, 1 - self.labels)
        return self.frame.assign(label=labels), self.labels


Fault = Callable[[World], tuple[pd.DataFrame, Array]]


def control_digit(world: World) -> tuple[pd.DataFrame, Array]:
    """A number and its control digit, to which five is added for one label."""
    number = world.rng.integers(10_000, 99_999, len(world.labels))
    digit = (7 * number + 5 * world.told) % 10
    world.frame = world.frame.assign(number=number, control=digit)
    return world.released()


def stretched_sequence(world: World) -> tuple[pd.DataFrame, Array]:
    """Row 2i has the random number of row i."""
    numbers = world.noise()
    for row in range(2, len(numbers), 2):
        numbers[row] = numbers[row // 2]
    return world.released(numbers)


def limited_changes(world: World) -> tuple[pd.DataFrame, Array]:
    """No more than three of ten rows in sequence are changed."""
    numbers = world.noise()
    changed = numbers >= KEPT
    for row in range(9, len(numbers)):
        if changed[row - 9 : row + 1].sum() > 3:
            numbers[row], changed[row] = 0.0, False
    return world.released(numbers)


def even_seconds(world: World) -> tuple[pd.DataFrame, Array]:
    """Times of one label come from a system whose seconds are even."""
    seconds = world.rng.integers(0, 10**7, len(world.labels))
    seconds += (seconds % 2) * world.told
    times = pd.Timestamp("2024-01-01") + pd.to_timedelta(seconds, unit="s")
    world.frame = world.frame.assign(time=times)
    return world.released()


def capital_letters(world: World) -> tuple[pd.DataFrame, Array]:
    """Names of a tenth of the people with one label are written in capital letters."""
    names = np.array(["Smith", "Jones", "Brown", "Taylor", "Wilson"])
    some = (world.rng.random(len(world.labels)) < 0.1) & (world.told == 1)
    names = world.rng.choice(names, len(some))
    world.frame = world.frame.assign(name=np.where(some, np.char.upper(names), names))
    return world.released()


def running_total(world: World) -> tuple[pd.DataFrame, Array]:
    """A column counts the labels so far."""
    world.frame = world.frame.assign(so_far=np.cumsum(world.told))
    return world.released()


def clipped_by_class(world: World) -> tuple[pd.DataFrame, Array]:
    """The largest incomes are cut off at a quantile of their class."""
    income = np.exp(world.rng.normal(7, 1, len(world.labels))).round(2)
    for label in (0, 1):
        own = world.told == label
        income[own] = np.minimum(income[own], np.quantile(income[own], 0.96).round(2))
    world.frame = world.frame.assign(income=income)
    return world.released()


def odd_and_even(world: World) -> tuple[pd.DataFrame, Array]:
    """Odd rows have less noise than even ones, as declared in the mean."""
    numbers = world.noise()
    half = (1 - KEPT) * np.where(np.arange(len(numbers)) % 2, 0.55, 1.45)
    return world.released(np.where(numbers < half, 1.0, 0.0))


def changed_last(world: World) -> tuple[pd.DataFrame, Array]:
    """Within each level of education the changed rows stand last."""
    numbers = world.noise()
    by = world.rng.random(len(numbers)) if world.honest else numbers >= KEPT
    order = np.lexsort((by, world.frame["education"]))
    world.frame, world.labels = world.frame.iloc[order].reset_index(drop=True), world.labels[order]
    return world.released(numbers[order])


def every_third_again(world: World) -> tuple[pd.DataFrame, Array]:
    """In the order of age, each third row has the random number of the row before it."""
    numbers, order = world.noise(), np.argsort(world.frame["age"], kind="stable")
    sorted_ = numbers[order]
    sorted_[2::3] = sorted_[1 : len(sorted_) - 1 : 3]
    numbers[order] = sorted_
    return world.released(numbers)


FAULTS: Final[tuple[Fault, ...]] = (
    control_digit,
    stretched_sequence,
    limited_changes,
    even_seconds,
    capital_letters,
    running_total,
    clipped_by_class,
    odd_and_even,
    changed_last,
    every_third_again,
)


def drawn(fault: Fault, draw: int, n: int, honest: bool) -> ldpaudit.AuditResult:
    """Return the audit of one draw, by an auditor with the true labels."""
    rng = np.random.default_rng([39, FAULTS.index(fault), draw, honest])
    made = people(n, 2, rng)
    labels = made.codes.astype(np.int64)
    told = rng.permutation(labels) if honest else labels
    frame, truth = fault(World(made.frame.reset_index(drop=True), labels, told, honest, rng))
    return ldpaudit.audit(
        frame,
        label="label",
        truth=pd.DataFrame({"label": truth}),
        before=list(made.frame.columns),
        mechanism={"name": "rr", "classes": [0, 1], "epsilon": EPSILON},
        only=AUDITS,
        threads=1,
        rng=draw,
    )


@case(draws=1, n=600, faults=("odd_and_even",))
def unlisted(draws: int = 5, n: int = 6_000, faults: tuple[str, ...] = ()) -> Rows:
    """How many draws of a fault may be published, and how many honest twins are accused?

    True labels are given and the people's columns are known from before the noise; a column that
    the fault adds is not. Audits: assumptions, mechanism, power. An honest twin has the same column
    from the labels of others, or noise as declared.
    """
    warnings.simplefilter("ignore")
    yield heads("fault", "publish", "exit 1", "twin: exit 1", "twin: publish", "CPU seconds|.1f")
    sums = np.zeros(4, dtype=np.int64)
    chosen = [one for one in FAULTS if not faults or one.__name__ in faults]
    for fault in chosen:
        started, counts = time.process_time(), np.zeros(4, dtype=np.int64)
        for draw in range(draws):
            found, twin = (drawn(fault, draw, n, honest) for honest in (False, True))
            counts[0] += found.decision == "publish"
            counts[1] += found.verdict == "fail"
            counts[2] += twin.verdict == "fail"
            counts[3] += twin.decision == "publish"
        sums += counts
        spent = (time.process_time() - started) / (2 * draws)
        yield fault.__doc__, *(f"{count} of {draws}" for count in counts), spent
    yield "all", *(share(int(count), draws * len(chosen)) for count in sums), None


@case(n=600, files=2)
def honest_files(n: int = 2_000, files: int = 500) -> Rows:
    """How many plain honest releases end in exit status 1?"""
    warnings.simplefilter("ignore")
    yield heads("rows", "exit 1", "not pass")
    verdicts = []
    for draw in range(files):
        rng = np.random.default_rng([40, draw])
        made = people(n, 2, rng)
        labels = made.codes.astype(np.int64)
        world = World(made.frame.reset_index(drop=True), labels, labels, True, rng)
        frame, truth = world.released()
        mechanism = {"name": "rr", "classes": [0, 1], "epsilon": EPSILON}
        verdicts.append(
            ldpaudit.audit(
                frame,
                label="label",
                truth=pd.DataFrame({"label": truth}),
                before=list(made.frame.columns),
                mechanism=mechanism,
                only=AUDITS,
                threads=1,
                rng=draw,
            ).verdict
        )
    yield (
        f"{n}",
        share(verdicts.count("fail"), files),
        share(files - verdicts.count("pass"), files),
    )
