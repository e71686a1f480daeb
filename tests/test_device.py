"""One rule for where torch computes, and one line where it cannot."""

import numpy as np
import pandas as pd
import pytest
import torch
from processes import refused

import ldpaudit
from ldpaudit.device import check_device, device_for, torch_device
from ldpaudit.errors import InputError

NO_GPU = "there is no GPU"


@pytest.fixture
def without_gpu(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)


@pytest.mark.usefixtures("without_gpu")
def test_without_a_gpu():
    assert torch_device("auto") == torch_device("cpu") == "cpu"
    for use in (torch_device, check_device):
        with pytest.raises(InputError, match=NO_GPU):
            use("cuda")
    check_device("auto")


def test_with_a_gpu(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert torch_device("auto") == torch_device("cuda") == "cuda"
    assert torch_device("cpu") == "cpu"
    check_device("cuda")


def table(rows=60):
    rng = np.random.default_rng(1)
    return pd.DataFrame({"x": rng.standard_normal(rows), "label": rng.choice(["a", "b"], rows)})


@pytest.mark.usefixtures("without_gpu")
def test_an_audit_that_would_use_no_network_asks_for_the_gpu_too():
    with pytest.raises(InputError, match=NO_GPU):
        ldpaudit.audit(table(), device="cuda", label="label", mechanism="unknown")


PRIVATIZE = ("--mechanism", "rr", "--epsilon", "1", "-o", "new.parquet", "--classes", "a,b")
COMMANDS = {
    "run": ("data.parquet", "--label", "label"),
    "compare": ("data.parquet", "data.parquet", "--label", "label"),
    "sweep": ("data.parquet", "--label", "label", "--mechanism", "rr", "--lambda", "0.5"),
    "privatize": ("data.parquet", "--label", "label", *PRIVATIZE),
}


@pytest.mark.usefixtures("without_gpu")
@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_says_the_same(name, tmp_path, monkeypatch):
    table().to_parquet(tmp_path / "data.parquet")
    monkeypatch.chdir(tmp_path)
    assert NO_GPU in refused(name, *COMMANDS[name], "--device", "cuda")
    assert [path.name for path in tmp_path.iterdir()] == ["data.parquet"]


def test_only_networks_ask_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ldpaudit.device.torch_device", lambda _: "cuda")
    assert device_for(("boosting", "logistic"), "auto") == "cpu"
    assert device_for(("network", "logistic"), "auto") == "cuda"
