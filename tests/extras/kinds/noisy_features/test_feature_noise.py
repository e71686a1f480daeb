"""Noise on features in a release: is there as much as claimed, and what does the check say?"""

from typing import Any

import numpy as np
import pandas as pd
from audits.found import check, value

import ldpaudit
from ldpaudit.extras.kinds.mechanisms.gaussian import GaussianRR, gaussian_sigma

DELTA = 1e-5
LOWER = "mechanism.feature_curve_epsilon_lower"


def audited(scale: float = 1.0, epsilon: float = 4.0, **changes: Any) -> Any:
    """Audit 2,000 people whose features got the claimed noise times ``scale``."""
    rng, n = np.random.default_rng(1), 2_000
    truth = rng.random(n) < 0.4
    x = 0.3 * rng.normal(size=(n, 3)) + np.where(truth, 0.4, -0.4)[:, None]
    x /= np.maximum(1, np.linalg.norm(x, axis=1, keepdims=True))
    sigma = gaussian_sigma(epsilon, DELTA, 2.0)
    declared = {"radius": 1.0, "sigma": sigma, "feature_epsilon": epsilon, "feature_delta": DELTA}
    claim = GaussianRR(("no", "yes"), 0.5, **(declared | changes.pop("declared", {})))
    y = np.where(truth, "yes", "no")
    flip = rng.random(n) < 0.25
    columns = ["a", "b", "c"]
    original = pd.DataFrame(x, columns=columns)
    noise = scale * sigma * rng.normal(size=x.shape)
    noisy = changes.pop("planted", np.add)(x, noise)
    noisy = changes.pop("change", lambda v: v)(noisy)
    released = pd.DataFrame(noisy, columns=columns)
    released["y"] = np.where(truth != flip, "yes", "no")
    given = {"original": original} if changes.pop("known", True) else {}
    return ldpaudit.audit(
        released, pd.DataFrame({"y": y}), label="y", mechanism=claim,
        only=("mechanism", "assumptions", "power"), **given, **changes,
    )  # fmt: skip


def verdict(result: Any) -> str:
    return next((c.verdict for c in result.checks if c.id == "feature-noise"), "")


def test_the_claimed_noise_passes_and_its_epsilon_is_bounded_three_ways() -> None:
    result = audited()
    assert verdict(result) == "pass"
    numbers = {LOWER: (2.5, 4.0), "mechanism.feature_one_run_epsilon_lower": (0.7, 4.0)}
    check(result, numbers | {"mechanism.feature_epsilon_lower": (0.3, 4.0), LOWER: "certified"})


def test_half_of_the_noise_refutes_the_claim() -> None:
    result = audited(0.5)
    assert (verdict(result), result.verdict) == ("fail", "fail")
    assert value(result, LOWER) > 5
    assert "σ" in " ".join(result.next_steps)


def test_rounding_and_clipping_after_the_noise_are_not_yet() -> None:
    result = audited(change=lambda v: np.clip(v, -2, 2))
    assert (verdict(result), result.verdict) == ("inconclusive", "inconclusive")
    assert value(result, LOWER) < 4


def test_without_the_true_features_it_is_said_that_nothing_was_looked_at() -> None:
    result = audited(0.5, known=False)
    assert verdict(result) == ""
    check(result, {LOWER: None}, "needs the true ones (--original)")


def test_a_sigma_that_is_declared_too_small_fails_without_any_data() -> None:
    result = audited(known=False, declared={"sigma": 0.5})
    assert (verdict(result), result.verdict) == ("fail", "fail")
    assert "too small for the ε and δ" in result.sentence
