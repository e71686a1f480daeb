import pytest
from hypothesis import given
from hypothesis import strategies as st

from ldpaudit.datasets.names import Header, check_unique, header_of, missing_column
from ldpaudit.errors import InputError, did_you_mean, nearest, quoted


@given(st.text())
def test_a_quoted_name_is_short_printable_and_one_line(name: str) -> None:
    shown = quoted(name)
    assert shown.isprintable()
    assert len(shown) <= 63
    assert len(shown.splitlines()) == 1


def test_marks_that_turn_the_writing_around_are_escaped() -> None:
    assert quoted("pay\u202egnol\n") == r"'pay\u202egnol\n'"
    assert quoted("<script>") == "'<script>'"
    assert quoted("x" * 10_000) == f"'{'x' * 60}…'"


def test_the_nearest_name() -> None:
    assert nearest("incme", ["age", "income", "label"]) == "income"
    assert nearest("Income", ["age", "income"]) == "income"
    assert nearest("q" * 20_000, ["w" * 20_000]) is None
    assert nearest("label", []) is None


def test_the_end_of_a_sentence() -> None:
    assert did_you_mean("Laplce", ["laplace", "staircase"]) == "; did you mean 'laplace'?"
    assert did_you_mean("gauss", ["laplace"]) == "."
    assert did_you_mean("gauss", ["laplace"], "; only one.") == "; only one."


def test_a_missing_column() -> None:
    close = str(missing_column("labell", "label", ["label", "x"]))
    assert close.endswith(
        "column 'labell' among the 2 columns; the name of column 1 is most like it."
    )
    case = str(missing_column("Label", "label", ["x", "label"]))
    assert case.endswith("the name of column 2 differs only in case.")
    assert str(missing_column("q", "id", ["label"])).endswith("among the 1 column.")

    named = str(missing_column("Label", "label", Header(("x", "label"))))
    assert named.endswith("among the 2 columns; did you mean 'label'?")


COLUMNS = [["41", "7", "30"], ["1,5", "", "2,5"], ["Oslo", "Bergen", "Oslo"]]
"""Cells of two columns of numbers and one of texts."""
HEADERS = {
    ("age", "bmi", "town"): True,
    ("age", "bmi", ""): True,
    ("age", "", "town"): False,  # One name over numbers may be a word for a missing number.
    ("age", "unknown", "town"): False,
    ("keine", "keine", "Oslo"): False,
    ("-", "*", "town"): False,
    ("age", "3", "town"): False,
    ("age", "bmi", "Oslo"): False,
}
"""Whether first rows are names for certain."""


@pytest.mark.parametrize("names", HEADERS)
def test_names_that_are_no_row_for_certain(names: tuple[str, ...]) -> None:
    found = header_of(names, COLUMNS, "t.csv")
    assert found == names
    assert isinstance(found, Header) is HEADERS[names]


def test_the_first_row_of_a_file_without_names_is_not_told() -> None:
    said = str(missing_column("Oslo", "label", ["41", "Osl", "1,5"]))
    assert said.endswith("among the 3 columns; does the file's first line name its columns?")


def test_repeated_names_are_counted_but_not_told() -> None:
    check_unique(["a", "b"])
    with pytest.raises(InputError, match=r"repeated: 1 of 3") as caught:
        check_unique(["Smith", "Smith", "b"])
    assert "Smith" not in str(caught.value)
