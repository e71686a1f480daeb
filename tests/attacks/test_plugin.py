"""The attack in docs/how-to/attack.md, installed as another package would be."""

import hashlib
import importlib
import re
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ldpaudit.api import plan_of
from ldpaudit.attacks import available_attacks, built_in_attacks
from ldpaudit.audits.interface import AuditContext, Plan
from ldpaudit.audits.label_inference.audit import AUDIT
from ldpaudit.commands.run.work import said_of
from ldpaudit.errors import InputError, LdpAuditError
from ldpaudit.mechanisms import RandomizedResponse
from ldpaudit.options import AuditOptions
from ldpaudit.pipeline.audit import audit
from ldpaudit.pipeline.terms import Terms
from ldpaudit.release import Declaration, FeatureTable, Release, ReleasedLabels, TrueLabels
from ldpaudit.result import PlugIn

FOLDER = Path(__file__).parents[2] / "docs" / "attacks"


PAGE = (FOLDER.parent / "how-to" / "attack.md").read_text()
MECHANISM = RandomizedResponse.from_epsilon((0, 1), 1.0)


@pytest.fixture
def code():
    (code,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    return code


@pytest.fixture
def installed(code, tmp_path, monkeypatch):
    (entry,) = re.findall(r'^first-column = "(.*?)"$', PAGE, re.MULTILINE)
    (tmp_path / "first_column.py").write_text(code)
    info = tmp_path / "first_column-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: first-column\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[ldpaudit.attacks]\nfirst-column = {entry}\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    importlib.invalidate_caches()
    yield code
    sys.modules.pop("first_column", None)


@pytest.fixture(scope="module")
def release():
    rng = np.random.default_rng(0)
    cells = rng.integers(0, 4, 600).astype(np.int32)
    eta = np.array([0.05, 0.3, 0.7, 0.95])
    truth = (rng.random(600) < eta[cells]).astype(np.int32)
    return Release(
        FeatureTable(np.zeros((600, 0), np.float32), cells[:, None], (4,), 1),
        ReleasedLabels(MECHANISM.sample(truth, rng)),
        (0, 1),
        (0, 1),
        TrueLabels(truth),
        Declaration("randomized-response", MECHANISM.declaration(), "api"),
    )


def scored(release, plan):
    return AUDIT.run(AuditContext(release, MECHANISM, plan))


def test_the_example_is_short_scored_and_right(installed, release):
    assert len(installed.strip().splitlines()) <= 35
    assert list(available_attacks())[-1] == "first-column"
    found = {e.id: e for e in scored(release, Plan(seed=1)).estimates}
    # Bayes' optimum is 0.836; the standard error of the share right is 0.015.
    assert found["attack.first-column.accuracy"].value > 0.77
    assert found["attack.first-column.accuracy"].title == "First category alone: Accuracy"
    assert "attack.first-column.in_sample.accuracy" in found
    scores = {name.split(".")[1] for name in found if name.endswith(".multiplicative_advantage")}
    assert f"of {len(scores)} attacks" in found["attack.best.accuracy"].method


def test_a_plug_in_that_took_part_is_named_and_one_with_a_taken_name_refused(
    installed, release, tmp_path
):
    entry = "bayes = first_column:FirstColumnAttack\n"
    points = tmp_path / "first_column-1.0.dist-info" / "entry_points.txt"
    points.write_text(points.read_text() + entry)
    result = audit(release, Terms(Plan(seed=1), only=("label-inference", "power")))
    named = PlugIn(kind="attack", name="first-column", package="first-column", version="1.0")
    assert result.run.plugins == (named,)
    assert "attack first-column of first-column 1.0" in result.to_html()
    refused = "The plug-in 'bayes' (attack) of the package 'first-column' has a built-in attack's"
    assert [n.text.startswith(refused) for n in result.notes if n.audit == "plug-ins"] == [True]


@pytest.fixture(autouse=True)
def modules_as_before():
    """Let a file of one test be none that another has read."""
    before = {*sys.modules}
    yield
    for name in {*sys.modules} - before:
        if name.startswith(("mine", "first_column")):
            del sys.modules[name]


def test_an_attack_in_a_file_is_scored_and_known_by_its_digest(code, release, tmp_path):
    file = tmp_path / "mine.py"
    file.write_text(code)
    plan = Plan(seed=1, attacks=(f"{file}:FirstColumnAttack",))
    result = audit(release, Terms(plan, only=("label-inference", "power")))
    assert result["attack.first-column.accuracy"].value > 0.77
    (part,) = result.run.plugins
    assert part.sha256 == hashlib.sha256(file.read_bytes()).hexdigest()
    assert str(tmp_path) not in result.to_json()
    loaded = sys.modules.pop("mine").FirstColumnAttack
    again = {e.id: e for e in scored(release, replace(plan, attacks=(loaded,))).estimates}
    found = result["attack.first-column.accuracy"]
    assert again[found.id].value == found.value


FAULTS = {
    "fit": ("        clean =", "        1 / 0\n        clean =", "ZeroDivisionError at line 25"),
    "shape": ("return conditioned(own", "return own[:, :1]\n    #", r"shape \(300, 2\)"),
    "sum": ("return conditioned(own", "return 2 * own\n    #", "each row summing to 1"),
    "nan": (
        "return conditioned(own",
        "own[::2] = np.nan\n        return own\n    #",
        r"each row summing to 1\. Got 300 numbers that are not finite, of 600\.",
    ),
    "negative": ("return conditioned(own", "return own - 1\n    #", r"negative numbers, of 600\."),
    "flat": ("return conditioned(own", "return own[0]\n    #", r"Got numbers of shape \(2,\)\."),
    "nothing": ("return conditioned(own", "return None\n    #", r"Got NoneType\."),
    "texts": ("return conditioned(own", "return own.astype(str)\n    #", "Got values of type <U"),
    "complex": ("return conditioned(own", "return own + 0j\n    #", "Got values of type complex"),
    "ragged": ("return conditioned(own", "return [[1], [0, 1]]\n    #", "Got list of no shape"),
    "asked": (
        "        clean =",
        '        from ldpaudit.doors import InputError; raise InputError("No.")\n        clean =',
        "'first-column' cannot run: No",
    ),
    "no text": (
        "        clean =",
        "        from ldpaudit.doors import InputError; raise InputError\n        clean =",
        "failed: InputError at line 25",
    ),
    "syntax": ("class", "clas", "SyntaxError at line 8 of mine.py"),
    "fit of nothing": ("        return self\n", "", "must be the attack itself .*Got NoneType"),
    "no title": ('"First category alone"', "None", "The title of the attack .* must be a text"),
    "no posterior": ("def posterior", "def guess", "must have a method 'posterior'"),
    "made writeable": (
        "        clean =",
        "        release.released.flags.writeable = True\n        clean =",
        "ValueError at line 25",
    ),
    "unstated": ("    learns_from_asked = False\n", "", "must state learns_from_asked"),
    "taken": ('"first-column"', '"bayes"', "called 'bayes' already"),
    "name": ('"first-column"', '"First Column"', "small letters"),
    "nameless": ("    name =", "    names =", "a class with a 'name'"),
}


@pytest.mark.parametrize(("old", "new", "message"), FAULTS.values(), ids=FAULTS)
def test_a_fault_is_one_line_that_says_where(code, release, tmp_path, old, new, message):
    (tmp_path / "mine.py").write_text(code.replace(old, new))
    plan = Plan(seed=1, attacks=(f"{tmp_path / 'mine.py'}:FirstColumnAttack",))
    with pytest.raises(LdpAuditError, match=message):
        scored(release, plan)


REASONS = {
    "InputError": 'from ldpaudit.doors import InputError as E; raise E("No town.")',
    "InsufficientDataError": (
        'from ldpaudit.doors import InsufficientDataError as E; raise E("No town.")'
    ),
}


def test_an_attack_that_is_left_out_without_a_text_has_a_reason(installed, release, tmp_path):
    file, line = tmp_path / "first_column.py", "        clean ="
    reason = "from ldpaudit.doors import InsufficientDataError as E; raise E"
    file.write_text(installed.replace(line, f"        {reason}\n{line}"))
    (warned,) = (
        note.text for note in scored(release, Plan(seed=1)).notes if note.level == "warning"
    )
    assert warned == "The attack first-column was left out: there are too few rows for it."


@pytest.mark.parametrize("reason", REASONS.values(), ids=REASONS)
@pytest.mark.parametrize("where", ["        clean =", "        own ="])
def test_an_installed_attack_that_cannot_run_is_a_warning(
    installed, release, tmp_path, reason, where
):
    (tmp_path / "first_column.py").write_text(
        installed.replace(where, f"        {reason}\n{where}")
    )
    result = audit(release, Terms(Plan(seed=1), only=("label-inference", "power")))
    said = "The attack first-column was left out: No town."
    assert [note.text for note in result.notes if note.level == "warning"] == [said]
    assert ("warning", said) in said_of(result, quiet=False)
    assert said in result.to_html()


def test_an_attack_that_was_asked_for_and_lacks_what_it_needs_is_a_warning(code, release, tmp_path):
    (tmp_path / "mine.py").write_text(code.replace('{"channel"', '{"synthetic-rows"'))
    plan = Plan(seed=1, attacks=(f"{tmp_path / 'mine.py'}:FirstColumnAttack",))
    (warned,) = (note.text for note in scored(release, plan).notes if note.level == "warning")
    assert warned.startswith("The attack first-column was left out: it discounts synthetic rows")


def test_a_place_that_is_none_is_told_before_any_work(tmp_path):
    for place, message in {
        "mine.py": "MODULE:CLASS or FILE.py:CLASS",
        "mine.py:A": "no file 'mine.py'",
        "json:loads": "a class with a 'name'",
        "json:nothing": "has no 'nothing'",
    }.items():
        with pytest.raises(InputError, match=message):
            plan_of(AuditOptions(attacks=(place,)), 1)


def test_every_attack_is_described():
    page = (FOLDER / "README.md").read_text()
    assert {name for name in built_in_attacks() if f"`{name}`" not in page} == set()
