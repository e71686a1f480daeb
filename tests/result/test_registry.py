"""The public form as an entry of a registry: its fields, and nothing that is confidential."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from processes import called

import ldpaudit
from ldpaudit.mechanisms import RandomizedResponse
from ldpaudit.result.public import public
from ldpaudit.result.registry import registry_entry

yaml = pytest.importorskip("yaml")


def test_an_entry_has_the_registrys_fields_and_no_true_label() -> None:

    rng = np.random.default_rng(0)
    truth = np.array(["no", "yes"])[(rng.random(1_500) < 0.4).astype(int)]
    noise = RandomizedResponse.from_epsilon(("no", "yes"), 1.0)
    table = pd.DataFrame({"a": rng.normal(size=1_500), "bought": noise.release(truth, rng)})
    result = ldpaudit.audit(
        table, truth, noise, label="bought", only=["mechanism", "power"], seeds_tried=0
    )
    text = registry_entry(result)
    assert text == registry_entry(public(result))
    entry = yaml.safe_load(text)
    assert (entry["status"], entry["tier"]) == ("Draft", 2)
    assert entry["deployment"]["privacy_loss"]["privacy_parameters"]["epsilon"] == pytest.approx(1)
    assert entry["deployment"]["model"]["model_name"] == "Local"
    assert {"name", "data_curator", "description", "intended_use"} <= entry["deployment"].keys()
    bound = result["mechanism.epsilon_lower"].value
    assert f"{bound:.3f}" not in text


@pytest.mark.parametrize("profile", ["internal", "public"])
def test_run_and_report_write_it_for_everybody(profile: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    truth = np.array(["no", "yes"])[(rng.random(600) < 0.4).astype(int)]
    noise = RandomizedResponse.from_epsilon(("no", "yes"), 1.0)
    table = pd.DataFrame({"a": rng.normal(size=600), "y": noise.release(truth, rng)})
    table.to_csv(tmp_path / "r.csv", index=False)
    pd.DataFrame({"y": truth}).to_csv(tmp_path / "t.csv", index=False)
    words = ("--label", "y", "--epsilon", "1", "--truth", tmp_path / "t.csv", "--exit-zero")
    places = ("--registry", tmp_path / "a.yaml", "--json", tmp_path / "a.json")
    audits = ("--only", "mechanism", "--profile", profile)
    status, printed = called("run", tmp_path / "r.csv", *words, *places, *audits)
    assert status == 0, printed
    entry = yaml.safe_load((tmp_path / "a.yaml").read_text(encoding="utf-8"))
    assert entry["deployment"]["privacy_loss"]["privacy_parameters"]["epsilon"] == pytest.approx(1)
    if profile == "internal":
        status, printed = called("report", tmp_path / "a.json", "--registry", tmp_path / "b.yaml")
        assert status == 0, printed
        assert (tmp_path / "b.yaml").read_text() == (tmp_path / "a.yaml").read_text()
