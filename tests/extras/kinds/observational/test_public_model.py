"""Model-based randomized response with true labels and its public model: a verdict."""

from dataclasses import replace

import numpy as np
import pytest
from worlds import feature_table

from ldpaudit.audits.interface import AuditContext, Plan, collected
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
        features=feature_table(points.astype(np.float32)),
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


@pytest.mark.parametrize(("noise", "verdict"), [(0.5, "pass"), (0.3, "fail")])
def test_there_is_a_verdict(noise: float, verdict: str) -> None:
    only = ("mechanism", "observational", "power")
    result = audit(released(6000, noise, 3), Terms(Plan(seed=2), only=only))
    assert result.verdict == verdict
