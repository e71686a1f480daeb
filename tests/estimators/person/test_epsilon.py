"""ε of several releases is bounded from below: closely, and never above the truth too often."""

import math

import numpy as np
import pytest
from estimators.person.drawing import drawn, response
from scipy.stats import binom

from ldpaudit.estimators.person.answers import coded_fresh
from ldpaudit.estimators.person.evidence import (
    AnswersEvidence,
    Noise,
    OfReleases,
    releases_evidence,
)


def _evidence(seed: int, noise: Noise | None = None, **options: float) -> AnswersEvidence:
    rng = np.random.default_rng(seed)
    made = drawn(rng, **options)  # type: ignore[arg-type]
    channels = [made.channel] * made.truth.shape[1]
    evidence = releases_evidence(made.truth[:, 0], made.released, channels, noise, rng)
    assert evidence is not None
    return evidence


def test_answers_with_one_likelihood_ratio_have_one_code() -> None:
    released = np.array([[0, 0, 1], [1, 0, 0], [1, 1, 1]], dtype=np.int32)
    coded = coded_fresh([response(2, 1.0)] * 3, released)
    assert coded.size == 4
    assert coded.codes[0] == coded.codes[1] != coded.codes[2]
    assert coded.channel is not None
    assert np.allclose(coded.channel.sum(axis=1), 1)


def test_a_product_that_is_too_large_is_counted_by_its_vote() -> None:
    released = np.random.default_rng(0).integers(0, 60, (50, 6)).astype(np.int32)
    coded = coded_fresh([response(60, 1.0)] * 6, released)
    assert coded.channel is None
    assert coded.size == 120


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("releases", [2, 4, 8])
def test_fresh_noise_is_bounded_closely(releases: int, epsilon: float) -> None:
    found = [_evidence(s, "fresh", releases=releases, epsilon=epsilon) for s in range(10, 16)]
    bounds = [evidence.bound(0.05).epsilon for evidence in found]
    assert np.mean(bounds) >= 0.85 * releases * epsilon


@pytest.mark.parametrize("releases", [2, 8])
def test_remembered_noise_is_bounded_closely(releases: int) -> None:
    evidence = _evidence(2, "remembered", releases=releases, remembered=1.0)
    assert 0.85 <= evidence.bound(0.05).epsilon <= 1.1


def test_many_classes_are_bounded_by_rates() -> None:
    evidence = _evidence(3, "fresh", releases=6, epsilon=2.0, classes=8)
    (added,) = evidence.added
    assert isinstance(added, OfReleases)
    assert added.plan.way == "rates"
    assert evidence.bound(0.05).epsilon > 0.7 * 12


def _missed(noise: Noise | None, runs: int, *, added: bool, **options: float) -> int:
    releases = int(options["releases"])
    true = options["epsilon"] * (1 if options.get("remembered") == 1.0 else releases)
    found = (_evidence(seed, noise, **options) for seed in range(runs))
    every = (one if added else one.without_sums() for one in found)
    return sum(one is not None and one.bound(0.1).epsilon > true for one in every)


@pytest.mark.validate
@pytest.mark.parametrize("noise", ["fresh", None])
@pytest.mark.parametrize(
    ("releases", "epsilon", "classes", "remembered"),
    [(2, 1.0, 2, 0.0), (8, 0.5, 2, 0.0), (3, 2.0, 5, 0.0), (3, 1.0, 2, 1.0)],
)
def test_bounds_are_valid(
    noise: Noise | None, releases: int, epsilon: float, classes: int, remembered: float
) -> None:
    options = {"releases": releases, "epsilon": epsilon, "classes": classes, "n": 800}
    added = remembered == 0.0
    missed = _missed(noise, 500, added=added, remembered=remembered, **options)
    assert missed <= binom.isf(1e-6, 500, 0.1)


def test_bounds_are_valid_in_short() -> None:
    missed = _missed(None, 60, added=True, releases=3, epsilon=1.0, n=500)
    assert missed <= binom.isf(1e-6, 60, 0.1)


def test_without_two_labels_nothing_is_bounded() -> None:
    nobody = np.zeros(50, dtype=np.int32)
    answers = np.zeros((50, 2), dtype=np.int32)
    rng = np.random.default_rng(0)
    assert releases_evidence(nobody, answers, [response(2, 1.0)] * 2, "fresh", rng) is None
    assert math.isfinite(_evidence(5, n=40).bound(0.05).epsilon)
