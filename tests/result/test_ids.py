"""An id that an audit computes and a check reads is spelt in one place."""

import ast
from pathlib import Path

import ldpaudit
from ldpaudit.result import dictionary

ROOT = Path(ldpaudit.__file__).parent
IDS = {
    name
    for table in vars(dictionary).values()
    if isinstance(table, dict)
    for name in table
    if isinstance(name, str) and "." in name
}


def spelt(folder: str) -> set[str]:
    """Return the ids that the modules of a folder spell out."""
    trees = (ast.parse(path.read_text("utf-8")) for path in (ROOT / folder).rglob("*.py"))
    constants = (n.value for tree in trees for n in ast.walk(tree) if isinstance(n, ast.Constant))
    return {value for value in constants if isinstance(value, str)} & IDS


def test_no_check_spells_the_id_of_a_number_that_an_audit_names() -> None:
    assert "mechanism.epsilon_lower" in IDS
    assert spelt("audits")
    assert spelt("judging")
    assert spelt("audits") & spelt("judging") == set()
