"""Without PyTorch everything works but networks, and those say what to install."""

import importlib.metadata
import sys

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import ldpaudit
from ldpaudit.device import torch_device
from ldpaudit.errors import MissingDependencyError
from ldpaudit.synthesis import ConditionalGan, generator, load_generator, save_generator

INSTALL = r"pip install 'ldpaudit\[networks\]'"


@pytest.fixture(autouse=True)
def _without_torch(monkeypatch):
    version = importlib.metadata.version

    def versions(name):
        if name == "torch":
            raise importlib.metadata.PackageNotFoundError(name)
        return version(name)

    monkeypatch.setattr("ldpaudit.device._installed", lambda: False)
    monkeypatch.setattr(importlib.metadata, "version", versions)


def table(rows=200):
    rng = np.random.default_rng(1)
    truth = rng.choice(["a", "b"], rows)
    flips = rng.random(rows) < 0.27
    label = np.where(flips, np.where(truth == "a", "b", "a"), truth)
    return pd.DataFrame({"x": rng.standard_normal(rows), "label": label, "truth": truth})


def test_the_device():
    assert torch_device("auto") == torch_device("cpu") == "cpu"
    with pytest.raises(MissingDependencyError, match=INSTALL):
        torch_device("cuda")


def test_what_learns_by_a_network_says_so():
    for make in (ConditionalGan, lambda: generator("gan")):
        with pytest.raises(MissingDependencyError, match=INSTALL):
            make()


class NoTorch:
    """Finds no PyTorch."""

    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "torch":
            raise ModuleNotFoundError(name=name)


def test_a_mixture_needs_none(tmp_path, command, monkeypatch):
    """It is also kept in a file, as a sweep does, though torch must not be imported."""
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    # Not None in sys.modules: SciPy takes what is there for a library that was loaded.
    monkeypatch.setattr(sys, "meta_path", [NoTorch(), *sys.meta_path])
    features, codes = pa.table({"x": np.arange(100.0)}), np.arange(100, dtype=np.int32) % 2
    made = generator("mixture").fit(features, codes, 2, rng=np.random.default_rng(0))
    again = load_generator(save_generator(made, tmp_path / "generator.npz"))
    rows = [one.sample(codes, np.random.default_rng(1)) for one in (made, again)]
    assert rows[0].equals(rows[1])
    table(600).drop(columns="truth").to_parquet(tmp_path / "t.parquet")
    words = ("--mechanism", "double-rr", "--generator", "mixture", "--lambda", "0.5")
    few = ("--repeats", "1", "--processes", "1", "--json", tmp_path / "s.json")
    status, _, err = command("sweep", tmp_path / "t.parquet", *words, *few, "--label", "label")
    assert status == 0, err


RR = ("--mechanism", "rr", "--epsilon", "1")
COMMANDS = {
    "run": ("t.parquet", "--device", "cuda"),
    "compare": ("t.parquet", "t.parquet", "--test", "t.parquet", "--model", "network"),
    "learn": ("t.parquet", "--test", "t.parquet", "--learner", "network", *RR),
    "sweep": ("t.parquet", *RR, "--learner", "network"),
    "sweep-gan": (
        *("t.parquet", "--mechanism", "double-rr", "--epsilon", "1", "--generator", "gan"),
    ),
    "privatize": (
        *("t.parquet", "-o", "new.parquet", "--mechanism", "double-rr", "--epsilon", "1"),
        *("--generator", "gan"),
    ),
}


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_that_needs_one_says_so_before_it_works(name, command, tmp_path, monkeypatch):
    table().to_parquet(tmp_path / "t.parquet")
    monkeypatch.chdir(tmp_path)
    status, _, err = command(name.removesuffix("-gan"), *COMMANDS[name], "--label", "label")
    assert status == 2
    assert "pip install 'ldpaudit[networks]'" in err.splitlines()[-1]
    assert [path.name for path in tmp_path.iterdir()] == ["t.parquet"]


def test_an_audit_of_images_by_networks_is_skipped_with_its_reason():
    rng = np.random.default_rng(2)
    original = rng.random((2400, 64)).astype(np.float32)
    made = rng.random((2400, 64)).astype(np.float32)
    labels = rng.choice(["a", "b"], 2400)
    columns = [f"p{i:02}" for i in range(64)]
    frame = pd.DataFrame(made, columns=columns).assign(label=labels)
    result = ldpaudit.audit(
        frame,
        original=pd.DataFrame(original, columns=columns),
        truth=labels,
        mechanism={"name": "double-rr", "epsilon": 1.0},
        only=("renyi", "mechanism"),
    )
    (record,) = [r for r in result.audits if r.id == "renyi"]
    assert record.status == "skipped"
    assert "needs PyTorch" in record.reason
