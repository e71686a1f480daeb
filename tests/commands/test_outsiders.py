"""What only the public page shows is computed where a public page can be made."""

from pathlib import Path
from typing import Any

import pytest

from ldpaudit.commands.outputs import ReportOutputs
from ldpaudit.commands.requests import RunRequest
from ldpaudit.commands.run import work
from ldpaudit.errors import InputError


@pytest.mark.parametrize(
    ("formats", "profile", "asked"),
    [
        (("html",), "internal", False),
        (("html",), "public", True),
        (("html", "json"), "internal", True),
        (("json",), "internal", True),
    ],
)
def test_outsiders_are_told_where_they_may_read(
    formats: tuple[str, ...],
    profile: Any,
    asked: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    heard = list[bool]()

    def audit_with(release: Any, options: Any, *, outsiders: bool) -> Any:
        heard.append(outsiders)
        raise InputError("No more.")

    monkeypatch.setattr(work, "audit_with", audit_with)
    release = tmp_path / "release.csv"
    release.write_text("a,label\n1,x\n2,y\n")
    outputs = ReportOutputs(**{name: tmp_path / f"audit.{name}" for name in formats})
    with pytest.raises(InputError, match="No more"):
        work.run_and_write(RunRequest(release=(str(release),)), outputs, profile=profile)
    assert heard == [asked]
