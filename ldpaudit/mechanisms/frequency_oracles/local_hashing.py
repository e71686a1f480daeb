"""Binary and optimized local hashing (BLH and OLH): a public hash, then randomized response.

A report is (seed, value): the value is the hash of the label under the seed, g values in all, kept
with probability p = e^ε/(e^ε + g − 1), else one of the others. The seed is public and drawn
independently of the label.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, Final

import numpy as np
import numpy.typing as npt

from ldpaudit.errors import InputError
from ldpaudit.mechanisms.channel import Channel
from ldpaudit.mechanisms.exact_sampling import Randomness, bit_source, randomized_response
from ldpaudit.mechanisms.finite import check_codes
from ldpaudit.mechanisms.frequency_oracles.hashing import xxh32
from ldpaudit.mechanisms.frequency_oracles.interface import (
    FrequencyOracle,
    Reports,
    response_rows,
)
from ldpaudit.mechanisms.parameters import Parameter
from ldpaudit.mechanisms.response.randomized_response import lambda_of_epsilon
from ldpaudit.release import BoolArray, FloatArray, IntArray

HASH: Final = "xxhash32"
"""XXH32 of the label's position, written in decimal, modulo g; the seed modulo 2³²."""


def _best_buckets(fields: Mapping[str, Any]) -> int:
    return round(math.exp(min(fields["stated_epsilon"], 20.0))) + 1


@dataclass(frozen=True)
class _LocalHashing(FrequencyOracle):
    declared: ClassVar[tuple[Parameter, ...]] = (
        *FrequencyOracle.declared,
        Parameter("hash", field="hash_name", default=HASH),
    )
    report_kind = "numbers"

    buckets: int
    """g, the number of hash values."""
    hash_name: str = field(default=HASH, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.hash_name != HASH:
            raise InputError(f"The 'hash' of local hashing must be {HASH!r}.")
        if isinstance(self.buckets, bool) or not isinstance(self.buckets, int) or self.buckets < 2:
            raise InputError("The 'buckets' of local hashing must be a whole number from 2.")

    @property
    def p(self) -> float:
        """P(the reported value is the label's hash)."""
        return 1 / (1 + (self.buckets - 1) * math.exp(-self.stated_epsilon))

    @property
    def description(self) -> str:
        """Its parameters."""
        return (
            f"{self.protocol} on {self.k} labels: {HASH} into {self.buckets} values, the true "
            f"label's with probability {self.p:.6g}; ε = {self.epsilon:.6g} nats"
        )

    @property
    def width(self) -> int:
        """Seed and value."""
        return 2

    @cached_property
    def pair_channel(self) -> Channel:
        """The law of the value given a public seed under which the two labels' hashes differ.

        So ε, δ(ε) and the Rényi curve hold whoever chose the seeds, even the collector; averaged
        over random seeds δ and the curve are smaller.
        """
        return response_rows(self.p, self.stated_epsilon, self.buckets)

    @property
    def keep_probability(self) -> None:
        """None: it depends on how the hash maps all labels at once."""
        return None

    def read(self, table: Reports) -> tuple[Reports, BoolArray]:
        """Return seeds modulo 2³² and values, int64 of shape (n, 2)."""
        if table.dtype.kind not in "iu":
            raise InputError(f"Seeds and hash values must be whole numbers; got {table.dtype}.")
        possible = (table[:, 1] >= 0) & (table[:, 1] < self.buckets)
        seeds = table[:, 0].astype(np.uint64) & np.uint64(0xFFFFFFFF)
        return np.column_stack([seeds.astype(np.int64), table[:, 1].astype(np.int64)]), possible

    def sample(self, labels: IntArray, rng: Randomness = None) -> Reports:
        """Draw seeds of 32 bits and values, int64 of shape (n, 2)."""
        codes, source = check_codes(labels, self.k), bit_source(rng)
        seeds = (source.words(len(codes)) >> np.uint64(32)).astype(np.int64)
        hashes = self._hashes(seeds, codes).astype(np.int32)
        noise = lambda_of_epsilon(self.stated_epsilon, self.buckets)
        values = randomized_response(hashes, noise, self.buckets, source)
        return np.column_stack([seeds, values.astype(np.int64)])

    def support(self, reports: Reports, codes: IntArray) -> FloatArray:
        """Return 1 where the label has the reported hash, else 0."""
        return np.asarray(self._hashes(reports[:, 0], codes) == reports[:, 1], dtype=np.float64)

    def most_likely(self, reports: Reports) -> BoolArray:
        """Return the labels with the reported hash, all where none has it."""
        seeds = reports[:, 0].astype(np.uint32)
        same = np.column_stack([self._hash(code, seeds) == reports[:, 1] for code in range(self.k)])
        return np.asarray(same | ~same.any(axis=1, keepdims=True))

    def _hash(self, code: int, seeds: npt.NDArray[np.uint32]) -> npt.NDArray[np.int64]:
        return np.asarray(xxh32(str(code), seeds) % np.uint32(self.buckets), dtype=np.int64)

    def _hashes(self, seeds: npt.NDArray[np.int64], codes: IntArray) -> npt.NDArray[np.int64]:
        """Return the hash of each row's label under its seed."""
        hashes = np.empty(len(codes), dtype=np.int64)
        for code in np.unique(codes):
            rows = np.flatnonzero(codes == code)
            hashes[rows] = self._hash(int(code), seeds[rows].astype(np.uint32))
        return hashes


@dataclass(frozen=True)
class BinaryLocalHashing(_LocalHashing):
    """Local hashing into g = 2 values.

    References
    ----------
    Bassily & Smith (2015); Wang et al. (2017), section 4.4.
    """

    protocol = "BLH"

    buckets: int = 2


@dataclass(frozen=True)
class OptimizedLocalHashing(_LocalHashing):
    """Local hashing into g values, e^ε + 1 rounded by default.

    References
    ----------
    Wang et al. (2017), section 4.4.
    """

    protocol = "OLH"
    declared = (*_LocalHashing.declared, Parameter("buckets", default=_best_buckets))
