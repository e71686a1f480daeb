"""Trying seeds: outcomes of rows held against the numbers that generators give.

For a wrong seed the numbers are fixed before the outcomes are drawn, and say nothing about them.
Many seeds are screened on the first rows; the best are tested on more, by a bound for sums of
independent outcomes that holds for any fixed numbers, corrected for every seed tried.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import Final

import numpy as np

from ldpaudit.arrays import FloatArray, IndexArray, SeedArray
from ldpaudit.estimators.seeds.generators import GENERATORS, IN_A_ROW
from ldpaudit.estimators.seeds.screening import FIRST_SEEDS, Candidate, candidates
from ldpaudit.estimators.seeds.target import Target, centred

_SCREENED: Final = (312, 25.0)
"""Rows: at most, and else until the variances of their outcomes sum to this, where a
seed that decides the outcomes is 8 standard deviations off."""
_TESTED: Final = (1 << 16, 200.0)
_TINY: Final = 1e-12


@dataclass(frozen=True)
class SeedEvidence:
    """The seed that explains outcomes best.

    Attributes
    ----------
    log_p_value : float
        Of "the outcomes come from none of these seeds", corrected for all of them.
    generator : str
    seed : int
        Of the first row, where each row has its own.
    each_row : bool
        Whether each row has a generator of its own, with seeds that count up.
    tried : int
        How many seeds of every generator were tried.
    rows : int
        On how many rows the best ones were tested.
    """

    log_p_value: float
    generator: str
    seed: int
    each_row: bool
    tried: int
    rows: int

    @property
    def p_value(self) -> float:
        """The p-value."""
        return math.exp(self.log_p_value)


def try_seeds(
    targets: list[Target],
    counted: int,
    others: SeedArray,
    least: tuple[int, int] = (128, 512),
    progress: Callable[[int], None] = lambda _: None,
) -> SeedEvidence:
    """Try seeds of all generators.

    Parameters
    ----------
    targets : list of Target
        At least one, on the same n rows.
    counted : int
        The seeds 0 … ``counted`` − 1 are tried, up to 2³², …
    others : uint32 array
        … and these. Where each row has a generator of its own, its seed is that of the row before
        plus 1, and the first row's is a counted one.
    least : (int, int)
        Seeds are screened on at least so many rows, and the best ones tested on so many, if there
        are as many.
    progress : callable
        Called with the number of seeds done.

    Returns
    -------
    SeedEvidence
        Its p-value is valid: for outcomes that are independent, and alike within strata, it is at
        most α with probability at most α.
    """
    targets = [target.first(_TESTED[0]) for target in targets]
    n, variance = len(targets[0].values), max(target.variance for target in targets)
    screened = min(n, _enough(variance, least[0], *_SCREENED))
    rows = min(n, _enough(variance, least[1], *_TESTED))
    found = candidates([t.first(screened) for t in targets], counted, others, progress)
    tested = [target.first(rows) for target in targets]
    log_p_value, best = min(_tested(tested, found), key=lambda pair: pair[0])
    tried = counted + len(others)
    sequences = len(GENERATORS) * tried + len(IN_A_ROW) * min(counted, FIRST_SEEDS)
    tests = sequences * sum(len(target.parts) for target in tested)
    corrected = min(log_p_value + math.log(tests), 0.0)
    return SeedEvidence(corrected, best.generator, best.seed, best.each_row, tried, rows)


def _enough(variance: float, least: int, most: int, information: float) -> int:
    """Return after how many rows outcomes of a variance hold enough information."""
    return int(np.clip(math.ceil(information / max(variance, 1e-9)), least, most))


def _tested(targets: list[Target], found: list[Candidate]) -> Iterator[tuple[float, Candidate]]:
    """Yield each candidate with the logarithm of its smallest p-value, not corrected."""
    rows = len(targets[0].values)

    def kind(candidate: Candidate) -> tuple[str, bool]:
        return candidate.generator, candidate.each_row

    for (name, each_row), group in groupby(sorted(found, key=kind), key=kind):
        alike = list(group)
        seeds = np.array([candidate.seed for candidate in alike], dtype=np.uint32)
        numbers = _numbers(name, each_row, seeds, rows)
        logs: FloatArray = np.min([log_p_values(t, numbers) for t in targets], axis=0)
        yield from zip(logs.tolist(), alike, strict=True)


def _numbers(name: str, each_row: bool, seeds: SeedArray, rows: int) -> FloatArray:
    """Return what each seed gives for each row, float64 of shape (s, rows)."""
    if not each_row:
        return GENERATORS[name](seeds, rows).T
    counting = seeds[:, None] + np.arange(rows)
    return GENERATORS[name](counting.ravel().astype(np.uint32), 1).reshape(len(seeds), rows)


def log_p_values(target: Target, numbers: FloatArray) -> FloatArray:
    """Return the logarithms of valid p-values of "these numbers say nothing about the outcomes".

    Parameters
    ----------
    target : Target
        n outcomes; of its folds the smallest p-value counts.
    numbers : float64 array of shape (s, n)
        Fixed numbers in [0, 1].

    References
    ----------
    Hoeffding (1963), Theorem 2 (independent outcomes), and Section 6 (draws without replacement).
    """
    folds = [_of_fold(target, numbers, rows) for rows in target.parts]
    smallest: FloatArray = np.min(folds, axis=0)
    return smallest


def _of_fold(target: Target, numbers: FloatArray, rows: IndexArray) -> FloatArray:
    values, strata = target.values[rows], target.strata[rows]
    deviations = centred(numbers[:, rows], strata)
    squares = 2 * (deviations @ values) ** 2
    exponents: FloatArray = squares / np.maximum(np.sum(deviations**2, axis=1), _TINY)
    if not np.isin(values, (0.0, 1.0)).all():
        return math.log(2) - exponents
    ones, sizes = np.bincount(strata, values), np.bincount(strata)
    drawn = float(np.minimum(ones, sizes - ones).sum())
    return math.log(4) - np.maximum(exponents, squares / max(drawn, _TINY))
