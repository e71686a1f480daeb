"""A verdict's sentence is joined of parts, and gives them back."""

from dataclasses import replace
from itertools import product

import pytest

from ldpaudit.result.sentence import Sentence

WHOLE = Sentence(
    "No violation found: nothing contradicts the claimed ε = 1",
    bound="certified: at least ε = 0.8",
    power="this audit would have noticed, with 90 % probability, a true ε above 1.1",
    warning="rows are alike. Some may be one person's",
    where="in column a",
)


@pytest.mark.parametrize("kept", list(product([True, False], repeat=4)))
def test_the_parts_of_a_sentence_are_read_from_it(kept: tuple[bool, ...]) -> None:
    names = ("bound", "power", "warning", "where")
    given = {name: "" for name, keep in zip(names, kept, strict=True) if not keep}
    if "warning" in given:
        given["where"] = ""
    said = replace(WHOLE, **given)
    assert Sentence.read(str(said)) == replace(said, verdict=f"{said.verdict}.")


def test_every_part_stands_in_the_sentence_in_its_place() -> None:
    said = replace(
        WHOLE, more="and so on", further="So it is.", waived="waived until then: it fails"
    )
    assert str(said) == (
        "No violation found: nothing contradicts the claimed ε = 1 (certified: at least ε = 0.8); "
        "this audit would have noticed, with 90 % probability, a true ε above 1.1; and so on. "
        "So it is. Warning in column a: rows are alike. Some may be one person's. "
        "A violation is waived until then: it fails."
    )
    read = Sentence.read(str(replace(said, more="", further="")))
    assert (read.power, read.warning) == (WHOLE.power, WHOLE.warning)
    assert read.verdict.endswith("ε = 1. A violation is waived until then: it fails.")


def test_an_audit_without_power_says_so() -> None:
    power = "but this audit would have noticed no excess, however large"
    assert Sentence.read(str(replace(WHOLE, power=power))).power == power
