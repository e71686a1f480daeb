"""The audit in docs/how-to/audit.md, installed as another package would be."""

import importlib
import json
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from releases import written

import ldpaudit
from ldpaudit.audits.listing import built_in_audits
from ldpaudit.errors import InputError, LdpAuditError
from ldpaudit.pipeline.audit import available_audits
from ldpaudit.result import AuditResult, Estimate

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "audit.md"


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    page = PAGE.read_text()
    (code,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    (entry,) = re.findall(r'^first-label = "(.*?)"$', page, re.MULTILINE)
    (tmp_path / "first_label.py").write_text(code)
    info = tmp_path / "first_label-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: first-label\nVersion: 1.0\n")
    points = info / "entry_points.txt"
    points.write_text(f"[ldpaudit.audits]\nfirst-label = {entry}\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    importlib.invalidate_caches()
    yield points
    sys.modules.pop("first_label", None)


def test_the_example_runs_and_has_a_section(installed: Path, tmp_path: Path) -> None:
    assert list(available_audits())[-1] == "first-label"
    release, truth = written(tmp_path, rows=600)
    result = ldpaudit.audit(release, truth, only=["mechanism", "first-label"])
    (share,) = (e for e in result.estimates if e.id == "first-label.share")
    assert (share.kind, share.section) == ("certified", "first-label")
    assert 0.3 < share.value < 1
    assert [record.id for record in result.audits] == ["mechanism", "first-label"]
    page = result.to_html()
    assert "First label" in page
    assert "Share of the first label among the released ones" in page
    stored = json.loads(result.to_json())
    assert any(e["section"] == "first-label" for e in stored["estimates"])


PEOPLE, ROWS = 200, 10


def remembered(seed: int) -> pd.DataFrame:
    """Return people with several rows and one answer each, half of whom are released as "a"."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 2, PEOPLE)
    released = np.where(rng.random(PEOPLE) < np.e / (1 + np.e), truth, 1 - truth)
    person = np.repeat(np.arange(PEOPLE), ROWS)
    labels = {"label": np.array(["a", "b"])[released[person]], "true": truth[person]}
    return pd.DataFrame({"x": rng.standard_normal(PEOPLE * ROWS), "person": person, **labels})


def share(table: pd.DataFrame, truth: pd.Series | None = None, **options: Any) -> Estimate:
    claim = {"name": "randomized-response", "epsilon": 1.0, "classes": ["a", "b"]}
    result = ldpaudit.audit(
        table.drop(columns="true"), truth, mechanism=claim, only=["first-label"], seed=1, **options
    )
    return result["first-label.share"]


@pytest.mark.usefixtures("installed")
def test_its_bound_counts_people_where_rows_belong_together() -> None:
    """Above 4 misses of 6 at 5 % each have probability 1e-6; of all rows a third misses."""
    found = [share(remembered(seed), group="person") for seed in range(6)]
    assert {(one.kind, one.n) for one in found} == {("certified", PEOPLE)}
    assert sum(one.value > 0.5 for one in found) <= 4
    assert np.mean([one.value for one in found]) > 0.4


@pytest.mark.usefixtures("installed")
def test_its_bound_is_an_estimate_where_rows_share_noise_all_the_same() -> None:
    table = remembered(1)
    table["x"] = table["person"] % 100
    true = table["true"].map({0: "a", 1: "b"})
    assert share(table.drop(columns="person"), true).kind == "estimated"
    table["label"] = np.where(np.random.default_rng(2).random(len(table)) < 0.7, true, "a")
    table["x"] = np.arange(len(table))
    assert share(table.drop(columns="person"), true).kind == "certified"


def test_what_an_audit_needs_is_looked_at(installed: Path, tmp_path: Path) -> None:
    release, _ = written(tmp_path, rows=600)
    code = installed.parents[1] / "first_label.py"
    text = code.read_text()

    def stating(line: str) -> AuditResult:
        code.write_text(
            text.replace('    id = "first-label"\n', f'    id = "first-label"\n    {line}\n')
        )
        importlib.invalidate_caches()
        sys.modules.pop("first_label", None)
        return ldpaudit.audit(release, only=["mechanism", "power", "first-label"])

    assert stating('needs = ("rows",)').audits[-1].status == "ran"
    skipped = stating('needs = ("truth",)').audits[-1]
    assert (skipped.status, skipped.reason) == ("skipped", "it needs the true labels (--truth)")
    with pytest.raises(InputError, match="must be a tuple of some of 'truth'"):
        stating('needs = ("true labels",)')
    for needs in ("([],)", "('truth', [])", "['truth']", "'truth'", "(None,)", "({'rows'},)"):
        with pytest.raises(InputError, match="'first-label' needs must be a tuple of some of"):
            stating(f"needs = {needs}")
    with pytest.raises(InputError, match="must count 'people' or 'rows'"):
        stating("counts = []")
    with pytest.raises(InputError, match="must count 'people' or 'rows'"):
        stating('counts = "households"')


@pytest.mark.parametrize(
    ("found", "message"),
    [
        ("Finding(estimates=(3,))", "must find estimates of ldpaudit.doors. Got int"),
        ("Finding(notes=('words',))", "must find notes of ldpaudit.doors. Got str"),
        (
            "Finding(estimates=(share.model_copy(update={'low': None}),))",
            "states 'first-label.share' as lower, without its low end",
        ),
        (
            "Finding(estimates=(share.model_copy(update={'side': 'two-sided'}),))",
            "states 'first-label.share' as two-sided, without its high end",
        ),
        ("3", "must return a Finding. Got int instead"),
        ("None", "must return a Finding. Got NoneType instead"),
        (
            "Finding(estimates=(share.model_copy(update={'count': rows + 1}),))",
            "states 'first-label.share', and a share of 600 rows cannot count 601",
        ),
        (
            "Finding(estimates=(share.model_copy(update={'low': -3.0, 'value': -3.0}),))",
            "states 'first-label.share', and a number of the unit 'proportion' lies from 0 to 1",
        ),
        (
            "Finding(estimates=(share.model_copy(update={'low': float('inf'), 'unit': 'nats'}),))",
            "states 'first-label.share', and no bound that is certified is infinite",
        ),
        (
            "Finding(estimates=(Estimate.lower_bound('first-label.epsilon', '', -1.0, level, "
            "unit='nats', axis='epsilon'),))",
            "states 'first-label.epsilon', and no ε is negative; a bound that finds nothing is 0",
        ),
    ],
)
def test_what_an_audit_finds_is_looked_at(
    installed: Path, tmp_path: Path, found: str, message: str
) -> None:
    release, _ = written(tmp_path, rows=600)
    code = installed.parents[1] / "first_label.py"
    code.write_text(code.read_text().replace("Finding(estimates=(share,))", found))
    with pytest.raises(InputError, match=rf"The plug-in 'first-label' \(audit\) {message}"):
        ldpaudit.audit(release, only=["mechanism", "power", "first-label"])


@pytest.fixture
def doing(installed: Path, tmp_path: Path) -> Callable[..., AuditResult]:
    """Return a function that runs the audit with other lines before it looks at anything."""
    code = installed.parents[1] / "first_label.py"
    text = code.read_text()
    release, truth = written(tmp_path, rows=600)

    def run(*lines: str, inside: str = "run", found: str | None = None) -> AuditResult:
        head = f"    def {inside}(self, context):\n"
        changed = text.replace(head, head + "".join(f"        {line}\n" for line in lines))
        code.write_text(
            changed.replace("Finding(estimates=(share,))", found or "Finding((share,))")
        )
        importlib.invalidate_caches()
        sys.modules.pop("first_label", None)
        return ldpaudit.audit(release, truth, only=["mechanism", "seeds", "first-label"], seed=1)

    return run


ARRAYS = (
    "context.release.released",
    "context.release.truth",
    "context.release.features.numeric",
    "context.halves()",
    "context.claim.channel.matrix",
)


@pytest.mark.parametrize("array", ARRAYS)
def test_an_audit_changes_nothing_that_others_read(
    doing: Callable[..., AuditResult], array: str
) -> None:
    untouched = doing()
    with pytest.raises(LdpAuditError, match=r"'first-label' \(audit\) failed: ValueError at line"):
        doing(f"{array}[:] = 0")
    refused = (
        "import contextlib",
        f"held = {array}",
        "with contextlib.suppress(ValueError, AttributeError):",
        "    held.flags.writeable = True",
        "    held[:] = 0",
    )
    assert doing(*refused).estimates == untouched.estimates


def test_the_numbers_of_a_generator_are_kept(doing: Callable[..., AuditResult]) -> None:
    found = doing(found="Finding(estimates=(one for one in (share,)))")
    assert found["first-label.share"] == doing()["first-label.share"]


@pytest.mark.parametrize("inside", ["run", "unavailable"])
@pytest.mark.parametrize("kind", ["InputError", "LdpAuditError", "OutputError"])
def test_the_text_of_an_error_follows_the_name_of_the_audit(
    doing: Callable[..., AuditResult], inside: str, kind: str
) -> None:
    with pytest.raises(LdpAuditError) as refused:
        doing(f"from ldpaudit.doors import {kind} as E", "raise E('No town.')", inside=inside)
    assert str(refused.value) == "The plug-in 'first-label' (audit): No town."
    assert type(refused.value).__name__ == kind


def test_an_error_without_a_text_says_where_it_arose(doing: Callable[..., AuditResult]) -> None:
    with pytest.raises(LdpAuditError, match=r"\(audit\) failed: InputError at line 14 of"):
        doing("from ldpaudit.doors import InputError as E", "raise E")


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        ("InsufficientDataError('no town')", "no town"),
        ("InsufficientDataError", "there are too few rows"),
        ("MissingDependencyError", "a library that it needs is not installed"),
    ],
)
def test_a_skipped_audit_has_a_reason(
    doing: Callable[..., AuditResult], error: str, reason: str
) -> None:
    record = doing("from ldpaudit import doors", f"raise doors.{error}").audits[-1]
    assert (record.status, record.reason) == ("skipped", reason)


@pytest.mark.parametrize("answer", ["''", "' '", "True", "3"])
def test_why_an_audit_is_unavailable_is_words(
    doing: Callable[..., AuditResult], answer: str
) -> None:
    with pytest.raises(InputError, match="'first-label' must say in words why it is unavailable"):
        doing(f"return {answer}", inside="unavailable")


def test_a_plug_in_replaces_no_built_in_audit(installed: Path) -> None:
    installed.write_text("[ldpaudit.audits]\npower = first_label:FirstLabelAudit\n")
    importlib.invalidate_caches()
    assert available_audits() == built_in_audits()
