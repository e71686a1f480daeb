"""Attacks on numeric labels: exact likelihoods, best guesses, and bounds that hold."""

import numpy as np
import pytest

from ldpaudit.attacks.numeric import (
    LabelGrid,
    NumericAttacker,
    best_window,
    measures,
    posterior_median,
    row_values,
)
from ldpaudit.attacks.scoring import RowValues
from ldpaudit.mechanisms.label_range import LabelRange
from ldpaudit.mechanisms.noise import (
    DiscreteLaplace,
    DiscreteStaircase,
    Exponential,
    Laplace,
)
from ldpaudit.mechanisms.view import numeric_view

WEEKS, REAL = LabelRange(0, 20, 1), LabelRange(0.0, 10.0)
PRIOR = np.arange(21, 0, -1) / 231


@pytest.mark.parametrize("clipped", [True, False])
@pytest.mark.parametrize("family", [DiscreteLaplace, DiscreteStaircase])
def test_discrete_noise_has_its_own_probabilities(family, clipped):
    made = family(WEEKS, 2.0, clipped=clipped)
    outputs = np.arange(21.0) if clipped else np.arange(-800.0, 821.0)
    found = made.likelihood(outputs, WEEKS.values)
    assert np.allclose(found.sum(axis=0), 1.0, atol=1e-9)
    if clipped:
        assert np.allclose(found.T, made.channel.matrix, atol=1e-12)


def test_guesses_are_the_best_ones():
    rng = np.random.default_rng(5)
    values = np.sort(rng.choice(200, 30, replace=False)).astype(float)
    posterior = rng.dirichlet(np.full(30, 0.3), 40)
    mean, median = posterior @ values, posterior_median(values, posterior)
    candidates = np.linspace(values[0], values[-1], 2001)
    far = np.abs(candidates[:, None] - values[None, :])
    for row in range(40):
        absolute, square = far @ posterior[row], far**2 @ posterior[row]
        own = np.abs(median[row] - values) @ posterior[row]
        assert own <= absolute.min() + 1e-9
        assert (mean[row] - values) ** 2 @ posterior[row] <= square.min() + 1e-9
    for tolerance in (0.0, 3.0, 11.5):
        guess = best_window(values, posterior, tolerance)
        inside = np.abs(guess[:, None] - values[None, :]) <= tolerance + 1e-6
        best = np.max((far <= tolerance + 1e-9) @ posterior.T, axis=0)
        assert ((inside * posterior).sum(axis=1) >= best - 1e-9).all()


def attacked(claim, truth, released, fitted=None):
    view = numeric_view(claim, 100_000)
    grid = LabelGrid.fit(claim, view.classes, truth if fitted is None else fitted)
    features = np.tile(grid.shares, (len(truth), 1))
    guesses = NumericAttacker(claim, grid, view.classes).guess(released, features)
    bins = view.classes.codes(truth)
    values = row_values(guesses, truth, bins, grid.width, grid.rounding)
    folds = {name: RowValues(found, len(truth)) for name, found in values.items()}
    return values, folds, {one.name: one for one in measures(grid.width, grid.complete)}


def test_without_features_the_attack_reaches_the_exact_bayes_error():
    rng, claim = np.random.default_rng(1), Exponential(WEEKS, 6.0)
    truth = rng.choice(21, 20_000, p=PRIOR).astype(float)
    values, _, _ = attacked(claim, truth, claim.release(truth, rng))
    joint = PRIOR[:, None] * claim.channel.matrix
    share = joint.sum(axis=0)
    mean = (WEEKS.values @ joint) / share
    bayes = float((joint * (WEEKS.values[:, None] - mean[None, :]) ** 2).sum())
    # The mean of 20,000 squared errors has a standard error of about 0.14: 5 of them.
    assert abs(values["posterior-mean"]["mse"].mean() - bayes) < 0.7
    assert abs(values["interval"]["exact"].mean() - joint.max(axis=0).sum()) < 0.018
    assert values["prior"]["mse"].mean() > 1.5 * bayes
    assert values["released-value"]["mse"].mean() > 1.1 * bayes


def test_an_attack_on_noise_alone_gains_nothing():
    rng, claim = np.random.default_rng(2), Laplace(REAL, 0.001)
    truth = rng.gamma(2.0, 1.5, 3000).clip(0, 10)
    released = claim.release(truth, rng)
    _, folds, by_name = attacked(claim, truth, released)
    gain = by_name["mse_gain"]
    assert gain.upper(folds["posterior-mean"], 0.025) < 0.5
    assert gain.lower(folds["posterior-mean"], 0.025) < 0.001
    assert by_name["bin_advantage"].lower(folds["interval"], 0.025) < 0.001


def test_bounds_hold_the_exact_error_and_have_power():
    """A guess that is not fitted has an exactly known error: missed in at most 5 % of samples.

    With 20 samples more than 6 misses have a probability below 4e-5 a side at the nominal level.
    """
    claim = Exponential(WEEKS, 3.0)
    exact = 2 * claim.expected_loss(PRIOR)
    recovered = float(PRIOR @ np.diag(claim.channel.matrix))
    missed = np.zeros(4, dtype=int)
    lows = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        truth = rng.choice(21, 600, p=PRIOR).astype(float)
        _, folds, by_name = attacked(claim, truth, claim.release(truth, rng))
        (low, high), (least, most) = (
            [end(folds["released-value"], 0.05) for end in (one.lower, one.upper)]
            for one in (by_name["mse"], by_name["exact"])
        )
        lows.append(low)
        missed += low > exact, high < exact, least > recovered, most < recovered
    assert (missed <= 6).all()
    assert np.median(lows) > 0.75 * exact
