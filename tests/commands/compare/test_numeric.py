"""Releases of numeric labels: squared errors on test rows, and the attacks' own."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ldpaudit.commands.compare.work import compare
from ldpaudit.commands.requests import CompareRequest
from ldpaudit.mechanisms.capabilities import StepNoise
from ldpaudit.reports.pages.comparison import render_comparison


def people(n: int, rng: np.random.Generator) -> pd.DataFrame:
    features = rng.standard_normal((n, 2))
    frame = pd.DataFrame(features, columns=["x0", "x1"])
    frame["label"] = np.clip(np.round(5 + 2 * features[:, 0] + rng.standard_normal(n)), 0, 10)
    return frame


def released(frame: pd.DataFrame, epsilon: float, path: Path, rng: np.random.Generator) -> str:
    from ldpaudit.mechanisms import from_declaration
    from ldpaudit.mechanisms.label_range import LabelRange
    from ldpaudit.release import Declaration

    parameters = {**LabelRange.parse("0:10").declaration(), "epsilon": epsilon}
    mechanism = from_declaration(Declaration("discrete-laplace", parameters), ())
    assert isinstance(mechanism, StepNoise)
    own = dict(mechanism.declaration()) | {"name": "discrete-laplace"}
    noisy = mechanism.sample(frame["label"].to_numpy(dtype=np.int32), rng)
    table = pa.Table.from_pandas(frame.assign(label=noisy), preserve_index=False)
    content = {"version": 1, "label": "label", "mechanism": own}
    pq.write_table(table.replace_schema_metadata({"ldpaudit": json.dumps(content)}), path)
    return str(path)


@pytest.mark.validate
def test_less_noise_is_learnt_from_better_and_attacked_better(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    frame = people(2000, rng)
    frame[["label"]].to_parquet(tmp_path / "truth.parquet")
    people(500, rng).to_parquet(tmp_path / "test.parquet")
    names = (
        released(frame, 0.2, tmp_path / "fifth.parquet", rng),
        released(frame, 40.0, tmp_path / "forty.parquet", rng),
    )
    request = CompareRequest(
        inputs=names,
        truth=str(tmp_path / "truth.parquet"),
        test=str(tmp_path / "test.parquet"),
        only=("mechanism", "numeric-inference"),
        threads=1,
    )
    comparison = compare(request)
    error = comparison.difference("test_squared_error")
    assert error.paired
    assert error.unit == "squared label units"
    assert error.high < 0
    attack = comparison.difference("numeric.best.mse")
    assert attack.paired
    assert attack.simultaneous
    errors = [result.estimate("numeric.best.mse") for result in comparison.releases]
    assert attack.value == pytest.approx(errors[1].value - errors[0].value)
    near = comparison.difference("numeric.best.within_10")
    assert near.paired
    assert near.low > 0
    groups = comparison.difference("numeric.best.bin_accuracy")
    assert not groups.paired
    assert attack.high < 0
    privacy, _, utility = comparison.sentences
    assert "the strongest guess of the numbers has a mean squared error of" in privacy
    assert "; smaller in" in privacy
    assert "; smaller with" in utility
    page = render_comparison(comparison)
    assert "Mean squared error of each guess" in page
    assert "Posterior mean" in page
    assert "squared error" in page[: page.index('id="attacks"')]
    assert comparison.remark.startswith("The intervals hold together at ")
