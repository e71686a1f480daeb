"""What the pages on security name exists: every test, script and section."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = ("docs/security.md", "docs/explanation/threat-model.md")
_NAMED = re.compile(r"`((?:tests/[\w/]+\.py)?(?:::\w+)?)`")


def named(text: str) -> Iterator[tuple[Path, str]]:
    """Yield file and test of each that is named; ``::test`` alone is of the file before it."""
    file = ""
    for found in filter(None, _NAMED.findall(text)):
        place, _, test = found.partition("::")
        file = place or file
        yield ROOT / file, test


@pytest.mark.parametrize("page", PAGES)
def test_what_is_named_exists(page: str) -> None:
    every = list(named((ROOT / page).read_text()))
    assert len(every) > 8
    for file, test in every:
        assert file.is_file(), file
        assert not test or re.search(rf"^def {test}\(", file.read_text(), re.MULTILINE), test
