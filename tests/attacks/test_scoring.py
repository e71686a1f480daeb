"""Scores of attacks: every count, bound and measure term by term, and that bounds hold."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.special import logit
from scipy.stats import binomtest

from ldpaudit.attacks.scoring import (
    ACCURACY,
    ADVANTAGE,
    AUC,
    BALANCED_ACCURACY,
    BINS,
    GAINS,
    MULTIPLICATIVE_ADVANTAGE,
    SCORES,
    SHARES,
    TPR_AT_FPR,
    FoldScore,
    advantage_lower,
    average,
    gain_lower,
    lower_bound,
    score_fold,
    upper_bound,
)
from ldpaudit.estimators.intervals.binomial import clopper_pearson_lower, clopper_pearson_upper
from ldpaudit.estimators.intervals.ranking import auc


def ends(count: int, n: int, alpha: float) -> tuple[float, float]:
    found = binomtest(int(count), int(n)).proportion_ci(1 - 2 * alpha, "exact")
    return float(found.low), float(found.high)


def fold(k: int = 3, n: int = 300, seed: int = 0) -> tuple[FoldScore, tuple[np.ndarray, ...]]:
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, k, n).astype(np.int32)
    posterior = rng.dirichlet(np.ones(k), n)
    posterior[np.arange(n), truth] += rng.random(n) < 0.6
    posterior /= posterior.sum(axis=1, keepdims=True)
    guesses = np.where(rng.random(n) < 0.5, truth, 0).astype(np.int32)
    found = score_fold(truth, posterior, guesses, rate_alpha=0.05, rng=rng)
    return found, (truth, posterior, guesses)


MINE, GIVEN = fold()


def test_counts_of_steps_bins_and_curves() -> None:
    found, (truth, posterior, guesses) = MINE, GIVEN
    n, right, reference = 300, posterior.argmax(axis=1) == truth, guesses == truth
    counted = found.n, found.correct, found.baseline_correct, found.gained
    assert counted == (n, right.sum(), reference.sum(), (right & ~reference).sum())
    assert found.correct - found.baseline_correct == found.gained - found.lost
    assert found.class_correct.sum() == found.correct
    assert found.class_rows.tolist() == np.bincount(truth).tolist()
    confidence = posterior.max(axis=1)
    rows = np.round(np.array(SHARES) * n).astype(int)
    assert found.steps[:, 0].cumsum().tolist() == rows.tolist()
    assert found.steps[:, 1].sum() == right.sum()
    order = np.sort(confidence)[::-1]
    surest = confidence > order[rows[3]]
    assert found.steps[:4, 1].sum() == pytest.approx(right[surest].sum(), abs=1)
    bins = np.minimum((confidence * BINS).astype(int), BINS - 1)
    assert found.confidence_rows.tolist() == np.bincount(bins, minlength=BINS).tolist()
    assert found.confidence_correct.tolist() == np.bincount(bins, right, BINS).tolist()
    for c in range(3):
        own = posterior[:, c]
        assert found.aucs[c, 0] == pytest.approx(auc(own[truth == c], own[truth != c]))


def measures() -> list[tuple[Any, float, float, float]]:
    """Return measures with their values and their ends at 95 %, of one fold."""
    odds = [(count + 0.5) / (300 - count + 0.5) for count in (MINE.correct, MINE.baseline_correct)]
    (low, high), base = ends(MINE.correct, 300, 0.025), ends(MINE.baseline_correct, 300, 0.025)
    rows = list(zip(MINE.class_correct, MINE.class_rows, strict=True))
    lower, upper = np.mean([ends(c, n, 0.05 / 3) for c, n in rows], axis=0)
    gain = (MINE.gained - MINE.lost) / 300
    turned = replace(MINE, gained=MINE.lost, lost=MINE.gained)
    rates = [np.mean([getattr(rate, end) for rate in MINE.rates]) for end in ("low", "high")]
    return [
        (
            MULTIPLICATIVE_ADVANTAGE,
            math.log(odds[0] / odds[1]),
            logit(low) - logit(base[1]),
            logit(high) - logit(base[0]),
        ),
        (BALANCED_ACCURACY, np.mean([c / n for c, n in rows]), lower, upper),
        (ADVANTAGE, gain, gain_lower(MINE, 0.05), -gain_lower(turned, 0.05)),
        (TPR_AT_FPR, TPR_AT_FPR.value(MINE), *rates),
    ]


def test_a_measure_and_its_ends_are_those_of_its_definition() -> None:
    for measure, *expected in measures():
        found = measure.value(MINE), measure.lower(MINE, 0.05), measure.upper(MINE, 0.05)
        assert found == pytest.approx(tuple(expected)), measure.name


@pytest.mark.parametrize(("gained", "lost"), [(60, 20), (20, 60), (3, 0)])
def test_an_advantage_is_its_direction_times_its_size(gained: int, lost: int) -> None:
    """π at 0.8 alpha; p at 0.1 alpha, at the end that makes the product least."""
    pi = ends(gained, gained + lost, 0.8 * 0.05)[0]
    size = ends(gained + lost, 300, 0.1 * 0.05)[0 if pi >= 0.5 else 1]
    expected = (2 * pi - 1) * size
    assert advantage_lower(gained, lost, 300, 0.05) == pytest.approx(expected)
    mine = replace(MINE, gained=gained, lost=lost)
    assert gain_lower(mine, 0.05) == pytest.approx(expected)
    apart = ends(gained, 300, 0.025)[0] - ends(lost, 300, 0.025)[1]
    assert gain_lower(replace(mine, alike=False), 0.05) == pytest.approx(apart)


def test_scores_that_rows_of_chances_of_their_own_may_have() -> None:
    unlike = {measure.name for measure in (*SCORES, *GAINS) if measure.unlike}
    assert {"accuracy", "advantage", "multiplicative_advantage"} <= unlike
    assert not {"balanced_accuracy", "auc", "tpr_at_fpr_1pct"} & unlike


@pytest.mark.parametrize("k", [2, 4])
def test_every_measure_brackets_its_value(k):
    folds = [fold(k, 400)[0], fold(k, 300, 1)[0]]
    for measure in SCORES + GAINS:
        value = average(folds, measure.value)
        assert lower_bound(folds, measure, 0.025) <= value <= upper_bound(folds, measure, 0.025)
        wide = lower_bound(folds, measure, 0.001)
        assert wide <= lower_bound(folds, measure, 0.025)


def test_an_attack_that_is_always_right():
    truth = np.tile(np.arange(2, dtype=np.int32), 500)
    posterior = np.eye(2)[truth] * 0.98 + 0.01
    found = score_fold(truth, posterior, 1 - truth, rate_alpha=0.05, rng=np.random.default_rng(0))
    for measure in (ACCURACY, BALANCED_ACCURACY, AUC, ADVANTAGE):
        assert measure.value(found) == pytest.approx(1.0)
        assert measure.lower(found, 0.025) > 0.97
        assert measure.upper(found, 0.025) == pytest.approx(1.0)
    assert MULTIPLICATIVE_ADVANTAGE.lower(found, 0.025) > 8
    assert np.isinf(MULTIPLICATIVE_ADVANTAGE.upper(found, 0.025))


def test_advantage_bound_is_narrower_than_two_separate_bounds():
    apart = clopper_pearson_lower(40, 1000, 0.0125) - clopper_pearson_upper(40, 1000, 0.0125)
    assert advantage_lower(40, 40, 1000, 0.025) > 0.92 * apart
    assert advantage_lower(300, 20, 1000, 0.025) > 0.22


def test_slices_are_counted():
    rng = np.random.default_rng(4)
    _, (truth, posterior, guesses) = fold(3, 400)
    slices = rng.integers(0, 3, 400).astype(np.int32)
    found = score_fold(truth, posterior, guesses, rate_alpha=0.05, rng=rng, slices=slices)
    assert found.slices.shape == (3, 4)
    assert found.slices.sum(axis=0).tolist() == [400, found.correct, found.gained, found.lost]
    mine = slices == 1
    assert found.slices[1, 1] == (posterior.argmax(axis=1) == truth)[mine].sum()
