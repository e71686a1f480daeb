"""The types of arrays and of single labels that the whole package uses."""

from typing import Any, Final

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
Float32Array = npt.NDArray[np.float32]
IntArray = npt.NDArray[np.int32]
HalfArray = npt.NDArray[np.int8]
BoolArray = npt.NDArray[np.bool_]
IndexArray = npt.NDArray[np.int64]
WordArray = npt.NDArray[np.uint64]

# One label value as the file holds it.
Label = str | int | float | bool


def unwriteable(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return the same array, not copied, which nobody can write to or make writeable again."""
    if array.dtype.kind in "mM":  # No buffer holds dates.
        return unwriteable(array.view(np.int64)).view(array.dtype)
    # A view of an array can be made writeable by whoever has it; one of a read-only buffer cannot.
    return np.asarray(memoryview(array).toreadonly())  # type: ignore[arg-type]


# 2⁶⁴ divided by the golden ratio, odd: what hashes of words are stepped by.
GOLDEN = np.uint64(0x9E3779B97F4A7C15)


def scrambled(words: WordArray) -> WordArray:
    """Mix 64-bit words in place, so that every bit depends on all others; return them.

    References
    ----------
    Steele, Lea, Flood (2014), the finaliser of SplitMix64.
    """
    words ^= words >> np.uint64(30)
    words *= np.uint64(0xBF58476D1CE4E5B9)
    words ^= words >> np.uint64(27)
    words *= np.uint64(0x94D049BB133111EB)
    words ^= words >> np.uint64(31)
    return words


# Codes that are counted at once: NumPy counts a copy of 64 bits.
_COUNTED: Final = 1 << 20


def code_counts(codes: npt.NDArray[Any], k: int) -> IndexArray:
    """Return how often each code 0, …, k − 1 occurs among integers (n,), int64 of shape (k,)."""
    counts: IndexArray = np.zeros(k, dtype=np.int64)
    for start in range(0, len(codes), _COUNTED):
        counts += np.bincount(codes[start : start + _COUNTED], minlength=k)
    return counts


def stable_order(codes: npt.NDArray[Any]) -> IndexArray:
    """Return the rows in the order of numbers (n,), those of one number as they stand.

    As ``argsort(kind="stable")``, and of whole numbers and those of 32 bits several times as fast:
    words of 16 bits are sorted by counting them.
    """
    if not len(codes):
        return np.empty(0, dtype=np.int64)
    if codes.dtype == np.float32:
        # The bits of a number that is not negative are in its order, others in the opposite one;
        # zero has one sign, and what is missing comes last.
        bits = (codes + np.float32(0)).view(np.uint32)
        codes = np.where(bits >> 31 == 1, ~bits, bits | np.uint32(1 << 31))
        codes[np.isnan(bits.view(np.float32))] = np.iinfo(np.uint32).max
    elif codes.dtype.kind not in "iu":
        return np.argsort(codes, kind="stable")
    least, most = int(codes.min()), int(codes.max())
    if most - least >= 1 << 32:
        return np.argsort(codes, kind="stable")
    words = (codes.astype(np.int64) - least).astype(np.uint32)
    order = np.argsort(words.astype(np.uint16), kind="stable")
    if most - least < 1 << 16:
        return order
    high = (words >> np.uint32(16)).astype(np.uint16)
    return np.asarray(order[np.argsort(high[order], kind="stable")])
