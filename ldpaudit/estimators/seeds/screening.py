"""The quick look at many seeds: which of them seem to know the outcomes of the first rows."""

import heapq
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
from scipy.signal import oaconvolve

from ldpaudit.arrays import FloatArray, SeedArray
from ldpaudit.estimators.seeds.generators import GENERATORS, IN_A_ROW
from ldpaudit.estimators.seeds.target import Target

_KEPT: Final = {False: 32, True: 8}
"""How many candidates of each generator are kept: one for the table, or one for each row."""
FIRST_SEEDS: Final = 1 << 20
"""Rows with a generator of their own are tried for a first row's seed below this."""
_CHUNK: Final = 8192
_CACHED: Final = 256
"""So many seeds' numbers stay in a processor's cache."""
_RARE: Final = 0.1
"""Below this variance outcomes are decided by the ends of the unit interval, not by its halves."""
_UNIFORM_VARIANCE: Final = 1 / 12


@dataclass(frozen=True, order=True)
class Candidate:
    """A seed with the size of its statistic, in standard deviations of a wrong seed's."""

    score: float
    generator: str
    seed: int
    each_row: bool


def candidates(
    targets: list[Target], counted: int, others: SeedArray, progress: Callable[[int], None]
) -> list[Candidate]:
    """Return the best candidates of every generator.

    Parameters
    ----------
    targets : list of Target
        Of the rows that are looked at, m of them.
    counted : int
        The seeds 0 … ``counted`` − 1 are tried …
    others : uint32 array
        … and these.
    progress : callable
        Called with the number of seeds done.
    """
    weights = np.stack([_weights(target) for target in targets])
    rare = max(target.variance for target in targets) < _RARE
    best: dict[tuple[str, bool], list[Candidate]] = {}
    first_draws: dict[str, list[FloatArray]] = {name: [] for name in IN_A_ROW}
    for done, seeds in _chunks(counted, others):
        for name, generator in GENERATORS.items():
            numbers = generator(seeds, weights.shape[1])
            _keep(best, name, False, _scores(weights, numbers, rare), seeds)
            if name in IN_A_ROW and done < min(counted, FIRST_SEEDS + weights.shape[1]):
                first_draws[name].append(numbers[0])
        progress(done + len(seeds))
    for name, draws in first_draws.items():
        if draws:
            _in_a_row(best, name, weights, np.concatenate(draws)[:counted])
    return [candidate for kept in best.values() for candidate in kept]


def _chunks(counted: int, others: SeedArray) -> Iterator[tuple[int, SeedArray]]:
    """Give the seeds in chunks, with the number of those before."""
    for start in range(0, counted, _CHUNK):
        stop = min(start + _CHUNK, counted)
        yield start, np.arange(start, stop, dtype=np.uint64).astype(np.uint32)
    for start in range(0, len(others), _CHUNK):
        yield counted + start, others[start : start + _CHUNK]


def _weights(target: Target) -> FloatArray:
    """Return weights of rows whose sum over uniform numbers has variance 1 for a wrong seed."""
    values = target.centred
    norm = math.sqrt(float(np.sum(values**2)) * _UNIFORM_VARIANCE)
    return values / norm if norm > 0 else values


def _scores(weights: FloatArray, numbers: FloatArray, rare: bool) -> FloatArray:
    """Return the size of the largest statistic of each seed, float64 of shape (s,)."""
    scores: FloatArray = np.abs(weights @ numbers).max(axis=0)
    if rare:
        for start in range(0, len(scores), _CACHED):
            block = slice(start, start + _CACHED)
            np.maximum(scores[block], _of_ends(weights, numbers[:, block]), out=scores[block])
    return scores


def _of_ends(weights: FloatArray, numbers: FloatArray) -> FloatArray:
    """Return the size of the largest statistic of the ends of the unit interval, shape (s,)."""
    # u⁸ has mean 1/9 and variance 1/17 − 1/81: what matters is near 1, or near 0.
    scale = math.sqrt(_UNIFORM_VARIANCE / (1 / 17 - 1 / 81))
    sums = []
    for end in (numbers.copy(), 1 - numbers):
        for _ in range(3):
            np.square(end, out=end)
        sums.append(weights @ end)
    largest: FloatArray = scale * np.abs(np.concatenate(sums)).max(axis=0)
    return largest


def _in_a_row(
    best: dict[tuple[str, bool], list[Candidate]], name: str, weights: FloatArray, draws: FloatArray
) -> None:
    """Look at rows whose generators have seeds that count up from each of the first ones."""
    rows = weights.shape[1]
    if len(draws) < rows:
        return
    sums = [oaconvolve(draws, row[::-1], mode="valid") for row in weights]
    starts = np.arange(len(draws) - rows + 1, dtype=np.uint32)
    _keep(best, name, True, np.abs(np.stack(sums)).max(axis=0), starts)


def _keep(
    best: dict[tuple[str, bool], list[Candidate]],
    name: str,
    each_row: bool,
    scores: FloatArray,
    seeds: SeedArray,
) -> None:
    kept = _KEPT[each_row]
    top = np.argsort(scores)[-kept:]
    new = [Candidate(float(scores[i]), name, int(seeds[i]), each_row) for i in top]
    best[name, each_row] = heapq.nlargest(kept, best.get((name, each_row), []) + new)
