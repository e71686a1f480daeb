"""Model-based randomized response with true labels and its public model: a verdict."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import binom

from ldpaudit.audits.interface import AuditContext, Plan
from ldpaudit.audits.observational.public_model import ModelEvidence, model_evidence
from ldpaudit.mechanisms.response.model_based_rr import ModelBasedRR
from ldpaudit.pipeline import run_audit
from ldpaudit.release import Declaration, FeatureTable, Release, ReleasedLabels, TrueLabels

FLOOR, CLASSES = 0.1, (0, 1, 2)
CLAIM = ModelBasedRR(CLASSES, 0.5, FLOOR)


def released(n: int, noise: float, seed: int, *, wrong: bool = False) -> Release:
    """Return a release with continuous features, so that no two rows are alike."""
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(n, 2))
    scores = np.exp(np.stack([points[:, 0], points[:, 1], np.zeros(n)], axis=1) * 1.5)
    posterior = scores / scores.sum(axis=1, keepdims=True)
    truth = (rng.random((n, 1)) > np.cumsum(posterior, axis=1)).sum(axis=1).astype(np.int32)
    drawn = FLOOR + (1 - 3 * FLOOR) * posterior
    other = (rng.random((n, 1)) > np.cumsum(drawn, axis=1)).sum(axis=1)
    labels = np.where(rng.random(n) < noise, np.minimum(other, 2), np.minimum(truth, 2))
    declared = {"classes": list(CLASSES), "lambda": CLAIM.noise, "floor": FLOOR}
    return Release(
        features=FeatureTable(points.astype(np.float32), np.zeros((n, 0), np.int32), (), 2),
        released=ReleasedLabels(labels.astype(np.int32)),
        outputs=CLASSES,
        classes=CLASSES,
        truth=TrueLabels(np.minimum(truth, 2)),
        declaration=Declaration("model-based-rr", declared, "api"),
        public_posterior=posterior[::-1].copy() if wrong else posterior,
    )


def evidence(release: Release) -> ModelEvidence | None:
    return model_evidence(AuditContext(release, CLAIM, Plan(seed=0)))


def bound(release: Release, alpha: float) -> float:
    found = evidence(release)
    return 0.0 if found is None else found.bound(alpha).epsilon


def test_the_bound_holds_at_its_level_and_is_near() -> None:
    """More misses than this have probability below 1e-6 at the stated level."""
    bounds = [bound(released(800, CLAIM.noise, seed), 0.2) for seed in range(60)]
    assert sum(b > CLAIM.epsilon for b in bounds) <= binom.isf(1e-6, 60, 0.2)
    assert np.median(bounds) > 0.85 * CLAIM.epsilon


def test_less_noise_than_claimed_is_found_as_often_as_stated() -> None:
    found = evidence(released(2000, CLAIM.noise, 0))
    assert found is not None
    stated = found.power(CLAIM.epsilon + 0.2, CLAIM.epsilon, 0.05)
    noise = 1 / (1 + FLOOR * np.expm1(CLAIM.epsilon + 0.2))
    hits = [bound(released(2000, noise, 100 + s), 0.05) > CLAIM.epsilon for s in range(80)]
    # The binomial spreads a little further than the changes do: power is understated.
    assert stated - 0.2 < np.mean(hits)
    assert stated > 0.3


def test_a_model_that_the_labels_contradict_is_not_used() -> None:
    assert evidence(released(4000, CLAIM.noise, 1, wrong=True)) is None
    assert evidence(replace(released(400, CLAIM.noise, 1), public_posterior=None)) is None


@pytest.mark.parametrize(("noise", "verdict"), [(0.5, "pass"), (0.3, "fail")])
def test_there_is_a_verdict(noise: float, verdict: str) -> None:
    only = ("mechanism", "observational", "power")
    result = run_audit(released(6000, noise, 3), Plan(seed=2), only=only)
    assert result.verdict == verdict
