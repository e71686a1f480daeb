"""Label proportions: the sum of each bag's labels, with or without noise."""

import math
from functools import cached_property
from typing import Any, Final

import numpy as np

from ldpaudit.doors import (
    BagSums,
    Channel,
    Family,
    FloatArray,
    IndexArray,
    InputError,
    IntArray,
    Parameter,
    Traits,
    check_classes,
    check_epsilon,
)
from ldpaudit.mechanisms.channel import two_rows
from ldpaudit.mechanisms.exact_sampling import Randomness
from ldpaudit.mechanisms.finite import Made, check_codes
from ldpaudit.mechanisms.label_range import LabelRange
from ldpaudit.mechanisms.noise import FINE_STEPS, DiscreteLaplace

_WORDS: Final = {
    "none": ", without noise: no finite ε holds",
    "laplace": " with Laplace noise of scale 1/ε: ε = {:.6g} nats",
    "geometric": " with two-sided geometric noise: ε = {:.6g} nats",
}


class NoisySums(Made, BagSums):
    """Each row of a bag carries the bag's sum of labels, or its proportion, with or without noise.

    One label changes the sum by at most 1, so noise of density ∝ e^{−ε|x|} gives exactly ε. Without
    noise no ε holds: a bag of equal labels reveals them.

    Busa-Fekete et al. (2024), Auditing Privacy Mechanisms via Label Inference Attacks; Brahmbhatt
    et al. (2023), Label Differential Privacy via Aggregation: bags alone are not label-DP.
    """

    # None: what a row shows depends on the labels of its whole bag.
    channel = None

    @property
    def epsilon(self) -> float:
        return math.inf if self.target_epsilon is None else float(self.target_epsilon)

    @cached_property
    def _added(self) -> Any:
        """The noise, in steps of 1/1,024 or of 1, as a mechanism on two neighbouring sums."""
        step = {"laplace": 1 / FINE_STEPS, "geometric": 1}[self.noise]
        return DiscreteLaplace(LabelRange(0, 1, step), self.epsilon)

    @cached_property
    def compared(self) -> Channel:
        """The law of the sums of two bags that differ in one label."""
        return two_rows(1.0, 0.0) if self.noise == "none" else self._added.compared

    @property
    def sums_are_whole(self) -> bool:
        return self.noise != "laplace"

    @property
    def sums_fit_the_bag(self) -> bool:
        return self.noise == "none"

    def log_likelihood(self, released: FloatArray, size: int) -> FloatArray:
        distance = np.abs(np.asarray(released)[:, None] - np.arange(size + 1)[None, :])
        if self.noise == "none":
            return np.where(distance < 0.5, 0.0, -np.inf)
        return np.asarray(-self.epsilon * distance)

    def noise_cdf(self, x: FloatArray) -> FloatArray:
        x = np.asarray(x, dtype=np.float64)
        if self.noise == "none":
            return (x >= 0).astype(np.float64)
        if self.noise == "laplace":
            tail = 0.5 * np.exp(-self.epsilon * np.abs(x))
            return np.where(x < 0, tail, 1 - tail)
        return np.asarray(self._added.law.up_to(np.floor(x).astype(np.int64)))

    def release(
        self,
        labels: IntArray,
        members: IndexArray,
        rng: Randomness = None,
    ) -> FloatArray:
        """Release the labels of bags."""
        codes = check_codes(labels, 2)
        sizes = np.bincount(members)
        sums = np.bincount(members, weights=codes, minlength=len(sizes)).astype(np.float64)
        if self.noise != "none":
            sums += self._added.labels.spacing * self._added.law.draw(len(sums), rng)
        return np.asarray((sums / sizes if self.statistic == "proportion" else sums)[members])


def _check(
    bag: str, classes: Any, noise: str, target_epsilon: float | None, statistic: str
) -> None:
    if len(classes) != 2:
        raise InputError(
            f"Label proportions must have two classes; the second is counted. Got {len(classes)}."
        )
    if not isinstance(bag, str) or not bag:
        raise InputError("The 'bag' parameter must be the name of a column.")
    allowed = {"noise": (noise, tuple(_WORDS)), "statistic": (statistic, ("proportion", "sum"))}
    for key, (stated, words) in allowed.items():
        if stated not in words:
            raise InputError(f"The '{key}' parameter must be one of {', '.join(words)}.")
    if (noise == "none") != (target_epsilon is None):
        raise InputError("Label proportions must state 'epsilon' with noise, and only then.")


LabelProportions: Final = Family(
    traits=Traits(
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
    ),
    parameters=(
        Parameter("bag"),
        Parameter("classes", check_classes),
        Parameter("noise", default="none"),
        Parameter("epsilon", check_epsilon, "target_epsilon", None),
        Parameter("statistic", default="proportion"),
    ),
    describe=lambda m: (
        f"the {m.statistic} of each bag's labels" + _WORDS[m.noise].format(m.epsilon)
    ),
    kind=NoisySums,
    check=_check,
)
"""Sums of labels of bags: ``LabelProportions(bag, classes, noise, target_epsilon, statistic)``.

``bag`` is the column that identifies a row's bag; the second of the two classes is counted;
``noise`` is "none", "laplace" or "geometric", and ``target_epsilon`` is given with noise only; the
label's column holds the "proportion", the noisy sum divided by the bag's size, or the noisy "sum".
"""
