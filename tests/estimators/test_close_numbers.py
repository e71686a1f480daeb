"""Columns that hold true numbers of some people are found, and natural predictors are not."""

import numpy as np
import pytest

from ldpaudit.estimators.close_numbers import close_numbers

N, WIDTH = 3_000, 100.0


def people(seed, n=N):
    rng = np.random.default_rng(seed)
    return rng, WIDTH * rng.beta(2, 3, n)


def planted(kind, rng, truth):
    """Return columns of which the first holds true numbers, and the share of people."""
    n, share = len(truth), 0.04
    some, tens = rng.random(n) < share, np.round(truth + rng.normal(0, 15, n), -1)
    size = np.where(some, 1.0, rng.integers(2, 5, n))
    others = WIDTH * rng.beta(2, 3, n) * (size - 1)
    return {
        "among tens": [np.where(some, truth.round(2), tens)],
        "rounded, else missing": [np.where(some, np.round(truth, -1), np.nan)],
        "sums of households": [truth + others, size],
        "of one region": [np.where(some, truth, tens), np.where(some, 3.0, rng.integers(0, 3, n))],
    }[kind]


@pytest.mark.parametrize(
    "kind", ["among tens", "rounded, else missing", "sums of households", "of one region"]
)
def test_true_numbers_of_some_people_are_found(kind):
    for seed in range(3):
        rng, truth = people(seed)
        columns = [*planted(kind, rng, truth), truth + rng.normal(0, 10, N), rng.normal(size=N)]
        (first, *_) = close_numbers(columns, truth, WIDTH, rng)
        assert first.column == 0
        assert 0.025 < first.share < 0.06
        assert first.right >= 0.98
        assert first.within == (0.05 if "rounded" in kind else 0.002)


NATURAL = {
    "near": lambda rng, truth: truth + rng.normal(0, 4, len(truth)),
    "near, rounded": lambda rng, truth: np.round(truth + rng.normal(0, 4, len(truth)), -1),
    "often the same": lambda rng, truth: np.where(
        rng.random(len(truth)) < 0.7, np.rint(truth), np.rint(rng.permutation(truth))
    ),
    "nothing": lambda rng, truth: rng.normal(size=len(truth)),
    "with gaps": lambda rng, truth: np.where(
        rng.random(len(truth)) < 0.9, np.nan, truth + rng.normal(0, 6, len(truth))
    ),
    "few values": lambda rng, truth: (
        np.rint(truth / 20) * 20 + rng.choice([-20, 0, 20], len(truth))
    ),
    "missing": lambda _, truth: np.full(len(truth), np.nan),
}


@pytest.mark.parametrize("labels", ["fine", "whole", "zeros"])
@pytest.mark.parametrize("n", [200, 3_000])
def test_natural_predictors_hold_no_true_numbers(labels, n):
    for seed in range(10):
        rng, truth = people([seed, n], n)
        if labels == "zeros":
            truth = np.where(rng.random(n) < 0.6, 0.0, truth)
        truth = np.rint(truth) if labels == "whole" else truth
        columns = [make(rng, truth) for make in NATURAL.values()]
        assert close_numbers(columns, truth, WIDTH, rng) == []


def test_few_rows_or_one_number_have_nothing_to_hold():
    rng, truth = people(0, 10)
    assert close_numbers([truth], truth, WIDTH, rng) == []
    assert close_numbers([np.ones(100)], np.ones(100), 0.0, rng) == []
    assert close_numbers([], *people(0)[1:], WIDTH, rng) == []
