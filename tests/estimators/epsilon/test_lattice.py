"""Remainders and digits of numbers: leaks that bins hide are found, and honest noise is not."""

import numpy as np
import pytest

from ldpaudit.estimators.epsilon.lattice import LatticeEvidence, lattice_evidence, repeated_numbers

HIGH = 12


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
    assert min(one.bounds.bound(0.001).epsilon for one in every) > 3
    assert min(one.right for one in every) > 0.7


def test_true_numbers_on_no_grid_are_not_looked_at() -> None:
    rng = np.random.default_rng(0)
    for truth in (rng.random(1_000), np.ones(1_000)):
        assert lattice_evidence(truth, truth + rng.laplace(0, 1, 1_000), rng) is None


@pytest.mark.parametrize(
    ("kind", "least", "most"),
    [("1,024 values", 4_000, 10_000), ("real", 0, 0), ("real, rounded", 0, 0), ("whole", 0, 0)],
)
def test_real_numbers_that_repeat_are_counted_unless_rounded(
    kind: str, least: int, most: int
) -> None:
    released = drawn(kind, 1.0, 10_000, np.random.default_rng(0))[1]
    assert least <= repeated_numbers(released) <= most
