"""Channels as people write them: matrices with names or without, R's tables, lists."""

from pathlib import Path

import pytest

from ldpaudit.datasets.probabilities import channel_table, column_channels, only_channels
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


NORTH, SOUTH = [[0.75, 0.25], [0.5, 0.5]], [[0.9, 0.1], [0.2, 0.8]]
TRANSITIONS = (
    "roof,north,2,2,0.75\nroof,north,2,4,0.25\nroof,north,4,2,0.5\nroof,north,4,4,0.5\n"
    "roof,south,2,2,0.9\nroof,south,2,4,0.1\nroof,south,4,2,0.2\nroof,south,4,4,0.8\n"
)
STRATA = {
    "blocks with a column of strata": (
        "region,label,2,4\nnorth,2,0.75,0.25\nnorth,4,0.5,0.5\nsouth,2,0.9,0.1\nsouth,4,0.2,0.8\n",
        None,
    ),
    "transitions": (f"variable,region,from,to,probability\n{TRANSITIONS}", "roof"),
    "transitions as R calls them": (f"variable,region,Var1,Var2,Freq\n{TRANSITIONS}", "roof"),
    "sdcMicro's parameters, bound by R": (
        '"","variable","region","Rs.2","Rs.4","pd","alpha"\n'
        '"2","roof","north",0.75,0.25,0.8,0.5\n"4","roof","north",0.5,0.5,0.8,0.5\n'
        '"21","roof","south",0.9,0.1,0.8,0.5\n"41","roof","south",0.2,0.8,0.8,0.5\n',
        "roof",
    ),
    "the same, bound by names": (
        '"","roof.Rs.2","roof.Rs.4","roof.pd","region"\n'
        '"2",0.75,0.25,0.8,"north"\n"4",0.5,0.5,0.8,"north"\n'
        '"21",0.9,0.1,0.8,"south"\n"41",0.2,0.8,0.8,"south"\n',
        "roof",
    ),
}


def written(folder: Path, content: str) -> Path:
    (folder / "c.csv").write_text(content)
    return folder / "c.csv"


@pytest.mark.parametrize("case", STRATA)
def test_strata(case: str, tmp_path: Path) -> None:
    content, variable = STRATA[case]
    (found,) = column_channels(written(tmp_path, content), "region")
    assert (found.variable, found.by) == (variable, "region")
    assert {key: table.matrix for key, table in found.tables.items()} == {
        "north": NORTH,
        "south": SOUTH,
    }
    mechanism = found.mechanism()
    assert mechanism["name"] == "by-stratum"
    assert [one["value"] for one in mechanism["strata"]] == ["north", "south"]
    assert mechanism["strata"][1]["mechanism"]["classes"] == [2, 4]


VARIABLES = {
    "sdcMicro, all parameters": (
        '"","roof.Rs.2","roof.Rs.4","roof.pd","roof.alpha","walls.Rs.X1.2","walls.Rs.y","walls.pd"\n'
        '"2",0.75,0.25,0.8,0.5,0.9,0.1,0.8\n"4",0.5,0.5,0.8,0.5,0.2,0.8,0.8\n'
    ),
    "different numbers of labels": (
        "variable,label,2,4,X1.2,y,z\nroof,2,0.75,0.25,NA,NA,NA\nroof,4,0.5,0.5,NA,NA,NA\n"
        "walls,X1.2,,,0.9,0.1,\nwalls,y,,,0.2,0.8,\n"
    ),
    "transitions": (
        "variable,from,to,probability\nroof,2,2,0.75\nroof,2,4,0.25\nroof,4,2,0.5\nroof,4,4,0.5\n"
        "walls,X1.2,X1.2,0.9\nwalls,X1.2,y,0.1\nwalls,y,X1.2,0.2\nwalls,y,y,0.8\n"
    ),
}


@pytest.mark.parametrize("case", VARIABLES)
def test_variables(case: str, tmp_path: Path) -> None:
    path = written(tmp_path, VARIABLES[case])
    roof, walls = column_channels(path)
    assert (roof.variable, walls.variable) == ("roof", "walls")
    assert roof.mechanism() == {
        **{"name": "channel", "classes": [2, 4], "outputs": [2, 4]},
        "matrix": NORTH,
    }
    assert walls.mechanism()["classes"] == ["X1.2", "y"]
    assert only_channels([roof, walls], "walls_pram") is walls
    with pytest.raises(InputError, match="none of the column 'x'"):
        only_channels([roof, walls], "x")


def test_one_channel_is_for_any_column(tmp_path: Path) -> None:
    (found,) = column_channels(written(tmp_path, "label,a,b\na,0.75,0.25\nb,0.5,0.5\n"))
    assert only_channels([found], "any") is found
    assert found.mechanism()["matrix"] == NORTH


@pytest.mark.parametrize(
    ("content", "by", "message"),
    [
        (
            "label,a,b\na,1,0\nb,0,1\n",
            "regio",
            "no strata .--by. column 'regio'",
        ),
        ("from,to,probability\na,a,1\na,b,0\nb,b,1\n", None, "each pair of labels once: 2 × 2"),
        ("variable,r,s,from,to,freq\nx,1,1,a,a,1\n", None, "2 columns that may tell strata"),
        ("region,a,b\nn,0.75,0.5\nn,0.5,0.5\n", "region", "put their names|sum to 1"),
        ("region,label,a,b\nn,a,1\n", "region", "rectangular"),
        ("region,label,a,b\nn,a,1,0\ns,b,0,1\n", "region", "2 to 1000 labels"),
        ("label" + ",a" * 125_001 + "\na,1" * 8 + "\n", None, "at most 1,000,000 probabilities"),
    ],
)
def test_tables_that_cannot_be_read(
    content: str, by: str | None, message: str, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=message):
        column_channels(written(tmp_path, content), by)
