"""True labels of other rows, or in another order, end the audit with a reason."""

import numpy as np
import pandas as pd
import pytest

import ldpaudit
from ldpaudit.errors import InputError
from ldpaudit.judging.policy import parse_policy


@pytest.mark.parametrize(
    ("order", "words"),
    [
        (lambda y, _: np.roll(y, 1), "shifted by one row: they fit the claim for the rows before"),
        (lambda y, _: np.roll(y, -2), "shifted by 2 rows: they fit the claim for the rows after"),
        (lambda y, rng: rng.permutation(y), "reveal nothing about the released ones"),
    ],
)
def test_true_labels_of_other_rows_are_an_input_error(order, words) -> None:  # type: ignore[no-untyped-def]
    rng = np.random.default_rng(1)
    truth = rng.integers(2, size=1000)
    kept = rng.random(1000) < np.e / (1 + np.e)
    table = pd.DataFrame({"a": rng.normal(size=1000), "label": np.where(kept, truth, 1 - truth)})
    with pytest.raises(InputError, match=words):
        ldpaudit.audit(
            table,
            pd.Series(order(truth, rng), name="label"),
            mechanism="rr",
            label="label",
            epsilon=1.0,
            only=["mechanism"],
        )


LIMIT = """
schema = 1
[checks.label-inference-accuracy]
level = "error"
max = 0.99
"""


def audited(order, epsilon=None, noise=1.0, seed=2):
    rng = np.random.default_rng(seed)
    truth = rng.integers(2, size=1000)
    kept = rng.random(1000) < 1 / (1 + np.exp(-noise))
    table = pd.DataFrame({"a": rng.normal(size=1000), "label": np.where(kept, truth, 1 - truth)})
    claim = {} if epsilon is None else {"mechanism": "rr", "epsilon": epsilon}
    return ldpaudit.audit(
        table,
        pd.Series(order(truth, rng), name="label"),
        label="label",
        policy=parse_policy(LIMIT),
        only=["mechanism", "label-inference"],
        **claim,
    )


def test_without_a_claim_true_labels_that_reveal_nothing_hold_the_decision():
    # A permutation looks related in one of twenty draws; at this seed it does not.
    result = audited(lambda y, rng: rng.permutation(y))
    assert (result.verdict, result.decision) == ("inconclusive", "not yet")
    (check,) = (one for one in result.checks if one.id == "truth-fits")
    assert check.level == "error"
    assert check.reason in result.sentence
    assert "--id" in " ".join(result.next_steps)
    related = audited(lambda y, _: y)
    assert "truth-fits" not in {one.id for one in related.checks}
    assert related.verdict == "pass"


@pytest.mark.parametrize("seed", range(5))
def test_with_a_claim_of_much_noise_little_is_expected_and_nothing_is_held(seed):
    # At ε = 0.02 the true labels of 1,000 rows agree with 505 released ones, give or take 16.
    result = audited(lambda y, _: y, epsilon=0.02, noise=0.02, seed=seed)
    assert "truth-fits" not in {one.id for one in result.checks}
    assert result.verdict == "pass"
