"""Reports of one bit per label: 1 with probability p for the true label and q for the others."""

import math
from abc import abstractmethod
from functools import cached_property

import numpy as np
from scipy.stats import binom

from ldpaudit.mechanisms.channel import Channel
from ldpaudit.mechanisms.exact_sampling import Randomness, bit_source
from ldpaudit.mechanisms.finite import check_codes
from ldpaudit.mechanisms.frequency_oracles.interface import (
    FrequencyOracle,
    Reports,
    logit,
    two_rows,
)
from ldpaudit.release import BoolArray, FloatArray, IntArray

_ROWS = 1 << 14


class BitReports(FrequencyOracle):
    """A protocol whose report is k independent bits."""

    @property
    @abstractmethod
    def p(self) -> float:
        """P(bit of the true label is 1)."""

    @property
    @abstractmethod
    def q(self) -> float:
        """P(bit of another label is 1), below p."""

    report_kind = "numbers"

    @property
    def width(self) -> int:
        """One bit per label."""
        return self.k

    @cached_property
    def pair_channel(self) -> Channel:
        """The law of the two labels' bits: (1, 0), (0, 1), (1, 1), (0, 0)."""
        p, q = self.p, self.q
        same = [p * q, (1 - p) * (1 - q)]
        return two_rows([[p * (1 - q), (1 - p) * q, *same], [(1 - p) * q, p * (1 - q), *same]])

    @cached_property
    def keep_probability(self) -> float:
        """That of a uniform draw from the set bits, or from all labels where none is set."""
        others = np.arange(self.k)
        shares = binom.pmf(others, self.k - 1, self.q) / (1 + others)
        nobody = (1 - self.p) * math.exp((self.k - 1) * math.log1p(-self.q)) / self.k
        return float(self.p * shares.sum() + nobody)

    @property
    def unit(self) -> float:
        """Logit p − logit q."""
        return logit(self.p) - logit(self.q)

    def read(self, table: Reports) -> tuple[Reports, BoolArray]:
        """Return the bits as bool of shape (n, k)."""
        return table.astype(np.bool_), ((table == 0) | (table == 1)).all(axis=1)

    def sample(self, labels: IntArray, rng: Randomness = None) -> Reports:
        """Draw bits, bool of shape (n, k); each probability within 2⁻⁵³ of p or q."""
        codes, source = check_codes(labels, self.k), bit_source(rng)
        reports = np.empty((len(codes), self.k), dtype=np.bool_)
        true, other = (np.uint64(math.floor(math.ldexp(chance, 64))) for chance in (self.p, self.q))
        for start in range(0, len(codes), _ROWS):
            block = codes[start : start + _ROWS]
            words = source.words(block.size * self.k).reshape(len(block), self.k)
            bits = words < other
            rows = np.arange(len(block))
            bits[rows, block] = words[rows, block] < true
            reports[start : start + _ROWS] = bits
        return reports

    def support(self, reports: Reports, codes: IntArray) -> FloatArray:
        """Return each label's bit."""
        return reports[np.arange(len(reports)), codes].astype(np.float64)

    def most_likely(self, reports: Reports) -> BoolArray:
        """Return the labels whose bit is set, all where none is."""
        return np.asarray(reports | ~reports.any(axis=1, keepdims=True))
