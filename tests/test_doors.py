"""The contract of ``ldpaudit.doors``: its names, their docstrings, signatures and page.

``python tests/test_doors.py`` records the signatures again, where their change is meant.
"""

import ast
import importlib
import inspect
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from ldpaudit import doors

HERE = Path(__file__).parent
ROOT = HERE.parent
RECORDED = HERE / "doors.json"
PAGE = (HERE.parent / "docs" / "doors.md").read_text()
STUB = Path(doors.__file__).with_suffix(".pyi").read_text()
ALIASES = {"EXIT", "Debug", "FloatArray", "IndexArray", "IntArray", "Said"}
BOUNDS = ("clopper_pearson", "clopper_pearson_lower", "mean_lower", "mean_upper", "shift_lower")
# What the page's examples are called in tests/stranger, which runs them.
EXAMPLES = {
    "doors.md": [
        "hadamard_reports.py",
        "shuffled_columns.py",
        "pipes.py",
        "long_pipes.py",
        "check_lines.py",
        "shares.py",
    ],
    "how-to/audit.md": ["first_label.py"],
    "how-to/attack.md": ["first_column.py"],
}


def parameters(function):
    """Return the parameters of a function or a class by name; none where Python knows none."""
    try:
        found = inspect.signature(function).parameters
    except ValueError:  # Of an exception.
        return {}
    except TypeError:  # Of an alias.
        return {}
    variable = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return {
        name: one
        for name, one in found.items()
        if not name.startswith("_") and name not in ("self", "cls") and one.kind not in variable
    }


def members(kind):
    """Yield the public methods and properties of a class, inherited ones of this package too."""
    for base in kind.__mro__:
        if base.__module__.startswith("ldpaudit"):
            for name, value in vars(base).items():
                plain = getattr(value, "__func__", value)
                method = inspect.isfunction(plain) and plain.__name__ != "<lambda>"
                if not name.startswith("_") and (method or isinstance(plain, property)):
                    yield name, plain


def unnamed(function, text):
    return [name for name in parameters(function) if not re.search(rf"\b{re.escape(name)}\b", text)]


def contract():
    """Return the signature of each name, and of the public methods of each class."""
    found = {}
    for name in doors.__all__:
        value = getattr(doors, name)
        signature = {"parameters": shown(value)}
        if inspect.isclass(value):
            methods = dict(reversed([*members(value)]))
            signature["members"] = {
                key: "property" if isinstance(part, property) else shown(part)
                for key, part in sorted(methods.items())
            }
        found[name] = signature
    return found


def shown(function):
    """Return parameters as text: ``*`` before keywords, ``=`` after those with a default."""
    return ", ".join(
        ("*" if one.kind is one.KEYWORD_ONLY else "")
        + name
        + ("" if one.default is one.empty else "=")
        for name, one in parameters(function).items()
    )


def classes_and_functions():
    return [name for name in doors.__all__ if name not in ALIASES]


def test_at_most_eighty_names_each_of_which_is_there():
    assert len(doors.__all__) <= 80
    assert len(set(doors.__all__)) == len(doors.__all__)
    for name in doors.__all__:
        assert getattr(doors, name) is not None
    assert sorted(dir(doors)) == sorted(doors.__all__)


def test_the_stub_has_the_same_names_from_the_same_places():
    lines = re.findall(r"^from (\S+) import (\w+) as (\w+)$", STUB, re.MULTILINE)
    assert len(lines) == len(STUB.splitlines())
    assert sorted(name for _, name, _ in lines) == sorted(doors.__all__)
    for module, name, known in lines:
        assert name == known
        assert getattr(importlib.import_module(module), name) is getattr(doors, name), name


def test_importing_the_door_imports_nothing_else():
    code = (
        "import sys, ldpaudit.doors\n"
        "heavy = {'numpy', 'pyarrow', 'pandas', 'pydantic', 'typer', 'torch'} & set(sys.modules)\n"
        "sys.exit(str(heavy) if heavy else 0)"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr


@pytest.mark.parametrize("name", classes_and_functions())
def test_every_docstring_names_every_parameter(name):
    value = getattr(doors, name)
    text = value.__doc__ or ""
    assert re.match(r"\w.*[.:?](\n|$)", text, re.DOTALL), name
    assert unnamed(value, text) == []
    for method, function in members(value) if inspect.isclass(value) else ():
        own = inspect.getdoc(getattr(value, method)) or inspect.getdoc(function) or ""
        assert own, f"{name}.{method}"
        if not isinstance(function, property):
            assert unnamed(function, own) == [], f"{name}.{method}"


@pytest.mark.parametrize("name", BOUNDS)
def test_bounds_state_their_side_and_level(name):
    text = getattr(doors, name).__doc__
    side = {"lower": "lower", "upper": "upper"}.get(name.rpartition("_")[2], "two-sided")
    assert side in text.partition("\n")[0], name
    assert "level 1 − alpha" in text.partition("\n")[0], name
    assert re.search(r"error probability in \(0, 1\)|are\n? *its parameters", text), name


@pytest.mark.parametrize("name", ["lower_bound", "upper_bound", "interval"])
def test_estimates_state_what_their_level_means(name):
    text = " ".join(getattr(doors.Estimate, name).__doc__.split())
    assert "with a probability of at least ``level``" in text


def test_no_bound_is_forgotten_here():
    ends = ("_lower", "_upper")
    assert {n for n in doors.__all__ if n.endswith(ends)} <= {*BOUNDS}


def test_the_contract_is_as_recorded():
    assert contract() == json.loads(RECORDED.read_text())


def test_the_page_lists_every_name_once():
    listed = PAGE.partition("## The names")[2]
    names = re.findall(r"`(\w+)`", "\n".join(re.findall(r"^\| (`[^|]*) \|", listed, re.MULTILINE)))
    assert sorted(names) == sorted(doors.__all__)


@pytest.mark.parametrize("page", EXAMPLES)
def test_the_examples_are_those_of_the_stranger_who_runs_them(page):
    text = (HERE.parent / "docs" / page).read_text()
    files = [(HERE / "stranger" / name).read_text() for name in EXAMPLES[page]]
    assert re.findall(r"```python\n(.*?)```", text, re.DOTALL) == files
    lines = (HERE / "stranger" / "pyproject.toml").read_text().splitlines()
    for block in re.findall(r"```toml\n(.*?)```", text, re.DOTALL):
        assert [line for line in block.splitlines() if line not in lines] == []


# Names that each extra of this package takes from elsewhere than the door: fewer is better, more is
# a step back.
NOT_BY_THE_DOOR = {
    "choose": 205,
    "compare": 122,
    "kinds": 224,
    "learn": 61,
    "probe": 69,
    "receipt": 63,
    "release": 165,
    "selftest": 1,
    "several": 174,
    "web": 17,
}


def not_by_the_door(extra):
    own, taken = f"ldpaudit.extras.{extra}", set()
    for path in (ROOT / "ldpaudit" / "extras" / extra).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            module = node.module or "" if isinstance(node, ast.ImportFrom) else ""
            inside = module == "ldpaudit.doors" or module.startswith(own)
            if module.startswith("ldpaudit") and not inside:
                taken |= {(module, one.name) for one in node.names}
    return len(taken)


@pytest.mark.parametrize("extra", NOT_BY_THE_DOOR)
def test_no_extra_takes_more_from_elsewhere_than_the_door(extra):
    assert not_by_the_door(extra) <= NOT_BY_THE_DOOR[extra]


if __name__ == "__main__":
    RECORDED.write_text(json.dumps(contract(), indent=1, sort_keys=True) + "\n")
