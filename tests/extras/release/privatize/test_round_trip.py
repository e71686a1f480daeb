"""Every mechanism: applied, declared, its ε recomputed from the declaration, and audited."""

import json
import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from extras.release.privatize.conftest import ROWS, audit, declared, declared_json, frame, ran
from processes import refused

import ldpaudit
from ldpaudit.datasets import declare, read_release
from ldpaudit.datasets.probabilities import with_public_posterior
from ldpaudit.extras.release.privatize.request import PrivatizeRequest
from ldpaudit.extras.release.privatize.work import privatize
from ldpaudit.mechanisms import from_declaration
from ldpaudit.mechanisms.registry import applicable
from ldpaudit.release import Declaration

GRID = ("--labels", "0:10:1")
WEEKS = ("--label", "weeks", *GRID)
CASES = {
    "randomized-response": ("--epsilon", "1.5"),
    "rr-top-k": (*WEEKS, "--epsilon", "1.5", "--private-prior", "0.5"),
    "model-based-rr": ("--epsilon", "1.5", "--public", "public.parquet"),
    "double-rr": ("--epsilon", "1.5", "--synthetic", "public.parquet"),
    "dummy-features-rr": ("--epsilon", "1.5"),
    "rr-on-bins": (*WEEKS, "--epsilon", "1.5", "--prior", "prior.csv"),
    "optimal-unbiased": (*WEEKS, "--epsilon", "1.5", "--private-prior", "0.5"),
    "debiased-rr": (*WEEKS, "--epsilon", "1.5"),
    "laplace": (*WEEKS, "--epsilon", "1.5"),
    "discrete-laplace": (*WEEKS, "--epsilon", "1.5", "--clip"),
    "staircase": (*WEEKS, "--epsilon", "1.5"),
    "discrete-staircase": (*WEEKS, "--epsilon", "1.5"),
    "exponential": (*WEEKS, "--epsilon", "1.5"),
    "gaussian-rr": (
        "--epsilon", "1.5", "--drop", "town", "--drop", "flag", "--radius", "50", "--project",
        "--sigma", "80", "--delta", "1e-5",
    ),
    "channel": ("--label", "flag", "--channel", "channel.csv"),
}  # fmt: skip
LABELS_GET = {"rr-top-k": 1.0, "optimal-unbiased": 1.0, "channel": math.log(7)}


@pytest.fixture
def tables(data, monkeypatch):
    """The files that the cases name, in the current folder."""
    monkeypatch.chdir(data.parent)
    frame(300, seed=2).to_parquet("public.parquet")
    lines = [f"{week},{probability}" for week, probability in enumerate([0.5, *[0.05] * 10])]
    Path("prior.csv").write_text("\n".join(["label,probability", *lines]))
    Path("channel.csv").write_text(",False,True\nFalse,0.7,0.3\nTrue,0.1,0.9\n")
    return data


def test_every_mechanism_has_a_case():
    assert set(CASES) == set(applicable())


@pytest.mark.parametrize("name", CASES)
def test_the_declared_epsilon_is_recomputed(name, tables):
    if name == "gaussian-rr":
        pytest.importorskip("opendp")
    if name == "gaussian-rr":  # OpenDP draws 20,000 numbers a second.
        frame(200).to_parquet(tables)
    status, printed = ran(tables, "-o", "release.parquet", "--mechanism", name, *CASES[name])
    assert status == 0, printed
    found = declared(Path("release.parquet"))
    mechanism = from_declaration(found.mechanism, ())
    assert mechanism.name == name
    assert mechanism.epsilon == pytest.approx(LABELS_GET.get(name, 1.5), abs=1e-12)
    # What was applied is what is declared: not a digit is lost on the way.
    assert from_declaration(found.mechanism, ()).description in printed
    parts = found.provenance.get("epsilon")
    if parts is not None:
        assert parts["labels"] == mechanism.epsilon
        assert parts["total"] == pytest.approx(1.5, abs=1e-12)
    true, release = pq.read_table(tables), pq.read_table("release.parquet")
    dropped = {"town", "flag"} if name == "gaussian-rr" else set()
    assert release.column_names == [c for c in true.column_names if c not in dropped]
    assert len(release) == len(true)


@pytest.mark.parametrize(
    ("label", "stated", "classes"),
    [
        ("label", "", ["no", "perhaps", "yes"]),
        ("label", "never,no,perhaps,yes", ["never", "no", "perhaps", "yes"]),
        ("flag", "", [False, True]),
        ("weeks", "", [*range(11)]),
    ],
)
def test_classes_come_from_the_data_or_are_declared(label, stated, classes, tables):
    options = ("--label", label, "--mechanism", "randomized-response", "--epsilon", "1")
    more = ("--classes", stated) if stated else ()
    assert ran(tables, "-o", "r.parquet", *options, *more)[0] == 0
    found = declared(Path("r.parquet"))
    assert found.mechanism.parameters["classes"] == classes
    origin = {"randomness": "operating system", "classes": "declared" if stated else "data"}
    assert found.provenance == origin
    assert set(pq.read_table("r.parquet")[label].to_pylist()) == set(classes)


def applied(path, **options):
    """Apply a mechanism with a seed and return the release."""
    output = path.with_name("applied.parquet")
    common = {"experimental": True, "seed": 5, "overwrite": True}
    privatize(PrivatizeRequest(str(path), output, **{**common, **options}))
    return pq.read_table(output)


def test_a_seed_gives_the_same_release_again_and_another_seed_another(data):
    options = {"mechanism": "randomized-response", "epsilon": 1.0}
    first, again = applied(data, **options), applied(data, **options)
    assert first.equals(again)
    assert not applied(data, **options, seed=6).equals(first)
    plain = {**options, "experimental": False, "seed": None}
    assert not applied(data, **plain)["label"].equals(applied(data, **plain)["label"])
    # An experiment is declared, without its seed.
    applied(data, **options, seed=987654321)
    output = data.with_name("applied.parquet")
    assert declared(output).provenance["randomness"] == "experimental generator"
    assert b"987654321" not in output.read_bytes()


# With 1,000 rows and a fixed seed these frequencies are facts, not draws; the tolerance of 5
# standard deviations says that they are plausible ones.
def test_labels_follow_the_channel(data):
    release = applied(data, mechanism="randomized-response", noise=0.3).to_pandas()
    true = frame()
    kept = float((release["label"] == true["label"]).mean())
    assert abs(kept - 0.8) < 5 * math.sqrt(0.16 / ROWS)
    same = ["x", "town", "count", "weeks", "flag"]
    pd.testing.assert_frame_equal(release[same], true[same], check_dtype=False)


def test_channel_rows_are_read_by_label(data, tmp_path):
    channel = tmp_path / "c.csv"
    channel.write_text(",maybe,no,yes\nyes,0.5,0.1,0.4\nno,0.3,0.6,0.1\nperhaps,0.3,0.4,0.3\n")
    release = applied(data, mechanism="channel", channel=channel).to_pandas()
    shares = pd.crosstab(frame()["label"], release["label"], normalize="index")
    assert abs(shares.loc["yes", "maybe"] - 0.5) < 0.1
    assert abs(shares.loc["no", "no"] - 0.6) < 0.1
    assert abs(shares.loc["perhaps", "no"] - 0.4) < 0.1


def test_noise_is_unbiased_and_on_its_grid(data):
    options = {"label": "weeks", "labels": "0:10", "epsilon": 4.0}
    released = applied(data, mechanism="discrete-laplace", **options)["weeks"]
    assert released.type == pa.int64()
    error = released.to_numpy() - frame()["weeks"].to_numpy()
    assert error.min() < 0 < error.max()
    assert abs(error.mean()) < 5 * error.std() / math.sqrt(ROWS)
    clipped = applied(data, mechanism="discrete-laplace", clipped=True, **options)["weeks"]
    assert 0 <= clipped.to_numpy().min() <= clipped.to_numpy().max() <= 10


def test_double_rr_replaces_whole_rows(data, tmp_path):
    rows = 3
    synthetic = frame().iloc[:rows].assign(x=[1e6, 2e6, 3e6], town="mars", count=-1, weeks=-1)
    synthetic["label"] = ["no", "perhaps", "yes"]
    synthetic.to_parquet(tmp_path / "s.parquet")
    options = {"synthetic": str(tmp_path / "s.parquet"), "noise": 0.25}
    release = applied(data, mechanism="double-rr", **options).to_pandas()
    new = release["town"] == "mars"
    assert abs(new.mean() - 0.25) < 5 * math.sqrt(0.1875 / ROWS)
    assert (release.loc[new, ["count", "weeks"]] == -1).all().all()
    assert (release.loc[new, "x"] >= 1e6).all()
    same = ["x", "town", "count", "weeks"]
    kept = frame().loc[~new, same]
    pd.testing.assert_frame_equal(release.loc[~new, same], kept, check_dtype=False)
    # Which rows are new does not depend on the released label.
    shares = pd.crosstab(release["label"], new, normalize="index")[True]
    assert shares.max() - shares.min() < 0.1


def test_dummy_features_say_nothing(data, tmp_path):
    release = applied(data, mechanism="dummy-features-rr", epsilon=1.0)
    assert all(release[name].null_count == ROWS for name in release.column_names if name != "label")
    synthetic = frame().iloc[:6].assign(town="mars")
    synthetic.loc[:, "label"] = ["no", "perhaps", "yes"] * 2
    synthetic.to_parquet(tmp_path / "s.parquet")
    path = str(tmp_path / "s.parquet")
    release = applied(data, mechanism="dummy-features-rr", epsilon=1.0, synthetic=path)
    assert set(release["town"].to_pylist()) == {"mars"}
    assert set(release["x"].to_pylist()) == set(synthetic["x"])


def test_model_based_rr_draws_from_the_model(data, tmp_path):
    public = frame(1500, seed=9)
    public["label"] = np.where(public["town"] == "oslo", "no", "yes")
    public.loc[:4, "label"] = "perhaps"
    public.to_parquet(tmp_path / "p.parquet")
    options = {"public": str(tmp_path / "p.parquet"), "noise": 1.0, "floor": 0.01}
    options["posterior_out"] = tmp_path / "model.parquet"
    release = applied(data, mechanism="model-based-rr", **options).to_pandas()
    shares = pd.crosstab(release["town"], release["label"], normalize="index")
    assert shares.loc["oslo", "no"] > 0.9
    assert shares.loc["rome", "yes"] > 0.9
    known = read_release(tmp_path / "applied.parquet").release
    posterior = with_public_posterior(known, tmp_path / "model.parquet").public_posterior
    assert posterior is not None
    likeliest = np.array(known.classes)[posterior.argmax(axis=1)]
    assert (likeliest == np.where(release["town"] == "oslo", "no", "yes")).mean() > 0.9


def test_gaussian_noise_is_that_of_sigma(tmp_path):
    rng = np.random.default_rng(0)
    table = pa.table(
        {
            "label": ["a", "b"] * 500,
            "x": rng.standard_normal(1000),
            "v": pa.array(list(rng.standard_normal((1000, 3)))),
        }
    )
    pq.write_table(table, tmp_path / "g.parquet")
    options = {"radius": 3.0, "sigma": 5.0, "delta": 1e-6, "project": True}
    release = applied(tmp_path / "g.parquet", mechanism="gaussian-rr", epsilon=1.0, **options)
    noisy = np.column_stack([release["x"].to_numpy(), *np.stack(release["v"].to_numpy()).T])
    assert noisy.shape == (1000, 4)
    # 4,000 draws: five standard deviations of their own standard deviation.
    assert abs(noisy.std() - 5.0) < 5 * 5 / math.sqrt(2 * 4000) + 0.2
    found = declared(tmp_path / "applied.parquet").mechanism.parameters
    assert found["sigma"] == 5.0
    assert from_declaration(declared(tmp_path / "applied.parquet").mechanism, ()).claim_holds()


def claiming(path, epsilon):
    """Copy a release with another claim."""
    table = pq.read_table(path)
    name = read_release(path).release.label
    claim = Declaration("randomized-response", {"epsilon": epsilon})
    wrong = path.with_name("wrong.parquet")
    pq.write_table(declare(table.replace_schema_metadata(None), claim, name), wrong)
    return wrong


# A true claim is refuted with probability below 5 %, here with fixed draws.
def test_a_release_passes_and_a_wrong_claim_fails(tmp_path, monkeypatch):
    data, secret, output = (tmp_path / f"{name}.parquet" for name in ("data", "secret", "release"))
    frame(3000).to_parquet(data)
    options = {"epsilon": 2.0, "experimental": True, "seed": 1}
    privatize(PrivatizeRequest(str(data), output, "randomized-response", secret=secret, **options))
    assert audit(output, "--truth", secret) == 0
    assert audit(claiming(output, 1.0), "--truth", secret) == 1


def test_csv_becomes_a_typed_release(tmp_path):
    true = frame(500)
    true.loc[3, "x"] = None
    true.to_csv(tmp_path / "data.csv.gz", index=False)
    output, secret = tmp_path / "release.parquet", tmp_path / "secret.parquet"
    path = str(tmp_path / "data.csv.gz")
    privatize(PrivatizeRequest(path, output, "randomized-response", noise=1.0, secret=secret))
    released = pd.read_parquet(output)
    same = ["x", "town", "count", "weeks", "flag"]
    pd.testing.assert_frame_equal(released[same], true[same])
    reading = read_release(output, truth=secret)
    assert reading.release.classes == ("no", "perhaps", "yes")


def test_an_audit_tells_what_the_prior_spent_and_that_it_was_an_experiment(tmp_path, monkeypatch):
    frame(1000).to_parquet(tmp_path / "data.parquet")
    output = tmp_path / "release.parquet"
    request = PrivatizeRequest(
        str(tmp_path / "data.parquet"),
        output,
        "rr-top-k",
        epsilon=2.0,
        private_prior=0.5,
        experimental=True,
        seed=2,
    )
    summary = privatize(request)
    assert summary.total_epsilon == 2.0
    reading = read_release(output)
    assert any("another ε = 0.5" in text and "ε = 2." in text for text in reading.warnings)
    assert reading.release.faults_of_making == ("experiment",)
    mechanism = from_declaration(reading.release.declaration, ())
    assert mechanism.epsilon == summary.columns.first.mechanism.epsilon == 1.5
    notes = ldpaudit.audit(output, only=["mechanism"]).notes
    assert any("another ε = 0.5" in note.text for note in notes)


def test_types_of_labels_survive(tmp_path):
    rows = 400
    columns = {
        "int8": pa.array([1, 2, 3, 4] * 100, pa.int8()),
        "float32": pa.array([0.1, 0.2, 0.3, 0.4] * 100, pa.float32()),
        "decimal": pa.array([1, 2, 3, 4] * 100).cast(pa.decimal128(21, 2)),
        "date": pa.array([0, 1, 2, 3] * 100, pa.int32()).cast(pa.date32()),
        "time": pa.array([0, 1, 2, 3] * 100, pa.int64()).cast(pa.timestamp("us", "UTC")),
        "text": pa.array(["01", "1.0", "x ", ""] * 100, pa.string()),
        "boolean": pa.array([True, False] * 200),
        "ordered": pa.DictionaryArray.from_arrays(
            pa.array([0, 1, 2, 0] * 100, pa.int8()), ["low", "mid", "high"], ordered=True
        ),
    }
    table = pa.table({**columns, "x": range(rows)})
    pq.write_table(table, tmp_path / "d.parquet")
    for name, column in columns.items():
        output = tmp_path / f"{name}.parquet"
        request = PrivatizeRequest(
            str(tmp_path / "d.parquet"),
            output,
            "randomized-response",
            label=name,
            epsilon=1.0,
            drop=tuple(set(columns) - {name}),
        )
        privatize(request)
        released = pq.read_table(output)[name]
        kind = pq.read_schema(tmp_path / "d.parquet").field(name).type
        if name == "ordered":  # Released classes are in the declared order, not in theirs.
            kind = pa.dictionary(pa.int8(), pa.string())
        assert (released.type, set(released.to_pylist())) == (kind, set(column.to_pylist()))
        reading = read_release(output)
        assert len(reading.release.classes) == len(set(column.to_pylist()))


@pytest.mark.real_data
@pytest.mark.validate
def test_adult(shared_data, tmp_path, monkeypatch):
    output, secret = tmp_path / "release.parquet", tmp_path / "secret.parquet"
    request = PrivatizeRequest(
        str(shared_data / "adult.parquet"),
        output,
        "randomized-response",
        label="income",
        epsilon=1.0,
        secret=secret,
        experimental=True,
        seed=1,
    )
    assert privatize(request).rows == 48_842
    true = pd.read_parquet(shared_data / "adult.parquet")
    released = pd.read_parquet(output)
    same = [name for name in true.columns if name != "income"]
    pd.testing.assert_frame_equal(released[same], true[same])
    assert audit(output, "--truth", secret) == 0
    assert audit(claiming(output, 0.5), "--truth", secret) == 1


def test_stages_learn_from_what_was_released_before(tables, tmp_path):
    words = ("--mechanism", "model-based-rr", "--stages", "3", "--epsilon", "1")
    seeded = ("--experimental", "--seed", "1")
    status, printed = ran(tables, "-o", "r.parquet", *words, *seeded)
    assert status == 0, printed
    claim = declared(Path("r.parquet")).mechanism
    assert (claim.name, claim.parameters["epsilon"], claim.parameters["stages"]) == (
        "multi-stage-rr",
        1.0,
        3,
    )
    assert "public.parquet" not in printed
    for more, said in (
        (("--public", "public.parquet"), "leave out --public"),
        (("--floor", "0.1"), "unknown"),
    ):
        status, printed = ran(tables, "-o", "s.parquet", *words, *more)
        assert (status, said in printed) == (2, True), printed
    assert "--stages" in refused(
        "privatize", tables, "-o", "s.parquet", *words[:2], "--stages", "0", *words[4:]
    )


HIGH = 40
AMOUNTS = 700


@pytest.fixture
def revenue(tmp_path):
    """Skewed amounts in [0, 40], most of them no whole number, and a prior of whole ones."""
    rng = np.random.default_rng(5)
    x = rng.standard_normal(AMOUNTS)
    amounts = np.clip(np.exp(1.5 + 0.7 * x + rng.standard_normal(AMOUNTS)), 0, HIGH)
    pd.DataFrame({"x": x, "rev": amounts}).to_csv(tmp_path / "rev.csv", index=False)
    prior = np.bincount(np.rint(amounts).astype(int), minlength=HIGH + 1) + 1.0
    pd.DataFrame({"label": np.arange(HIGH + 1), "probability": prior / prior.sum()}).to_csv(
        tmp_path / "prior.csv", index=False
    )
    return tmp_path / "rev.csv"


def words(path, name, *more):
    prior = (
        ("--prior", path.with_name("prior.csv"))
        if name in ("optimal-unbiased", "rr-on-bins")
        else ()
    )
    out = path.with_name(f"{name}.parquet")
    return (
        path,
        "-o",
        out,
        "--label",
        "rev",
        "--mechanism",
        name,
        "--labels",
        f"0:{HIGH}",
        *prior,
        *more,
    )


NAMES = [
    "optimal-unbiased",
    "rr-on-bins",
    "debiased-rr",
    "discrete-laplace",
    "discrete-staircase",
    "exponential",
]


# A true claim is refuted with probability below 5 %, here with fixed draws.
@pytest.mark.parametrize(
    "name",
    [pytest.param(one, marks=pytest.mark.validate if one in NAMES[3:] else ()) for one in NAMES],
)
def test_amounts_are_rounded_released_and_audited(name, revenue, monkeypatch):
    secret, draws = revenue.with_name("secret.parquet"), ("--experimental", "--seed", "3")
    options = ("--epsilon", "2", "--round", "unbiased", "--secret", secret, *draws)
    status, said = ran(*words(revenue, name, *options))
    assert (status, "rounded at random without bias" in said) == (0, True), said
    release = revenue.with_name(f"{name}.parquet")
    mechanism = declared_json(release)["mechanism"]
    assert mechanism["round"] == "unbiased"
    truth = pd.read_parquet(secret)["rev"].to_numpy()
    assert (truth % 1 != 0).mean() > 0.9
    assert audit(release, "--truth", secret) in (0, 3)
    if name in ("optimal-unbiased", "debiased-rr", "discrete-laplace"):
        released = pd.read_parquet(release)["rev"].to_numpy()
        error = released - truth
        # Unbiased: the mean error is within 5 standard errors of 0 (6e-7 by chance).
        assert abs(error.mean()) < 5 * error.std() / math.sqrt(len(error))


def test_a_claim_below_what_was_released_is_found(revenue, monkeypatch, tmp_path):
    secret, draws = revenue.with_name("secret.parquet"), ("--experimental", "--seed", "3")
    options = ("--epsilon", "4", "--round", "unbiased", "--secret", secret, *draws)
    assert ran(*words(revenue, "rr-on-bins", *options))[0] == 0
    path = revenue.with_name("rr-on-bins.parquet")
    table = pq.read_table(path)
    stated = json.loads(table.schema.metadata[b"ldpaudit"])
    stated["mechanism"]["epsilon"] = 1.0
    wrong = table.replace_schema_metadata({b"ldpaudit": json.dumps(stated).encode()})
    pq.write_table(wrong, tmp_path / "wrong.parquet")
    assert audit(tmp_path / "wrong.parquet", "--truth", secret) == 1


def test_nearest_and_the_priors_own_points(revenue):
    points = [0, 1, 2, 5, 10, 20, HIGH]
    pd.DataFrame({"label": points, "probability": [1 / 7] * 7}).to_csv(
        revenue.with_name("prior.csv"), index=False
    )
    options = ("--epsilon", "1", "--round", "nearest")
    assert ran(*words(revenue, "rr-on-bins", *options))[0] == 0
    mechanism = declared_json(revenue.with_name("rr-on-bins.parquet"))["mechanism"]
    assert (mechanism["classes"], mechanism["round"]) == (points, "nearest")


def test_the_private_priors_budget_by_the_theorem(revenue):
    out = revenue.with_name("auto.parquet")
    start = (revenue, "-o", out, "--label", "rev", "--mechanism", "optimal-unbiased")
    options = ("--labels", f"0:{HIGH}", "--round", "unbiased", "--private-prior", "auto")
    status, said = ran(*start, *options, "--epsilon", "1")
    assert status == 0, said
    first = math.sqrt((HIGH + 1) / AMOUNTS)
    assert f"private prior's ε = {first:.6g} the whole release comes to ε = 1 nats" in said
    parts = declared_json(out)["provenance"]["epsilon"]
    assert (parts["prior"], parts["total"]) == (pytest.approx(first), pytest.approx(1.0))
    assert "leaves nothing of 0.1" in refused(
        "privatize", *start, *options, "--epsilon", "0.1", "--overwrite"
    )


PEAK = """
import re, sys
from pathlib import Path
from ldpaudit.extras.release.privatize.scan import ReleasedColumns
from ldpaudit.extras.release.privatize.request import PrivatizeRequest
from ldpaudit.extras.release.privatize.work import privatize
output = Path(sys.argv[1]).with_suffix(".released.parquet")
both = ("label", "other")
# The models of a sample of rows take most of the time, and as much memory for any table.
ReleasedColumns.check = lambda _: ()
privatize(PrivatizeRequest(sys.argv[1], output, "randomized-response", label=both, epsilon=1.0))
status = Path("/proc/self/status").read_text()
print(int(re.search(r"VmHWM:\\s+(\\d+)", status)[1]) // 1024)
"""


def peak(folder, rows, columns):
    """Return the peak resident memory of a run in MiB; the input is one single row group."""
    if not Path("/proc/self/status").exists():
        pytest.skip("only Linux tells a process its own peak memory")
    rng = np.random.default_rng(0)
    private = {name: rng.integers(0, 2, rows) for name in ("label", "other")}
    table = pa.table({f"x{i}": rng.random(rows) for i in range(columns - 1)} | private)
    path = folder / f"{rows}.parquet"
    pq.write_table(table, path, row_group_size=rows)
    words = [sys.executable, "-c", PEAK, str(path)]
    return int(subprocess.run(words, check=True, capture_output=True, text=True).stdout)


@pytest.mark.validate
def test_memory_is_constant(tmp_path):
    # 500,000 more rows of 9 columns are 34 MiB if they are kept.
    assert peak(tmp_path, 600_000, 8) - peak(tmp_path, 100_000, 8) < 24


@pytest.mark.validate
def test_memory_is_constant_at_three_million_rows(tmp_path):
    assert peak(tmp_path, 3_000_000, 20) - peak(tmp_path, 300_000, 20) < 100
