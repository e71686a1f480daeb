"""Remainders and digits of numbers: leaks that bins hide are found, and honest noise is not."""

import numpy as np
import pytest
from scipy.stats import binom

from ldpaudit.estimators.epsilon.lattice import LatticeEvidence, lattice_evidence, repeated_numbers

HIGH = 12


def labels(n: int, rng: np.random.Generator) -> np.ndarray:
    return np.clip(np.rint(rng.normal(6, 2.5, n)), 0, HIGH)


def geometric(n: int, scale: float, rng: np.random.Generator) -> np.ndarray:
    chance = -np.expm1(-1 / scale)
    return np.asarray(rng.geometric(chance, n) - rng.geometric(chance, n))


def released(kind: str, truth: np.ndarray, epsilon: float, rng: np.random.Generator) -> np.ndarray:
    n, scale = len(truth), HIGH / epsilon
    if kind == "steps of 2":
        return np.asarray(truth + 2 * geometric(n, scale / 2, rng))
    if kind == "1,024 values":
        uniform = (rng.integers(0, 1024, n) + 0.5) / 1024 - 0.5
        return np.asarray(truth - scale * np.sign(uniform) * np.log(1 - 2 * np.abs(uniform)))
    if kind.startswith("whole"):
        whole = truth + geometric(n, scale, rng)
        after = {"clipped": np.clip(whole, 0, HIGH), "by five": 5 * np.rint(whole / 5)}
        return np.asarray(after.get(kind.removeprefix("whole, "), whole))
    real = truth + rng.laplace(0, scale, n)
    return np.asarray(real.round(2) if "rounded" in kind else real)


def found(kind: str, epsilon: float, seed: int, n: int) -> LatticeEvidence:
    rng = np.random.default_rng([seed, n])
    truth = labels(n, rng)
    evidence = lattice_evidence(truth, released(kind, truth, epsilon, rng), rng)
    assert evidence is not None
    return evidence


@pytest.mark.parametrize(("kind", "modulus"), [("steps of 2", 2), ("1,024 values", None)])
@pytest.mark.parametrize("n", [3_000, 10_000])
def test_noise_that_shows_what_it_is_is_found(kind: str, modulus: int | None, n: int) -> None:
    every = [found(kind, 1.0, seed, n) for seed in range(20)]
    assert {one.modulus for one in every} == {modulus}
    assert min(one.bounds.strongest(0.001).epsilon for one in every) > 3
    assert min(one.right for one in every) > 0.7


HONEST = ("whole", "whole, clipped", "whole, by five", "real", "real, rounded")


@pytest.mark.parametrize("kind", HONEST)
def test_honest_noise_is_bounded_by_its_epsilon(kind: str) -> None:
    for epsilon in (1.0, 4.0):
        missed = sum(
            found(kind, epsilon, seed, 1_000).bounds.strongest(0.1).epsilon > epsilon
            for seed in range(40)
        )
        assert missed <= binom.isf(1e-7, 40, 0.1)  # ten of these: 1e-6 in all


def test_true_numbers_on_no_grid_are_not_looked_at() -> None:
    rng = np.random.default_rng(0)
    truth = rng.random(1_000)
    assert lattice_evidence(truth, truth + rng.laplace(0, 1, 1_000), rng) is None
    assert lattice_evidence(np.ones(1_000), rng.random(1_000), rng) is None


def test_real_numbers_that_repeat_are_counted_unless_rounded() -> None:
    rng = np.random.default_rng(0)
    truth = labels(10_000, rng)
    counts = {
        kind: repeated_numbers(released(kind, truth, 1.0, rng))
        for kind in ("1,024 values", "real", "real, rounded", "whole")
    }
    assert counts.pop("1,024 values") > 4_000
    assert set(counts.values()) == {0}
