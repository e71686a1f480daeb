"""Mutants change one thing that is calculated, and nothing else."""

import ast

import pytest

from mutation.points import changes

SOURCE = '''"""A docstring with 1 + 1."""
from typing import Final
MOST: Final = 3
__all__ = ["MOST"]
Label = int | str


@decorated(size=4)
def f(x: tuple[int, ...], low: float = 0.5) -> int | None:
    """Return 2 + 2."""
    if x and not low <= 7:
        raise ValueError(f"{x + 1} is " + "wrong")
    check(x, low)
    return max(x[0], -low) * math.log(low)


def __repr__(self):
    return 1 + self.n
'''
EXPECTED = [
    (False, "3 → 4"),
    (False, "3 → 2"),
    (False, "0.5 → 1.0"),
    (True, "x and (not low <= 7) → x or not low <= 7"),
    (True, "not low <= 7 → low <= 7"),
    (True, "low <= 7 → low < 7"),
    (True, "low <= 7 → low > 7"),
    (True, "7 → 8"),
    (True, "7 → 6"),
    (True, "check(x, low) → pass"),
    (True, "check(x, low) → check(low, x)"),
    (True, "return max(x[0], -low) * math.log(low) → return None"),
    (True, "max(x[0], -low) * math.log(low) → max(x[0], -low) / math.log(low)"),
    (True, "max(x[0], -low) → min(x[0], -low)"),
    (True, "max(x[0], -low) → max(-low, x[0])"),
    (True, "0 → 1"),
    (True, "0 → -1"),
    (True, "-low → low"),
    (True, "math.log(low) → math.log1p(low)"),
    (True, "math.log(low) → low"),
]


def test_what_is_calculated_is_changed_and_words_are_not() -> None:
    found = [(c.inside, f"{c.before} → {c.after}") for c in changes(ast.parse(SOURCE))]
    assert [text for _, text in found] == [text for _, text in EXPECTED]
    assert found == EXPECTED


@pytest.mark.parametrize("number", range(len(EXPECTED)))
def test_a_mutant_differs_in_one_place(number: int) -> None:
    before = ast.unparse(ast.parse(SOURCE)).splitlines()
    tree = ast.parse(SOURCE)
    list(changes(tree))[number].apply()
    after = ast.unparse(ast.fix_missing_locations(tree)).splitlines()
    assert sum(a != b for a, b in zip(before, after, strict=True)) == 1
