"""Remainders and digits of numbers: leaks that bins hide are found, and honest noise is not."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.stats import beta

from ldpaudit.estimators.epsilon import lattice
from ldpaudit.estimators.epsilon.lattice import (
    DIGITS,
    ROUNDED_NUMBERS,
    SAME_NUMBERS,
    LatticeEvidence,
    SameNumbers,
    lattice_evidence,
    repeated_numbers,
)

HIGH = 12
RNG = np.random.default_rng(0)


def drawn(kind: str, epsilon: float, n: int, rng: np.random.Generator) -> tuple[np.ndarray, ...]:
    """Return true numbers, and released ones with noise of a kind."""
    truth, scale = np.clip(np.rint(rng.normal(6, 2.5, n)), 0, HIGH), HIGH / epsilon
    step = 2 if kind == "steps of 2" else 1
    chance = -np.expm1(-step / scale)
    whole = truth + step * (rng.geometric(chance, n) - rng.geometric(chance, n))
    uniform = (rng.integers(0, 1024, n) + 0.5) / 1024 - 0.5
    real = truth + rng.laplace(0, scale, n)
    return truth, {
        "1,024 values": truth - scale * np.sign(uniform) * np.log(1 - 2 * np.abs(uniform)),
        "whole, clipped": np.clip(whole, 0, HIGH),
        "whole, by five": 5 * np.rint(whole / 5),
        "real": real,
        "real, rounded": real.round(2),
    }.get(kind, whole)


def found(kind: str, epsilon: float, seed: int, n: int) -> LatticeEvidence:
    rng = np.random.default_rng([seed, n])
    evidence = lattice_evidence(*drawn(kind, epsilon, n, rng), rng)
    assert evidence is not None
    return evidence


@pytest.mark.parametrize(("kind", "modulus"), [("steps of 2", 2), ("1,024 values", None)])
@pytest.mark.parametrize("n", [3_000, 10_000])
def test_noise_that_shows_what_it_is_is_found(kind: str, modulus: int | None, n: int) -> None:
    every = [found(kind, 1.0, seed, n) for seed in range(4)]
    assert {one.modulus for one in every} == {modulus}
    assert min(one.bound(0.001).epsilon for one in every) > 3
    assert min(one.right for one in every) > 0.7


def test_what_cannot_be_looked_at() -> None:
    rng = np.random.default_rng(0)
    equal = np.ones(1_000)
    assert lattice_evidence(equal, equal + rng.laplace(0, 1, 1_000), rng) is None
    assert lattice_evidence(rng.random(99), rng.random(99), rng) is None


def off_the_grid(kind: str, epsilon: float, n: int, rng: np.random.Generator) -> tuple[Any, Any]:
    """Return true numbers on no grid, and released ones; some have more than noise in them."""
    truth = 10 * rng.beta(2, 3, n)
    if "zeros" in kind:
        truth = np.where(rng.random(n) < 0.6, 0, truth)
    noisy = truth + rng.laplace(0, 10 / epsilon, n)
    grid, digits = np.floor(noisy * 100) / 100, np.floor(truth * 100) / 1e3
    return truth, {
        "in the clear": np.where(rng.permutation(n) < 20, truth, noisy),
        "zeros, and in the clear": np.where(rng.permutation(n) < 60, truth, noisy),
        "in the clear, single": np.where(rng.permutation(n) < 20, truth, noisy).astype(np.float32),
        "in decimals": np.rint(noisy) + digits / 1e2,
        "in small decimals": grid + digits / 1e4,
        "in 1,024 steps": np.floor(noisy * 102.4) / 102.4 + digits / 102.4,
        "in binary digits": np.floor(noisy * 1024) / 1024 + digits / 1024,
        "steps": np.rint(truth * 100 + rng.laplace(0, 1000 / epsilon, n)) / 100,
        "single": noisy.astype(np.float32),
        "clipped": np.clip(noisy, 0, 10),
        "cents": noisy.round(2),
        "whole": noisy.round(),
        "rounded, in the clear": np.where(rng.random(n) < 0.02, truth.round(1), noisy),
        "cut off, in the clear": np.where(rng.random(n) < 0.08, np.floor(truth), noisy.round(2)),
    }.get(kind, noisy)


OFF_GRID = [
    "rounded, in the clear",
    "cut off, in the clear",
    "in the clear",
    "zeros, and in the clear",
    "in the clear, single",
    "in decimals",
    "in small decimals",
    "in 1,024 steps",
    "in binary digits",
]


@pytest.mark.parametrize("kind", OFF_GRID)
def test_true_numbers_in_released_ones_are_found(kind: str) -> None:
    for seed in range(3):
        rng = np.random.default_rng([seed, 9])
        truth, released = off_the_grid(kind, 3.0, 3_000, rng)
        evidence = lattice_evidence(truth, np.asarray(released, dtype=np.float64), rng, (0.0, 10.0))
        assert evidence is not None
        least = 2.0 if "cut off" in kind else 4.0 if kind.startswith("in the") else 3.0
        assert evidence.bound(0.001).epsilon > least
        rounded = evidence.bound(0.001).method == ROUNDED_NUMBERS
        assert rounded == kind.startswith(("rounded", "cut off"))


@pytest.mark.parametrize("decimals", [2, 12])
def test_noise_that_is_cut_off_itself_is_recognised_by_its_digits(decimals: int) -> None:
    """The largest noise stands in one row of twenty; all other digits point to nothing."""
    for seed in range(3):
        rng = np.random.default_rng([seed, 10])
        truth = np.rint(np.clip(rng.normal(50, 18, 3_000), 0, 100))
        noise = rng.laplace(0, 100 / 3, 3_000)
        most = np.quantile(np.abs(noise), 0.95)
        released = (truth + np.clip(noise, -most, most)).round(decimals)
        evidence = lattice_evidence(truth, released, rng, (0.0, 100.0))
        assert evidence is not None
        assert evidence.bound(0.001).method == DIGITS
        assert evidence.bound(0.001).epsilon > 3.5


def test_digits_point_to_a_number_where_that_says_most() -> None:
    """By hand: of ten rows each, nine have one noise; of 400 with other digits one in forty."""
    likeliest, every = np.array([9, 9, 9, 9, 9, 10]), np.array([10, 10, 10, 10, 10, 400])
    assert lattice._sure(likeliest, every).tolist() == [True] * 5 + [False]
    # All alike: each says something.
    assert lattice._sure(np.array([30, 31]), np.array([100, 100])).all()
    # Digits of one row alone are no evidence, but nothing better is there.
    assert lattice._sure(np.array([1, 1]), np.array([1, 1])).all()


def test_rows_in_the_clear_on_a_fine_grid_are_found() -> None:
    """Cents: every number lies on the grid of labels, and few are equal."""
    rng = np.random.default_rng(5)
    truth, noisy = np.round(1_000 * rng.beta(2, 3, 3_000), 2), rng.laplace(0, 1_000 / 3, 3_000)
    released = truth + np.where(rng.permutation(3_000) < 20, 0, noisy)
    evidence = lattice_evidence(truth, released, rng)
    assert evidence is not None
    assert evidence.bound(0.001).method == SAME_NUMBERS
    assert evidence.bound(0.001).epsilon > 4.0


def test_own_numbers_are_held_against_those_of_other_rows() -> None:
    """By hand: 5 of 80 rows have their own; 3 of 100 another's, which two rows at most have."""
    found = SameNumbers(own=5, having=80, others=3, asked=100, scale=2 * 100 / (80 * 99))
    low, high = beta.ppf(0.01, 5, 76), beta.ppf(0.99, 4, 97)
    assert found.bound(0.02).epsilon == pytest.approx(np.log(low / (high * 2 * 100 / (80 * 99))))
    assert found.bound(0.02).n == 100
    assert replace(found, own=0).bound(0.05).epsilon == 0.0


def test_numbers_that_many_rows_have_are_counted_by_themselves() -> None:
    truth = np.arange(100, dtype=float) ** 2 * np.pi
    released = np.roll(truth, 1)
    released[:3] = [truth[0], truth[1], 5e9]
    evidence = lattice_evidence(truth, released, RNG)
    assert evidence is not None
    assert evidence.same[0] == SameNumbers(2, 100, 97, 100, pytest.approx(1 / 99))
    truth[60:] = 0.0  # Forty rows, and the first one.
    released[70:73] = 0.0
    evidence = lattice_evidence(truth, released, RNG)
    assert evidence is not None
    rare = SameNumbers(1, 59, 58, 100, pytest.approx(100 / (59 * 99)))
    assert evidence.same[:2] == (rare, SameNumbers(4, 41, 0, 59, 1.0))


@pytest.mark.parametrize("kind", ["zeros", "whole", "few"])
def test_common_numbers_in_the_clear_are_found(kind: str) -> None:
    """Zeros of which one in 17 skips the noise; whole points, or logarithms, with fine noise."""
    rng = np.random.default_rng(8)
    n, few = 6_000, rng.integers(1, 16, 6_000)
    truth, high, share = {
        "zeros": (np.round(np.where(rng.random(n) < 0.35, 0, 1e5 * rng.beta(2, 3, n)), 2), 1e5, 0),
        "whole": (np.rint(20 * rng.beta(2, 3, n)), 20, 0.02),
        "few": (np.log(few), 2.8, 0.02),
    }[kind]
    kept = (truth == 0) & (rng.random(n) < 1 / 17) if kind == "zeros" else rng.random(n) < share
    noisy = truth + rng.laplace(0, high / 2, n)
    released = np.where(kept, truth, noisy if kind == "few" else noisy.round(2))
    evidence = lattice_evidence(truth, released, rng, (0.0, high))
    assert evidence is not None
    assert evidence.bound(0.001).epsilon > 2


@pytest.mark.parametrize(
    ("kind", "least", "most"),
    [("1,024 values", 4_000, 10_000), ("real", 0, 0), ("real, rounded", 0, 0), ("whole", 0, 0)],
)
def test_real_numbers_that_repeat_are_counted_unless_rounded(
    kind: str, least: int, most: int
) -> None:
    released = drawn(kind, 1.0, 10_000, np.random.default_rng(0))[1]
    assert least <= repeated_numbers(released) <= most


@pytest.mark.parametrize("n", [1_000, 300_000])
def test_numbers_of_single_precision_are_equal_by_chance(n: int) -> None:
    rng = np.random.default_rng(0)
    noisy = (rng.random(n) * 10 + rng.laplace(0, 2, n)).astype(np.float32).astype(np.float64)
    assert repeated_numbers(noisy) < 1e-4 * n + 5
    few = drawn("1,024 values", 1.0, 10_000, rng)[1].astype(np.float32).astype(np.float64)
    assert repeated_numbers(few) > 4_000
