"""What a column explains of a label, and which label became which, against numbers by hand."""

import time

import numpy as np
import pytest
from scipy.stats import binomtest

from ldpaudit.estimators.explained import (
    FEWEST_ROWS,
    MOST_BINS,
    bands,
    bins_of_categories,
    bins_of_numbers,
    entries_of,
    explained_of_classes,
    explained_of_numbers,
)


def test_shares_by_hand():
    # Two bins of 10: 8 and 2 of the first label, then 3 and 7. τ = (6.8 + 5.8 − 10.1)/(20 − 10.1).
    tau = (6.8 + 5.8 - (11**2 + 9**2) / 20) / (20 - (11**2 + 9**2) / 20)
    found = explained_of_classes(np.array([[8, 2], [3, 7]]))
    assert found == pytest.approx(1 - (1 - tau) * 19 / 18, abs=1e-12)
    # Numbers 1, 2 | 3, 6: of a variance of 14 the bins explain 9.
    found = explained_of_numbers(np.array([0, 0, 1, 1]), np.array([1.0, 2.0, 3.0, 6.0]))
    assert found == pytest.approx(1 - (1 - 9 / 14) * 3 / 2, abs=1e-12)


def test_all_and_nothing():
    assert explained_of_classes(np.array([[50, 0], [0, 50]])) == 1.0
    assert explained_of_classes(np.array([[25, 25], [25, 25]])) == 0.0
    assert explained_of_classes(np.array([[30, 0], [70, 0]])) == 0.0
    bins = np.repeat([0, 1], 50)
    assert explained_of_numbers(bins, np.where(bins, 4.0, -1.0)) == pytest.approx(1.0)
    assert explained_of_numbers(bins, np.ones(100)) == 0.0


def test_chance_explains_nothing_on_average():
    """Not cut off at 0, an independent column has mean 0; without the correction it is 7/199."""
    rng, found = np.random.default_rng(0), []
    bins, labels = np.repeat(np.arange(8), 25), np.repeat([0, 1, 2], [100, 60, 40])
    for _ in range(4000):
        counts = np.bincount(bins * 3 + rng.permutation(labels), minlength=24).reshape(8, 3)
        by_chance = (labels[:, None] == np.arange(3)).sum(axis=0) ** 2 / 200
        tau = ((counts**2 / 25).sum() - by_chance.sum()) / (200 - by_chance.sum())
        found.append(1 - (1 - tau) * 199 / 192)
    assert abs(np.mean(found)) < 6 * np.std(found) / 4000**0.5


@pytest.mark.parametrize("keep", [0.6, 0.9])
def test_of_two_equal_labels_noise_leaves_the_square_of_its_total_variation(keep):
    """With labels alike frequent, E[τ after] = (2·keep − 1)² E[τ before]."""
    n, rng = 400_000, np.random.default_rng(1)
    truth = np.repeat([0, 1], n // 2)
    bins = (rng.random(n) < 0.3 + 0.4 * truth).astype(np.int64)
    released = np.where(rng.random(n) < keep, truth, 1 - truth)
    before, after = (
        explained_of_classes(np.bincount(2 * bins + labels, minlength=4).reshape(2, 2))
        for labels in (truth, released)
    )
    assert before == pytest.approx(0.16, abs=0.005)
    assert after == pytest.approx(before * (2 * keep - 1) ** 2, abs=0.004)


NUMBERS = {
    "spread": np.random.default_rng(0).normal(size=4000),
    "a flag": np.repeat([0.0, 1.0], [3900, 100]),
    "mostly zero": np.where(np.arange(4000) % 10, 0.0, np.arange(4000)),
    "missing": np.where(np.arange(4000) % 4, np.arange(4000.0), np.nan),
    "all missing": np.full(4000, np.nan),
    "few rows": np.arange(30.0),
    "one rare value": np.repeat([0.0, 5.0], [3997, 3]),
}
LEAST = {"spread": 8, "a flag": 2, "mostly zero": 3, "missing": 8, "all missing": 1}


@pytest.mark.parametrize("kind", NUMBERS)
def test_no_bin_of_numbers_is_about_a_few_people(kind):
    values = NUMBERS[kind]
    bins = bins_of_numbers(values)
    sizes = np.bincount(bins)
    assert sizes.min() >= FEWEST_ROWS
    assert LEAST.get(kind, 1) <= len(sizes) <= 2 * MOST_BINS
    known = ~np.isnan(values)
    ordered = bins[known][np.argsort(values[known], kind="stable")]
    assert (np.diff(ordered) >= 0).all()
    for value in np.unique(values[known])[:50]:
        assert len(np.unique(bins[values == value])) == 1


def test_no_bin_of_categories_is_about_a_few_people():
    codes = np.repeat(np.arange(-1, 12), [300, 200, 150, 100, 90, 80, 70, 60, 50, 9, 3, 2, 1])
    sizes = np.bincount(bins_of_categories(codes.astype(np.int32)))
    assert sizes.tolist() == [300, 200, 150, 100, 90, 80, 70, 125]
    few = bins_of_categories(np.repeat([0, 1, 2], [100, 60, 3]).astype(np.int32))
    assert np.bincount(few).tolist() == [100, 63]
    assert np.bincount(bins_of_categories(np.arange(500, dtype=np.int32))).tolist() == [500]


def test_entries_by_hand():
    counts = np.array([[73, 27], [0, 0], [30, 70]])
    claim = np.array([[0.7, 0.3], [0.5, 0.5], [0.3, 0.7]])
    found = entries_of(counts, claim, 0.05)
    assert found.share[0].tolist() == [0.73, 0.27]
    assert np.isnan(found.share[1]).all()
    # Two labels have rows: each interval has the level 1 − 0.05/2.
    ends = binomtest(73, 100).proportion_ci(1 - 0.05 / 2, "exact")
    assert (found.low[0, 0], found.high[0, 0]) == pytest.approx((ends.low, ends.high))
    tails = (binomtest(73, 100, 0.7, side).pvalue for side in ("less", "greater"))
    assert found.p_value[0, 0] == pytest.approx(2 * min(tails))
    assert found.p_value[2, 0] == 1.0


def _drawn(rng, claim, sizes):
    return np.stack([rng.multinomial(n, row) for n, row in zip(sizes, claim, strict=True)])


@pytest.mark.parametrize("k", [2, 3])
def test_intervals_hold_together_and_find_a_change(k):
    """Validity: all hold in 95 % of draws (below 93 % by chance 1e-5); power: a change shows."""
    rng, sizes = np.random.default_rng(k), np.linspace(40, 400, k).astype(int)
    claim = np.full((k, k), 0.3 / (k - 1)) + np.eye(k) * (0.7 - 0.3 / (k - 1))
    held = 0
    for _ in range(2000):
        found = entries_of(_drawn(rng, claim, sizes), claim, 0.05)
        held += bool(((found.low <= claim) & (claim <= found.high)).all())
    assert held >= 1860
    changed = entries_of(_drawn(rng, np.eye(k), sizes), claim, 0.05)
    assert (changed.low.diagonal() > claim.diagonal()).all()
    assert (changed.p_value.diagonal() < 1e-5).all()


def test_bands_are_ordered_and_about_equal():
    weights = np.random.default_rng(0).random(40)
    found = bands(weights, 5)
    assert (np.diff(found) >= 0).all()
    held = np.bincount(found, weights) / weights.sum()
    assert len(held) == 5
    assert np.abs(held - 0.2).max() < 0.05
    assert bands(np.array([1.0]), 5).tolist() == [0]
    assert bands(np.array([98.0, 1.0, 1.0]), 5).tolist() == [0, 1, 1]


def test_a_column_takes_milliseconds():
    values = np.random.default_rng(0).normal(size=20_000)
    labels, start = (values > 0).astype(np.int64), time.process_time()
    bins = bins_of_numbers(values)
    explained_of_classes(np.bincount(bins * 2 + labels, minlength=32).reshape(-1, 2))
    assert time.process_time() - start < 0.1  # 0.002 s here
