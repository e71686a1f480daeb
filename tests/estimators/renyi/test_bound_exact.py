"""The certified bounds of a Rényi divergence, put together by hand."""

import math

import numpy as np
import pytest

from ldpaudit.errors import InputError, InsufficientDataError
from ldpaudit.estimators.intervals.bounded_mean import mean_lower, mean_upper
from ldpaudit.estimators.renyi.critics import ClippedCritic, Scores
from ldpaudit.estimators.renyi.divergence import RenyiBound, _groups, bounds_on, split_scores

RNG = np.random.default_rng(0)
SCORES = Scores(RNG.normal(1, 0.8, 900), RNG.normal(-1, 0.8, 2_050))


def critic(form: str, shift: float = 0.0, foreseen: float = 1.0) -> ClippedCritic:
    return ClippedCritic(2.0, form, None, 0.7, 1.5, shift, foreseen)


def test_the_donsker_varadhan_form() -> None:
    mine = critic("donsker-varadhan")
    phi = [np.clip(0.7 * side, -13.5, 1.5) for side in (SCORES.p, SCORES.q)]
    ends = math.exp(-13.5), math.exp(1.5)
    from ldpaudit.estimators.renyi import divergence

    spent = divergence._UPPER_SHARE * 0.05
    low = mean_lower(np.exp(phi[0]), 0.05 - spent, *ends)
    high = mean_upper(np.exp(2 * phi[1]), spent, ends[0] ** 2, ends[1] ** 2)
    expected = 2 * math.log(low) - math.log(high)
    assert RenyiBound(3.0, mine, SCORES).at(0.05) == pytest.approx(expected)


def test_the_tangent_form() -> None:
    """α e^{(α−1)φ} − (α − 1) e^{αφ} in groups of rows: a mean whose logarithm is the bound."""
    mine, shift = critic("tangent", -0.6), -0.6
    phi = [np.clip(0.7 * side, -13.5, 1.5) + shift for side in (SCORES.p, SCORES.q)]
    a, b = _groups(900, 2_050)
    m = min(900 // a, 2_050 // b)
    values = [
        2 * np.exp(phi[0][i * a : (i + 1) * a]).mean()
        - np.exp(2 * phi[1][i * b : (i + 1) * b]).mean()
        for i in range(m)
    ]
    least, most = math.exp(-13.5 + shift), math.exp(1.5 + shift)
    mean = mean_lower(np.array(values), 0.05, 2 * least - most**2, 2 * most - least**2)
    assert mean > 1
    assert RenyiBound(2.0, mine, SCORES).at(0.05) == pytest.approx(math.log(mean))


def test_what_promises_nothing_bounds_nothing() -> None:
    assert RenyiBound(2.0, critic("tangent", foreseen=0.0), SCORES).at(0.05) == 0.0
    assert RenyiBound(2.0, critic("tangent", shift=5.0), SCORES).at(0.05) == 0.0


def test_a_larger_order_may_take_the_bound_of_a_smaller_one() -> None:
    found = bounds_on(*split_scores(SCORES, rng=np.random.default_rng(1)), (1.5, 4.0, 20.0))
    assert [bound.order for bound in found] == [1.5, 4.0, 20.0]
    assert all(b.critic.order <= min(b.order, 10.0) for b in found)
    assert found[0].critic.foreseen <= found[1].critic.foreseen <= found[2].critic.foreseen
    with pytest.raises(InputError, match="above 1"):
        bounds_on(SCORES, SCORES, (1.0,))


def test_fifty_rows_of_either_side_are_enough() -> None:
    few = Scores(np.arange(50.0), np.arange(60.0))
    tuning, test = split_scores(few, rng=np.random.default_rng(0), share=0.5)
    assert (len(tuning.p), len(tuning.q), len(test.p), len(test.q)) == (25, 30, 25, 30)
    assert sorted([*tuning.p, *test.p]) == list(range(50))
    tuning, _ = split_scores(few, rng=np.random.default_rng(0), share=0.01)
    assert (len(tuning.p), len(tuning.q)) == (20, 20)
    with pytest.raises(InsufficientDataError):
        split_scores(Scores(few.p[:49], few.q), rng=np.random.default_rng(0))
