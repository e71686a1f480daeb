"""The attack in docs/how-to/attack.md, installed as another package would be."""

import importlib
import re
import sys
from pathlib import Path

import numpy as np
import pytest

from ldpaudit.attacks import ATTACKS, Knowledge, available_attacks, create_attack
from ldpaudit.audits.interface import AuditContext, Plan
from ldpaudit.audits.label_inference.audit import LabelInferenceAudit
from ldpaudit.errors import InputError
from ldpaudit.mechanisms import RandomizedResponse
from ldpaudit.release import FeatureTable, Release, ReleasedLabels, TrueLabels

FOLDER = Path(__file__).parents[2] / "docs" / "attacks"


@pytest.fixture
def installed(tmp_path, monkeypatch):
    page = (FOLDER.parent / "how-to" / "attack.md").read_text()
    (code,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    (entry,) = re.findall(r'^first-column = "(.*?)"$', page, re.MULTILINE)
    (tmp_path / "first_column.py").write_text(code)
    info = tmp_path / "first_column-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: first-column\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[ldpaudit.attacks]\nfirst-column = {entry}\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    importlib.invalidate_caches()
    yield code
    sys.modules.pop("first_column", None)


def test_the_example_is_short_scored_and_right(installed):
    assert len(installed.strip().splitlines()) <= 35
    assert list(available_attacks())[-1] == "first-column"
    rng = np.random.default_rng(0)
    cells = rng.integers(0, 4, 2000).astype(np.int32)
    eta = np.array([0.05, 0.3, 0.7, 0.95])
    truth = (rng.random(2000) < eta[cells]).astype(np.int32)
    mechanism = RandomizedResponse.from_epsilon((0, 1), 1.0)
    release = Release(
        FeatureTable(np.zeros((2000, 0), np.float32), cells[:, None], (4,), 1),
        ReleasedLabels(mechanism.sample(truth, rng)),
        (0, 1),
        (0, 1),
        TrueLabels(truth),
    )
    context = AuditContext(release, mechanism, Plan(seed=1, budget=0.1))
    found = {e.id: e for e in LabelInferenceAudit().run(context).estimates}
    # Bayes' optimum is 0.836; the standard error of the share right is 0.009.
    assert found["attack.first-column.accuracy"].value > 0.79
    assert found["attack.first-column.accuracy"].title == "First category alone: Accuracy"
    attacks = [name for name in found if name.endswith(".in_sample.accuracy")]
    assert "attack.first-column.in_sample.accuracy" in attacks
    assert f"of {len(attacks)} attacks" in found["attack.best.accuracy"].method


def test_an_attack_that_does_not_state_what_it_learns_from_is_left_out(installed, tmp_path):
    code = installed.replace("    learns_from_asked = False\n", "")
    (tmp_path / "first_column.py").write_text(code)
    with pytest.raises(InputError, match="must state learns_from_asked"):
        create_attack("first-column", Knowledge(None))


def test_every_attack_has_a_page():
    pages = {path.stem for path in FOLDER.glob("*.md")}
    index = (FOLDER / "README.md").read_text()
    for name in ATTACKS:
        own = "classifiers" if name.startswith("classifier-") or name == "bayes-network" else name
        assert own in pages
        assert f"{own}.md" in index
