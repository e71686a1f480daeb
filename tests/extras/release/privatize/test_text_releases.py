"""Releases as text: every unchanged letter is kept, and the declaration lies beside the file."""

import gzip
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from extras.release.privatize.conftest import ROWS, declared_json, frame, ran
from processes import refused

import ldpaudit
from ldpaudit.datasets import read_release
from ldpaudit.errors import GeneratorDivergedError, InputError, OutputError
from ldpaudit.extras.compare.request import CompareRequest
from ldpaudit.extras.compare.work import compare
from ldpaudit.extras.kinds.mechanisms.with_features import DoubleRR
from ldpaudit.extras.release.privatize.features import FittedGenerator, synthetic_rows
from ldpaudit.extras.release.privatize.request import ColumnRequest, PrivatizeRequest
from ldpaudit.extras.release.privatize.work import privatize
from ldpaudit.extras.release.synthesis.mixture import ClassMixtures
from ldpaudit.mechanisms.exact_sampling import bit_source
from ldpaudit.mechanisms.view import DeclaredCoding

RR = ("--mechanism", "rr", "--epsilon", "1")
LINES = [
    '1.50;007;a "b";1e5;2020-01-31;ja',
    '2;012;"c;d";3.0;31.12.1999;nein',
    "-0.25;3;;1;;ja",
]


@pytest.mark.parametrize("name", ["r.csv", "r.csv.gz"])
def test_unchanged_letters_are_kept(name, tmp_path):
    rows = [line.replace('a "b"', '"a ""b"""').split(";ja")[0].split(";nein")[0] for line in LINES]
    labels = ["ja", "nein"] * 60
    header = "x;code;word;big;day;label"
    content = [f"{rows[i % 3]};{label}" for i, label in enumerate(labels)]
    data = tmp_path / "d.csv"
    data.write_text("\n".join([header, *content]) + "\n")
    out = tmp_path / name
    status, printed = ran(data, "-o", out, *RR, "--decimal", ".")
    assert (status, f"{name}.ldpaudit.json" in printed) == (0, True), printed
    raw = out.read_bytes()
    text = (gzip.decompress(raw) if name.endswith(".gz") else raw).decode()
    written = text.splitlines()
    assert written[0] == header
    assert [line.rsplit(";", 1)[0] for line in written[1:]] == [
        line.rsplit(";", 1)[0] for line in content
    ]
    assert {line.rsplit(";", 1)[1] for line in written[1:]} == {"ja", "nein"}


def test_the_dialect_of_the_data_is_kept(tmp_path):
    table = frame(400)
    table["town"] = table["town"].replace("oslo", "Køge")
    data, out, secret = tmp_path / "d.csv", tmp_path / "r.csv", tmp_path / "s.csv"
    table.to_csv(data, sep=";", decimal=",", encoding="cp1252", index=False)
    status, printed = ran(data, "-o", out, *RR, "--secret", secret)
    assert status == 0
    assert "Read the data as CSV with ';' between its fields, decimal comma" in printed
    released = pd.read_csv(out, sep=";", decimal=",", encoding="cp1252")
    original = pd.read_csv(data, sep=";", decimal=",", encoding="cp1252")
    pd.testing.assert_frame_equal(released.drop(columns="label"), original.drop(columns="label"))
    assert secret.stat().st_mode & 0o777 == 0o600
    report = read_release(out, truth=secret)
    assert report.release.declaration.parameters["classes"] == ["no", "perhaps", "yes"]
    assert 0.3 < (report.release.truth == report.release.released).mean() < 1


@pytest.mark.parametrize("name", ["r.feather", "r.jsonl", "r.jsonl.gz", "r.tsv"])
def test_other_formats(name, tmp_path, data):
    out = tmp_path / name
    assert ran(data, "-o", out, *RR)[0] == 0
    release = read_release(out, truth=data).release
    usual = read_release(data).release
    assert release.declaration is not None
    assert (release.features.columns, len(release)) == (usual.features.columns, ROWS)
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted(
        {"data.parquet", name, *([f"{name}.ldpaudit.json"] if name != "r.feather" else [])}
    )


def test_noisy_numbers_and_typed_sources(tmp_path, data):
    out = tmp_path / "r.csv"
    words = ("--label", "weeks", "--labels", "0:10:1", "--mechanism", "laplace", "--epsilon", "1")
    assert ran(data, "-o", out, *words)[0] == 0
    whole = pd.read_csv(out)
    original = pq.read_table(data).to_pandas()
    pd.testing.assert_frame_equal(
        whole.drop(columns="weeks"), original.drop(columns="weeks"), check_dtype=False
    )
    assert read_release(out, coding=DeclaredCoding).release.declaration is not None


@pytest.mark.parametrize("name", ["r.csv", "r.jsonl"])
@pytest.mark.parametrize("kind", [pa.float32(), pa.decimal128(10, 2)])
@pytest.mark.filterwarnings("ignore:(Few people|The order):UserWarning")
def test_fractions_are_written_as_they_are_declared(name, kind, tmp_path):
    """A decimal 0.10 was written so, and a narrow 0.1 as 0.10000000149011612: no class is."""
    label = pa.array(["0.10", "0.25", "1.00"] * 40).cast(kind)
    table = pa.table({"x": [0.5] * 120, "label": label})
    release = ldpaudit.privatize(table, "rr", tmp_path / name, epsilon=1.0)
    read = read_release(release, truth=table, coding=DeclaredCoding).release
    assert read.classes == (0.1, 0.25, 1.0)


def test_lists_are_written_where_the_format_holds_them(tmp_path):
    table = pa.Table.from_pandas(frame(200)).append_column("image", pa.array([[0.5, 1.0]] * 200))
    pq.write_table(table, tmp_path / "d.parquet")
    assert ran(tmp_path / "d.parquet", "-o", tmp_path / "r.jsonl", *RR)[0] == 0
    assert read_release(tmp_path / "r.jsonl").release.features.numeric.shape[1] >= 4


def test_a_declaration_beside_a_file(tmp_path):
    path, beside = tmp_path / "r.csv", tmp_path / "r.csv.ldpaudit.json"
    path.write_text("label,x\n" + "a,1\nb,2\n" * 200)
    claim = {"version": 1, "label": "label", "mechanism": {"name": "randomized-response"}}
    claim["mechanism"] |= {"classes": ["a", "b"], "epsilon": 1.0}
    beside.write_text(json.dumps(claim))
    assert read_release(path).release.declaration is not None
    result = ldpaudit.audit(path, only=["mechanism"])
    assert result.mechanism.epsilon == pytest.approx(1.0)
    with pytest.raises(InputError, match="declares ε = 1, and the options say ε = 2; leave"):
        ldpaudit.audit(path, mechanism="rr", epsilon=2)
    with pytest.raises(InputError, match="one mechanism's parameters and the options another"):
        ldpaudit.audit(path, mechanism={"name": "rr", "classes": ["a", "c"]})
    with pytest.raises(InputError, match="none of the private"):
        read_release(path, label="x")
    for content, word in (
        ("{", "must be valid JSON"),
        (json.dumps(claim | {"version": 9}), "must have version 1"),
        (
            json.dumps(claim | {"label": "zzz"}),
            "no label column, which the file's declaration names",
        ),
        (json.dumps(claim).replace('"b"', '"c"'), "rows hold another value"),
    ):
        beside.write_text(content)
        with pytest.raises(InputError, match=word):
            read_release(path)


@pytest.mark.parametrize(("how", "rows"), [("drop", 580), ("class", 600)])
@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_rows_without_a_label_are_left_out_or_a_class(how, rows, suffix, tmp_path):
    """The true labels kept aside fit the release, and the letters of a text file stay."""
    table = frame(600).assign(price=[f"{i}.50" for i in range(600)])
    table.loc[:19, "label"] = None
    data, out, secret = (tmp_path / f"{name}.{suffix}" for name in ("d", "r", "s"))
    table.to_csv(data, index=False) if suffix == "csv" else table.to_parquet(data)
    options = ("--mechanism", "rr", "--epsilon", "2", "--keep", "price", "--secret", secret)
    status, printed = ran(data, "-o", out, *options, "--missing", how)
    assert status == 0, printed
    read = pd.read_csv if suffix == "csv" else pd.read_parquet
    released, true = read(out, dtype=str) if suffix == "csv" else read(out), read(secret)
    assert len(released) == len(true) == rows
    assert released["price"].tolist() == table["price"].tolist()[600 - rows :]
    expected = table["label"].dropna() if how == "drop" else table["label"].fillna("missing")
    assert (true["label"].tolist(), set(released["label"])) == (expected.tolist(), set(expected))


DOUBLE = {"mechanism": "double-rr", "noise": 0.4, "generator": "mixture"}
SEEDED = {"experimental": True, "seed": 3}


@pytest.fixture
def few(tmp_path):
    """A small table: fitting a mixture takes a second for 2,000 rows."""
    path, changed = tmp_path / "data.parquet", frame(600)
    changed.assign(town=changed["town"].astype("category")).to_parquet(path)
    return path


def made(few, suffix="parquet", **options):
    """Return the release and its sample."""
    output, beside = few.with_name("release.parquet"), few.with_name(f"sample.{suffix}")
    own = {"overwrite": True, "synthetic_out": beside, **DOUBLE, **options}
    privatize(PrivatizeRequest(str(few), output, **own))
    sample = pd.read_csv(beside) if suffix == "csv" else pd.read_parquet(beside)
    return pd.read_parquet(output), sample


def test_a_generator_trained_on_public_rows(few):
    public, output = few.with_name("public.parquet"), few.with_name("release.parquet")
    frame(600, seed=2).to_parquet(public)
    request = PrivatizeRequest(str(few), output, **DOUBLE, generator_data=str(public))
    warnings = privatize(request).warnings
    released, true = pd.read_parquet(output), pd.read_parquet(few)
    assert (released.dtypes == true.dtypes).all()
    # 600 rows: ±5 standard deviations, a false alarm in 2 million.
    assert abs((released["x"] != true["x"]).mean() - 0.4) < 0.1
    said = declared_json(output)["provenance"]["generator"]
    assert set(said) >= {"name", "version", "seed", "size", "trained_on"}
    assert (said["name"], said["size"], said["trained_on"]) == ("mixture", 600, "public")
    assert not any("private" in text for text in warnings)


@pytest.mark.parametrize("mechanism", ["double-rr", "dummy-features-rr"])
def test_private_training_is_declared_and_said(mechanism, few):
    true = pd.read_parquet(few)
    true["town"] = ["qztownkx", *true["town"].astype(str)[1:]]
    true.to_parquet(few)
    output, beside = few.with_name("r.parquet"), few.with_name("s.csv")
    options = ("--mechanism", mechanism, "--lambda", "0.3", "--generator", "mixture")
    sample = ("--synthetic-out", beside, "--synthetic-rows", "7")
    status, printed = ran(few, "-o", output, *options, *sample)
    assert (status, "trained on the private rows" in printed) == (0, True), printed
    assert "7 synthetic rows, none of them in the release" in printed
    assert len(pd.read_csv(beside)) == 7
    said = declared_json(output)
    assert said["provenance"]["generator"]["trained_on"] == "private"
    assert "qztownkx" not in json.dumps(said)


def test_experiments_can_be_repeated_with_or_without_the_sample(few):
    released, sample = made(few, **SEEDED)
    again, same = made(few, **SEEDED)
    pd.testing.assert_frame_equal(released, again)
    pd.testing.assert_frame_equal(sample, same)
    pd.testing.assert_frame_equal(released, made(few, **SEEDED, synthetic_rows=50)[0])
    (one, first), (other, second) = made(few), made(few)
    assert not one.equals(other)
    assert not first.equals(second)


class _Labels:
    """A generator whose rows tell the label that they stand for, and that they are new."""

    drawn = 0

    def sample(self, labels, _rng):
        first, self.drawn = self.drawn, self.drawn + len(labels)
        return pa.table({"label": labels, "number": np.arange(first, self.drawn)})


def test_every_synthetic_row_is_new_and_its_label_uniform():
    """Mechanism 2: y' uniform over the labels, whatever the true one, and x' drawn from P̂(x|y')."""
    made = _Labels()
    asked = ColumnRequest("d", Path("r"), mechanism="double-rr", **{"label": "label"} | SEEDED)
    rows = synthetic_rows(asked, pa.schema([]), ("a", "b", "c"), FittedGenerator(made, ()))
    mechanism, true = DoubleRR(("a", "b", "c"), 0.5), np.repeat([0, 1, 2], 4000).astype(np.int32)
    drawn = mechanism.sample(true, rows.labels, bit_source(np.random.default_rng(2)))
    new = drawn.synthetic_rows >= 0
    table = rows.take(drawn.synthetic_rows[new], 0)
    assert len(set(table["number"].to_pylist())) == new.sum()
    joint = np.histogram2d(true[new], table["label"].to_numpy(), bins=3)[0]
    expected = new.sum() / 9
    # χ² with 4 to 8 degrees of freedom: above 45 with probability below 1e-6.
    assert ((joint - expected) ** 2 / expected).sum() < 45


@pytest.mark.parametrize("suffix", ["parquet", "csv"])
def test_the_sample_looks_like_the_release_and_shares_no_row_with_it(suffix, few):
    released, sample = made(few, suffix)
    true = pd.read_parquet(few)
    assert list(sample) == list(released) == list(true)
    if suffix == "parquet":
        assert (sample.dtypes == released.dtypes).all()
        assert b"ldpaudit" not in (pq.read_schema(few.with_name("sample.parquet")).metadata or {})
    assert sample["label"].value_counts().to_dict() == {"no": 200, "perhaps": 200, "yes": 200}
    # x is continuous: a replaced row of the release has a value of its own.
    replaced = released["x"] != true["x"]
    assert replaced.sum() > 100
    assert not set(released["x"][replaced]) & set(sample["x"])
    said = declared_json(few.with_name("release.parquet"))["provenance"]["synthetic_sample"]
    assert said == {"rows": 600, "draws": "independent of the release"}


def test_the_sample_follows_the_label_that_a_row_was_made_for(few):
    _, sample = made(few, synthetic_rows=3000)
    middle = sample.groupby("label")["x"].mean()
    # x is a standard normal number plus the label's code: standard errors are about 0.1.
    assert np.allclose(middle[["no", "perhaps", "yes"]], [0, 1, 2], atol=0.6)


@pytest.mark.parametrize(
    ("step", "rows", "error"),
    [("fit", 0, GeneratorDivergedError), ("sample", 600, OutputError)],
)
def test_a_generator_that_fails_leaves_nothing(step, rows, error, few, monkeypatch):
    real = getattr(ClassMixtures, step)

    def failing(self, labels, *more, **options):
        if rows in (0, len(labels)):  # 600 are the sample's, not the release's.
            raise error("It failed.")
        return real(self, labels, *more, **options)

    monkeypatch.setattr(ClassMixtures, step, failing)
    options = ("--mechanism", "double-rr", "--lambda", "0.3", "--generator", "mixture")
    out = ("-o", few.with_name("r.csv"), "--synthetic-out", few.with_name("s.csv"))
    assert "failed" in refused("privatize", few, *out, *options, folder=few.parent)


def test_compare_trains_with_the_sample(few):
    """The sample is what the unbiased loss needs: the model is about as good as on true rows."""
    public, test = few.with_name("public.parquet"), few.with_name("test.parquet")
    frame(600, seed=2).to_parquet(public)
    frame(2000, seed=3).to_parquet(test)
    options = {"noise": 0.2, "experimental": True, "seed": 1}
    made(few, "csv", generator_data=str(public), **options)
    double, plain = few.with_name("release.parquet"), few.with_name("rr.parquet")
    privatize(PrivatizeRequest(str(few), plain, "randomized-response", **options))
    comparison = compare(
        CompareRequest(
            inputs=(str(plain), str(double)),
            truth=str(few),
            test=str(test),
            synthetic=(str(few.with_name("sample.csv")),),
            only=("mechanism",),
            threads=1,
        )
    )
    found = comparison.releases[1].estimate("test_accuracy")
    assert "unbiased" in found.method
    # The best guess from x alone is right for 59 % of the rows, the majority for a third.
    assert found.value > 0.5


@pytest.mark.parametrize(
    ("name", "said"),
    [("r", True), ("r.2026", True), ("r.csv", False), ("r.pq", False), ("r.feather", False)],
)
def test_a_name_that_names_no_format_is_said_to_be_parquet(name, said, tmp_path):
    data = tmp_path / "d.csv"
    frame(200).to_csv(data, index=False)
    secret = tmp_path / f"true {name}"
    status, printed = ran(data, "-o", tmp_path / name, "--secret", secret, *RR)
    assert status == 0
    assert printed.count("as Parquet, since the ending of its name") == 2 * said
    assert pq.read_table(tmp_path / name).num_rows == 200 if said else True
