import gzip
import hashlib
import json
import subprocess
import sys
from pathlib import Path

import fsspec
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from releases import table, written

from ldpaudit.datasets import declare, read_release
from ldpaudit.errors import InputError, MissingDependencyError
from ldpaudit.release import Declaration

ROWS = 90


def same(one, other):
    return (
        np.array_equal(one.features.numeric, other.features.numeric)
        and np.array_equal(one.features.categorical, other.features.categorical)
        and np.array_equal(one.released, other.released)
        and one.classes == other.classes
    )


def test_a_declared_release_with_its_truth(tmp_path):
    path, truth = written(tmp_path, rows=ROWS, classes=("b", "a"))
    report = read_release(path, truth=truth)
    release = report.release
    assert report.warnings == ()
    assert (release.name, release.label, len(release)) == ("release.parquet", "label", ROWS)
    assert release.classes == release.outputs == ("b", "a")
    assert (release.features.numeric.shape, release.features.cardinalities) == ((ROWS, 3), (3,))
    assert release.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()
    assert release.declaration.parameters == {"classes": ["b", "a"], "epsilon": 1.0}
    content = pq.read_table(path).column("label").to_pylist()
    assert [release.outputs[code] for code in release.released] == content


@pytest.mark.parametrize("k", [2, 4])
def test_every_source_gives_the_same_release(k, tmp_path):
    classes = tuple(f"c{i}" for i in range(k))
    content, _ = table(rows=ROWS, classes=classes)
    frame = content.to_pandas()
    frame.to_csv(tmp_path / "r.csv", index=False)
    frame.to_csv(tmp_path / "r.tsv", index=False, sep="\t")
    with gzip.open(tmp_path / "r.csv.gz", "wt") as file:
        frame.to_csv(file, index=False)
    pq.write_table(content, tmp_path / "r.parquet", row_group_size=25)
    expected = read_release(content).release
    assert expected.sha256 is None
    for name in ("r.csv", "r.tsv", "r.csv.gz", "r.parquet"):
        path = tmp_path / name
        found = read_release(path).release
        assert same(found, expected), name
        assert (found.sha256, found.name) == (hashlib.sha256(path.read_bytes()).hexdigest(), name)
    assert same(read_release(frame).release, expected)
    assert same(read_release(str(tmp_path / "*.parquet")).release, expected)
    assert same(read_release(content.to_reader()).release, expected)


def parts(folder, content):
    (folder / "deep").mkdir(parents=True)
    pq.write_table(content.slice(0, 40), folder / "a.parquet")
    pq.write_table(content.slice(40, 30), folder / "b.parquet")
    pq.write_table(content.slice(70), folder / "deep" / "c.snappy.parquet")
    (folder / "_SUCCESS").touch()
    (folder / ".hidden.parquet").touch()
    return folder


def test_a_folder_and_a_pattern(tmp_path):
    content, _ = table(rows=ROWS)
    folder = parts(tmp_path / "release.parquet", content)
    whole, found = read_release(content).release, read_release(folder).release
    assert same(found, whole)
    assert (found.name, found.declaration) == ("release.parquet", whole.declaration)
    first = read_release(str(folder / "[ab].parquet")).release
    assert same(first, read_release(content.slice(0, 70)).release)
    assert len({found.sha256, first.sha256, None}) == 3
    moved = folder.rename(tmp_path / "elsewhere")
    assert read_release(moved).release.sha256 == found.sha256
    pq.write_table(content.slice(0, 39), moved / "a.parquet")
    assert read_release(moved).release.sha256 != found.sha256


def test_a_folder_partitioned_by_a_column(tmp_path):
    content, _ = table(rows=ROWS, claimed=None)
    pq.write_to_dataset(content, tmp_path / "r", partition_cols=["label"])
    release = read_release(tmp_path / "r").release
    assert (len(release), release.classes, release.features.columns) == (ROWS, ("no", "yes"), 4)


def test_a_url(tmp_path):
    path, _ = written(tmp_path, rows=ROWS)
    fsspec.filesystem("memory").pipe("/shelf/release.parquet", path.read_bytes())
    assert same(read_release("memory://shelf/release.parquet").release, read_release(path).release)
    assert read_release(f"file://{path}").release.name == "release.parquet"
    with pytest.raises(InputError, match=r"cannot be reached \(ValueError\)"):
        read_release("nosuch://user:secret@host/release.parquet?token=secret")


def test_a_url_whose_library_is_missing(monkeypatch):
    def missing(*_, **__):
        raise ImportError("install it with …")

    monkeypatch.setattr(fsspec.core, "url_to_fs", missing)
    with pytest.raises(MissingDependencyError, match="'s3' URLs"):
        read_release("s3://bucket/release.parquet")


def test_wide_files_are_read_in_groups(tmp_path, monkeypatch):
    content, _ = table(rows=ROWS)
    pq.write_table(content, tmp_path / "r.parquet")
    monkeypatch.setattr("ldpaudit.datasets.formats.tables._CELLS_AT_ONCE", 2 * ROWS)
    assert same(read_release(tmp_path / "r.parquet").release, read_release(content).release)


def test_which_columns_are_features():
    content, _ = table(rows=ROWS)
    assert read_release(content, drop=["x1", "town"]).release.features.columns == 2
    assert read_release(content, features=["x2", "town"]).release.features.columns == 2
    assert read_release(content, features=["x2"], drop=["x2"]).release.features.columns == 0
    assert read_release(content.select(["label"])).release.features.is_constant()
    nested = content.append_column("nested", pa.array([{"a": 1}] * ROWS))
    assert read_release(nested, drop=["nested"]).release.features.columns == 4


def test_which_column_is_the_label():
    content, _ = table(rows=ROWS, claimed=None)
    renamed = content.rename_columns(["x0", "x1", "x2", "town", "income"])
    assert read_release(renamed, label="income").release.label == "income"
    assert read_release(content).release.label == "label"
    declared = declare(renamed, Declaration("unknown"), "income")
    assert read_release(declared).release.label == "income"
    with pytest.raises(InputError, match="'town' is none of the private columns"):
        read_release(declared, label="town")


def test_a_claim_in_the_file_and_one_from_the_options():
    content, _ = table(rows=ROWS)
    given = Declaration("randomized-response", {"epsilon": 1.0}, "options")
    assert read_release(content, declaration=given).release.declaration is not None
    with pytest.raises(InputError, match="declares ε = 1, and the options say ε = 2"):
        read_release(
            content, declaration=Declaration("randomized-response", {"epsilon": 2.0}, "options")
        )


def replaced(name, values):
    def change(content):
        place = content.schema.names.index(name)
        return content.set_column(place, name, pa.array(values))

    return change


def undeclared(content):
    return content.replace_schema_metadata({})


BAD_COLUMNS = {
    "no rows": (lambda t: t.slice(0, 0), {}, "has no rows"),
    "no label": (
        lambda t: t.rename_columns([*"abcd", "labell"]),
        {},
        "did you mean 'labell'|name of column 5 is most like",
    ),
    "unlike label": (lambda t: t.rename_columns([*"abcd", "qqqqq"]), {}, "name the released"),
    "label asked for": (
        lambda t: t.replace_schema_metadata({}),
        {"label": "labl"},
        "did you mean 'label'|name of column 5 is most like",
    ),
    "unknown drop": (
        lambda t: t,
        {"drop": ["twn"]},
        "no column 'twn' to drop.*(did you mean 'town'|name of column 4 is most like)",
    ),
    "unknown feature": (lambda t: t, {"features": ["x9"]}, "no column 'x9' to use as a feature"),
    "unknown id": (lambda t: t, {"id_column": "idd"}, "no id column 'idd'"),
    "unknown truth": (lambda t: t, {"truth_column": "twn"}, "no true label column 'twn'"),
    "dropped label": (lambda t: t, {"drop": ["label"]}, "cannot be in 'drop'"),
    "label as feature": (lambda t: t, {"features": ["label"]}, "cannot be in 'features'"),
    "one text": (lambda t: t, {"drop": "town"}, "must be a list"),
    "label as id": (lambda t: t, {"id_column": "label"}, "must be different columns"),
    "missing": (
        replaced("label", [None, *["no", "yes"] * 44, "no"]),
        {},
        "missing in 1 of 90",
    ),
    "one class": (lambda t: undeclared(replaced("label", ["no"] * ROWS)(t)), {}, "two values"),
    "undeclared": (replaced("label", ["zz", *["no", "yes"] * 44, "no"]), {}, "1 of 90 rows"),
    "too many": (replaced("label", list(range(ROWS))), {}, "90 different values"),
    "nested": (replaced("x0", [{"a": 1}] * ROWS), {}, "Column 1 holds nested"),
    "ragged": (replaced("x0", [[1], [1, 2], []] * 30), {}, "Column 1 must hold lists of one"),
    "words": (replaced("x0", [["zz", "z"]] * ROWS), {}, "Column 1 must hold lists of numbers"),
    "infinite": (replaced("x0", [np.inf] * ROWS), {}, "Column 1 must be finite; infinite"),
    "duplicate": (lambda t: t.rename_columns([*"abbd", "label"]), {}, "columns 2, 3 do not"),
    "declaration": (lambda t: t.replace_schema_metadata({"ldpaudit": "{zz"}), {}, "valid JSON"),
}


@pytest.mark.parametrize("in_file", [False, True])
@pytest.mark.parametrize("case", BAD_COLUMNS)
def test_bad_tables(case, in_file, tmp_path):
    change, options, message = BAD_COLUMNS[case]
    content = change(table(rows=ROWS)[0])
    source = content
    if in_file:
        source = tmp_path / "r.parquet"
        pq.write_table(content, source)
    with pytest.raises(InputError, match=message) as caught:
        read_release(source, **options)
    assert "zz" not in str(caught.value)
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


def test_bad_files(tmp_path):
    path, _ = written(tmp_path, rows=ROWS)
    whole, folder = path.read_bytes(), tmp_path / "folder"
    folder.mkdir()
    rows = b"label,x\n" + b"a,1\nzz,2\n" * 30
    many = b"label,x\n" + b"".join(b"%s,%d\n" % (b"ab"[i % 2 :][:1], i) for i in range(4000))
    cases = {
        "empty.parquet": (b"", "is empty"),
        "tiny.parquet": (b"PAR1", "truncated"),
        "text.parquet": (b"zz and only words", "is plain text"),
        "cut.parquet": (whole[:-40], "is truncated"),
        "broken.parquet": (whole[: len(whole) // 2] + b"PAR1", "damaged"),
        "scrambled.parquet": (whole[:4] + b"\xff" * 900 + whole[904:], "damaged"),
        "locked.parquet": (b"PARE" + whole[4:], "is encrypted"),
        "empty.csv": (b"", "is empty"),
        "header.csv": (b"label,x\n", "has no rows"),
        "bare.csv": (b"label,x", "has no rows"),
        "ragged.csv": (rows + b"zz,1,2\nzz\n", "must have 2 fields; one has (3|1)"),
        "binary.csv": (b"a\x00zz\x01,\n", "has NUL bytes"),
        "half.csv": (b"label,x\n" + b"a,1\nb\xc3\xa9\xc3zz,2\n" * 30, "UTF-8 nor Western"),
        "late.csv": (
            b"label,x\n" + b"a,bb\nzz,c\n" * 9000 + b"a,\xe9\n",
            "not all in the encoding utf-8; say",
        ),
        "double.csv": (b"label,zz,zz\n" + b"a,1,2\n" * 30, "columns 2, 3 do not"),
        "quote.csv": (b'label,"x\n' + b"a,1\nzz,2\n" * 30, "readable CSV"),
        "cut.csv.gz": (gzip.compress(many)[:-300], "is truncated"),
        "nogzip.csv.gz": (rows, "plain text, not compressed"),
        "infinite.csv": (rows + b"a,inf\n", "Column 2 must be finite; infinite values: 1"),
        "missing.csv": (rows + b",7\n", "missing in 1 of 61"),
    }
    for name, (content, message) in cases.items():
        (tmp_path / name).write_bytes(content)
        with pytest.raises(InputError, match=message) as caught:
            read_release(tmp_path / name)
        assert "zz" not in str(caught.value), name
        assert str(tmp_path) not in str(caught.value)
        assert len(str(caught.value).splitlines()) == 1
    for place, message in {
        "nowhere.parquet": "There is no file 'nowhere.parquet'",
        "nowhere*.parquet": "No file matches the pattern",
        "folder": "holds no Parquet file",
        "*.csv": "must all be Parquet",
        "a\0b.parquet": "file|cannot be reached",
        "x" * 300: "file|cannot be reached",
    }.items():
        with pytest.raises(InputError, match=message) as caught:
            read_release(str(tmp_path / place))
        assert str(tmp_path) not in str(caught.value)


def test_files_that_do_not_belong_together(tmp_path):
    content, _ = table(rows=ROWS)
    folder = parts(tmp_path / "r", content)
    other = content.rename_columns([*"abcd", "label"])
    for change, message in (
        (other, "same columns"),
        (content.replace_schema_metadata({}), "same declaration"),
    ):
        pq.write_table(change, folder / "b.parquet")
        with pytest.raises(InputError, match=message):
            read_release(folder)


def test_sources_that_are_no_table():
    for source in (None, 3, [1, 2], np.zeros((3, 2)), {"label": [1]}):
        with pytest.raises(InputError, match="must be a path, a pandas DataFrame or an Arrow"):
            read_release(source)


def test_frames_as_people_have_them():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            0: rng.standard_normal(ROWS),
            "when": pd.date_range("2020-01-01", periods=ROWS),
            "kind": pd.Categorical(["a", "b", None] * 30),
            "image": [np.zeros(4)] * ROWS,
            "maybe": pd.array([1, None, 3] * 30, dtype="Int64"),
            "label": pd.array([True, False, True] * 30, dtype="boolean"),
        },
        index=rng.permutation(ROWS),
    )
    release = read_release(frame).release
    assert release.features.numeric.shape == (ROWS, 7)
    assert release.features.numeric[:3, 1].tolist() == [0, 1, 2]
    assert np.isnan(release.features.numeric[1, 6])
    assert release.classes == (False, True)
    with pytest.raises(InputError, match="Column 7 mixes types"):
        read_release(frame.assign(mixed=[1, "zz"] * 45))
    with pytest.raises(InputError, match="Column 6 mixes types"):
        read_release(frame.assign(label=[1, "1"] * 45))
    with pytest.raises(InputError, match="a name of its own"):
        read_release(pd.concat([frame, frame], axis=1))


HOSTILE = [
    "<script>alert(1)</script>",
    '"; DROP TABLE "x',
    "\u202etxt.exe\u200f",
    "a.b.c",
    "x" * 10_000,
    "=cmd|' /C calc'!A0",
    "new\nline",
    "",
    "\x1b[31mred",
    "日本語 🎲",
]


@pytest.mark.parametrize("kind", ["parquet", "csv", "memory"])
def test_hostile_names_work(kind, tmp_path):
    rng = np.random.default_rng(1)
    # A class is one line, of at most 1,000 characters.
    labels = [" ".join(HOSTILE[i][:900].split("\n")) or "empty" for i in range(8)]
    content = pa.table({name: rng.standard_normal(ROWS) for name in HOSTILE})
    codes = np.arange(ROWS) % 8
    content = content.append_column("label", pa.array([labels[code] for code in codes]))
    source = content
    if kind == "parquet":
        source = tmp_path / "<b>r'.parquet"
        pq.write_table(content, source)
    if kind == "csv":
        source = tmp_path / "\u202er.csv"
        content.to_pandas().to_csv(source, index=False)
    release = read_release(source, drop=[HOSTILE[0]]).release
    assert (release.features.columns, set(release.classes)) == (len(HOSTILE) - 1, set(labels))
    assert [release.classes[code] for code in release.released] == [labels[code] for code in codes]
    for name in HOSTILE:
        with pytest.raises(InputError) as caught:
            read_release(source, drop=[name + "!"])
        message = str(caught.value)
        assert message.isprintable()
        assert len(message) < 300


def sentinels(folder):
    """Return a release in which every cell and class is a word that occurs nowhere else."""
    words = [f"cell{i:05d}q" for i in range(200)]
    classes = ["classAq", "classBq", "classCq"]
    content = pa.table(
        {
            "person": words[:ROWS],
            "town": words[ROWS : 2 * ROWS],
            "amount": [70001.25 + i for i in range(ROWS)],
            "label": [classes[i % 3] for i in range(ROWS)],
        }
    )
    return content, [*words, *classes, "7000", "7001"]


def spoilings(content):
    frame = content.to_pandas()
    text = frame.to_csv(index=False)
    claim = Declaration("randomized-response", {"epsilon": 1.0, "classes": ["classAq", "classBq"]})
    joined = {"id_column": "person"}
    return {
        "undeclared": (content, {"declaration": claim}),
        "undeclared truth": (content, {"declaration": claim, "truth": ["classCq"] * ROWS}),
        "long line": (text + "cell00001q,a,b,c,d\n", {}),
        "short line": (text + "cell00001q\n", {}),
        "open quote": (text + '"cell00001q,', {}),
        "label of cells": (content, {"label": "town"}),
        "label of amounts": (content, {"label": "amount"}),
        "short truth": (content, {"truth": ["classAq", "classBq"]}),
        "mixed": (frame.assign(town=[70001.25, *frame["town"][1:]]), {}),
        "mixed label": (frame.assign(label=[70001.25, *frame["label"][1:]]), {}),
        "infinite": (frame.assign(amount=[np.inf, *frame["amount"][1:]]), {}),
        "nested": (frame.assign(town=[{"a": t} for t in frame["town"]]), {}),
        "text lists": (frame.assign(town=[[t, t] for t in frame["town"]]), {}),
        "missing label": (frame.assign(label=[None, *frame["label"][1:]]), {}),
        "repeated id": (frame.assign(person="cell00001q"), {"truth": content, **joined}),
        "unknown id": (frame.assign(person=frame["person"] + "x"), {"truth": content, **joined}),
        "numeric ids": (frame, {"truth": frame.assign(person=frame["amount"]), **joined}),
        "no truth column": (content, {"truth": content.select(["town", "amount"])}),
        "truth kinds": (content, {"truth": [f"{c}x" for c in frame["label"]],
                                  "declaration": Declaration("double-rr")}),
    }  # fmt: skip


def test_no_cell_and_no_class_in_any_message(tmp_path):
    content, words = sentinels(tmp_path)
    assert read_release(content).warnings == ()
    for case, (source, options) in spoilings(content).items():
        if isinstance(source, str):
            (tmp_path / "secretfolder").mkdir(exist_ok=True)
            path = tmp_path / "secretfolder" / "r.csv"
            path.write_text(source)
            source = path
        with pytest.raises(InputError) as caught:
            read_release(source, **options)
        message = str(caught.value)
        found = [word for word in [*words, "secretfolder"] if word in message]
        assert found == [], (case, message)


def test_no_name_in_any_warning():
    content, words = sentinels(Path())
    frame = content.to_pandas()
    report = read_release(frame.assign(leakcolumn=frame["label"]), truth=frame["label"])
    assert len(report.warnings) == 2
    for word in [*words, *frame.columns, "leakcolumn"]:
        if word != "label":  # also a plain word of the sentences
            assert not any(word in text for text in report.warnings)


def test_importing_is_light():
    code = "import sys, ldpaudit.datasets; sys.exit('pyarrow' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_csv_cells_as_people_write_them(tmp_path):
    lines = [
        '"1","two ""words"", quoted",2020-01-01,true',
        '0,"new\nline",2020-01-03,',
        "1,NA,,false",
    ]
    path = tmp_path / "r.csv"
    path.write_text("label,text,when,flag\n" + "\n".join(lines * 10) + "\n", encoding="utf-8-sig")
    release = read_release(path).release
    assert (release.classes, release.released[:3].tolist()) == ((0, 1), [1, 0, 1])
    assert release.features.categorical[:3, 0].tolist() == [1, 0, -1]
    assert np.nan_to_num(release.features.numeric[:3], nan=-1).tolist() == [
        [0, 1],
        [2, -1],
        [-1, 0],
    ]


def test_json_booleans_match_csv_text(tmp_path):
    (tmp_path / "r.csv").write_text("label,x\n" + "True,1\nFalse,2\n" * 10)
    claim = json.loads('{"classes": [true, false], "lambda": 0.5}')
    release = read_release(
        tmp_path / "r.csv", declaration=Declaration("randomized-response", claim, "options")
    ).release
    assert (release.released[:2].tolist(), release.classes) == ([0, 1], (True, False))


def test_semicolons_and_decimal_commas_are_found_and_said(tmp_path):
    (tmp_path / "r.csv").write_text("age;bmi;label\n" + "41;23,5;yes\n52;30,1;no\n" * 10)
    (tmp_path / "usual.csv").write_text("age,bmi,label\n" + "41,23.5,yes\n52,30.1,no\n" * 10)
    report = read_release(tmp_path / "r.csv", truth=tmp_path / "r.csv")
    assert same(
        report.release, read_release(tmp_path / "usual.csv", truth=tmp_path / "r.csv").release
    )
    assert report.remarks == (
        "Read the release as CSV with ';' between its fields, decimal comma.",
        "Read the true labels as CSV with ';' between its fields, decimal comma.",
    )


def test_text_that_is_not_utf8_is_one_line():
    towns = pa.array([b"oslo", b"\xfe\xff"] * 50).cast(pa.binary()).view(pa.string())
    table = pa.table({"town": towns, "label": ["a", "b"] * 50})
    with pytest.raises(InputError, match="Column 1 must be text in UTF-8"):
        read_release(table)


@pytest.mark.parametrize(("bytes_left", "why"), [(0, "is empty"), (300, "is truncated")])
def test_a_part_that_cannot_be_read_is_named_by_position(tmp_path, bytes_left, why):
    folder = parts(tmp_path / "parts", table(rows=ROWS)[0])
    (folder / "b.parquet").write_bytes((folder / "b.parquet").read_bytes()[:bytes_left])
    with pytest.raises(InputError, match=rf"^Part 2 of 3 of 'parts', .* {why}") as caught:
        read_release(folder)
    assert "b.parquet" not in str(caught.value)
