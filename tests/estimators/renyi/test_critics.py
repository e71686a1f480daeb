"""Promises of critics and their powers, by hand."""

import math

import numpy as np
import pytest
from scipy.stats import norm

from ldpaudit.errors import InputError
from ldpaudit.estimators.renyi import critics
from ldpaudit.estimators.renyi.critics import (
    ClippedCritic,
    Scores,
    _moments,
    _Trial,
    choose_critics,
)
from ldpaudit.estimators.renyi.discriminators import Discriminator


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


def test_powers_lie_within_their_ranges() -> None:
    critic = ClippedCritic(3.0, "tangent", None, 0.5, 2.0, 0.25, 1.0)
    assert critic.floor == -14.0
    powers = critic.powers(Scores(np.array([1.0, 9.0, -90.0]), np.array([2.0, -2.0])))
    phi_p, phi_q = np.array([0.5, 2.0, -14.0]) + 0.25, np.array([1.0, -1.0]) + 0.25
    assert powers[0] == pytest.approx(np.exp(2 * phi_p))
    assert powers[1] == pytest.approx(np.exp(3 * phi_q))
    ends = (np.exp(2 * np.array([-13.75, 2.25])), np.exp(3 * np.array([-13.75, 2.25])))
    for found, expected in zip(critic.ranges(), ends, strict=True):
        assert found == pytest.approx(tuple(expected))


def test_guesses_must_be_finite() -> None:
    with pytest.raises(InputError, match="3 are not"):
        Scores(np.array([np.nan, 0.0, np.inf]), np.array([-np.inf]))


def test_moments_are_weighted_means_and_variances() -> None:
    rng = np.random.default_rng(0)
    powers, weights = rng.random((3, 20)), rng.random((2, 20))
    weights /= weights.sum(axis=1, keepdims=True)
    means, variances = _moments(powers, weights)
    for w in range(2):
        for o in range(3):
            assert means[w, o] == pytest.approx(np.average(powers[o], weights=weights[w]))
            spread = np.average((powers[o] - means[w, o]) ** 2, weights=weights[w])
            assert variances[w, o] == pytest.approx(spread)


def trial() -> tuple[_Trial, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(1)
    p, q = rng.normal(0.3, 0.7, 30), rng.normal(-0.3, 0.7, 50)
    return _Trial.of(Scores(p, q), np.array([2.0, 4.0]), 1_000, 2_000), p, q


def test_a_mixture_is_weighted_back_to_both_sides() -> None:
    """Of the density s·p + (1 − s)·q, weights p/(s·p + (1 − s)·q) give p; the guess says p/q."""
    found, p, q = trial()
    ratio, share = np.exp(np.r_[p, q]), 30 / 80
    expected = [ratio / (share * ratio + 1 - share), 1 / (share * ratio + 1 - share)]
    for weights, mixture in zip(found.weights[1], expected, strict=True):
        assert weights == pytest.approx(mixture / mixture.sum())
    assert found.weights[0][0] == pytest.approx(np.r_[np.full(30, 1 / 30), np.zeros(50)])
    assert found.weights[0][1] == pytest.approx(np.r_[np.zeros(30), np.full(50, 1 / 50)])


@pytest.mark.parametrize(("scale", "clip"), [(1.0, 0.5), (0.8, 2.0)])
def test_promises_are_the_worse_of_two_estimates(scale: float, clip: float) -> None:
    mine, p, q = trial()
    found = mine.promises(scale, clip)
    cut = np.clip(scale * np.r_[p, q], -clip - 12, clip)
    for o, order in enumerate((2.0, 4.0)):
        plain, tangent, shifts = [], [], []
        far = 3.0 * np.exp(order * clip) / 2_000
        for of_p, of_q in mine.weights:
            a, b = np.exp((order - 1) * cut), np.exp(order * cut)
            mean = np.average(a, weights=of_p), np.average(b, weights=of_q)
            spread = (
                np.average((a - mean[0]) ** 2, weights=of_p),
                np.average((b - mean[1]) ** 2, weights=of_q),
            )
            shifts.append(math.log(mean[0] / mean[1]))
            low = mean[0] + 1.06 * norm.ppf(0.02) * math.sqrt(spread[0] / 1_000)
            high = mean[1] - 1.06 * norm.ppf(0.03) * math.sqrt(spread[1] / 2_000) + far
            plain.append(order / (order - 1) * math.log(low) - math.log(high))
            tangent.append((mean, spread))
        assert found[2, o] == pytest.approx(shifts[1])  # That of the pooled rows.
        assert found[0, o] == pytest.approx(min(plain))
        c = math.exp(found[2, o])
        bounds = []
        for mean, spread in tangent:
            one, other = order * c ** (order - 1), (order - 1) * c**order
            error = math.sqrt(one**2 * spread[0] / 1_000 + other**2 * spread[1] / 2_000)
            low = one * mean[0] - other * mean[1] - 1.85 * error - other * far
            bounds.append(math.log(low) / (order - 1) if low > 0 else 0.0)
        assert found[1, o] == pytest.approx(min(bounds))


def test_a_tangents_promise_above_its_limit_is_not_believed() -> None:
    far = Scores(np.full(50, 6.0), np.full(50, -6.0))
    found = _Trial.of(far, np.array([2.0]), 10**6, 10**6).promises(1.0, 2.0)
    assert found[1, 0] == -np.inf


def test_the_chosen_critic_promises_the_most(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(2)
    tuning = Scores(rng.normal(0.5, 1, 400), rng.normal(-0.5, 1, 400))
    chosen = choose_critics(tuning, 4_000, 4_000, (2.0, 8.0))
    for critic in chosen:
        if critic.map is None:
            mine = _Trial.of(tuning, np.array([critic.order]), 4_000, 4_000)
            promises = [
                mine.promises(s, c)[:2].max() for s in critics._SCALES for c in critics._CLIPS
            ]
            assert critic.foreseen == pytest.approx(max(promises))
            form = 0 if critic.form == "donsker-varadhan" else 1
            own = mine.promises(critic.scale, critic.clip)
            assert own[form, 0] == pytest.approx(critic.foreseen)
            assert critic.shift == pytest.approx(form * own[2, 0])
    assert any(critic.map is None for critic in chosen)
