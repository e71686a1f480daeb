import math

import numpy as np
import pytest

from ldpaudit.errors import InputError, InsufficientDataError
from ldpaudit.estimators.renyi.critics import Scores
from ldpaudit.estimators.renyi.divergence import ORDERS
from ldpaudit.estimators.renyi.points import (
    calibration_error,
    effective_rows,
    largest_order,
    renyi_points,
)


def gaussian_scores(n: int, shift: float, seed: int) -> Scores:
    x = np.random.default_rng(seed).standard_normal((2, n))
    x[0] += shift
    ratio = shift * x - shift**2 / 2
    return Scores(ratio[0], ratio[1])


@pytest.mark.parametrize(("order", "divergence"), [(1.5, 0.5), (2.0, 1.0), (3.0, 1.0)])
def test_estimates_are_near(order: float, divergence: float) -> None:
    # Three seeds' mean has a standard error of about 1 %.
    shift = math.sqrt(2 * divergence / order)
    points = [renyi_points(gaussian_scores(50_000, shift, s), [order])[0] for s in range(3)]
    assert all(point.supported for point in points)
    assert np.mean([point.value for point in points]) == pytest.approx(divergence, rel=0.05)


def test_orders_beyond_the_rows_are_not_supported() -> None:
    points = renyi_points(gaussian_scores(5_000, 1.5, 0), ORDERS)
    assert not points[-1].supported
    top = largest_order(points)
    assert top is not None
    assert top <= 2.0
    held = [point.supported for point in points]
    assert held == sorted(held, reverse=True)


def test_no_order_may_be_supported() -> None:
    points = renyi_points(gaussian_scores(100, 5.0, 0), ORDERS)
    assert largest_order(points) is None


def test_the_convex_conjugate_form_lies_below_the_other() -> None:
    for seed in range(5):
        for point in renyi_points(gaussian_scores(2_000, 1.0, seed), ORDERS):
            assert point.convex_conjugate <= point.donsker_varadhan + 1e-9


def test_no_divergence_is_estimated_as_none() -> None:
    zeros = Scores(np.zeros(100), np.zeros(100))
    for point in renyi_points(zeros, ORDERS):
        assert point.value == pytest.approx(0.0)
        assert point.effective_rows == pytest.approx(100)


def test_effective_rows() -> None:
    assert effective_rows(np.ones(7)) == pytest.approx(7)
    assert effective_rows(np.array([1.0, 0.0, 0.0])) == pytest.approx(1)


def test_calibration_is_measured() -> None:
    scores = gaussian_scores(50_000, 1.0, 1)
    assert calibration_error(scores) < 0.02
    assert calibration_error(Scores(4 * scores.p, 4 * scores.q)) > 0.08


@pytest.mark.parametrize("orders", [[1.0], [2.0, 1.5], [math.inf], [math.nan]])
def test_orders_that_cannot_be_estimated_are_refused(orders: list[float]) -> None:
    with pytest.raises(InputError, match="must ascend within"):
        renyi_points(gaussian_scores(100, 1.0, 0), orders)


def test_a_side_without_rows_is_refused() -> None:
    with pytest.raises(InsufficientDataError, match="rows on both sides"):
        renyi_points(Scores(np.zeros(3), np.empty(0)), [2.0])
