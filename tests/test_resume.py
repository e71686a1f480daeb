"""An audit that was cut short goes on with its finished parts and gives the same result."""

import hashlib
import json
import os
import signal
import stat
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from releases import written

import ldpaudit
from ldpaudit.audits.running import _PARTS
from ldpaudit.errors import InputError, OutputError
from ldpaudit.result import AuditResult, Finding
from ldpaudit.running.stopping import INTERRUPTED, Stop

ONLY = ("mechanism", "label-inference", "seeds", "power")
OPTIONS: dict[str, Any] = {"only": ONLY, "budget": 0.3, "threads": 1, "seeds_tried": 100}


class CutError(BaseException):
    """Ends an audit as a killed process ends: nothing that comes after it is done."""


def cut_short() -> None:
    raise CutError


def killed() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


@dataclass
class Cut:
    """Progress that cuts the audit short at a step of that name, and remembers what it was told."""

    at: str = "never"
    how: Callable[[], None] = cut_short
    steps: list[str] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    names: Sequence[str] = ()

    def step(self, text: str) -> None:
        self.steps.append(text)
        if text.startswith(self.at):
            self.how()

    def advance(self, done: int, total: int) -> None:
        pass

    def remark(self, text: str) -> None:
        self.remarks.append(text)

    def phases(self, names: Sequence[str], seconds: Sequence[float]) -> None:
        self.names = names

    def phase(self, number: int) -> None:
        self.step(self.names[number])


def timeless(result: AuditResult) -> dict[str, Any]:
    """Return a result as it is stored, without the times."""
    stored: dict[str, Any] = json.loads(result.to_json())
    del stored["run"]["seconds"]
    for record in stored["audits"]:
        del record["seconds"]
    return stored


def audited(files: tuple[Path, Path], folder: Path | None = None, **options: Any) -> AuditResult:
    path, truth = files
    return ldpaudit.audit(str(path), truth=str(truth), resume=folder, **OPTIONS | options)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return written(tmp_path_factory.mktemp("release"), rows=400)


@pytest.fixture(scope="module")
def whole(files: tuple[Path, Path]) -> dict[str, Any]:
    return timeless(audited(files))


def test_an_audit_that_is_cut_short_again_and_again_gives_the_same_result(
    files: tuple[Path, Path], whole: dict[str, Any], tmp_path: Path
) -> None:
    folder, last = tmp_path / "parts", 0
    for at in ("label inference", "attack: oracle", "trying seeds", "power"):
        cut = Cut(at)
        with pytest.raises(CutError):
            audited(files, folder, progress=cut)
        assert cut.remarks == []
        last = len(list(folder.rglob("*.part")))
    assert last >= 5
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    for path in folder.rglob("*"):
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600)
    assert timeless(audited(files, folder)) == whole
    assert not folder.exists()


def test_a_killed_run_goes_on(
    files: tuple[Path, Path], whole: dict[str, Any], tmp_path: Path
) -> None:
    folder = tmp_path / "parts"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Newer Pythons warn of threads, of which none matters.
        child = os.fork()
    if child == 0:
        with suppress(BaseException):
            audited(files, folder, progress=Cut("attack: oracle", killed))
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    cut = Cut()
    assert timeless(audited(files, folder, progress=cut)) == whole
    assert cut.remarks == []
    assert not folder.exists()


def test_an_audit_that_is_stopped_keeps_its_parts(
    files: tuple[Path, Path], whole: dict[str, Any], tmp_path: Path
) -> None:
    folder, stop = tmp_path / "parts", Stop()

    def interrupted() -> None:
        stop.asked = INTERRUPTED

    stopped = audited(files, folder, progress=Cut("attack: oracle", interrupted), stop=stop)
    assert {r.id: r.status for r in stopped.audits} == {
        **{"mechanism": "ran", "label-inference": "stopped", "seeds": "stopped"},
        "power": "stopped",
    }
    assert stopped.estimate("attack.released-label.accuracy") is not None
    assert stopped.estimate("attack.best.accuracy") is not None
    assert stopped.verdict == "inconclusive"
    assert "it was interrupted" in stopped.sentence
    assert folder.exists()
    assert timeless(audited(files, folder)) == whole


def test_other_and_damaged_parts_are_ignored_with_one_line(
    files: tuple[Path, Path], whole: dict[str, Any], tmp_path: Path
) -> None:
    folder = tmp_path / "parts"
    with pytest.raises(CutError):
        audited(files, folder, progress=Cut("attack: oracle"), rng=11)
    other = set(folder.rglob("*.part"))
    cut = Cut("attack: oracle")
    with pytest.raises(CutError):
        audited(files, folder, progress=cut)
    assert len(cut.remarks) == 1
    assert "with another --seed" in cut.remarks[0]
    damaged = [path for path in folder.rglob("*.part") if path not in other]
    for path in damaged:
        path.write_bytes(path.read_bytes()[:-30])
    cut = Cut()
    assert timeless(audited(files, folder, progress=cut)) == whole
    assert len(cut.remarks) == len(damaged) - 1  # The list of what belongs together is made anew.
    assert set(folder.rglob("*.part")) == other


def test_other_true_labels_are_noticed_and_no_digest_of_them_is_kept(tmp_path: Path) -> None:
    files = written(tmp_path, rows=400)
    folder = tmp_path / "parts"
    with pytest.raises(CutError):
        audited(files, folder, progress=Cut("attack: oracle"))
    content = files[1].read_bytes()
    labels = pq.read_table(files[1])["label"].to_pylist()
    codes = np.array([label == "yes" for label in labels])
    secrets = [
        content,
        "".join(labels).encode(),
        *(codes.astype(t).tobytes() for t in ["i1", "i4", "i8"]),
    ]
    kept = b"".join(path.read_bytes() for path in folder.rglob("*.part"))
    for secret in secrets:
        assert secret not in kept
        for name in ("sha256", "sha1", "md5", "blake2b"):
            digest = hashlib.new(name, secret)
            assert digest.digest() not in kept
            assert digest.hexdigest()[:12].encode() not in kept
    files[1].write_bytes(content)  # The same labels, written anew: they cannot be told from others.
    cut = Cut("mechanism")
    with pytest.raises(CutError):
        audited(files, folder, progress=cut)
    assert "with another --truth" in cut.remarks[0]


def test_what_cannot_be_resumed_is_refused(files: tuple[Path, Path], tmp_path: Path) -> None:
    table = pq.read_table(files[0])
    with pytest.raises(InputError, match="needs a released file"):
        ldpaudit.audit(table, truth=str(files[1]), resume=tmp_path / "parts")
    with pytest.raises(InputError, match="what is given for --truth is in memory"):
        ldpaudit.audit(str(files[0]), truth=pq.read_table(files[1]), resume=tmp_path / "parts")
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match="is a file"):
        audited(files, tmp_path / "file")


def test_a_folder_that_is_there_stays_as_it_is(files: tuple[Path, Path], tmp_path: Path) -> None:
    folder = tmp_path / "parts"
    folder.mkdir(mode=0o755)
    (folder / "notes").mkdir()
    cut = Cut("mechanism")
    with pytest.raises(CutError):
        audited(files, folder, progress=cut)
    assert cut.remarks == []
    assert stat.S_IMODE(folder.stat().st_mode) == 0o755
    (own,) = [path for path in folder.iterdir() if path.name != "notes"]
    assert stat.S_IMODE(own.stat().st_mode) == 0o700


def test_every_part_of_a_finding_is_kept() -> None:
    assert {f.name for f in fields(Finding)} == {*_PARTS, "bounds"}
