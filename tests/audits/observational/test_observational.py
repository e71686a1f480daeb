"""True against re-drawn labels: whole audits of mechanisms that use the features."""

import numpy as np
import pandas as pd
import pytest

import ldpaudit
from ldpaudit.errors import InputError
from ldpaudit.mechanisms.with_features import ModelBasedRR

ONLY = ("mechanism", "observational", "power")
LOWER = "observational.epsilon_lower"


def release(noise=0.5, floor=0.05, *, n=2000, seed=0, cells=True, hidden=0.0, canaries=0):
    """Return features with released labels, true labels, and the canaries' probabilities."""
    rng = np.random.default_rng(seed)
    x = rng.integers(0, 5, (n, 2)).astype(float) if cells else 5 * rng.random((n, 2))
    logit = x[:, 0] - 2 + 0.5 * (x[:, 1] - 2)
    secret = hidden * rng.standard_normal(n)
    eta = 1 / (1 + np.exp(-logit - secret))
    truth = (rng.random(n) < eta).astype(np.int32)
    drawn = np.full((n, 2), np.nan)
    rows = rng.permutation(n)[:canaries]
    truth[rows] = rng.random(canaries) < 0.5
    drawn[rows] = 0.5
    made = ModelBasedRR((0, 1), noise, floor)
    released = made.sample(truth, np.column_stack([1 - eta, eta]), rng)
    return pd.DataFrame({"a": x[:, 0], "b": x[:, 1], "label": released}), truth, drawn


def audited(data, claim=(0.5, 0.05), **options):
    frame, truth, _ = data
    claim = ModelBasedRR((0, 1), *claim)
    return ldpaudit.audit(frame, truth, claim, only=ONLY, **options)


def of(result, name):
    return next((e for e in result.estimates if e.id == name), None)


def test_an_honest_release_is_not_refuted():
    result = audited(release())
    assert 0.5 < of(result, LOWER).value <= ModelBasedRR((0, 1), 0.5, 0.05).epsilon
    assert of(result, LOWER).kind == "certified"
    assert of(result, "mechanism.epsilon_lower") is None
    assert result.verdict == "inconclusive"


def test_a_planted_leak_refutes_the_claim():
    result = audited(release(noise=0.05))
    assert result.verdict == "fail"
    check = next(c for c in result.checks if c.id == "claimed-epsilon")
    assert check.evidence[0] == LOWER
    assert check.observed > check.limit


def test_a_model_that_misses_a_feature_deceives_the_estimate_only():
    """Nothing leaks at λ = 1, but the released label knows what the audited features do not."""
    data = release(noise=1.0, floor=0.0, cells=False, hidden=3.0)
    result = audited(data)
    assert of(result, LOWER) is None
    estimate = of(result, "observational.epsilon")
    assert estimate.value > 0.3
    assert estimate.kind == "estimated"
    assert any("knows no more of the label" in text for text in estimate.assumptions)


def test_with_all_features_in_the_model_nothing_is_found_where_nothing_leaks():
    result = audited(release(noise=1.0, floor=0.0))
    assert of(result, LOWER).value == 0
    assert of(result, "observational.epsilon").value < 0.1
    assert of(result, "observational.game.accuracy").low < 0.5 + 0.01


def test_canaries_certify_what_cells_cannot():
    data = release(noise=0.05, cells=False, hidden=3.0, canaries=1500)
    result = audited(data, claim=(0.5, 0.1), canaries=data[2])
    assert of(result, f"{LOWER}.cells") is None
    assert of(result, f"{LOWER}.canaries").value > 2.4
    assert result.verdict == "fail"
    honest = release(noise=1.0, floor=0.0, cells=False, hidden=3.0, canaries=1500)
    nothing = audited(honest, canaries=honest[2])
    assert of(nothing, f"{LOWER}.canaries").value < 0.05


def test_canaries_with_a_wrong_proxy_are_refused():
    _, truth, drawn = data = release(n=600, canaries=200)
    impossible = np.where(np.isnan(drawn), np.nan, np.column_stack([truth, 1 - truth]))
    with pytest.raises(InputError, match=r"overlap the release\); 200 of 200"):
        audited(data, canaries=impossible)
    unlikely = np.where(np.isnan(drawn), np.nan, [0.05, 0.95])
    with pytest.raises(InputError, match="cannot have been"):
        audited(data, canaries=unlikely)
    with pytest.raises(InputError, match="600 rows"):
        audited(data, canaries=drawn[:20])
    with pytest.raises(InputError, match="sum to 1; in 200 of 200"):
        audited(data, canaries=drawn * 1.5)
    few = pd.DataFrame(np.where(np.arange(600) < 5, 0.5, np.nan)[:, None].repeat(2, 1))
    few.columns = ["0", "1"]
    with pytest.raises(InputError, match="at least 20 canaries"):
        audited(data, canaries=few)
    with pytest.raises(InputError, match="column named after each"):
        audited(data, canaries=few.rename(columns={"0": "x"}))


def test_a_public_table_is_the_model():
    data = release(n=1500)
    other, labels, _ = release(n=1500, seed=9)
    public = other.assign(label=labels)
    result = audited(data, public=public)
    assert "the public table" in of(result, "observational.epsilon").method
    assert 0.3 < of(result, "observational.epsilon").value < 3.1
    with pytest.raises(InputError, match="of 1500 rows 0 do"):
        audited(data, public=public.assign(a=public["a"] + 100))


def test_other_mechanisms_keep_their_own_bounds():
    frame, truth, _ = release(n=1500)
    claim = {"name": "randomized-response", "classes": [0, 1], "epsilon": 5.0}
    result = ldpaudit.audit(frame, truth, claim, only=ONLY)
    check = next(c for c in result.checks if c.id == "claimed-epsilon")
    assert LOWER not in check.evidence
    assert of(result, LOWER).value <= 5.0
