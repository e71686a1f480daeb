"""Who knows one row's label and what noise did to it guesses another's, where noise is shared."""

import numpy as np
from estimators.worlds import people_of_homes

from ldpaudit.estimators.assumptions.clusters import disjoint_pairs
from ldpaudit.estimators.assumptions.neighbours import neighbour_guesses
from ldpaudit.estimators.epsilon.guesses import epsilon_lower

PAIRS = np.arange(0, 2000, 2), np.arange(1, 2000, 2)


def test_the_neighbours_bound_finds_shared_noise_but_not_that_of_one_person() -> None:
    for k in (2, 4):
        rng = np.random.default_rng(0)
        truth, released, home = people_of_homes(rng, 1000, 2, 1.0, shared=True, k=k)
        found = neighbour_guesses(truth, released, *PAIRS, rng)
        assert epsilon_lower(found, 0.05).epsilon > 2.5
    own = truth[2 * home]
    released = np.where(released != truth, 1 - own, own).astype(np.int32)
    assert neighbour_guesses(own, released, *PAIRS, rng).candidates == 0


def test_pairs_are_disjoint_and_of_one_cluster() -> None:
    rng = np.random.default_rng(0)
    clusters = rng.integers(0, 40, 300)
    first, second = disjoint_pairs(clusters, rng)
    assert (clusters[first] == clusters[second]).all()
    paired = len(np.unique(np.r_[first, second]))
    assert paired == 2 * len(first) == 2 * (np.bincount(clusters) // 2).sum()
