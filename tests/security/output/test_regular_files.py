"""Outputs are regular files: devices, pipes and sockets are refused, links are followed."""

import os
import socket
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

Command = Callable[..., tuple[int, str, str]]
RELEASE = "privatize d.csv --mechanism rr --epsilon 1 --quiet --overwrite"
RUN = "run r.parquet --only mechanism"
DESCRIBE = "mechanism describe rr --epsilon 1 --classes A,B"
OPTIONS = (
    f"{RELEASE} -o",
    f"{RELEASE} -o n.parquet --secret",
    f"{RELEASE} -o n.parquet --id x --remember",
    f"{RUN} --json",
    f"{RUN} --html",
    f"{RUN} --sarif",
    f"{RUN} --junit",
    f"{RUN} --markdown",
    f"{DESCRIBE} --json",
    f"{DESCRIBE} --html",
    "mechanism channel c.csv --json",
    "mechanism compose rr:epsilon=1 rr:epsilon=2 --json",
    "mechanism design --labels 0:2 --prior q.csv --epsilon 1 --json",
    "mechanism audit m:f --inputs 0,1 --json",
    "compare r.parquet r.parquet --json",
    "sweep d.csv --mechanism rr --epsilon 1 --html",
    "learn r.parquet --test d.csv --json",
    "advise d.csv --policy p.toml --json",
    "declare d.csv --mechanism rr --epsilon 1 --overwrite -o",
    "policy init",
)
"""Every option that names a file to write."""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    frame = pd.DataFrame({"x": range(60), "label": ["A", "B", "B"] * 20})
    frame.to_csv("d.csv", index=False)
    frame.to_parquet("r.parquet")
    Path("c.csv").write_text("A,B\n0.7,0.3\n0.3,0.7\n")
    Path("q.csv").write_text("label,probability\n0,0.5\n1,0.25\n2,0.25\n")
    Path("p.toml").write_text('schema = 1\n\n[checks."claimed-epsilon"]\n')
    os.mkfifo("pipe")
    Path("device").symlink_to(os.devnull)
    Path("circle").symlink_to("circle")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("socket")
    return tmp_path


@pytest.mark.parametrize("words", OPTIONS)
def test_what_is_no_file_is_refused_before_the_work(
    words: str, folder: Path, command: Command
) -> None:
    before = {path.name: path.lstat() for path in folder.iterdir()}
    for name in ("pipe", "device", "circle", "socket"):
        status, out, err = command(*words.split(), name)
        assert (status, out) == (2, "")
        said = err.splitlines()[-1]
        assert "not a file" in said or "exists already" in said, err
        assert "reading" not in err or words.startswith("declare")
    after = {path.name: path.lstat() for path in folder.iterdir()}
    assert {n: (s.st_ino, s.st_mode) for n, s in after.items()} == {
        n: (s.st_ino, s.st_mode) for n, s in before.items()
    }
    assert not Path(os.devnull).is_file()


@pytest.mark.parametrize(
    "words", [OPTIONS[0], OPTIONS[1], OPTIONS[2], OPTIONS[3], OPTIONS[8], OPTIONS[18]]
)
def test_a_link_is_followed_and_stays(words: str, folder: Path, command: Command) -> None:
    """One rule for all: the file that it names is replaced, and made where it is not there."""
    suffix = "" if "remember" in words else ".parquet" if "privatize" in words else ".csv"
    for target in ("there", "new"):
        file, link = folder / f"{target}{suffix}", folder / f"link-{target}{suffix}"
        link.symlink_to(file.name)
        if target == "there" and "remember" not in words:
            file.write_text("former")
        status, _, err = command(*words.split(), link.name)
        assert status in (0, 3), err
        assert link.is_symlink()
        assert file.read_bytes() not in (b"", b"former")
        assert file.stat().st_mode & 0o077 == 0 or not ("secret" in words or "remember" in words)


def test_without_leave_to_overwrite_a_link_is_a_file_that_is_there(
    folder: Path, command: Command
) -> None:
    (folder / "link.parquet").symlink_to("nowhere.parquet")
    words = RELEASE.replace(" --overwrite", "").split()
    status, _, err = command(*words, "-o", "link.parquet")
    assert status == 2
    assert "exists already" in err
    assert not (folder / "nowhere.parquet").exists()
