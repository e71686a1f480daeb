"""Pages look nothing up by taking ids apart: numbers state what pages need."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

REPORTS = Path(__file__).parents[2] / "reports"
APART = {
    "split", "rsplit", "partition", "rpartition", "startswith", "endswith", "removeprefix",
    "removesuffix", "count", "index", "find",
}  # fmt: skip
IDS = {"id", "identifier", "ids", "identifiers"}


def parsed(tree: ast.AST) -> Iterator[int]:
    """Yield the lines where a string method takes an id apart, or an id is sliced."""
    for node in ast.walk(tree):
        called = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
        if called and node.func.attr in APART and name_of(node.func.value) in IDS:
            yield node.lineno
        sliced = isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Slice)
        if sliced and name_of(node.value) in ("id", "identifier"):
            yield node.lineno


def name_of(node: ast.AST) -> str:
    return getattr(node, "attr", None) or getattr(node, "id", "")


@pytest.mark.parametrize("path", sorted(REPORTS.rglob("*.py")), ids=lambda path: path.name)
def test_no_id_is_taken_apart(path: Path) -> None:
    assert list(parsed(ast.parse(path.read_text(encoding="utf-8")))) == []


def test_the_search_finds_what_it_looks_for() -> None:
    for line in (
        "e.id.split('.')",
        "e.id.startswith('a.')",
        "identifier.partition('.')",
        "e.id[:3]",
    ):
        assert list(parsed(ast.parse(line))) == [1]
