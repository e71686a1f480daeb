"""A feature with the private column's name may be the true labels, or another answer to them."""

import numpy as np
import pandas as pd
import pytest

import ldpaudit

CHECK = "truth-taken-out"
N = 2000


def answer(truth, epsilon, rng):
    return np.where(rng.random(len(truth)) < 1 / (1 + np.exp(epsilon)), 1 - truth, truth)


def audited(release, truth, label):
    claim = {"mechanism": "rr", "epsilon": 1.0, "label": label}
    return ldpaudit.audit(release, truth, only=("mechanism", "power"), rng=1, **claim)


@pytest.mark.parametrize(
    ("label", "other", "fails"),
    [
        ("answer", "illness", True),
        ("answer", "illness_2019", False),
        ("illness_pram", "illness", True),
        ("illness_pram", "answer", False),
        ("illness", "answer", False),
    ],
)
def test_no_feature_has_the_private_columns_name(label, other, fails):
    """The other column is an older answer: features reveal no label more than that one does."""
    rng = np.random.default_rng(1)
    truth = rng.integers(0, 2, N)
    release = pd.DataFrame({"x": rng.normal(size=N)})
    release[other] = answer(truth, 1.0, rng)
    release[label] = answer(truth, 1.0, rng)
    result = audited(release, pd.DataFrame({"illness": truth}), label)
    check = {check.id: check for check in result.checks}.get(CHECK)
    assert (check is not None) == fails
    assert result.decision == ("not yet" if fails else "publish")
    if check is not None:
        assert check.reason.startswith("column 2 is a feature and has")
        assert result.next_steps[0].startswith("Look at column 2:")
        assert "illness" not in check.reason


def test_several_columns_are_named():
    rng = np.random.default_rng(1)
    truth = rng.integers(0, 2, N)
    older = {name: answer(truth, 1.0, rng) for name in ("illness", "diagnosis")}
    release = pd.DataFrame(older | {"illness_pram": answer(truth, 1.0, rng)})
    result = audited(release, pd.DataFrame({"diagnosis": truth}), "illness_pram")
    (check,) = (check for check in result.checks if check.id == CHECK)
    assert check.reason.startswith("column 1 and column 2 are features and have")
