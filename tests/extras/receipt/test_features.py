"""Features that a mechanism draws: compared in the replay, or named as not compared."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from extras.release.privatize.conftest import frame, ran
from processes import called

from ldpaudit.commands.outputs import Outputs
from ldpaudit.extras.receipt.replay import replay

DOUBLE = ("--mechanism", "double-rr", "--epsilon", "1")
DUMMY = ("--mechanism", "dummy-features-rr", "--epsilon", "1")
NAMES = {"parquet": ("r.parquet", "t.parquet"), "csv": ("r.csv", "t.csv")}


def rows_of(number, seed):
    """Features of many kinds: numbers of several widths, dates, texts with gaps, booleans."""
    rng = np.random.default_rng(seed)
    data = frame(number, seed)
    data["narrow"] = rng.random(number).astype(np.float32)
    data["day"] = np.datetime64("2024-01-01") + rng.integers(0, 900, number).astype("m8[D]")
    data["note"] = np.where(rng.random(number) < 0.3, None, rng.choice(["ä b", "c,d"], number))
    data["kind"] = pd.Categorical(rng.choice(["u", "v"], number))
    data["gap"] = np.where(rng.random(number) < 0.3, np.nan, rng.random(number))
    return data


@pytest.fixture
def tables(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows_of(400, 1).to_parquet("data.parquet")
    rows_of(300, 2).to_parquet("public.parquet")
    return tmp_path


def made(ending, *words):
    release, secret = NAMES[ending]
    status, printed = ran("data.parquet", "-o", release, "--secret", secret, *words)
    assert status == 0, printed
    return release, secret


@pytest.mark.parametrize("words", [DOUBLE, DUMMY])
@pytest.mark.parametrize("ending", NAMES)
def test_synthetic_rows_of_a_table_are_drawn_again(ending, words, tables):
    files = made(ending, *words, "--synthetic", "public.parquet")
    found = replay(*files, synthetic="public.parquet")
    assert (found.proven, found.features.changed, found.features.unseen) == (True, 0, "")
    # λ of the rows of double randomized response at ε = 1, all rows of dummy features.
    expected = 400 if words is DUMMY else 400 * 3 / (np.e + 2)
    assert abs(found.features.rows - expected) < 5 * np.sqrt(400 / 4)
    status, printed = called(
        "verify", files[0], "--truth", files[1], "--synthetic", "public.parquet", "--quiet"
    )
    assert status == 0
    assert f"400 released labels and {found.features.rows} synthetic rows are what" in printed


@pytest.mark.parametrize("ending", NAMES)
@pytest.mark.parametrize("column", ["x", "count", "narrow", "day", "note", "kind", "flag", "gap"])
def test_a_synthetic_cell_that_is_changed_is_found(column, ending, tables):
    files = made(ending, *DUMMY, "--synthetic", "public.parquet")
    table = pq.read_table(files[0]) if ending == "parquet" else pd.read_csv(files[0])
    data = table.to_pandas() if ending == "parquet" else table
    cells = data[column].to_list()
    other = next(i for i, cell in enumerate(cells) if str(cell) != str(cells[0]))
    cells[0] = cells[other]
    if ending == "parquet":
        place = table.schema.get_field_index(column)
        new = pa.array(cells, from_pandas=True).cast(table.schema.field(column).type)
        pq.write_table(table.set_column(place, column, new), files[0])
    else:
        data[column] = cells
        data.to_csv(files[0], index=False)
    found = replay(*files, synthetic="public.parquet")
    assert (found.status, found.features.changed, found.columns[0].changed) == ("changed", 1, 0)
    words = ("--synthetic", "public.parquet", "--quiet")
    status, printed = called("verify", files[0], "--truth", files[1], *words)
    assert status == 3
    assert "the features of 1 of 400 synthetic rows are not those that were drawn" in printed


@pytest.mark.parametrize(
    ("words", "part"),
    [
        ((*DOUBLE, "--synthetic", "public.parquet"), "given with --synthetic"),
        ((*DUMMY, "--synthetic", "public.parquet"), "given with --synthetic"),
        ((*DOUBLE, "--generator", "mixture", "--drop", "day"), "which a generator made"),
        (("--mechanism", "gaussian-rr", "--epsilon", "1", "--radius", "50", "--project", "--sigma",
          "80", "--delta", "1e-5", *[w for name in ("town", "day", "note", "kind", "gap")
                                     for w in ("--drop", name)]), "OpenDP draws"),
    ],
)  # fmt: skip
def test_what_is_not_compared_is_named(words, part, tables):
    if "gaussian-rr" in words:
        pytest.importorskip("opendp")
    files = made("parquet", *words)
    status, printed = called("verify", *files[:1], "--truth", files[1], "--json", "v.json")
    assert status == 0, printed
    assert printed.count("; not compared: ") == 1
    Outputs(json=Path("v.json")).check()  # A later run may replace it.
    stored = json.loads(Path("v.json").read_text())
    assert part in stored["not_compared"]
    assert stored["sentence"].endswith(f"; not compared: {stored['not_compared']}.")


@pytest.mark.parametrize("ending", NAMES)
def test_features_that_are_withheld_are_not_there(ending, tables):
    release, secret = made(ending, *DUMMY)
    found = replay(release, secret)
    assert (found.proven, found.features.withheld) == (True, True)
    status, printed = called("verify", release, "--truth", secret, "--quiet")
    assert (status, "400 released labels, and no features, are what" in printed) == (0, True)
    if ending == "parquet":
        table = pq.read_table(release)
        true = pq.read_table("data.parquet").column("x")
        pq.write_table(table.set_column(0, "x", true), release)
        found = replay(release, secret)
        assert "not compared" not in found.reason
        assert found.features.unseen
        assert not found.features.withheld


def test_another_table_of_synthetic_rows_is_found(tables):
    files = made("parquet", *DOUBLE, "--synthetic", "public.parquet")
    rows_of(300, 3).to_parquet("other.parquet")
    found = replay(*files, synthetic="other.parquet")
    assert found.status == "changed"
    assert found.features.changed > 100
    frame(300, 3).to_parquet("narrow.parquet")
    found = replay(*files, synthetic="narrow.parquet")
    assert (found.proven, "other columns" in found.features.unseen) == (True, True)


def test_run_compares_them_too(tables):
    files = made("parquet", *DOUBLE, "--synthetic", "public.parquet")
    words = ("--truth", files[1], "--only", "mechanism", "--quiet", "--json", "a.json")
    called("run", files[0], *words, "--synthetic", "public.parquet")
    reasons = [check["reason"] for check in json.loads(Path("a.json").read_text())["checks"]]
    assert any("synthetic rows are what the declared mechanism draws" in one for one in reasons)
    called("run", files[0], *words)
    reasons = [check["reason"] for check in json.loads(Path("a.json").read_text())["checks"]]
    assert any("not compared: the synthetic features" in one for one in reasons)
