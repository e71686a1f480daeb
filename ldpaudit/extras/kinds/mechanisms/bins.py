"""Randomized response on the outputs of numeric labels: RR-on-Bins, its best bins, and debiased RR.

RR-on-Bins is randomized response over the outputs of a partition of the labels into bins: optimal
among all ε-DP channels for losses that grow with the distance (Ghazi et al. 2023, Theorem 5), and
biased. Debiased randomized response stretches the outputs until E[ŷ | y] = y.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, Final

import numpy as np
from scipy.special import xlogy

from ldpaudit.doors import (
    Channel,
    Family,
    FiniteMechanism,
    FloatArray,
    IndexArray,
    InputError,
    IntArray,
    Parameter,
    check_epsilon,
)
from ldpaudit.extras.kinds.mechanisms.growths import lowered_growth
from ldpaudit.extras.kinds.mechanisms.interval_program import Design
from ldpaudit.mechanisms.exact_sampling import TOTAL, WeightTable
from ldpaudit.mechanisms.finite import noise_on
from ldpaudit.mechanisms.interface import CLASSES, DESIGN, UNBIASED, Proposal, numeric_traits
from ldpaudit.mechanisms.label_range import Loss
from ldpaudit.mechanisms.label_range import loss as loss_of
from ldpaudit.mechanisms.parameters import (
    check_list,
    check_number,
    check_numeric_classes,
    check_prior,
)
from ldpaudit.release import Label

_ROUNDS: Final = 50
_ROUNDING: Final = 1e-14


class _OnOutputs(FiniteMechanism):
    """Randomized response over d outputs, each of them the true one of some labels."""

    @cached_property
    def bins(self) -> IntArray:
        """The position of each label's own output: the likeliest, shape (k,)."""
        return np.asarray(self.channel.matrix.argmax(axis=1), dtype=np.int32)

    @cached_property
    def weights(self) -> WeightTable:
        """The channel as integers; their own ε is never above the target."""
        k, d = self.channel.matrix.shape
        low = math.ceil(TOTAL / (Fraction(lowered_growth(self.target_epsilon)) + d))
        table = np.full((k, d), low, dtype=np.uint64)
        table[np.arange(k), self.bins] = TOTAL - (d - 1) * low
        return WeightTable(table)

    def parametrisations(self) -> dict[str, float]:
        noise = noise_on(len(self.channel.outputs), self.epsilon)
        return super().parametrisations() | {"lambda": noise}

    def worst_rows(self) -> Sequence[int]:
        """Return a label of each of two outputs."""
        _, first = np.unique(self.bins, return_index=True)
        return [int(label) for label in first[:2]]


def _on_outputs(
    classes: tuple[Label, ...], epsilon: float, own: IndexArray, outputs: tuple[float, ...]
) -> Channel:
    """Return e^ε/(e^ε + d − 1) at a label's own output, 1/(e^ε + d − 1) at each other one."""
    growth, d = lowered_growth(epsilon), len(outputs)
    low = 1 / (growth + d)
    matrix = np.full((len(classes), d), low)
    matrix[np.arange(len(classes)), own] = low * (1 + growth)
    return Channel(matrix, classes, outputs)


def _bins_channel(
    classes: tuple[Label, ...],
    target_epsilon: float,
    starts: tuple[int, ...],
    outputs: tuple[float, ...],
) -> Channel:
    own = np.searchsorted(starts, np.arange(len(classes)), side="right") - 1
    return _on_outputs(classes, target_epsilon, own, outputs)


def _check_bins(
    classes: tuple[Label, ...],
    target_epsilon: float,
    starts: tuple[int, ...],
    outputs: tuple[float, ...],
) -> None:
    lowered_growth(target_epsilon)
    if not starts or starts[0] != 0 or list(starts) != sorted(set(starts)):
        raise InputError("The bins must start at label code 0 and increase.")
    if starts[-1] >= len(classes) or len(outputs) != len(starts):
        raise InputError("Each bin must hold a label and have one output.")
    if not all(map(math.isfinite, outputs)) or len(set(outputs)) < len(outputs):
        raise InputError("The outputs of the bins must be finite and distinct.")


def _codes(starts: Any) -> tuple[Any, ...]:
    codes = check_list("bins' starts", starts)
    if not all(isinstance(v, int) and not isinstance(v, bool) for v in codes):
        raise InputError("The bins must start at label codes, which are integers.")
    return codes


def _numbers(outputs: Any) -> tuple[float, ...]:
    return tuple(check_number("outputs", v) for v in check_list("bins' outputs", outputs))


def _described(m: FiniteMechanism) -> str:
    bins, epsilon = len(m.starts), m.target_epsilon
    keep = math.exp(-np.logaddexp(0, math.log(bins - 1) - epsilon)) if bins > 1 else 1
    return (
        f"randomized response on {bins} bins of {len(m.classes)} labels, "
        f"ε = {epsilon:.6g} nats, own bin with probability {keep:.6g}"
    )


def optimal_bins(
    classes: Sequence[Label],
    prior: Sequence[float] | FloatArray,
    epsilon: float,
    loss: Loss = "squared",
) -> Design:
    """Return the RR-on-Bins of least expected loss: optimal among all ε-DP channels."""
    # The loss of a partition into d bins is Σ L(bin)/(d − 1 + e^ε). Dinkelbach's iteration (1967)
    # turns the ratio into a price per bin: for a price λ the partition that minimises Σ (L(bin) −
    # λ) is found by dynamic programming in O(k²). Its ratio is the next price, until the price no
    # longer changes. No table over d is needed.
    # Ghazi et al. (2023), Theorem 5 and Algorithm 2.
    labels, epsilon = check_numeric_classes(classes), check_epsilon(epsilon)
    values = np.asarray(labels, dtype=np.float64)
    weights, growth = check_prior(prior, len(labels)), math.expm1(epsilon)
    costs, k = bin_costs(loss, values, weights, growth), len(labels)

    def ratio(starts: list[int]) -> float:
        bins = zip(starts, [*starts[1:], k], strict=True)
        return sum(costs.cost(start, end - 1) for start, end in bins) / (len(starts) + growth)

    starts = min(_even_bins(weights), key=ratio)
    price = ratio(starts)
    for _ in range(_ROUNDS):
        cheaper = costs.cheapest(price)
        if not ratio(cheaper) < price * (1 - _ROUNDING):
            break
        # The price falls with each round, so no partition comes twice.
        starts, price = cheaper, ratio(cheaper)
    starts, outputs = _distinct(costs, starts, k)
    # Costs are relative to releasing each label unchanged.
    value = float(weights @ loss_of(loss, values, values)) + ratio(starts)
    return Design(RROnBins(labels, epsilon, starts, outputs), value, value, "dynamic-program")


def _even_bins(prior: FloatArray) -> list[list[int]]:
    """Return partitions into 1, 2, 4, … bins of about equal probability."""
    cumulative, k = np.cumsum(prior), len(prior)
    counts = [1 << power for power in range(k.bit_length()) if 1 << power <= k]
    cuts = [np.searchsorted(cumulative, np.arange(1, n) / n) + 1 for n in counts]
    return [[0, *sorted({int(cut) for cut in one if cut < k})] for one in cuts]


def _distinct(costs: "BinCosts", starts: list[int], k: int) -> tuple[list[int], list[float]]:
    """Merge neighbouring bins with one output: in an optimal partition this costs nothing."""
    while True:
        ends = [*starts[1:], k]
        outputs = [costs.output(s, e - 1) for s, e in zip(starts, ends, strict=True)]
        rising = [0, *(i for i in range(1, len(starts)) if outputs[i] > outputs[i - 1])]
        if len(rising) == len(starts):
            return starts, outputs
        starts = [starts[i] for i in rising]


@dataclass(frozen=True)
class BinCosts:
    """The costs of all bins of k labels: L(bin) = min_m Σ_y p_y e^{ε·1[y in bin]} ℓ(m, y).

    Losses are relative to releasing each label unchanged. ``ending_at`` gives the costs of the
    bins that end with a label, one for each of the first labels; ``output`` the best output of
    the bin from a first to a last label.
    """

    k: int
    ending_at: Callable[[int, slice | IndexArray], FloatArray]
    output: Callable[[int, int], float]

    def cost(self, first: int, last: int) -> float:
        """Return the cost of the bin first … last."""
        return float(self.ending_at(last, slice(first, first + 1))[0])

    def cheapest(self, price: float) -> list[int]:
        """Return the first labels of the partition into bins that minimises Σ (cost − price)."""
        value, start = np.zeros(self.k + 1), np.zeros(self.k + 1, dtype=np.int64)
        for end in range(1, self.k + 1):
            candidates = self.ending_at(end - 1, slice(0, end)) + value[:end]
            start[end] = best = int(candidates.argmin())
            value[end] = candidates[best] - price
        starts, end = [], self.k
        while end > 0:
            end = int(start[end])
            starts.append(end)
        return starts[::-1]


def bin_costs(name: Loss, labels: FloatArray, prior: FloatArray, growth: float) -> BinCosts:
    """Return the costs of bins for a loss at e^ε = 1 + growth; labels and prior of shape (k,)."""
    centre = float(prior @ labels)
    if name == "squared":
        return _mean_costs(labels, prior, growth, centre, lambda sums, of: 0.5 * sums * sums / of)
    if name == "absolute":
        return _absolute(labels, prior, growth)
    if name != "poisson":
        raise InputError(f"The loss must be squared, absolute or poisson. Got {name!r} instead.")
    if labels[0] < 0:
        raise InputError("The Poisson log loss must be used with labels that are not negative.")
    return _mean_costs(labels, prior, growth, 0.0, lambda sums, of: xlogy(sums, sums / of))


def _cumulative(values: FloatArray) -> FloatArray:
    return np.concatenate([[0.0], np.cumsum(values)])


def _mean_costs(
    labels: FloatArray,
    prior: FloatArray,
    growth: float,
    centre: float,
    convex: Callable[[FloatArray, FloatArray], Any],
) -> BinCosts:
    """Return the costs of ½(m − y)² or m − y − y log(m/y): the weighted mean is the best output.

    For weights w of sum W and moment M they are Σ w φ(y) − W φ(M/W), with φ(y) = ½y² or y log y;
    ``convex`` returns W φ(M/W) of M and W, and ``centre`` is taken off the labels.
    """
    points = labels - centre
    values = convex(points, np.ones(len(points)))
    mass, moment, curve = (growth * _cumulative(prior * by) for by in (1.0, points, values))
    mean, everywhere = float(prior @ points), float(prior @ values)

    def ending_at(last: int, starts: slice | IndexArray) -> FloatArray:
        weight = 1 + mass[last + 1] - mass[starts]
        of_bin = mean + moment[last + 1] - moment[starts]
        return np.asarray(everywhere + curve[last + 1] - curve[starts] - convex(of_bin, weight))

    def output(start: int, last: int) -> float:
        of_bin = mean + moment[last + 1] - moment[start]
        return float(centre + of_bin / (1 + mass[last + 1] - mass[start]))

    return BinCosts(len(labels), ending_at, output)


def _absolute(labels: FloatArray, prior: FloatArray, growth: float) -> BinCosts:
    """|m − y|: the best output is a weighted median, one of the labels."""
    k, mass, first = len(labels), _cumulative(prior), _cumulative(prior * labels)

    def ending_at(last: int, starts: slice | IndexArray) -> FloatArray:
        """Return Σ weight · |median − y| of each bin."""
        firsts = np.arange(k)[starts]
        middle = medians(firsts, last)
        inside = np.clip(middle, firsts, last + 1)
        everywhere = distance(middle, 0, middle, k)
        return np.asarray(everywhere + growth * distance(middle, firsts, inside, last + 1))

    def distance(
        middle: IndexArray, start: int | IndexArray, turn: IndexArray, end: int
    ) -> FloatArray:
        """Return Σ p|label[median] − y| over start … end − 1; below the median before ``turn``."""
        label = labels[middle]
        below = label * (mass[turn] - mass[start]) - (first[turn] - first[start])
        return np.asarray(below + first[end] - first[turn] - label * (mass[end] - mass[turn]))

    def medians(firsts: IndexArray, last: int) -> IndexArray:
        """Return the first label up to which half the weight lies: before, in or after the bin."""
        upto = mass[1:]
        extra = growth * (mass[last + 1] - mass[firsts])
        half = 0.5 * (mass[-1] + extra)
        before = np.searchsorted(upto, half)
        within = (half + growth * mass[firsts]) / (1 + growth)
        inside = np.maximum(np.searchsorted(upto, within), firsts)
        after = np.maximum(np.searchsorted(upto, half - extra), last)
        place = np.where(before < firsts, before, np.where(inside <= last, inside, after))
        return np.asarray(np.minimum(place, k - 1), dtype=np.int64)

    def output(start: int, last: int) -> float:
        return float(labels[medians(np.array([start]), last)[0]])

    return BinCosts(k, ending_at, output)


RROnBins: Final[Family] = Family(
    traits=numeric_traits("rr-on-bins", "RR-on-Bins", DESIGN, "prior"),
    parameters=(
        Parameter("classes", check_numeric_classes),
        Parameter("epsilon", check_epsilon, "target_epsilon"),
        Parameter("starts", _codes),
        Parameter("outputs", _numbers),
    ),
    channel=_bins_channel,
    describe=_described,
    kind=_OnOutputs,
    check=_check_bins,
    best=lambda *problem: optimal_bins(*problem).mechanism,
    designs={
        # For every loss that grows with the distance: Ghazi et al. (2023), Theorem 5.
        "": lambda p: Proposal(
            optimal_bins(p.labels.classes, p.prior, p.epsilon, p.loss).mechanism,
            "all ε-label-DP mechanisms",
        )
    },
)
"""Randomized response over d bins of neighbouring labels: ``starts`` are the codes of each bin's
first label, ``outputs`` each bin's number."""


def debiased_outputs(labels: FloatArray, growth: float) -> FloatArray:
    """Return Φ(y) = ((e^ε + k − 1)y − Σ y')/(e^ε − 1) for e^ε = 1 + growth, shape (k,) → (k,)."""
    # Badanidiyuru et al. (2023), Definition 23.
    return np.asarray(labels + (len(labels) * labels - labels.sum()) / growth)


def _debiased_channel(classes: tuple[Label, ...], target_epsilon: float) -> Channel:
    labels = np.asarray(classes, dtype=np.float64)
    outputs = debiased_outputs(labels, lowered_growth(target_epsilon))
    return _on_outputs(classes, target_epsilon, np.arange(len(labels)), tuple(outputs.tolist()))


DebiasedRR: Final[Family] = Family(
    traits=replace(
        RROnBins.traits,
        name="debiased-rr",
        title="debiased randomized response",
        options=("epsilon", *CLASSES, "round"),
        needs=frozenset(),
    ),
    parameters=RROnBins.parameters[:2],
    channel=_debiased_channel,
    describe=lambda m: (
        f"debiased randomized response on {len(m.classes)} labels: ε = {m.target_epsilon:.6g} "
        "nats, own output with probability "
        f"{1 / (1 + (len(m.classes) - 1) * math.exp(-m.target_epsilon)):.6g}"
    ),
    kind=_OnOutputs,
    check=lambda classes, target_epsilon: lowered_growth(target_epsilon),  # noqa: ARG005
    tolerance=UNBIASED,
    designs={"": lambda p: Proposal(DebiasedRR(p.labels.classes, p.epsilon))},
)
"""k-ary randomized response that releases Φ(y) instead of y, so that E[ŷ | y] = y."""
