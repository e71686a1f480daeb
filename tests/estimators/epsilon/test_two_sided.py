import math

import numpy as np
import pytest

from ldpaudit.estimators.epsilon import two_sided
from ldpaudit.estimators.epsilon.bounds import two_sided_bound
from ldpaudit.estimators.epsilon.two_sided import TwoSidedPlan, best_two_sided
from ldpaudit.estimators.intervals.binomial import clopper_pearson_lower, clopper_pearson_upper

IDENTITY = TwoSidedPlan(np.array([0, 1], np.int32), np.array([0, 1], np.int32))


def test_is_the_classical_bound_with_half_of_alpha_per_tail() -> None:
    counts = np.array([[700, 300], [200, 800]])
    low = clopper_pearson_lower(800, 1000, 0.025)
    high = clopper_pearson_upper(300, 1000, 0.025)
    wanted = max(math.log(low / high), math.log((1 - high) / (1 - low)))
    found = IDENTITY.bound(counts, 0.05)
    assert found.epsilon == pytest.approx(wanted)
    assert found.n == 2000


def test_published_expected_bounds() -> None:
    for epsilon, wanted in ((1.0, 0.937), (2.0, 1.914), (4.0, 3.791)):
        right = round(5000 / (1 + math.exp(-epsilon)))
        counts = np.array([[right, 5000 - right], [5000 - right, right]])
        assert IDENTITY.bound(counts, 0.05).epsilon == pytest.approx(wanted, abs=0.01)


def test_the_plan_finds_the_outputs_that_tell_labels_apart() -> None:
    # Only the third output betrays the first label.
    channel = np.array([[0.4, 0.4, 0.2], [0.49, 0.49, 0.02], [0.49, 0.49, 0.02]])
    plan, expected = best_two_sided(np.array([9000, 9000, 9000]), channel, 0.05)
    assert plan.groups.tolist() == [1, 0, 0]
    assert plan.guess.tolist() == [0, 0, 1]
    assert 2.0 < expected < math.log(10)


def test_no_difference_gives_no_plan() -> None:
    plan, expected = best_two_sided(np.array([10, 10]), np.full((2, 2), 0.5), 0.05)
    assert expected == 0.0
    assert plan.bound(np.full((2, 2), 5), 0.05).epsilon == 0.0


def test_the_expected_bound_is_the_mean_over_quantiles() -> None:
    """Both tails at α/2, at every pair of nodes of the two counts."""
    sizes = np.array([300, 200])
    channel = np.array([[0.8, 0.2], [0.3, 0.7]])
    plan = two_sided.TwoSidedPlan(np.array([0, 1], np.int32), np.array([0, 1]))
    values = []
    for up in two_sided._NODES:
        positive = np.clip(np.floor(140 + np.sqrt(140 * 0.3) * up + 0.5), 0, 200)
        for down in two_sided._NODES:
            negative = np.clip(np.floor(60 + np.sqrt(60 * 0.8) * down + 0.5), 0, 300)
            values.append(two_sided_bound((negative, positive), (300, 200), 0.1).epsilon)
    (found,) = two_sided._expected_bounds([plan], sizes, channel, 0.1)
    assert found == pytest.approx(np.mean(values))
