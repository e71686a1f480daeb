"""``ldpaudit declare``: a claim that fits goes into the file or beside it; nothing else changes."""

import json
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
from processes import called, refused

import ldpaudit
from ldpaudit.datasets import declare as declared_table
from ldpaudit.datasets import read_release
from ldpaudit.datasets.declaration import parse_declaration
from ldpaudit.datasets.formats import open_table
from ldpaudit.datasets.formats.tables import read_whole
from ldpaudit.mechanisms import from_declaration
from ldpaudit.mechanisms.joint import marginal_claims
from ldpaudit.mechanisms.view import DeclaredCoding
from ldpaudit.release import Declaration

declare = partial(called, "declare")
RR = ("--mechanism", "rr", "--epsilon", "1")
# What the core alone lacks, which declares the rest.
EXTRAS = pytest.mark.skipif(
    not (Path(ldpaudit.__file__).parent / "extras").is_dir(), reason="a part of the extras"
)
PRAM = (
    '"","roof.Rs.2","roof.Rs.4","roof.pd","roof.alpha"\n"2",0.9,0.1,0.8,0.5\n"4",0.2,0.8,0.8,0.5\n'
)


def frame(rows=400):
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "x": rng.standard_normal(rows),
            "roof": rng.choice([2, 4], rows),
            "y": ["zzq", "b"] * (rows // 2),
        }
    )


def write(path):
    if path.suffix == ".parquet":
        frame().to_parquet(path, row_group_size=90)
    elif path.suffix == ".feather":
        frame().to_feather(path)
    elif path.suffix == ".jsonl":
        frame().to_json(path, orient="records", lines=True)
    else:
        frame().to_csv(path, index=False)
    return path


@pytest.mark.parametrize(
    "suffix", [".parquet", ".feather", ".csv", pytest.param(".jsonl", marks=EXTRAS)]
)
def test_a_declaration_goes_where_it_is_read(suffix, tmp_path):
    path = write(tmp_path / f"t{suffix}")
    plain = read_release(path, label="y").release
    status, printed = declare(path.name, "--label", "y", *RR)
    assert (status, "'zzq'" in printed) == (0, True), printed
    release = read_release(path).release
    assert release.declaration.parameters["classes"] == ["b", "zzq"]
    np.testing.assert_array_equal(release.features.numeric, plain.features.numeric)
    np.testing.assert_array_equal(release.released, plain.released)
    assert "randomized response on 2 labels" in declare(path.name)[1]
    names = sorted(p.name for p in tmp_path.iterdir())
    before = {name: (tmp_path / name).stat().st_mtime_ns for name in names}
    assert "Nothing was written" in declare(path.name, *RR)[1]
    assert "--overwrite replaces it" in refused(
        "declare", path.name, "--mechanism", "rr", "--epsilon", "2"
    )
    assert {name: (tmp_path / name).stat().st_mtime_ns for name in names} == before
    assert declare(path.name, "--mechanism", "rr", "--epsilon", "2", "--overwrite")[0] == 0
    declared = read_release(path).release.declaration
    assert declared.parameters["lambda"] == pytest.approx(2 / (np.exp(2) + 1))
    assert sorted(p.name for p in tmp_path.iterdir()) == names


@pytest.mark.parametrize("suffix", [".parquet", ".csv"])
def test_a_claim_that_differs_a_little_is_another_one(suffix, tmp_path):
    path = write(tmp_path / f"t{suffix}")
    other = ("--label", "y", "--mechanism", "rr", "--epsilon", "1.0000005")

    def files():
        return {one.name: one.read_bytes() for one in tmp_path.iterdir()}

    assert declare(path.name, "--label", "y", *RR)[0] == 0
    before = files()
    assert "--overwrite replaces it" in refused("declare", path.name, *other)
    assert files() == before
    assert declare(path.name, *other, "--overwrite")[0] == 0
    release = read_release(path).release
    claim = from_declaration(release.declaration, release.classes)
    assert claim.epsilon == pytest.approx(1.0000005, rel=0, abs=1e-9)
    written = files()
    assert written != before
    for words in (other, (*other, "--overwrite")):
        assert "declared so already" in declare(path.name, *words)[1]
    assert files() == written


def test_a_matrix_is_the_same_but_for_rounding(tmp_path):
    path = write(tmp_path / "t.csv")
    (tmp_path / "m.csv").write_text(",2,4\n2,0.6666666666,0.3333333333\n4,0.2,0.8\n")
    words = ("--label", "roof", "--channel", "m.csv")
    assert declare(path.name, *words)[0] == 0
    beside = tmp_path / "t.csv.ldpaudit.json"
    stated = json.loads(beside.read_text())
    matrix = np.array(stated["mechanism"]["matrix"])
    for factor, same in ((1, True), (1 + 1e-14, True), (1 - 1e-10, False)):
        stated["mechanism"]["matrix"] = (matrix * factor).tolist()
        beside.write_text(json.dumps(stated))
        before = beside.read_bytes()
        printed = declare(path.name, *words)[1]
        assert ("declared so already" if same else "--overwrite replaces it") in printed
        assert beside.read_bytes() == before


def test_a_parquet_file_keeps_its_rows_types_and_metadata(tmp_path):
    table = pa.Table.from_pandas(frame()).append_column(
        "kind", pa.array(["a", "b"] * (len(frame()) // 2)).dictionary_encode()
    )
    table = table.replace_schema_metadata({**table.schema.metadata, b"k": b"v"})
    path = tmp_path / "t.parquet"
    pq.write_table(table, path, row_group_size=70, compression="zstd")
    path.chmod(0o640)
    old = path.read_bytes()
    assert declare("t.parquet", "--label", "y", *RR, "-o", "copy.parquet")[0] == 0
    assert (path.read_bytes(), declare("t.parquet", "--label", "y", *RR)[0]) == (old, 0)
    assert (tmp_path / "copy.parquet").read_bytes() == path.read_bytes()
    assert path.stat().st_mode & 0o777 == 0o640
    file = pq.ParquetFile(tmp_path / "t.parquet")
    assert file.read().equals(table)
    metadata = file.schema_arrow.metadata
    assert metadata.pop(b"ldpaudit")
    assert metadata == table.schema.metadata
    assert file.metadata.row_group(0).column(0).compression == "ZSTD"


def test_a_large_parquet_file_is_not_written_again(tmp_path, monkeypatch):
    path = write(tmp_path / "t.parquet")
    before = path.read_bytes()
    monkeypatch.setattr("ldpaudit.datasets.writing._REWRITTEN", 100)
    assert (declare("t.parquet", "--label", "y", *RR)[0], path.read_bytes()) == (0, before)
    assert (tmp_path / "t.parquet.ldpaudit.json").exists()
    assert read_release(path).release.declaration is not None


@pytest.mark.parametrize("name", ["t.parquet", "t.arrow"])
def test_a_declaration_in_a_file_is_replaced_in_it(name, tmp_path, monkeypatch):
    monkeypatch.setattr("ldpaudit.datasets.writing._REWRITTEN", 100)
    claim = Declaration("randomized-response", {"classes": ["b", "zzq"], "epsilon": 5.0})
    table = declared_table(pa.Table.from_pandas(frame()), claim, "y")
    if name == "t.arrow":
        with pa.ipc.new_stream(tmp_path / name, table.schema) as stream:
            stream.write_table(table)
    else:
        pq.write_table(table, tmp_path / name)
    assert declare(name, "--label", "y", *RR, "--overwrite")[0] == 0
    assert read_release(tmp_path / name).release.declaration.parameters.get("epsilon") != 5.0
    assert not (tmp_path / f"{name}.ldpaudit.json").exists()
    assert read_whole(open_table(tmp_path / name)).num_rows == len(frame())


def test_a_folder_is_declared_file_by_file(tmp_path):
    (tmp_path / "d").mkdir()
    for name in ("a", "b"):
        write(tmp_path / "d" / f"{name}.parquet")
    assert declare("d", "--label", "y", *RR)[0] == 0
    assert read_release(tmp_path / "d").release.declaration is not None
    assert "leave out -o" in declare("d", "--label", "y", *RR, "-o", "e.parquet", "--overwrite")[1]


def test_a_matrix_of_sdcmicro(tmp_path):
    path = write(tmp_path / "t.csv")
    (tmp_path / "m.csv").write_text(PRAM)
    assert declare(path.name, "--label", "roof", "--channel", "m.csv")[0] == 0
    declared = read_release(path).release.declaration
    assert declared.parameters["classes"] == [2, 4]
    assert declared.parameters["matrix"] == [[0.9, 0.1], [0.2, 0.8]]
    assert "no label column 'root'" in declare(path.name, "--label", "root", *RR)[1]
    status, printed = declare(path.name, "--label", "y", "--channel", "m.csv", "--overwrite")
    assert (status, "rows hold another value" in printed, "zzq" in printed) == (2, True, False)


def test_what_is_refused(tmp_path):
    path = write(tmp_path / "t.csv")
    before = sorted(tmp_path.iterdir())
    for words, word in (
        (("--label", "y"), "Say what made the labels"),
        (("-o", "u.csv"), "Say what made the labels"),
        (("--label", "y", *RR, "--classes", "b,c"), "rows hold another value"),
        (("--label", "y", "--epsilon", "-1"), "epsilon"),
        (("--label", "y", "--mechanism", "rrr", "--epsilon", "1"), "choose one of"),
        (("--label", "y", *RR, "-o", "t.csv"), "exists already"),
        (("--label", "y", *RR, "-o", "t.csv", "--overwrite"), "is an input"),
        (("--label", "y", *RR, "-o", "no/u.csv"), "folder"),
    ):
        status, printed = declare(path.name, *words)
        assert (status, word in printed) == (2, True), printed
        assert "zzq" not in printed
    assert sorted(tmp_path.iterdir()) == before
    assert "declares nothing" in declare(path.name)[1]


def test_a_broken_declaration_can_be_replaced(tmp_path):
    path = write(tmp_path / "t.csv")
    beside = tmp_path / "t.csv.ldpaudit.json"
    beside.write_text("{")
    assert (declare(path.name)[0], declare(path.name, "--label", "y", *RR)[0]) == (2, 2)
    assert declare(path.name, "--label", "y", *RR, "--overwrite")[0] == 0
    assert json.loads(beside.read_text())["label"] == "y"


MADE = {
    "experiment": {"randomness": "experimental generator"},
    "generator": {"generator": {"name": "mixture", "trained_on": "private"}},
    "prior": {
        "prior": "private histogram",
        "epsilon": {"prior": 0.25, "labels": 1.0, "total": 1.25},
    },
    "remembered": {"answers": "remembered"},
}


@pytest.mark.parametrize("suffix", [".parquet", ".csv"])
@pytest.mark.parametrize("how", MADE)
def test_another_claim_keeps_how_the_release_was_made(how, suffix, tmp_path):
    path = write(tmp_path / "plain.csv")
    assert declare(path.name, "--label", "y", *RR)[0] == 0
    stated = json.loads((tmp_path / "plain.csv.ldpaudit.json").read_text())
    stated["provenance"] = MADE[how]
    path = write(tmp_path / f"t{suffix}")
    if suffix == ".csv":
        (tmp_path / "t.csv.ldpaudit.json").write_text(json.dumps(stated))
    else:
        table = pq.read_table(path)
        known = {**table.schema.metadata, b"ldpaudit": json.dumps(stated).encode()}
        pq.write_table(table.replace_schema_metadata(known), path)
    before = read_release(path).release
    assert declare(path.name, "--label", "y:rr:epsilon=2", "--overwrite")[0] == 0
    after = read_release(path).release
    assert after.declaration != before.declaration
    assert after.faults_of_making == before.faults_of_making
    assert bool(after.faults_of_making) == (how in ("experiment", "generator"))
    assert after.prior_epsilon == before.prior_epsilon == (0.25 if how == "prior" else 0)
    made = parse_declaration(open_table(path).declaration).provenance
    assert made.keys() == {*MADE[how], "declared"}
    if how == "prior":
        assert made["epsilon"] == {"prior": 0.25, "labels": 2.0, "total": 2.25}
    else:
        assert made.items() >= MADE[how].items()


def test_a_copy_of_a_text_file(tmp_path):
    path = write(tmp_path / "t.csv")
    assert declare(path.name, "--label", "y", *RR, "-o", "u.csv")[0] == 0
    assert (tmp_path / "u.csv").read_bytes() == path.read_bytes()
    assert not (tmp_path / "t.csv.ldpaudit.json").exists()
    assert read_release(tmp_path / "u.csv").release.declaration is not None


def test_what_sdcmicro_released_is_found_by_its_variable():
    rng = np.random.default_rng(0)
    released = rng.choice(["high", "low"], 400)
    pd.DataFrame({"x": rng.random(400), "pay_pram": released}).to_csv("r.csv", index=False)
    Path("pram.csv").write_text(
        '"","pay.Rs.high","pay.Rs.low","pay.pd","pay.alpha"\n'
        '"high",0.8,0.2,0.8,0.5\n"low",0.3,0.7,0.8,0.5\n'
    )
    for words in (["--label", "pay"], []):
        status, printed = declare("r.csv", *words, "--channel", "pram.csv")
        assert (status, "'pay_pram'" in printed) == (0, True), printed


@pytest.fixture(autouse=True)
def _tables(monkeypatch, tmp_path):
    """Leave a release of several private columns and tables of channels where the commands run."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    options = {
        **{"region": ["north", "south"], "a": ["no", "yes"], "b": [1, 2, 3]},
        **{"roof_pram": [2, 4], "walls_pram": ["brick", "wood"], "other:x": ["p", "q"]},
    }
    made = pd.DataFrame({name: rng.choice(values, 200) for name, values in options.items()})
    made.insert(0, "x", rng.standard_normal(200))
    made.to_csv("t.csv", index=False)
    made.to_parquet("t.parquet")
    for name, text in (("strata", STRATA), ("pram", SDCMICRO), ("long", TRANSITIONS)):
        Path(f"{name}.csv").write_text(text)


STRATA = (
    "region,label,1,2,3\nnorth,1,.8,.1,.1\nnorth,2,.1,.8,.1\nnorth,3,.1,.1,.8\n"
    "south,1,.6,.2,.2\nsouth,2,.2,.6,.2\nsouth,3,.2,.2,.6\n"
)
SDCMICRO = (
    '"","roof.Rs.2","roof.Rs.4","roof.pd","roof.alpha","walls.Rs.brick","walls.Rs.wood",'
    '"walls.pd","walls.alpha"\n'
    '"2",0.9,0.1,0.8,0.5,0.7,0.3,0.8,0.5\n"4",0.2,0.8,0.8,0.5,0.4,0.6,0.8,0.5\n'
)
TRANSITIONS = "variable,region,Var1,Var2,Freq\n" + "".join(
    f"{variable},{region},{a},{b},{kept if a == b else 1 - kept}\n"
    for variable, labels in (("roof", (2, 4)), ("walls", ("brick", "wood")))
    for region, kept in (("north", 0.75), ("south", 0.5 + 1 / 8))
    for a in labels
    for b in labels
)


def content(path):
    """Return what a file declares."""
    if path.endswith(".parquet"):
        return json.loads(pq.read_schema(path).metadata[b"ldpaudit"])
    return json.loads(Path(f"{path}.ldpaudit.json").read_text())


def test_a_table_of_sdcmicro_names_its_columns():
    status, printed = declare("t.csv", "--channel", "pram.csv")
    assert (status, "ε = 2.77259 nats together" in printed) == (0, True), printed
    assert [one["label"] for one in content("t.csv")["labels"]] == ["roof_pram", "walls_pram"]
    status, printed = declare("t.parquet", "--label", "walls_pram", "--channel", "pram.csv")
    assert status == 0, printed
    # One column without strata is what version 1 holds.
    assert content("t.parquet")["version"] == 1


def test_what_is_beside_a_post_randomized_column_is_said():
    frame = pd.read_csv("t.csv").assign(roof=2)
    frame.to_csv("t.csv", index=False)
    printed = declare("t.csv", "--channel", "pram.csv")[1]
    assert "do not publish it along with the released one" in printed


def test_one_claim_for_all():
    shared = ("--label", "a", "--label", "b", "--mechanism", "rr", "--epsilon", "0.5")
    assert "ε = 1 nats together" in declare("t.csv", *shared)[1]


@EXTRAS
def test_joint_mechanisms():
    joint = ("--label", "a", "--label", "b", "--joint", "rs-fd", "--epsilon", "1", "--overwrite")
    said = declare("t.csv", *joint)[1]
    assert "random sampling" in said
    assert said.count(": seen alone: ") == 2
    assert content("t.csv")["mechanism"] == {
        **{"name": "rs-fd", "epsilon": 1.0},
        "domains": [["no", "yes"], [1, 2, 3]],
    }
    known = {"coding": DeclaredCoding, "marginals": marginal_claims}
    assert read_release("t.csv", label="a", **known).release.classes == ("no", "yes")
    assert "random sampling" in declare("t.csv")[1]
    stated = ("--label", "a:classes=no,yes,zzq", "--label", "b", *joint[4:])
    assert declare("t.csv", *stated)[0] == 0
    assert content("t.csv")["mechanism"]["domains"][0] == ["no", "yes", "zzq"]
    unfit = ("--label", "a:classes=no,no2", "--label", "b", *joint[4:])
    status, printed = declare("t.csv", *unfit)
    assert (status, "Private column 'a': Every" in printed) == (2, True), printed


def test_a_column_may_have_a_colon_in_its_name():
    plain = ("t.csv", "--label", "other:x", "--mechanism", "rr", "--epsilon", "1")
    assert (declare(*plain)[0], content("t.csv")["label"]) == (0, "other:x")


def test_names_with_spaces_may_come_from_the_environment(monkeypatch):
    pd.read_csv("t.csv").rename(columns={"a": "my label"}).to_csv("t.csv", index=False)
    for stated, names in (("my label", ["my label"]), ("my label\nb", ["my label", "b"])):
        monkeypatch.setenv("LDPAUDIT_LABEL", stated)
        assert declare("t.csv", "--mechanism", "rr", "--epsilon", "1", "--overwrite")[0] == 0
        found = content("t.csv")
        assert [one["label"] for one in found.get("labels", [found])] == names


MISTAKES = {
    "--label a --label a --mechanism rr --epsilon 1": "named twice",
    "--label a:rr:epsilon=1 --label gone:rr:epsilon=1": "no label column 'gone'",
    "--label a:rr:epsilon=1 --label b": "Say what made the labels of 'b'",
    "--label a:rr:epsilon=1 --label b:rr:epsilon=1 --epsilon 2": "about none of the columns",
    "--label a:rr:epsilon=1 --mechanism rr": "--mechanism is about none of the columns",
    "--label a --mechanism rr --epsilon=1 --label b": "--mechanism stands between two --label",
    "--label a --epsilon=1 --label b:rr:epsilon=1": "--epsilon stands between two --label",
    "--label a --label b --mechanism rr --epsilon 1 --classes no,yes": "NAME:classes=VALUE",
    "--label a:rr:epsilon=1:clip": "Only noisy numbers are clipped",
    "--label a:rr:epsilon=1:prior=p.csv --label b:rr:epsilon=1": "prior is no part of a claim",
    "--label a:rr:epsilon=1:by=region --label b:rr:epsilon=1": "need a table",
    "--label b --channel strata.csv --by regin": "no strata (--by) column 'regin'",
    "--label b --channel strata.csv --by label": "no strata column 'label' among the 7 columns",
    "--label region:rr:epsilon=1 --label b:channel=strata.csv:by=region": "column 2 is private",
    "--label a --channel strata.csv --by region": "rows hold another value",
    "--label b --channel pram.csv": "none of the column 'b'",
    "--label b --channel strata.csv --by region --epsilon 1": "complete claim",
    "--by region": "need a table",
    "--label a --joint rs-fd --epsilon 1": "at least two columns",
    "--label a --label b --joint rs-fd": "given by --epsilon",
    "--label a --label b --joint rsfd --epsilon 1": "did you mean 'rs-fd'",
    "--label a:rr:epsilon=1 --label b --joint rs-fd --epsilon 1": "only its classes",
    "--label a --label b --joint joint-rr --epsilon 1 --by region": "by nothing else",
}


def test_mistakes_are_one_line_and_nothing_is_written():
    before = sorted(Path().iterdir())
    for words, message in MISTAKES.items():
        status, printed = declare("t.csv", *words.split())
        assert status == 2, words
        assert message in printed, (words, printed)
        (line,) = [one for one in printed.splitlines() if not one.endswith("…")]
        assert line.startswith("ldpaudit: ")
    assert sorted(Path().iterdir()) == before


def test_files_whose_declaration_does_not_fit():
    rr = {"name": "randomized-response", "classes": ["no", "yes"], "epsilon": 1.0}
    other = rr | {"classes": ["no", "perhaps"]}
    for labels, message in (
        (
            [{"label": "a", "mechanism": rr}, {"label": "gone", "mechanism": rr}],
            "which the file's decl",
        ),
        ([{"label": "a", "mechanism": rr}] * 2, "different columns"),
        ([{"label": "a", "mechanism": other}], "must be one of the declared outputs"),
    ):
        Path("t.csv.ldpaudit.json").write_text(json.dumps({"version": 2, "labels": labels}))
        status, printed = declare("t.csv")
        assert (status, message in printed) == (2, True)
    Path("t.csv.ldpaudit.json").write_text(json.dumps({"version": 3}))
    assert "version 1 or 2" in declare("t.csv")[1]
