"""Synthetic rows of a generator that privatize fits, in a release and in a sample beside it."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from commands.privatize.conftest import Command, declared_json, frame, refused

from ldpaudit.commands.compare.work import compare
from ldpaudit.commands.privatize.features import FittedGenerator, synthetic_rows
from ldpaudit.commands.privatize.request import PrivatizeRequest
from ldpaudit.commands.privatize.work import privatize
from ldpaudit.commands.requests import CompareRequest
from ldpaudit.errors import GeneratorDivergedError, OutputError
from ldpaudit.mechanisms.exact_sampling import bit_source
from ldpaudit.mechanisms.with_features import DoubleRR
from ldpaudit.synthesis.mixture import ClassMixtures

DOUBLE: dict[str, Any] = {"mechanism": "double-rr", "noise": 0.4, "generator": "mixture"}
SEEDED: dict[str, Any] = {"experimental": True, "seed": 3}


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A small table: fitting a mixture takes a second for 2,000 rows."""
    path, changed = tmp_path / "data.parquet", frame(600)
    changed.assign(town=changed["town"].astype("category")).to_parquet(path)
    return path


def made(data: Path, suffix: str = "parquet", **options: Any) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the release and its sample."""
    output, beside = data.with_name("release.parquet"), data.with_name(f"sample.{suffix}")
    own = {"overwrite": True, "synthetic_out": beside, **DOUBLE, **options}
    privatize(PrivatizeRequest(str(data), output, **own))
    sample = pd.read_csv(beside) if suffix == "csv" else pd.read_parquet(beside)
    return pd.read_parquet(output), sample


def test_a_generator_trained_on_public_rows(data: Path) -> None:
    public, output = data.with_name("public.parquet"), data.with_name("release.parquet")
    frame(600, seed=2).to_parquet(public)
    request = PrivatizeRequest(str(data), output, **DOUBLE, generator_data=str(public))
    warnings = privatize(request).warnings
    released, true = pd.read_parquet(output), pd.read_parquet(data)
    assert (released.dtypes == true.dtypes).all()
    # 600 rows: ±5 standard deviations, a false alarm in 2 million.
    assert abs((released["x"] != true["x"]).mean() - 0.4) < 0.1
    said = declared_json(output)["provenance"]["generator"]
    assert set(said) >= {"name", "version", "seed", "size", "trained_on"}
    assert (said["name"], said["size"], said["trained_on"]) == ("mixture", 600, "public")
    assert not any("private" in text for text in warnings)


@pytest.mark.parametrize("mechanism", ["double-rr", "dummy-features-rr"])
def test_private_training_is_declared_and_said(
    mechanism: str, data: Path, command: Command
) -> None:
    true = pd.read_parquet(data)
    true["town"] = ["qztownkx", *true["town"].astype(str)[1:]]
    true.to_parquet(data)
    output, beside = data.with_name("r.parquet"), data.with_name("s.csv")
    options = ("--mechanism", mechanism, "--lambda", "0.3", "--generator", "mixture")
    sample = ("--synthetic-out", beside, "--synthetic-rows", "7")
    status, printed = command(data, "-o", output, *options, *sample)
    assert status == 0, printed
    assert "trained on the private rows" in printed
    assert "7 synthetic rows, none of them in the release" in printed
    assert len(pd.read_csv(beside)) == 7
    said = declared_json(output)
    assert said["provenance"]["generator"]["trained_on"] == "private"
    assert "qztownkx" not in json.dumps(said)


def test_experiments_can_be_repeated_with_or_without_the_sample(data: Path) -> None:
    released, sample = made(data, **SEEDED)
    again, same = made(data, **SEEDED)
    pd.testing.assert_frame_equal(released, again)
    pd.testing.assert_frame_equal(sample, same)
    pd.testing.assert_frame_equal(released, made(data, **SEEDED, synthetic_rows=50)[0])
    (one, first), (other, second) = made(data), made(data)
    assert not one.equals(other)
    assert not first.equals(second)


class _Labels:
    """A generator whose rows tell the label that they stand for, and that they are new."""

    drawn = 0

    def sample(self, labels: Any, _rng: np.random.Generator) -> pa.Table:
        first, self.drawn = self.drawn, self.drawn + len(labels)
        return pa.table({"label": labels, "number": np.arange(first, self.drawn)})


def test_every_synthetic_row_is_new_and_its_label_uniform() -> None:
    """Mechanism 2: y' uniform over the labels, whatever the true one, and x' drawn from P̂(x|y')."""
    made: Any = _Labels()
    asked: Any = PrivatizeRequest("d", Path("r"), "double-rr", **SEEDED)
    rows = synthetic_rows(asked, pa.schema([]), ("a", "b", "c"), FittedGenerator(made, ()))
    assert rows is not None
    mechanism, true = DoubleRR(("a", "b", "c"), 0.5), np.repeat([0, 1, 2], 4000).astype(np.int32)
    drawn = mechanism.sample(true, rows.labels, bit_source(np.random.default_rng(2)))
    new = drawn.synthetic_rows >= 0
    table = rows.take(drawn.synthetic_rows[new])
    assert len(set(table["number"].to_pylist())) == new.sum()
    joint = np.histogram2d(true[new], table["label"].to_numpy(), bins=3)[0]
    expected = new.sum() / 9
    # χ² with 4 to 8 degrees of freedom: above 45 with probability below 1e-6.
    assert ((joint - expected) ** 2 / expected).sum() < 45


@pytest.mark.parametrize("suffix", ["parquet", "csv"])
def test_the_sample_looks_like_the_release_and_shares_no_row_with_it(
    suffix: str, data: Path
) -> None:
    released, sample = made(data, suffix)
    true = pd.read_parquet(data)
    assert list(sample) == list(released) == list(true)
    if suffix == "parquet":
        assert (sample.dtypes == released.dtypes).all()
        assert b"ldpaudit" not in (pq.read_schema(data.with_name("sample.parquet")).metadata or {})
    assert sample["label"].value_counts().to_dict() == {"no": 200, "perhaps": 200, "yes": 200}
    # x is continuous: a replaced row of the release has a value of its own.
    replaced = released["x"] != true["x"]
    assert replaced.sum() > 100
    assert not set(released["x"][replaced]) & set(sample["x"])
    said = declared_json(data.with_name("release.parquet"))["provenance"]["synthetic_sample"]
    assert said == {"rows": 600, "draws": "independent of the release"}


def test_the_sample_follows_the_label_that_a_row_was_made_for(data: Path) -> None:
    _, sample = made(data, synthetic_rows=3000)
    middle = sample.groupby("label")["x"].mean()
    # x is a standard normal number plus the label's code: standard errors are about 0.1.
    assert np.allclose(middle[["no", "perhaps", "yes"]], [0, 1, 2], atol=0.6)


@pytest.mark.parametrize(
    ("step", "rows", "error"),
    [("fit", 0, GeneratorDivergedError), ("sample", 600, OutputError)],
)
def test_a_generator_that_fails_leaves_nothing(
    step: str, rows: int, error: Any, data: Path, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    real: Any = getattr(ClassMixtures, step)

    def failing(self: Any, labels: Any, *more: Any, **options: Any) -> Any:
        if rows in (0, len(labels)):  # 600 are the sample's, not the release's.
            raise error("It failed.")
        return real(self, labels, *more, **options)

    monkeypatch.setattr(ClassMixtures, step, failing)
    options = ("--mechanism", "double-rr", "--lambda", "0.3", "--generator", "mixture")
    out = ("-o", data.with_name("r.csv"), "--synthetic-out", data.with_name("s.csv"))
    assert "failed" in refused(command, data.parent, data, *out, *options)


def test_compare_trains_with_the_sample(data: Path) -> None:
    """The sample is what the unbiased loss needs: the model is about as good as on true rows."""
    public, test = data.with_name("public.parquet"), data.with_name("test.parquet")
    frame(600, seed=2).to_parquet(public)
    frame(2000, seed=3).to_parquet(test)
    options: dict[str, Any] = {"noise": 0.2, "experimental": True, "seed": 1}
    made(data, "csv", generator_data=str(public), **options)
    double, plain = data.with_name("release.parquet"), data.with_name("rr.parquet")
    privatize(PrivatizeRequest(str(data), plain, "randomized-response", **options))
    comparison = compare(
        CompareRequest(
            inputs=(str(plain), str(double)),
            truth=str(data),
            test=str(test),
            synthetic=(str(data.with_name("sample.csv")),),
            only=("mechanism",),
            threads=1,
        )
    )
    found = comparison.releases[1].estimate("test_accuracy")
    assert found is not None
    assert "unbiased" in found.method
    # The best guess from x alone is right for 59 % of the rows, the majority for a third.
    assert found.value > 0.5
