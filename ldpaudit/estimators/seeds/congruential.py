"""Generators of C and Java: linear congruences, and glibc's additive one."""

from collections import deque
from collections.abc import Iterator
from itertools import count
from typing import Final

import numpy as np

from ldpaudit.arrays import FloatArray, SeedArray, WordArray

_JAVA: Final = np.uint64(0x5DEECE66D)
_JAVA_MASK: Final = np.uint64((1 << 48) - 1)
_GLIBC_WARM_UP: Final = 310


def java(seeds: SeedArray, draws: int) -> FloatArray:
    """Return the first numbers of ``new Random(seed).nextDouble()``, float64 (draws, s).

    References
    ----------
    The class java.util.Random of the Java platform specifies every bit.
    """
    words, result = _java_states(seeds), np.empty((draws, len(seeds)))
    for row in result:
        high, low = next(words) >> np.uint64(22), next(words) >> np.uint64(21)
        np.multiply((high << np.uint64(27)) + low, 2.0**-53, out=row)
    return result


def java_single(seeds: SeedArray, draws: int) -> FloatArray:
    """Return the first numbers of ``new Random(seed).nextFloat()``, float64 (draws, s)."""
    words, result = _java_states(seeds), np.empty((draws, len(seeds)))
    for row in result:
        np.multiply(next(words) >> np.uint64(24), 2.0**-24, out=row)
    return result


def glibc(seeds: SeedArray, draws: int) -> FloatArray:
    """Return the first ``rand() / RAND_MAX`` after ``srand(seed)``, glibc, float64 (draws, s)."""
    return _stacked(_glibc_numbers(seeds), seeds, draws, 2.0**31 - 1)


def glibc_percent(seeds: SeedArray, draws: int) -> FloatArray:
    """Return the first ``rand() % 100 / 100`` after ``srand(seed)``, glibc, float64 (draws, s)."""
    remainders = (number % np.uint32(100) for number in _glibc_numbers(seeds))
    return _stacked(remainders, seeds, draws, 100)


def ansi(seeds: SeedArray, draws: int) -> FloatArray:
    """Return the first ``rand() / RAND_MAX`` of the C standard's example, float64 (draws, s)."""
    return _stacked(_congruential(seeds, 1103515245, 12345), seeds, draws, 2.0**15 - 1)


def microsoft(seeds: SeedArray, draws: int) -> FloatArray:
    """Return the first ``rand() / RAND_MAX`` of Microsoft's C library, float64 (draws, s)."""
    return _stacked(_congruential(seeds, 214013, 2531011), seeds, draws, 2.0**15 - 1)


def _java_states(seeds: SeedArray) -> Iterator[WordArray]:
    state = seeds.astype(np.uint64) ^ _JAVA
    while True:
        state = (state * _JAVA + np.uint64(0xB)) & _JAVA_MASK
        yield state


def _glibc_numbers(seeds: SeedArray) -> Iterator[SeedArray]:
    """Yield ``random()`` of TYPE_3: xᵢ = xᵢ₋₃ + xᵢ₋₃₁ modulo 2³², without the lowest bit."""
    word = np.where(seeds == 0, 1, seeds).astype(np.uint32).view(np.int32).astype(np.int64)
    ring = [word.astype(np.uint32)]
    for _ in range(30):
        word = np.fmod(16807 * word, 2147483647)
        word += 2147483647 * (word < 0)
        ring.append(word.astype(np.uint32))
    # Three numbers are taken from the start again before sums begin.
    ring += ring[:3]
    recent = deque(ring, maxlen=31)
    for place in count():
        recent.append(recent[0] + recent[-3])
        if place >= _GLIBC_WARM_UP:
            yield recent[-1] >> np.uint32(1)


def _congruential(seeds: SeedArray, factor: int, add: int) -> Iterator[SeedArray]:
    state = seeds.astype(np.uint32)
    while True:
        state = state * np.uint32(factor) + np.uint32(add)
        yield (state >> np.uint32(16)) & np.uint32(0x7FFF)


def _stacked(
    numbers: Iterator[SeedArray], seeds: SeedArray, draws: int, largest: float
) -> FloatArray:
    result = np.empty((draws, len(seeds)))
    for row in result:
        np.divide(next(numbers), largest, out=row)
    return result
