"""Ranks and cells behind a true-positive rate, by trying all."""

import numpy as np
import pytest
from scipy.special import gammaln, logsumexp
from scipy.stats import binom, binomtest
from statsmodels.stats.proportion import proportion_confint

from ldpaudit.estimators.intervals.binomial import score_lower
from ldpaudit.estimators.intervals.bounded_mean import mean_lower, mean_upper
from ldpaudit.estimators.intervals.odds_ratio import upper_tail_probability
from ldpaudit.estimators.intervals.paired import Folds, best_interval, paired_interval
from ldpaudit.estimators.intervals.ranking import (
    _block_aucs,
    _loose_rank,
    _strict_rank,
    auc,
    auc_interval,
    auc_lower,
    auc_upper,
    tpr_at_fpr,
)


@pytest.mark.parametrize("n0", [3, 60, 400])
@pytest.mark.parametrize("fpr", [0.01, 0.1, 0.5])
def test_ranks_are_the_last_and_the_first_that_hold(n0: int, fpr: float) -> None:
    strict = max((r for r in range(1, n0 + 1) if binom.cdf(r - 1, n0, fpr) <= 0.05), default=0)
    assert _strict_rank(n0, fpr, 0.05) == strict
    ranks = [r for r in range(1, n0 + 1) if binom.sf(r - 1, n0, fpr) <= 0.05]
    assert _loose_rank(n0, fpr, 0.05) == max(min(ranks, default=n0 + 1), int(fpr * n0) + 1)


def test_a_rate_is_counted_above_thresholds() -> None:
    rng = np.random.default_rng(0)
    positives, negatives = rng.normal(1, 1, 80), rng.normal(0, 1, 300)
    found = tpr_at_fpr(positives, negatives, 0.1, 0.2)
    ranked = np.sort(negatives)[::-1]
    sure = int((positives > ranked[_strict_rank(300, 0.1, 0.05) - 1]).sum())
    most = int((positives >= ranked[_loose_rank(300, 0.1, 0.05) - 1]).sum())
    typical = int((positives > ranked[30]).sum())
    assert found.value == typical / 80
    assert found.low == pytest.approx(binomtest(sure, 80).proportion_ci(0.9, "exact").low)
    assert found.high == pytest.approx(binomtest(most, 80).proportion_ci(0.9, "exact").high)


def test_a_cell_without_rows_is_none() -> None:
    found = tpr_at_fpr(np.full(30, 2.0), np.arange(300.0) / 300, 0.1, 0.2)
    assert (found.value, found.high) == (1.0, 1.0)


@pytest.mark.parametrize(("few", "many", "size"), [(100, 100, 1), (120, 700, 1), (2_000, 3_000, 0)])
def test_blocks_have_their_share_of_either_side(few: int, many: int, size: int) -> None:
    rng = np.random.default_rng(1)
    positives, negatives = rng.integers(1, 9, few), rng.integers(0, 8, many)
    blocks = _block_aucs(positives, negatives)
    if size:
        assert len(blocks) == few // size
    assert ((blocks >= 0) & (blocks <= 1)).all()
    # Blocks of equal size: their mean is close to the AUC, exactly it over all permutations.
    assert blocks.mean() == pytest.approx(auc(positives, negatives), abs=5 * 0.5 / np.sqrt(few))
    low, high = auc_interval(positives, negatives, 0.05)
    assert low <= auc(positives, negatives) <= high


def test_with_few_rows_the_bounds_are_those_of_the_smaller_side() -> None:
    rng = np.random.default_rng(2)
    positives, negatives = rng.normal(1, 1, 12), rng.normal(0, 1, 90)
    value = auc(positives, negatives)
    expected = auc_lower(value, 12, 0.025), auc_upper(value, 12, 0.025)
    assert auc_interval(positives, negatives, 0.05) == expected


def test_a_paired_difference_is_bounded_fold_by_fold() -> None:
    rng = np.random.default_rng(3)
    parts = rng.choice([-1.0, 0.0, 1.0], 60), rng.choice([-1.0, 0.0, 1.0], 90, p=[0.1, 0.5, 0.4])
    folds = Folds(parts)
    found = paired_interval(folds, 0.1)
    low = sum(len(p) * mean_lower(p, 0.025, -1, 1) for p in parts) / 150
    high = sum(len(p) * mean_upper(p, 0.025, -1, 1) for p in parts) / 150
    assert (found.low, found.high) == pytest.approx((low, high))
    assert found.value == pytest.approx(np.concatenate(parts).mean())
    assert (found.n, found.level) == (150, 0.9)


def test_the_best_of_several_costs_its_number() -> None:
    rng = np.random.default_rng(4)
    rows = {name: rng.random(100) < p for name, p in zip("abxy", (0.6, 0.9, 0.5, 0.7), strict=True)}

    def pair(i: str, j: str) -> Folds:
        return Folds((rows[j].astype(float) - rows[i],))

    ours, theirs = ({n: float(rows[n].mean()) for n in names} for names in ("ab", "xy"))
    found = best_interval(pair, ours, theirs, 0.1)
    assert found.low == min(pair(i, "y").lower(0.025) for i in "ab")
    assert found.high == max(pair("b", j).upper(0.025) for j in "xy")
    assert found.value == pytest.approx(theirs["y"] - ours["b"])


@pytest.mark.parametrize("log_theta", [-0.6, 0.0, 0.4])
def test_the_tail_of_a_large_table_is_the_sum_over_its_margins(log_theta: float) -> None:
    """Fisher's noncentral hypergeometric law, all its terms, far from the observed count."""
    table = np.array([[30_000, 20_000], [25_000, 25_000]])
    ones, size, drawn = 50_000, 100_000, int(table[:, 1].sum())
    x = np.arange(max(0, drawn + ones - size), min(ones, drawn) + 1)
    logs = gammaln(ones + 1) - gammaln(x + 1) - gammaln(ones - x + 1)
    logs += gammaln(size - ones + 1) - gammaln(drawn - x + 1) - gammaln(size - ones - drawn + x + 1)
    logs += x * log_theta
    expected = np.exp(logsumexp(logs[x >= 25_000]) - logsumexp(logs))
    assert upper_tail_probability(table, log_theta) == pytest.approx(expected, rel=1e-6)


def test_the_approximate_bound_is_wilsons() -> None:
    for count, n in ((0, 10), (3, 10), (10, 10), (120, 400)):
        expected = proportion_confint(count, n, alpha=0.1, method="wilson")[0]
        assert score_lower(count, n, 0.05) == pytest.approx(expected, abs=1e-12)
