"""Shares and p-values of several releases, by their definitions."""

import numpy as np
import pytest
from scipy.stats import binom, binomtest

from ldpaudit.estimators.assumptions.lags import LagTest
from ldpaudit.estimators.assumptions.order import OrderTest, Stretch
from ldpaudit.estimators.assumptions.shared_noise import (
    ORDER_SHARES,
    NoiseTest,
    agreement_p_value,
    flip_chances,
    noise_test,
)
from ldpaudit.estimators.person import without_truth
from ldpaudit.estimators.person.noise import agreement_share, fresh_agreement
from ldpaudit.mechanisms.response.randomized_response import RandomizedResponse

RR = RandomizedResponse.from_epsilon((0, 1), 1.0).channel.matrix


def test_the_share_of_remembered_answers() -> None:
    """Agreement is s + (1 − s)·expected; Clopper–Pearson's ends at α/2 each."""
    ends = binomtest(160, 200).proportion_ci(0.9, "exact")
    expected = [(a - 0.6) / 0.4 for a in (0.8, ends.low, ends.high)]
    assert agreement_share(160, 200, 0.6, 0.1) == pytest.approx(expected)
    assert agreement_share(90, 200, 0.6, 0.1) == (0.0, 0.0, 0.0)
    assert agreement_share(200, 200, 0.6, 0.1)[2] == 1.0


def test_fresh_answers_agree_as_often_as_their_rows() -> None:
    sizes = np.array([30, 10])
    other = np.array([[0.9, 0.1], [0.3, 0.7]])
    expected = (30 * (RR[0] @ other[0]) + 10 * (RR[1] @ other[1])) / 40
    assert fresh_agreement(RR, other, sizes) == pytest.approx(expected)


@pytest.mark.parametrize("agreeing", [60, 75, 95])
def test_the_p_value_of_fresh_noise_is_twice_the_smaller(agreeing: int) -> None:
    half = agreeing // 2
    counts = np.array([[half, (100 - agreeing) // 2], [100 - agreeing - (100 - agreeing) // 2, 0]])
    counts[1, 1] = agreeing - half
    most = (RR @ RR.T).max()
    agreed = binom.sf(agreeing - 1, 100, most)
    mixture = np.kron(RR, RR)
    mixed = without_truth._mixture_p_value(counts, mixture)
    found = without_truth.fresh_p_value(counts, RR, RR)
    assert found == pytest.approx(min(1.0, 2 * min(agreed, mixed)))
    assert without_truth.largest_agreement(RR, RR) == most


def test_a_large_mixture_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(without_truth, "_LARGEST", 15)
    counts = np.array([[40, 10], [10, 40]])
    assert without_truth.remembered_p_value(counts, RR, RR) is None
    most = (RR @ RR.T).max()
    assert without_truth.fresh_p_value(counts, RR, RR) == pytest.approx(binom.sf(79, 100, most))
    monkeypatch.setattr(without_truth, "_LARGEST", 16)
    assert without_truth.remembered_p_value(counts, RR, RR) is not None


def test_remembered_answers_are_the_same_where_labels_are() -> None:
    found = without_truth.remembered_mixture(RR, RR).reshape(2, 2, 2, 2)
    assert found[0, 0] == pytest.approx(np.diag(RR[0]))
    assert found[0, 1] == pytest.approx(np.outer(RR[0], RR[1]))
    assert without_truth.fresh_mixture(RR, RR).sum(axis=1) == pytest.approx(1)


def test_a_share_of_answers_given_twice_is_bounded() -> None:
    most = (RR @ RR.T).max()
    low = binomtest(95, 100).proportion_ci(0.9, "exact").low
    found = without_truth.remembered_share_lower(95, 100, RR, RR, 0.05)
    assert found == pytest.approx((low - most) / (1 - most))
    assert without_truth.remembered_share_lower(10, 100, RR, RR, 0.05) == 0.0
    assert without_truth.remembered_share_lower(100, 100, np.eye(2), np.eye(2), 0.05) == 0.0


def test_the_smallest_of_several_ways_to_share_noise() -> None:
    rng = np.random.default_rng(0)
    outcomes, chances = (rng.random(400) < 0.3).astype(float), np.full(400, 0.3)
    kinds = {"a": np.repeat(np.arange(200), 2), "few": np.arange(400)}
    order = OrderTest(LagTest(0.2), Stretch(0.11))
    found = noise_test(outcomes, chances, kinds, rng, order)
    assert set(found.by_clusters) == {"a"}
    # A quarter of the level for lags, an eighth for stretches, a quarter for each kind.
    assert found.p_value == min(4 * 0.2, 8 * 0.11, 4 * found.by_clusters["a"], 1.0)
    shared = NoiseTest({"a": 0.01, "b": 0.02}, ORDER_SHARES | {"a": 0.4, "b": 0.1}, order)
    assert shared.shared(0.03) == ["a"]
    other = NoiseTest({"a": 0.03, "b": 0.01}, shared.shares, OrderTest(LagTest(0.3)))
    both = shared.less_clear(other)
    assert (both.by_clusters, both.order) == ({"a": 0.03, "b": 0.02}, OrderTest(LagTest(0.3)))


def test_chances_of_a_change_are_drawn_to_that_of_all() -> None:
    flips, strata = np.array([True, False, False, True]), np.array([0, 0, 0, 2])
    from ldpaudit.estimators.assumptions import shared_noise

    prior = shared_noise._PRIOR_ROWS
    expected = [(1 + prior * 0.5) / (3 + prior)] * 3 + [(1 + prior * 0.5) / (1 + prior)]
    assert flip_chances(flips, strata) == pytest.approx(expected)


def test_agreement_of_pairs_is_a_binomial_tail() -> None:
    labels = np.array([0, 0, 1, 1, 2, 0], np.int32)
    pairs = np.array([0, 2, 4]), np.array([1, 3, 5])
    assert agreement_p_value(labels, *pairs, 0.4) == pytest.approx(binom.sf(1, 3, 0.4))
    nobody = np.empty(0, np.int64)
    assert agreement_p_value(labels, nobody, nobody, 0.4) == 1.0
