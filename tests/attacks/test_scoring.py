import numpy as np
import pytest
from scipy.stats import binom

from ldpaudit.attacks.scoring import (
    ACCURACY,
    ADVANTAGE,
    AUC,
    BALANCED_ACCURACY,
    CALIBRATION_ERROR,
    GAINS,
    MULTIPLICATIVE_ADVANTAGE,
    SCORES,
    advantage_lower,
    average,
    lower_bound,
    score_fold,
    upper_bound,
)

FALSE_ALARM = 1e-6
"""The probability that a validity test fails by chance."""


def random_fold(rng, n=400, k=3, skill=0.7, baseline=True):
    truth = rng.integers(0, k, n).astype(np.int32)
    posterior = rng.dirichlet(np.ones(k), size=n)
    known = rng.random(n) < skill
    posterior[known] = 0.1 * posterior[known] + 0.9 * np.eye(k)[truth[known]]
    guesses = rng.integers(0, k, n).astype(np.int32) if baseline else None
    return truth, posterior, guesses


def scored(rng, **options):
    truth, posterior, guesses = random_fold(rng, **options)
    return score_fold(truth, posterior, guesses, rate_alpha=0.05, rng=rng)


def test_the_most_confident_slice_holds_the_most_confident_rows():
    truth = np.zeros(1000, np.int32)
    posterior = np.stack([np.linspace(0, 1, 1000), np.linspace(1, 0, 1000)], axis=1)
    fold = score_fold(truth, posterior, None, rate_alpha=0.05, rng=np.random.default_rng(0))
    # Both ends are confident; only the upper one is right.
    assert fold.steps[0].tolist() == [10, 5]
    assert fold.steps[-1].tolist() == [100, 50]


@pytest.mark.parametrize("k", [2, 4])
def test_every_measure_brackets_its_value(k):
    rng = np.random.default_rng(1)
    folds = [scored(rng, k=k), scored(rng, k=k, n=300)]
    for measure in SCORES + GAINS:
        value = average(folds, measure.value)
        assert lower_bound(folds, measure, 0.025) <= value <= upper_bound(folds, measure, 0.025)
        wide = lower_bound(folds, measure, 0.001)
        assert wide <= lower_bound(folds, measure, 0.025)


def test_an_attack_that_is_always_right():
    truth = np.tile(np.arange(2, dtype=np.int32), 500)
    posterior = np.eye(2)[truth] * 0.98 + 0.01
    fold = score_fold(truth, posterior, 1 - truth, rate_alpha=0.05, rng=np.random.default_rng(0))
    for measure in (ACCURACY, BALANCED_ACCURACY, AUC, ADVANTAGE):
        assert measure.value(fold) == pytest.approx(1.0)
        assert measure.lower(fold, 0.025) > 0.97
        assert measure.upper(fold, 0.025) == pytest.approx(1.0)
    assert MULTIPLICATIVE_ADVANTAGE.lower(fold, 0.025) > 8
    assert np.isinf(MULTIPLICATIVE_ADVANTAGE.upper(fold, 0.025))


def test_a_label_that_never_occurs_says_nothing():
    truth, posterior, guesses = random_fold(np.random.default_rng(2), k=3)
    truth[truth == 2] = 0
    fold = score_fold(truth, posterior, guesses, rate_alpha=0.05, rng=np.random.default_rng(0))
    assert BALANCED_ACCURACY.upper(fold, 0.05) > BALANCED_ACCURACY.value(fold)
    assert BALANCED_ACCURACY.lower(fold, 0.05) < 2 / 3


@pytest.mark.parametrize("rates", [(0.02, 0.02), (0.1, 0.03), (0.3, 0.0), (0.001, 0.002)])
def test_advantage_bound_holds(rates):
    rng, runs, alpha = np.random.default_rng(3), 1500, 0.05
    n, (p, q) = 500, rates
    draws = rng.multinomial(n, [p, q, 1 - p - q], size=runs)
    missed = sum(advantage_lower(int(b), int(c), n, alpha) > p - q for b, c, _ in draws)
    assert missed <= binom.isf(FALSE_ALARM, runs, alpha)


def test_advantage_bound_is_narrower_than_two_separate_bounds():
    from ldpaudit.estimators.intervals.binomial import clopper_pearson_lower, clopper_pearson_upper

    apart = clopper_pearson_lower(40, 1000, 0.0125) - clopper_pearson_upper(40, 1000, 0.0125)
    assert advantage_lower(40, 40, 1000, 0.025) > 0.92 * apart
    assert advantage_lower(300, 20, 1000, 0.025) > 0.22


def test_slices_are_counted():
    rng = np.random.default_rng(4)
    truth, posterior, guesses = random_fold(rng)
    slices = rng.integers(0, 3, 400).astype(np.int32)
    fold = score_fold(truth, posterior, guesses, rate_alpha=0.05, rng=rng, slices=slices)
    assert fold.slices.shape == (3, 4)
    assert fold.slices.sum(axis=0).tolist() == [400, fold.correct, fold.gained, fold.lost]
    mine = slices == 1
    assert fold.slices[1, 1] == (posterior.argmax(axis=1) == truth)[mine].sum()


def confident_fold(rng, n, excess):
    """Guesses with confidence c that are right with chance c − excess."""
    confidence = rng.uniform(0.6, 0.95, n)
    right = rng.random(n) < confidence - excess
    posterior = np.stack([confidence, 1 - confidence], axis=1)
    truth = np.where(right, 0, 1).astype(np.int32)
    return score_fold(truth, posterior, None, rate_alpha=0.05, rng=rng)


def test_overconfidence_is_found_and_honesty_is_not():
    rng = np.random.default_rng(5)
    honest = [confident_fold(rng, 20_000, 0.0) for _ in range(2)]
    vain = [confident_fold(rng, 20_000, 0.2) for _ in range(2)]
    assert lower_bound(honest, CALIBRATION_ERROR, 0.025) < 0.002
    assert upper_bound(honest, CALIBRATION_ERROR, 0.025) < 0.05
    assert lower_bound(vain, CALIBRATION_ERROR, 0.025) > 0.17


@pytest.mark.parametrize("excess", [0.0, 0.1])
def test_calibration_bounds_hold(excess):
    # The target: confidences less chances, within the bins and the rows of the fold.
    rng, runs, alpha, missed = np.random.default_rng(6), 150, 0.1, 0
    for _ in range(runs):
        fold = confident_fold(rng, 300, excess)
        low, high = (b([fold], CALIBRATION_ERROR, alpha / 2) for b in (lower_bound, upper_bound))
        missed += not low <= excess <= high
    assert missed <= binom.isf(FALSE_ALARM, runs, alpha)
