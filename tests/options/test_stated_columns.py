"""``NAME:MECHANISM:KEY=VALUE:…``: read, written and refused."""

from pathlib import Path
from typing import Any

import pytest

from ldpaudit.errors import InputError
from ldpaudit.options import LabelOptions, check_distinct, label_options, parse_label

READ: dict[str, dict[str, Any]] = {
    "income": {},
    "a:rr": {"mechanism": "rr"},
    "a:rr:epsilon=1": {"mechanism": "rr", "epsilon": 1.0},
    "a:rr:lambda=0.3:classes=no,yes": {"mechanism": "rr", "noise": 0.3, "classes": "no,yes"},
    "b:discrete-laplace:epsilon=0.5:labels=0:100:5:clip": {
        "mechanism": "discrete-laplace",
        "epsilon": 0.5,
        "labels": "0:100:5",
        "clipped": True,
    },
    "b:channel:channel=C:\\m.csv:by=region": {
        "mechanism": "channel",
        "channel": Path("C:\\m.csv"),
        "by": "region",
    },
    "c:classes=x,y": {"classes": "x,y"},
    "d:rr-top-k:epsilon=1:private-prior=auto": {
        "mechanism": "rr-top-k",
        "epsilon": 1.0,
        "private_prior": "auto",
    },
}


@pytest.mark.parametrize("text", READ)
def test_what_is_read_is_written_so_that_it_is_read_again(text: str) -> None:
    read = parse_label(text)
    assert read.stated() == READ[text]
    assert parse_label(read.text()) == read


@pytest.mark.parametrize("name", ["a:b", '"quoted"', 'a"b', "ünï cödé", "a=b"])
def test_any_name_can_be_written(name: str) -> None:
    options = LabelOptions(label=name, mechanism="rr", epsilon=0.1, classes=("x,y", 'say "z"'))
    assert parse_label(options.text()).label == name
    assert parse_label(options.text()).classes == '"x,y","say ""z"""'


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("a:", "the mechanism must follow"),
        (":rr", "must have a name"),
        ('"a:rr', "must end with one"),
        ("a:rr:epsilonn=1", "did you mean 'epsilon'?"),
        ("a:rr:colour=1", "known are epsilon, lambda"),
        ("a:rr:epsilon=", "must have a value: epsilon=VALUE"),
        ("a:rr,epsilon=1", "each after a colon"),
        ("a:rr:1", "KEY=VALUE must follow"),
        ("a:rr:epsilon=one", "epsilon must be a number. Got 'one'."),
        ("a:rr:epsilon=1:epsilon=2", "stated twice"),
        ("a:rr:loss=cubic", "must be one of squared, absolute, poisson"),
        ("a:rr:clip=maybe", "must be yes or no"),
    ],
)
def test_what_cannot_be_read_says_so_in_one_line(text: str, part: str) -> None:
    with pytest.raises(InputError) as error:
        parse_label(text)
    assert part in str(error.value)
    assert "\n" not in str(error.value)


def test_a_plan_states_lists_and_numbers() -> None:
    stated = {"labels": [0, 100, 5], "classes": [0, 1], "epsilon": 1, "clip": True}
    read = label_options("b", stated, mechanism="rr")
    assert (read.labels, read.classes, read.epsilon) == ("0:100:5", (0, 1), 1.0)
    for wrong in ({"epsilon": True}, {"labels": 7}, {"by": 1}, {"epsilon": None}):
        with pytest.raises(InputError, match="'b'"):
            label_options("b", wrong)


def test_a_column_is_private_once() -> None:
    assert check_distinct(iter("ab")) == ("a", "b")
    with pytest.raises(InputError, match="'a' is named twice"):
        check_distinct("aba")
