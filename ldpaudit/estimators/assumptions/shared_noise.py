"""Is noise drawn for each row on its own? And what a neighbour's noise gives away of a label."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
from scipy.stats import binom

from ldpaudit.estimators.assumptions.bets import bet_on_pairs, disjoint_pairs, p_value
from ldpaudit.estimators.assumptions.clusters import has_pairs
from ldpaudit.estimators.assumptions.order import OrderTest
from ldpaudit.estimators.epsilon.guesses import GuessCounts
from ldpaudit.release import BoolArray, FloatArray, IndexArray, IntArray

FEWEST_PAIRS: Final = 30
LAGS, STRETCH, BLOCKS = "lags", "stretch", "blocks"
ORDER_SHARES: Final = {LAGS: 0.25, STRETCH: 0.125, BLOCKS: 0.125}
"""Of the error probability; kinds of clusters have the other half."""
_PRIOR_ROWS: Final = 5.0


@dataclass(frozen=True)
class NoiseTest:
    """Whether rows share noise, and which.

    Attributes
    ----------
    by_clusters : mapping from name to float
        The p-value of each kind of cluster, were it the only one.
    shares : mapping from name to float
        The share of the error probability of each kind, and of each test of the order.
    order : OrderTest
        What noise shows along the file.
    """

    by_clusters: Mapping[str, float]
    shares: Mapping[str, float]
    order: OrderTest

    @property
    def p_value(self) -> float:
        """Valid for all ways to share at once."""
        return min(self.corrected(name) for name in self._p_values)

    @property
    def _p_values(self) -> dict[str, float]:
        return {
            LAGS: self.order.lags.p_value,
            STRETCH: self.order.stretch.p_value,
            BLOCKS: self.order.blocks.p_value,
            **self.by_clusters,
        }

    def corrected(self, name: str) -> float:
        """Return the p-value of one way to share, valid for all at once."""
        return min(1.0, self._p_values[name] / self.shares[name])

    def shared(self, alpha: float) -> list[str]:
        """Return the kinds of clusters that share noise at an error probability for all tests."""
        return [name for name in self.by_clusters if self.corrected(name) <= alpha]

    def less_clear(self, other: "NoiseTest") -> "NoiseTest":
        """Return what both tests show."""
        kinds = {name: max(p, other.by_clusters[name]) for name, p in self.by_clusters.items()}
        return NoiseTest(kinds, self.shares, self.order.least_clear(other.order))


def noise_test(
    outcomes: FloatArray,
    chances: FloatArray,
    kinds: Mapping[str, IndexArray],
    rng: np.random.Generator,
    order: OrderTest,
    shares: Mapping[str, float] | None = None,
) -> NoiseTest:
    """Test whether rows of one cluster have noise of their own, with what their order showed.

    Parameters
    ----------
    outcomes : float64 array of shape (n,)
        1 where noise changed the label, else 0.
    chances : float64 array of shape (n,)
        The chance of that, were noise independent.
    kinds : mapping from name to int64 array of shape (n,)
        Codes of rows that may share noise, chosen without the released labels.
    order : OrderTest
        Has half of the error probability.
    shares : mapping from name to float, optional
        That of each kind; default: equal ones.
    """
    shares = shares or dict.fromkeys(kinds, 0.5 / max(len(kinds), 1))
    by_clusters = {}
    for name, codes in kinds.items():
        if has_pairs(codes, FEWEST_PAIRS):
            wealth = bet_on_pairs(outcomes, chances, *disjoint_pairs(codes, rng))
            by_clusters[name] = p_value(wealth)
    return NoiseTest(by_clusters, ORDER_SHARES | dict(shares), order)


def flip_chances(
    flips: BoolArray, strata: IndexArray, prior_rows: float = _PRIOR_ROWS
) -> FloatArray:
    """Return the share of flips in each row's stratum, drawn a little to that of all; (n,).

    ``prior_rows``: so many rows of the mean are added to each stratum.
    """
    rows = np.bincount(strata)
    ones = np.bincount(strata, weights=flips)
    overall = float(flips.mean())
    every = np.maximum(rows + prior_rows, 1.0)
    return np.asarray(((ones + prior_rows * overall) / every)[strata])


def agreement_p_value(
    labels: IntArray, first: IndexArray, second: IndexArray, most: float
) -> float:
    """Return the p-value of "independent noise, and agreement has a chance of at most ``most``".

    ``labels``: int32 of shape (n,); disjoint pairs of rows. Exact binomial tail (Hoeffding 1956 for
    chances that differ).
    """
    agreeing = int(np.sum(labels[first] == labels[second]))
    return float(binom.sf(agreeing - 1, len(first), most)) if len(first) else 1.0


def largest_agreement(channel: FloatArray) -> float:
    """Return the largest chance that two labels released independently agree.

    ``channel``: float64 of shape (k, m). max over y, y' of Σ_z P(z|y) P(z|y').
    """
    return float(np.square(channel).sum(axis=1).max())


def neighbour_guesses(
    truth: IntArray,
    released: IntArray,
    first: IndexArray,
    second: IndexArray,
    rng: np.random.Generator,
) -> GuessCounts:
    """Guess labels from what was released of them and from the noise of a neighbour.

    Who knows the neighbour's true label sees whether noise changed it. If noise is shared the same
    happened here: a label that was kept is the true one, a label that was changed is not.

    Parameters
    ----------
    truth, released : int32 arrays of shape (n,)
        Codes of the same labels.
    first, second : int64 arrays of shape (p,)
        Disjoint pairs; noise is independent from pair to pair.

    Returns
    -------
    GuessCounts
        Candidates are pairs of pairs whose neighbours have the same true label and whose own
        labels differ. A fair coin picks one of the two, so that given everything else its label is
        one of two equally likely ones.
    """
    own, beside = truth[first], truth[second]
    order = rng.permutation(len(first))
    order = order[np.argsort(beside[order], kind="stable")]
    edges = np.flatnonzero(np.diff(beside[order])) + 1
    chosen, decoys = [], []
    for alike in np.split(order, edges):
        places = alike[np.argsort(own[alike], kind="stable")]
        half = len(places) // 2
        one, other = places[:half], places[len(places) - half :]
        differ = own[one] != own[other]
        one, other = one[differ], other[differ]
        coin = rng.random(len(one)) < 0.5
        chosen.append(np.where(coin, one, other))
        decoys.append(own[np.where(coin, other, one)])
    rows, decoy = np.concatenate(chosen), np.concatenate(decoys)
    changed = released[second[rows]] != beside[rows]
    label, seen = own[rows], released[first[rows]]
    says_label = np.where(changed, seen == decoy, seen == label)
    says_decoy = np.where(changed, seen == label, seen == decoy)
    return GuessCounts(len(rows), int(says_label.sum()), int(says_decoy.sum()))
