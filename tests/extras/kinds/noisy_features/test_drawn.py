"""Whether noise on features was drawn as claimed: honest noise passes, planted noise is found."""

from collections.abc import Callable

import numpy as np
import pytest
from extras.kinds.noisy_features.test_feature_noise import audited, verdict
from levels import check_level

from ldpaudit.extras.kinds.noisy_features import drawn

SIGMA = 2.16
Table = tuple[np.ndarray, np.ndarray, np.ndarray]


def people(seed: int, n: int = 2_000, p: int = 3) -> Table:
    """Return true features on the ball, honest noise, and labels that go with the features."""
    rng = np.random.default_rng(seed)
    true = 0.3 * rng.normal(size=(n, p))
    labels = (true[:, 0] + 0.3 * rng.normal(size=n) > 0).astype(np.int32)
    return true, SIGMA * rng.normal(size=(n, p)), labels


def p_values(true: np.ndarray, noisy: np.ndarray, labels: np.ndarray) -> tuple[float, ...]:
    noise = noisy - true
    return (
        drawn.unchanged(true, noisy, SIGMA),
        drawn.repeated(noise, noisy, SIGMA),
        drawn.another_shape(noise, noisy),
        drawn.goes_with(noise, noisy, labels),
    )


def in_thousandths(values: np.ndarray) -> np.ndarray:
    return np.round(values, 3)


HONEST: dict[str, Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]] = {
    "as drawn": lambda x, noise: (x, x + noise),
    "float32": lambda x, noise: (x, (x + noise).astype(np.float32).astype(float)),
    "three decimals": lambda x, noise: (
        in_thousandths(x),
        in_thousandths(in_thousandths(x) + noise),
    ),
    "whole numbers": lambda x, noise: (np.rint(30 * x), np.rint(np.rint(30 * x) + noise)),
    "clipped": lambda x, noise: (
        np.clip(x, -0.5, 0.5),
        np.clip(np.clip(x, -0.5, 0.5) + noise, -0.5, 0.5),
    ),
    "two digits": lambda x, noise: (
        x,
        np.array([float(f"{v:.2g}") for v in (x + noise).flat]).reshape(x.shape),
    ),
    "more noise": lambda x, noise: (x, x + 3 * noise),
    "equal people": lambda x, noise: (np.sign(x), np.sign(x) + noise),
    "sparse": lambda x, noise: (np.where(x > 0.4, x, 0.0), np.where(x > 0.4, x, 0.0) + noise),
}


@pytest.mark.parametrize("name", HONEST)
def test_honest_noise_is_refuted_no_more_often_than_the_level_says(name: str) -> None:
    def refuted(seed: int) -> list[bool]:
        x, noise, labels = people(seed, 600)
        return [p <= 0.2 for p in p_values(*HONEST[name](x, noise), labels)]

    check_level(refuted, 60, 0.2)


@pytest.mark.validate
@pytest.mark.parametrize("name", HONEST)
def test_honest_noise_is_refuted_rarely_in_many_draws(name: str) -> None:
    def refuted(seed: int) -> list[bool]:
        x, noise, labels = people(seed)
        return [p <= 0.05 for p in p_values(*HONEST[name](x, noise), labels)]

    check_level(refuted, 1000, 0.05)


def clear(x: np.ndarray, noise: np.ndarray, rows: int) -> np.ndarray:
    return np.where(np.arange(len(x))[:, None] < rows, x, x + noise)


def uniform(x: np.ndarray, seed: int = 0) -> np.ndarray:
    reach = SIGMA * np.sqrt(3)
    return x + np.random.default_rng(seed).uniform(-reach, reach, x.shape)


PLANTED = {
    "few in the clear": (0, lambda x, noise, y: clear(x, noise, 20)),
    "one column of some rows": (
        0,
        lambda x, noise, y: np.column_stack([clear(x, noise, 40)[:, 0], (x + noise)[:, 1:]]),
    ),
    "whole numbers": (1, lambda x, noise, y: x + np.rint(noise)),
    "shared by two rows": (1, lambda x, noise, y: x + np.repeat(noise[::2], 2, axis=0)),
    "again after ten rows": (1, lambda x, noise, y: x + np.tile(noise[:10], (len(x) // 10, 1))),
    "uniform": (2, lambda x, noise, y: uniform(x)),
    "without noise now and then": (2, lambda x, noise, y: x + noise * (y * 1.4 + 0.3)[:, None]),
    "with the label": (3, lambda x, noise, y: x + noise + 0.5 * y[:, None]),
}


@pytest.mark.parametrize("name", PLANTED)
def test_noise_that_is_not_drawn_as_claimed_is_found(name: str) -> None:
    place, release = PLANTED[name]
    x, noise, labels = people(1)
    found = p_values(x, release(x, noise, labels), labels)
    assert found[place] < 1e-4


@pytest.mark.parametrize("planted", [lambda x, n: clear(x, n, 20), lambda x, n: x + np.rint(n)])
def test_values_in_the_clear_are_a_violation(
    planted: Callable[[np.ndarray, np.ndarray], np.ndarray],
) -> None:
    result = audited(planted=planted)
    assert (verdict(result), result.verdict) == ("fail", "fail")
    assert "in the clear" in result.sentence
    assert "at least" not in result.sentence


def test_noise_that_rows_share_is_not_published() -> None:
    result = audited(planted=lambda x, noise: x + np.repeat(noise[::2], 2, axis=0))
    assert verdict(result) == "inconclusive"
    assert result.decision == "not yet"
    assert "has few values, is shared by rows" in result.sentence
