"""Notebooks, executed without Jupyter: every code cell in order, what it prints, what it shows.

``python tests/docs/notebooks.py FILE…`` stores the outputs anew, as text, without times and paths.
"""

import ast
import contextlib
import io
import json
import sys
import tempfile
from pathlib import Path


def outputs(cell, names):
    """Execute a code cell; return what a notebook stores of it, as text alone."""
    tree = ast.parse(cell)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    printed, shown = io.StringIO(), None
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, "cell", "exec"), names)
        if isinstance(last, ast.Expr):
            shown = eval(compile(ast.Expression(last.value), "cell", "eval"), names)
    stored = []
    if printed.getvalue():
        text = printed.getvalue().splitlines(keepends=True)
        stored.append({"output_type": "stream", "name": "stdout", "text": text})
    if shown is not None:
        data = {"text/plain": repr(shown).splitlines(keepends=True)}
        stored.append({"output_type": "execute_result", "data": data, "metadata": {}})
    return stored


def text_of(stored):
    """Return what outputs show, as one text."""
    return "".join(
        "".join(part.get("text") or part["data"]["text/plain"]) + "\n" for part in stored
    )


def executed(notebook):
    """Return the outputs of each code cell."""
    names = {}
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    return [outputs("".join(cell["source"]), names) for cell in cells]


def record(path):
    """Store a notebook's outputs anew."""
    notebook = json.loads(path.read_text(encoding="utf-8"))
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        made = iter(executed(notebook))
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    for number, cell in enumerate(cells, 1):
        cell["execution_count"] = number
        cell["outputs"] = next(made)
        for part in cell["outputs"]:
            if part["output_type"] == "execute_result":
                part["execution_count"] = number
    path.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    for place in sys.argv[1:]:
        record(Path(place))
