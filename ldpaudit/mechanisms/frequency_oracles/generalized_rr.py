"""Generalized randomized response (GRR, also direct encoding): the report is a label."""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ldpaudit.mechanisms.channel import Channel
from ldpaudit.mechanisms.exact_sampling import Randomness
from ldpaudit.mechanisms.frequency_oracles.interface import (
    FrequencyOracle,
    Reports,
    check_reports,
    check_width,
    two_rows,
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
        """The law of: the one label, the other, any third."""
        p = self.keep_probability
        q = math.exp(-self.stated_epsilon) * p
        return two_rows([[p, q, (self.k - 2) * q], [q, p, (self.k - 2) * q]])

    def check(self, reports: Reports) -> Reports:
        """Return label codes, int32 of shape (n, 1)."""
        table = check_width(reports, 1)
        check_reports(table, 1, np.all((table >= 0) & (table < self.k), axis=1))
        return table.astype(np.int32)

    def sample(self, labels: IntArray, rng: Randomness = None) -> Reports:
        """Draw label codes, int32 of shape (n, 1)."""
        drawn = RandomizedResponse.from_epsilon(self.classes, self.stated_epsilon)
        return drawn.sample(labels, rng)[:, None]

    def log_ratio(self, reports: Reports, first: IntArray, second: IntArray) -> FloatArray:
        """Return ε, −ε or 0."""
        gap = (reports[:, 0] == first).astype(np.float64) - (reports[:, 0] == second)
        return np.asarray(self.stated_epsilon * gap)

    def most_likely(self, reports: Reports) -> BoolArray:
        """Return the reported label."""
        return np.asarray(reports == np.arange(self.k))
