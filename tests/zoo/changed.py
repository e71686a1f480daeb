"""Honest releases whose released labels were used or changed afterwards, which cannot leak."""

import numpy as np
import pandas as pd

from ldpaudit.extras.selftest.planting import People
from ldpaudit.release import IntArray
from zoo.specimen import CLAIM, Fault, Specimen, honest_labels, of_people, release


def _overwritten(persons: People, rng: np.random.Generator) -> Specimen:
    released = honest_labels(persons, rng)
    return release(persons, np.where(persons.age < 25, 0, released).astype(np.int32))


def _overwritten_twice(persons: People, rng: np.random.Generator) -> Specimen:
    ruled = (persons.age > 80) | (persons.frame["education"].to_numpy() < 8)
    return release(persons, np.where(ruled, 0, honest_labels(persons, rng)).astype(np.int32))


def _balanced(persons: People, rng: np.random.Generator) -> Specimen:
    released = honest_labels(persons, rng)
    groups = [rng.permutation(np.flatnonzero(released == z)) for z in (0, 1)]
    few = min(map(len, groups))
    return release(persons, released, rows=np.sort(np.concatenate([g[:few] for g in groups])))


def _thinned(persons: People, rng: np.random.Generator) -> Specimen:
    released = honest_labels(persons, rng)
    kept = (released == 1) | (rng.random(len(persons)) < 0.1)
    return release(persons, released, rows=np.flatnonzero(kept))


def _doubled(persons: People, rng: np.random.Generator) -> Specimen:
    released = honest_labels(persons, rng)
    rows = np.concatenate([np.arange(len(persons)), np.flatnonzero(released == 1)])
    return release(persons, released, rows=rng.permutation(rows))


def _imputed(persons: People, rng: np.random.Generator) -> Specimen:
    released = honest_labels(persons, rng)
    hours = persons.frame["hours"].to_numpy().astype(float)
    missing = rng.random(len(persons)) < 0.1
    for z in (0, 1):
        mine = released == z
        hours[mine & missing] = hours[mine & ~missing].mean().round(2)
    return release(persons, released, {"hours": hours})


def _moving_mean(persons: People, rng: np.random.Generator) -> Specimen:
    """The true label is mostly that of the day before."""
    n = len(persons)
    last = np.maximum.accumulate(np.where(rng.random(n) < 0.1, np.arange(n), 0))
    days = People(persons.frame, persons.codes[last], persons.classes)
    released: IntArray = honest_labels(days, rng)
    before = pd.Series(released)
    return release(days, released, {"week": before.rolling(7).mean(), "before": before.shift(1)})


_KINDS = {
    "overwritten": (_overwritten, 'All people below 25 have "no" since the release.'),
    "overwritten-twice": (_overwritten_twice, "So have people above 80 or of short education."),
    "balanced-by-release": (_balanced, "As many rows of each released label were kept."),
    "thinned-by-release": (_thinned, "A tenth of the rows with the frequent released label."),
    "doubled-by-release": (_doubled, "Rows with the rarer released label stand there twice."),
    "imputed-by-release": (_imputed, "Missing hours are the mean of the released class."),
    "moving-mean": (_moving_mean, "A column is the mean released label of seven days."),
}
CHANGED = tuple(
    Fault(name, what, of_people(2, work), CLAIM, honest=True)
    for name, (work, what) in _KINDS.items()
)
