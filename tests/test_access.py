"""Every form of a result says first who may see it; what true labels went into is its owner's."""

import json
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import numpy as np
import pandas as pd
import pytest
from small_tables import small_table

import ldpaudit
from ldpaudit import cli
from ldpaudit.errors import InputError
from ldpaudit.options.declaring import RETIRED
from ldpaudit.result.access import CONFIDENTIAL, WITHOUT_TRUTH

FORMATS = {"html": "a.html", "json": "a.json", "markdown": "a.md", "sarif": "a.sarif"}
FORMATS |= {"junit": "a.xml"}
CLAIM = ("--mechanism", "rr", "--epsilon", "1", "--only", "mechanism")


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    released, truth = small_table(np.random.default_rng(1), 80)
    released.to_csv(tmp_path / "released.csv", index=False)
    pd.DataFrame({"label": truth}).to_csv(tmp_path / "truth.csv", index=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(monkeypatch: pytest.MonkeyPatch, capsys: Any, *words: str) -> tuple[int, str, str]:
    monkeypatch.setattr(sys, "argv", ["ldpaudit", *words])
    with pytest.raises(SystemExit) as stopped:
        cli.main()
    return (int(stopped.value.code or 0), *capsys.readouterr())


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


@pytest.mark.parametrize("truth", [True, False])
def test_every_form_begins_with_who_may_see_it(
    truth: bool, here: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    line = CONFIDENTIAL if truth else WITHOUT_TRUTH
    more = ("--truth", "truth.csv") if truth else ()
    outputs = [word for name, file in FORMATS.items() for word in (f"--{name}", file)]
    status, out, err = run(monkeypatch, capsys, "run", "released.csv", *more, *CLAIM, *outputs)
    assert status != 2, err
    assert out.splitlines()[0] == line
    texts = {name: (here / file).read_text() for name, file in FORMATS.items()}
    assert next(iter(json.loads(texts["json"]).items())) == ("access", line)
    assert line.partition(":")[0] in texts["markdown"].splitlines()[0]
    body = texts["html"].partition("</svg>")[2]
    assert body.index(line) < body.index("<h1>")
    assert json.loads(texts["sarif"])["runs"][0]["properties"]["access"] == line
    properties = ET.fromstring(texts["junit"]).iter("property")
    assert line in [one.attrib["value"] for one in properties]
    assert {mode(here / file) == 0o600 for file in FORMATS.values()} == {truth}


def test_comparisons_and_rendered_results_are_their_owners_and_public_pages_are_not(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    with_truth = ("--truth", "truth.csv", *CLAIM)
    two = ("released.csv", "released.csv")
    assert run(monkeypatch, capsys, "compare", *two, *with_truth, "--json", "c.json")[0] == 0
    assert next(iter(json.loads((here / "c.json").read_text()))) == "access"
    run(monkeypatch, capsys, "run", "released.csv", *with_truth, "--json", "r.json")
    run(monkeypatch, capsys, "report", "r.json", "--html", "r.html")
    assert [mode(here / name) for name in ("c.json", "r.json", "r.html")] == [0o600] * 3
    run(monkeypatch, capsys, "report", "r.json", "--html", "p.html", "--profile", "public")
    assert mode(here / "p.html") != 0o600
    assert CONFIDENTIAL not in (here / "p.html").read_text()


@pytest.mark.parametrize("option", RETIRED)
def test_an_option_that_is_gone_says_so_in_one_line(
    option: str, here: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    status, out, err = run(monkeypatch, capsys, "run", "released.csv", *CLAIM, option)
    assert (status, out) == (2, "")
    assert err == f"ldpaudit: The option {option} is gone: {RETIRED[option]}.\n"
    keyword = {option.strip("-").replace("-", "_"): True}
    with pytest.raises(InputError, match="is gone"):
        ldpaudit.audit(pd.read_csv(here / "released.csv"), **keyword)
