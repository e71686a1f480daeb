"""What the checks of an installation's packages, and of the sources, say."""

import ast
import json
import re
import tomllib
from pathlib import Path

import check_dependencies
import pytest

ROOT = Path(__file__).parents[3]
FOLDERS = ("ldpaudit", "attacks", "reports", "datasets")
UNPICKLERS = {
    "ldpaudit/work/tasks.py": "what a command sends its own workers",
}
"""The modules that may use pickle, and on what."""
READERS = {"np.load": "allow_pickle=False", "torch.load": "weights_only=True"}
"""What can unpickle, with what keeps it from that."""


def sources():
    paths = [p for folder in FOLDERS for p in (ROOT / folder).rglob("*.py")]
    return {str(path.relative_to(ROOT)): path.read_text() for path in paths}


def test_everything_that_is_required_is_looked_at():
    found = check_dependencies.required()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    direct = {re.split(r"[<>=\[]", line)[0].lower() for line in project["dependencies"]}
    assert direct <= found.keys()
    assert not {"pytest", "ruff", "sphinx"} & found.keys()
    extras = project["optional-dependencies"].keys() - {"docs", "dev", "fuzz"}
    assert extras == set(check_dependencies.EXTRAS)


def test_the_bill_of_materials_is_the_same_each_time():
    packages = check_dependencies.required()
    text = check_dependencies.bill_of_materials(packages)
    assert text == check_dependencies.bill_of_materials(packages)
    bill = json.loads(text)
    assert bill["bomFormat"] == "CycloneDX"
    assert {part["name"] for part in bill["components"]} == packages.keys() - {"ldpaudit"}
    below = {part["ref"]: part.get("dependsOn", ()) for part in bill["dependencies"]}
    of_this = below[bill["metadata"]["component"]["bom-ref"]]
    assert any(ref.startswith("pkg:pypi/numpy@") for ref in of_this)


def package(name, *flaws):
    vulns = [{"id": flaw, "fix_versions": ["2.0"], "aliases": []} for flaw in flaws]
    return {"name": name, "version": "1.0", "vulns": vulns}


@pytest.mark.parametrize(
    ("answer", "fine", "words"),
    [
        ("", True, "not checked: the service does not answer"),
        ("<html>", True, "not checked: the service does not answer"),
        ("[]", True, "not checked: the service does not answer"),
        ({"dependencies": [{"name": "a", "skip_reason": "…"}]}, True, "knows no package"),
        ({"dependencies": [package("a"), package("b")]}, True, r"none in 2 packages \(.*: 1\)"),
        ({"dependencies": [package("a"), package("b", "V-1")]}, False, "b 1.0: V-1, mended in 2.0"),
    ],
)
def test_a_known_vulnerability_fails_and_silence_is_said(answer, fine, words):
    text = answer if isinstance(answer, str) else json.dumps(answer)
    may, (line,) = check_dependencies.judged(text, 3)
    assert may is fine
    assert re.search(words, line)


def test_a_vulnerability_may_be_accepted_by_name(monkeypatch):
    text = json.dumps({"dependencies": [package("b", "V-1")]})
    monkeypatch.setattr(check_dependencies, "ACCEPTED", {"V-1": "not used here"})
    assert check_dependencies.judged(text, 1)[0]


def test_nothing_that_others_made_is_unpickled():
    """Modules that unpickle are listed with their reason; readers that could are kept from it."""
    unpickling, found = set(), []
    for path, text in sources().items():
        if re.search(r"\b(pickle|marshal|shelve|dill|joblib)\.(load|open|Unpick)", text):
            unpickling.add(path)
        for reader, kept in READERS.items():
            found += [kept in call for call in re.findall(rf"\b{re.escape(reader)}\(.*", text)]
        assert "read_pickle" not in text
        assert not re.search(r"\byaml\b", text), path
    assert unpickling == UNPICKLERS.keys()
    assert len(found) >= 2
    assert all(found)


def test_asserts_check_no_input():
    """They only narrow types, so that nothing changes where Python leaves them out (-O)."""
    for path, text in sources().items():
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Assert):
                asked = ast.unparse(node.test)
                assert " is None" in asked or " is not None" in asked or "isinstance" in asked, path
