"""Values that decide labels, and orders of rows that reveal them."""

from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom

from ldpaudit.estimators.readable import LEAST_SHARE, Labels, readable
from ldpaudit.estimators.representations import represent
from ldpaudit.estimators.row_order import agreement_beyond, strongest_agreement
from ldpaudit.estimators.telling import decided
from ldpaudit.release import FeatureTable

Column = Callable[[pd.DataFrame, np.ndarray, np.random.Generator], np.ndarray]


def kept(labels: np.ndarray, epsilon: float, rng: np.random.Generator) -> np.ndarray:
    changed = rng.random(len(labels)) > np.exp(epsilon) / (1 + np.exp(epsilon))
    return np.asarray(labels ^ changed, dtype=np.int32)


def table(n: int, share: float, rng: np.random.Generator) -> tuple[pd.DataFrame, np.ndarray]:
    """Return honest columns, of which some foretell the label, and labels."""
    x = rng.normal(size=n)
    chance = 1 / (1 + np.exp(-1.5 * x - np.log(share / (1 - share))))
    balance = np.where(rng.random(n) < 0.08, 0.0, np.rint(np.exp(rng.normal(6, 1.2, n))))
    age = np.clip(np.rint(45 + 12 * x), 18, 95)
    columns = {"x": x.round(2), "age": age, "balance": balance, "job": rng.integers(0, 12, n)}
    return pd.DataFrame(columns), (rng.random(n) < chance).astype(np.int32)


def encoded(labels: np.ndarray, rng: np.random.Generator, weight: float = 0.0) -> np.ndarray:
    """Return the mean label of people of one place, about two in each."""
    places = pd.Series(labels).groupby(rng.integers(0, len(labels) // 2, len(labels)))
    total, size = places.transform("sum"), places.transform("size")
    mean = (total + weight * labels.mean()) / (size + weight)
    return np.asarray(mean, dtype=np.float32)


def filled_in(
    values: np.ndarray, labels: np.ndarray, share: float, rng: np.random.Generator
) -> np.ndarray:
    """Return numbers whose missing ones are the mean of their class."""
    means = np.array([values[labels == label].mean() for label in (0, 1)])
    return np.where(rng.random(len(labels)) < share, means[labels], values).astype(np.float32)


def with_others(frame: pd.DataFrame, *more: np.ndarray) -> FeatureTable:
    """Return the table's columns and some more, numbers or codes."""
    numbers, codes = [frame[name].to_numpy() for name in ("x", "age", "balance")], [frame["job"]]
    for column in more:
        (numbers if np.issubdtype(column.dtype, np.floating) else codes).append(column)
    numeric = np.column_stack(numbers).astype(np.float32)
    categorical = np.column_stack(codes).astype(np.int32)
    sizes = tuple(int(codes.max()) + 1 for codes in categorical.T)
    return FeatureTable(numeric, categorical, sizes, numeric.shape[1] + len(sizes))


def found(columns: list[Column], share: float, epsilon: float, seed: int, n: int) -> float:
    """Return the largest share of people whose label the scan reads off."""
    rng = np.random.default_rng([seed, n])
    frame, labels = table(n, share, rng)
    released = kept(labels, epsilon, rng)
    frame["released"] = released
    features = with_others(frame, *(column(frame, labels, rng) for column in columns))
    rows = rng.permutation(n)
    shown = represent(features, rows)
    reads = readable(shown, Labels(labels[rows], released[rows]), rng)
    return max((one.share for one in reads if one.notable), default=0.0)


PLANTED: dict[str, tuple[Column, float]] = {
    "target encoding": (lambda _, y, rng: encoded(y, rng), 0.3),
    "smoothed": (lambda _, y, rng: encoded(y, rng, 1.0), 0.2),
    "filled in by class": (lambda f, y, rng: filled_in(f["balance"].to_numpy(), y, 0.1, rng), 0.08),
    "two per cent": (lambda f, y, rng: filled_in(f["balance"].to_numpy(), y, 0.02, rng), 0.015),
    "a code for each class": (
        lambda f, y, rng: np.where(rng.random(len(y)) < 0.04, 90 + y, f["job"]),
        0.03,
    ),
}


@pytest.mark.parametrize("name", PLANTED)
def test_labels_left_in_a_column_for_some_people_are_found(name: str) -> None:
    column, least = PLANTED[name]
    assert sum(found([column], 0.55, 1.0, seed, 5_000) >= least for seed in range(2)) >= 1


HONEST: list[Column] = [
    lambda f, _, rng: encoded(f["released"].to_numpy(), rng),
    lambda f, _, rng: filled_in(f["balance"].to_numpy(), f["released"].to_numpy(), 0.1, rng),
]
"""Two columns that were computed from the released label, with those of nature in one table."""


@pytest.mark.parametrize(
    ("share", "epsilon", "draws"),
    [
        (0.55, 3.0, 4),
        *(
            pytest.param(share, epsilon, 40, marks=pytest.mark.validate)
            for share in (0.55, 0.11)
            for epsilon in (1.0, 3.0)
        ),
    ],
)
def test_honest_columns_decide_nothing(share: float, epsilon: float, draws: int) -> None:
    runs = [found(HONEST, share, epsilon, seed, 4_000) for seed in range(draws)]
    # The level is 2 %: beyond this once in a million.
    most = binom.isf(1e-6, draws, 0.02)
    assert sum(one > LEAST_SHARE for one in runs) <= most < draws


def test_a_value_of_many_people_whom_everybody_would_guess_decides_nothing() -> None:
    rng = np.random.default_rng(0)
    labels = (rng.random(10_000) < 0.1).astype(np.int32)
    dead = (rng.random(10_000) < 0.03) & (labels == 0)
    assert decided(dead.astype(np.int32), labels, kept(labels, 1.0, rng)).share == 0


def test_what_changes_gradually_decides_nothing_and_a_step_does() -> None:
    rng = np.random.default_rng(0)
    values = rng.integers(0, 40, 20_000).astype(np.float32)
    gradual = rng.random(20_000) < np.clip((values - 8) / 25, 0.001, 0.95)
    step = rng.random(20_000) < np.where(values < 8, 0.0, 0.5)
    for labels, share in ((gradual.astype(np.int32), 0.0), (step.astype(np.int32), 0.2)):
        assert decided(values, labels, kept(labels, 1.0, rng)).share == pytest.approx(
            share, abs=0.02
        )


@pytest.mark.parametrize("lag", [1, 2, 3])
def test_mean_and_variance_are_those_over_all_orders(lag: int) -> None:
    rng = np.random.default_rng(lag)
    labels = np.repeat(np.arange(3), (150, 80, 20)).astype(np.int32)
    one_cell = np.zeros(len(labels), dtype=np.int64)
    z = [agreement_beyond(rng.permutation(labels), one_cell, lag).z for _ in range(4_000)]
    # Five standard errors: by chance once in a million.
    assert np.mean(z) == pytest.approx(0, abs=0.08)
    assert np.std(z) == pytest.approx(1, abs=0.06)


@pytest.mark.parametrize("seed", range(8))
def test_a_random_order_is_like_chance(seed: int) -> None:
    labels = np.random.default_rng(seed).choice(3, 2000, p=[0.8, 0.15, 0.05]).astype(np.int32)
    found = strongest_agreement(labels)
    assert found is not None
    assert abs(found.z) < 6  # Missed by chance once in 10^8.


ORDERS = {
    "sorted": np.sort(np.arange(2000) % 3),
    "in turn": np.arange(2000) % 2,
    "every third": (np.arange(2000) % 3 == 0).astype(int),
    "blocks of ten": np.repeat(np.random.default_rng(0).integers(0, 3, 200), 10),
}


@pytest.mark.parametrize("case", ORDERS)
def test_an_order_that_tells_labels_is_found(case: str) -> None:
    found = strongest_agreement(ORDERS[case].astype(np.int32))
    assert found is not None
    assert abs(found.z) > 10
    assert abs(found.excess) > 0.4


def drawn(rng: np.random.Generator, n: int = 900) -> tuple[np.ndarray, np.ndarray]:
    """Return true and released labels: six in ten are kept."""
    truth = rng.choice(3, n, p=[0.6, 0.3, 0.1])
    released = np.where(rng.random(n) < 0.6, truth, (truth + rng.integers(1, 3, n)) % 3)
    return truth, released


def test_rows_sorted_by_the_released_label_tell_no_more_than_it_does() -> None:
    truth, released = drawn(np.random.default_rng(6))
    for order, told in {
        "released": (np.argsort(released, kind="stable"), False),
        "true": (np.argsort(truth, kind="stable"), True),
        "released, then true": (np.lexsort((truth, released)), True),
    }.values():
        found = strongest_agreement(truth[order].astype(np.int32), released[order])
        assert found is not None
        assert (abs(found.z) > 10, found.excess > 0.9) == (told, told)


@pytest.mark.parametrize("seed", range(3))
def test_an_edge_beyond_which_one_label_stands_decides_and_a_slope_does_not(seed: int) -> None:
    rng = np.random.default_rng(seed)
    labels = (rng.random(10_000) < 0.25).astype(np.int32)
    released = np.where(rng.random(10_000) < 0.73, labels, 1 - labels).astype(np.int32)
    # Each class was numbered on its own, so the highest numbers are of the larger one.
    numbered = np.empty(10_000, dtype=np.float32)
    for label in (0, 1):
        own = rng.permutation(np.flatnonzero(labels == label))
        numbered[own] = np.arange(len(own))
    found = decided(numbered, labels, released)
    beyond = (numbered >= labels.sum()).mean()
    assert found.share == pytest.approx(beyond, abs=0.05)
    score = (rng.normal(0, 1, 10_000) + 3.0 * labels).astype(np.float32)
    assert decided(score, labels, released).share == 0.0
