"""A released label that is the same for everybody: the safest there is, where it was promised."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

Command = Callable[..., tuple[int, str, str]]


def people(folder: Path, n: int = 2000) -> tuple[Path, Path]:
    rng = np.random.default_rng(0)
    labels = np.where(rng.random(n) < 0.93, "no", "yes")
    frame = pd.DataFrame({"a": rng.normal(size=n) + (labels == "yes"), "label": labels})
    data, prior = folder / "data.parquet", folder / "prior.csv"
    frame.to_parquet(data, index=False)
    prior.write_text("label,probability\nno,0.93\nyes,0.07\n")
    return data, prior


def sentence(release: Path) -> str:
    result: dict[str, Any] = json.loads(release.with_suffix(".audit.json").read_text())
    return str(result["sentence"])


def test_one_kept_label_is_a_result(tmp_path: Path, command: Command) -> None:
    (data, prior), release = people(tmp_path), tmp_path / "release.parquet"
    words = ["--mechanism", "rr-top-k", "--epsilon", 1, "--prior", prior, "-o", release]
    assert command("privatize", data, *words)[0] == 0
    for truth in (["--truth", data], []):
        assert command("run", release, *truth)[0] == 0
        assert "same released label" in sentence(release)
        assert "0.0" not in sentence(release)


def test_one_label_under_another_claim_does_not_pass(tmp_path: Path, command: Command) -> None:
    (data, _), release = people(tmp_path), tmp_path / "release.parquet"
    mechanism = {"name": "randomized-response", "classes": ["no", "yes"], "epsilon": 1.0}
    content = {"version": 1, "label": "label", "mechanism": mechanism}
    table = pa.table({"a": pq.read_table(data)["a"], "label": ["no"] * 2000})
    pq.write_table(table.replace_schema_metadata({"ldpaudit": json.dumps(content)}), release)
    for truth in (["--truth", data], []):
        command("run", release, *truth)
        result = json.loads(release.with_suffix(".audit.json").read_text())
        verdicts = {check["id"]: check["verdict"] for check in result["checks"]}
        assert verdicts["claimed-channel"] == "fail"


def test_one_label_of_unknown_kind_is_refused(tmp_path: Path, command: Command) -> None:
    release = tmp_path / "release.parquet"
    pq.write_table(pa.table({"a": np.arange(100.0), "label": ["no"] * 100}), release)
    status, _, error = command("run", release, "--epsilon", 1)
    assert status == 2
    assert "two values" in error
