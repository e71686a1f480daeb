"""One rule for where torch computes, and one line where it cannot."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

import ldpaudit
from ldpaudit import cli
from ldpaudit.device import check_device, torch_device
from ldpaudit.errors import InputError

NO_GPU = "there is no GPU"


@pytest.fixture
def without_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)


@pytest.mark.usefixtures("without_gpu")
def test_without_a_gpu() -> None:
    assert torch_device("auto") == torch_device("cpu") == "cpu"
    for refused in (torch_device, check_device):
        with pytest.raises(InputError, match=NO_GPU):
            refused("cuda")
    check_device("auto")


def test_with_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert torch_device("auto") == torch_device("cuda") == "cuda"
    assert torch_device("cpu") == "cpu"
    check_device("cuda")


def table(rows: int = 60) -> pd.DataFrame:
    rng = np.random.default_rng(1)
    return pd.DataFrame({"x": rng.standard_normal(rows), "label": rng.choice(["a", "b"], rows)})


@pytest.mark.usefixtures("without_gpu")
def test_an_audit_that_would_use_no_network_asks_for_the_gpu_too() -> None:
    with pytest.raises(InputError, match=NO_GPU):
        ldpaudit.audit(table(), device="cuda", label="label", mechanism="unknown")


PRIVATIZE = ("--mechanism", "rr", "--epsilon", "1", "-o", "new.parquet", "--classes", "a,b")
COMMANDS: dict[str, tuple[Any, ...]] = {
    "run": ("data.parquet", "--label", "label"),
    "compare": ("data.parquet", "data.parquet", "--label", "label"),
    "sweep": ("data.parquet", "--label", "label", "--mechanism", "rr", "--lambda", "0.5"),
    "privatize": ("data.parquet", "--label", "label", *PRIVATIZE),
}


@pytest.mark.usefixtures("without_gpu")
@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_says_the_same(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    table().to_parquet(tmp_path / "data.parquet")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["ldpaudit", name, *COMMANDS[name], "--device", "cuda"])
    with pytest.raises(SystemExit) as stopped:
        cli.main()
    assert stopped.value.code == 2
    assert NO_GPU in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["data.parquet"]
