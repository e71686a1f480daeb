"""Columns × releases: the bounds of the columns over the releases, added up."""

import numpy as np
import pytest
from estimators.person.drawing import drawn
from scipy.stats import binom

from ldpaudit.estimators.person.evidence import releases_evidence
from ldpaudit.estimators.person.sums import sum_lower

ALPHA = 0.05
FALSE_ALARM = 1e-6


def bound(seed: int, columns: int, releases: int, n: int, *, noise: str = "fresh") -> float:
    """Return the bound of so many columns over so many releases at ε = 0.6 each."""
    rng, parts = np.random.default_rng(seed), []
    for _ in range(columns):
        kept = 1.0 if noise == "remembered" else 0.0
        made = drawn(rng, n=n, releases=releases, epsilon=0.6, remembered=kept)
        channels = [made.channel] * releases
        found = releases_evidence(made.truth[:, 0], made.released, channels, noise, rng)  # type: ignore[arg-type]
        assert found is not None
        parts.append(lambda alpha, e=found: e.bound(alpha).epsilon)
    return sum_lower(parts, ALPHA)


def misses(noise: str, draws: int, truth: float) -> int:
    return sum(bound(seed, 3, 2, 400, noise=noise) > truth + 1e-9 for seed in range(draws))


@pytest.mark.parametrize(("noise", "truth"), [("fresh", 3.6), ("remembered", 1.8)])
def test_sums_over_columns_and_releases_hold_at_their_level(noise: str, truth: float) -> None:
    """A right bound fails this once in a million."""
    assert misses(noise, 25, truth) <= binom.isf(FALSE_ALARM, 25, ALPHA)


@pytest.mark.validate
@pytest.mark.parametrize(("noise", "truth"), [("fresh", 3.6), ("remembered", 1.8)])
def test_sums_hold_at_their_level_over_500_draws(noise: str, truth: float) -> None:
    assert misses(noise, 500, truth) <= binom.isf(FALSE_ALARM, 500, ALPHA)


@pytest.mark.parametrize(("noise", "truth"), [("fresh", 3.6), ("remembered", 1.8)])
def test_sums_come_near_the_true_epsilon(noise: str, truth: float) -> None:
    assert bound(1, 3, 2, 10_000, noise=noise) > 0.85 * truth
