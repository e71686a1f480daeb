import math
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ldpaudit.result.numbers import (
    Direction,
    against,
    digits_apart,
    folds,
    number,
    percent,
    rounded,
    rows,
)

finite = st.floats(allow_nan=False, allow_infinity=False)
any_number = st.floats(allow_nan=False)
directions = st.sampled_from(("down", "nearest", "up"))


def read(text: str) -> Decimal:
    """Return the number that a printed text says."""
    plain = text.replace("−", "-").replace(",", "").replace("∞", "Infinity")
    return Decimal(plain)


@pytest.mark.parametrize(
    ("value", "direction", "text"),
    [
        (1.0004, "down", "1.000"),
        (1.0004, "up", "1.001"),
        (0.963, "down", "0.963"),
        (0.9999, "up", "1.000"),
        (1.0, "nearest", "1"),
        (0.05, "nearest", "0.05"),
        (0.05123, "nearest", "0.0512"),
        (48842.0, "nearest", "48,842"),
        (1_000_000.0, "nearest", "1,000,000"),
        (2.5e17, "nearest", "2.5e17"),
        (3.14159e-7, "nearest", "3.1e−7"),
        (-0.00090123, "down", "−0.00091"),
        (0.0, "down", "0"),
        (-0.0, "nearest", "0"),
        (math.inf, "down", "∞"),
        (-math.inf, "up", "−∞"),
    ],
)
def test_number_is_written_for_people(value: float, direction: Direction, text: str) -> None:
    assert number(value, direction) == text


@given(finite, st.integers(1, 20))
def test_lower_ends_round_down_and_upper_ends_up(value: float, digits: int) -> None:
    exact = Decimal(repr(value))
    down, up = rounded(value, "down", digits), rounded(value, "up", digits)
    assert down <= exact <= up
    assert down <= rounded(value, "nearest", digits) <= up


@given(finite, directions, st.integers(1, 20))
def test_printed_text_is_the_rounded_number(
    value: float, direction: Direction, digits: int
) -> None:
    assert read(number(value, direction, digits)) == rounded(value, direction, digits)


@given(any_number, any_number, directions)
def test_printed_pair_stands_in_the_order_of_the_numbers(
    observed: float, limit: float, direction: Direction
) -> None:
    left, right = (read(text) for text in against(observed, limit, direction))
    assert (left > right) == (observed > limit)
    assert (left < right) == (observed < limit)


@given(st.floats(0, 20), st.integers(-3, 3))
def test_neighbouring_floats_are_told_apart(limit: float, steps: int) -> None:
    observed = limit
    for _ in range(abs(steps)):
        observed = math.nextafter(observed, math.inf if steps > 0 else -math.inf)
    left, right = (read(text) for text in against(observed, limit))
    assert (left > right) == (observed > limit)
    assert (left < right) == (observed < limit)


@given(st.lists(st.tuples(any_number, directions), max_size=5), st.lists(any_number, max_size=4))
def test_digits_keep_every_order_to_every_reference(
    printed: list[tuple[float, Direction]], references: list[float]
) -> None:
    digits = digits_apart(printed, references)
    for value, direction in printed:
        for reference in references:
            left = rounded(value, direction, digits)
            right = rounded(reference, "nearest", digits)
            assert (left > right) == (value > reference)
            assert (left < right) == (value < reference)


def test_violation_is_not_hidden_by_rounding() -> None:
    assert against(1.0004, 1.0, "down") == ("1.0004", "1")
    assert against(0.99996, 1.0, "up") == ("0.99996", "1")
    assert against(5.2936, math.log(199), "down") == ("5.2936", "5.2933")


def test_few_digits_where_few_are_enough() -> None:
    assert against(1.9476, 1.0, "down") == ("1.947", "1")
    assert digits_apart([], [1.0]) == 3


@pytest.mark.parametrize(
    ("level", "text"),
    [
        (0.95, "95 %"),
        (0.975, "97.5 %"),
        (1 - 0.05 / 3, "98.3 %"),
        (1 - 5e-6, "99.9995 %"),
        (0.5, "50 %"),
    ],
)
def test_levels(level: float, text: str) -> None:
    assert percent(level) == text


@given(st.floats(0.5, 0.999999))
def test_printed_level_never_exceeds_the_level(level: float) -> None:
    assert Decimal(percent(level).removesuffix(" %")) / 100 <= Decimal(repr(level))


def test_rows_are_whole() -> None:
    assert rows(48842) == "48,842"
    assert rows(1210.2, "up") == "1,211"
    assert rows(1210.8, "down") == "1,210"
    assert rows(math.inf) == "∞"


@given(st.floats(0.01, 12), st.floats(-7, 0.5).map(lambda power: 10**power))
def test_odds_of_a_bound_are_never_printed_at_or_below_those_that_were_promised(limit, excess):
    bound, promised = (read(text.removesuffix("-fold")) for text in folds(limit + excess, limit))
    assert bound > promised


def test_odds_get_no_more_digits_than_it_takes():
    assert folds(2.9401, 1.0) == ("18.9-fold", "2.72-fold")
    assert folds(1.0004, 1.0) == ("2.719-fold", "2.718-fold")
    assert folds(800.0, 1.0) == ("without limit", "2.72-fold")
