"""The audit of numeric labels: what is reported, and that it follows the leak."""

import numpy as np
import pandas as pd
import pytest

import ldpaudit
from ldpaudit.mechanisms.label_range import LabelRange
from ldpaudit.mechanisms.noise import DiscreteLaplace, Laplace

WEEKS, REAL = LabelRange(0, 20, 1), LabelRange(0.0, 10.0)
ONLY = ("numeric-inference",)


def audited(claim, n=800, seed=1):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal(n)
    truth = np.clip(rng.gamma(2.0, claim.labels.high / 8, n) + x, 0, claim.labels.high)
    if claim.labels.step is not None:
        truth = np.rint(truth)
    noisy = claim.release(truth, rng)
    frame = pd.DataFrame({"a": np.round(x, 1), "label": noisy})
    return ldpaudit.audit(frame, truth, claim, only=ONLY)


@pytest.fixture(scope="module")
def open_labels():
    return audited(DiscreteLaplace(WEEKS, 50.0, clipped=True))


def of(result, name):
    return next(e for e in result.estimates if e.id == name)


def test_almost_no_noise_is_found_out(open_labels):
    assert of(open_labels, "numeric.best.exact").low > 0.8
    assert of(open_labels, "numeric.best.bin_advantage").low > 0.4
    assert of(open_labels, "numeric.best.mse_gain").low > 3
    assert of(open_labels, "numeric.best.mse").high < of(open_labels, "numeric.prior.mse").low
    assert of(open_labels, "numeric.range").value == 20


def test_much_noise_leaves_nothing_to_find():
    hidden = audited(Laplace(REAL, 0.05))
    gain = of(hidden, "numeric.best.mse").value / of(hidden, "numeric.features-only.mse").value
    assert 0.9 < gain < 1.1
    assert of(hidden, "numeric.best.bin_advantage").low < 0.005
    assert not any(e.id.endswith(".exact") for e in hidden.estimates)


def test_every_number_is_certified_and_has_its_interval(open_labels):
    found = [e for e in open_labels.estimates if e.id.startswith("numeric.")]
    assert {e.kind for e in found} == {"exact", "certified"}
    assert {e.id for e in found} >= {
        f"numeric.{name}.{measure}"
        for name in ("best", "posterior-mean", "posterior-median", "interval", "released-value")
        for measure in ("within_1", "within_5", "within_10", "bin_accuracy", "bin_advantage")
    }
    assert all(e.low <= e.value <= e.high for e in found if e.low is not None)
    for name in ("within_5", "exact"):
        singles = [e.low for e in found if e.id.endswith(name) and ".best." not in e.id]
        assert of(open_labels, f"numeric.best.{name}").low <= max(singles)


def test_it_says_why_it_does_not_run():
    claim = Laplace(REAL, 1.0)
    frame = pd.DataFrame({"a": np.arange(200) % 7, "label": np.linspace(-3, 12, 200)})
    with pytest.raises(ldpaudit.errors.PolicyError, match="needs the true labels"):
        ldpaudit.audit(frame, None, claim, only=ONLY)
    other = frame.assign(label=["a", "b"] * 100)
    with pytest.raises(ldpaudit.errors.PolicyError, match="not one on numbers"):
        ldpaudit.audit(other, other["label"], "unknown", only=ONLY)
