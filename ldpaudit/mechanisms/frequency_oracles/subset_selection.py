"""Subset selection (SS): the report is a set of ω labels."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ldpaudit.errors import InputError
from ldpaudit.mechanisms.channel import Channel
from ldpaudit.mechanisms.exact_sampling import Randomness, bit_source
from ldpaudit.mechanisms.finite import check_codes
from ldpaudit.mechanisms.frequency_oracles.interface import FrequencyOracle, Reports, two_rows
from ldpaudit.mechanisms.parameters import Parameter
from ldpaudit.release import BoolArray, FloatArray, IntArray

_ROWS = 1 << 14


def _best_size(fields: Mapping[str, Any]) -> int:
    """Return k/(e^ε + 1), rounded, between 1 and k − 1."""
    k, epsilon = len(fields["classes"]), fields["stated_epsilon"]
    return min(max(1, round(k / (math.exp(epsilon) + 1))), k - 1)


@dataclass(frozen=True)
class SubsetSelection(FrequencyOracle):
    """A uniform set of ω labels that holds the true one with probability ωe^ε/(ωe^ε + k − ω).

    Parameters
    ----------
    classes : tuple
        The k ≥ 2 labels.
    stated_epsilon : float
        ε in nats.
    size : int
        ω, from 1 to k − 1.

    References
    ----------
    Ye & Barg (2018); Wang et al. (2016), Mutual information optimally local private discrete
    distribution estimation.
    """

    protocol = "SS"
    report_kind = "labels"
    declared = (*FrequencyOracle.declared, Parameter("size", default=_best_size))

    size: int

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.size, bool) or not isinstance(self.size, int):
            raise InputError("The 'size' of the subset must be a whole number.")
        if not 1 <= self.size < self.k:
            raise InputError(f"The 'size' of the subset must lie in 1 … k − 1. Got {self.size}.")

    @property
    def p(self) -> float:
        """P(the set holds the true label)."""
        odds = self.size / (self.k - self.size)
        return 1 / (1 + math.exp(-self.stated_epsilon) / odds)

    @property
    def description(self) -> str:
        """Its parameters."""
        return (
            f"SS on {self.k} labels: {self.size} of them, the true one among them with "
            f"probability {self.p:.6g}; ε = {self.epsilon:.6g} nats"
        )

    @property
    def width(self) -> int:
        """ω."""
        return self.size

    @cached_property
    def pair_channel(self) -> Channel:
        """The law of which of the two labels the set holds: the one, the other, both, none."""
        p, w, rest = self.p, self.size, self.k - 1
        one, other = p * (rest - w + 1) / rest, (1 - p) * w / rest
        same = [p * (w - 1) / rest, (1 - p) * (rest - w) / rest]
        return two_rows([[one, other, *same], [other, one, *same]])

    @property
    def keep_probability(self) -> float:
        """p/ω."""
        return self.p / self.size

    def read(self, table: Reports) -> tuple[Reports, BoolArray]:
        """Return label codes, int32 of shape (n, ω), all different in a row."""
        ordered = np.sort(table, axis=1)
        labels = (ordered[:, 0] >= 0) & (ordered[:, -1] < self.k)
        return ordered.astype(np.int32), labels & (np.diff(ordered, axis=1) > 0).all(axis=1)

    def sample(self, labels: IntArray, rng: Randomness = None) -> Reports:
        """Draw sets in increasing order, int32 of shape (n, ω)."""
        codes, source = check_codes(labels, self.k), bit_source(rng)
        reports = np.empty((len(codes), self.size), dtype=np.int32)
        threshold = np.uint64(math.floor(math.ldexp(self.p, 64)))
        for start in range(0, len(codes), _ROWS):
            block = codes[start : start + _ROWS]
            # Half-words leave room for a first and a last place; ties have probability 2⁻⁶³.
            keys = source.words(len(block) * self.k).reshape(len(block), self.k) >> np.uint64(1)
            holds = source.words(len(block)) < threshold
            ends = np.where(holds, np.uint64(0), np.iinfo(np.uint64).max).astype(np.uint64)
            keys[np.arange(len(block)), block] = ends
            chosen = np.argpartition(keys, self.size - 1, axis=1)[:, : self.size]
            reports[start : start + _ROWS] = np.sort(chosen, axis=1)
        return reports

    def support(self, reports: Reports, codes: IntArray) -> FloatArray:
        """Return 1 where the set holds the label, else 0."""
        return np.asarray((reports == codes[:, None]).any(axis=1), dtype=np.float64)

    def most_likely(self, reports: Reports) -> BoolArray:
        """Return the labels in the set."""
        members = np.zeros((len(reports), self.k), dtype=np.bool_)
        np.put_along_axis(members, reports.astype(np.int64), True, axis=1)
        return members
