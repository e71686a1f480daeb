"""What the pages on security name exists: every test, script and section."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = ("docs/security.md", "docs/explanation/threat-model.md")
FINDINGS = "## Findings, and the tests that keep them mended"
_NAMED = re.compile(r"`((?:tests/[\w/]+\.py)?(?:::\w+)?)`")


def named(text: str) -> Iterator[tuple[Path, str]]:
    """Yield file and test of each that is named; ``::test`` alone is of the file before it."""
    file = ""
    for found in filter(None, _NAMED.findall(text)):
        place, _, test = found.partition("::")
        file = place or file
        yield ROOT / file, test


def rows() -> list[str]:
    _, _, table = (ROOT / PAGES[0]).read_text().partition(FINDINGS)
    return [line for line in table.splitlines() if line.startswith("| ")][1:]


@pytest.mark.parametrize("page", PAGES)
def test_what_is_named_exists(page: str) -> None:
    every = list(named((ROOT / page).read_text()))
    assert len(every) > 10
    for file, test in every:
        assert file.is_file(), file
        assert not test or re.search(rf"^def {test}\(", file.read_text(), re.MULTILINE), test


def test_each_finding_has_a_test() -> None:
    assert len(rows()) >= 20
    for row in rows():
        _, tests = row.strip("| ").split(" | ")
        assert list(named(tests)), row
