"""Singling out and linkability: silent where the synthetic rows know nobody, loud where they do."""

import numpy as np
import pytest
from worlds import feature_table

from ldpaudit.extras.kinds.synthetic.counts import (
    PairedSuccesses,
    codes_of,
    linked,
    paired,
    singled_out,
)


def rows(n: int, rng: np.random.Generator, *, round_to: int | None = None) -> np.ndarray:
    found = rng.normal(size=(n, 1)) + rng.normal(size=(n, 4))
    return found if round_to is None else np.round(found * round_to)


def attacked(
    rng: np.random.Generator, copies: float = 0.0, *, round_to: int | None = None, n: int = 400
) -> list[PairedSuccesses]:
    """Return the successes of both attacks; ``copies``: the share of rows that are audited ones."""
    audited, others, made = (rows(size, rng, round_to=round_to) for size in (n, n, n // 2))
    few = int(copies * len(made))
    made[:few] = audited[rng.permutation(n)[:few]] + 0.01 * rng.normal(size=(few, 4))
    people = np.stack([audited, others], axis=1).reshape(2 * n, 4).astype(np.float32)
    made = np.unique(made, axis=0).astype(np.float32)
    codes = codes_of(feature_table(people), feature_table(made))
    halves = [(people[:, part], made[:, part]) for part in (slice(0, 2), slice(2, 4))]
    found = singled_out(*codes, rng), linked(halves)
    return [paired(one.reshape(-1, 2)) for one in found]


def test_rows_that_are_near_copies_are_found() -> None:
    for seed in range(2):
        single, link = attacked(np.random.default_rng(seed), copies=0.3, n=1_500)
        assert single.interval(0.025)[0] > 0.02
        assert link.interval(0.025)[0] > 0.08  # A tenth of the audited people were copied.
        assert link.value == pytest.approx(0.15, abs=0.04)


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
