"""Bad tables at random never end in an internal fault; many more in :mod:`bad_tables` itself."""

from pathlib import Path

import numpy as np
import pytest
from security.readers import bad_tables, fronts


def test_some_bad_tables(tmp_path: Path) -> None:
    for number in range(6):
        folder = tmp_path / str(number)
        folder.mkdir()
        words = bad_tables.case(number, 0, folder)
        status, text = fronts.here(words, folder)
        assert not fronts.Outcome(status, text, 0.0, 0).faulty, (number, words, text)


@pytest.mark.parametrize("number", [57])
def test_a_table_that_once_was_a_fault(number: int, tmp_path: Path) -> None:
    words = bad_tables.case(number, 20261122, tmp_path)  # A column of lists without any value.
    status, text = fronts.here(words, tmp_path)
    assert "fault" not in text, (status, text)


def test_a_fault_is_seen() -> None:
    for status, text in (
        (2, "Internal fault (KeyError)"),
        (-11, ""),
        (2, "two\nlines"),
        (1, "a Warning: b"),
    ):
        assert fronts.Outcome(status, text, 0.0, 0).faulty
    assert not fronts.Outcome(2, "ldpaudit: reading the labels …\nldpaudit: No.", 0.0, 0).faulty


def test_a_case_is_the_same_each_time(tmp_path: Path) -> None:
    made = []
    for name in "ab":
        folder = tmp_path / name
        folder.mkdir()
        words = bad_tables.case(7, 3, folder)
        made.append((words, sorted(p.name for p in folder.iterdir())))
    assert made[0] == made[1]
    assert bad_tables.damaged(b"", np.random.default_rng(0))


@pytest.mark.validate
def test_many_bad_tables() -> None:
    assert bad_tables.main(["1000", "--seed", "20261122"]) == 0
