"""The stronger of two bounds: what each method's share of the error is, and how it is chosen."""

import math

import numpy as np
import pytest
from estimators.worlds import (
    ASYMMETRIC,
    ASYMMETRIC_THREE,
    NARROW,
    RARE,
    counted,
    randomized_response,
    ranked,
)

from ldpaudit.error_budget import STRONGEST
from ldpaudit.estimators.epsilon.accuracy import best_plan
from ldpaudit.estimators.epsilon.bounds import Strongest
from ldpaudit.estimators.epsilon.events import _groups
from ldpaudit.estimators.epsilon.strongest import (
    METHODS,
    BoundEvidence,
    RankedRows,
    design_bounds,
    epsilon_evidence,
    presumed_channel,
    subgroup_tests,
)
from ldpaudit.release import FloatArray

RR = randomized_response(2, 1.0)


def expected(channel: FloatArray, rows: list[int]) -> BoundEvidence:
    """Return the evidence of the expected counts."""
    counts = np.round(channel * np.array(rows)[:, None]).astype(int)
    found = epsilon_evidence(counts, channel, np.random.default_rng(0))
    assert found is not None
    return found


def test_the_correction_costs_little() -> None:
    found = expected(RR, [50_000, 50_000])
    assert found.design.weights[found.design.primary] == STRONGEST["primary"]
    alone = found.by_method(found.design.primary, 0.05).epsilon
    assert alone - 0.001 < found.bound(0.05).epsilon < alone
    assert found.bound(0.05).alpha == 0.05


def test_every_method_finds_a_strong_leak() -> None:
    found = expected(randomized_response(3, 3.0), [4000, 3000, 2000])
    assert all(2.5 < found.by_method(method, 0.05).epsilon < 3.0 for method in METHODS)
    # Outputs may differ from labels.
    assert 0.64 < expected(NARROW, [60_000, 40_000]).bound(0.05).epsilon < math.log(2)


@pytest.mark.parametrize("channel", [RARE, ASYMMETRIC_THREE, randomized_response(3, 1.0)])
def test_the_shares_sum_to_one_however_the_evidence_is_read(channel: FloatArray) -> None:
    design = design_bounds(np.full(len(channel), 500), channel)
    assert design is not None
    shared = (
        design.weights["odds-ratio"]
        if np.array_equal(design.pair.groups, design.odds.groups)
        else 0.0
    )
    assert sum(design.weights.values()) - shared == pytest.approx(1.0)
    assert sum(design.weights[method] for method in METHODS) <= 1.0


def test_unequal_classes_are_thinned_to_what_epsilon_allows() -> None:
    plan, bound = best_plan(np.array([90_000, 10_000]), RR, 0.05)
    assert plan.sizes.min() == 10_000
    # More of the frequent class than e times the rare one would make a constant guess as good.
    assert 1.5 < plan.sizes.max() / plan.sizes.min() < math.e
    assert 0.97 < bound < 1.0


def test_a_pilot_that_fits_randomized_response_is_taken_for_it() -> None:
    channel, rng = randomized_response(5, 2.0), np.random.default_rng(0)
    found = [presumed_channel(counted(np.full(5, 200), channel, rng)) for _ in range(20)]
    taken = [one for one in found if np.unique(np.round(one, 12)).size == 2]
    assert all(np.abs(one - channel).max() < 0.05 for one in taken)
    # One pilot in twenty does not look like it: fewer than 15 of 20 do with probability 3e-4.
    assert len(taken) >= 15
    skewed = presumed_channel(np.array([[900, 100], [500, 500]]))
    assert np.abs(skewed - ASYMMETRIC).max() < 0.01
    assert np.allclose(presumed_channel(np.zeros((2, 3), dtype=int)).sum(axis=1), 1)


def test_a_group_that_gets_the_other_label_is_found() -> None:
    rng, turned = np.random.default_rng(5), []
    for n in (2000, 4000):
        part = ranked(n, 2, 1.0, rng)
        low = part.scores < np.quantile(part.scores, 0.1)
        released = np.where(low, 1 - part.truth, part.released).astype(np.int32)
        turned.append(RankedRows(part.scores, part.truth, released))
    tests = subgroup_tests(turned[0], turned[1], (2, 2), 1.0, rng)
    assert Strongest(tests).bound(0.005).epsilon > 2.5
    assert sum(test.share for test in tests) == pytest.approx(1)


def test_labels_that_are_surely_extreme_are_a_pair_though_a_rare_one_looks_more_so() -> None:
    sizes = np.array([2_000, 2_000, 0, 2_000, 5])
    seen = np.array([[0.5, 0.5], [0.3, 0.7], [0.0, 1.0], [0.2, 0.8], [0.9, 0.1]])
    found = [groups.tolist() for groups in _groups(sizes, seen)]
    assert [1, -1, -1, 0, -1] in found
    assert [0, 0, -1, 0, 1] in found
    assert [1, 1, -1, 0, 1] in found
