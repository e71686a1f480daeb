"""Honest releases whose rows were overwritten, repeated or remembered undeclared; several rows."""

from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest

import ldpaudit
from ldpaudit.audits.assumptions.noise import NoiseFinding
from ldpaudit.estimators.assumptions.afterwards import fixed_by_model, times_selected
from ldpaudit.estimators.departures import Departure, Order
from ldpaudit.result import AuditResult

Tables = tuple[pd.DataFrame, pd.DataFrame]
KEEP = np.e / (1 + np.e)


def drawn(rng: np.random.Generator, truth: np.ndarray, k: int = 2) -> np.ndarray:
    kept = rng.random(len(truth)) < np.e / (np.e + k - 1)
    return np.where(kept, truth, (truth + rng.integers(1, k, len(truth))) % k)


def tables(frame: pd.DataFrame, released: np.ndarray, truth: np.ndarray) -> Tables:
    return frame.assign(label=released), frame.assign(label=truth)


def audited(made: Tables) -> AuditResult:
    only = ["assumptions", "mechanism", "power"]
    return ldpaudit.audit(made[0], made[1], mechanism="rr", epsilon=1.0, only=only)


def a_rule_on_two_columns(rng: np.random.Generator) -> Tables:
    age, bmi = rng.normal(45, 15, 1500).round(1), rng.normal(26, 4, 1500).round(2)
    truth = (rng.random(1500) < 1 / (1 + np.exp(-(age - 45) / 15))).astype(int)
    ruled = (age >= np.quantile(age, 0.6)) & (bmi <= np.quantile(bmi, 0.3))
    released = np.where(ruled, 1, drawn(rng, truth))
    return tables(pd.DataFrame({"age": age, "bmi": bmi}), released, truth)


def answers_remembered_at_visits(rng: np.random.Generator) -> Tables:
    """A person's age moves on between visits, and the rows are in random order."""
    person = np.repeat(np.arange(300), rng.integers(2, 9, 300))
    age, n = rng.integers(18, 90, 300), len(person)
    truth = (rng.random(300) < 1 / (1 + np.exp(-(age - 54) / 15))).astype(int)
    frame = pd.DataFrame(
        {
            "age": age[person] + rng.integers(0, 3, n),
            "region": rng.choice(list("NSEWC"), 300)[person],
            "bmi": rng.normal(26, 4, 300).round(1)[person],
            "cost": rng.gamma(2, 100, n).round(2),
        }
    )
    order = rng.permutation(n)
    released = drawn(rng, truth)[person]
    return tables(frame.iloc[order].reset_index(drop=True), released[order], truth[person][order])


def rows_of_a_rare_label_repeated(rng: np.random.Generator) -> Tables:
    """Copies look like other people: there is only their age."""
    truth = rng.choice(4, 2000, p=[0.6, 0.25, 0.12, 0.03])
    released = drawn(rng, truth, 4)
    rows = rng.permutation(np.r_[np.arange(2000), np.repeat(np.flatnonzero(released == 3), 3)])
    age = rng.integers(18, 95, 2000)
    return tables(pd.DataFrame({"age": age[rows]}), released[rows], truth[rows])


@pytest.mark.parametrize(
    "make", [a_rule_on_two_columns, answers_remembered_at_visits, rows_of_a_rare_label_repeated]
)
def test_what_was_done_after_the_noise_is_no_violation(
    make: Callable[[np.random.Generator], Tables],
) -> None:
    for seed in (1, 3):
        result = audited(make(np.random.default_rng(seed)))
        assert result.decision == "not yet", result.sentence


@pytest.mark.validate
@pytest.mark.parametrize(
    "make", [a_rule_on_two_columns, answers_remembered_at_visits, rows_of_a_rare_label_repeated]
)
def test_it_hardly_ever_is_one(make: Callable[[np.random.Generator], Tables]) -> None:
    decisions = [audited(make(np.random.default_rng(seed))).decision for seed in range(100, 120)]
    assert decisions.count("do not publish") <= 4, decisions
    assert "publish" not in decisions


@pytest.mark.parametrize("text", [True, False])
def test_a_column_tells_persons_with_several_fresh_answers(text: bool) -> None:
    rng = np.random.default_rng(5)
    person = np.repeat(np.arange(1000), rng.integers(1, 6, 1000))
    rng.shuffle(person)
    truth = rng.choice(4, 1000, p=[0.6, 0.25, 0.12, 0.03])[person]
    names = np.array([f"P{i}" for i in range(1000)]) if text else 100_000 + np.arange(1000)
    frame = pd.DataFrame({"pid": names[person], "cost": rng.gamma(2, 100, len(person)).round(2)})
    result = audited(tables(frame, drawn(rng, truth, 4), truth))
    assert result.decision == "not yet"
    assert result["assumptions.composed_epsilon"].value == 5.0
    assert any("equal values in column 'pid'" in note.text for note in result.notes)
    # Where people of one value have labels of their own, and where values tell nobody apart.
    other = rng.choice(4, len(person), p=[0.6, 0.25, 0.12, 0.03])
    plain = audited(tables(frame, drawn(rng, other, 4), other))
    assert not any("several rows" in note.text or "person's" in note.text for note in plain.notes)


def test_copies_win_together_what_one_row_wins() -> None:
    departure = Departure("distance", Order("the file", np.arange(3)), tried=10.0, log_wealth=30.0)
    found = NoiseFinding(departure, 1e-9, 1.0, True)
    assert found.if_repeated(1.0) == 1e-9
    assert found.if_repeated(2.0) == pytest.approx(10 * 1e-10**0.25)
    assert NoiseFinding(departure, 0.5, 1.0, True).if_repeated(4.0) == 1.0


def test_how_often_rows_were_repeated_follows_from_the_counts() -> None:
    channel = np.array([[0.7, 0.2, 0.1], [0.1, 0.7, 0.2], [0.25, 0.25, 0.5]])
    sizes = np.array([30_000, 20_000, 10_000])
    counts = np.rint(sizes[:, None] * channel).astype(np.int64)
    assert times_selected(counts, channel) == 1.0
    assert times_selected(counts * np.array([1, 1, 3]), channel) == pytest.approx(3.0, rel=0.01)
    other = np.array([[0.9, 0.05, 0.05], [0.1, 0.7, 0.2], [0.25, 0.25, 0.5]])
    assert times_selected(np.rint(sizes[:, None] * other).astype(np.int64), channel) == 1.0


def test_labels_are_fixed_where_a_model_foresees_them_against_the_true_ones() -> None:
    channel = np.array([[0.75, 0.25], [0.25, 0.75]])
    foreseen = np.repeat([0, 1, -1], [20, 20, 10])
    truth = np.r_[np.tile([0, 1], 10), np.tile([0, 1], 10), np.zeros(10, dtype=int)]
    fixed = fixed_by_model(foreseen, truth, np.r_[np.zeros(20, int), truth[20:]], channel)
    assert fixed.tolist() == list(range(20))  # The second twenty are in the clear.
    # Of too few with another true label nothing is said.
    assert (
        len(fixed_by_model(foreseen, np.r_[[1, 1], np.zeros(48, int)], np.zeros(50, int), channel))
        == 0
    )
