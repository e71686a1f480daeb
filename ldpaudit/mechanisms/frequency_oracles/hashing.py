"""XXH32 of short texts for many seeds at once: the public hash of local hashing.

The 32-bit member of the xxHash family, as its specification defines it for inputs of fewer than 16
bytes, on whole arrays of seeds.
"""

from typing import Final

import numpy as np
import numpy.typing as npt

from ldpaudit.errors import InputError

Words = npt.NDArray[np.uint32]

_PRIMES: Final = tuple(
    np.uint32(prime) for prime in (2654435761, 2246822519, 3266489917, 668265263, 374761393)
)
LONGEST: Final = 15


def xxh32(text: str, seeds: Words) -> Words:
    """Return XXH32 of a text in UTF-8 under each seed.

    Parameters
    ----------
    text : str
        At most 15 bytes.
    seeds : uint32 array of shape (n,)

    Returns
    -------
    uint32 array of shape (n,)

    References
    ----------
    Collet, xxHash fast digest algorithm, specification of XXH32.
    """
    data = text.encode()
    if len(data) > LONGEST:
        raise InputError(f"A hashed label must have at most {LONGEST} bytes; got {len(data)}.")
    one, two, three, four, five = _PRIMES
    whole = len(data) // 4 * 4
    with np.errstate(over="ignore"):
        state = seeds + five + np.uint32(len(data))
        for start in range(0, whole, 4):
            lane = np.uint32(int.from_bytes(data[start : start + 4], "little"))
            state = _rotated(state + lane * three, 17) * four
        for byte in data[whole:]:
            state = _rotated(state + np.uint32(byte) * five, 11) * one
        state = (state ^ (state >> np.uint32(15))) * two
        state = (state ^ (state >> np.uint32(13))) * three
    return np.asarray(state ^ (state >> np.uint32(16)))


def _rotated(words: Words, bits: int) -> Words:
    return (words << np.uint32(bits)) | (words >> np.uint32(32 - bits))
