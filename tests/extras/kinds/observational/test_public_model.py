"""Model-based randomized response with true labels and its public model: a verdict."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import binom
from worlds import feature_table

from ldpaudit.audits.interface import AuditContext, Plan, collected
from ldpaudit.audits.mechanism.row_channels import row_channels_p_value
from ldpaudit.audits.public_model import model_readings
from ldpaudit.extras.kinds.mechanisms.with_features import ModelBasedRR
from ldpaudit.extras.kinds.observational.evidence import (
    ModelEvidence,
    model_evidence,
    observational_power,
)
from ldpaudit.pipeline.audit import audit
from ldpaudit.pipeline.terms import Terms
from ldpaudit.release import Declaration, Release, ReleasedLabels, TrueLabels

FLOOR, CLASSES = 0.1, (0, 1, 2)
CLAIM = ModelBasedRR(CLASSES, 0.5, FLOOR)
ONLY = ("mechanism", "observational", "power")


def released(n: int, noise: float, seed: int, *, wrong: bool = False, sure: float = 1.5) -> Release:
    """Return a release with continuous features, so that no two rows are alike."""
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(n, 2))
    scores = np.exp(np.stack([points[:, 0], points[:, 1], np.zeros(n)], axis=1) * sure)
    posterior = scores / scores.sum(axis=1, keepdims=True)
    truth = (rng.random((n, 1)) > np.cumsum(posterior, axis=1)).sum(axis=1).astype(np.int32)
    drawn = FLOOR + (1 - 3 * FLOOR) * posterior
    other = (rng.random((n, 1)) > np.cumsum(drawn, axis=1)).sum(axis=1)
    labels = np.where(rng.random(n) < noise, np.minimum(other, 2), np.minimum(truth, 2))
    declared = {"classes": list(CLASSES), "lambda": CLAIM.noise, "floor": FLOOR}
    return Release(
        features=feature_table(points.astype(np.float32)),
        released=ReleasedLabels(labels.astype(np.int32)),
        outputs=CLASSES,
        classes=CLASSES,
        truth=TrueLabels(np.minimum(truth, 2)),
        declaration=Declaration("model-based-rr", declared, "api"),
        public_posterior=posterior[::-1].copy() if wrong else posterior,
    )


def floored(release: Release) -> Release:
    """Return the release with the model's probabilities as labels are drawn from them."""
    assert release.public_posterior is not None
    return replace(release, public_posterior=FLOOR + (1 - 3 * FLOOR) * release.public_posterior)


def context(release: Release) -> AuditContext:
    return AuditContext(release, CLAIM, Plan(seed=0))


def evidence(release: Release) -> ModelEvidence | None:
    return model_evidence(context(release))


def bound(release: Release, alpha: float) -> float:
    found = evidence(release)
    return 0.0 if found is None else found.bound(alpha).epsilon


def test_less_noise_than_claimed_is_found_as_often_as_stated() -> None:
    audited = AuditContext(released(2000, CLAIM.noise, 0), CLAIM, Plan(seed=0))
    excess = collected(observational_power(audited)).estimates[0].value
    assert 0.1 < excess < 0.6
    noise = 1 / (1 + FLOOR * np.expm1(CLAIM.epsilon + excess))
    hits = [bound(released(2000, noise, 100 + s), 0.05) > CLAIM.epsilon for s in range(25)]
    # Of 25 at 90 % fewer than 14 have p < 1e-6; the binomial understates the power a little.
    assert sum(hits) >= 14


def test_a_model_that_the_labels_contradict_is_not_used() -> None:
    assert evidence(released(4000, CLAIM.noise, 1, wrong=True)) is None
    assert evidence(replace(released(400, CLAIM.noise, 1), public_posterior=None)) is None


@pytest.mark.parametrize("with_floor", [False, True])
@pytest.mark.parametrize(("noise", "verdict"), [(0.5, "pass"), (0.3, "fail")])
def test_there_is_a_verdict(noise: float, verdict: str, with_floor: bool) -> None:
    """Whether the model's probabilities are given before the floor, or with it."""
    release = released(6000, noise, 3)
    release = floored(release) if with_floor else release
    result = audit(release, Terms(Plan(seed=2), only=ONLY))
    assert result.verdict == verdict


@pytest.mark.parametrize("sure", [0.05, 0.2, 1.5])
@pytest.mark.parametrize("with_floor", [False, True])
def test_the_bound_is_too_large_as_seldom_as_stated(sure: float, with_floor: bool) -> None:
    """Also of models so unsure that labels cannot tell which way their probabilities are given."""
    made = [released(1000, CLAIM.noise, 500 + seed, sure=sure) for seed in range(60)]
    given = [floored(one) for one in made] if with_floor else made
    wrong = sum(bound(one, 0.2) > CLAIM.epsilon for one in given)
    refuted = sum((row_channels_p_value(context(one)) or 1.0) <= 0.2 for one in given)
    assert max(wrong, refuted) <= binom.isf(1e-6, len(made), 0.2)


def test_labels_tell_which_way_the_probabilities_are_given() -> None:
    """Where they can: what was drawn with the floor under them is read with it, and no other."""
    release = floored(released(6000, CLAIM.noise, 4))
    assert release.public_posterior is not None
    assert release.truth is not None
    (reading,) = model_readings(context(release))
    assert np.allclose(FLOOR + (1 - 3 * FLOOR) * reading, release.public_posterior)
    again = CLAIM.sample(release.truth, release.public_posterior, np.random.default_rng(1))
    other = replace(release, released=ReleasedLabels(again))
    (reading,) = model_readings(context(other))
    assert reading is release.public_posterior


def test_a_reading_stays_while_labels_allow_it() -> None:
    release = floored(released(300, CLAIM.noise, 5, sure=0.2))
    assert len(model_readings(context(release))) == 2
    assert len(model_readings(context(replace(release, truth=None)))) == 2
    assert len(model_readings(context(released(300, CLAIM.noise, 5)))) == 1
    assert model_readings(context(replace(release, public_posterior=None))) == ()


@pytest.mark.validate
@pytest.mark.parametrize("sure", [0.2, 1.5])
@pytest.mark.parametrize("with_floor", [False, True])
def test_honest_releases_are_refuted_as_seldom_as_the_policy_says(
    sure: float, with_floor: bool
) -> None:
    seeds = range(700, 740)
    made = [released(4000, CLAIM.noise, seed, sure=sure) for seed in seeds]
    given = [floored(one) for one in made] if with_floor else made
    found = [audit(one, Terms(Plan(seed=1), only=ONLY)).verdict for one in given]
    assert found.count("fail") <= binom.isf(1e-3, len(made), 0.05)
