"""What is privatized passes its own audit; a wrong claim about it does not."""

import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from commands.privatize.conftest import frame

import ldpaudit
from ldpaudit import cli
from ldpaudit.commands.privatize.request import PrivatizeRequest
from ldpaudit.commands.privatize.work import privatize
from ldpaudit.datasets import declare, read_release
from ldpaudit.mechanisms import from_declaration
from ldpaudit.release import Declaration


def audit(monkeypatch: pytest.MonkeyPatch, *words: Any) -> int:
    fast = ("--only", "mechanism", "--only", "power", "--quiet")
    monkeypatch.setattr(sys, "argv", ["ldpaudit", "run", *map(str, words), *fast])
    with pytest.raises(SystemExit) as stopped:
        cli.main()
    return int(stopped.value.code or 0)


def claiming(path: Path, epsilon: float) -> Path:
    """Copy a release with another claim."""
    table = pq.read_table(path)
    name = read_release(path).release.label
    claim = Declaration("randomized-response", {"epsilon": epsilon})
    wrong = path.with_name("wrong.parquet")
    pq.write_table(declare(table.replace_schema_metadata(None), claim, name), wrong)
    return wrong


# A true claim is refuted with probability below 5 %, here with fixed draws.
def test_a_release_passes_and_a_wrong_claim_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data, secret, output = (tmp_path / f"{name}.parquet" for name in ("data", "secret", "release"))
    frame(3000).to_parquet(data)
    options: dict[str, Any] = {"epsilon": 2.0, "experimental": True, "seed": 1}
    privatize(PrivatizeRequest(str(data), output, "randomized-response", secret=secret, **options))
    assert audit(monkeypatch, output, "--truth", secret) == 0
    assert audit(monkeypatch, claiming(output, 1.0), "--truth", secret) == 1


def test_csv_becomes_a_typed_release(tmp_path: Path) -> None:
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


def test_an_audit_tells_what_the_prior_spent_and_that_it_was_an_experiment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
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
    assert any("experiment" in text for text in reading.warnings)
    mechanism = from_declaration(reading.release.declaration, ())
    assert mechanism.epsilon == summary.columns.first.mechanism.epsilon == 1.5
    notes = ldpaudit.audit(output, only=["mechanism"]).notes
    assert any("another ε = 0.5" in note.text for note in notes)


def test_types_of_labels_survive(tmp_path: Path) -> None:
    rows = 400
    columns: dict[str, pa.Array] = {
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
        assert released.type == kind
        assert set(released.to_pylist()) == set(column.to_pylist())
        reading = read_release(output)
        assert len(reading.release.classes) == len(set(column.to_pylist()))


@pytest.mark.real_data
@pytest.mark.validate
def test_adult(shared_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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
    assert audit(monkeypatch, output, "--truth", secret) == 0
    assert audit(monkeypatch, claiming(output, 0.5), "--truth", secret) == 1
