"""The Mersenne Twister MT19937 as NumPy's RandomState, Python, R and torch seed and read it."""

from collections.abc import Iterator
from typing import Final

import numpy as np

from ldpaudit.arrays import FloatArray, SeedArray

_N, _M = 624, 397
_UPPER, _LOWER = np.uint32(0x80000000), np.uint32(0x7FFFFFFF)
_MATRIX = np.uint32(0x9908B0DF)
_KNUTH: Final = 1812433253
_PYTHON: Final = 19650218

Words = Iterator[SeedArray]
"""The generator's 32-bit words in order, each uint32 of shape (s,)."""


def numpy_legacy(seeds: SeedArray, draws: int) -> FloatArray:
    """Return the first numbers of ``RandomState(seed).random_sample``, float64 (draws, s)."""
    return _doubles(_words(_by_knuth(seeds)), seeds, draws)


def python(seeds: SeedArray, draws: int) -> FloatArray:
    """Return the first numbers of Python's ``Random(seed).random``, float64 (draws, s)."""
    return _doubles(_words(_by_array(seeds)), seeds, draws)


def r(seeds: SeedArray, draws: int) -> FloatArray:
    """Return the first numbers of R's ``set.seed(seed); runif``, float64 (draws, s)."""
    return _singles(_words(_by_r(seeds)), seeds, draws, 2.3283064365386963e-10)


def torch(seeds: SeedArray, draws: int) -> FloatArray:
    """Return the first numbers of ``torch.manual_seed(seed); torch.rand``, float64 (draws, s)."""
    low = (word & np.uint32(0xFFFFFF) for word in _words(_by_knuth(seeds)))
    return _singles(low, seeds, draws, 2.0**-24)


def _doubles(words: Words, seeds: SeedArray, draws: int) -> FloatArray:
    """Return numbers of 53 bits, each from two words."""
    result = np.empty((draws, len(seeds)))
    for row in result:
        high, low = next(words) >> np.uint32(5), next(words) >> np.uint32(6)
        np.multiply(high, 2.0**-27, out=row)
        np.add(row, low * 2.0**-53, out=row)
    return result


def _singles(words: Words, seeds: SeedArray, draws: int, unit: float) -> FloatArray:
    """Return numbers that are multiples of a unit, each from one word."""
    result = np.empty((draws, len(seeds)))
    for row in result:
        np.multiply(next(words), unit, out=row)
    return result


def _by_knuth(seeds: SeedArray) -> Words:
    """Yield the state that ``init_genrand`` sets, word by word."""
    word = seeds.astype(np.uint32)
    yield word
    for place in range(1, _N):
        word = np.uint32(_KNUTH) * (word ^ (word >> np.uint32(30))) + np.uint32(place)
        yield word


def _by_r(seeds: SeedArray) -> Words:
    """Yield the state that R sets: congruential, after 50 steps; the first word is a position."""
    word = seeds.astype(np.uint32)
    for _ in range(51):
        word = np.uint32(69069) * word + np.uint32(1)
    for _ in range(_N):
        word = np.uint32(69069) * word + np.uint32(1)
        yield word


def _by_array(seeds: SeedArray) -> Words:
    """Return the state that ``init_by_array`` sets for a key of one word."""
    state = list(_by_knuth(np.array([_PYTHON], dtype=np.uint32)))
    before, place = state[0], 1
    for _ in range(_N):
        mixed = (before ^ (before >> np.uint32(30))) * np.uint32(1664525)
        state[place] = before = (state[place] ^ mixed) + seeds
        place = _following(state, place)
        before = state[place - 1]
    for _ in range(_N - 1):
        mixed = (before ^ (before >> np.uint32(30))) * np.uint32(1566083941)
        state[place] = (state[place] ^ mixed) - np.uint32(place)
        place = _following(state, place)
        before = state[place - 1]
    state[0] = np.full_like(seeds, 0x80000000)
    return iter(state)


def _following(state: list[SeedArray], place: int) -> int:
    """Return the next place; at the end the last word becomes the first."""
    if place + 1 < _N:
        return place + 1
    state[0] = state[_N - 1]
    return 1


def _words(initial: Words) -> Words:
    """Yield tempered words; of the state only as much is made as they need."""
    state: list[SeedArray] = []
    while True:
        fresh: list[SeedArray] = []
        for place in range(_N):
            while len(state) <= min(place + _M, _N - 1):
                state.append(next(initial))
            # The last word is joined with the first new one, others with the next old one.
            after = state[place + 1] if place + 1 < _N else fresh[0]
            far = state[place + _M] if place + _M < _N else fresh[place + _M - _N]
            fresh.append(_twisted(state[place], after, far))
            yield _tempered(fresh[-1])
        state = fresh


def _twisted(word: SeedArray, after: SeedArray, far: SeedArray) -> SeedArray:
    mixed = (word & _UPPER) | (after & _LOWER)
    result: SeedArray = far ^ (mixed >> np.uint32(1)) ^ ((mixed & np.uint32(1)) * _MATRIX)
    return result


def _tempered(word: SeedArray) -> SeedArray:
    word = word ^ (word >> np.uint32(11))
    word = word ^ ((word << np.uint32(7)) & np.uint32(0x9D2C5680))
    word = word ^ ((word << np.uint32(15)) & np.uint32(0xEFC60000))
    result: SeedArray = word ^ (word >> np.uint32(18))
    return result
