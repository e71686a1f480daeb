"""Synthetic rows made by a generator that privatize fits itself."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from commands.privatize.conftest import Command, declared_json, frame
from commands.privatize.test_bad_input import refused

from ldpaudit.commands.privatize.features.generated_rows import GeneratedRows
from ldpaudit.commands.privatize.request import PrivatizeRequest
from ldpaudit.commands.privatize.work import privatize
from ldpaudit.errors import GeneratorDivergedError
from ldpaudit.mechanisms.exact_sampling import bit_source
from ldpaudit.mechanisms.response.double_rr import DoubleRR

DOUBLE: dict[str, Any] = {"mechanism": "double-rr", "noise": 0.4, "generator": "mixture"}


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A small table: fitting a mixture takes a second for 2,000 rows."""
    path = tmp_path / "data.parquet"
    frame(600).to_parquet(path)
    return path


def release(path: Path, **options: Any) -> tuple[pd.DataFrame, Any, tuple[str, ...]]:
    output = path.with_name("release.parquet")
    summary = privatize(PrivatizeRequest(str(path), output, **{"overwrite": True, **options}))
    return pd.read_parquet(output), declared_json(output), summary.warnings


def test_a_generator_trained_on_public_rows(data: Path) -> None:
    public = data.with_name("public.parquet")
    frame(600, seed=2).to_parquet(public)
    released, said, warnings = release(data, **DOUBLE, generator_data=str(public))
    true = pd.read_parquet(data)
    assert (released.dtypes == true.dtypes).all()
    features = ["x", "town", "count", "weeks", "flag"]
    same = (released[features] == true[features]).all(axis=1)
    # 600 rows: ±5 standard deviations, a false alarm in 2 million.
    assert abs(1 - same.mean() - 0.4) < 0.1
    made = said["provenance"]["generator"]
    assert set(made) >= {"name", "version", "seed", "size", "trained_on"}
    assert (made["name"], made["size"], made["trained_on"]) == ("mixture", 600, "public")
    assert not any("private" in text for text in warnings)


@pytest.mark.parametrize("mechanism", ["double-rr", "dummy-features-rr"])
def test_private_training_is_declared_and_said(
    mechanism: str, data: Path, command: Command
) -> None:
    output = data.with_name("r.parquet")
    options = ("--mechanism", mechanism, "--lambda", "0.3", "--generator", "mixture")
    status, printed = command(data, "-o", output, *options)
    assert status == 0, printed
    assert "trained on the private rows" in printed
    assert declared_json(output)["provenance"]["generator"]["trained_on"] == "private"


def test_no_training_row_is_in_the_declaration(data: Path) -> None:
    true = pd.read_parquet(data)
    true["town"] = ["qztownkx", *true["town"][1:]]
    true.to_parquet(data)
    _, said, _ = release(data, **DOUBLE)
    assert "qztownkx" not in json.dumps(said)


def test_experiments_can_be_repeated_and_releases_cannot(data: Path) -> None:
    first = release(data, **DOUBLE, experimental=True, seed=3)[0]
    again = release(data, **DOUBLE, experimental=True, seed=3)[0]
    pd.testing.assert_frame_equal(first, again)
    assert not release(data, **DOUBLE)[0].equals(release(data, **DOUBLE)[0])


class _Labels:
    """A generator whose rows tell the label that they stand for, and that they are new."""

    def __init__(self) -> None:
        self.drawn = 0

    def sample(self, labels: Any, _rng: np.random.Generator) -> pa.Table:
        first, self.drawn = self.drawn, self.drawn + len(labels)
        return pa.table({"label": labels, "number": np.arange(first, self.drawn)})


def test_every_synthetic_row_is_new_and_its_label_uniform() -> None:
    """Mechanism 2: y' uniform over the labels, whatever the true one, and x' drawn from P̂(x|y')."""
    made: Any = _Labels()
    rows = GeneratedRows(made, np.arange(3, dtype=np.int32), np.random.default_rng(1))
    mechanism, true = DoubleRR(("a", "b", "c"), 0.5), np.repeat([0, 1, 2], 4000).astype(np.int32)
    drawn = mechanism.sample(true, rows.labels, bit_source(np.random.default_rng(2)))
    new = drawn.synthetic_rows >= 0
    table = rows.take(drawn.synthetic_rows[new])
    assert len(set(table["number"].to_pylist())) == new.sum()
    joint = np.histogram2d(true[new], table["label"].to_numpy(), bins=3)[0]
    expected = new.sum() / 9
    # χ² with 4 to 8 degrees of freedom: above 45 with probability below 1e-6.
    assert ((joint - expected) ** 2 / expected).sum() < 45


def test_training_that_diverges_leaves_nothing(
    data: Path, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ldpaudit.synthesis.mixture import ClassMixtures

    def diverge(*_args: Any, **_options: Any) -> None:
        raise GeneratorDivergedError("Training the generator failed after 3 steps.")

    monkeypatch.setattr(ClassMixtures, "fit", diverge)
    options = ("--mechanism", "double-rr", "--lambda", "0.3", "--generator", "mixture")
    out = ("-o", data.parent / "r.parquet", "--secret", data.parent / "s.parquet")
    assert "failed" in refused(command, data.parent, data, *out, *options)


def test_bad_options(data: Path, command: Command) -> None:
    def message(*words: Any, name: str = "double-rr") -> str:
        out = ("-o", data.parent / "r.parquet", "--mechanism", name, "--lambda", "0.3")
        return refused(command, data.parent, data, *out, *words)

    assert "not both" in message("--generator", "gan", "--synthetic", data)
    assert "must come with --generator" in message("--generator-data", data)
    assert "does not belong" in message("--generator", "gan", name="randomized-response")
    assert "magic" in message("--generator", "magic")
    few = data.with_name("few.parquet")
    frame(30).to_parquet(few)
    # A class with fewer than 20 rows is refused by the generator.
    assert "20 rows" in message("--generator", "mixture", "--generator-data", few)
    pq.write_table(pq.read_table(data).drop_columns(["town"]), few)
    assert "column 2 of the data" in message("--generator", "mixture", "--generator-data", few)
    assert "is an input" in refused(
        command, data.parent, data, "-o", few, "--overwrite", "--mechanism", "double-rr",
        "--lambda", "0.3", "--generator", "mixture", "--generator-data", few,
    )  # fmt: skip
