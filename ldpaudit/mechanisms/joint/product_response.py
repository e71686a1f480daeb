"""Randomized response on the product of the columns' domains: the vector is one label."""

import math
from fractions import Fraction
from functools import cached_property
from typing import Any, Final

import numpy as np

from ldpaudit.errors import InputError
from ldpaudit.mechanisms.exact_sampling import bit_source, uniform_below
from ldpaudit.mechanisms.joint.domains import OnDomains
from ldpaudit.release import FloatArray, IntArray

MOST: Final = 1 << 50
"""The most vectors: with more of them hardly a row in 2⁵⁰ would be kept."""


class JointRR(OnDomains):
    """Keep the whole vector with probability 1 − λ, else draw each column anew, uniformly.

    With K vectors in the product of the domains and λ = K/(K − 1 + e^ε) this is randomized
    response on K labels.

    Notes
    -----
    *The whole vector*: ε, for any two different vectors, however many columns differ.

    *One column, the others known to the attacker*: also ε. The vectors differ in that column only,
    and the released vector that equals one of them is e^ε times as likely under it.

    *One column seen alone*: column j is kept together with the vector or drawn uniformly from its
    k_j labels, which is randomized response with the same λ. Its ε is
    log(1 + k_j (1 − λ)/λ) = log(1 + (k_j/K)(e^ε − 1)), below ε.

    References
    ----------
    Kairouz, Bonawitz & Ramage (2016), k-ary randomized response, with the vector as the label;
    Domingo-Ferrer & Soria-Comas (2022), "Multi-Dimensional Randomized Response" (RR-Joint).

    Examples
    --------
    >>> from ldpaudit.mechanisms.joint import JointRR
    >>> mechanism = JointRR((("no", "yes"), ("a", "b", "c")), 1.0)
    >>> [round(value, 4) for value in (mechanism.epsilon, mechanism.epsilon_of(0))]
    [1.0, 1.0]
    >>> [round(column.epsilon, 4) for column in mechanism.columns]
    [0.4528, 0.6201]
    """

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
        """Its parameters in words."""
        return (
            f"{self.title}, {self.size} vectors of {len(self.domains)} columns: "
            f"λ = {self.noise:.6g}, ε = {self.epsilon:.6g} nats for the whole vector, released "
            f"as it is with probability {self.kept + self.noise / self.size:.6g}"
        )

    @property
    def epsilon(self) -> float:
        """ε in nats of the whole vector."""
        return self.stated_epsilon

    @property
    def kept(self) -> float:
        """1 − λ = (e^ε − 1)/(K − 1 + e^ε): the probability that the vector is not drawn anew."""
        gain = math.expm1(self.stated_epsilon)
        return gain / (self.size + gain)

    @property
    def noise(self) -> float:
        """λ = K/(K − 1 + e^ε), without the rounding of 1 − (1 − λ)."""
        return self.size / (self.size + math.expm1(self.stated_epsilon))

    @cached_property
    def noise_alone(self) -> tuple[float, ...]:
        """λ for every column."""
        return (self.noise,) * len(self.domains)

    def epsilon_of(self, position: int) -> float:  # noqa: ARG002
        """Return ε: the other columns do not protect one that alone is unknown."""
        return self.stated_epsilon

    def remarks(self) -> tuple[str, ...]:
        """Say which ε is whose."""
        return (
            "ε is the same for the whole vector and for one column whose others the attacker "
            "knows.",
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
