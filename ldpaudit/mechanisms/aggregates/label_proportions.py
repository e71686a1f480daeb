"""Label proportions: the sum of each bag's labels, with or without noise."""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Final, Literal, get_args

import numpy as np

from ldpaudit.errors import InputError
from ldpaudit.mechanisms.capabilities import BagSums
from ldpaudit.mechanisms.exact_sampling import Randomness
from ldpaudit.mechanisms.finite import check_codes
from ldpaudit.mechanisms.interface import Traits
from ldpaudit.mechanisms.label_range import LabelRange
from ldpaudit.mechanisms.noise.continuous import laplace_delta, laplace_draws, laplace_rdp
from ldpaudit.mechanisms.noise.discrete import DiscreteLaplace
from ldpaudit.mechanisms.parameters import Parameter, check_classes, check_epsilon
from ldpaudit.release import FloatArray, IndexArray, IntArray, Label

Noise = Literal["none", "laplace", "geometric"]
Statistic = Literal["proportion", "sum"]
_WORDS: Final = {"laplace": "Laplace noise of scale 1/ε", "geometric": "two-sided geometric noise"}


@dataclass(frozen=True)
class LabelProportions(BagSums):
    """Each row of a bag carries the bag's sum of labels, or its proportion, with or without noise.

    One label changes the sum by at most 1, so noise of density ∝ e^{−ε|x|} gives exactly ε. Without
    noise no ε holds: a bag of equal labels reveals them.

    Parameters
    ----------
    bag : str
        The column that identifies a row's bag.
    classes : tuple
        Two labels; the second is counted.
    noise : {"none", "laplace", "geometric"}
        What is added to the sum.
    target_epsilon : float or None
        ε > 0 in nats; None without noise.
    statistic : {"proportion", "sum"}
        What the label's column holds: the noisy sum divided by the bag's size, or the noisy sum.

    References
    ----------
    Busa-Fekete et al. (2024), Auditing Privacy Mechanisms via Label Inference Attacks; Brahmbhatt
    et al. (2023), Label Differential Privacy via Aggregation: bags alone are not label-DP.
    """

    traits = Traits(
        name="label-proportions",
        title="label proportions",
        labels="classes",
        outputs="sums",
        label_depends_on_features=True,
        features="unchanged",
        rows="bags",
        options=(),
        stated_by=("epsilon",),
        whole=False,
        needs=frozenset({"bags"}),
    )

    declared = (
        Parameter("bag"),
        Parameter("classes", check_classes),
        Parameter("noise", default="none"),
        Parameter("statistic", default="proportion"),
        Parameter("epsilon", check_epsilon, "target_epsilon", None),
    )

    bag: str
    classes: tuple[Label, ...]
    noise: Noise = "none"
    target_epsilon: float | None = None
    statistic: Statistic = "proportion"

    def __post_init__(self) -> None:
        object.__setattr__(self, "classes", check_classes(self.classes))
        if len(self.classes) != 2:
            raise InputError(
                f"Label proportions must have two classes; the second is counted. Got "
                f"{len(self.classes)}."
            )
        if not isinstance(self.bag, str) or not self.bag:
            raise InputError("The 'bag' parameter must be the name of a column.")
        for key, value, kind in (
            ("noise", self.noise, Noise),
            ("statistic", self.statistic, Statistic),
        ):
            allowed = get_args(kind)
            if value not in allowed:
                raise InputError(f"The '{key}' parameter must be one of {', '.join(allowed)}.")
        if (self.noise == "none") != (self.target_epsilon is None):
            raise InputError("Label proportions must state 'epsilon' with noise, and only then.")
        if self.target_epsilon is not None:
            check_epsilon(self.target_epsilon)

    @property
    def epsilon(self) -> float:
        """The exact ε in nats; ∞ without noise."""
        return math.inf if self.target_epsilon is None else self.target_epsilon

    @property
    def channel(self) -> None:
        """None: what a row shows depends on the labels of its whole bag."""
        return None

    @property
    def description(self) -> str:
        """What is released."""
        if self.noise == "none":
            return f"the {self.statistic} of each bag's labels, without noise: no finite ε holds"
        return (
            f"the {self.statistic} of each bag's labels with {_WORDS[self.noise]}: "
            f"ε = {self.epsilon:.6g} nats"
        )

    @cached_property
    def _geometric(self) -> DiscreteLaplace:
        """Geometric noise as a mechanism on two neighbouring sums, 0 and 1."""
        return DiscreteLaplace(LabelRange(0, 1, 1), self.epsilon)

    def delta(self, epsilon: float) -> float:
        """Return the smallest δ for which it is (ε, δ)-label-DP, ε ≥ 0 in nats; 1 without noise."""
        if self.noise == "laplace":
            return laplace_delta(epsilon, self.epsilon)
        return 1.0 if self.noise == "none" else self._geometric.delta(epsilon)

    def rdp(self, alpha: float) -> float:
        """Return its Rényi label-DP parameter at order α > 0, in nats; ∞ without noise."""
        if self.noise == "laplace":
            return laplace_rdp(alpha, self.epsilon)
        return math.inf if self.noise == "none" else self._geometric.rdp(alpha)

    @property
    def sums_are_whole(self) -> bool:
        """Whether every released sum is a whole number: without Laplace noise."""
        return self.noise != "laplace"

    @property
    def sums_fit_the_bag(self) -> bool:
        """Whether every released sum lies between 0 and the bag's size: without noise."""
        return self.noise == "none"

    def log_likelihood(self, released: FloatArray, size: int) -> FloatArray:
        """Return log P(released | true sum) up to a constant, float64 of shape (b, size + 1)."""
        distance = np.abs(np.asarray(released)[:, None] - np.arange(size + 1)[None, :])
        if self.noise == "none":
            return np.where(distance < 0.5, 0.0, -np.inf)
        return np.asarray(-self.epsilon * distance)

    def noise_cdf(self, x: FloatArray) -> FloatArray:
        """Return P(noise ≤ x) of the declared noise, float64 of the shape of ``x``."""
        x = np.asarray(x, dtype=np.float64)
        if self.noise == "none":
            return (x >= 0).astype(np.float64)
        if self.noise == "laplace":
            tail = 0.5 * np.exp(-self.epsilon * np.abs(x))
            return np.where(x < 0, tail, 1 - tail)
        whole, q = np.floor(x), math.exp(-self.epsilon)
        low, high = q ** np.maximum(-whole, 0) / (1 + q), q ** (np.maximum(whole, -1) + 1) / (1 + q)
        return np.where(whole < 0, low, 1 - high)

    def release(
        self,
        labels: IntArray,
        members: IndexArray,
        rng: Randomness = None,
    ) -> FloatArray:
        """Release the labels of bags.

        Parameters
        ----------
        labels : int32 array of shape (n,)
            Codes of the true labels, 0 or 1.
        members : int64 array of shape (n,)
            The bag of each row, 0 … b − 1, every one of at least two rows.
        rng : numpy.random.Generator or BitSource, optional
            Default: the operating system's. Laplace noise is drawn in steps of 1/1,024.

        Returns
        -------
        float64 array of shape (n,)
            The bag's noisy proportion or sum, in each of its rows.
        """
        codes = check_codes(labels, 2)
        sizes = np.bincount(members)
        sums = np.bincount(members, weights=codes, minlength=len(sizes)).astype(np.float64)
        noisy = self._noisy(sums, rng)
        return np.asarray((noisy / sizes if self.statistic == "proportion" else noisy)[members])

    def _noisy(self, sums: FloatArray, rng: Randomness) -> FloatArray:
        if self.noise == "none":
            return sums
        if self.noise == "geometric":
            return np.asarray(sums + self._geometric.law.draw(len(sums), rng), dtype=np.float64)
        return sums + laplace_draws(len(sums), self.epsilon, rng)
