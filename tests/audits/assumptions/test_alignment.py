"""True labels of other rows, or in another order, end the audit with a reason."""

import numpy as np
import pandas as pd
import pytest

import ldpaudit
from ldpaudit.audits.alignment import dependence_p_value, independence_p_value
from ldpaudit.errors import InputError
from ldpaudit.judging.policy import parse_policy
from ldpaudit.release import label_table


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


@pytest.mark.parametrize("shuffled", [False, True])
def test_numbers_that_were_clipped_and_rounded_are_those_of_their_rows(shuffled: bool) -> None:
    """They do not fit the claimed noise any more, and rise with the true numbers all the same."""
    rng = np.random.default_rng(3)
    truth = np.rint(np.clip(rng.normal(50, 15, 4000), 0, 100))
    noisy = np.clip(5 * np.rint((truth + rng.laplace(0, 100, 4000)) / 5), 0, 100)
    given = rng.permutation(truth) if shuffled else truth
    claim = {"name": "laplace", "low": 0, "high": 100, "epsilon": 1.0}

    def audit() -> ldpaudit.AuditResult:
        return ldpaudit.audit(
            pd.DataFrame({"a": rng.normal(size=4000), "label": noisy}),
            pd.Series(given, name="label"),
            mechanism=claim,
            only=["assumptions", "mechanism", "power"],
        )

    if shuffled:
        with pytest.raises(InputError, match="reveal nothing about the released ones"):
            audit()
    else:
        result = audit()
        assert result.decision == "not yet"
        assert any(":clip" in step for step in result.next_steps)


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


MORE = [pytest.param(seed, marks=pytest.mark.validate) for seed in range(1, 5)]


@pytest.mark.parametrize("seed", [0, *MORE])
def test_with_a_claim_of_much_noise_little_is_expected_and_nothing_is_held(seed):
    # At ε = 0.02 the true labels of 1,000 rows agree with 505 released ones, give or take 16.
    result = audited(lambda y, _: y, epsilon=0.02, noise=0.02, seed=seed)
    assert "truth-fits" not in {one.id for one in result.checks}
    assert result.verdict == "pass"


def of_other_rows(claim, *, related, seed, n=1500):
    """Return an audit of labels released by a claim, with their true labels or those of others."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(2, size=n)
    kept = rng.random(n) < 1 / (1 + np.exp(-1.0))
    table = pd.DataFrame({"a": rng.normal(size=n), "label": np.where(kept, truth, 1 - truth)})
    given = truth if related else rng.permutation(truth)
    return ldpaudit.audit(
        table,
        pd.Series(given, name="label"),
        label="label",
        only=["assumptions", "mechanism", "power"],
        threads=1,
        **claim,
    )


CLAIMS = {
    "none": {},
    "of what uses features": {"mechanism": {"name": "model-based-rr", "lambda": 0.5}},
    # Too little is expected of true labels to refuse them, and more than they say.
    "with a channel": {"mechanism": "rr", "epsilon": 0.17},
}


@pytest.mark.parametrize("claim", CLAIMS)
@pytest.mark.parametrize("related", [True, False])
def test_true_labels_of_other_rows_hold_the_decision_whatever_is_claimed(claim, related):
    # A permutation looks related in one of twenty draws; at these seeds it does not.
    result = of_other_rows(CLAIMS[claim], related=related, seed=11)
    assert ("truth-fits" in {one.id for one in result.checks}) == (not related)
    if not related:
        assert (result.verdict, result.decision) == ("inconclusive", "not yet")
        assert "(--id)" in result.next_steps[0]


# A binomial count of 120 at 1 % is above 7 once in 30,000 times, one of 400 above 12 once in 2,000.
@pytest.mark.parametrize(
    ("times", "most"), [(30, 7), pytest.param(100, 12, marks=pytest.mark.validate)]
)
def test_of_the_noise_that_is_claimed_true_labels_may_say_nothing(times, most):
    """At most one honest release in a hundred is held, however much noise is claimed."""
    rng = np.random.default_rng(3)
    held = 0
    for epsilon in (0.02, 0.05, 0.1, 0.2) * times:
        truth, kept = rng.integers(2, size=1000), 1 / (1 + np.exp(-epsilon))
        channel = np.array([[kept, 1 - kept], [1 - kept, kept]])
        released = np.where(rng.random(1000) < kept, truth, 1 - truth)
        counts = label_table(truth, released, 2, 2)
        if independence_p_value(counts, rng) > 0.05:
            held += dependence_p_value(counts, channel, rng) <= 0.01
    assert held <= most


def test_unrelated_true_labels_are_not_excused_however_many_labels_there_are() -> None:
    """With more than 200 labels few tables are drawn, but enough to tell what is too little."""
    k, rng = 220, np.random.default_rng(5)
    channel = (np.ones((k, k)) + 400 * np.eye(k)) / (k + 400)
    truth = rng.integers(k, size=6000)
    kept = rng.random(6000) < 400 / (k + 400)
    released = np.where(kept, truth, rng.integers(k, size=6000))
    for seen, excused in ((released, True), (rng.permutation(released), False)):
        p_value = dependence_p_value(label_table(truth, seen, k, k), channel, rng)
        assert (p_value > 0.01) == excused
