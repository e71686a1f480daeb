"""What belongs together is one object: a function has few parameters."""

import ast
from pathlib import Path

import ldpaudit

MOST = 8
MORE = {
    "read_release": "the door's reader, all of whose options are keywords of callers",
    "read_file_columns": "the same of several columns",
    "audit_model": "the door of a black box",
    "run": "the options of the command line that no request holds",
}
ROOT = Path(ldpaudit.__file__).parent


def parameters(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Return how many parameters a function has, its object not counted."""
    given = function.args
    names = [one.arg for one in (*given.posonlyargs, *given.args, *given.kwonlyargs)]
    return len(names) - (names[:1] in (["self"], ["cls"]))


def test_no_function_has_more_parameters_than_can_be_read() -> None:
    folders = ROOT, *(ROOT / name for name in ("attacks", "datasets", "reports"))
    modules = {path.resolve() for folder in folders for path in folder.rglob("*.py")}
    assert len(modules) > 400
    many = set()
    for path in modules:
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and parameters(node) > MOST:
                many.add(node.name)
    assert many == set(MORE)
