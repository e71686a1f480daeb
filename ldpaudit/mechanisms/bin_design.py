"""Find the best bins for RR-on-Bins: the least expected loss of any ε-DP channel."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ldpaudit.mechanisms.bin_costs import BinCosts, bin_costs
from ldpaudit.mechanisms.losses import Loss
from ldpaudit.mechanisms.losses import loss as loss_of
from ldpaudit.mechanisms.parameters import check_epsilon, check_numeric_classes, check_prior
from ldpaudit.mechanisms.rr_on_bins import RROnBins
from ldpaudit.release import FloatArray, Label

_ROUNDS = 50


@dataclass(frozen=True)
class BinDesign:
    """The best bins for a prior.

    Parameters
    ----------
    mechanism : RROnBins
        The mechanism.
    loss : float
        Its expected loss; no ε-DP channel has a smaller one.
    rounds : int
        How many partitions were solved for.
    """

    mechanism: RROnBins
    loss: float
    rounds: int


def optimal_bins(
    classes: Sequence[Label],
    prior: Sequence[float] | FloatArray,
    epsilon: float,
    loss: Loss = "squared",
) -> BinDesign:
    """Return the RR-on-Bins of least expected loss: optimal among all ε-DP channels.

    The loss of a partition into d bins is Σ L(bin)/(d − 1 + e^ε). Dinkelbach's iteration (1967)
    turns the ratio into a price per bin: for a price λ the partition that minimises Σ (L(bin) − λ)
    is found by dynamic programming in O(k²), and its ratio is the next price, until the price
    stays. No table over d is needed.

    Parameters
    ----------
    classes : sequence of k numbers
        The labels in increasing order.
    prior : float64 array of shape (k,)
        Their probabilities. The bins depend on it: it must be public or private itself.
    epsilon : float
        ε in nats.
    loss : {"squared", "absolute", "poisson"}
        What to minimise.

    References
    ----------
    Ghazi et al. (2023), Theorem 5 and Algorithm 2.
    """
    labels, epsilon = check_numeric_classes(classes), check_epsilon(epsilon)
    values = np.asarray(labels, dtype=np.float64)
    weights, growth = check_prior(prior, len(labels)), math.expm1(epsilon)
    costs = bin_costs(loss, values, weights, growth)
    starts, rounds = _dinkelbach(costs, weights, growth)
    starts, outputs = _distinct(costs, starts, len(values))
    # Costs count from the loss of releasing each label as it is.
    perfect = float(weights @ loss_of(loss, values, values))
    value = perfect + _ratio(costs, starts, len(values), growth)
    return BinDesign(RROnBins(labels, epsilon, tuple(starts), tuple(outputs)), value, rounds)


def _dinkelbach(costs: BinCosts, prior: FloatArray, growth: float) -> tuple[list[int], int]:
    best = min(_first_guesses(prior), key=lambda starts: _ratio(costs, starts, len(prior), growth))
    price = _ratio(costs, best, len(prior), growth)
    for rounds in range(1, _ROUNDS + 1):
        starts = _cheapest_partition(costs, len(prior), price)
        ratio = _ratio(costs, starts, len(prior), growth)
        if not ratio < price:
            return best, rounds
        # The price falls with each round, so no partition comes twice.
        best, price = starts, ratio
    return best, _ROUNDS


def _first_guesses(prior: FloatArray) -> list[list[int]]:
    """Return partitions into 1, 2, 4, … bins of about equal probability."""
    cumulative, k = np.cumsum(prior), len(prior)
    counts = [1 << power for power in range(k.bit_length()) if 1 << power <= k]
    guesses = []
    for count in counts:
        cuts = np.searchsorted(cumulative, np.arange(1, count) / count) + 1
        guesses.append([0, *sorted({int(cut) for cut in cuts if cut < k})])
    return guesses


def _ratio(costs: BinCosts, starts: list[int], k: int, growth: float) -> float:
    ends = [*starts[1:], k]
    total = sum(
        float(costs.ending_at(end - 1)[start]) for start, end in zip(starts, ends, strict=True)
    )
    return total / (len(starts) + growth)


def _cheapest_partition(costs: BinCosts, k: int, price: float) -> list[int]:
    """Minimise Σ (L(bin) − price) over the partitions into neighbouring labels."""
    value = np.zeros(k + 1)
    start = np.zeros(k + 1, dtype=np.int64)
    for last in range(k):
        candidates = costs.ending_at(last) + value[: last + 1]
        start[last + 1] = best = int(candidates.argmin())
        value[last + 1] = candidates[best] - price
    starts, end = [], k
    while end > 0:
        end = int(start[end])
        starts.append(end)
    return starts[::-1]


def _distinct(costs: BinCosts, starts: list[int], k: int) -> tuple[list[int], list[float]]:
    """Merge neighbouring bins with one output: in an optimal partition this costs nothing."""
    while True:
        ends = [*starts[1:], k]
        outputs = [costs.output(s, e - 1) for s, e in zip(starts, ends, strict=True)]
        rising = [0, *(i for i in range(1, len(starts)) if outputs[i] > outputs[i - 1])]
        if len(rising) == len(starts):
            return starts, outputs
        starts = [starts[i] for i in rising]
