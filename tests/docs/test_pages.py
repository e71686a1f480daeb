"""Every page of the documentation runs as printed, in a folder with the examples."""

import shutil
from pathlib import Path

import pytest
from docs.blocks import ROOT, blocks, prepare, run_page

PAGES = [
    *(ROOT / "docs").glob("tutorial.md"),
    *(ROOT / "docs/how-to").glob("*.md"),
]
RUN = ("console", "python")


@pytest.fixture(scope="module")
def examples(tmp_path_factory):
    folder = tmp_path_factory.mktemp("examples")
    prepare(folder)
    return folder


def runs(page):
    """Return whether a page has a block that is run."""
    return any(block.language in RUN and not block.not_run for block in blocks(page.read_text()))


@pytest.mark.parametrize(
    "page", [*filter(runs, sorted(PAGES))], ids=lambda page: page.relative_to(ROOT / "docs").as_posix()
)
def test_a_page_runs_as_printed(page: Path, examples: Path, tmp_path: Path) -> None:
    folder = tmp_path / "reader"
    shutil.copytree(examples, folder)
    run_page(page.read_text(), folder)
