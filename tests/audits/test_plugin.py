"""The audit in docs/how-to/audit.md, installed as another package would be."""

import importlib
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from releases import written

import ldpaudit
from ldpaudit.pipeline import AUDITS, available_audits

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "audit.md"


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    page = PAGE.read_text()
    (code,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    (entry,) = re.findall(r'^first-label = "(.*?)"$', page, re.MULTILINE)
    (tmp_path / "first_label.py").write_text(code)
    info = tmp_path / "first_label-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: first-label\nVersion: 1.0\n")
    points = info / "entry_points.txt"
    points.write_text(f"[ldpaudit.audits]\nfirst-label = {entry}\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    importlib.invalidate_caches()
    yield points
    sys.modules.pop("first_label", None)


def test_the_example_runs_and_has_a_section(installed: Path, tmp_path: Path) -> None:
    assert list(available_audits())[-1] == "first-label"
    release, truth = written(tmp_path, rows=600)
    result = ldpaudit.audit(release, truth, only=["mechanism", "first-label"])
    (share,) = (e for e in result.estimates if e.id == "first-label.share")
    assert (share.kind, share.section) == ("certified", "first-label")
    assert 0.3 < share.value < 1
    assert [record.id for record in result.audits] == ["mechanism", "first-label"]
    page = result.to_html()
    assert "First label" in page
    assert "Share of the first label among the released ones" in page
    stored = json.loads(result.to_json())
    assert any(e["section"] == "first-label" for e in stored["estimates"])


def test_a_plug_in_replaces_no_built_in_audit(installed: Path) -> None:
    installed.write_text("[ldpaudit.audits]\npower = first_label:FirstLabelAudit\n")
    importlib.invalidate_caches()
    assert available_audits() == AUDITS
