"""The notebooks run, and what they show is what their cells give."""

import json
from pathlib import Path

import pytest
from docs.blocks import EXAMPLES, unlike
from docs.notebooks import executed, text_of

NOTEBOOKS = sorted(EXAMPLES.glob("*.ipynb"))
LONG = {"choose-the-mechanism"}
"""Run by `make validate`."""


@pytest.mark.parametrize(
    "path",
    [pytest.param(p, marks=pytest.mark.validate if p.stem in LONG else ()) for p in NOTEBOOKS],
    ids=lambda path: path.stem,
)
def test_a_notebook_runs_and_is_not_stale(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    notebook = json.loads(path.read_text(encoding="utf-8"))
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    for cell, made in zip(cells, executed(notebook), strict=True):
        missing = unlike(text_of(cell["outputs"]), text_of(made))
        assert not missing, f"{missing!r}: python tests/docs/notebooks.py {path.name}"


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_small_and_clean(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert len(text) < 50_000
    assert "image/" not in text
    assert str(Path.home()) not in text
    notebook = json.loads(text)
    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
    ids = [cell["id"] for cell in notebook["cells"]]
    assert len(set(ids)) == len(ids)
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in code] == list(range(1, len(code) + 1))
