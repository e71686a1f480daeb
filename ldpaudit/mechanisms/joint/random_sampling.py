"""Random sampling plus fake data: one column, drawn at random, is released; the others are fake."""

import math
from functools import cached_property
from typing import Any

import numpy as np

from ldpaudit.mechanisms.exact_sampling import bit_source, randomized_response, uniform_below
from ldpaudit.mechanisms.joint.domains import OnDomains, agreements
from ldpaudit.mechanisms.response.randomized_response import lambda_of_epsilon
from ldpaudit.release import FloatArray, IntArray


class RandomSampling(OnDomains):
    """RS+FD[GRR]: draw one of d columns, randomize it at ε', fill the others uniformly.

    ε' = log(d(e^ε − 1) + 1) for the published ε; which column was drawn is not released.

    Notes
    -----
    With G_j(z_j | y_j) the randomized response of column j at ε' on k_j labels,

        P(z | y) = Π_l 1/k_l · (1/d) Σ_j k_j G_j(z_j | y_j).

    k_j G_j is P_j = k_j e^ε'/(e^ε' + k_j − 1) where z_j = y_j, else Q_j = k_j/(e^ε' + k_j − 1), and
    P_j = e^ε' Q_j. So, exactly:

    *The whole vector*: max P(z|y)/P(z|y') = Σ P_j / Σ Q_j = e^ε', reached by z = y and a y' that
    differs from it in every column. Its ε is ε', not the published ε.

    *Column i, the others fixed and known*: the largest ratio is reached where the released
    vector agrees with the truth in no other column,
    (P_i + Σ_{l≠i} Q_l)/(Σ_l Q_l) = 1 + d(e^ε − 1) Q_i/Σ_l Q_l.
    It is e^ε if all domains have one size. Q_j grows with k_j: columns with more labels than the
    others lose more than the published ε, those with fewer lose less.

    *Column i, the others uniform and independent of it, or not seen*: randomized response that
    keeps a label with 1 − λ = (e^ε − 1)/(k_i + d(e^ε − 1)), whose ε is
    log(1 + k_i(e^ε − 1)/(k_i + (d − 1)(e^ε − 1))), below the published one.

    References
    ----------
    Arcolezi, Couchot, Al Bouna & Xiao (2021), "Random Sampling Plus Fake Data: Multidimensional
    Frequency Estimates With Local Differential Privacy" (CIKM 2021), RS+FD with GRR. It argues by
    amplification by sampling (Li, Qardaji & Su 2012) for the published ε; the ratios above are
    ours, and a test compares them with the enumerated channel.

    Examples
    --------
    >>> from ldpaudit.mechanisms.joint import RandomSampling
    >>> mechanism = RandomSampling((("no", "yes"), ("a", "b", "c", "d")), 1.0)
    >>> [round(mechanism.epsilon, 4)] + [round(mechanism.epsilon_of(j), 4) for j in (0, 1)]
    [1.4899, 0.8737, 1.1121]
    """

    name = "rs-fd"
    title = "random sampling plus fake data"

    @property
    def description(self) -> str:
        """Its parameters in words."""
        return (
            f"{self.title} on {len(self.domains)} columns: published ε = "
            f"{self.stated_epsilon:.6g} nats, randomized response at ε' = {self.epsilon:.6g} on "
            f"one column drawn at random, uniform fake data in the others; ε = "
            f"{self.epsilon:.6g} nats for the whole vector"
        )

    @cached_property
    def epsilon(self) -> float:
        """ε' = log(1 + d(e^ε − 1)) in nats: that of the whole vector."""
        return math.log1p(self._gain)

    @property
    def _gain(self) -> float:
        """e^ε' − 1 = d(e^ε − 1)."""
        return len(self.domains) * math.expm1(self.stated_epsilon)

    @cached_property
    def noise_alone(self) -> tuple[float, ...]:
        """1 − (1/d)(e^ε' − 1)/(k − 1 + e^ε') for each column of k labels, without cancellation."""
        gain, d = self._gain, len(self.domains)
        return tuple((d * k + (d - 1) * gain) / (d * (k + gain)) for k in self.sizes)

    @cached_property
    def _apart(self) -> tuple[float, ...]:
        """Q_j = k_j/(e^ε' + k_j − 1): k_j times the probability of one wrong label."""
        return tuple(k / (k + self._gain) for k in self.sizes)

    def epsilon_of(self, position: int) -> float:
        """Return log(1 + d(e^ε − 1) Q_i/Σ_l Q_l), in nats: exact for known other columns."""
        return math.log1p(self._gain * self._apart[position] / math.fsum(self._apart))

    def remarks(self) -> tuple[str, ...]:
        """Say which ε is whose, and where the published one does not hold."""
        d, stated = len(self.domains), self.stated_epsilon
        whole = (
            f"The published ε = {stated:.6g} is not that of the whole vector: for vectors that "
            f"differ in all {d} columns it is ε' = {self.epsilon:.6g}, exactly."
        )
        own = [self.epsilon_of(j) for j in range(d)]
        if len(set(self.sizes)) == 1:
            one = "For one column, the others known to the attacker, it is exactly the published ε."
        else:
            above = sum(value > stated + 1e-12 for value in own)
            one = (
                f"For one column, the others known to the attacker, it lies between "
                f"{min(own):.6g} and {max(own):.6g}: the published ε does not hold for {above} "
                f"of {d} columns, those with more labels than the others."
            )
        alone = "A column's own ε holds for somebody who sees that released column only."
        return whole, one, alone

    def _matrix(self) -> FloatArray:
        total = np.zeros((self.size, self.size))
        for j, apart in enumerate(self._apart):
            total += apart * (1 + self._gain * agreements(self.sizes, j))
        return total / (len(self.domains) * self.size)

    def _drawn(self, labels: IntArray, rng: Any) -> IntArray:
        source, out = bit_source(rng), labels.copy()
        drawn = uniform_below(len(self.domains), len(out), source)
        for j, k in enumerate(self.sizes):
            noise, own = lambda_of_epsilon(self.epsilon, k), drawn == j
            out[own, j] = randomized_response(out[own, j], noise, k, source)
            out[~own, j] = uniform_below(k, int((~own).sum()), source)
        return out
