"""Numbers of single mechanisms against their definitions, entry by entry."""

import math
import re

import mpmath
import numpy as np
import pytest

from ldpaudit.errors import InputError
from ldpaudit.mechanisms.analysis import LabelErrors
from ldpaudit.mechanisms.channel import Channel, largest_log_ratios
from ldpaudit.mechanisms.explicit import ExplicitChannel
from ldpaudit.mechanisms.frequency_oracles.subset_selection import SubsetSelection
from ldpaudit.mechanisms.frequency_oracles.summed_histogram import SummedHistogram
from ldpaudit.mechanisms.frequency_oracles.thresholded_histogram import best_threshold
from ldpaudit.mechanisms.label_range import LabelRange, between, nearest
from ldpaudit.mechanisms.noise.discrete_laplace import DiscreteLaplace
from ldpaudit.mechanisms.noise.laplace import Laplace, laplace_rdp
from ldpaudit.mechanisms.numeric.private_prior import check_prior_budget
from ldpaudit.mechanisms.numeric.rr_on_bins import RROnBins
from ldpaudit.mechanisms.response.gaussian import gaussian_sigma
from ldpaudit.mechanisms.response.randomized_response import conditional_rdp_floor


def test_the_largest_log_ratio_of_each_pair() -> None:
    matrix = np.array([[0.5, 0.5, 0.0], [0.2, 0.7, 0.1], [0.3, 0.0, 0.7]])
    found = largest_log_ratios(matrix)
    for y in range(3):
        for other in range(3):
            ratios = [
                math.inf if q == 0 else math.log(p / q)
                for p, q in zip(matrix[y], matrix[other], strict=True)
                if p > 0
            ]
            assert found[y, other] == pytest.approx(max(ratios))


@pytest.mark.parametrize("starts", [(0,), (0, 2), (0, 1, 3)])
def test_bins_keep_their_label_as_often_as_they_say(starts: tuple[int, ...]) -> None:
    mechanism = RROnBins((0, 1, 2, 3), 1.5, starts, tuple(range(len(starts))))
    said = float(re.search(r"probability ([\d.]+)", mechanism.description).group(1))
    own = math.exp(1.5) / (math.exp(1.5) + len(starts) - 1)
    assert said == pytest.approx(own, rel=1e-5)
    assert mechanism.channel.matrix.max(axis=1) == pytest.approx(4 * [own])
    assert mechanism.bins.tolist() == [sum(s <= y for s in starts) - 1 for y in range(4)]


@pytest.mark.parametrize(("k", "size"), [(5, 1), (5, 2), (9, 8)])
def test_a_member_of_the_set_is_the_true_label_with_probability_p_over_its_size(
    k: int, size: int
) -> None:
    mechanism = SubsetSelection(tuple(range(k)), 1.2, size)
    e = math.exp(1.2)
    assert mechanism.p == pytest.approx(size * e / (size * e + k - size))
    assert mechanism.keep_probability == pytest.approx(e / (size * e + k - size))
    sets = mechanism.sample(np.zeros(4_000, np.int32), np.random.default_rng(0))
    share = (sets == 0).any(axis=1).mean()
    # 5 standard deviations: 6e-7.
    assert abs(share - mechanism.p) < 5 * math.sqrt(mechanism.p * (1 - mechanism.p) / 4_000) + 1e-9


@pytest.mark.parametrize(("worst", "expected"), [(1e-9, 0.0), (1.0000001e-9, 1.0000001e-9)])
def test_a_bias_of_rounding_is_none(worst: float, expected: float) -> None:
    errors = LabelErrors(np.arange(2.0), np.array([0.0, -worst]), np.ones(2), 1e-9)
    assert errors.largest_bias == expected
    assert errors.unbiased is (expected == 0)


@pytest.mark.parametrize("alpha", [0.0, -0.5, math.nan])
def test_an_order_is_above_zero(alpha: float) -> None:
    with pytest.raises(InputError, match="above 0"):
        laplace_rdp(alpha, 1.0)


@pytest.mark.parametrize(("k", "n"), [(3, 40), (7, 11), (2, 100_000)])
def test_the_least_budget_of_a_prior_is_named_and_enough(k: int, n: int) -> None:
    with pytest.raises(InputError, match="need at least") as refused:
        check_prior_budget(1.999 * k / n, k, n)
    named = float(re.search(r"at least ([\d.e-]+);", str(refused.value)).group(1))
    assert 2 * k / n <= named < 2 * k / n * 1.01
    check_prior_budget(named, k, n)
    check_prior_budget(2 * k / n, k, n)


def test_labels_may_miss_the_grid_by_a_millionth_of_a_step() -> None:
    grid = LabelRange(0.0, 10.0, 0.5)
    assert grid.codes([0.0, 1.0 + 0.4e-6, 10.0]).tolist() == [0, 2, 20]
    for off in (0.75e-6, -0.75e-6):
        with pytest.raises(InputError, match="1 row"):
            grid.codes([5.0, 1.0 + off])
    LabelRange(0.0, 10.0 + 0.4e-6, 0.5)
    with pytest.raises(InputError, match="whole number"):
        LabelRange(0.0, 10.0 + 0.75e-6, 0.5)
    with pytest.raises(InputError, match="whole number"):
        LabelRange(0.0, 0.4, 1.0)


def test_a_grid_has_at_most_four_million_steps() -> None:
    assert LabelRange(0.0, float(1 << 22), 1.0).steps == 4_194_304
    with pytest.raises(InputError, match="4194304"):
        LabelRange(0.0, float((1 << 22) + 1), 1.0)


def test_whole_labels_are_integers() -> None:
    assert LabelRange(-1.0, 1.0, 1.0).classes == (-1, 0, 1)
    assert all(isinstance(c, int) for c in LabelRange(-1.0, 1.0, 1.0).classes)
    assert LabelRange(0.0, 1.0, 0.5).classes == (0.0, 0.5, 1.0)
    assert LabelRange(0.0, 1.0, 0.5).at(np.array([-1, 3])).tolist() == [-0.5, 1.5]


def test_edges_and_nearest_points_are_halfway() -> None:
    values = np.array([0.0, 1.0, 4.0])
    assert between(values, np.array([-9.0, 0.2, 0.9, 1.0, 3.0, 99.0])).tolist() == [0.5, 2.5]
    assert nearest(values, np.array([-5, 0.4, 0.5, 2.4, 2.5, 9])).tolist() == [0, 0, 1, 1, 2, 2]


@pytest.mark.parametrize("clipped", [False, True])
def test_codes_beyond_the_last_label_are_refused(clipped: bool) -> None:
    mechanism = DiscreteLaplace(LabelRange(0.0, 4.0, 1.0), 1.0, clipped)
    assert len(mechanism.sample(np.array([0, 4], np.int32), np.random.default_rng(0))) == 2
    with pytest.raises(InputError):
        mechanism.sample(np.array([5], np.int32), np.random.default_rng(0))


def test_expected_losses_are_sums_over_the_channel() -> None:
    matrix = np.array([[0.7, 0.2, 0.1], [0.0, 0.9, 0.1], [0.3, 0.3, 0.4]])
    mechanism = ExplicitChannel(Channel(matrix, (0, 1, 3), (0, 1, 3)))
    prior, labels = np.array([0.5, 0.2, 0.3]), np.array([0.0, 1.0, 3.0])
    joint = prior[:, None] * matrix
    squared = 0.5 * (labels - labels[:, None]) ** 2
    assert mechanism.expected_loss(prior) == pytest.approx((joint * squared).sum())
    away = np.abs(labels - labels[:, None])
    assert mechanism.expected_loss(prior, "absolute") == pytest.approx((joint * away).sum())
    assert mechanism.accuracy(prior) == pytest.approx(np.diag(joint).sum())


def test_the_poisson_loss_needs_labels_that_are_not_negative() -> None:
    mechanism = Laplace(LabelRange(-1.0, 3.0), 1.0)
    with pytest.raises(InputError, match="not negative"):
        mechanism.expected_loss([0.5, 0.5], "poisson", np.array([-1.0, 3.0]))


@pytest.mark.parametrize("epsilon", [0.5, 3.0])
def test_the_largest_entry_is_the_true_one_as_often_as_stated(epsilon: float) -> None:
    """∫ f(x − 1) F(x)^{k−1} dx of Laplace noise of scale 2/ε, by mpmath."""
    b = 2 / epsilon
    with mpmath.workdps(20):

        def density(x: mpmath.mpf) -> mpmath.mpf:
            below = mpmath.exp(x / b) / 2 if x < 0 else 1 - mpmath.exp(-x / b) / 2
            return mpmath.exp(-abs(x - 1) / b) / (2 * b) * below**4

        expected = mpmath.quad(density, [-mpmath.inf, 0, 1, mpmath.inf])
    mechanism = SummedHistogram(("a", "b", "c", "d", "e"), epsilon)
    assert mechanism.keep_probability == pytest.approx(float(expected), rel=1e-9)


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 4.0])
def test_the_threshold_has_the_least_variance(epsilon: float) -> None:
    grid = np.linspace(0.5001, 1, 50_000)
    p = 1 - np.exp(epsilon * (grid - 1) / 2) / 2
    q = np.exp(-epsilon * grid / 2) / 2
    least = grid[np.argmin(q * (1 - q) / (p - q) ** 2)]
    assert best_threshold(epsilon) == pytest.approx(least, abs=1e-4)


def test_the_floor_with_conditional_features() -> None:
    noise, k, alpha = 0.3, 4, 2.5
    epsilon = math.log(1 + (1 - noise) * k / noise)
    expected = alpha / (alpha - 1) * epsilon - math.log(k / noise) / (alpha - 1)
    assert conditional_rdp_floor(alpha, noise, k) == pytest.approx(expected)
    assert conditional_rdp_floor(math.inf, noise, k) == pytest.approx(epsilon)
    assert conditional_rdp_floor(alpha, 0.0, k) == math.inf
    assert conditional_rdp_floor(1.01, 0.99, k) >= 0
    with pytest.raises(InputError):
        conditional_rdp_floor(1.0, noise, k)


def test_an_impossible_output_leaves_the_prior() -> None:
    channel = Channel(np.array([[0.5, 0.5, 0.0], [0.25, 0.75, 0.0]]), (0, 1), (0, 1, 2))
    prior = np.array([0.2, 0.8])
    found = channel.posterior(prior)
    assert found[2].tolist() == prior.tolist()
    assert found[0] == pytest.approx(np.array([0.1, 0.2]) / 0.3)
    best = sum(max(0.2 * a, 0.8 * b) for a, b in channel.matrix.T)
    assert channel.informed_accuracy(prior[None]) == pytest.approx([best])


@pytest.mark.parametrize("delta", [0.0, 1.0, -0.1])
def test_a_delta_of_gaussian_noise_is_inside(delta: float) -> None:
    with pytest.raises(InputError, match="delta"):
        gaussian_sigma(1.0, delta, 1.0)
