"""Samples to event to bound, in one process: levels held and leaks found."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import randomizers
from scipy.stats import binom

from ldpaudit.commands.black_box.events import Goal, choose_events
from ldpaudit.commands.black_box.outputs import OutputTable, as_outputs, joined_columns
from ldpaudit.estimators.epsilon.guesses import GuessCounts, epsilon_lower

Randomizer = Callable[..., Any]


def bound(
    function: Randomizer,
    n: int,
    seed: int,
    features: Randomizer | None = None,
    inputs: tuple[int, ...] = (0, 24),
    alpha: float = 0.01,
    **settings: Any,
) -> float:
    """Return the certified bound of ε, as the command would."""
    rng = np.random.default_rng(seed)

    def draw(value: int, size: int) -> OutputTable:
        table = as_outputs(function(value, size, rng, **settings), size)
        if features is None:
            return table
        return joined_columns([as_outputs(features(table, i), size) for i in inputs])

    training = min(n // 2, max(n // 10, 20_000))
    candidates = 2 * (n - training)
    choice = choose_events([draw(v, training) for v in inputs], Goal(candidates, alpha), rng)[0]
    firsts = int(rng.binomial(candidates, 0.5))
    a = choice.event.counts(draw(inputs[choice.first], firsts))
    b = choice.event.counts(draw(inputs[choice.second], candidates - firsts))
    counts = GuessCounts(candidates, a[0] + b[1], a[1] + b[0], choice.event.sides)
    return epsilon_lower(counts, alpha).epsilon


HONEST = [randomizers.grr, randomizers.sue, randomizers.laplace]


def misses(function: Randomizer, runs: int, n: int, alpha: float) -> int:
    return sum(bound(function, n, seed, alpha=alpha) > 1 + 1e-9 for seed in range(runs))


@pytest.mark.parametrize("function", HONEST)
def test_levels_are_held(function: Randomizer) -> None:
    # 30 runs at 20 %: more than binom.isf misses have a chance of 1e-6.
    assert misses(function, 30, 1000, 0.2) <= binom.isf(1e-6, 30, 0.2)


@pytest.mark.validate
@pytest.mark.parametrize("function", HONEST)
def test_levels_are_held_over_many_runs(function: Randomizer) -> None:
    assert misses(function, 600, 2000, 0.05) <= binom.isf(1e-6, 600, 0.05)


@pytest.mark.parametrize(
    ("function", "features", "least"),
    [
        (randomizers.grr, None, 0.90),
        (randomizers.subset, None, 0.94),
        (randomizers.sue, None, 0.94),
        (randomizers.oue, None, 0.94),
        (randomizers.she, None, 0.90),
        (randomizers.blh, randomizers.blh_support, 0.94),
        (randomizers.olh, randomizers.olh_support, 0.94),
        (randomizers.laplace, None, 0.93),
    ],
)
def test_bounds_come_near_the_truth(
    function: Randomizer, features: Randomizer | None, least: float
) -> None:
    # About five standard deviations below what is expected of 10⁵ samples.
    assert bound(function, 100_000, 3, features) > least


FIGURES = [
    (randomizers.grr, None, 10**6, 0.977),
    (randomizers.subset, None, 10**6, 0.990),
    (randomizers.sue, None, 10**6, 0.990),
    (randomizers.oue, None, 10**6, 0.989),
    (randomizers.she, None, 10**6, 0.986),
    (randomizers.blh, randomizers.blh_support, 10**5, 0.966),
    (randomizers.olh, randomizers.olh_support, 10**6, 0.989),
]


@pytest.mark.validate
@pytest.mark.parametrize(("function", "features", "n", "wanted"), FIGURES)
def test_figures(function: Randomizer, features: Any, n: int, wanted: float) -> None:
    found = [bound(function, n, seed, features) for seed in range(5)]
    assert np.mean(found) >= wanted


FAULTY = [
    randomizers.scale_of_half_the_sensitivity,
    randomizers.lambda_as_epsilon,
    randomizers.forgets_the_rest,
    randomizers.off_by_one,
    randomizers.one_noise_for_all_bits,
    randomizers.one_noise_for_all_entries,
    randomizers.one_sided_noise,
    randomizers.subset_in_order,
    randomizers.identity,
]


@pytest.mark.parametrize("function", FAULTY)
def test_faults_are_found(function: Randomizer) -> None:
    assert bound(function, 40_000, 1) > 1.05


def test_a_missing_perturbation_of_some_reports_is_found() -> None:
    found = bound(randomizers.forgets_some, 100_000, 1, randomizers.olh_support)
    assert found > 1.03


@pytest.mark.parametrize("optimized", [False, True])
@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0])
def test_a_second_chance_of_the_true_bit_is_found(epsilon: float, optimized: bool) -> None:
    found = bound(randomizers.extra_chance, 100_000, 2, epsilon=epsilon, optimized=optimized)
    assert found > epsilon + 0.1


def test_nothing_is_found_where_nothing_is() -> None:
    assert bound(randomizers.constant, 2000, 1) == 0
    assert bound(randomizers.olh, 20_000, 1) < 0.1  # A seed without its hash tells nothing.


def test_the_most_telling_pair_comes_first() -> None:
    rng = np.random.default_rng(3)
    tables = [as_outputs(randomizers.laplace(value, 8000, rng), 8000) for value in (0, 3, 12, 24)]
    choices = choose_events(tables, Goal(20_000, 0.05), rng)
    assert len(choices) == 6
    assert (choices[0].first, choices[0].second) == (0, 3)


def test_sets_and_text_are_told_apart() -> None:
    def sets(value: int, n: int, rng: Any, **_: Any) -> list[frozenset[str]]:
        return [frozenset(map(str, row)) for row in randomizers.subset(value, n, rng)]

    def text(value: int, n: int, rng: Any, **_: Any) -> list[str]:
        return [f"answer {label}" for label in randomizers.grr(value, n, rng)]

    assert bound(sets, 8000, 1) > 0.8
    assert bound(text, 8000, 1) > 0.65
