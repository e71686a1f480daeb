from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from ldpaudit.commands.requests import RunRequest
from ldpaudit.commands.run import work as demo
from ldpaudit.commands.run.work import demo_tables, write_demo
from ldpaudit.datasets import read_release
from ldpaudit.errors import OutputError
from ldpaudit.estimators.intervals.binomial import clopper_pearson
from ldpaudit.mechanisms import from_declaration
from ldpaudit.result import AuditResult


def test_the_demonstration_holds_what_it_says(tmp_path: Path) -> None:
    files = write_demo(tmp_path / "new" / "folder", seed=20260101)
    for path, made in ((files.honest, 1.0), (files.dishonest, 3.0)):
        report = read_release(path, truth=files.truth)
        release = report.release
        assert report.warnings == ()
        assert release.features.columns == 8
        assert from_declaration(release.declaration, release.classes).epsilon == pytest.approx(1.0)
        kept = int(np.sum(release.released == release.truth))
        low, high = clopper_pearson(kept, len(release), 1e-6)  # flakes never: the seed is fixed
        assert low < 1 / (1 + np.exp(-made)) < high
        assert (high - low) < 0.06


def test_the_same_seed_gives_the_same_files(tmp_path: Path) -> None:
    first, again = write_demo(tmp_path, 5), write_demo(tmp_path, 5)
    assert first == again
    honest, dishonest, truth = demo_tables(5)
    other, *_ = demo_tables(6)
    assert honest.equals(demo_tables(5)[0])
    assert not honest.equals(other)
    assert honest.num_rows == dishonest.num_rows == truth.num_rows == 6366


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(OutputError, match="cannot be made"):
        write_demo(tmp_path / "file", 1)


def test_the_command_audits_both_and_says_what_to_open(
    command: Callable[..., tuple[int, str, str]], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """In this process, and only the audits that decide; the recorded run has all, in two."""

    def here(jobs: list[tuple[Path, Path]]) -> list[AuditResult]:
        return [demo._audit(job, 1) for job in jobs]

    monkeypatch.setattr(demo, "_audited", here)
    monkeypatch.setattr(demo, "RunRequest", partial(RunRequest, only=("mechanism", "power")))
    status, out, err = command("demo", "--folder", tmp_path)
    assert (status, err) == (0, "")
    assert out.index("No violation found") < out.index("Violation found")
    assert "made with ε = 3" in out
    assert out.rstrip().endswith(f"Open {tmp_path / 'dishonest.audit.html'} in a browser.")
    assert len(list(tmp_path.glob("*.audit.*"))) == 4
