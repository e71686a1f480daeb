"""Random words drawn from a key, which the holder of the key can draw again."""

# Every word is a part of SHAKE-256 (FIPS 202) of the scheme, the key and an address, so a replay
# needs no order of calls. docs/receipt.md writes the scheme down to the bit.

import hashlib
import os
from dataclasses import dataclass, field
from typing import Final, Literal, Self

import numpy as np

from ldpaudit.mechanisms.exact_sampling import Randomness, WordArray

SCHEME: Final = "ldpaudit-1"
KEY_BYTES: Final = 32
DIGEST_BYTES: Final = 32
# Rows whose noise is drawn together.
BLOCK_ROWS: Final = 1 << 16

# What words are drawn for. Labels, the rounding of numbers and features are drawn by blocks of
# rows; the others once.
Purpose = Literal[
    "release",
    "joint release",
    "rounding",
    "prior",
    "features",
    "generator",
    "synthetic",
    "synthetic sample",
]
# What is hashed with the key besides.
Digest = Literal["commitment", "labels", "drawn"]


def framed(text: str | bytes) -> bytes:
    """Return bytes, or a text in UTF-8, after their length as four bytes, little-endian."""
    content = text.encode() if isinstance(text, str) else text
    return len(content).to_bytes(4, "little") + content


@dataclass(frozen=True)
class NoiseKey:
    """A key of 256 bits. It shows itself nowhere: who has it and the release has the labels."""

    secret: bytes = field(repr=False)

    @classmethod
    def drawn(cls) -> Self:
        """Return a new key of the operating system."""
        return cls(os.urandom(KEY_BYTES))

    def stream(self, purpose: Purpose, column: str) -> "KeyedStream":
        """Return the words for one purpose and column."""
        return KeyedStream(self.prefix(purpose) + framed(column))

    def digest(self, purpose: Digest, *parts: bytes) -> bytes:
        """Return 32 bytes that say nothing of the parts to anybody without the key."""
        whole = self.prefix(purpose) + b"".join(parts)
        return hashlib.shake_256(whole).digest(DIGEST_BYTES)

    def prefix(self, purpose: Purpose | Digest) -> bytes:
        """Return what every hash for a purpose begins with."""
        return SCHEME.encode() + self.secret + framed(purpose)


@dataclass(frozen=True)
class KeyedStream:
    """The words for one purpose and column, block by block."""

    prefix: bytes = field(repr=False)

    def at(self, block: int = 0) -> "KeyedBits":
        """Return the words of a block of rows, from the first on."""
        return KeyedBits(self.prefix + block.to_bytes(8, "little"))

    def seeded(self, block: int = 0) -> np.random.Generator:
        """Return a generator of NumPy, seeded with 256 bits of a block."""
        return np.random.default_rng(self.at(block).words(4).tolist())


class KeyedBits:
    """The words of a block: each request for words, in its order, has an address of its own."""

    def __init__(self, prefix: bytes) -> None:
        self._prefix, self._requests = prefix, 0

    def words(self, n: int) -> WordArray:
        """Return the next ``n`` words, uint64 of shape (n,)."""
        address = self._prefix + self._requests.to_bytes(8, "little")
        self._requests += 1
        content = hashlib.shake_256(address).digest(8 * n)
        return np.frombuffer(content, dtype="<u8").astype(np.uint64, copy=False)


@dataclass(frozen=True)
class ExperimentalStream:
    """The draws of an experiment: one generator for all blocks."""

    generator: np.random.Generator

    def at(self, block: int = 0) -> Randomness:  # noqa: ARG002
        """Return the generator."""
        return self.generator

    def seeded(self, block: int = 0) -> np.random.Generator:  # noqa: ARG002
        """Return the generator."""
        return self.generator


Stream = KeyedStream | ExperimentalStream
