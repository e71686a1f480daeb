"""Channels as people write them: matrices with names or without, R's tables, lists."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ldpaudit
from ldpaudit.datasets import declare, parse_declaration, read_channel
from ldpaudit.datasets.declaration import agreed
from ldpaudit.datasets.probabilities import channel_table, column_channels, only_channels
from ldpaudit.errors import InputError
from ldpaudit.release import Declaration

GOOD = {
    "version": 1,
    "label": "income",
    "mechanism": {"name": "randomized-response", "classes": ["<=50K", ">50K"], "lambda": 0.3},
}


def test_the_declaration_of_the_contract():
    found = parse_declaration(json.dumps(GOOD).encode())
    assert found.label == "income"
    assert found.mechanism == Declaration(
        "randomized-response", {"classes": ["<=50K", ">50K"], "lambda": 0.3}, "file"
    )


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "valid JSON"),
        ("\xff", "valid JSON"),
        ("[" * 100_000, "at most 64 lists"),
        ("[" * 65 + "]" * 65, "at most 64 lists"),
        ('{"version": 1e400}', "valid JSON"),
        ('{"version": ' + "1" * 301 + "}", "valid JSON"),
        ("[1]", "JSON object"),
        ("{}", "version 1"),
        ('{"version": 1, "version": 1}', "valid JSON"),
        (json.dumps({**GOOD, "version": 3}), "version 1 or 2"),
        (json.dumps({**GOOD, "version": True}), "version 1"),
        (json.dumps({**GOOD, "sekret": 1}), "0 missing, 1 unknown"),
        (json.dumps({"version": 1, "label": "x"}), "1 missing, 0 unknown"),
        (json.dumps({**GOOD, "label": 3}), "column's name"),
        (json.dumps({**GOOD, "mechanism": "rr"}), "object with a 'name'"),
        (json.dumps({**GOOD, "mechanism": {"name": 3}}), "object with a 'name'"),
        (json.dumps({**GOOD, "mechanism": {"name": "a", "lambda": float("nan")}}), "valid JSON"),
    ],
)
def test_bad_declarations(content, message):
    with pytest.raises(InputError, match=message) as caught:
        parse_declaration(content.encode("latin-1"))
    assert "sekret" not in str(caught.value)


JSON_LABELS = st.one_of(st.text(), st.integers(), st.booleans(), st.floats(-1e9, 1e9))


@given(st.lists(JSON_LABELS, min_size=2, max_size=5), st.floats(0, 1), st.text(min_size=1))
def test_round_trip(classes, noise, label):
    table = pa.table({label: ["a", "b"]})
    claim = Declaration("randomized-response", {"classes": classes, "lambda": noise})
    declared = declare(table, claim, label)
    found = parse_declaration(declared.schema.metadata[b"ldpaudit"])
    assert (found.label, found.mechanism) == (label, claim)


def test_a_declaration_survives_parquet_and_keeps_other_metadata(tmp_path):
    table = pa.table({"y": [1, 0]}).replace_schema_metadata({"made by": "us"})
    matrix = np.array([[0.75, 0.25], [0.25, 0.75]])
    claim = Declaration("channel", {"classes": np.array([0, 1]), "matrix": matrix})
    pq.write_table(declare(table, claim, "y"), tmp_path / "r.parquet")
    metadata = pq.read_schema(tmp_path / "r.parquet").metadata
    assert metadata[b"made by"] == b"us"
    found = parse_declaration(metadata[b"ldpaudit"]).mechanism
    assert found.parameters == {"classes": [0, 1], "matrix": matrix.tolist()}


def test_what_cannot_be_declared():
    table = pa.table({"label": [1]})
    with pytest.raises(InputError, match="the name of column 1 is most like it"):
        declare(table, Declaration("unknown"), "labl")
    for value in (float("inf"), object()):
        with pytest.raises(InputError, match="finite numbers"):
            declare(table, Declaration("laplace", {"epsilon": value}), "label")


def test_one_claim_or_two_that_agree():
    of_file = Declaration("randomized-response", {"classes": [1, 2], "lambda": 0.3})
    assert agreed(of_file, None) is of_file
    assert agreed(None, of_file) is of_file
    assert agreed(None, None) is None
    given_too = Declaration("randomized-response", {"classes": ["1", "2"], "epsilon": 1.0}, "api")
    both = agreed(of_file, given_too)
    assert both.parameters == {"classes": [1, 2], "lambda": 0.3, "epsilon": 1.0}
    assert both.source == "file"
    nearly = Declaration("randomized-response", {"lambda": 0.3000001}, "options")
    assert agreed(of_file, nearly).parameters["lambda"] == 0.3


def test_parts_that_add_up_but_for_a_little_are_read():
    parts = {"prior": 0.5, "labels": 0.5, "total": 1 + 1e-7}
    content = GOOD | {"provenance": {"epsilon": parts}}
    assert parse_declaration(json.dumps(content).encode()).provenance == {"epsilon": parts}


@pytest.mark.parametrize(
    ("name", "parameters", "what"),
    [
        ("unknown", {}, "one mechanism and"),
        ("randomized-response", {"lambda": 0.31}, "λ = 0.3, and the options say λ = 0.31"),
        ("randomized-response", {"classes": [2, 1]}, "parameters"),
        ("randomized-response", {"classes": [1, 2, 3]}, "parameters"),
        ("randomized-response", {"lambda": [0.3]}, "parameters"),
    ],
)
def test_two_claims_that_differ(name, parameters, what):
    of_file = Declaration("randomized-response", {"classes": [1, 2], "lambda": 0.3})
    with pytest.raises(InputError, match=what):
        agreed(of_file, Declaration(name, parameters, "options"))


def test_a_channel_file(tmp_path):
    path = tmp_path / "channel.csv"
    path.write_text('label,low,"a ""b"", c"\n1,0.75,0.25\n\ntwo,0.5,5e-1\n', encoding="utf-8-sig")
    assert read_channel(path) == {
        "classes": ["1", "two"],
        "outputs": ["low", 'a "b", c'],
        "matrix": [[0.75, 0.25], [0.5, 0.5]],
    }


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "is empty"),
        ("label,a,b\n", "2 to 1000 labels"),
        ("label,a,b\n1,1,0\n", "Got 1"),
        ("label,a,b\n1,1,0\n2,0\n", "row 2 has 2"),
        ("a,b\n1,1,0\n2,0\n", "rectangular"),
        ("label,a,b\n1,1,0\n2,zzz,1\n", "Row 2 of the channel must hold numbers"),
        ("label,a,b\n1,1,0\n2,,1\n", "must hold numbers"),
        ("label,a,a\n1,1,0\n2,0,1\n", "a name of its own"),
        ('label,a,b\n1,"1,0\n2,0,1\n', "readable CSV"),
        ("label,a,b\n" + "1,1,0\n" * 1001, "Got 1001"),
    ],
)
def test_bad_channel_files(content, message, tmp_path):
    path = tmp_path / "channel.csv"
    path.write_text(content)
    with pytest.raises(InputError, match=message) as caught:
        read_channel(path)
    assert "zzz" not in str(caught.value)


def test_a_channel_must_be_one_csv_file(tmp_path):
    path = tmp_path / "channel.parquet"
    path.write_text("label,a,b\n")
    with pytest.raises(InputError, match="one CSV file"):
        read_channel(path)


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
def test_layouts(case, tmp_path):
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
def test_errors_blame_the_right_thing(content, word, tmp_path):
    (tmp_path / "c.csv").write_text(content)
    with pytest.raises(InputError, match=word):
        channel_table(tmp_path / "c.csv")


def test_the_reading_taken_is_said(tmp_path):
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


def written(folder, content):
    (folder / "c.csv").write_text(content)
    return folder / "c.csv"


@pytest.mark.parametrize("case", STRATA)
def test_strata(case, tmp_path):
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
def test_variables(case, tmp_path):
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


def test_one_channel_is_for_any_column(tmp_path):
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
def test_tables_that_cannot_be_read(content, by, message, tmp_path):
    with pytest.raises(InputError, match=message):
        column_channels(written(tmp_path, content), by)


def test_a_table_read_without_its_header_does_not_show_its_first_row():
    table = pa.table({"lung cancer": ["none"], "1950-02-03": ["x"]})
    with pytest.raises(InputError) as caught:
        declare(table, Declaration("randomized-response", {"epsilon": 1.0}, "api"), "lung cancers")
    assert "1950" not in str(caught.value)
    assert "lung cancer'" not in str(caught.value)


AMOUNTS = {
    "rr, λ": ({"name": "rr", "classes": ["a", "b"], "lambda": 0.5}, {"epsilon": 0.5},
              "ε = 1.09861, and the options say ε = 0.5;"),
    "rr, both λ": ({"name": "rr", "classes": ["a", "b"], "lambda": 0.5}, {"lambda_": 0.3},
                   "λ = 0.5, and the options say λ = 0.3;"),
    "rr, ε": ({"name": "rr", "classes": ["a", "b"], "epsilon": 1}, {"lambda_": 0.3},
              "ε = 1, and the options say λ = 0.3;"),
    "another mechanism": ({"name": "laplace", "low": 0, "high": 1, "epsilon": 1}, {"epsilon": 2},
                          "ε = 1, and the options say ε = 2;"),
    "a parameter that it has not": ({"name": "laplace", "low": 0, "high": 1, "epsilon": 1},
                                    {"lambda_": 0.5}, "ε = 1, and the options say λ = 0.5;"),
}  # fmt: skip


@pytest.mark.parametrize("case", AMOUNTS)
def test_another_amount_of_noise_is_said_in_the_parameters_that_were_given(case, tmp_path):
    declared, options, expected = AMOUNTS[case]
    labels = [0.25, 0.75] * 100 if declared["name"] == "laplace" else ["a", "b"] * 100
    path = tmp_path / "r.parquet"
    name = {"rr": "randomized-response"}.get(declared["name"], declared["name"])
    content = {"version": 1, "label": "label", "mechanism": declared | {"name": name}}
    table = pa.table({"label": labels, "x": range(200)})
    pq.write_table(table.replace_schema_metadata({"ldpaudit": json.dumps(content)}), path)
    with pytest.raises(InputError) as error:
        ldpaudit.audit(path, only=["mechanism"], **options)
    assert str(error.value).startswith(f"The file declares {expected}")
    of_file = ldpaudit.audit(path, only=["mechanism"]).mechanism
    again = ldpaudit.audit(path, only=["mechanism"], epsilon=of_file.epsilon).mechanism
    assert (again.name, again.epsilon) == (name, of_file.epsilon)
