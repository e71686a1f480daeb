"""The synthetic sample that privatize hands out beside a release."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from commands.privatize.conftest import Command, declared_json, frame
from commands.privatize.test_bad_input import refused

from ldpaudit.commands.compare.request import CompareRequest
from ldpaudit.commands.compare.work import compare
from ldpaudit.commands.privatize.request import PrivatizeRequest
from ldpaudit.commands.privatize.work import privatize
from ldpaudit.errors import OutputError

DOUBLE: dict[str, Any] = {"mechanism": "double-rr", "noise": 0.4, "generator": "mixture"}


@pytest.fixture
def data(tmp_path: Path) -> Path:
    path = tmp_path / "data.parquet"
    changed = frame(600)
    changed["town"] = changed["town"].astype("category")
    changed.to_parquet(path)
    return path


def made(data: Path, suffix: str = "parquet", **options: Any) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the release and its sample."""
    output, beside = data.with_name("release.parquet"), data.with_name(f"sample.{suffix}")
    own = {"overwrite": True, "synthetic_out": beside, **DOUBLE, **options}
    privatize(PrivatizeRequest(str(data), output, **own))
    sample = pd.read_csv(beside) if suffix == "csv" else pd.read_parquet(beside)
    return pd.read_parquet(output), sample


@pytest.mark.parametrize("suffix", ["parquet", "csv"])
def test_the_sample_looks_like_the_release_and_shares_no_row_with_it(
    suffix: str, data: Path
) -> None:
    released, sample = made(data, suffix)
    true = pd.read_parquet(data)
    assert list(sample) == list(released) == list(true)
    assert len(sample) == len(released)
    if suffix == "parquet":
        assert (sample.dtypes == released.dtypes).all()
        schema = pq.read_schema(data.with_name("sample.parquet"))
        assert schema.metadata is None or b"ldpaudit" not in schema.metadata
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


def test_a_release_without_the_sample_is_the_same(data: Path) -> None:
    seeded: dict[str, Any] = {"experimental": True, "seed": 3}
    released, sample = made(data, **seeded)
    again, same = made(data, **seeded)
    alone = made(data, **seeded, synthetic_rows=50)[0]
    pd.testing.assert_frame_equal(released, again)
    pd.testing.assert_frame_equal(sample, same)
    pd.testing.assert_frame_equal(released, alone)
    assert not made(data)[1].equals(made(data)[1])


def test_dummy_features_have_a_sample_too(data: Path, command: Command) -> None:
    words = ("--mechanism", "dummy-features-rr", "--lambda", "0.3", "--generator", "mixture")
    beside = data.with_name("s.csv")
    out = ("-o", data.with_name("r.parquet"), "--synthetic-out", beside, "--synthetic-rows", "7")
    status, printed = command(data, *out, *words)
    assert status == 0, printed
    assert "7 synthetic rows, none of them in the release" in printed
    assert "trained on the private rows" in printed
    assert len(pd.read_csv(beside)) == 7


def test_bad_options(data: Path, command: Command) -> None:
    folder, out = data.parent, data.with_name("r.parquet")

    def message(*words: Any, name: str = "double-rr") -> str:
        base = (data, "-o", out, "--mechanism", name, "--lambda", "0.3")
        return refused(command, folder, *base, *words)

    made_here = ("--generator", "mixture", "--synthetic-out", folder / "s.parquet")
    assert "with --generator" in message("--synthetic", data, "--synthetic-out", folder / "s.csv")
    assert "does not belong" in message(*made_here, name="randomized-response")
    assert "with --synthetic-out" in message("--generator", "gan", "--synthetic-rows", "9")
    assert "at least 1" in message(*made_here, "--synthetic-rows", "0")
    assert "at least 3" in message(*made_here, "--synthetic-rows", "2")
    assert "two files" in message(*made_here[:3], out)
    assert "is an input" in message(*made_here[:3], data, "--overwrite")
    assert ".parquet" in message(*made_here[:3], folder / "s.xlsx")
    lists = pq.read_table(data).append_column("image", pa.array([[0.5, 1.0]] * 600))
    pq.write_table(lists, data)
    line = message(*made_here[:3], folder / "s.csv")
    assert "Column 6 is of type list" in line
    assert ".parquet" in line


def test_a_sample_that_fails_leaves_nothing(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from ldpaudit.synthesis.mixture import ClassMixtures

    before, sampled = sorted(data.parent.iterdir()), ClassMixtures.sample

    def full(self: ClassMixtures, labels: Any, rng: Any) -> pa.Table:
        if len(labels) == 600:  # the sample's, not the release's
            raise OutputError("The disk is full.")
        return sampled(self, labels, rng)

    monkeypatch.setattr(ClassMixtures, "sample", full)
    with pytest.raises(OutputError):
        made(data)
    assert sorted(data.parent.iterdir()) == before


@pytest.mark.parametrize("suffix", ["parquet", "csv"])
def test_compare_trains_with_the_sample(suffix: str, data: Path) -> None:
    """The sample is what the unbiased loss needs: the model is about as good as on true rows."""
    public, test = data.with_name("public.parquet"), data.with_name("test.parquet")
    frame(600, seed=2).to_parquet(public)
    frame(2000, seed=3).to_parquet(test)
    made(data, suffix, generator_data=str(public), noise=0.2, experimental=True, seed=1)
    double, plain = data.with_name("release.parquet"), data.with_name("rr.parquet")
    options: dict[str, Any] = {"noise": 0.2, "experimental": True, "seed": 1}
    privatize(PrivatizeRequest(str(data), plain, "randomized-response", **options))
    comparison = compare(
        CompareRequest(
            inputs=(str(plain), str(double)),
            truth=str(data),
            test=str(test),
            synthetic=(str(data.with_name(f"sample.{suffix}")),),
            only=("mechanism",),
            threads=1,
        )
    )
    found = comparison.releases[1].estimate("test_accuracy")
    assert found is not None
    assert "unbiased" in found.method
    # The best guess from x alone is right for 59 % of the rows, the majority for a third.
    assert found.value > 0.5
