"""The tables that every release of the zoo is made from."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from ldpaudit.release import IntArray

CLASSES = {2: ("no", "yes"), 5: ("a", "b", "c", "d", "e")}
_SHARES = {2: (0.62, 0.38), 5: (0.3, 0.25, 0.2, 0.15, 0.1)}


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
    def age(self) -> np.ndarray:
        return self.frame["age"].to_numpy()

    def take(self, rows: np.ndarray) -> "People":
        frame = self.frame.iloc[rows].reset_index(drop=True)
        return People(frame, self.codes[rows], self.classes)


def people(n: int, k: int, rng: np.random.Generator) -> People:
    """Draw n people with k classes; 7 % are older than 80 and 15 % older than 75."""
    codes = rng.choice(k, n, p=_SHARES[k]).astype(np.int32)
    directions = np.eye(4)[:, :k].T if k == 2 else _simplex(k)
    values = rng.standard_normal((n, 4)) + 1.05 * directions[codes]
    frame = pd.DataFrame(values.astype(np.float32), columns=["x0", "x1", "x2", "x3"])
    frame["age"] = _ages(n, rng)
    frame["education"] = np.clip(np.rint(rng.normal(12 + codes / 2, 3)), 5, 20).astype(np.int64)
    frame["zip"] = [f"{place:03d}" for place in rng.integers(0, 200, n)]
    frame["hours"] = np.clip(np.rint(rng.normal(38, 9, n)), 5, 80).astype(np.int64)
    return People(frame, codes, CLASSES[k])


def repeated(n: int, times: int, rng: np.random.Generator) -> People:
    """Draw people of two classes with ``times`` equal rows each, one after the other."""
    persons = people(-(-n // times), 2, rng)
    return persons.take(np.repeat(np.arange(len(persons)), times)[:n])


def _ages(n: int, rng: np.random.Generator) -> np.ndarray:
    young, old, oldest = (rng.integers(a, b + 1, n) for a, b in ((18, 75), (76, 80), (81, 95)))
    which = rng.random(n)
    return np.where(which < 0.85, young, np.where(which < 0.93, old, oldest))


def _simplex(k: int) -> np.ndarray:
    """Return k points in k − 1 dimensions, equally far from each other."""
    centred = np.eye(k) - 1 / k
    axes = np.linalg.svd(centred)[0][:, : k - 1]
    return 1.6 * centred @ axes
