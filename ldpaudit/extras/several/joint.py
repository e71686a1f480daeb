"""Mechanisms that release several columns of a row together: one draw for all of them."""

import math
from fractions import Fraction
from functools import cached_property
from typing import Any, Final

import numpy as np

from ldpaudit.doors import FloatArray, InputError, IntArray, OnDomains
from ldpaudit.mechanisms.exact_sampling import (
    bit_source,
    randomized_response,
    uniform_below,
)
from ldpaudit.mechanisms.response import lambda_of_epsilon

# The most vectors: with more of them hardly a row in 2⁵⁰ would be kept.
MOST: Final = 1 << 50


class JointRR(OnDomains):
    """Keep the whole vector with probability 1 − λ, else draw each column again, uniformly."""

    # With K vectors and λ = K/(K − 1 + e^ε) this is randomized response on K labels. A column seen
    # alone is randomized response with the same λ on its own labels.
    # Kairouz, Bonawitz & Ramage (2016); Domingo-Ferrer & Soria-Comas (2022), RR-Joint.

    name = "joint-rr"
    title = "randomized response on the product of the domains"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.size > MOST:
            raise InputError(
                f"The product of the domains has {self.size:.3g} vectors: next to nothing would be "
                f"kept. Release the columns independently, or with random sampling plus fake data."
            )

    @property
    def description(self) -> str:
        return (
            f"{self.title}, {self.size} vectors of {len(self.domains)} columns: "
            f"λ = {self.noise:.6g}, ε = {self.epsilon:.6g} nats for all columns, released "
            f"as it is with probability {self.kept + self.noise / self.size:.6g}"
        )

    @property
    def epsilon(self) -> float:
        return self.stated_epsilon

    @property
    def kept(self) -> float:
        """1 − λ = (e^ε − 1)/(K − 1 + e^ε): the probability that the vector is not drawn again."""
        gain = math.expm1(self.stated_epsilon)
        return gain / (self.size + gain)

    @property
    def noise(self) -> float:
        """λ = K/(K − 1 + e^ε), without the rounding of 1 − (1 − λ)."""
        return self.size / (self.size + math.expm1(self.stated_epsilon))

    @cached_property
    def noise_alone(self) -> tuple[float, ...]:
        return (self.noise,) * len(self.domains)

    def epsilon_of(self, position: int) -> float:  # noqa: ARG002
        return self.stated_epsilon

    def remarks(self) -> tuple[str, ...]:
        return (
            "ε is the same for all columns and for one column whose others the attacker knows.",
            "A column's own ε, as printed for each column, holds for somebody who sees that "
            "released column only.",
        )

    def _matrix(self) -> FloatArray:
        return self.kept * np.eye(self.size) + self.noise / self.size

    def _drawn(self, labels: IntArray, rng: Any) -> IntArray:
        source, out = bit_source(rng), labels.copy()
        words = source.words(len(out))
        # The smaller of the two probabilities is compared, rounded towards privacy.
        if self.kept < self.noise:
            redrawn = words >= np.uint64(math.floor(Fraction(self.kept) * (1 << 64)))
        else:
            redrawn = words < np.uint64(math.ceil(Fraction(self.noise) * (1 << 64)))
        anew = np.flatnonzero(redrawn)
        for j, k in enumerate(self.sizes):
            out[anew, j] = uniform_below(k, len(anew), source)
        return out


class RandomSampling(OnDomains):
    """RS+FD[GRR]: draw one of d columns, randomize it at ε', fill the others uniformly.

    ε' = log(d(e^ε − 1) + 1) for the published ε; which column was drawn is not released. With
    G_j(z_j | y_j) the randomized response of column j at ε' on k_j labels,

        P(z | y) = Π_l 1/k_l · (1/d) Σ_j k_j G_j(z_j | y_j),

    where k_j G_j is e^ε' Q_j if z_j = y_j, else Q_j = k_j/(e^ε' + k_j − 1). So the largest ratio
    for the whole vector is e^ε', and for column i, the others known, 1 + d(e^ε − 1) Q_i/Σ_l Q_l.

    Arcolezi, Couchot, Al Bouna & Xiao (2021), RS+FD with GRR, argue by amplification by sampling
    for the published ε; the ratios are ours, see ``docs/mechanisms/rs-fd.md``.
    """

    name = "rs-fd"
    title = "random sampling plus fake data"

    @property
    def description(self) -> str:
        return (
            f"{self.title} on {len(self.domains)} columns: published ε = "
            f"{self.stated_epsilon:.6g} nats, randomized response at ε' = {self.epsilon:.6g} on "
            f"one column drawn at random, uniform fake data in the others; ε = "
            f"{self.epsilon:.6g} nats for all columns"
        )

    @cached_property
    def epsilon(self) -> float:
        return math.log1p(self._gain)

    @property
    def _gain(self) -> float:
        """e^ε' − 1 = d(e^ε − 1)."""
        return len(self.domains) * math.expm1(self.stated_epsilon)

    @cached_property
    def noise_alone(self) -> tuple[float, ...]:
        gain, d = self._gain, len(self.domains)
        return tuple((d * k + (d - 1) * gain) / (d * (k + gain)) for k in self.sizes)

    @cached_property
    def _apart(self) -> tuple[float, ...]:
        """Q_j = k_j/(e^ε' + k_j − 1): k_j times the probability of one wrong label."""
        return tuple(k / (k + self._gain) for k in self.sizes)

    def epsilon_of(self, position: int) -> float:
        return math.log1p(self._gain * self._apart[position] / math.fsum(self._apart))

    def remarks(self) -> tuple[str, ...]:
        d, stated = len(self.domains), self.stated_epsilon
        whole = (
            f"The published ε = {stated:.6g} is not that of all columns: for rows that "
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
        vectors = np.unravel_index(np.arange(self.size), self.sizes)
        for codes, apart in zip(vectors, self._apart, strict=True):
            total += apart * (1 + self._gain * (codes[:, None] == codes))
        return total / (len(self.domains) * self.size)

    def _drawn(self, labels: IntArray, rng: Any) -> IntArray:
        source, out = bit_source(rng), labels.copy()
        drawn = uniform_below(len(self.domains), len(out), source)
        for j, k in enumerate(self.sizes):
            noise, own = lambda_of_epsilon(self.epsilon, k), drawn == j
            out[own, j] = randomized_response(out[own, j], noise, k, source)
            out[~own, j] = uniform_below(k, int((~own).sum()), source)
        return out
