"""Generalized randomized response (GRR, also called direct encoding): the report is a label."""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ldpaudit.mechanisms.channel import Channel
from ldpaudit.mechanisms.exact_sampling import Randomness
from ldpaudit.mechanisms.frequency_oracles.interface import (
    FrequencyOracle,
    Reports,
    response_rows,
)
from ldpaudit.mechanisms.response.randomized_response import RandomizedResponse
from ldpaudit.release import BoolArray, FloatArray, IntArray


@dataclass(frozen=True)
class GeneralizedRR(FrequencyOracle):
    """The label with probability p = e^ε/(e^ε + k − 1), else one of the others.

    References
    ----------
    Kairouz, Bonawitz & Ramage (2016); Wang et al. (2017), section 4.1.
    """

    protocol = "GRR"

    @property
    def keep_probability(self) -> float:
        """p."""
        return 1 / (1 + (self.k - 1) * math.exp(-self.stated_epsilon))

    @property
    def description(self) -> str:
        """Its parameters."""
        return (
            f"GRR on {self.k} labels: the true one with probability {self.keep_probability:.6g}; "
            f"ε = {self.epsilon:.6g} nats"
        )

    report_kind = "label"

    @property
    def width(self) -> int:
        """One."""
        return 1

    @cached_property
    def pair_channel(self) -> Channel:
        """The law of the reported label: the one, the other, any third."""
        return response_rows(self.keep_probability, self.stated_epsilon, self.k)

    def read(self, table: Reports) -> tuple[Reports, BoolArray]:
        """Return label codes, int32 of shape (n, 1)."""
        return table.astype(np.int32), np.all((table >= 0) & (table < self.k), axis=1)

    def sample(self, labels: IntArray, rng: Randomness = None) -> Reports:
        """Draw label codes, int32 of shape (n, 1)."""
        response = RandomizedResponse.from_epsilon(self.classes, self.stated_epsilon)
        return response.sample(labels, rng)[:, None]

    def support(self, reports: Reports, codes: IntArray) -> FloatArray:
        """Return 1 for the reported label, else 0."""
        return np.asarray(reports[:, 0] == codes, dtype=np.float64)

    def most_likely(self, reports: Reports) -> BoolArray:
        """Return the reported label."""
        return np.asarray(reports == np.arange(self.k))
