"""Every id that was ever recorded is documented, and every documented id exists."""

import math
import re
from decimal import Decimal
from functools import cache
from pathlib import Path

import pytest
from golden.recording import HERE, load
from hypothesis import given
from hypothesis import strategies as st

from ldpaudit.result.dictionary import CURVES, ESTIMATES, HISTOGRAMS, PLACEHOLDERS, meaning
from ldpaudit.result.numbers import (
    against,
    at_least,
    digits_apart,
    folds,
    number,
    p_words,
    percent,
    rounded,
    rows,
)

finite = st.floats(allow_nan=False, allow_infinity=False)
any_number = st.floats(allow_nan=False)
directions = st.sampled_from(("down", "nearest", "up"))


def read(text):
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
def test_number_is_written_for_people(value, direction, text):
    assert number(value, direction) == text


@given(finite, st.integers(1, 20))
def test_lower_ends_round_down_and_upper_ends_up(value, digits):
    exact = Decimal(repr(value))
    down, up = rounded(value, "down", digits), rounded(value, "up", digits)
    assert down <= exact <= up
    assert down <= rounded(value, "nearest", digits) <= up


@given(finite, directions, st.integers(1, 20))
def test_printed_text_is_the_rounded_number(value, direction, digits):
    assert read(number(value, direction, digits)) == rounded(value, direction, digits)


@given(st.one_of(finite, st.floats(1e-4, 0.1)), directions, st.integers(1, 20))
def test_a_number_keeps_a_significant_digit(value, direction, digits):
    assert (rounded(value, direction, digits) == 0) == (value == 0)


@pytest.mark.parametrize(("seconds", "text"), [(0.004, "0.004"), (0.0012, "0.001"), (0.02, "0.02")])
def test_a_few_milliseconds_are_written_as_a_number(seconds, text):
    assert number(seconds, digits=1) == text


@given(any_number, any_number, directions)
def test_printed_pair_stands_in_the_order_of_the_numbers(observed, limit, direction):
    left, right = (read(text) for text in against(observed, limit, direction))
    assert (left > right, left < right) == (observed > limit, observed < limit)


@given(st.floats(0, 20), st.integers(-3, 3))
def test_neighbouring_floats_are_told_apart(limit, steps):
    observed = limit
    for _ in range(abs(steps)):
        observed = math.nextafter(observed, math.inf if steps > 0 else -math.inf)
    left, right = (read(text) for text in against(observed, limit))
    assert (left > right, left < right) == (observed > limit, observed < limit)


@given(st.lists(st.tuples(any_number, directions), max_size=5), st.lists(any_number, max_size=4))
def test_digits_keep_every_order_to_every_reference(printed, references):
    digits = digits_apart(printed, references)
    for value, direction in printed:
        for reference in references:
            left = rounded(value, direction, digits)
            right = rounded(reference, "nearest", digits)
            assert (left > right, left < right) == (value > reference, value < reference)


def test_violation_is_not_hidden_by_rounding():
    assert against(1.0004, 1.0, "down") == ("1.0004", "1")
    assert against(0.99996, 1.0, "up") == ("0.99996", "1")
    assert against(5.2936, math.log(199), "down") == ("5.2936", "5.2933")


def test_few_digits_where_few_are_enough():
    assert (against(1.9476, 1.0, "down"), digits_apart([], [1.0])) == (("1.947", "1"), 3)


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
def test_levels(level, text):
    assert percent(level) == text


@given(st.floats(0.5, 0.999999))
def test_printed_level_never_exceeds_the_level(level):
    assert Decimal(percent(level).removesuffix(" %")) / 100 <= Decimal(repr(level))


def test_rows_are_whole():
    assert (rows(48842), rows(1210.2, "up"), rows(1210.8, "down")) == ("48,842", "1,211", "1,210")
    assert rows(math.inf) == "∞"


@given(st.floats(0.01, 12), st.floats(-7, 0.5).map(lambda power: 10**power))
def test_odds_of_a_bound_are_never_printed_at_or_below_those_that_were_promised(limit, excess):
    bound, promised = (read(text.removesuffix("-fold")) for text in folds(limit + excess, limit))
    assert bound > promised


def test_odds_get_no_more_digits_than_it_takes():
    assert folds(2.9401, 1.0) == ("18.9-fold", "2.72-fold")
    assert folds(1.0004, 1.0) == ("2.719-fold", "2.718-fold")
    assert folds(800.0, 1.0) == ("without limit", "2.72-fold")


ROOT = Path(__file__).parents[2]
KINDS = {"estimates": ESTIMATES, "curves": CURVES, "histograms": HISTOGRAMS}


def numbers(content):
    """Yield kind and id of every number in what was recorded."""
    if isinstance(content, dict):
        for kind in KINDS:
            listed = content.get(kind)
            for one in listed if isinstance(listed, list) else ():
                if isinstance(one, dict) and "id" in one and "section" in one:
                    yield kind, one["id"]
        content = list(content.values())
    if isinstance(content, list):
        for part in content:
            yield from numbers(part)


@cache
def recorded():
    names = [path.stem for path in HERE.glob("*.json") if not path.stem.startswith("_")]
    return {found for name in names for found in numbers(load(name))}


def pattern(documented):
    return re.sub(r"<\w+>", "[a-z0-9_-]+", re.escape(documented))


def test_every_recorded_id_is_documented():
    assert len(recorded()) > 200
    for kind, identifier in recorded():
        assert meaning(identifier), identifier
        assert any(re.fullmatch(pattern(one), identifier) for one in KINDS[kind]), identifier


@cache
def source():
    places = ("ldpaudit", "attacks")
    files = [file for place in places for file in (ROOT / place).rglob("*.py")]
    return "\n".join(f.read_text(encoding="utf-8") for f in files if f.name != "dictionary.py")


FROM_PARTS = {"renyi.release.dp_at_delta", "renyi.release.attack_bound"}
FROM_PARTS |= {"person.epsilon_lower.<method>"}
FROM_PARTS |= {f"person.{kind}_noise" for kind in ("fresh", "remembered", "reused")}
FROM_PARTS |= {
    f"person.{what}_if_{kind}"
    for what in ("epsilon", "least_changed")
    for kind in ("fresh", "remembered")
} | {"person.people", "person.people_in_all", "person.unchanged"}
"""Not recorded, and put together from a name and an ending."""


@pytest.mark.skipif(
    not (ROOT / "ldpaudit" / "extras").is_dir(), reason="some ids are those of the extras"
)
@pytest.mark.parametrize("kind", KINDS)
def test_every_documented_id_exists(kind):
    seen = {identifier for found, identifier in recorded() if found == kind}
    for documented in KINDS[kind]:
        matched = any(re.fullmatch(pattern(documented), one) for one in seen)
        assert matched or f'"{documented}"' in source() or documented in FROM_PARTS, documented


def test_every_placeholder_is_explained():
    used = set(re.findall(r"<(\w+)>", " ".join(ESTIMATES)))
    assert used == set(PLACEHOLDERS)


def test_an_id_of_another_package_has_no_meaning():
    assert meaning("plug-in.share") is None
    assert meaning("attack.best.class-2.accuracy") == ESTIMATES["attack.best.<group>.<measure>"]


@pytest.mark.parametrize(
    ("share", "words"),
    [
        (0.1999, "at least 19 %"),
        (0.0123, "at least 1.2 %"),
        (0.9999, "at least 99 %"),
        (0.29, "at least 29 %"),
        (1.0, "all"),
        (0.0, "at least 0 %"),
    ],
)
def test_a_share_that_is_a_lower_bound_is_rounded_down(share, words):
    assert at_least(share) == words


@pytest.mark.parametrize(
    ("p_value", "words"),
    [(0.03121, "p = 0.0313"), (1e-76, "p below 1e−12"), (0.0, "p below 1e−12"), (2e-9, "p = 2e−9")],
)
def test_a_p_value_is_said_by_its_size(p_value, words):
    assert p_words(p_value) == words
