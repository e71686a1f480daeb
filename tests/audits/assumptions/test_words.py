"""What is said of noise is what was found, and the first next step follows from it."""

from functools import cache
from itertools import combinations

import numpy as np
import pandas as pd
import pytest

import ldpaudit
from ldpaudit.audits.assumptions.causes import fewest, telling
from ldpaudit.audits.assumptions.noise import NoiseFinding
from ldpaudit.estimators.departures import Departure, Order
from ldpaudit.result import AuditResult

ROWS = 2400
LOST = 1 / (1 + np.e)
CLAIM = {"name": "randomized-response", "epsilon": 1.0}
COLUMNS = ("age", "bmi", "site", "x")
AUDITS = ("assumptions", "mechanism")
DECIDING = {"only": (*AUDITS, "power")}


def people(rng, n=ROWS):
    """Return a table of honest columns, and true labels."""
    truth = rng.integers(0, 2, n)
    columns = rng.integers(20, 80, n), rng.normal(25, 4, n) + truth, rng.integers(0, 6, n)
    frame = pd.DataFrame(dict(zip(COLUMNS, (*columns, rng.normal(size=n)), strict=True)))
    return frame, truth


def planted(kind, rng, frame):
    """Return which labels are changed, with a fault; a column may get gaps, or be added."""
    n = len(frame)
    uniform = rng.random(n)
    if kind == "site":
        return (uniform < LOST) & (frame["site"] != 2).to_numpy()
    if kind == "gaps":
        frame.loc[rng.random(n) < 0.2, "bmi"] = np.nan
        return (uniform < LOST) & ~frame["bmi"].isna().to_numpy()
    if kind == "stretch":
        uniform[500:1000] = 1
    if kind == "period":
        uniform = np.resize(uniform[:600], n)
    if kind == "seed":
        uniform = uniform[frame.groupby("site").cumcount()]
    if kind == "household":
        frame["home"] = np.arange(n) // 3
        uniform = uniform[frame["home"]]
    if kind == "opposite":
        uniform[1::2] = 1 - uniform[::2]
    if kind == "totals":
        uniform = np.concatenate([(rng.permutation(50) + 0.5) / 50 for _ in range(n // 50)])
    if kind == "by age":
        order = np.argsort(frame["age"].to_numpy(), kind="stable")
        uniform[order] = np.resize(uniform[:400], n)
    return uniform < LOST


def audited(frame, truth, **options) -> AuditResult:
    known = {"only": AUDITS, "mechanism": CLAIM} | options
    return ldpaudit.audit(frame, truth=truth, rng=1, threads=1, **known)


@cache
def with_fault(kind, *, known):
    rng = np.random.default_rng(7)
    frame, truth = people(rng)
    changed = planted(kind, rng, frame)
    before = tuple(frame.columns) if known else ()
    return audited(frame.assign(label=np.where(changed, 1 - truth, truth)), truth, before=before)


STEPS = {
    "site": "rows with one value of column 'site'",
    "gaps": "rows in which column 'bmi' is missing",
    "stretch": "Look at rows ",
    "period": "random numbers that repeat after 600 rows",
    "seed": "a seed that is set again for each value of column 'site'",
    "household": "rows with equal values in column 'home'",
    "opposite": "noise drawn in opposite pairs, of neighbouring rows",
    "totals": "in blocks of 50 rows",
    "by age": "400 rows, or a seed set again: rows 400 apart in the order of column 'age'",
}


@pytest.mark.parametrize("kind", STEPS)
def test_the_first_next_step_follows_from_what_was_found(kind):
    result = with_fault(kind, known=True)
    assert result.verdict == "fail"
    assert STEPS[kind] in result.next_steps[0]
    others = [words for other, words in STEPS.items() if other not in (kind, "stretch")]
    assert not any(words in result.next_steps[0] for words in others)


@pytest.mark.parametrize("kind", ["site", "gaps"])
def test_of_columns_in_doubt_only_the_one_that_carries_it_is_named(kind):
    result = with_fault(kind, known=False)
    column = {"site": "site", "gaps": "bmi"}[kind]
    (note,) = (one.text for one in result.notes if one.text.startswith("Either the labels"))
    assert f"Or column '{column}' was computed from released labels" in note
    assert not any(repr(other) in note for other in COLUMNS if other != column)
    assert STEPS[kind] in result.next_steps[0]
    assert f"whether column '{column}' was there" in result.next_steps[0]


def test_of_many_columns_the_two_that_steer_the_noise_are_named():
    """Neither says anything by itself: the noise depends on whether they agree."""
    rng = np.random.default_rng(3)
    frame, truth = people(rng, 3000)
    frame = frame.assign(**{f"n{i}": rng.normal(size=3000) for i in range(3)})
    clear = ((frame["age"] > 50) ^ (frame["site"] > 2)).to_numpy()
    released = np.where((rng.random(3000) < LOST) & ~clear, 1 - truth, truth)
    result = audited(frame.assign(label=released), truth, before=tuple(frame.columns))
    assert result.verdict == "fail"
    words = result.next_steps[0]
    assert "'age'" in words
    assert "'site'" in words
    assert not any(repr(name) in words for name in ("bmi", "x", *(f"n{i}" for i in range(3))))


@pytest.mark.parametrize("size", [1, 2, 3])
def test_the_fewest_columns_are_all_that_are_needed_and_no_more(size):
    columns = tuple(range(7))
    for needed in combinations(columns, size):
        asked = []

        def carry(some, needed=needed, asked=asked):
            asked.append(some)
            return set(needed) <= set(some)

        assert set(fewest(columns, carry, 60)) == set(needed)
        few = []
        found = fewest(columns, lambda some, few=few: bool(few.append(some)), 3)
        assert found == columns
        assert len(few) <= 3


def test_a_rule_on_a_column_from_before_is_named():
    rng = np.random.default_rng(1)
    frame, truth = people(rng, 3000)
    released = np.where(rng.random(3000) < LOST, 1 - truth, truth)
    frame["label"] = np.where(frame["age"] > 60, 0, released)
    result = audited(frame, truth, before=COLUMNS, **DECIDING)
    assert result.verdict == "inconclusive"
    assert "follow from column 'age', whatever the true ones are: a rule seems" in result.sentence
    assert "rule on column 'age'" in result.next_steps[0]


@pytest.mark.parametrize("seed", [5])
def test_a_column_missing_by_released_label_is_named_and_no_rows_are_said_to_be_left_out(seed):
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 2, 2500)
    released = np.where(rng.random(2500) < LOST, 1 - truth, truth)
    frame = pd.DataFrame({name: rng.integers(0, 4, 2500) for name in "ab"})
    frame["bmi"] = np.where(released == 1, np.nan, rng.normal(size=2500).round(1))
    result = audited(frame.assign(label=released), truth, **DECIDING)
    assert result.verdict != "fail"
    assert "left out" not in result.sentence
    if result.verdict == "inconclusive":
        assert "rows in which column 'bmi' is missing" in result.next_steps[0]
        notes = " ".join(one.text for one in result.notes)
        assert "or column 'bmi' was computed" in notes


def test_a_selection_is_a_reading_of_the_counts():
    rng = np.random.default_rng(8)
    frame, truth = people(rng, 6000)
    released = np.where(rng.random(6000) < LOST, 1 - truth, truth)
    kept = (released == 1) | (rng.random(6000) < 0.5)
    result = audited(frame.assign(label=released)[kept], truth[kept], before=COLUMNS)
    assert result.verdict == "inconclusive"
    assert "as if rows had been left out or repeated" in result.sentence


def test_power_says_where_labels_in_the_clear_would_be_noticed():
    rng = np.random.default_rng(9)
    frame, truth = people(rng)
    released = np.where(rng.random(ROWS) < LOST, 1 - truth, truth)
    result = audited(
        frame.assign(label=released),
        truth,
        before=COLUMNS,
        only=(*AUDITS, "power", "seeds"),
        seeds_tried=50,
    )
    assert result.verdict == "pass"
    assert "or true labels standing in the clear in the label column, in" in result.sentence


@cache
def once_each(*, known):
    """One draw of noise for a person, joined to the person's rows, with a value of its own each."""
    rng = np.random.default_rng(4)
    frame, truth = people(rng, 1200)
    released = np.where(rng.random(1200) < LOST, 1 - truth, truth)
    person = np.repeat(np.arange(1200), 1 + rng.poisson(1, 1200))
    frame = frame.iloc[person].reset_index(drop=True)
    frame = frame.assign(person=person, shift=rng.integers(1, 4, len(person)))
    before = tuple(frame.columns) if known else ()
    return audited(frame.assign(label=released[person]), truth[person], before=before)


@pytest.mark.parametrize("known", [True, False])
def test_noise_drawn_once_for_a_person_is_not_called_fresh_or_a_shift_register(known):
    result = once_each(known=known)
    notes = " ".join(one.text for one in result.notes)
    assert "share noise" in notes
    assert "shift register" not in notes
    assert "fresh noise" not in notes
    assert all(check.verdict == "pass" for check in result.checks if check.id == "composition")


@pytest.mark.parametrize(("pairs", "left"), [(False, ["triples"]), (True, ["distance"])])
def test_a_shift_register_is_a_cause_where_no_pairs_of_rows_share_noise(pairs, left):
    where = Order("the file", np.arange(100))
    departures = [Departure("triples", where, 1, 2, log_wealth=30.0)]
    if pairs:
        departures.append(Departure("distance", where, 1, 1, log_wealth=20.0))
    found = [NoiseFinding(one, 1e-9, 1e-9, known=True) for one in departures]
    assert [one.departure.family for one in telling(found)] == left


def test_rows_repeated_after_the_noise_are_said_to_be_equal_in_all_columns():
    rng = np.random.default_rng(5)
    frame, truth = people(rng)
    released = np.where(rng.random(ROWS) < LOST, 1 - truth, truth)
    rows = rng.permutation(np.r_[np.arange(ROWS), np.arange(700)])
    frame = frame.iloc[rows].reset_index(drop=True)
    table = frame.assign(label=released[rows])
    result = audited(table, truth[rows], before=COLUMNS, **DECIDING)
    assert result.verdict != "fail"
    steps = " ".join(result.next_steps)
    assert "equal in all columns" in steps
    assert "If they are copies of rows, made after the noise" in steps
    assert "rows with equal values in" not in steps


@pytest.mark.parametrize("known", [True, False])
def test_the_rows_that_are_counted_are_those_with_the_fault(known):
    """Other values of the column have as many rows, or more."""
    frame, _ = people(np.random.default_rng(7))
    sizes = frame["site"].value_counts()
    assert sizes.max() > sizes[2]
    step = with_fault("site", known=known).next_steps[0]
    assert f"the {sizes[2]} rows with one value of column 'site'" in step
