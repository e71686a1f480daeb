"""Outputs of a randomizer: how they are read, each by itself, and what is too large or odd."""

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ldpaudit.commands.black_box.events import Goal, choose_events, fit_binning, fit_views
from ldpaudit.commands.black_box.outputs import OutputForm, as_outputs, joined
from ldpaudit.commands.black_box.work import audit_black_box
from ldpaudit.commands.requests import BlackBoxRequest
from ldpaudit.errors import InputError


@pytest.mark.parametrize(
    ("returned", "shape", "kind"),
    [
        (np.arange(3), (3, 1), "i"),
        (np.ones((3, 2, 2)), (3, 4), "f"),
        ([1, 2, 3], (3, 1), "i"),
        ((1.5, 2, 3), (3, 1), "f"),
        (["a", "b", "a"], (3, 1), "O"),
        (np.array(["a", "b", "a"]), (3, 1), "U"),
        ([(1, 2), (3, 4), (5, 6)], (3, 2), "i"),
        ([(1, [0, 1]), (3, [1, 1]), (5, [0, 0])], (3, 3), "i"),
        ([("x", 1), ("y", 2), ("z", 3)], (3, 2), "O"),
        ([{1, 2}, {3}, set()], (3, 1), "O"),
        ([[1], [2, 3], []], (3, 1), "O"),
        ([np.ones(4), np.ones(4), np.ones(4)], (3, 4), "f"),
        ([2**80, 1, 2], (3, 1), "O"),
        ([Fraction(1, 3)] * 3, (3, 1), "O"),
        (np.array([(1, 2.0)] * 3, dtype=[("a", "i4"), ("b", "f8")]), (3, 2), "f"),
        (np.array(["2020-01-01"] * 3, dtype="M8[D]"), (3, 1), "i"),
    ],
)
def test_what_can_be_read(returned: Any, shape: tuple[int, int], kind: str) -> None:
    table = as_outputs(returned, 3)
    assert table.shape == shape
    assert table.dtype.kind == kind


@pytest.mark.parametrize(
    ("returned", "words"),
    [
        (None, "got NoneType"),
        (3.0, "got float"),
        ("abc", "got str"),
        (iter([1, 2, 3]), "got list_iterator"),
        ([1, 2], "must return 3 outputs, as requested. Got 2"),
        (np.ones((2, 3)), "must return 3 outputs, as requested. Got 2"),
        (np.float64(3), "a single value"),
        ([{}, {}, {}], "got dict"),
        (np.ones(3, dtype=complex), "got complex128"),
        (np.empty((3, 0)), "at least one entry"),
    ],
)
def test_what_cannot(returned: Any, words: str) -> None:
    with pytest.raises(InputError, match=words):
        as_outputs(returned, 3)


def test_calls_must_agree() -> None:
    with pytest.raises(InputError, match="2 in one call and 3 in another"):
        joined([np.ones((4, 2)), np.ones((4, 3))])
    assert joined([np.ones((1, 1)), np.array([["a"]])]).tolist() == [[1.0], ["a"]]


def test_frequent_numbers_have_bins_of_their_own() -> None:
    rng = np.random.default_rng(1)
    column = np.where(rng.random(5000) < 0.3, 0.0, rng.normal(size=5000))
    binning = fit_binning(column)
    zero = int(binning.codes(np.zeros(1))[0])
    assert binning.describe(zero) == "= 0"
    codes = binning.codes(column)
    assert (codes == zero).sum() == (column == 0).sum()
    assert codes.max() < binning.bins
    assert np.all(codes > 0)
    assert "∞" in binning.describe(binning.bins - 1)


def test_unseen_values_have_bin_zero() -> None:
    assert fit_binning(np.array([1, 2, 2])).codes(np.array([3, 2])).tolist() == [0, 2]
    text = fit_binning(np.array(["a", "b", "b"], dtype=object))
    assert text.codes(np.array(["c", "b"], dtype=object)).tolist() == [0, 1]
    assert text.describe(0) == "any other"


def test_views_that_suit_the_outputs() -> None:
    rng = np.random.default_rng(1)

    def names(table: Any) -> list[str]:
        return [view.name for view in fit_views([table])]

    assert names(rng.normal(size=(500, 1))) == ["entries"]
    assert names(rng.normal(size=(500, 3))) == ["entries", "deviations"]
    assert names(rng.integers(0, 2, (500, 3))) == ["entries", "outputs"]
    assert names(rng.integers(0, 25, (5000, 7))) == ["entries", "items"]
    assert names(rng.integers(0, 2, (5000, 40))) == ["entries"]


def form_of(*calls: list[Any]) -> OutputForm:
    return OutputForm.of(joined([as_outputs(call, len(call)) for call in calls]))


@pytest.mark.parametrize(
    ("form", "alone", "odd", "kept"),
    [
        (form_of([0, 1, 1]), [0, 1], None, False),
        (form_of([0, 1, 1]), [0, 1], 0.5, False),
        (form_of([0, 1, 1]), [0, 1], 2.0, True),
        (form_of([0, 1, 1]), [0, 1], "a", False),
        (form_of([0, 1, 1]), [0, 1], 2**80, False),
        (form_of([0.5, 1.5]), [0.5, 1.0], float("nan"), True),
        (form_of([0, None]), [0, 1], None, True),
        (form_of([(0, 1), (1, 1)]), [(0, 1), (1, 0)], (1,), False),
        (form_of([(0, 1), (1,)]), [(0, 1), (1, 0)], (1,), True),
        (form_of([(0, 1), (1,)], [(0, 1), (1, 1)]), [(0, 1), (1, 0)], (), True),
        (form_of(["a", "b"]), ["a", "b"], "longer", True),
        (form_of([{1}, {2}]), [{1}, {2, 3}], set(), True),
    ],
)
def test_an_odd_output_changes_nothing_about_the_others(
    form: OutputForm, alone: list[Any], odd: Any, kept: bool
) -> None:
    by_themselves = form.read(alone, len(alone))
    with_it = form.read([*alone, odd], len(alone) + 1)
    assert with_it.dtype == by_themselves.dtype == form.dtype
    assert with_it[: len(alone)].tolist() == by_themselves.tolist()
    assert len(by_themselves) == len(alone)
    assert len(with_it) == len(alone) + kept


def test_text_of_any_length_is_found_again() -> None:
    form = OutputForm.of(np.array([["a"], ["bcd"]]))
    assert form.read(np.array(["a", "b"]), 2).tolist() == [["a"], ["b"]]


def test_arrays_of_another_width_are_refused() -> None:
    with pytest.raises(InputError, match="2 in one call and 3 in another"):
        OutputForm.of(np.ones((4, 2))).read(np.ones((4, 3)), 4)


def test_a_rare_none_costs_one_guess_and_no_more() -> None:
    rng = np.random.default_rng(0)
    tables = [as_outputs((rng.random(4000) < p).astype(int).tolist(), 4000) for p in (0.2, 0.5)]
    event = choose_events(tables, Goal(8000, 0.05), rng)[0].event
    form, call = OutputForm.of(tables[0]), (rng.random(2000) < 0.2).astype(int).tolist()
    plain = event.counts(form.read(call, 2000))
    assert sum(plain) > 0
    assert event.counts(form.read([*call, None], 2001)) == plain
    assert event.counts(form.read([None, None], 2)) == (0, 0)


@pytest.mark.parametrize(
    "outputs",
    [[2**63, 2**63 + 1, -1], [2**53, 2**53 + 1, 0.5], [(2**63, 1), (2**63 + 1, -1)]],
    ids=["beyond a word", "beside a fraction", "in tuples"],
)
def test_integers_that_differ_stay_different(outputs: list[Any]) -> None:
    """NumPy makes float64 of a list of such integers, and a client that leaks in them passed."""
    table = as_outputs(outputs, len(outputs))
    assert len({tuple(row) for row in table.tolist()}) == len(outputs)


def test_integers_of_two_calls_stay_different() -> None:
    kinds = (np.array([[2**63], [2**63 + 1]], np.uint64), np.array([[-1]]))
    assert len(set(joined(kinds)[:, 0].tolist())) == 3
    assert joined([np.array([[1]]), np.array([[0.5]])]).dtype == np.float64


def test_outputs_too_large_for_the_audit_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each call within its limit, those of many inputs took all memory."""
    code = "def wide(value, n, rng):\n    return rng.random((n, 50))\n"
    (tmp_path / "wide.py").write_text(code)
    monkeypatch.setattr("ldpaudit.commands.black_box.work._MOST_ENTRIES", 4_000)
    request = BlackBoxRequest("wide:wide", (0, 1), 400, path=(str(tmp_path),), processes=1)
    with pytest.raises(InputError, match="one takes 400 bytes, and 100 of each of 2 inputs"):
        audit_black_box(request)
