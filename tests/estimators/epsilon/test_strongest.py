import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import binom

from ldpaudit.estimators.epsilon.accuracy_design import best_plan
from ldpaudit.estimators.epsilon.bounds import class_counts
from ldpaudit.estimators.epsilon.strongest import (
    METHODS,
    PRIMARY_SHARE,
    SELECTED,
    BoundEvidence,
    design_bounds,
    epsilon_evidence,
    gather_evidence,
    presumed_channel,
)
from ldpaudit.release import FloatArray, IndexArray

FALSE_ALARM = 1e-6
EVERY = (*METHODS, *SELECTED)


def randomized_response(k: int, epsilon: float) -> FloatArray:
    weights = np.ones((k, k))
    np.fill_diagonal(weights, math.exp(epsilon))
    return weights / weights.sum(axis=1, keepdims=True)


def epsilon_of(channel: FloatArray) -> float:
    return float(np.log(channel.max(axis=0) / channel.min(axis=0)).max())


def evidence_of(
    counts: IndexArray, channel: FloatArray | None, rng: np.random.Generator
) -> BoundEvidence:
    evidence = epsilon_evidence(counts, channel, rng)
    assert evidence is not None
    return evidence


ASYMMETRIC = np.array([[0.9, 0.1], [0.5, 0.5]])
CONSTANT = np.array([[0.8, 0.2], [0.8, 0.2]])
NARROW = np.array([[0.5, 0.3, 0.2], [0.3, 0.3, 0.4]])
RARE = np.array([[0.5, 0.499, 0.001], [0.49, 0.49, 0.02]])
ASYMMETRIC_THREE = np.array([[0.6, 0.3, 0.1], [0.25, 0.5, 0.25], [0.2, 0.2, 0.6]])
TALL = np.array([[0.7, 0.3], [0.5, 0.5], [0.4, 0.6], [0.45, 0.55]])

# What was claimed, what is true, and how frequent the labels are.
SETTINGS = [
    (randomized_response(2, e), randomized_response(2, e), prior)
    for e in (0.5, 2.0, 5.0)
    for prior in ([0.5, 0.5], [0.9, 0.1])
]
SETTINGS += [
    (randomized_response(3, 1.0), randomized_response(3, 1.0), [0.6, 0.3, 0.1]),
    (randomized_response(10, 2.0), randomized_response(10, 2.0), [0.1] * 10),
    (ASYMMETRIC, ASYMMETRIC, [0.5, 0.5]),
    (randomized_response(2, 1.0), ASYMMETRIC, [0.2, 0.8]),
    (randomized_response(2, 1.0), CONSTANT, [0.9, 0.1]),
    (NARROW, NARROW, [0.3, 0.7]),
    (TALL, TALL, [0.4, 0.3, 0.2, 0.1]),
    (RARE, RARE, [0.5, 0.5]),
    (RARE, ASYMMETRIC_THREE[:2], [0.8, 0.2]),
    (ASYMMETRIC_THREE, ASYMMETRIC_THREE, [0.9, 0.05, 0.05]),
]


def _missed(
    claim: FloatArray | None, true: FloatArray, prior: list[float], runs: int, alpha: float
) -> dict[str, int]:
    rng = np.random.default_rng(2)
    sizes = np.round(1500 * np.array(prior)).astype(np.int64)
    limit = epsilon_of(true) + 1e-9
    missed = dict.fromkeys((*EVERY, "strongest", "selected"), 0)
    design = None if claim is None else design_bounds(sizes, claim)
    for _ in range(runs):
        counts = np.array([rng.multinomial(n, row) for n, row in zip(sizes, true, strict=True)])
        evidence = (
            epsilon_evidence(counts, None, rng)
            if design is None
            else gather_evidence(counts, design, rng)
        )
        assert evidence is not None
        for method in EVERY:
            missed[method] += evidence.bound(method, alpha).epsilon > limit
        missed["strongest"] += evidence.strongest(alpha).epsilon > limit
        chosen = replace(evidence, methods=SELECTED)
        missed["selected"] += chosen.strongest(alpha).epsilon > limit
    return missed


@pytest.mark.parametrize(("claim", "true", "prior"), SETTINGS)
def test_validity(claim: FloatArray, true: FloatArray, prior: list[float]) -> None:
    runs, alpha = 150, 0.1
    limit = binom.isf(FALSE_ALARM / len(EVERY), runs, alpha)
    missed = _missed(claim, true, prior, runs, alpha)
    assert max(missed.values()) <= limit, missed


@pytest.mark.parametrize("true", [randomized_response(2, 1.0), ASYMMETRIC, CONSTANT])
def test_validity_without_a_claim(true: FloatArray) -> None:
    runs, alpha = 80, 0.1
    limit = binom.isf(FALSE_ALARM / len(EVERY), runs, alpha)
    missed = _missed(None, true, [0.3, 0.7], runs, alpha)
    assert max(missed.values()) <= limit, missed


@pytest.mark.validate
@pytest.mark.parametrize(("claim", "true", "prior"), SETTINGS)
def test_bounds_miss_in_at_most_five_percent_of_many_runs(
    claim: FloatArray, true: FloatArray, prior: list[float]
) -> None:
    runs, alpha = 2000, 0.05
    missed = _missed(claim, true, prior, runs, alpha)
    assert max(missed.values()) <= binom.isf(FALSE_ALARM / len(EVERY), runs, alpha), missed


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0, 4.0])
def test_power_against_a_claim_that_is_too_low(epsilon: float) -> None:
    rng = np.random.default_rng(3)
    true = randomized_response(2, epsilon + 0.3)
    counts = np.array(
        [rng.multinomial(n, row) for n, row in zip([30_000, 10_000], true, strict=True)]
    )
    found = evidence_of(counts, randomized_response(2, epsilon), rng)
    assert epsilon < found.strongest(0.05).epsilon < epsilon + 0.35


def test_the_correction_costs_little() -> None:
    channel = randomized_response(2, 1.0)
    counts = np.round(channel * 50_000).astype(int)
    found = evidence_of(counts, channel, np.random.default_rng(0))
    primary = max(found.design.weights, key=lambda method: found.design.weights[method])
    assert found.design.weights[primary] == PRIMARY_SHARE
    assert sum(found.design.weights[method] for method in METHODS) <= 1.0
    alone = found.bound(primary, 0.05).epsilon
    assert alone - 0.001 < found.strongest(0.05).epsilon < alone
    assert found.strongest(0.05).alpha == 0.05


def test_every_method_finds_a_strong_leak() -> None:
    channel = randomized_response(3, 3.0)
    counts = np.round(channel * [[4000], [3000], [2000]]).astype(int)
    found = evidence_of(counts, channel, np.random.default_rng(0))
    assert all(2.5 < found.bound(method, 0.05).epsilon < 3.0 for method in METHODS)


def test_outputs_may_differ_from_labels() -> None:
    counts = np.round(NARROW * [[60_000], [40_000]]).astype(int)
    found = evidence_of(counts, NARROW, np.random.default_rng(0))
    assert 0.64 < found.strongest(0.05).epsilon < math.log(2)


@pytest.mark.parametrize(
    ("channel", "sizes", "least"),
    [
        (RARE, [1500, 1500], 1.4),
        (ASYMMETRIC_THREE, [2910, 45, 45], 1.35),
        (np.array([[0.95, 0.05], [0.6, 0.4]]), [2970, 30], 1.4),
        (np.array([[0.95, 0.05], [0.6, 0.4]]), [120, 280], 1.2),
    ],
)
def test_a_claim_whose_epsilon_few_cells_carry(
    channel: FloatArray, sizes: list[int], least: float
) -> None:
    """The mean of 100 has a standard error below 0.06: each limit is two to five below it."""
    rng, found = np.random.default_rng(4), []
    for _ in range(100):
        counts = np.array([rng.multinomial(n, row) for n, row in zip(sizes, channel, strict=True)])
        evidence = evidence_of(counts, channel, rng)
        assert evidence.design.primary == "two-sided"
        found.append(evidence.strongest(0.05).epsilon)
    assert least < np.mean(found) < epsilon_of(channel)


def test_the_shares_sum_to_one_however_the_evidence_is_read() -> None:
    for channel in (RARE, ASYMMETRIC_THREE, randomized_response(3, 1.0), ASYMMETRIC):
        design = design_bounds(np.full(len(channel), 500), channel)
        assert design is not None
        own = sum(design.weights.values())
        shared = design.weights["odds-ratio"] if design.pair.same_event(design.odds) else 0.0
        assert own - shared == pytest.approx(1.0)


def test_the_odds_ratio_that_is_the_event_itself_has_its_share() -> None:
    design = design_bounds(np.array([900, 100]), randomized_response(2, 0.5))
    assert design is not None
    assert design.primary == "two-sided"
    assert design.weights["odds-ratio"] == PRIMARY_SHARE


def test_fewer_than_two_labels_give_nothing() -> None:
    counts, channel = np.array([[10, 20], [0, 0]]), randomized_response(2, 1.0)
    assert epsilon_evidence(counts, channel, np.random.default_rng(0)) is None


def test_a_bound_is_a_growing_function_of_alpha() -> None:
    rng = np.random.default_rng(0)
    counts = rng.multinomial(2000, [0.3, 0.2, 0.2, 0.3]).reshape(2, 2)
    evidence = epsilon_evidence(counts, randomized_response(2, 1.0), rng)
    assert evidence is not None
    values = [evidence.strongest(alpha).epsilon for alpha in (0.001, 0.01, 0.05, 0.2)]
    assert values == sorted(values)


def test_the_same_seed_gives_the_same_bound() -> None:
    counts = np.array([[700, 300], [50, 150]])
    bounds = [evidence_of(counts, None, np.random.default_rng(5)) for _ in range(2)]
    assert bounds[0].strongest(0.05) == bounds[1].strongest(0.05)


def test_unequal_classes_are_thinned_to_what_epsilon_allows() -> None:
    sizes = np.array([90_000, 10_000])
    plan, expected = best_plan(sizes, randomized_response(2, 1.0), 0.05)
    kept = plan.sizes
    assert kept.min() == 10_000
    # More of the frequent class than e times the rare one would make a constant guess as good.
    assert 1.5 < kept.max() / kept.min() < math.e
    assert 0.97 < expected < 1.0


def test_a_pilot_that_fits_randomized_response_is_taken_for_it() -> None:
    channel = randomized_response(5, 2.0)
    rng = np.random.default_rng(0)
    taken = 0
    for _ in range(20):
        presumed = presumed_channel(np.array([rng.multinomial(200, row) for row in channel]))
        if np.unique(np.round(presumed, 12)).size == 2:
            taken += 1
            assert np.abs(presumed - channel).max() < 0.05
    # One pilot in twenty does not look like it: fewer than 15 of 20 do with probability 3e-4.
    assert taken >= 15
    skewed = presumed_channel(np.array([[900, 100], [500, 500]]))
    assert np.abs(skewed - ASYMMETRIC).max() < 0.01
    assert np.allclose(presumed_channel(np.zeros((2, 3), dtype=int)).sum(axis=1), 1)


def test_class_counts() -> None:
    assert class_counts(np.array([[1, 2], [3, 4]])).tolist() == [3, 7]
