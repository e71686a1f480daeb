"""The true labels never reach a release: not in a cell, in metadata, in statistics or in order."""

import itertools
import json
import stat
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from commands.privatize.conftest import Command, declared_json, frame

from ldpaudit.commands.privatize.features import without_unused
from ldpaudit.commands.privatize.request import PrivatizeRequest
from ldpaudit.commands.privatize.work import privatize
from ldpaudit.datasets import read_release

RR: dict[str, Any] = {"mechanism": "randomized-response", "epsilon": 1.0}


def release(path: Path, **options: Any) -> Path:
    output = path.with_name("release.parquet")
    privatize(PrivatizeRequest(str(path), output, **{"overwrite": True, **RR, **options}))
    return output


def spied(table: pa.Table, words: dict[bytes, bytes]) -> pa.Table:
    """Return the table with tell-tale metadata of its own and on every column."""
    fields = [field.with_metadata(words) for field in table.schema]
    return table.cast(pa.schema(fields, metadata={**(table.schema.metadata or {}), **words}))


def test_no_metadata_comes_through(tmp_path: Path) -> None:
    table = pa.Table.from_pandas(frame().set_index("count"))
    claim = {"version": 1, "label": "label", "mechanism": {"name": "unknown"}}
    words = {b"huggingface": b"qzsecretkx", b"ldpaudit": json.dumps(claim).encode()}
    pq.write_table(spied(table, words), tmp_path / "d.parquet")
    output = release(tmp_path / "d.parquet")
    assert b"qzsecretkx" not in output.read_bytes()
    # The index is a column like any other now.
    schema = pq.read_schema(output)
    assert set(schema.metadata) == {b"ldpaudit"}
    assert "count" in schema.names
    assert all(not (set(f.metadata or {}) - {b"PARQUET:field_id"}) for f in schema)
    assert declared_json(output)["mechanism"]["name"] == "randomized-response"


def test_labels_that_are_never_released_leave_no_trace(tmp_path: Path) -> None:
    """With one kept label the other one, though true of somebody, is nowhere in the data."""
    true = frame(400).assign(label=["qzrarekx", *["a"] * 399])
    (tmp_path / "prior.csv").write_text("label,probability\na,1\nqzrarekx,1e-9\n")
    for name, labels in {
        "plain": true["label"],
        "category": true["label"].astype(pd.CategoricalDtype(["qzrarekx", "qzunusedkx", "a"])),
    }.items():
        true.assign(label=labels).to_parquet(tmp_path / f"{name}.parquet")
        output = release(
            tmp_path / f"{name}.parquet", mechanism="rr-top-k", prior=tmp_path / "prior.csv"
        )
        content = output.read_bytes()
        # Classes are declared; besides the declaration there is no word of it.
        stated = pq.read_schema(output).metadata[b"ldpaudit"]
        assert content.count(b"qzrarekx") == stated.count(b"qzrarekx") == 1
        assert b"qzunusedkx" not in content
        place = pq.read_schema(output).names.index("label")
        groups = pq.ParquetFile(output).metadata
        for group in range(groups.num_row_groups):
            statistics = groups.row_group(group).column(place).statistics
            assert (statistics.min, statistics.max) == ("a", "a")


@pytest.mark.parametrize("rows", [50, 3000])
def test_a_dictionary_holds_all_outputs_in_declared_order(rows: int, tmp_path: Path) -> None:
    order = ["yes", "perhaps", "no"]
    true = frame(rows)
    true["label"] = true["label"].astype(pd.CategoricalDtype(order))
    true.sort_values("label").to_parquet(tmp_path / "d.parquet")
    column = pq.read_table(release(tmp_path / "d.parquet"))["label"]
    assert pa.types.is_dictionary(column.type)
    for chunk in column.chunks:
        assert chunk.dictionary.to_pylist() == ["no", "perhaps", "yes"]


def test_statistics_are_those_of_the_released_labels(tmp_path: Path) -> None:
    true = pd.DataFrame({"label": [0] * 500 + [1] * 500 + [7], "x": np.arange(1001) % 5})
    true.to_parquet(tmp_path / "d.parquet")
    output = release(
        tmp_path / "d.parquet", mechanism="discrete-laplace", labels="0:10", epsilon=0.5
    )
    file = pq.ParquetFile(output)
    statistics = file.metadata.row_group(0).column(0).statistics
    values = file.read()["label"].to_numpy()
    assert (statistics.min, statistics.max) == (values.min(), values.max())


def test_a_replaced_row_leaves_no_value_behind(tmp_path: Path) -> None:
    """Also not in the dictionary of a category column, where values may outlive their rows."""
    rows = 600
    words = ["".join(w) for w in itertools.islice(itertools.product("abcd", repeat=6), rows)]
    true = frame(rows).assign(town=[f"qz{word}kx" for word in words])
    for kind in ("str", "category"):
        true.assign(town=true["town"].astype(kind)).to_parquet(tmp_path / "d.parquet")
        synthetic = frame(30).assign(town="mars")
        synthetic.assign(town=synthetic["town"].astype(kind)).to_parquet(tmp_path / "s.parquet")
        output = release(
            tmp_path / "d.parquet",
            mechanism="double-rr",
            epsilon=0.5,
            synthetic=str(tmp_path / "s.parquet"),
        )
        kept = set(pq.read_table(output)["town"].to_pylist()) - {"mars"}
        assert 0 < len(kept) < rows
        uncompressed = tmp_path / "plain.parquet"
        pq.write_table(pq.read_table(output), uncompressed, compression="none")
        content = uncompressed.read_bytes()
        assert [w for w in true["town"] if w not in kept and w.encode() in content] == []


def test_the_secret_is_for_its_owner_only_and_reads_as_the_truth(tmp_path: Path) -> None:
    true = frame()
    true.to_parquet(tmp_path / "d.parquet")
    secret = tmp_path / "secret.parquet"
    secret.write_bytes(b"older and open")
    secret.chmod(0o666)
    output = release(tmp_path / "d.parquet", secret=secret)
    assert stat.S_IMODE(secret.stat().st_mode) == 0o600
    assert stat.S_IMODE(output.stat().st_mode) & 0o400
    assert pq.read_table(secret)["label"].to_pylist() == true["label"].tolist()
    read = read_release(output, truth=secret)
    assert read.release.truth is not None
    assert [read.release.classes[code] for code in read.release.truth] == true["label"].tolist()
    assert read.warnings == ()


def test_no_cell_is_printed(tmp_path: Path, command: Command) -> None:
    """Neither a label nor a cell is in a summary or an error; column names may be."""
    words = [f"qz{'abcdefghij'[i]}kx" for i in range(10)]
    rng = np.random.default_rng(0)
    labels = rng.choice(words[:2], 500)
    true = pd.DataFrame({"label": labels, "x": rng.choice(words[2:], 500)})
    true.to_parquet(tmp_path / "d.parquet")
    options = ("--mechanism", "randomized-response", "--epsilon", "1")
    trials = [
        (),
        ("--classes", "a,b"),
        ("--labels", "0:1"),
        ("--drop", "y"),
    ]
    for number, more in enumerate(trials):
        out = tmp_path / f"r{number}.parquet"
        _, printed = command(tmp_path / "d.parquet", "-o", out, *options, *more)
        assert [word for word in words if word in printed] == []
    broken = true.copy()
    broken.loc[7, "label"] = None
    broken.to_parquet(tmp_path / "b.parquet")
    _, printed = command(tmp_path / "b.parquet", "-o", tmp_path / "b2.parquet", *options)
    assert "1 of 500" in printed
    assert [word for word in words if word in printed] == []
    (tmp_path / "e.csv").write_text(f"label,x\n{words[0]},1\n{words[1]},2,{words[2]}\n")
    _, printed = command(tmp_path / "e.csv", "-o", tmp_path / "e2.parquet", *options)
    assert [word for word in words if word in printed] == []


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.string_view(), pa.int32()])
def test_unused_values_of_every_type_leave_a_dictionary(kind: pa.DataType) -> None:
    values = pa.array([1, 2, 3]).cast(pa.string() if kind != pa.int32() else kind).cast(kind)
    column = pa.DictionaryArray.from_arrays(pa.array([2, None, 0], pa.int32()), values)
    left = without_unused(column)
    assert left.to_pylist() == column.to_pylist()
    assert (left.type, left.dictionary.to_pylist()) == (
        column.type,
        values.to_pylist()[::2],
    )
