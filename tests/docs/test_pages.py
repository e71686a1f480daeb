"""Every page of the documentation runs as printed, in a folder with the examples."""

import re
import shutil
from pathlib import Path

import pytest
from docs.blocks import QUICK, ROOT, Block, blocks, prepare, run_page

DOCS = ROOT / "docs"
PAGES = {
    page.relative_to(DOCS).as_posix(): page.read_text()
    for page in sorted(DOCS.rglob("*.md"))
    if "reference" not in page.parts
}
COMMAND = re.compile(r"^(\$ |ldpaudit [a-z]|python |pip |dask |import |from )", re.MULTILINE)

JUDGED_BY_LOSS = ("ci.md", "policy.md")
"""Pages whose policy needs the losses; elsewhere they are left out, for speed."""
SEVERAL = "tutorial-agency.md"
"""Ten audits of columns: what attackers learn of each is left out, for speed."""

LONG = (SEVERAL, "sweep.md", "how-to/images.md", "how-to/wide-tables.md")
"""Pages that are run by `make validate`: with many audits, a sweep, images or wide tables."""

RELEASE = """
```console
$ ldpaudit privatize patients.csv -o release.parquet --label diagnosis --mechanism rr --epsilon 1 \\
    --secret truth.parquet
```
"""
"""What pages take for granted besides the examples: a release and its true labels."""


@pytest.fixture(scope="module")
def examples(tmp_path_factory):
    folder = tmp_path_factory.mktemp("examples")
    prepare(folder)
    run_page(RELEASE, folder)
    return folder


def found(text: str, run: bool) -> list[Block]:
    """Return the blocks of a page that are run, or those that say why they are not."""
    code = [block for block in blocks(text) if block.language in ("console", "python")]
    return [block for block in code if bool(block.not_run) != run]


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(name, marks=pytest.mark.validate if name in LONG else ())
        for name, text in PAGES.items()
        if found(text, run=True)
    ],
)
def test_a_page_runs_as_printed(
    page: str, examples: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "reader"
    shutil.copytree(examples, folder)
    if page == "how-to/several-releases.md":  # Its people's answers are drawn with seeds 1 and 2.
        monkeypatch.setitem(QUICK, "LDPAUDIT_SKIP", QUICK["LDPAUDIT_SKIP"] + " seeds")
    if page not in JUDGED_BY_LOSS:
        left = " instance-loss label-inference" if page == SEVERAL else " instance-loss"
        monkeypatch.setitem(QUICK, "LDPAUDIT_SKIP", QUICK["LDPAUDIT_SKIP"] + left)
    run_page(PAGES[page], folder)


def test_what_is_not_run_is_listed_here() -> None:
    left = {name: len(found(text, run=False)) for name, text in PAGES.items()}
    assert {name: count for name, count in left.items() if count} == {
        "ci.md": 1,  # needs Docker
        "explanation/zoo.md": 1,  # takes minutes
        "how-to/cluster.md": 3,  # needs a scheduler, several machines, Kubernetes
        "open.md": 1,  # waits for somebody to end it
        "selftest.md": 1,  # takes two minutes
    }


def test_every_command_is_in_a_block_that_is_run() -> None:
    for name, text in PAGES.items():
        for block in blocks(text):
            if block.language not in ("console", "python"):
                assert not COMMAND.search(block.text), (name, block.line)
