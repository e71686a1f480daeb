"""Benchmarks are run by hand: what they import must still be there."""

import ast
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "benchmarks"


@pytest.mark.parametrize("path", sorted(FOLDER.rglob("*.py")), ids=lambda path: path.stem)
def test_what_a_benchmark_imports_is_there(path: Path) -> None:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("ldpaudit"):
            for name in node.names:
                scope: dict[str, object] = {}
                exec(f"from {node.module} import {name.name}", scope)
                assert name.name in scope
