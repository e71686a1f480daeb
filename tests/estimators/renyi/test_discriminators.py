"""Discriminators tell samples apart, and their log-odds are calibrated."""

import numpy as np
import pytest

from ldpaudit.errors import InputError, InsufficientDataError
from ldpaudit.estimators.discriminators import (
    Kind,
    fit_discriminator,
    fit_strongest,
    is_image,
    kinds_for,
)
from ldpaudit.estimators.renyi import Scores, calibration_error, renyi_points

KINDS: tuple[Kind, ...] = ("logistic", "boosting", "network")


def gaussians(n: int, shift: float, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    p = rng.standard_normal((n, 3)).astype(np.float32)
    q = rng.standard_normal((n, 3)).astype(np.float32)
    p[:, 0] += shift
    return p, q


def cross_fitted_scores(
    p: np.ndarray, q: np.ndarray, kind: Kind, rng: np.random.Generator
) -> Scores:
    """A guess for every row by a discriminator of the other half."""
    halves = [rng.permutation(len(rows)) < len(rows) // 2 for rows in (p, q)]
    scores = [np.empty(len(p)), np.empty(len(q))]
    for half in (False, True):
        fitting = [rows[which == half] for rows, which in zip((p, q), halves, strict=True)]
        model = fit_discriminator(*fitting, kind, rng=rng)
        for rows, which, values in zip((p, q), halves, scores, strict=True):
            values[which != half] = model.log_ratio(rows[which != half])
    return Scores(*scores)


@pytest.mark.parametrize("kind", KINDS)
def test_log_ratios_are_calibrated_and_near(kind: Kind) -> None:
    p, q = gaussians(4000, 1.0)
    scores = cross_fitted_scores(p, q, kind, rng=np.random.default_rng(1))
    assert calibration_error(scores) < 0.08
    # Trees lose some of the divergence on few rows; none may find what is not there.
    assert 0.7 < renyi_points(scores, [2.0])[0].value < 1.2
    truth = p[:, 0] - 0.5
    assert np.corrcoef(scores.p, truth)[0, 1] > 0.93


@pytest.mark.parametrize("kind", KINDS)
def test_sides_of_unequal_size_are_weighted_alike(kind: Kind) -> None:
    p, q = gaussians(3000, 1.0)
    model = fit_discriminator(p[:750], q, kind, rng=np.random.default_rng(2))
    middle = np.array([[0.5, 0.0, 0.0]], dtype=np.float32)
    assert abs(model.log_ratio(middle)[0]) < 0.5


@pytest.mark.parametrize("kind", KINDS)
def test_missing_values_and_codes(kind: Kind) -> None:
    rng = np.random.default_rng(3)
    p, q = gaussians(1000, 0.0)
    p[:, 1] = rng.choice(4, 1000, p=[0.7, 0.1, 0.1, 0.1])
    q[:, 1] = rng.choice(4, 1000)
    p[::3, 0] = np.nan
    categorical = np.array([False, True, False])
    model = fit_discriminator(p, q, kind, rng=rng, categorical=categorical)
    rows = np.zeros((2, 3), dtype=np.float32)
    rows[1, 1] = 2
    common, rare = model.log_ratio(rows)
    assert common > rare + 0.8
    assert np.isfinite(model.log_ratio(np.full((1, 3), np.nan, dtype=np.float32))).all()


def test_images_get_a_convolution() -> None:
    rng = np.random.default_rng(4)
    p = rng.random((500, 64), dtype=np.float32)
    q = rng.random((500, 64), dtype=np.float32)
    p.reshape(-1, 8, 8)[:, 2:5, 2:5] += 0.4
    scores = cross_fitted_scores(p, q, "network", rng=rng)
    assert scores.p.mean() > 1 > -1 > scores.q.mean()


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_generator_gives_the_same_model(kind: Kind) -> None:
    import torch

    p, q = gaussians(300, 1.0)
    state = torch.random.get_rng_state()
    first, second = (
        fit_discriminator(p, q, kind, rng=np.random.default_rng(6)).log_ratio(p) for _ in range(2)
    )
    np.testing.assert_allclose(first, second)
    assert torch.equal(state, torch.random.get_rng_state())


def test_bad_input() -> None:
    p, q = gaussians(100, 1.0)
    rng = np.random.default_rng(7)
    with pytest.raises(InputError, match="same columns"):
        fit_discriminator(p, q[:, :2], "boosting", rng=rng)
    with pytest.raises(InsufficientDataError, match="40 rows"):
        fit_discriminator(p[:39], q, "boosting", rng=rng)
    for width, kind in ((3, "logistic"), (64, "network")):
        alike = np.ones((300, width), dtype=np.float32)
        with pytest.raises(InsufficientDataError, match="column that varies"):
            fit_discriminator(alike, alike, kind, rng=rng)
    with pytest.raises(InputError, match="discriminator"):
        fit_discriminator(p, q, "forest", rng=rng)  # type: ignore[arg-type]


def test_the_strongest_kind_is_chosen_on_rows_held_out() -> None:
    rng = np.random.default_rng(0)
    line = rng.standard_normal((1500, 4)).astype(np.float32)
    far = line + np.float32([1.0, 0, 0, 0])
    ring = rng.standard_normal((1500, 4)).astype(np.float32)
    wide = 2 * rng.standard_normal((1500, 4)).astype(np.float32)
    kinds = ("boosting", "logistic")
    straight = fit_strongest(line, far, kinds, rng=rng)
    round_one = fit_strongest(ring, wide, kinds, rng=rng)
    assert (straight.kind, round_one.kind) == ("logistic", "boosting")


@pytest.mark.parametrize(
    ("columns", "rows", "codes", "kinds"),
    [
        (784, 5000, False, ("network", "logistic")),
        (64, 500, False, ("network", "logistic")),
        (784, 100, False, ("boosting",)),
        (63, 5000, False, ("boosting",)),
        (49, 5000, False, ("boosting",)),
        (64, 5000, True, ("boosting",)),
    ],
)
def test_images_are_looked_at_by_two_kinds(
    columns: int, rows: int, codes: bool, kinds: tuple[Kind, ...]
) -> None:
    categorical = np.arange(columns) < codes
    assert kinds_for(columns, categorical, rows) == kinds
    assert is_image(columns, categorical) == (columns in (64, 784) and not codes)
