"""Each output is read by itself, whatever else came in the same call."""

from typing import Any

import numpy as np
import pytest

from ldpaudit.commands.black_box.estimators.events import Goal, choose_events
from ldpaudit.commands.black_box.estimators.outputs import OutputForm, as_outputs, joined
from ldpaudit.errors import InputError


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
