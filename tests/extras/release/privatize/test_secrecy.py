"""The true labels never reach a release: not in a cell, in metadata, in statistics or in order."""

import itertools
import json
import stat
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from extras.release.privatize.conftest import declared_json, frame, ran

from ldpaudit.datasets import read_release
from ldpaudit.extras.release.privatize.features import without_unused
from ldpaudit.extras.release.privatize.request import PrivatizeRequest
from ldpaudit.extras.release.privatize.work import privatize

RR = {"mechanism": "randomized-response", "epsilon": 1.0}


def release(path, **options):
    output = path.with_name("release.parquet")
    privatize(PrivatizeRequest(str(path), output, **{"overwrite": True, **RR, **options}))
    return output


def spied(table, words):
    """Return the table with tell-tale metadata of its own and on every column."""
    fields = [field.with_metadata(words) for field in table.schema]
    return table.cast(pa.schema(fields, metadata={**(table.schema.metadata or {}), **words}))


def test_no_metadata_comes_through(tmp_path):
    table = pa.Table.from_pandas(frame().set_index("count"))
    claim = {"version": 1, "label": "count", "mechanism": {"name": "unknown"}}
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


def test_labels_that_are_never_released_leave_no_trace(tmp_path):
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
def test_a_dictionary_holds_all_outputs_in_declared_order(rows, tmp_path):
    order = ["yes", "perhaps", "no"]
    true = frame(rows)
    true["label"] = true["label"].astype(pd.CategoricalDtype(order))
    true.sort_values("label").to_parquet(tmp_path / "d.parquet")
    column = pq.read_table(release(tmp_path / "d.parquet"))["label"]
    assert pa.types.is_dictionary(column.type)
    for chunk in column.chunks:
        assert chunk.dictionary.to_pylist() == ["no", "perhaps", "yes"]


def test_statistics_are_those_of_the_released_labels(tmp_path):
    true = pd.DataFrame({"label": [0] * 500 + [1] * 500 + [7], "x": np.arange(1001) % 5})
    true.to_parquet(tmp_path / "d.parquet")
    output = release(
        tmp_path / "d.parquet", mechanism="discrete-laplace", labels="0:10", epsilon=0.5
    )
    file = pq.ParquetFile(output)
    statistics = file.metadata.row_group(0).column(0).statistics
    values = file.read()["label"].to_numpy()
    assert (statistics.min, statistics.max) == (values.min(), values.max())


def test_a_replaced_row_leaves_no_value_behind(tmp_path):
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


def test_the_secret_is_for_its_owner_only_and_reads_as_the_truth(tmp_path):
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


def test_no_cell_is_printed(tmp_path):
    """Neither a label nor a cell is in a summary or an error; column names may be."""
    words = [f"qz{letter}kx" for letter in "abcdefghij"]
    rng = np.random.default_rng(0)
    true = pd.DataFrame({"label": rng.choice(words[:2], 500), "x": rng.choice(words[2:], 500)})
    true.to_parquet(tmp_path / "d.parquet")
    true["label"] = true["label"].where(true.index != 7)
    true.to_parquet(tmp_path / "b.parquet")
    (tmp_path / "e.csv").write_text(f"label,x\n{words[0]},1\n{words[1]},2,{words[2]}\n")
    trials = [("d.parquet", *more) for more in ((), ("--classes", "a,b"), ("--labels", "0:1"))]
    trials += [("d.parquet", "--drop", "y"), ("b.parquet",), ("e.csv",)]
    for number, (name, *more) in enumerate(trials):
        out = tmp_path / f"r{number}.parquet"
        claim = ("--mechanism", "randomized-response", "--epsilon", "1")
        _, printed = ran(tmp_path / name, "-o", out, *claim, *more)
        assert [word for word in words if word in printed] == []
        assert ("1 of 500" in printed) == (name == "b.parquet")


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.string_view(), pa.int32()])
def test_unused_values_of_every_type_leave_a_dictionary(kind):
    values = pa.array([1, 2, 3]).cast(pa.string() if kind != pa.int32() else kind).cast(kind)
    column = pa.DictionaryArray.from_arrays(pa.array([2, None, 0], pa.int32()), values)
    left = without_unused(column)
    assert left.to_pylist() == column.to_pylist()
    assert (left.type, left.dictionary.to_pylist()) == (
        column.type,
        values.to_pylist()[::2],
    )


MEMORY = Path("memory.parquet")
TWO = ("label:rr:epsilon=0.5", "weeks:discrete-laplace:epsilon=0.5:labels=0:10")


@pytest.fixture
def people(tmp_path, monkeypatch):
    """The table of one year, in the current folder; returned, too."""
    monkeypatch.chdir(tmp_path)
    table = frame(390).assign(person=[f"P{i:03d}" for i in range(390)])
    table.to_parquet("data.parquet")
    return table


def applied(data="data.parquet", **options):
    """Release a table with remembered answers; return the release by person."""
    common = {"remember": MEMORY, "id_column": "person", "overwrite": True}
    privatize(PrivatizeRequest(data, Path("r.parquet"), **{**common, **options}))
    return pq.read_table("r.parquet").to_pandas().set_index("person")


def test_who_has_not_changed_gets_the_same_answer(people):
    first = applied(label=TWO)
    assert declared_json(Path("r.parquet"))["provenance"]["answers"] == "remembered"
    assert stat.S_IMODE(MEMORY.stat().st_mode) == 0o600
    later = people.sample(frac=1, random_state=0).iloc[:350].assign(x=0.0)
    changed = later.index[:150]
    later.loc[changed, "weeks"] = (later.loc[changed, "weeks"] + 1) % 11
    came = frame(30, seed=9).assign(person=[f"N{i:03d}" for i in range(30)])
    pd.concat([later, came]).to_csv("later.csv", index=False)  # Another format, and another order.
    second = applied("later.csv", label=TWO)
    both = [name for name in second.index if name in first.index]
    assert len(both) == 350
    assert (first.loc[both, "label"] == second.loc[both, "label"]).all()
    same = people.set_index("person").loc[both, "weeks"] == later.set_index("person")["weeks"][both]
    repeated = first.loc[both, "weeks"] == second.loc[both, "weeks"]
    assert repeated[same].all()
    assert repeated[~same].mean() < 0.5  # Of noise of scale 20 hardly any value comes twice.
    # Who left is not forgotten.
    third = applied(label=TWO)
    assert (first["label"] == third["label"]).all()
    assert (first["weeks"] == third["weeks"]).all()


def test_types_stay(people):
    people.assign(label=people["label"].astype("category")).to_parquet("data.parquet")
    labels = ("label:rr:epsilon=0.5", "flag:rr:epsilon=0.5")
    pd.testing.assert_frame_equal(applied(label=labels), applied(label=labels))


def test_another_type_of_number_repeats_the_same_answers(people):
    label = "weeks:rr:epsilon=0.1:classes=0,1,2,3,4,5,6,7,8,9,10"
    first = applied(label=label)["weeks"]
    table = pa.Table.from_pandas(people, preserve_index=False)
    place = table.schema.get_field_index("weeks")
    for kind in (pa.decimal128(21, 2), pa.int8(), pa.float64()):
        pq.write_table(table.set_column(place, "weeks", table["weeks"].cast(kind)), "typed.parquet")
        again = applied("typed.parquet", label=label)
        assert (again["weeks"].astype(float) == first).all(), kind


def test_what_a_private_prior_costs_in_each_release_is_said(people):
    words = ("data.parquet", "--label", "label:rr-top-k:epsilon=1.5:private-prior=0.5")
    for name in ("a.csv", "b.csv"):
        printed = ran(*words, "-o", name, "--remember", MEMORY, "--id", "person")[1]
        assert "same mechanism" in printed
        assert "each spends the prior's ε = 0.5 again" in printed


def test_a_joint_mechanism_answers_anew_where_any_label_changed(people):
    options = {"joint": "rs-fd", "label": ("label", "flag"), "epsilon": 0.5}
    first = applied(**options)
    people.loc[:199, "flag"] = ~people.loc[:199, "flag"]
    people.to_parquet("data.parquet")
    second = applied(**options)
    same = (first["label"] == second["label"]) & (first["flag"] == second["flag"])
    assert same[200:].all()
    assert same[:200].mean() < 0.6


def test_strata_and_mechanisms_that_change_are_answered_anew(people):
    strata = {town: {"epsilon": 0.1} for town in ("oslo", "rome", "bonn")}
    plan = {"labels": [{"label": "flag", "by": "town", "mechanism": "rr", "strata": strata}]}
    first = applied(plan=plan)
    people.assign(town=np.where(people.index < 200, "oslo", people["town"])).to_parquet(
        "d2.parquet"
    )
    second = applied("d2.parquet", plan=plan)
    moved = (people["town"] != "oslo").to_numpy() & (np.arange(390) < 200)
    same = (first["flag"] == second["flag"]).to_numpy()
    assert same[~moved].all()
    assert not same[moved].all()
    options = {"remember": MEMORY, "id_column": "person", "overwrite": True}
    request = PrivatizeRequest(
        "data.parquet", Path("r.parquet"), label="flag:rr:epsilon=2", **options
    )
    assert any("No answer of 'flag' is repeated" in text for text in privatize(request).warnings)


def test_a_release_never_repeats_what_an_experiment_drew(people):
    drawn = applied(label="weeks:rr:epsilon=0.01:labels=0:10", experimental=True, seed=1)
    released = applied(label="weeks:rr:epsilon=0.01:labels=0:10")
    assert (drawn["weeks"] == released["weeks"]).mean() < 0.5  # A chance of 1/11 for each.


def test_the_id_may_stay_at_home(people):
    options = (
        "data.parquet",
        "--label",
        "label:rr:epsilon=1",
        "--remember",
        MEMORY,
        "--id",
        "person",
    )
    for name in ("a.csv", "b.csv"):
        status, printed = ran(*options, "-o", name, "--drop", "person")
        assert (status, "new file" in printed) == (0, name == "a.csv"), printed
    assert "a changed answer shows that a label changed" in printed
    assert "people's answers, readable by you only" in printed
    assert Path("a.csv").read_text() == Path("b.csv").read_text()
    assert "P001" not in Path("a.csv").read_text()
    stored = MEMORY.read_bytes()
    assert b"P001" not in stored


def test_the_secret_tells_people_apart(people):
    options = {"id_column": "person", "secret": Path("s.csv"), "drop": ("x",)}
    release = PrivatizeRequest("data.parquet", Path("r.csv"), label="flag:rr:epsilon=1", **options)
    privatize(release)
    kept = pd.read_csv("s.csv").sample(frac=1, random_state=0)
    assert sorted(kept) == ["flag", "person"]
    kept.to_csv("turned.csv", index=False)
    read = read_release("r.csv", truth="turned.csv", id_column="person").release
    assert read.truth is not None
    assert [read.classes[code] for code in read.truth] == people["flag"].tolist()
