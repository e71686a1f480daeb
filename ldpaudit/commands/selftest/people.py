"""The tables that planted releases are made from."""

from dataclasses import dataclass
from functools import cache

import numpy as np
import pandas as pd

from ldpaudit.release import FloatArray, IndexArray, IntArray

_SHARES = {2: (0.62, 0.38), 5: (0.3, 0.25, 0.2, 0.15, 0.1)}
_NAMES = {2: ("no", "yes")}
_MEASURED = ("x0", "x1", "x2", "x3")


@dataclass(frozen=True)
class People:
    """n people: features of everyday kinds, and true labels as codes.

    Two classes can be told apart by the features with an AUC of about .85.
    """

    frame: pd.DataFrame
    codes: IntArray
    classes: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.codes)

    @property
    def age(self) -> IndexArray:
        """Whole years, shape (n,)."""
        return np.asarray(self.frame["age"], dtype=np.int64)

    def take(self, rows: IndexArray) -> "People":
        """Return the people of some rows."""
        frame = self.frame.iloc[rows].reset_index(drop=True)
        return People(frame, self.codes[rows], self.classes)


def classes(k: int) -> tuple[str, ...]:
    """Return the names of k classes, 2 to 26."""
    return _NAMES.get(k) or tuple("abcdefghijklmnopqrstuvwxyz"[:k])


def shares(k: int) -> FloatArray:
    """Return how frequent each of k classes is, float64 of shape (k,): the first the most."""
    falling = np.arange(k + 1, 1, -1) / np.arange(k + 1, 1, -1).sum()
    return np.asarray(_SHARES.get(k, falling))


def people(n: int, k: int, rng: np.random.Generator) -> People:
    """Draw n people with k classes; 7 % are older than 80 and 15 % older than 75."""
    codes = rng.choice(k, n, p=shares(k)).astype(np.int32)
    values = rng.standard_normal((n, len(_MEASURED))) + centres(k)[codes]
    frame = pd.DataFrame(values.astype(np.float32), columns=list(_MEASURED))
    frame["age"] = _ages(n, rng)
    frame["education"] = np.clip(np.rint(rng.normal(12 + codes / 2, 3)), 5, 20).astype(np.int64)
    frame["zip"] = [f"{place:03d}" for place in rng.integers(0, 200, n)]
    frame["hours"] = np.clip(np.rint(rng.normal(38, 9, n)), 5, 80).astype(np.int64)
    return People(frame, codes, classes(k))


def repeated(n: int, times: int, rng: np.random.Generator, k: int = 2) -> People:
    """Draw people of k classes with ``times`` equal rows each, one after the other."""
    persons = people(-(-n // times), k, rng)
    return persons.take(np.repeat(np.arange(len(persons)), times)[:n])


def numbers(persons: People, top: int) -> IndexArray:
    """Return a whole number from 0 to ``top`` for each person, int64, which features foretell."""
    signal = persons.frame["x0"].to_numpy() - persons.frame["x1"].to_numpy()
    return np.asarray(np.clip(np.rint(top * (0.3 + 0.2 * signal)), 0, top), dtype=np.int64)


@cache
def centres(k: int) -> FloatArray:
    """Return the mean of the measurements of each class, float64 of shape (k, 4)."""
    if k == 2:
        return 1.05 * np.eye(4)[:2]
    axes = np.linalg.svd(np.eye(k) - 1 / k)[0][:, : k - 1]
    points = 1.6 * (np.eye(k) - 1 / k) @ axes
    padded = np.pad(points, ((0, 0), (0, max(0, 4 - points.shape[1]))))
    return np.asarray(1.05 * padded[:, :4])


def _ages(n: int, rng: np.random.Generator) -> IndexArray:
    young, old, oldest = (rng.integers(a, b + 1, n) for a, b in ((18, 75), (76, 80), (81, 95)))
    which = rng.random(n)
    return np.asarray(np.where(which < 0.85, young, np.where(which < 0.93, old, oldest)))
