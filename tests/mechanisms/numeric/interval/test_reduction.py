import numpy as np
import pytest

from ldpaudit.mechanisms.numeric.interval.support import reduced_amounts


@pytest.mark.parametrize(("r", "n"), [(1, 1), (1, 9), (4, 4), (4, 5), (6, 200), (30, 2000)])
@pytest.mark.parametrize("seed", range(3))
def test_the_sums_stay_and_few_columns_do(r, n, seed):
    rng = np.random.default_rng(seed)
    columns = rng.normal(size=(r, n))
    columns[0] = rng.uniform(1, 2, size=n)
    amounts, costs = rng.exponential(size=n), rng.uniform(size=n)
    reduced = reduced_amounts(columns, amounts, costs)
    assert (reduced >= 0).all()
    assert np.count_nonzero(reduced) <= r
    assert columns @ reduced == pytest.approx(columns @ amounts, rel=1e-9, abs=1e-9 * n)
    assert costs @ reduced <= (costs @ amounts) * (1 + 1e-9)


def test_columns_of_lower_rank_are_no_obstacle():
    rng = np.random.default_rng(0)
    columns = np.repeat(rng.uniform(1, 2, size=(5, 3)), 40, axis=1)
    amounts = rng.exponential(size=120)
    reduced = reduced_amounts(columns, amounts, np.zeros(120))
    assert np.count_nonzero(reduced) <= 5
    assert columns @ reduced == pytest.approx(columns @ amounts)
