"""Binary and optimized local hashing (BLH and OLH): a public hash, then randomized response.

A report is (seed, value): the value is the hash of the label under the seed, g values in all, kept
with probability p = e^ε/(e^ε + g − 1), else one of the others. The seed is drawn without looking at
the label and is public.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, Self

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
    check_reports,
    check_width,
    two_rows,
)
from ldpaudit.mechanisms.response.randomized_response import lambda_of_epsilon
from ldpaudit.release import BoolArray, FloatArray, IntArray, Label

HASH: Final = "xxhash32"
"""XXH32 of the label's position, written in decimal, modulo g; the seed modulo 2³²."""


@dataclass(frozen=True)
class _LocalHashing(FrequencyOracle):
    @property
    def buckets(self) -> int:
        """g, the number of hash values."""
        raise NotImplementedError

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

    report_kind = "numbers"

    @property
    def width(self) -> int:
        """Seed and value."""
        return 2

    @cached_property
    def pair_channel(self) -> Channel:
        """The law of the value given a public seed that tells the two labels apart.

        ε, δ(ε) and the Rényi curve are therefore those of the release whoever chose the seeds, the
        collector included; averaged over random seeds δ and the curve are smaller.
        """
        p, g = self.p, self.buckets
        q = math.exp(-self.stated_epsilon) * p
        return two_rows([[p, q, (g - 2) * q], [q, p, (g - 2) * q]])

    @property
    def keep_probability(self) -> None:
        """None: it depends on how the hash maps all labels at once."""
        return None

    def check(self, reports: Reports) -> Reports:
        """Return seeds modulo 2³² and values, int64 of shape (n, 2)."""
        table = check_width(reports, 2)
        if table.dtype.kind not in "iu":
            raise InputError(f"Seeds and hash values must be whole numbers; got {table.dtype}.")
        fine = (table[:, 1] >= 0) & (table[:, 1] < self.buckets)
        check_reports(table, 2, fine)
        seeds = table[:, 0].astype(np.uint64) & np.uint64(0xFFFFFFFF)
        return np.column_stack([seeds.astype(np.int64), table[:, 1].astype(np.int64)])

    def sample(self, labels: IntArray, rng: Randomness = None) -> Reports:
        """Draw seeds of 32 bits and values, int64 of shape (n, 2)."""
        codes, source = check_codes(labels, self.k), bit_source(rng)
        seeds = (source.words(len(codes)) >> np.uint64(32)).astype(np.int64)
        hashes = self._hashes(seeds, codes).astype(np.int32)
        noise = lambda_of_epsilon(self.stated_epsilon, self.buckets)
        values = randomized_response(hashes, noise, self.buckets, source)
        return np.column_stack([seeds, values.astype(np.int64)])

    def log_ratio(self, reports: Reports, first: IntArray, second: IntArray) -> FloatArray:
        """Return ε where the first label alone has the reported hash, −ε for the second, else 0."""
        gaps = [
            (self._hashes(reports[:, 0], codes) == reports[:, 1]).astype(np.float64)
            for codes in (first, second)
        ]
        return np.asarray(self.stated_epsilon * (gaps[0] - gaps[1]))

    def most_likely(self, reports: Reports) -> BoolArray:
        """Return the labels with the reported hash, all where none has it."""
        seeds = reports[:, 0].astype(np.uint32)
        found = np.column_stack(
            [self._hash(code, seeds) == reports[:, 1] for code in range(self.k)]
        )
        return np.asarray(found | ~found.any(axis=1, keepdims=True))

    def declaration(self) -> Mapping[str, Any]:
        """Return the parameters that rebuild it."""
        return {**super().declaration(), "hash": HASH}

    def _hash(self, code: int, seeds: npt.NDArray[np.uint32]) -> npt.NDArray[np.int64]:
        return np.asarray(xxh32(str(code), seeds) % np.uint32(self.buckets), dtype=np.int64)

    def _hashes(self, seeds: npt.NDArray[np.int64], codes: IntArray) -> npt.NDArray[np.int64]:
        """Return the hash of each row's label under its seed."""
        found = np.empty(len(codes), dtype=np.int64)
        for code in np.unique(codes):
            rows = np.flatnonzero(codes == code)
            found[rows] = self._hash(int(code), seeds[rows].astype(np.uint32))
        return found


def _only_this_hash(parameters: Mapping[str, Any]) -> None:
    if parameters.get("hash", HASH) != HASH:
        raise InputError(f"The 'hash' of local hashing must be {HASH!r}.")


@dataclass(frozen=True)
class BinaryLocalHashing(_LocalHashing):
    """Local hashing into g = 2 values.

    References
    ----------
    Bassily & Smith (2015); Wang et al. (2017), section 4.4.
    """

    protocol = "BLH"
    parameters = frozenset({"hash"})

    @property
    def buckets(self) -> int:
        """2."""
        return 2

    @classmethod
    def built(
        cls, classes: tuple[Label, ...], epsilon: float, parameters: Mapping[str, Any]
    ) -> Self:
        """Build it; only the one hash family may be declared."""
        _only_this_hash(parameters)
        return cls(classes, epsilon)


@dataclass(frozen=True)
class OptimizedLocalHashing(_LocalHashing):
    """Local hashing into g values, e^ε + 1 rounded by default.

    References
    ----------
    Wang et al. (2017), section 4.4.
    """

    values: int

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.values, bool) or not isinstance(self.values, int) or self.values < 2:
            raise InputError("The 'buckets' of local hashing must be a whole number from 2.")

    protocol = "OLH"
    parameters = frozenset({"hash", "buckets"})

    @property
    def buckets(self) -> int:
        """The g that it was built with."""
        return self.values

    def declaration(self) -> Mapping[str, Any]:
        """Return the parameters that rebuild it."""
        return {**super().declaration(), "buckets": self.values}

    @classmethod
    def built(
        cls, classes: tuple[Label, ...], epsilon: float, parameters: Mapping[str, Any]
    ) -> Self:
        """Build it, without declared ``buckets`` with e^ε + 1 rounded."""
        _only_this_hash(parameters)
        best, stated = round(math.exp(min(epsilon, 20.0))) + 1, parameters.get("buckets")
        return cls(classes, epsilon, best if stated is None else stated)
