"""The audit of numeric labels: what is reported, and that it follows the leak."""

import numpy as np
import pandas as pd
import pytest
from audits.found import check, value

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


def test_almost_no_noise_is_found_out_and_every_number_has_its_interval(open_labels):
    lower = value(open_labels, "numeric.prior.mse")
    expected = {
        "numeric.best.exact@low": (0.8, 1),
        "numeric.best.bin_advantage@low": (0.4, 1),
        "numeric.best.mse_gain@low": (3, 999),
        "numeric.best.mse@high": (0, 0.9 * lower),
        "numeric.range": 20,
    }
    names = ("best", "posterior-mean", "posterior-median", "interval", "released-value")
    measures = ("within_1", "within_5", "within_10", "bin_accuracy", "bin_advantage")
    every = {f"numeric.{name}.{measure}": "certified" for name in names for measure in measures}
    check(open_labels, expected | every)
    found = [e for e in open_labels.estimates if e.id.startswith("numeric.")]
    assert {e.kind for e in found} == {"exact", "certified"}
    assert all(e.low <= e.value <= e.high for e in found if e.low is not None)
    lows = {e.id: e.low for e in found}
    for end in ("within_5", "exact"):
        singles = [x for name, x in lows.items() if name.endswith(end) and ".best." not in name]
        assert lows[f"numeric.best.{end}"] <= max(singles)


def test_much_noise_leaves_nothing_to_find():
    hidden = audited(Laplace(REAL, 0.05))
    features = value(hidden, "numeric.features-only.mse")
    check(
        hidden,
        {
            "numeric.best.mse": (0.9 * features, 1.1 * features),
            "numeric.best.bin_advantage@low": (-1, 0.005),
            "numeric.best.exact": None,
        },
    )


def test_it_says_why_it_does_not_run():
    claim = Laplace(REAL, 1.0)
    frame = pd.DataFrame({"a": np.arange(200) % 7, "label": np.linspace(-3, 12, 200)})
    with pytest.raises(ldpaudit.errors.PolicyError, match="needs the true labels"):
        ldpaudit.audit(frame, None, claim, only=ONLY)
    other = frame.assign(label=["a", "b"] * 100)
    with pytest.raises(ldpaudit.errors.PolicyError, match="not one on numbers"):
        ldpaudit.audit(other, other["label"], "unknown", only=ONLY)
