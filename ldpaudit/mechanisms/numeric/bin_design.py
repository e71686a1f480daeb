"""Find the best bins for RR-on-Bins: the least expected loss of any ε-DP channel."""

import math
from collections.abc import Callable, Sequence

import numpy as np

from ldpaudit.mechanisms.design import Design
from ldpaudit.mechanisms.losses import Loss
from ldpaudit.mechanisms.losses import loss as loss_of
from ldpaudit.mechanisms.numeric.bin_costs import BinCosts, bin_costs
from ldpaudit.mechanisms.numeric.rr_on_bins import RROnBins
from ldpaudit.mechanisms.parameters import check_epsilon, check_numeric_classes, check_prior
from ldpaudit.release import FloatArray, Label

_ROUNDS = 50
_ROUNDING = 1e-14


def optimal_bins(
    classes: Sequence[Label],
    prior: Sequence[float] | FloatArray,
    epsilon: float,
    loss: Loss = "squared",
) -> Design:
    """Return the RR-on-Bins of least expected loss: optimal among all ε-DP channels.

    The loss of a partition into d bins is Σ L(bin)/(d − 1 + e^ε). Dinkelbach's iteration (1967)
    turns the ratio into a price per bin: for a price λ the partition that minimises Σ (L(bin) − λ)
    is found by dynamic programming in O(k²). Its ratio is the next price, until the price no
    longer changes. No table over d is needed.

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
    starts, outputs = _distinct(costs, _dinkelbach(costs, weights, growth), len(values))
    # Costs are relative to releasing each label unchanged.
    perfect = float(weights @ loss_of(loss, values, values))
    value = perfect + _ratio(costs, starts, len(values), growth)
    mechanism = RROnBins(labels, epsilon, tuple(starts), tuple(outputs))
    return Design(mechanism, value, value, "dynamic-program")


def _dinkelbach(costs: BinCosts, prior: FloatArray, growth: float) -> list[int]:
    k = len(prior)
    best = min(_even_bins(prior), key=lambda starts: _ratio(costs, starts, k, growth))
    best = _improved(costs.guess, costs, best, k, growth)
    return _improved(costs.cheapest, costs, best, k, growth)


def _improved(
    cheapest: Callable[[float], list[int]],
    costs: BinCosts,
    best: list[int],
    k: int,
    growth: float,
) -> list[int]:
    """Lower the price as long as the cheapest partition has a lower ratio."""
    price = _ratio(costs, best, k, growth)
    for _ in range(_ROUNDS):
        starts = cheapest(price)
        ratio = _ratio(costs, starts, k, growth)
        if not ratio < price * (1 - _ROUNDING):
            break
        # The price falls with each round, so no partition comes twice.
        best, price = starts, ratio
    return best


def _even_bins(prior: FloatArray) -> list[list[int]]:
    """Return partitions into 1, 2, 4, … bins of about equal probability."""
    cumulative, k = np.cumsum(prior), len(prior)
    counts = [1 << power for power in range(k.bit_length()) if 1 << power <= k]
    guesses = []
    for count in counts:
        cuts = np.searchsorted(cumulative, np.arange(1, count) / count) + 1
        guesses.append([0, *sorted({int(cut) for cut in cuts if cut < k})])
    return guesses


def _ratio(costs: BinCosts, starts: list[int], k: int, growth: float) -> float:
    bins = zip(starts, [*starts[1:], k], strict=True)
    return sum(costs.cost(start, end - 1) for start, end in bins) / (len(starts) + growth)


def _distinct(costs: BinCosts, starts: list[int], k: int) -> tuple[list[int], list[float]]:
    """Merge neighbouring bins with one output: in an optimal partition this costs nothing."""
    while True:
        ends = [*starts[1:], k]
        outputs = [costs.output(s, e - 1) for s, e in zip(starts, ends, strict=True)]
        rising = [0, *(i for i in range(1, len(starts)) if outputs[i] > outputs[i - 1])]
        if len(rising) == len(starts):
            return starts, outputs
        starts = [starts[i] for i in rising]
