"""The pages: one for each mechanism, no dead link, no name that does not exist; examples run."""

import ast
import importlib
import re
import shlex
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from ldpaudit import cli
from ldpaudit.mechanisms import names

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs" / "mechanisms"
PAGES = sorted(
    page
    for part in (
        "*.md",
        "docs/**/*.md",
        "examples/*.md",
        "benchmarks/*.md",
        "benchmarks/results/*.md",
    )
    for page in ROOT.glob(part)
    if "names" not in page.parts  # Made when the site is built.
)
GUIDE = (ROOT / "CONTRIBUTING.md").read_text()
CODE = ("ldpaudit", "attacks", "reports", "datasets")


def test_every_mechanism_has_a_page_and_a_row():
    index = (DOCS / "README.md").read_text()
    for name in names():
        if name not in ("unknown", "frequency-oracle"):
            assert (DOCS / f"{name}.md").is_file(), name
            assert f"({name}.md)" in index, name


def test_the_reference_says_what_the_code_says(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "docs")
    generated = importlib.import_module("generated")
    made = {ROOT / "docs" / place: text for place, text in generated.pages()}
    stale = [path.name for path, text in made.items() if path.read_text() != text]
    assert not stale, "run: python docs/generated.py"


def anchors(page):
    """Return what links into a page may name: its headings as GitHub writes them."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_no_link_and_no_name_is_dead(page):
    text = page.read_text()
    for target, _, anchor in re.findall(r"\]\(([^)#: ]*)(#([^)]*))?\)", text):
        place = page.parent / target if target else page
        assert place.exists(), target
        assert not anchor or anchor in anchors(place), (target, anchor)
    for name in set(re.findall(r"\bldpaudit(?:\.[A-Za-z_]\w*)+", text)):
        assert name in ("ldpaudit.json", "ldpaudit.toml") or exists(name), name  # Endings of files.


def exists(name):
    """Return whether a dotted name is a module, or something in one."""
    module, _, rest = name.rpartition(".")
    try:
        importlib.import_module(name)
    except ModuleNotFoundError:
        return hasattr(importlib.import_module(module), rest)
    return True


def test_the_map_shows_every_folder():
    (house,) = re.findall(r"^## The house\n.*?```\n(.*?)```", GUIDE, re.DOTALL | re.MULTILINE)
    shown, path = set(), []
    for line in house.splitlines():
        indent = len(line) - len(line.lstrip())
        for name in re.findall(r"(?:^|\s)(\w+)/(?=\s|$)", line.split("→")[0]):
            path = [*path[: indent // 2], name]
            shown.add("/".join(path))
    folders = {
        folder.relative_to(ROOT).as_posix()
        for top in CODE
        for folder in (ROOT / top, *(ROOT / top).rglob("*"))
        if folder.is_dir() and folder.name != "__pycache__"
    }
    linked = {f"ldpaudit/{name}" for name in CODE[1:]}
    assert folders - linked <= shown
    assert all((ROOT / place).is_dir() for place in shown)


@pytest.mark.parametrize("page", sorted(DOCS.glob("[!R]*.md")), ids=lambda page: page.stem)
def test_the_examples_run(page, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("matrix.csv").write_text("label,low,high\nno,0.75,0.25\nyes,0.25,0.75\n")
    Path("prior.csv").write_text("label,probability\na,0.5\nb,0.3\nc,0.2\n")
    rows = "".join(f"{week},{1 / 53}\n" for week in range(53))
    Path("weeks.csv").write_text(f"label,probability\n{rows}")
    for line in re.findall(r"^\$ (ldpaudit .*)$", page.read_text(), re.MULTILINE):
        monkeypatch.setattr(sys, "argv", shlex.split(line))
        with pytest.raises(SystemExit) as stopped:
            cli.main()
        assert not stopped.value.code, capsys.readouterr().err


def test_every_folder_says_what_goes_in_and_out():
    for top in CODE:
        for path in (ROOT / top).rglob("__init__.py"):
            words = ast.get_docstring(ast.parse(path.read_text())) or ""
            assert "In:" in words, path
            assert "Out:" in words, path


def test_the_mechanism_of_another_package_is_as_shown():
    page = (DOCS.parent / "how-to" / "mechanism.md").read_text()
    (shown,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    file = (ROOT / "tests" / "stranger" / "strange_responses.py").read_text().splitlines()
    assert [line for line in shown.splitlines() if line not in file] == []
    for name in re.findall(r"`((?:[a-z_]+\.)+[A-Z]\w+)`", page):
        assert exists(name if name.startswith("ldpaudit") else f"ldpaudit.mechanisms.{name}"), name


def examples(page):
    """Return the Python of a page; that of README, plug-ins and black boxes is tested elsewhere."""
    if page.parent.name == "how-to" or page.stem == "black-box" or page == ROOT / "README.md":
        return ""
    return "\n".join(re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL))


@pytest.mark.parametrize(
    "page", [page for page in PAGES if examples(page)], ids=lambda page: page.stem
)
def test_the_python_examples_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(1)
    truth = rng.integers(0, 2, 300)
    x = (rng.standard_normal((300, 2)) + truth[:, None]).clip(-0.5, 0.5)
    labels = np.array(["no", "yes"])[truth]
    frame = pd.DataFrame({"a": x[:, 0], "label": labels})
    frame.rename(columns={"label": "diagnosis"}).to_parquet("patients.parquet")
    more = {"X": x, "released": labels, "X_new": x, "more_X": x, "more_z": truth}
    noisy = {"X_noisy": x, "z": truth, "frame": frame, "labels": labels, "codes": truth}
    features = pa.table({"a": x[:, 0], "b": x[:, 1]})
    exec(examples(page), more | noisy | {"features": features})
