"""The pilot decides how many rows are asked: bounds stay valid, easy cases end early."""

from functools import cache

import numpy as np
import pytest
from scipy.stats import binom

from ldpaudit.audits.instance_loss.pilot import FEWEST, PILOT, PRECISION, most_queries
from ldpaudit.audits.instance_loss.pilot import _closest_to_half as closest_to_half
from ldpaudit.estimators.intervals.binomial import clopper_pearson_lower
from ldpaudit.estimators.neighbors.sizes import queries_needed

ERROR = 0.05


@cache
def rows_after(seen: int) -> int:
    """How many rows are asked after a pilot in which ``seen`` of the losses are 1, the rest 0."""
    lower = np.repeat([1.0, 0.0], [seen, PILOT - seen])
    worst = closest_to_half(lower, np.array([0.5]))
    return max(FEWEST, queries_needed(PRECISION, ERROR, worst))


@pytest.mark.parametrize("share", [0.004, 0.03, 0.5])
def test_the_bound_holds_at_its_level_and_is_as_tight_as_wanted(share: float) -> None:
    rng = np.random.default_rng(1)
    runs = 1_000
    asked = np.array([rows_after(int(seen)) for seen in rng.binomial(PILOT, share, runs)])
    counts = rng.binomial(asked, share)
    low = clopper_pearson_lower(counts, asked, ERROR)
    # A valid bound fails this with probability 1e-6; the seed is fixed.
    assert (low > share).sum() <= binom.isf(1e-6, runs, ERROR)
    assert (counts / asked - low > PRECISION).mean() < 0.01
    assert (low > 0).all()


def test_easy_cases_end_early_and_hard_ones_do_not() -> None:
    assert rows_after(PILOT // 2) == most_queries(ERROR)
    assert rows_after(0) == rows_after(PILOT) == FEWEST
    assert rows_after(PILOT // 20) < most_queries(ERROR) / 2
