"""Formulas of the family, against its channel."""

import math

import numpy as np
import pytest
from scipy.stats import binom

from ldpaudit.estimators.epsilon.accuracy_design import accuracy_bound
from ldpaudit.estimators.epsilon.bounds import two_sided_bound
from ldpaudit.estimators.epsilon.matched import design
from ldpaudit.estimators.epsilon.matched.bound import matched_bound, matched_tests
from ldpaudit.estimators.epsilon.matched.power import (
    MatchedPower,
    ModelBasedFamily,
    guessed_chance,
    target_chance,
)
from ldpaudit.estimators.epsilon.matched.rows import MatchedCounts, match, possible_cases
from ldpaudit.estimators.epsilon.power import smallest_detectable
from ldpaudit.estimators.intervals.poisson_binomial import shift_lower, shift_upper

FAMILY = ModelBasedFamily(0.05)


@pytest.mark.parametrize("epsilon", [0.3, 2.0])
def test_the_worst_row_has_epsilon_and_the_others_less(epsilon: float) -> None:
    noise = FAMILY.noise(epsilon)
    assert 1 + (1 - noise) / (noise * 0.05) == pytest.approx(math.exp(epsilon))
    for chance in (0.05, 0.2, 0.7):
        shown = math.log(1 + (1 - noise) / (noise * chance))
        assert FAMILY.shift(epsilon, chance) == pytest.approx(shown)
        assert FAMILY.blind_up_to(shown, chance) == pytest.approx(epsilon)


@pytest.mark.parametrize(("correct", "noise"), [(700, (0.3, 0.4)), (800, (0.2, 0.6))])
def test_bounds_of_the_models_probability(correct: int, noise: tuple[float, float]) -> None:
    """Shift s and noise λ give (1 − λ)/(λ(e^s − 1)): at the ends of both intervals."""
    priors = np.full(1_000, 0.5)
    low, high = shift_lower(priors, correct, 0.05), shift_upper(priors, correct, 0.05)
    least = (1 - noise[1]) / (noise[1] * math.expm1(high))
    most = (1 - noise[0]) / (noise[0] * math.expm1(low))
    found = guessed_chance(priors, correct, noise, 0.01, 0.05)
    assert found == pytest.approx((max(least, 0.01), min(most, 1.0)))
    assert guessed_chance(priors, correct, noise, 0.99, 0.05) == (0.99, min(max(most, 0.99), 1.0))


def test_without_a_shift_or_noise_nothing_is_known_of_the_models_probability() -> None:
    priors = np.full(100, 0.5)
    assert guessed_chance(priors, 50, (0.4, 0.5), 0.02, 0.05)[1] == 1.0
    assert guessed_chance(priors, 90, (0.4, 1.0), 0.02, 0.05)[0] == 0.02


@pytest.mark.parametrize(("method", "ratio"), [("accuracy", 1), ("two-sided", 1), ("two-sided", 4)])
def test_the_power_is_the_probability_of_the_counts_that_exceed(method: str, ratio: int) -> None:
    counts = MatchedCounts(ratio, 12, 0, 12 * ratio, 0)
    tests = [t for t in matched_tests([counts], None) if t.method == method]
    power = MatchedPower(tests[0], FAMILY, 0.1, 0.2, 0.3)
    share, noise = 0.3 * tests[0].share, FAMILY.noise(3.5)
    false, hit = 0.1 * noise, 1 - 0.9 * noise
    expected = 0.0
    for a in range(13):
        for c in range(12 * ratio + 1):
            seen = MatchedCounts(ratio, 12, a, 12 * ratio, c)
            bound = seen.accuracy(share) if method == "accuracy" else seen.two_sided(share)
            if bound.epsilon > 0.2:
                expected += binom.pmf(a, 12, hit) * binom.pmf(c, 12 * ratio, false)
    assert power(3.5) == pytest.approx(expected, rel=1e-6)
    assert 0.05 < expected < 1


def test_matched_counts_are_bounded_like_any_others() -> None:
    counts = MatchedCounts(1, 200, 180, 200, 30)
    assert counts.two_sided(0.05) == two_sided_bound((30, 180), (200, 200), 0.05)
    assert counts.accuracy(0.05) == accuracy_bound(180 + 200 - 30, np.array([200, 200]), 0.05)


def test_of_an_interval_the_chance_nearest_to_one_half_counts() -> None:
    sure = MatchedCounts(1, 4_000, 3_900, 4_000, 2_000, chance=0.1)
    low = target_chance(sure, 0.05)
    assert low > 0.9  # C/(1 − A + C) is 0.95.
    assert target_chance(MatchedCounts(1, 4_000, 2_000, 4_000, 40), 0.05) < 0.1
    assert target_chance(MatchedCounts(1, 40, 20, 40, 20, chance=0.99), 0.05) == 0.5


def test_cases_are_those_that_find_enough_controls() -> None:
    groups = np.array([0] * 6 + [2] * 4 + [3] * 3)
    labels = np.array([0, 0, 0, 1, 1, 2, 1, 1, 1, 0, 2, 2, 2], np.int32)
    found = list(zip(*(a.tolist() for a in possible_cases(groups, labels, 3, 2)), strict=True))
    assert found == [(0, 0, 1), (0, 1, 2), (0, 2, 1), (2, 0, 1), (2, 1, 0), (3, 2, 0)]
    matching = match(groups, labels, 3, 2, np.random.default_rng(0))
    assert matching.targets.tolist() == [1, -1, 0, -1]
    assert np.bincount(groups[matching.cases], minlength=4).tolist() == [2, 0, 1, 0]
    assert np.bincount(groups[matching.controls], minlength=4).tolist() == [4, 0, 2, 0]


@pytest.mark.parametrize("truth", [0.01, 0.3, 7.123, 50.0])
def test_the_smallest_detectable_epsilon_is_found(truth: float) -> None:
    asked: list[float] = []

    def power(epsilon: float) -> float:
        asked.append(epsilon)
        return 0.95 if epsilon - 1 >= truth else 0.1

    found = smallest_detectable(power, 1.0, 0.9)
    assert truth + 1 <= found <= truth + 1 + 1e-4
    assert len(asked) < 45
    assert smallest_detectable(lambda _: 0.1, 1.0, 0.9) == math.inf
    assert smallest_detectable(lambda e: 0.9 * (e >= 2), 1.0, 0.9) == pytest.approx(2, abs=1e-4)


def test_nobody_matched_bounds_nothing() -> None:
    found = matched_bound([MatchedCounts(1, 0, 0, 0, 0)], 0.05)
    assert (found.epsilon, found.n) == (0.0, 0)


def test_the_bound_that_a_matching_is_chosen_by() -> None:
    """log of the rates, less 2.2 standard errors; −∞ below 20 cases or 5 hits among controls."""
    cases, chance = np.array([19, 20, 400, 400]), np.array([0.5, 0.5, 0.1, 0.001])
    found = design._expected(cases, chance, 4, 0.5)
    hit, false = 0.5 + 0.5 * chance, 0.5 * chance
    spread = np.sqrt((1 - hit) / (hit * cases)) + np.sqrt((1 - false) / (false * 4 * cases))
    expected = np.log(hit / false) - 2.2 * spread
    assert found.tolist() == [-math.inf, *expected[1:3].tolist(), -math.inf]
