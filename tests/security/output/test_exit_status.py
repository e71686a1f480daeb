"""The exit status is that of the work, whatever becomes of what is printed."""

import io
import os
import socket
import subprocess
import sys
from collections.abc import Callable
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

from ldpaudit import cli
from ldpaudit.commands.declare.work import Declared
from ldpaudit.commands.run import work as run
from ldpaudit.extras.choose.mechanism.result import Analysis
from ldpaudit.extras.release.privatize import work

RELEASE = "privatize d.csv -o n.parquet --secret s2.parquet --mechanism rr --epsilon 1"
RUN = "run r.parquet --truth s.parquet --only mechanism --json a.json"
PAGES = "--json m.json --html m.html"
FORMER = "by ldpaudit"
"""What stands in a file that may be replaced."""


class Faulty(io.StringIO):
    """A stream with a fault that is none of a file."""

    def write(self, text):
        raise RuntimeError(text)


def broken_pipe():
    reader, writer = os.pipe()
    os.close(reader)
    return writer


def full():
    return os.open("/dev/full", os.O_WRONLY)


def on(descriptor, encoding="utf-8", errors="strict"):
    return lambda: io.TextIOWrapper(io.FileIO(descriptor(), "w"), encoding, errors)


def letters(errors):
    return lambda: io.TextIOWrapper(io.BytesIO(), "ascii", errors)


STREAMS = {
    "closed pipe": on(broken_pipe),
    "full disk": on(full),
    "ascii": letters("strict"),
    "locale C": letters("surrogateescape"),
    "closed": lambda: None,
}
"""What standard output is."""


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A table, a release of it with more noise than declared, and a result."""
    folder = tmp_path_factory.mktemp("made")
    rng = np.random.default_rng(8)
    labels = rng.choice(["A", "B"], 400)
    table = pd.DataFrame({"x": rng.normal(size=400), "label": labels})
    table.to_csv(folder / "d.csv", index=False)
    table[["label"]].to_parquet(folder / "s.parquet")
    for name, share in {"r": 0.73, "leak": 0.97}.items():
        kept = rng.random(400) < share
        released = np.where(kept, labels, np.where(labels == "A", "B", "A"))
        table.assign(label=released).to_parquet(folder / f"{name}.parquet")
    (folder / "c.csv").write_text("A,B\n0.7,0.3\n0.3,0.7\n")
    (folder / "p.toml").write_text('schema = 1\n\n[checks."claimed-epsilon"]\n')
    return folder


@contextmanager
def standard_output(stream):
    before = sys.stdout
    sys.stdout = stream
    try:
        yield
    finally:
        left = sys.stdout if stream is None else stream
        sys.stdout = before
        if left is not before:
            left.close()


def status(words, stream, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["ldpaudit", *words.split()])
    with standard_output(stream), pytest.raises(SystemExit) as ended:
        cli.main()
    return int(ended.value.code or 0)


WORK = {
    RELEASE: (0, "n.parquet s2.parquet"),
    f"{RELEASE} --quiet": (0, "n.parquet s2.parquet"),
    f"{RUN} --mechanism rr --epsilon 1 --exit-zero": (0, "a.json"),
    f"{RUN.replace('run r.parquet', 'run leak.parquet')} --mechanism rr --epsilon 1": (1, "a.json"),
    f"{RUN.replace('a.json', '-')} --mechanism rr --epsilon 1 --html a.html": (3, "a.html"),
    f"mechanism describe rr --epsilon 1 --classes A,B {PAGES}": (0, "m.json m.html"),
    f"mechanism channel c.csv {PAGES}": (0, "m.json m.html"),
    f"mechanism compose rr:epsilon=1 rr:epsilon=2 --classes A,B {PAGES}": (0, "m.json m.html"),
    "declare r.parquet --mechanism rr --epsilon 1 -o e.parquet": (0, "e.parquet"),
    "policy check p.toml": (0, ""),
    "policy explain": (0, ""),
    "policy show ldpaudit:default": (0, ""),
    "policy init own.toml": (0, "own.toml"),
    "report --schema": (0, ""),
    "--version": (0, ""),
    "--help": (0, ""),
    "run --help": (0, ""),
    "privatize": (2, ""),
    "nonsense": (2, ""),
}
"""Commands, how they end, and what they write."""


@pytest.fixture
def folder(tmp_path, made, monkeypatch):
    for path in made.iterdir():
        (tmp_path / path.name).symlink_to(path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("state", STREAMS)
def test_nothing_that_happens_to_standard_output_changes_the_status(
    state, folder, monkeypatch, capsys
):
    few = (RELEASE, "policy explain", "run --help", "privatize")
    for words, (expected, files) in WORK.items():
        chosen = words in few or (state == "full disk" and "--json -" in words)
        if state != "closed pipe" and not chosen:
            continue
        assert status(words, STREAMS[state](), monkeypatch) == expected, words
        assert "Internal fault" not in capsys.readouterr().err
        for name in files.split():
            assert (folder / name).stat().st_size
            (folder / name).unlink()


def test_a_report_in_utf_8_reaches_an_ascii_terminal(folder, monkeypatch):
    content = io.BytesIO()
    monkeypatch.setattr(content, "close", lambda: None, raising=False)
    stream = io.TextIOWrapper(content, "ascii", "surrogateescape")
    words = "mechanism describe rr --epsilon 1 --classes A,B"
    assert status(words, stream, monkeypatch) == 0
    assert "? = 1" in content.getvalue().decode()
    stream = io.TextIOWrapper(content, "ascii", "surrogateescape")
    assert status(f"{words} --json -", stream, monkeypatch) == 0
    assert '"epsilon"' in content.getvalue().decode()


PRINTING = [
    words
    for words, (_, files) in WORK.items()
    if files and " - " not in words and "exit-zero" not in words and "policy" not in words
]


@pytest.mark.parametrize("words", PRINTING)
def test_a_fault_while_printing_is_none_of_the_work(words, folder, monkeypatch, capsys):
    expected, files = WORK[words]
    assert status(words, Faulty(), monkeypatch) == expected
    assert all((folder / name).exists() for name in files.split())
    told = [line for line in capsys.readouterr().err.splitlines() if "…" not in line]
    assert len(told) == (not words.endswith("quiet"))
    assert all("The work is done; not all of it could be printed" in line for line in told)


SAYING = {
    RELEASE: work.PrivatizeSummary,
    f"{RUN} --mechanism rr --epsilon 1": run._Audited,
    "declare r.parquet --mechanism rr --epsilon 1": Declared,
    f"mechanism describe rr --epsilon 1 --classes A,B {PAGES}": Analysis,
}
"""Commands, and what finds the words that they print."""


@pytest.mark.parametrize("words", SAYING)
def test_a_fault_in_the_words_is_one_of_the_command(words, folder, monkeypatch, capsys):
    before = {*folder.iterdir()}

    def said(*_, **__):
        yield "A line."
        raise RuntimeError("SECRET")

    # Without its words nobody knows what was done: it comes before anything is written.
    monkeypatch.setattr(SAYING[words], "said", said)
    assert status(words, sys.stdout, monkeypatch) == 2
    (told,) = (line for line in capsys.readouterr().err.splitlines() if "…" not in line)
    assert "Internal fault (RuntimeError)" in told
    assert {*folder.iterdir()} == before


def test_a_broken_pipe_of_the_work_is_no_verdict(folder, monkeypatch, capsys):
    """click ends with status 1 there, which means a violation here."""

    def broken(*_):
        raise BrokenPipeError(32, "Broken pipe")

    monkeypatch.setattr(work, "read_columns", broken)
    assert status(RELEASE, sys.stdout, monkeypatch) == 2
    assert "broken pipe" in capsys.readouterr().err.lower()


PYTHON = f'"{sys.executable}"'


@pytest.mark.parametrize("closed", ["<&- >&- 2>&-", "2>&-"])
def test_no_file_takes_the_place_of_a_closed_stream(tmp_path, closed):
    """A library that prints there would write into it, for instance into the true labels."""
    code = (
        "from ldpaudit.cli.process import steady_streams\n"
        "with steady_streams(), open('x', 'w') as file:\n"
        "    file.write(str(file.fileno()))\n"
    )
    subprocess.run(["sh", "-c", f'{PYTHON} -c "{code}" {closed}'], cwd=tmp_path, check=True)
    assert int((tmp_path / "x").read_text()) > 2


@pytest.mark.validate
@pytest.mark.parametrize(
    "around",
    [
        "{} <&- >&- 2>&-",
        "LC_ALL=C PYTHONUTF8=0 PYTHONCOERCECLOCALE=0 {} >/dev/full",
    ],
)
def test_a_release_is_whole_and_the_status_0(made, tmp_path, around):
    """In a process of its own: what Python makes of its streams is part of it."""
    (tmp_path / "d.csv").symlink_to(made / "d.csv")
    line = around.format(f"{PYTHON} -m ldpaudit {RELEASE}")
    assert subprocess.run(["sh", "-c", line], cwd=tmp_path, check=False).returncode == 0
    assert pq.read_table(tmp_path / "n.parquet").num_rows == 400
    assert pq.read_table(tmp_path / "s2.parquet").num_rows == 400


Command = Callable[..., tuple[int, str, str]]
RELEASE_REGULAR_FILES = "privatize d.csv --mechanism rr --epsilon 1 --quiet --overwrite"
RUN_REGULAR_FILES = "run r.parquet --only mechanism"
DESCRIBE = "mechanism describe rr --epsilon 1 --classes A,B"
OPTIONS = (
    f"{RELEASE_REGULAR_FILES} -o",
    f"{RELEASE_REGULAR_FILES} -o n.parquet --secret",
    f"{RELEASE_REGULAR_FILES} -o n.parquet --id x --remember",
    f"{RUN_REGULAR_FILES} --json",
    f"{RUN_REGULAR_FILES} --html",
    f"{RUN_REGULAR_FILES} --sarif",
    f"{RUN_REGULAR_FILES} --junit",
    f"{RUN_REGULAR_FILES} --markdown",
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
def folder_of_regular_files(tmp_path, monkeypatch):
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
def test_what_is_no_file_is_refused_before_the_work(words, folder_of_regular_files, command):
    before = {path.name: path.lstat() for path in folder_of_regular_files.iterdir()}
    for name in ("pipe", "device", "circle", "socket"):
        status, out, err = command(*words.split(), name)
        assert (status, out) == (2, "")
        said = err.splitlines()[-1]
        assert "not a file" in said or "exists already" in said, err
        assert "reading" not in err or words.startswith("declare")
    after = {path.name: path.lstat() for path in folder_of_regular_files.iterdir()}
    assert {n: (s.st_ino, s.st_mode) for n, s in after.items()} == {
        n: (s.st_ino, s.st_mode) for n, s in before.items()
    }
    assert not Path(os.devnull).is_file()


@pytest.mark.parametrize(
    "words", [OPTIONS[0], OPTIONS[1], OPTIONS[2], OPTIONS[3], OPTIONS[8], OPTIONS[18]]
)
def test_a_link_is_followed_and_stays(words, folder_of_regular_files, command):
    """One rule for all: the file that it names is replaced, and made where it is not there."""
    suffix = "" if "remember" in words else ".parquet" if "privatize" in words else ".csv"
    for target in ("there", "new"):
        file, link = (
            folder_of_regular_files / f"{target}{suffix}",
            folder_of_regular_files / f"link-{target}{suffix}",
        )
        link.symlink_to(file.name)
        if target == "there" and "remember" not in words:
            file.write_text(FORMER)
        status, _, err = command(*words.split(), link.name)
        assert status in (0, 3), err
        assert link.is_symlink()
        assert file.read_bytes() not in (b"", FORMER.encode())
        assert file.stat().st_mode & 0o077 == 0 or not ("secret" in words or "remember" in words)


def test_without_leave_to_overwrite_a_link_is_a_file_that_is_there(
    folder_of_regular_files, command
):
    (folder_of_regular_files / "link.parquet").symlink_to("nowhere.parquet")
    words = RELEASE_REGULAR_FILES.replace(" --overwrite", "").split()
    status, _, err = command(*words, "-o", "link.parquet")
    assert (status, "exists already" in err) == (2, True), err
    assert not (folder_of_regular_files / "nowhere.parquet").exists()
