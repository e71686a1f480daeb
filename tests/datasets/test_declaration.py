import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ldpaudit.datasets import declare, parse_declaration, read_channel
from ldpaudit.datasets.declaration import agreed
from ldpaudit.errors import InputError
from ldpaudit.release import Declaration

GOOD: dict[str, Any] = {
    "version": 1,
    "label": "income",
    "mechanism": {"name": "randomized-response", "classes": ["<=50K", ">50K"], "lambda": 0.3},
}


def test_the_declaration_of_the_contract() -> None:
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
def test_bad_declarations(content: str, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        parse_declaration(content.encode("latin-1"))
    assert "sekret" not in str(caught.value)


JSON_LABELS = st.one_of(st.text(), st.integers(), st.booleans(), st.floats(-1e9, 1e9))


@given(st.lists(JSON_LABELS, min_size=2, max_size=5), st.floats(0, 1), st.text(min_size=1))
def test_round_trip(classes: list[Any], noise: float, label: str) -> None:
    table = pa.table({label: ["a", "b"]})
    claim = Declaration("randomized-response", {"classes": classes, "lambda": noise})
    declared = declare(table, claim, label)
    found = parse_declaration(declared.schema.metadata[b"ldpaudit"])
    assert found.label == label
    assert found.mechanism == claim


def test_a_declaration_survives_parquet_and_keeps_other_metadata(tmp_path: Path) -> None:
    table = pa.table({"y": [1, 0]}).replace_schema_metadata({"made by": "us"})
    matrix = np.array([[0.75, 0.25], [0.25, 0.75]])
    claim = Declaration("channel", {"classes": np.array([0, 1]), "matrix": matrix})
    pq.write_table(declare(table, claim, "y"), tmp_path / "r.parquet")
    metadata = pq.read_schema(tmp_path / "r.parquet").metadata
    assert metadata[b"made by"] == b"us"
    found = parse_declaration(metadata[b"ldpaudit"]).mechanism
    assert found.parameters == {"classes": [0, 1], "matrix": matrix.tolist()}


def test_what_cannot_be_declared() -> None:
    table = pa.table({"label": [1]})
    with pytest.raises(InputError, match="did you mean 'label'"):
        declare(table, Declaration("unknown"), "labl")
    for value in (float("inf"), object()):
        with pytest.raises(InputError, match="finite numbers"):
            declare(table, Declaration("laplace", {"epsilon": value}), "label")


def test_one_claim_or_two_that_agree() -> None:
    of_file = Declaration("randomized-response", {"classes": [1, 2], "lambda": 0.3})
    assert agreed(of_file, None) is of_file
    assert agreed(None, of_file) is of_file
    assert agreed(None, None) is None
    given_too = Declaration("randomized-response", {"classes": ["1", "2"], "epsilon": 1.0}, "api")
    both = agreed(of_file, given_too)
    assert both is not None
    assert both.parameters == {"classes": [1, 2], "lambda": 0.3, "epsilon": 1.0}
    assert both.source == "file"


@pytest.mark.parametrize(
    ("name", "parameters", "what"),
    [
        ("unknown", {}, "one mechanism and"),
        ("randomized-response", {"lambda": 0.31}, "parameters"),
        ("randomized-response", {"classes": [2, 1]}, "parameters"),
        ("randomized-response", {"classes": [1, 2, 3]}, "parameters"),
        ("randomized-response", {"lambda": [0.3]}, "parameters"),
    ],
)
def test_two_claims_that_differ(name: str, parameters: dict[str, Any], what: str) -> None:
    of_file = Declaration("randomized-response", {"classes": [1, 2], "lambda": 0.3})
    with pytest.raises(InputError, match=what):
        agreed(of_file, Declaration(name, parameters, "options"))


def test_a_channel_file(tmp_path: Path) -> None:
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
        ("label,a,a\n1,1,0\n2,0,1\n", "distinct"),
        ('label,a,b\n1,"1,0\n2,0,1\n', "readable CSV"),
        ("label,a,b\n" + "1,1,0\n" * 1001, "Got 1001"),
    ],
)
def test_bad_channel_files(content: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "channel.csv"
    path.write_text(content)
    with pytest.raises(InputError, match=message) as caught:
        read_channel(path)
    assert "zzz" not in str(caught.value)


def test_a_channel_must_be_one_csv_file(tmp_path: Path) -> None:
    path = tmp_path / "channel.txt"
    path.write_text("label,a,b\n")
    with pytest.raises(InputError, match="one CSV file"):
        read_channel(path)
