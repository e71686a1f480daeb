import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from integer_tables import integer_epsilon
from scipy.optimize import brentq

from ldpaudit.extras.kinds.mechanisms.bins import DebiasedRR
from ldpaudit.extras.kinds.mechanisms.interval_program import (
    IntervalArcs,
    solve_interval_program,
    squared_loss,
)
from ldpaudit.extras.kinds.mechanisms.unbiased import (
    OptimalUnbiased,
    _price,
    closed_form,
    closed_form_is_optimal,
    integer_columns,
    lowered_growth,
    optimal_unbiased,
    squared_loss_bound,
)
from ldpaudit.mechanisms.exact_sampling import TOTAL


def price_like(k=201):
    labels = np.arange(k)
    prior = np.exp(-0.5 * (np.log(labels + 1.0) - 3.5) ** 2) / (labels + 1)
    return labels.tolist(), prior / prior.sum()


@st.composite
def problems(draw, most=12):
    k = draw(st.integers(2, most))
    gaps = draw(st.lists(st.floats(0.01, 10), min_size=k, max_size=k))
    weights = draw(st.lists(st.one_of(st.just(0.0), st.floats(1e-4, 1)), min_size=k, max_size=k))
    prior = np.array(weights) if sum(weights) > 0 else np.ones(k)
    epsilon = draw(st.sampled_from([0.01, 0.3, 0.69, 0.75, 1.0, 1.7, 3.0, 5.0, 8.0]))
    return np.cumsum(gaps).tolist(), prior / prior.sum(), epsilon


@settings(max_examples=20)
@given(problems())
def test_a_design_is_unbiased_private_small_and_certified(problem):
    labels, prior, epsilon = problem
    design = optimal_unbiased(labels, prior, epsilon)
    mechanism = design.mechanism
    assert np.abs(mechanism.bias()).max() <= 1e-9
    assert mechanism.epsilon <= epsilon
    assert integer_epsilon(mechanism.weights) <= epsilon * (1 + 1e-15)
    assert mechanism.epsilon >= epsilon - 1e-12
    assert len(mechanism.channel.outputs) <= 2 * len(labels)
    assert mechanism.expected_loss(prior) == pytest.approx(design.loss, rel=1e-9)
    assert design.gap <= 1e-6
    assert design.bound <= design.loss


@settings(max_examples=12)
@given(problems())
def test_it_is_never_beaten_by_another_unbiased_mechanism(problem):
    labels, prior, epsilon = problem
    best = optimal_unbiased(labels, prior, epsilon)
    for other in (uniform := np.full(len(labels), 1 / len(labels)), prior[::-1].copy()):
        rival = optimal_unbiased(labels, other, epsilon).mechanism
        assert best.bound <= rival.expected_loss(prior) * (1 + 1e-9)
    assert best.bound <= DebiasedRR(tuple(labels), epsilon).expected_loss(prior) * (1 + 1e-9)
    columns, _ = closed_form(np.array(labels), uniform, lowered_growth(epsilon))
    intervals = np.column_stack([columns.first, columns.last])
    stated = (columns.outputs, intervals, columns.masses)
    closed = OptimalUnbiased(tuple(labels), epsilon, *stated)
    assert best.bound <= closed.expected_loss(prior) * (1 + 1e-9)


def solved(labels, prior, epsilon):
    """The interval program's multipliers, for labels moved to mean 0 and scaled to range 1."""
    scaled = (np.array(labels) - prior @ labels) / (labels[-1] - labels[0])
    arcs = IntervalArcs(len(labels), math.expm1(epsilon))
    loss = squared_loss(arcs, scaled, prior)
    return scaled, solve_interval_program(scaled, arcs, loss, (prior, 1.0), 1e-12)


def tops_of_all_subsets(labels, prior, growth, alpha, beta):
    """max over m of Σ S_y (α_y + β_y m − ½p_y(m − y)²) for each of the 2^k staircase columns."""
    bits = np.array(list(itertools.product([0.0, 1.0], repeat=len(labels))))
    columns = 1 + growth * bits
    weight, mean = columns @ prior, columns @ (prior * labels) / (columns @ prior)
    spread = columns @ (prior * labels**2) - weight * mean**2
    slope = columns @ beta
    return columns @ alpha + slope * mean + slope**2 / (2 * weight) - spread / 2


@pytest.mark.parametrize("seed", range(4))
def test_no_staircase_column_of_any_shape_could_lower_the_loss(seed):
    """Optimality over all ε-DP channels, not only over intervals: all 2^k columns are priced."""
    rng = np.random.default_rng(seed)
    k = int(rng.integers(3, 11))
    labels, prior = np.cumsum(rng.uniform(0.2, 3, size=k)), rng.dirichlet(np.ones(k))
    epsilon = float(rng.choice([0.5, 1.0, 1.5, 2.5, 4.0, 6.0]))
    scaled, solution = solved(labels, prior, epsilon)
    tops = tops_of_all_subsets(scaled, prior, math.expm1(epsilon), solution.alpha, solution.beta)
    value = solution.alpha.sum() + solution.beta @ scaled
    assert tops.max() <= 1e-7 * value
    design = optimal_unbiased(labels.tolist(), prior, epsilon)
    size = (labels[-1] - labels[0]) ** 2
    assert design.loss == pytest.approx(size * value, rel=1e-8)
    assert design.bound == pytest.approx(size * value, rel=1e-8)


@pytest.mark.parametrize("seed", range(4))
def test_the_bound_holds_for_any_multipliers(seed):
    """Valid wherever the multipliers come from, and as strong as pricing all 2^k columns."""
    rng = np.random.default_rng(seed)
    k = int(rng.integers(2, 9))
    labels, prior = np.cumsum(rng.uniform(0.2, 3, size=k)), rng.dirichlet(np.ones(k))
    epsilon = float(rng.choice([0.3, 1.0, 2.5, 4.0]))
    scaled, solution = solved(labels, prior, epsilon)
    noise = 10.0 ** rng.uniform(-6, 0)
    alpha = solution.alpha * (1 + noise * rng.normal(size=k))
    beta = solution.beta * (1 + noise * rng.normal(size=k))
    growth = math.expm1(epsilon)
    bound = squared_loss_bound(scaled, prior, growth, alpha, beta)
    tops = tops_of_all_subsets(scaled, prior, growth, alpha, beta)
    plain = alpha.sum() + beta @ scaled - max(tops.max(), 0)
    best = optimal_unbiased(labels.tolist(), prior, epsilon).loss / (labels[-1] - labels[0]) ** 2
    assert plain - 1e-10 * best <= bound <= best * (1 + 1e-12)


@pytest.mark.parametrize(
    ("epsilon", "loss"),
    [(0.3, 22.1499118), (0.5, 7.9287604), (0.69, 4.1310569), (1.0, 1.9336638)],
)
def test_the_example_of_the_paper(epsilon, loss):
    # Badanidiyuru et al. (2023), Table 1's labels and prior.
    design = optimal_unbiased([0, 1, 2], [0.6, 0.25, 0.15], epsilon)
    assert design.method == "closed-form"
    assert design.loss == pytest.approx(loss, rel=5e-8)


@pytest.mark.parametrize("seed", range(4))
def test_the_test_of_the_closed_form_is_exact(seed):
    """Its loss equals the program's bound where the test passes, and exceeds it where it fails."""
    rng = np.random.default_rng(seed)
    k = int(rng.integers(3, 9))
    labels, prior = np.cumsum(rng.uniform(0.1, 2, size=k)), rng.dirichlet(np.ones(k))
    for epsilon in (0.8, 1.0, 1.4, 2.0):
        _, value = closed_form(labels, prior, math.expm1(epsilon))
        mean = float(prior @ labels)
        # The certificate of the closed form: α and β are forced by its own columns.
        size = math.sqrt(2 * value + float(prior @ (labels - mean) ** 2))
        growth, inner = math.expm1(epsilon), np.cumsum(prior)[:-1]
        heights = np.sqrt((1 + growth * inner) * (1 + growth * (1 - inner)))
        first = np.concatenate([[0], -0.5 * size**2 * (1 - inner), [-0.5 * size**2]])
        second = np.concatenate([[0], -size / growth * heights, [0]])
        alpha, beta = np.diff(first), np.diff(second)
        # From ½m² to ½(m − y)².
        centred = labels - mean
        bound = squared_loss_bound(
            centred, prior, growth, alpha + 0.5 * prior * centred**2, beta - prior * centred
        )
        optimal = closed_form_is_optimal(prior, epsilon)
        assert (bound >= value * (1 - 1e-9)) == optimal
        found = optimal_unbiased(labels.tolist(), prior, epsilon)
        assert (found.method == "closed-form") == optimal
        assert found.loss <= value * (1 + 1e-12)
        if not optimal:
            assert found.loss < value


@pytest.mark.parametrize("epsilon", [0.5, 8])
def test_certified_gaps_at_two_hundred_and_one_labels(epsilon):
    labels, prior = price_like()
    design = optimal_unbiased(labels, prior, epsilon)
    assert design.gap <= 1e-8
    assert len(design.mechanism.columns.masses) <= 402
    assert np.abs(design.mechanism.bias()).max() < 1e-10


def test_poisson_loss_where_outputs_can_be_positive():
    labels, prior = list(range(20, 41)), np.full(21, 1 / 21)
    design = optimal_unbiased(labels, prior, 2.0, "poisson")
    squared = optimal_unbiased(labels, prior, 2.0).mechanism
    assert design.mechanism.output_values.min() > 0
    assert np.abs(design.mechanism.bias()).max() < 1e-11
    assert design.mechanism.epsilon <= 2.0
    assert design.gap < 1e-9
    assert design.bound <= squared.expected_loss(prior, "poisson")


@pytest.mark.parametrize("epsilon", [0.01, 1.0, 3.0, 12.0])
def test_integer_columns_are_exact(epsilon):
    prior = np.random.default_rng(4).dirichlet(np.ones(25))
    mechanism = optimal_unbiased(list(range(25)), prior, epsilon).mechanism
    growth = lowered_growth(epsilon)
    table = integer_columns(mechanism.columns, 25, growth)
    assert [sum(map(int, row)) for row in table] == [TOTAL] * 25
    limit = Fraction(1 + growth)
    ratios = [Fraction(int(c.max()), int(c.min())) for c in table.T]
    assert max(ratios) <= limit
    probabilities = mechanism.columns.matrix(25, growth)
    assert np.abs(table.astype(float) / TOTAL - probabilities).max() < 2.0**-50


def test_equal_outputs_are_one_output():
    # Neighbouring thresholds have the same odds where no probability lies between them.
    prior = np.array([0.5, 0, 0, 0, 0.5])
    mechanism = optimal_unbiased([0, 1, 2, 3, 4], prior, 0.5).mechanism
    assert len(set(mechanism.channel.outputs)) == len(mechanism.channel.outputs)
    assert len(mechanism.channel.outputs) == 2
    assert len(mechanism.columns.masses) == 8
    assert mechanism.weights.weights.shape == (5, 2)
    assert np.abs(mechanism.bias()).max() < 1e-12


def test_the_closed_form_is_optimal_up_to_a_chord_of_length_one():
    """At priors whose chord is a little shorter and longer, by its geometry."""
    for epsilon in (1.0, 2.0, 4.0):
        growth = math.expm1(epsilon)
        centre, radius = growth / 2, (growth + 2) / 2

        def chord(last, first=0.2, growth=growth, centre=centre, radius=radius):
            x = growth * np.array([first, 1 - last]) - centre
            return math.dist(*zip(x, np.sqrt(radius**2 - x**2), strict=True))

        edge = brentq(lambda last: chord(last) - 1, 1e-9, 0.8 - 1e-9)
        for last, expected in ((edge - 1e-4, False), (edge + 1e-4, True)):
            prior = np.array([0.2, 0.8 - last, last])
            assert closed_form_is_optimal(prior, epsilon) == expected


def test_a_price_by_hand():
    """α is lowered everywhere, or in proportion to the prior: the cheaper counts."""
    sets = np.array([[1.0, 1.0], [1.0, 3.0]])  # The empty set, and one with the second label.
    for tops, price in (([1.0, 4.0], 2.0), ([3.0, 4.0], 3.0), ([0.0, 1.0], 0.5)):
        assert _price(np.array(tops), sets, 2.0) == pytest.approx(price)
