"""A release that is drawn from a key is drawn again from it, whatever the file and mechanism."""

from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from extras.release.privatize.conftest import frame, ran
from extras.release.privatize.test_round_trip import CASES, WEEKS

from ldpaudit.datasets import write_release
from ldpaudit.extras.kinds.mechanisms.with_features import STAGED
from ldpaudit.extras.receipt import drawing
from ldpaudit.extras.receipt.replay import replay
from ldpaudit.mechanisms import registry
from ldpaudit.mechanisms.keyed import BLOCK_ROWS

RR = ("--mechanism", "rr", "--epsilon", "1")


@pytest.fixture
def tables(tmp_path, monkeypatch):
    """A table with true labels, and the files that mechanisms need, in the current folder."""
    monkeypatch.chdir(tmp_path)
    data = frame(400)
    data["person"] = [f"p{i}" for i in np.random.default_rng(5).permutation(len(data))]
    data["income"] = np.random.default_rng(6).random(len(data)) * 10
    data.to_parquet("data.parquet")
    frame(300, seed=2).to_parquet("public.parquet")
    lines = [f"{week},{probability}" for week, probability in enumerate([0.5, *[0.05] * 10])]
    Path("prior.csv").write_text("\n".join(["label,probability", *lines]))
    Path("channel.csv").write_text(",False,True\nFalse,0.7,0.3\nTrue,0.1,0.9\n")
    return tmp_path


def made(*words, release="r.parquet", secret="t.parquet", data="data.parquet"):
    """Make a release and keep its key."""
    status, printed = ran(data, "-o", release, "--secret", secret, "--overwrite", *words)
    assert status == 0, printed
    return release, secret


STAGES = ("--mechanism", "model-based-rr", "--stages", "3", "--epsilon", "1")
FORMS = {
    **{name: ("--mechanism", name, *words) for name, words in CASES.items()},
    "multi-stage-rr": STAGES,
    "clipped": (*WEEKS, "--mechanism", "discrete-laplace", "--epsilon", "1", "--clip"),
    "steps": ("--label", "weeks", "--labels", "0:10:0.5", "--mechanism", "discrete-laplace",
              "--epsilon", "1"),
    "rounded": ("--label", "income", "--labels", "0:10:1", "--mechanism", "optimal-unbiased",
                "--epsilon", "1", "--round", "unbiased"),
    "rounded noise": ("--label", "income", "--labels", "0:10:1", "--mechanism",
                      "discrete-staircase", "--epsilon", "1", "--round", "nearest"),
    "rounded prior": ("--label", "income", "--labels", "0:10:1", "--mechanism",
                      "optimal-unbiased", "--epsilon", "1", "--round", "unbiased",
                      "--private-prior", "auto"),
    "any number": ("--label", "income", "--labels", "0:10", "--mechanism", "laplace",
                   "--epsilon", "1"),
    "two columns": ("--label", "label:rr:epsilon=1", "--label",
                    "weeks:discrete-laplace:epsilon=0.5:labels=0:12"),
    "joint-rr": ("--joint", "joint-rr", "--epsilon", "1", "--label", "label", "--label", "flag"),
    "rs-fd": ("--joint", "rs-fd", "--epsilon", "1", "--label", "label", "--label", "flag"),
    "an id": (*RR, "--id", "person"),
    "mixture": ("--mechanism", "double-rr", "--epsilon", "1", "--drop", "person", "--generator",
                "mixture"),
}  # fmt: skip
for _name in ("double-rr", "model-based-rr"):
    FORMS[_name] = (*FORMS[_name], "--drop", "person", "--drop", "income")
FORMS["model-based-rr"] = (*FORMS["model-based-rr"], "--posterior-out", "posterior.parquet")
FORMS["gaussian-rr"] = (*FORMS["gaussian-rr"], "--drop", "person")
# What privatize does not draw; strata are tested by themselves.
NOT_APPLIED = {"unknown", "label-proportions", "frequency-oracle"}


def replayed(release, secret):
    """Draw the noise again, with the probabilities of the public model where there are some."""
    place, known = Path("posterior.parquet"), None
    if place.exists():
        known = pq.read_table(place).to_pandas().to_numpy()
    return replay(release, secret, posterior=known)


IN_FILES = [
    *((name, "parquet") for name in FORMS),
    *(
        (name, "csv")
        for name in ("laplace", "steps", "two columns", "joint-rr", "rounded", "multi-stage-rr")
    ),
    *((name, ending) for name in ("an id", "any number") for ending in ("feather", "jsonl")),
]


@pytest.mark.parametrize(("name", "ending"), IN_FILES)
def test_every_release_is_proven(name, ending, tables):
    if name == "gaussian-rr":
        pytest.importorskip("opendp")
    release, secret = made(*FORMS[name], release=f"r.{ending}", secret=f"t.{ending}")
    found = replayed(release, secret)
    assert found.proven, found
    assert found.sealed
    assert {one.equal for one in found.columns} == {400}


@pytest.mark.validate
@pytest.mark.parametrize("name", FORMS)
def test_five_draws_of_every_mechanism_are_proven(name, tables):
    for _ in range(5):
        assert replayed(*made(*FORMS[name])).proven


@pytest.mark.parametrize("name", registry.names())
def test_every_mechanism_is_replayed_or_not_applied(name, tables):
    """What privatize can draw has a form above; of the rest it says in one line that it cannot."""
    assert (name in FORMS or name == "by-stratum") is (name not in NOT_APPLIED)
    if name in NOT_APPLIED:
        words = ("--label", "label", "--mechanism", name, "--epsilon", "1")
        status, printed = ran("data.parquet", "-o", "r.parquet", "--secret", "t.parquet", *words)
        assert (status, len(printed.strip().splitlines())) == (2, 1), printed


def test_stages_are_proven_whatever_the_order_of_the_rows(tables):
    made(*STAGES, "--id", "person")
    table = pq.read_table("r.parquet")
    order = np.random.default_rng(0).permutation(len(table))
    write_release(table.take(pa.array(order)), "r.parquet", overwrite=True)
    found = replay("r.parquet", "t.parquet")
    assert (found.proven, found.reordered) == (True, True)


@pytest.mark.parametrize("row", [0, 399])
def test_a_label_of_any_stage_that_is_changed_is_found(row, tables):
    """Models are learnt from the labels that are drawn, not from the released ones."""
    made(*STAGES)
    table = pq.read_table("r.parquet")
    labels = table.column("label").to_pylist()
    labels[row] = "yes" if labels[row] != "yes" else "no"
    place = table.schema.get_field_index("label")
    write_release(table.set_column(place, "label", pa.array(labels)), "r.parquet", overwrite=True)
    found = replay("r.parquet", "t.parquet")
    assert (found.status, found.columns[0].places.tolist()) == ("changed", [row])


def test_another_model_of_a_stage_accuses_nobody(tables):
    made(*STAGES)
    table = pq.read_table("r.parquet")
    place = table.schema.get_field_index("x")
    x = table.column("x").to_numpy()
    write_release(table.set_column(place, "x", pa.array(-x[::-1])), "r.parquet", overwrite=True)
    found = replay("r.parquet", "t.parquet")
    assert found.status == "impossible"
    assert "features were changed" in found.reason
    write_release(table.slice(1), "r.parquet", overwrite=True)
    found = replay("r.parquet", "t.parquet")
    assert (found.status, found.columns) == ("impossible", ())


def test_other_probabilities_of_a_public_model_accuse_nobody(tables):
    release, secret = made(*FORMS["model-based-rr"])
    assert "--public-posterior" in replay(release, secret).reason
    known = pq.read_table("posterior.parquet").to_pandas().to_numpy()
    found = replay(release, secret, posterior=known[::-1])
    assert (found.status, found.columns) == ("impossible", ())
    assert "probabilities" in found.reason


def test_strata_of_a_plan_are_proven(tables):
    Path("plan.toml").write_text(
        '[[labels]]\nlabel = "label"\nby = "town"\nmechanism = "rr"\n'
        "[labels.strata]\noslo = { epsilon = 1.0 }\nrome = { epsilon = 0.5 }\n"
        "bonn = { lambda = 0.6 }\n"
    )
    assert replay(*made("--plan", "plan.toml")).proven
    table = pq.read_table("r.parquet")
    towns = table.column("town").to_pylist()
    towns[7] = "rome" if towns[7] == "oslo" else "oslo"
    place = table.schema.get_field_index("town")
    write_release(table.set_column(place, "town", pa.array(towns)), "r.parquet", overwrite=True)
    found = replay("r.parquet", "t.parquet")
    assert (found.status, found.columns[0].places.tolist()) == ("changed", [7])


@pytest.mark.parametrize("kind", ["dates", "float32", "decimal", "int8", "categories", "bool text"])
def test_labels_of_every_type_are_sealed_and_proven(kind, tables):
    codes = np.random.default_rng(1).integers(0, 3, 300)
    days = np.array(["2020-01-31", "2021-02-28", "1999-12-31"], dtype="datetime64[D]")
    column = {
        "dates": pa.array(days[codes]),
        "float32": pa.array(np.array([0.1, -0.0, 2.5], np.float32)[codes]),
        "decimal": pa.array(np.array([0.25, 0.5, 3.0])[codes]).cast(pa.decimal128(6, 3)),
        "int8": pa.array(np.array([-1, 0, 7], np.int8)[codes]),
        "categories": pa.array(np.array(["b", "a", "ä"])[codes]).dictionary_encode(),
        "bool text": pa.array(np.array(["TRUE", "false", "Perhaps"])[codes]),
    }[kind]
    pq.write_table(pa.table({"x": np.arange(300) % 7, "label": column}), "data.parquet")
    for ending in ("parquet", "csv"):
        found = replay(*made(*RR, release=f"r.{ending}", secret=f"t.{ending}"))
        assert (found.proven, found.sealed) == (True, True), (kind, ending, found)


def test_noise_does_not_depend_on_how_the_data_is_cut(tables, monkeypatch):
    """Rows come in batches of any size: the noise is drawn in blocks of its own."""
    rows = 2 * BLOCK_ROWS + 1234
    rng = np.random.default_rng(0)
    data = pa.table(
        {
            "x": rng.random(rows),
            "town": pa.array(rng.choice(["a", "b", "c"], rows)).dictionary_encode(),
            "label": rng.choice(["no", "yes"], rows),
        }
    )
    pq.write_table(data, "data.parquet", row_group_size=10_007)
    made(*RR)
    assert replay("r.parquet", "t.parquet").proven
    released = pq.read_table("r.parquet")
    assert released.column("town").cast(pa.string()).equals(data.column("town").cast(pa.string()))
    for size in (1_003, 999_983):
        truth = pq.ParquetFile("t.parquet")
        pq.write_table(truth.read(), f"t{size}.parquet", row_group_size=size)
        pq.write_table(released, f"r{size}.parquet", row_group_size=size)
        assert replay(f"r{size}.parquet", f"t{size}.parquet").proven


def test_a_release_without_a_receipt_has_no_replay(tables):
    ran("data.parquet", "-o", "r.parquet", *RR)
    made(*RR, release="other.parquet")
    assert replay("r.parquet", "t.parquet") is None
    ran(
        "data.parquet", "-o", "e.parquet", *RR, "--experimental", "--seed", "1", "--secret", "e.csv"
    )
    assert replay("e.parquet", "e.csv") is None
    assert not Path("e.csv.ldpaudit.json").exists()


def test_data_frames_and_tables_in_memory_are_replayed(tables):
    made(*RR)
    release, truth = pq.read_table("r.parquet"), pq.read_table("t.parquet")
    assert replay(release, truth).proven
    found = replay(release, pd.read_parquet("t.parquet"))
    assert found.status == "impossible"
    assert "no key" in found.reason


@pytest.mark.parametrize("ending", ["parquet", "csv", "feather"])
def test_remembered_answers_are_told_from_new_ones(ending, tables):
    words = (*RR, "--id", "person", "--remember", "memory.bin")
    truths = [f"t{year}.{ending}" for year in (1, 2)]
    made(*words, release="r1.parquet", secret=truths[0])
    assert replay("r1.parquet", truths[0]).proven
    old, data = (pd.read_parquet("data.parquet") for _ in range(2))
    data.loc[:49, "label"] = np.roll(data.loc[:49, "label"], 1)
    data.to_parquet("data.parquet")
    made(*words, release="r2.parquet", secret=truths[1])
    found = replay("r2.parquet", truths[1])
    assert (found.status, found.columns[0].changed) == ("partly", 0)
    assert 350 <= found.repeated < 390
    # Repeated answers were not drawn from this key, and do not count as drawn again.
    assert found.columns[0].rows == found.columns[0].equal == 400 - found.repeated
    table = pq.read_table("r2.parquet")
    labels = table.column("label").to_pylist()
    # A row whose true label is another one gets a new answer.
    before = pq.read_table("r1.parquet").column("person").to_pylist()
    assert before == table.column("person").to_pylist()
    fresh = next(i for i in range(50) if data["label"][i] != old["label"][i])
    labels[fresh] = "yes" if labels[fresh] != "yes" else "no"
    place = table.schema.get_field_index("label")
    write_release(table.set_column(place, "label", pa.array(labels)), "r2.parquet", overwrite=True)
    changed = replay("r2.parquet", truths[1])
    assert (changed.status, changed.columns[0].places.tolist()) == ("changed", [fresh])


def test_a_staged_mechanism_of_another_package_is_probed_with_its_own_bits():
    mechanism = STAGED((0, 1, 2), 1.0, 3)
    draw = drawing._probe(mechanism)
    words = drawing._Counted()
    assert set(np.unique(draw(words))) <= {0, 1, 2}
    assert words.requests > 0
    assert drawing._pure(mechanism)
