"""Rows of rare true classes: how many they are tells nothing, and many of them are no pass."""

import math

import numpy as np
import pandas as pd
import pytest

import ldpaudit
from ldpaudit.audits.small_classes import large_classes
from ldpaudit.judging.checks.interface import CLEAR_SHARE
from ldpaudit.judging.policy import Policy
from ldpaudit.judging.verdict import unless_unmeasured, unmeasured_at_most
from ldpaudit.mechanisms import RandomizedResponse
from ldpaudit.result import Check, Estimate


@pytest.mark.parametrize("sizes", [(9, 9), (1, 1), (5, 0), (9, 2)])
def test_how_many_are_left_out_depends_on_the_number_of_small_classes_alone(
    sizes: tuple[int, int],
) -> None:
    codes = np.repeat(np.arange(4), (200, 100, *sizes))
    kept = large_classes([(codes, 4)])
    assert kept is not None
    assert len(codes) - len(kept) == 20


def _table(rare: int, each: int, large: int = 900) -> tuple[pd.DataFrame, np.ndarray]:
    """Two honest classes, and rare ones of ``each`` people in the clear."""
    rng = np.random.default_rng(3)
    k = 2 + rare
    truth = np.concatenate([np.repeat([0, 1], large), np.repeat(np.arange(2, k), each)])
    mechanism = RandomizedResponse.from_epsilon(tuple(range(k)), 1.0)
    noisy = mechanism.sample(truth.astype(np.int32), rng)
    noisy[truth > 1] = truth[truth > 1]
    order = rng.permutation(len(truth))
    frame = pd.DataFrame({"sex": rng.integers(0, 2, len(truth)), "label": noisy})
    return frame.iloc[order].reset_index(drop=True), truth[order]


ANY_EXCESS = Policy.model_validate(
    {"schema": 1, "audit": {"max_undetected_excess": "any"}, "checks": {"claimed-epsilon": {}}}
)


def test_many_people_left_out_are_no_pass() -> None:
    frame, truth = _table(18, 8, 300)
    told = {"epsilon": 1.0, "only": ("mechanism", "power"), "policy": ANY_EXCESS, "threads": 1}
    result = ldpaudit.audit(frame, truth, "rr", **told)
    assert result.verdict == "inconclusive"
    (check,) = (check for check in result.checks if check.id == "claimed-epsilon")
    assert "left out with true classes of few people" in check.reason
    frame, truth = _table(1, 8)
    few = ldpaudit.audit(frame, truth, "rr", **told)
    assert few.verdict == "pass"
    assert (
        "Left out: 10 of 1,808 rows, among them everyone whose true label fewer than 10 people "
        "have; the answer is about the others. " in few.sentence
    )


def _columns(rare: int, each: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Two private columns, each with rare classes of its own in the clear."""
    rng = np.random.default_rng(5)
    n, k = 1200, 2 + rare
    truth = rng.integers(0, 2, (n, 2))
    for place in (0, 1):
        start = 200 * place
        truth[start : start + rare * each, place] = np.repeat(np.arange(2, k), each)
    mechanism = RandomizedResponse.from_epsilon(tuple(range(k)), 1.0)
    noisy = mechanism.sample(truth.ravel().astype(np.int32), rng).reshape(n, 2)
    names = ["a", "b"]
    return pd.DataFrame(noisy, columns=names), pd.DataFrame(truth, columns=names)


def _both(rare: int, each: int) -> ldpaudit.AuditResult:
    frame, truth = _columns(rare, each)
    labels = (f"a:rr:epsilon=1:classes={','.join(map(str, range(2 + rare)))}",)
    labels += (labels[0].replace("a:", "b:", 1),)
    only = ("mechanism", "vector")
    return ldpaudit.audit(frame, truth, label=labels, only=only, threads=1)


def test_columns_that_each_leave_out_little_are_no_pass_together() -> None:
    """Each column leaves out 40 of 1,200 rows, all together 80: more than 5 %."""
    result = _both(4, 9)
    (check,) = (one for one in result.checks if one.id == "claimed-epsilon")
    assert "6.67% of the rows were left out" in check.reason
    assert result.verdict == "inconclusive"
    assert "Left out: 80 of 1,200 rows" in result.sentence
    assert result.sentence.count("Left out") == 1


def test_true_labels_that_are_too_few_are_not_asked_for_again() -> None:
    frame = pd.DataFrame({"label": ["A", "B"] * 9})
    result = ldpaudit.audit(frame, frame, "rr", epsilon=1.0, only=("mechanism",), threads=1)
    assert "Left out: the true labels" in result.sentence
    assert not any("Give the true labels" in step for step in result.next_steps)
    assert any("were given, but" in step for step in result.next_steps)


def test_slices_show_no_counts_beside_people_left_out() -> None:
    frame, truth = _table(1, 8)
    told = {"only": ("label-inference",), "slices": ("sex",), "budget": 0.2, "threads": 1}
    result = ldpaudit.audit(frame, truth, "rr", epsilon=1.0, **told)
    slices = [e for e in result.estimates if "slice-" in e.id]
    assert slices
    assert all(e.n is None and e.count is None for e in slices)


def test_of_many_classes_the_small_ones_have_their_power() -> None:
    """With more than 20 classes no row is left out, and none counts for another class."""
    mechanism = RandomizedResponse.from_epsilon(tuple(range(30)), 3.0)
    truth = np.repeat(np.arange(30), [68, *[8] * 29])
    noisy = mechanism.sample(truth.astype(np.int32), np.random.default_rng(1))
    only = ("mechanism", "power")
    told = {"epsilon": 3.0, "only": only, "threads": 1}
    result = ldpaudit.audit(pd.DataFrame({"label": noisy}), truth, "rr", **told)
    found = {estimate.id: estimate.value for estimate in result.estimates}
    assert found["power.min_detectable_excess"] < 0.5
    assert "mechanism.epsilon_observed" in found


def _homes(rare: int) -> tuple[pd.DataFrame, np.ndarray]:
    """100 homes of four, with one label and one draw each; ``rare`` of them have a rare label."""
    rng = np.random.default_rng(3)
    truth = np.where(np.arange(400) < 4 * rare, "yes", "no")
    kept = np.repeat(rng.random(100) < np.e / (1 + np.e), 4)
    noisy = np.where(kept == (truth == "yes"), "yes", "no")
    columns = {"home": np.repeat(np.arange(100), 4), "x": rng.normal(size=400), "label": noisy}
    order = rng.permutation(400)
    return pd.DataFrame(columns).iloc[order].reset_index(drop=True), truth[order]


def test_how_many_homes_have_a_rare_label_is_not_told() -> None:
    told = []
    for rare in (3, 8):
        only = ("assumptions", "mechanism", "power")
        asked = {"epsilon": 1.0, "group": "home", "only": only, "threads": 1}
        result = ldpaudit.audit(*_homes(rare), "rr", **asked)
        names = ("power.", "mechanism.epsilon_observed")
        told.append([(e.id, e.value) for e in result.estimates if e.id.startswith(names)])
    assert told[0] == told[1]
    assert "power.rows_needed" in dict(told[0])


@pytest.mark.parametrize(
    ("found", "verdict", "words"),
    [
        (0.08, "pass", ""),
        (0.07, "inconclusive", "the share in the clear that would be found (7.00%)"),
        (0.5, "pass", ""),
        (None, "inconclusive", "more than may go unmeasured (5.00%)"),
    ],
)
def test_a_share_that_was_not_computed_is_not_called_found(
    found: float | None, verdict: str, words: str
) -> None:
    stated = {"level": "error", "limit": None, "observed": None, "reason": "r"}
    check = Check(id="a", question="?", verdict="pass", confidence=0.95, **stated)
    shares = {} if found is None else {CLEAR_SHARE: Estimate.exact(CLEAR_SHARE, "Share", found)}
    told = unless_unmeasured(check, 0.08, unmeasured_at_most(shares))
    assert told.verdict == verdict
    assert words in told.reason


def test_more_than_a_tenth_is_left_out_of_no_pass() -> None:
    found = Estimate.exact(CLEAR_SHARE, "Share", 0.5)
    assert unmeasured_at_most({CLEAR_SHARE: found})[0] == pytest.approx(0.1)


def _all_released(truth: np.ndarray, channel: np.ndarray, seed: int = 5) -> np.ndarray:
    """Draw labels of the channel's outputs for true labels."""
    draws = np.random.default_rng(seed).random(len(truth))[:, None]
    return (draws > channel.cumsum(axis=1)[truth]).sum(axis=1).astype(np.int64)


@pytest.mark.parametrize(("channel", "verdict"), [("leaks", "fail"), ("honest", "pass")])
def test_a_small_class_among_two_released_labels_hides_no_leak(channel: str, verdict: str) -> None:
    keep = np.e / (1 + np.e)
    claimed = np.array([[keep, 1 - keep], [0.5, 0.5], [1 - keep, keep]])
    truth = np.random.default_rng(2).permutation(np.repeat([0, 1, 2], (1200, 900, 5)))
    made = np.array([[0.98, 0.02], [0.02, 0.98], [0.5, 0.5]]) if channel == "leaks" else claimed
    released = np.array(["a", "c"])[_all_released(truth, made)]
    claim = {
        "name": "channel",
        "matrix": claimed.tolist(),
        "classes": ["a", "b", "c"],
        "outputs": ["a", "c"],
    }
    frame, labels = pd.DataFrame({"label": released}), np.array(["a", "b", "c"])[truth]
    asked = {"only": ("mechanism", "power"), "policy": ANY_EXCESS, "threads": 1}
    result = ldpaudit.audit(frame, labels, claim, label="label", **asked)
    assert result.verdict == verdict
    assert "every row has the same released label" not in result.sentence


def test_released_labels_that_count_as_another_are_said_to_be_unmeasured() -> None:
    frame, truth = _table(1, 8)
    told = {"epsilon": 1.0, "only": ("mechanism", "power"), "policy": ANY_EXCESS, "threads": 1}
    result = ldpaudit.audit(frame, truth, "rr", **told)
    share = math.ceil(100 * (frame["label"] == 2).mean())
    assert result.sentence.endswith(
        f"released in at most {share} % of the rows, counted as the largest class's: what they "
        "give away was not measured."
    )


def test_a_class_of_many_rows_and_few_people_is_warned_of() -> None:
    truth = np.repeat([0, 1, 2], [200, 200, 12])
    people = np.r_[np.arange(400), np.repeat([400, 401, 402], 4)]
    frame = pd.DataFrame({"who": people, "label": np.random.default_rng(1).permutation(truth)})
    for few in (True, False):
        frame["who"] = people if few else np.arange(len(truth))
        mechanism = RandomizedResponse.from_epsilon((0, 1, 2), 1.0)
        result = ldpaudit.audit(frame, truth, mechanism, group="who", only=["mechanism"])
        assert any("Counts are of rows" in note.text for note in result.notes) == few


def test_a_hidden_share_is_judged_as_it_was_counted_and_no_page_states_one() -> None:
    """Of 55 honest rows the features tell little; hidden, that share is rounded to 0 or to 1."""
    rng = np.random.default_rng(2)
    truth = rng.permutation(np.repeat(["A", "B"], [30, 25]))
    other = np.where(truth == "A", "B", "A")
    noise = {"x": rng.integers(0, 9, 55), "label": np.where(rng.random(55) < 0.7, truth, other)}
    told = {"epsilon": 1.0, "only": ("label-inference",), "seed": 0, "budget": 0.01, "threads": 1}
    result = ldpaudit.audit(pd.DataFrame(noise), truth, "rr", **told)
    share = result.estimate("attack.features-only.balanced_accuracy")
    ceiling = result.estimate("attack.ceiling-estimate.accuracy")
    assert share is not None
    assert ceiling is not None
    assert (share.suppressed, share.value) == (True, 1.0)
    (check,) = (check for check in result.checks if check.id == "features-reveal-label")
    assert (check.verdict, check.reason) == ("pass", "the features alone leave labels open")
    assert ceiling.value < 1
    assert "The best attack guesses 0 to 100\u00a0% of the labels right." in result._repr_html_()


def _alarm(rng: np.random.Generator, rare: int) -> tuple[pd.DataFrame, np.ndarray]:
    """Labels of three, each released as claimed at ε = 1, the third only where a column tells it.

    Where it counts as the first, the column says nothing of what is released.
    """
    truth = rng.permutation(np.repeat([0, 1, 2], [900, 900, rare]))
    column, n = rng.integers(0, 2, len(truth)), len(truth)
    keep, other = np.e / (np.e + 2), 1 / (np.e + 2)
    first = rng.random(n) < np.where(truth == 0, keep + other, 2 * other)
    third = np.where(truth == 0, 2 * other / (keep + other), 1.0)
    told = first & (column == truth) & (rng.random(n) < third)
    released = np.where(told, 2, np.where(first, 0, 1))
    return pd.DataFrame({"column": column, "label": released}), truth


def test_a_leak_through_features_and_the_label_of_a_small_class_is_found() -> None:
    frame, truth = _alarm(np.random.default_rng(1), 5)
    told = {"epsilon": 1.0, "only": ("assumptions", "mechanism", "power"), "threads": 1}
    result = ldpaudit.audit(frame, truth, "rr", policy=ANY_EXCESS, **told)
    assert result.verdict == "fail"
    assert "counted as the largest class's" not in result.sentence


def test_where_no_channel_is_claimed_many_labels_that_count_as_another_are_no_pass() -> None:
    """The third label is released of the second alone: attacks would see it if it were left."""
    rng = np.random.default_rng(1)
    truth = rng.permutation(np.repeat([0, 1, 2], [900, 900, 5]))
    other = np.where(rng.random(len(truth)) < 0.6, truth, 1 - truth)
    released = np.where((truth == 1) & (rng.random(len(truth)) < 0.8), 2, other)
    limit = {"label-inference-accuracy": {"max": 0.95}, "claimed-epsilon": {"level": "off"}}
    policy = Policy.model_validate({"schema": 1, "checks": limit})
    told = {"only": ("label-inference",), "budget": 0.01, "threads": 1, "policy": policy}
    result = ldpaudit.audit(pd.DataFrame({"label": released}), truth, "unknown", **told)
    assert result.verdict == "inconclusive"
    assert "no channel is claimed that they could be held to" in result.sentence
