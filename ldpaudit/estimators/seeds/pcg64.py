"""NumPy's ``default_rng``: PCG64 with its state from a SeedSequence, for many seeds at once."""

from typing import Final

import numpy as np

from ldpaudit.arrays import FloatArray, SeedArray, WordArray

_MASK: Final = np.uint64(0xFFFFFFFF)
_HALF: Final = np.uint64(32)
_MULTIPLIER: Final = (np.uint64(0x2360ED051FC65DA4), np.uint64(0x4385DF649FCCF645))
_INIT_A, _MULT_A = 0x43B0D7E5, 0x931E8875
_INIT_B, _MULT_B = 0x8B51F9DD, 0x58F38DED
_MIX_L, _MIX_R = np.uint32(0xCA01F9DD), np.uint32(0x4973F715)
_POOL: Final = 4


def uniforms(seeds: SeedArray, draws: int) -> FloatArray:
    """Return the first numbers of ``default_rng(seed).random``.

    Parameters
    ----------
    seeds : uint32 array of shape (s,)
    draws : int

    Returns
    -------
    float64 array of shape (draws, s)

    References
    ----------
    O'Neill (2014), PCG XSL RR 128/64; numpy.random.SeedSequence.
    """
    high, low, add_high, add_low = _seeded(seeds)
    result = np.empty((draws, len(seeds)))
    for row in result:
        high, low = _step(high, low, add_high, add_low)
        mixed, turn = high ^ low, high >> np.uint64(58)
        word = (mixed >> turn) | (mixed << ((np.uint64(64) - turn) & np.uint64(63)))
        np.multiply(word >> np.uint64(11), 2.0**-53, out=row)
    return result


def _seeded(seeds: SeedArray) -> tuple[WordArray, WordArray, WordArray, WordArray]:
    """Return state and increment, each as its high and its low half."""
    words = [word.astype(np.uint64) for word in _sequence(seeds, 8)]
    state_high, state_low, add_high, add_low = (
        words[i] | (words[i + 1] << _HALF) for i in (0, 2, 4, 6)
    )
    add_high = (add_high << np.uint64(1)) | (add_low >> np.uint64(63))
    add_low = (add_low << np.uint64(1)) | np.uint64(1)
    high, low = _added(add_high, add_low, state_high, state_low)
    return (*_step(high, low, add_high, add_low), add_high, add_low)


def _step(
    high: WordArray, low: WordArray, add_high: WordArray, add_low: WordArray
) -> tuple[WordArray, WordArray]:
    """Return state · multiplier + increment modulo 2¹²⁸."""
    times_high, times_low = _MULTIPLIER
    top = high * times_low + low * times_high + _upper_half(low, times_low)
    return _added(top, low * times_low, add_high, add_low)


def _added(
    high: WordArray, low: WordArray, add_high: WordArray, add_low: WordArray
) -> tuple[WordArray, WordArray]:
    total = low + add_low
    return high + add_high + (total < low), total


def _upper_half(word: WordArray, factor: np.uint64) -> WordArray:
    """Return the upper 64 bits of a product of two 64-bit words."""
    a, b = word >> _HALF, word & _MASK
    c, d = factor >> _HALF, factor & _MASK
    middle = b * c + (b * d >> _HALF)
    carried = a * d + (middle & _MASK)
    result: WordArray = a * c + (middle >> _HALF) + (carried >> _HALF)
    return result


def _sequence(seeds: SeedArray, count: int) -> list[SeedArray]:
    """Return the first words of ``SeedSequence(seed).generate_state``."""
    pool, constant = [], _INIT_A
    for place in range(_POOL):
        word, constant = _hashed(seeds if place == 0 else np.zeros_like(seeds), constant, _MULT_A)
        pool.append(word)
    for source in range(_POOL):
        for target in range(_POOL):
            if source != target:
                word, constant = _hashed(pool[source], constant, _MULT_A)
                mixed = _MIX_L * pool[target] - _MIX_R * word
                pool[target] = mixed ^ (mixed >> np.uint32(16))
    words, constant = [], _INIT_B
    for place in range(count):
        word, constant = _hashed(pool[place % _POOL], constant, _MULT_B)
        words.append(word)
    return words


def _hashed(word: SeedArray, constant: int, factor: int) -> tuple[SeedArray, int]:
    following = constant * factor % 2**32
    mixed = (word ^ np.uint32(constant)) * np.uint32(following)
    return mixed ^ (mixed >> np.uint32(16)), following
