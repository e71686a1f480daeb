"""Certified bounds and estimates of a Rényi divergence, against formulas and known divergences."""

import math
from collections.abc import Sequence

import numpy as np
import pytest
from exact_divergence import divergence_of
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from ldpaudit.estimators.renyi import (
    AUDITED_ORDERS,
    ClippedCritic,
    RenyiBound,
    Scores,
    bounds_on,
    renyi_points,
    row_groups,
    split_scores,
)

WEIGHTS = hnp.arrays(np.float64, 5, elements=st.floats(0.01, 1.0))
GUESSES = hnp.arrays(np.float64, 5, elements=st.floats(-6.0, 6.0))


def gaussian_scores(n: int, shift: float, rng: np.random.Generator, slope: float = 1.0) -> Scores:
    """Rows of N(shift, 1) and N(0, 1) with their true log ratio, times a slope."""
    x = rng.standard_normal((2, n))
    x[0] += shift
    return Scores(*slope * (shift * x - shift**2 / 2))


def renyi_bounds(
    scores: Scores, orders: Sequence[float], *, rng: np.random.Generator
) -> tuple[RenyiBound, ...]:
    return bounds_on(*split_scores(scores, rng=rng), orders)


@given(
    p=WEIGHTS,
    q=WEIGHTS,
    guess=GUESSES,
    order=st.sampled_from(AUDITED_ORDERS),
    clip=st.floats(0.1, 8),
)
def test_no_critic_exceeds_the_exact_divergence(
    p: np.ndarray, q: np.ndarray, guess: np.ndarray, order: float, clip: float
) -> None:
    p, q = p / p.sum(), q / q.sum()
    exact = divergence_of(p, q, order)
    critic = ClippedCritic(order, True, None, 0.9, clip, 0.3, 1.0)
    first, second = critic.powers(Scores(guess, guess))
    dv = order / (order - 1) * math.log(p @ first) - math.log(q @ second)
    assert dv <= exact + 1e-9
    tangent = order * float(p @ first) - (order - 1) * float(q @ second)
    if tangent > 0:
        assert math.log(tangent) / (order - 1) <= exact + 1e-9
    (low_p, high_p), (low_q, high_q) = critic.ranges()
    for values, low, high in ((first, low_p, high_p), (second, low_q, high_q)):
        assert (low <= values * (1 + 1e-12)).all()
        assert (values <= high * (1 + 1e-12)).all()


@pytest.mark.parametrize(
    ("order", "divergence", "share"), [(1.5, 0.5, 0.9), (2.0, 1.0, 0.9), (3.0, 1.0, 0.8)]
)
def test_most_of_the_divergence_is_certified(order: float, divergence: float, share: float) -> None:
    # Over 200 seeds (the benchmark renyi) the mean is .95/.93/.88 with a deviation of .02.
    shift = math.sqrt(2 * divergence / order)
    rng = np.random.default_rng(0)
    bound = renyi_bounds(gaussian_scores(50_000, shift, rng), [order], rng=rng)[0].at(0.05)
    assert bound >= (share - 0.04) * divergence


def test_sides_may_differ_in_size() -> None:
    scores = gaussian_scores(40_000, 1.0, np.random.default_rng(5))
    for p, q in ((scores.p[:5_000], scores.q[:13_700]), (scores.p, scores.q[:3_000])):
        bounds = renyi_bounds(Scores(p, q), [2.0], rng=np.random.default_rng(1))
        assert 0.6 < bounds[0].at(0.05) < 1.0


def test_cells_mend_a_guess_that_is_only_ordered_rightly() -> None:
    scores = gaussian_scores(40_000, 1.2, np.random.default_rng(4))
    crooked = Scores(np.tanh(scores.p / 4) * 0.2, np.tanh(scores.q / 4) * 0.2)
    bounds = renyi_bounds(crooked, [2.0], rng=np.random.default_rng(4))
    assert bounds[0].critic.map is not None
    assert 0.7 * 1.44 < bounds[0].at(0.05) < 1.44


RNG = np.random.default_rng(0)
SCORES = Scores(RNG.normal(1, 0.8, 900), RNG.normal(-1, 0.8, 2_050))


def critic(*, tangent: bool, shift: float = 0.0, foreseen: float = 1.0) -> ClippedCritic:
    return ClippedCritic(2.0, tangent, None, 0.7, 1.5, shift, foreseen)


def test_what_promises_nothing_bounds_nothing() -> None:
    assert RenyiBound(2.0, critic(tangent=True, foreseen=0.0), SCORES).at(0.05) == 0.0
    assert RenyiBound(2.0, critic(tangent=True, shift=5.0), SCORES).at(0.05) == 0.0


def test_a_larger_order_may_take_the_bound_of_a_smaller_one() -> None:
    found = bounds_on(*split_scores(SCORES, rng=np.random.default_rng(1)), (1.5, 4.0, 20.0))
    assert [bound.order for bound in found] == [1.5, 4.0, 20.0]
    assert all(b.critic.order <= min(b.order, 10.0) for b in found)
    assert found[0].critic.foreseen <= found[1].critic.foreseen <= found[2].critic.foreseen


def test_fifty_rows_of_either_side_are_enough() -> None:
    few = Scores(np.arange(50.0), np.arange(60.0))
    tuning, test = split_scores(few, rng=np.random.default_rng(0), share=0.5)
    assert (len(tuning.p), len(tuning.q), len(test.p), len(test.q)) == (25, 30, 25, 30)
    assert sorted([*tuning.p, *test.p]) == list(range(50))
    tuning, _ = split_scores(few, rng=np.random.default_rng(0), share=0.01)
    assert (len(tuning.p), len(tuning.q)) == (20, 20)


@pytest.mark.parametrize(("order", "divergence"), [(1.5, 0.5), (2.0, 1.0), (3.0, 1.0)])
def test_estimates_are_near(order: float, divergence: float) -> None:
    shift = math.sqrt(2 * divergence / order)
    (point,) = renyi_points(gaussian_scores(50_000, shift, np.random.default_rng(0)), [order])
    assert point.supported
    assert point.value == pytest.approx(divergence, rel=0.09)  # A standard error of 2 %.


def test_orders_beyond_the_rows_are_not_supported() -> None:
    points = renyi_points(gaussian_scores(5_000, 1.5, np.random.default_rng(0)), AUDITED_ORDERS)
    held = [point.supported for point in points]
    assert 0 < sum(held) <= AUDITED_ORDERS.index(2.0) + 1
    assert held == sorted(held, reverse=True)
    assert not any(
        p.supported
        for p in renyi_points(gaussian_scores(100, 5.0, np.random.default_rng(0)), AUDITED_ORDERS)
    )


@pytest.mark.parametrize(("n_p", "n_q"), [(100, 100), (100, 155), (1_000, 37), (9, 400), (5, 3)])
def test_groups_waste_few_rows(n_p: int, n_q: int) -> None:
    one, other = row_groups(n_p, n_q)
    assert (one, other) == row_groups(n_q, n_p)[::-1]
    groups = min(n_p // one, n_q // other)
    assert groups >= min(8, min(n_p, n_q)) or min(n_p, n_q) < 8
    if min(n_p, n_q) >= 100:
        assert max(1 - groups * one / n_p, 1 - groups * other / n_q) <= 0.05
