"""Singling out and linkability: silent where the synthetic rows know nobody, loud where they do."""

import numpy as np
import pytest
from worlds import feature_table

from ldpaudit.estimators.synthetic_attacks import (
    PairedSuccesses,
    codes_of,
    linked,
    paired,
    singled_out,
)


def rows(n: int, rng: np.random.Generator, *, round_to: int | None = None) -> np.ndarray:
    found = rng.normal(size=(n, 1)) + rng.normal(size=(n, 4))
    return found if round_to is None else np.round(found * round_to)


def attacked(seed: int, copies: float = 0.0, *, round_to: int | None = None, n: int = 400):
    """Return the successes of both attacks; ``copies``: the share of rows that are audited ones."""
    rng = np.random.default_rng(seed)
    audited, others, made = (rows(size, rng, round_to=round_to) for size in (n, n, n // 2))
    few = int(copies * len(made))
    made[:few] = audited[rng.permutation(n)[:few]] + 0.01 * rng.normal(size=(few, 4))
    people = np.stack([audited, others], axis=1).reshape(2 * n, 4).astype(np.float32)
    made = np.unique(made, axis=0).astype(np.float32)
    codes = codes_of(feature_table(people), feature_table(made))
    halves = [(people[:, part], made[:, part]) for part in (slice(0, 2), slice(2, 4))]
    found = singled_out(*codes, rng), linked(halves)
    return [paired(one.reshape(-1, 2)) for one in found]


@pytest.mark.parametrize("round_to", [None, 2])
def test_where_nobody_was_seen_the_risk_is_above_0_no_more_often_than_the_level(
    round_to: int | None,
) -> None:
    bounds = [
        [one.interval(0.3)[0] for one in attacked(seed, round_to=round_to)] for seed in range(150)
    ]
    # A third of half of 30 %; of 150 draws 5 % within 2.8 errors.
    assert (np.array(bounds) > 0).mean(axis=0).max() <= 0.1


def test_rows_that_are_near_copies_are_found() -> None:
    for seed in range(5):
        single, link = attacked(seed, copies=0.3, n=1_500)
        assert single.interval(0.025)[0] > 0.02
        assert link.interval(0.025)[0] > 0.08  # A tenth of the audited people were copied.
        assert link.value == pytest.approx(0.15, abs=0.04)


def test_the_interval_covers_the_risk_of_independent_pairs() -> None:
    rng = np.random.default_rng(0)
    shares = np.array([0.05, 0.2, 0.1, 0.65])  # both, audited, held-out, neither
    risk = (0.25 - 0.15) / (1 - 0.15)
    draws = rng.multinomial(300, shares, 400)
    intervals = [PairedSuccesses(300, *map(int, draw[:3])).interval(0.1) for draw in draws]
    assert np.mean([low <= risk <= high for low, high in intervals]) >= 0.9
    assert np.mean([high - low for low, high in intervals]) < 0.25


def test_extreme_counts() -> None:
    assert PairedSuccesses(10, 10, 0, 0).value == 0
    assert PairedSuccesses(10, 0, 10, 0).value == 1
    nothing = PairedSuccesses(10, 0, 0, 0)
    assert nothing.value == 0
    low, high = nothing.interval(0.05)
    assert -1 <= low < 0 < high <= 1
    assert PairedSuccesses(10, 4, 3, 1).counts == (7, 5)


def test_missing_values_and_constant_columns_are_values() -> None:
    rng = np.random.default_rng(1)
    table = rows(60, rng).astype(np.float32)
    table[:30, 0], table[:, 1] = np.nan, 1.0
    people, guesses = codes_of(feature_table(table), feature_table(table))
    assert people.shape == (60, 4)
    assert np.array_equal(people, guesses)
    assert singled_out(people, guesses, rng).mean() > 0.5


def test_rare_values_single_out() -> None:
    rng = np.random.default_rng(0)
    for rare in (0.02, 0.98):
        flags = (rng.random((500, 40)) < rare).astype(np.float32)
        codes = codes_of(feature_table(flags), feature_table(flags))
        assert singled_out(*codes, rng).mean() > 0.05
