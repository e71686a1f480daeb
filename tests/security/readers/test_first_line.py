"""A first line that holds a row is not taken for names; names of any kind are."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from ldpaudit.datasets.formats import open_table
from ldpaudit.datasets.names import check_header
from ldpaudit.errors import InputError
from ldpaudit.options import FileOptions

ROWS = [
    [
        f"{17 * i % 53 + 18}",
        f"{i * 911 % 4000 / 8}",
        "mf"[i % 2],
        f"name{i}",
        ["yes", "no"][i % 3 > 0],
    ]
    for i in range(60)
]
NAMES = ["age", "pay", "sex", "name", "ill"]


def _file(path: Path, rows: Sequence[Sequence[str]], separator: str) -> str:
    if path.suffix == ".xlsx":
        book = pytest.importorskip("openpyxl").Workbook()
        for row in rows:
            book.active.append([float(c) if c[0].isdigit() else c for c in row])
        book.save(path)
    else:
        path.write_text("\n".join(separator.join(row) for row in rows), "utf-8")
    return str(path)


@pytest.mark.parametrize(
    ("name", "separator"), [("a.csv", ","), ("a.csv", ";"), ("a.tsv", "\t"), ("a.xlsx", "")]
)
def test_a_file_without_names_is_refused_unless_said(
    tmp_path: Path, name: str, separator: str
) -> None:
    path = _file(tmp_path / name, ROWS, separator)
    with pytest.raises(InputError, match="looks like a row of the table") as refused:
        open_table(path)
    assert not any(cell in str(refused.value).split() for cell in ROWS[0])
    assert len(open_table(path, FileOptions(header=True)).names) == 5
    named = _file(tmp_path / f"named-{name}", [NAMES, *ROWS], separator)
    assert open_table(named).names == tuple(NAMES)


def test_a_decimal_comma_hides_no_row(tmp_path: Path) -> None:
    rows = [[row[0], f"{row[1]}1".replace(".", ","), *row[2:]] for row in ROWS]
    with pytest.raises(InputError, match="looks like a row"):
        open_table(_file(tmp_path / "a.csv", rows, ";"), FileOptions(separator=";"))


@pytest.mark.parametrize(
    ("names", "values"),
    [
        (["0"], ["0", "1"]),
        ([str(i) for i in range(65)], ["0", "1", "7"]),
        (["label", *map(str, range(1, 30))], ["1", "9", "25"]),
        (["place", "1990", "2000", "2010"], ["1500", "2100", "900"]),
        (["2021", "2020", "2019", "where"], ["1500", "2100", "900"]),
        (["spam", "length", "caps"], ["spam", "ham"]),
        (["7157", "672", "1956"], ["0", "3", "11"]),
        (["", "label"], ["3", "4"]),
        (["a", "b"], []),
    ],
)
def test_names_of_any_kind_are_names(names: list[str], values: list[str]) -> None:
    check_header(names, [values * 5] * len(names), "a.csv")


def test_a_repeated_cell_is_no_other_fault(tmp_path: Path) -> None:
    rows = [[row[2], row[4], row[4]] for row in ROWS]
    with pytest.raises(InputError, match="looks like a row"):
        open_table(_file(tmp_path / "a.csv", rows, ","))
