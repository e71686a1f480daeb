"""Numbers of single mechanisms against their definitions, entry by entry."""

import math
import re

import mpmath
import numpy as np
import pytest
from scipy import special

from ldpaudit.errors import InputError
from ldpaudit.estimators.label_inference.bag_posterior import log_odds_shift
from ldpaudit.estimators.neighbors.metric import score_space
from ldpaudit.mechanisms.aggregates.label_proportions import LabelProportions
from ldpaudit.mechanisms.analysis import LabelErrors, _distinct_rows, delta_curve, privacy_of
from ldpaudit.mechanisms.channel import Channel, largest_log_ratios
from ldpaudit.mechanisms.explicit import ExplicitChannel
from ldpaudit.mechanisms.finite import codes_of, noise_on
from ldpaudit.mechanisms.frequency_oracles.local_hashing import OptimizedLocalHashing
from ldpaudit.mechanisms.frequency_oracles.subset_selection import SubsetSelection
from ldpaudit.mechanisms.frequency_oracles.summed_histogram import SummedHistogram
from ldpaudit.mechanisms.frequency_oracles.thresholded_histogram import (
    ThresholdedHistogram,
    best_threshold,
)
from ldpaudit.mechanisms.label_range import LabelRange, between, nearest
from ldpaudit.mechanisms.noise.continuous import Laplace, laplace_rdp
from ldpaudit.mechanisms.noise.discrete import DiscreteLaplace
from ldpaudit.mechanisms.noise.exponential import Exponential
from ldpaudit.mechanisms.numeric.debiased_rr import DebiasedRR
from ldpaudit.mechanisms.numeric.private_prior import check_prior_budget
from ldpaudit.mechanisms.numeric.rr_on_bins import RROnBins
from ldpaudit.mechanisms.numeric.view import numeric_view, point_channel
from ldpaudit.mechanisms.parameters import check_classes
from ldpaudit.mechanisms.response.gaussian import gaussian_epsilon, gaussian_sigma
from ldpaudit.mechanisms.response.randomized_response import (
    RandomizedResponse,
    conditional_rdp_floor,
)


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
        with pytest.raises(InputError, match="row"):
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


def test_the_noise_of_randomized_response() -> None:
    for k in (2, 7):
        matrix = RandomizedResponse(tuple(range(k)), noise_on(k, 1.3)).channel.matrix
        assert math.log(matrix.max() / matrix.min()) == pytest.approx(1.3)


def test_labels_that_are_not_declared_are_counted() -> None:
    assert codes_of(["b", "a", "b"], ("a", "b")).tolist() == [1, 0, 1]
    assert codes_of([], ("a", "b")).tolist() == []
    for labels in (["a", "c", "d"], np.array(["a", None, 3], dtype=object)):
        with pytest.raises(InputError, match="row"):
            codes_of(labels, ("a", "b"))


def test_labels_are_texts_or_numbers() -> None:
    for labels in (["a", ["b"]], [{"a": 1}, "b"], [(1, 2), 3], ["a", None], [float("nan"), 1]):
        with pytest.raises(InputError, match="texts, numbers"):
            check_classes(labels)
    with pytest.raises(InputError, match="distinct"):
        check_classes(["a", "a"])
    with pytest.raises(InputError, match="at least two"):
        check_classes(["a"])


@pytest.mark.parametrize("bins", [1, 2, 3, 4, 6, 9])
def test_bins_of_outputs_have_about_equally_many(bins: int) -> None:
    outputs = (0.0, 1.0, 2.0, 10.0, 11.0, 30.0)
    mechanism = ExplicitChannel(Channel(np.full((2, 6), 1 / 6), (0, 1), outputs))
    edges = mechanism.bin_edges(bins)
    counts = np.bincount(np.searchsorted(edges, outputs), minlength=len(edges) + 1)
    assert len(edges) == min(bins, 6) - 1
    assert counts.max() - counts.min() <= 1
    assert all(edge in (0.5, 1.5, 6.0, 10.5, 20.5) for edge in edges)


def test_thresholds_and_reports_are_checked() -> None:
    with pytest.raises(InputError, match="threshold"):
        ThresholdedHistogram(("a", "b"), 1.0, 1.5)
    ThresholdedHistogram(("a", "b"), 1.0, 1.0)
    hashing = OptimizedLocalHashing(("a", "b", "c"), 1.0, 4)
    reports, possible = hashing.read(np.array([[1, -1], [2, 0], [-1, 3], [3, 4]]))
    assert possible.tolist() == [False, True, True, False]
    assert reports[2].tolist() == [2**32 - 1, 3]


@pytest.mark.parametrize("sensitivity", [0.0, -1.0])
def test_a_sensitivity_is_above_zero(sensitivity: float) -> None:
    with pytest.raises(InputError, match="sensitivity"):
        gaussian_epsilon(1.0, sensitivity, 1e-5)


def test_an_order_of_the_exponential_mechanism_is_above_zero() -> None:
    with pytest.raises(InputError, match="above 0"):
        Exponential(LabelRange(0.0, 1.0), 1.0).rdp(0.0)


@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_the_distribution_of_geometric_noise(epsilon: float) -> None:
    q, x = math.exp(-epsilon), np.array([-3.0, -1.5, -1.0, -0.5, 0.0, 0.7, 1.0, 4.2])
    pmf = [(1 - q) / (1 + q) * q ** abs(i) for i in range(-80, 81)]
    expected = [sum(p for i, p in zip(range(-80, 81), pmf, strict=True) if i <= at) for at in x]
    made = LabelProportions("bag", ("no", "yes"), "geometric", epsilon)
    assert made.noise_cdf(x) == pytest.approx(expected)


def test_the_shift_of_log_odds() -> None:
    priors, posterior = np.array([0.2, 0.5, 0.9]), np.array([0.4, 0.5, 0.3])
    expected = np.abs(special.logit(posterior) - special.logit(priors))
    assert log_odds_shift(priors, posterior) == pytest.approx(expected)


@pytest.mark.parametrize("alpha", [0.0, -1.0])
def test_an_order_of_a_channel_is_above_zero(alpha: float) -> None:
    with pytest.raises(InputError, match="above 0"):
        Channel(np.eye(2), (0, 1), (0, 1)).divergences(alpha)


def test_a_channel_of_equal_rows_keeps_two() -> None:
    mechanism = ExplicitChannel(Channel(np.full((3, 2), 0.5), (0, 1, 2), (0, 1)))
    assert _distinct_rows(mechanism).matrix.tolist() == [[0.5, 0.5], [0.5, 0.5]]
    two = Channel(np.array([[0.5, 0.5], [0.2, 0.8], [0.5, 0.5]]), (0, 1, 2), (0, 1))
    assert len(_distinct_rows(ExplicitChannel(two)).matrix) == 2


def test_the_channel_from_points_is_that_of_the_labels() -> None:
    mechanism = DiscreteLaplace(LabelRange(0.0, 9.0, 1.0), 1.0, True)
    view = numeric_view(mechanism, 10_000)
    found = point_channel(mechanism, view)
    assert found.classes == tuple(range(10))
    assert found.matrix == pytest.approx(mechanism.channel.matrix)
    wide = DiscreteLaplace(LabelRange(0.0, 999.0, 1.0), 0.1, True)
    points = point_channel(wide, numeric_view(wide, 10_000))
    assert len(points.classes) == 65
    assert points.matrix.sum(axis=1) == pytest.approx(1)


def test_most_likely_labels_of_many_reports() -> None:
    mechanism = SummedHistogram(("a", "b", "c"), 2.0)
    reports = np.random.default_rng(0).normal(size=(300, 3))
    found = mechanism.labels(reports, np.random.default_rng(1))
    assert found.tolist() == reports.argmax(axis=1).tolist()


def test_a_posterior_has_two_labels_at_least() -> None:
    with pytest.raises(InputError, match="at least two"):
        score_space(np.ones((5, 1)))


@pytest.mark.parametrize("epsilon", [1e-6, 0.1, 1.0, math.log(3), 7.3, 20.0])
@pytest.mark.parametrize("d", [2, 3, 7])
def test_integer_weights_never_exceed_the_stated_epsilon(epsilon: float, d: int) -> None:
    """Exactly: the ratio of two whole numbers against e^ε with 60 digits."""
    mechanism = RROnBins(tuple(range(d)), epsilon, tuple(range(d)), tuple(map(float, range(d))))
    row = [int(w) for w in np.atleast_2d(mechanism.weights.weights)[0]]
    with mpmath.workdps(60):
        ratio = mpmath.mpf(max(row)) / min(row)
        assert ratio <= mpmath.exp(mpmath.mpf(epsilon))
        assert ratio >= mpmath.exp(mpmath.mpf(epsilon)) * (1 - mpmath.mpf("1e-10"))


@pytest.mark.parametrize("k", [2, 5])
def test_debiased_response_keeps_as_often_as_it_says(k: int) -> None:
    mechanism = DebiasedRR(tuple(range(k)), 1.5)
    said = float(re.search(r"probability ([\d.]+)", mechanism.description).group(1))
    assert said == pytest.approx(mechanism.channel.matrix.max(), rel=1e-5)


def test_seeds_of_local_hashing_have_32_bits() -> None:
    hashing = OptimizedLocalHashing(("a", "b", "c"), 1.0, 4)
    seeds = hashing.sample(np.zeros(2_000, np.int32), np.random.default_rng(0))[:, 0]
    assert seeds.min() >= 0
    assert 2**31 < seeds.max() < 2**32
    assert abs(seeds.mean() / 2**31 - 1) < 5 * math.sqrt(1 / 3 / 2_000)


def test_bags_have_two_labels() -> None:
    made = LabelProportions("bag", ("no", "yes"), "geometric", 1.0)
    with pytest.raises(InputError, match="declared range"):
        made.release(np.array([0, 2], np.int32), np.array([0, 0]), np.random.default_rng(0))


def test_a_curve_of_delta_ends_at_the_mechanisms_epsilon() -> None:
    places = [at for at, _ in delta_curve(privacy_of(Laplace(LabelRange(0.0, 1.0), 3.0)))]
    assert (places[0], places[-1]) == (0.0, pytest.approx(3.0))
    blind = ExplicitChannel(Channel(np.full((2, 2), 0.5), (0, 1), (0, 1)))
    assert delta_curve(privacy_of(blind))[-1] == (1.0, 0.0)
