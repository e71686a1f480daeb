"""Summation with histogram encoding (SHE): the report is a one-hot vector with Laplace noise."""

import math
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from ldpaudit.mechanisms.channel import Channel
from ldpaudit.mechanisms.exact_sampling import Randomness
from ldpaudit.mechanisms.finite import check_codes
from ldpaudit.mechanisms.frequency_oracles.interface import FrequencyOracle, Reports, two_rows
from ldpaudit.mechanisms.noise.continuous import laplace_draws, laplace_rdp
from ldpaudit.release import BoolArray, FloatArray, IntArray


@dataclass(frozen=True)
class SummedHistogram(FrequencyOracle):
    """Laplace noise of scale 2/ε on every entry of a one-hot vector; two entries may differ.

    References
    ----------
    Dwork et al. (2006); Wang et al. (2017), section 4.2.
    """

    protocol = "SHE"
    report_kind = "numbers"

    @property
    def scale(self) -> float:
        """The scale 2/ε of the noise."""
        return 2 / self.stated_epsilon

    @property
    def description(self) -> str:
        """Its parameters."""
        return (
            f"SHE on {self.k} labels: Laplace noise of scale {self.scale:.6g}; "
            f"ε = {self.epsilon:.6g} nats"
        )

    @property
    def width(self) -> int:
        """One number per label."""
        return self.k

    @property
    def pair_channel(self) -> Channel:
        """The law of whether the two entries' loss is ε, −ε, or between."""
        high = 0.25
        low = high * math.exp(-self.stated_epsilon)
        rest = 1 - high - low
        return two_rows([[high, low, rest], [low, high, rest]])

    def rdp(self, alpha: float) -> float:
        """Return twice the Rényi divergence of one entry's Laplace noise."""
        return 2 * laplace_rdp(alpha, self.stated_epsilon / 2)

    def delta(self, epsilon: float) -> float:
        """Return δ(ε'), by quadrature over one entry's loss, to 1e-9.

        With s = ε/2 one entry loses s with probability 1/2, −s with e^{−s}/2, and between them
        with density e^{−(s − l)/2}/4 at l; the other entry's δ at ε' − l is 1 − e^{(ε' − l − s)/2}.
        """
        from scipy.integrate import quad

        s = self.stated_epsilon / 2

        def entry(level: float) -> float:
            if level < -s:
                return -math.expm1(level)
            return max(-math.expm1((level - s) / 2), 0.0)

        ends = 0.5 * entry(epsilon - s) + 0.5 * math.exp(-s) * entry(epsilon + s)
        breaks = [point for point in (epsilon - s,) if -s < point < s]
        middle, _ = quad(
            lambda loss: 0.25 * math.exp((loss - s) / 2) * entry(epsilon - loss),
            -s,
            s,
            points=breaks or None,
            epsabs=1e-12,
        )
        return float(min(max(ends + middle, 0.0), 1.0))

    @cached_property
    def keep_probability(self) -> float:
        """P(the true entry is the largest), by quadrature to 1e-10."""
        from scipy.integrate import quad

        b, others = self.scale, self.k - 1

        def below(x: float) -> float:
            return 0.5 * math.exp(x / b) if x < 0 else 1 - 0.5 * math.exp(-x / b)

        def density(x: float) -> float:
            return math.exp(-abs(x - 1) / b) / (2 * b) * below(x) ** others

        cuts = (-60 * b, 0.0, 1.0, 1 + 60 * b)
        parts = [quad(density, a, c, epsabs=1e-13, limit=200)[0] for a, c in pairwise(cuts)]
        return float(sum(parts))

    @property
    def unit(self) -> float:
        """ε/2 a unit of the reported numbers."""
        return self.stated_epsilon / 2

    def read(self, table: Reports) -> tuple[Reports, BoolArray]:
        """Return the numbers as float64 of shape (n, k), all finite."""
        numbers = table.astype(np.float64)
        return numbers, np.all(np.isfinite(numbers), axis=1)

    def sample(self, labels: IntArray, rng: Randomness = None) -> Reports:
        """Draw reports, float64 of shape (n, k).

        The noise is drawn in steps of 1/1,024.
        """
        codes = check_codes(labels, self.k)
        values = np.zeros((len(codes), self.k))
        values[np.arange(len(codes)), codes] = 1.0
        noise = laplace_draws(values.size, self.stated_epsilon / 2, rng)
        return np.asarray(values + noise.reshape(values.shape))

    def support(self, reports: Reports, codes: IntArray) -> FloatArray:
        """Return |z| − |z − 1| of each label's entry z."""
        entries = reports[np.arange(len(reports)), codes]
        return np.asarray(np.abs(entries) - np.abs(entries - 1))

    def most_likely(self, reports: Reports) -> BoolArray:
        """Return the largest entry.

        All entries above 1 are equally likely to be the true one; the largest is one of these.
        """
        return np.asarray(reports == reports.max(axis=1, keepdims=True))
