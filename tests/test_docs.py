"""The pages: one for each mechanism, no dead link, no name that does not exist."""

import importlib
import re
from pathlib import Path

import pytest

from ldpaudit import doors
from ldpaudit.mechanisms import names
from ldpaudit.plugins import GROUPS

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
    monkeypatch.syspath_prepend(ROOT / "docs" / "site")
    generated = importlib.import_module("generated")
    made = {ROOT / "docs" / place: text for place, text in generated.pages()}
    stale = [path.name for path, text in made.items() if path.read_text() != text]
    assert not stale, "run: python docs/site/generated.py"


def test_every_page_has_its_place_in_the_navigation(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "docs" / "site")
    site = importlib.import_module("conf")
    pages = {page.relative_to(ROOT).with_suffix("").as_posix() for page in PAGES}
    placed = {
        page
        for index in pages
        if index.endswith("/README")
        for page in site.pages_below(index, (ROOT / f"{index}.md").read_text())
    }
    assert pages - placed == {site.root_doc}, "link it from the index page of its folder"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_table_has_a_head(page):
    """A blank line in a table makes text of the rows below it."""
    blocks = re.split(r"\n\s*\n", re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL))
    tables = [block.strip().split("\n") for block in blocks if block.strip().startswith("|")]
    assert all(len(rows) > 1 and re.fullmatch(r"[|:\- ]+", rows[1]) for rows in tables)


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
        known = ("ldpaudit.json", "ldpaudit.toml", *GROUPS.values())  # Endings of files; groups.
        assert name in known or exists(name), name


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
    folders = (ROOT / "ldpaudit").glob("*/")
    found = {one.relative_to(ROOT).as_posix() for one in folders if one.name != "__pycache__"}
    assert found <= shown
    assert all((ROOT / place).is_dir() for place in shown)


def test_every_folder_says_what_goes_in_and_out():
    for top in CODE:
        for path in (ROOT / top).rglob("__init__.py"):
            words = path.read_text()
            assert "In:" in words, path
            assert "Out:" in words, path


def test_the_mechanism_of_another_package_is_as_shown():
    page = (DOCS.parent / "how-to" / "mechanism.md").read_text()
    (shown,) = re.findall(r"```python\n.*?(^def .*?)```", page, re.DOTALL | re.MULTILINE)
    file = (ROOT / "tests" / "stranger" / "strange_responses.py").read_text().splitlines()
    assert [line for line in shown.splitlines() if line not in file] == []
    bases = re.findall(r"^\| [^|]* \| ((?:`\w+`(?: and )?)+) \|", page, re.MULTILINE)
    named = {name for words in bases for name in re.findall(r"\w+", words)} - {"and"}
    assert len(named) > 7
    assert named <= {*doors.__all__}
