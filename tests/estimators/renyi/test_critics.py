"""Promises of critics and their powers, by hand."""

import math

import numpy as np
import pytest

from ldpaudit.errors import InputError
from ldpaudit.estimators.discriminators import Discriminator
from ldpaudit.estimators.renyi import (
    Scores,
    promises,
)


def rows(*values: float) -> np.ndarray:
    return np.array(values, np.float32)[:, None]


def test_the_log_loss_weighs_both_sides_equally() -> None:
    found = Discriminator("logistic", lambda x: x[:, 0].astype(np.float64), 2.0, 0.5)
    p, q = rows(1.0, -1.0), rows(0.0, 3.0, -2.0)
    chances = [1 / (1 + math.exp(-(2 * x + 0.5))) for x in (1.0, -1.0, 0.0, 3.0, -2.0)]
    expected = -np.mean(np.log(chances[:2])) - np.mean(np.log(1 - np.array(chances[2:])))
    assert found.log_loss(p, q) == pytest.approx(expected)
    assert found.log_ratio(rows(30, -30)).tolist() == [20, -20]
    assert found.log_ratio(np.empty((0, 1), np.float32)).shape == (0,)


def test_guesses_must_be_finite() -> None:
    with pytest.raises(InputError, match="3 are not"):
        Scores(np.array([np.nan, 0.0, np.inf]), np.array([-np.inf]))


def test_a_tangents_promise_above_its_limit_is_not_believed() -> None:
    far = Scores(np.full(50, 6.0), np.full(50, -6.0))
    assert promises(far, 10**6, 10**6, np.array([2.0]), [(1.0, 2.0)])[0, 1, 0] == -np.inf
