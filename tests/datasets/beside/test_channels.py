"""Channel matrices as people write them: with names or without, R's tables, transposed ones."""

from pathlib import Path

import pytest

from ldpaudit.datasets.beside.channels import channel_table
from ldpaudit.errors import InputError

MATRIX = [[0.75, 0.25], [0.5, 0.5]]
AB = ["a", "b"]

LAYOUTS = {
    "labels in the first column": ("label,a,b\na,0.75,0.25\nb,0.5,0.5\n", AB, AB),
    "no labels": ("a,b\n0.75,0.25\n0.5,0.5\n", AB, AB),
    "nothing but numbers": ("0.75,0.25\n0.5,0.5\n", ["0", "1"], ["0", "1"]),
    "numbers for labels": ("label,0,1\n0,0.75,0.25\n1,0.5,0.5\n", ["0", "1"], ["0", "1"]),
    "numbers for labels in the header alone": ("0,1\n0.75,0.25\n0.5,0.5\n", ["0", "1"], ["0", "1"]),
    "R, write.csv": ('"","a","b"\n"a",0.75,0.25\n"b",0.5,0.5\n', AB, AB),
    "R, write.csv2": ('"";"a";"b"\n"a";0,75;0,25\n"b";0,5;0,5\n', AB, AB),
    "R, write.table": ('"a","b"\n"a",0.75,0.25\n"b",0.5,0.5\n', AB, AB),
    "sdcMicro, one variable": (
        '"","Rs.a","Rs.b","pd","alpha"\n"a",0.75,0.25,0.8,0.5\n"b",0.5,0.5,0.8,0.5\n',
        *(AB, AB),
    ),
    "sdcMicro, all parameters": (
        '"","roof.Rs.X1.2","roof.Rs..50K","roof.pd","roof.alpha"\n'
        '"1-2",0.75,0.25,0.8,0.5\n"<50K",0.5,0.5,0.8,0.5\n',
        ["1-2", "<50K"],
        ["1-2", "<50K"],
    ),
    "sdcMicro, no row names": (
        '"Rs.a","Rs.b","pd"\n0.75,0.25,0.8\n0.5,0.5,0.8\n',
        *(AB, AB),
    ),
}


@pytest.mark.parametrize("case", LAYOUTS)
def test_layouts(case: str, tmp_path: Path) -> None:
    content, classes, outputs = LAYOUTS[case]
    (tmp_path / "c.csv").write_text(content)
    found = channel_table(tmp_path / "c.csv")
    assert (found.classes, found.outputs, found.matrix) == (classes, outputs, MATRIX)


@pytest.mark.parametrize(
    ("content", "word"),
    [
        ("label,a,b\nx,0.75,0.5\ny,0.25,0.5\n", "transpose"),
        ("a,b\n0.75,0.5\n0.25,0.5\n", "transpose"),
        ("a,b,c\n0.5,0.25,0.25\n0.5,0.25,0.25\n", "no column names its 2 labels"),
        ("label,a,b\n1,0.75,0.5\n2,0.5,0.5\n", "neither over all columns nor"),
        (
            ",x.Rs.a,x.Rs.b,y.Rs.a,y.Rs.b\na,0.75,0.25,1,0\nb,0.5,0.5,0,1\n",
            "transitions of several variables",
        ),
        (",Rs.a,Rs.b,Rs.c\na,0.75,0.25,0\nb,0.5,0.5,0\n", "square"),
    ],
)
def test_errors_blame_the_right_thing(content: str, word: str, tmp_path: Path) -> None:
    (tmp_path / "c.csv").write_text(content)
    with pytest.raises(InputError, match=word):
        channel_table(tmp_path / "c.csv")


def test_the_reading_taken_is_said(tmp_path: Path) -> None:
    for content, said in (("a,b\n1,0\n0,1\n", "no column of labels"), ("1,0\n0,1\n", "no names")):
        (tmp_path / "c.csv").write_text(content)
        assert said in channel_table(tmp_path / "c.csv").remark
