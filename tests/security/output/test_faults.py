"""Every write and every renaming fails once, and from then on: nothing is half done, nothing lost.

The same is done with the system's calls, for every command, in ``test_fault_campaign.py``.
"""

import errno
import multiprocessing
import os
import random
import re
import shutil
import subprocess
import sys
import warnings
from collections.abc import Callable
from itertools import count
from pathlib import Path

import pandas as pd
import pyarrow.parquet as pq
import pytest
from security.output.campaign import CASES
from security.output.failing import Failing, failing_calls

import ldpaudit
from ldpaudit import cli
from ldpaudit.errors import OutputError
from ldpaudit.work.files import WholeFiles, write_all

Command = Callable[..., tuple[int, str, str]]
FORMER = {"a": b"former a", "b": b"former b"}
NEW = {"a": b"new a", "b": b"new b", "c": b"new c"}
REPORT = "by ldpaudit"
"""What stands in a file that may be replaced."""


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def placed(tmp_path):
    """Yield folders with the former files, one for each call that is to fail."""
    for number in count():
        folder = tmp_path / str(number)
        folder.mkdir()
        for name, content in FORMER.items():
            (folder / name).write_bytes(content)
        yield folder


def write_new(folder):
    with WholeFiles() as files:
        for name, content in NEW.items():
            files.add(folder / name, private=name == "a").write(content)


@pytest.mark.parametrize("number", [errno.EIO, errno.ENOSPC, errno.EROFS])
def test_a_call_that_fails_once_leaves_all_as_it_was_or_all_new(tmp_path, number):
    outcomes = set()
    for turn, folder in enumerate(placed(tmp_path), 1):
        error, told = OSError(number, "it fails"), ""
        with failing_calls(Failing(folder, turn, error)) as failing:
            try:
                write_new(folder)
                expected = NEW
            except OutputError as refused:
                expected, told = FORMER, str(refused)
        assert contents(folder) == expected, turn
        assert "\n" not in told
        outcomes.add(expected is NEW)
        if failing.calls < turn:
            break
    assert turn > 20
    assert outcomes == {True, False}


def test_calls_that_go_on_failing_lose_nothing(tmp_path, capfd):
    """A disk that dies: what cannot be put back is kept beside, and the message says where."""
    kept = 0
    for turn, folder in enumerate(placed(tmp_path), 1):
        told = ""
        error = OSError(errno.EROFS, "Read-only file system")
        with failing_calls(Failing(folder, turn, error, lasting=True)) as failing:
            try:
                write_new(folder)
            except OutputError as refused:
                told = str(refused)
        found, drafts = contents(folder), capfd.readouterr().err
        for name, former in FORMER.items():
            if told and found[name] != former:
                beside = re.search(rf"'{name}' be taken back[^']*'([^']+)'", told)
                assert beside is not None, (turn, told)
                assert found[beside[1]] == former
                kept += 1
            elif not told:
                assert found[name] == NEW[name]
        if told and "c" in found:
            assert "'c' be taken back" in told
        for name in found.keys() - NEW.keys():
            assert name in told or name in drafts, (turn, name)
        if failing.calls < turn:
            break
    assert kept > 2


def test_a_former_file_that_cannot_be_put_back_is_kept(tmp_path, monkeypatch):
    """Renaming fails for good, removing does not: nothing that is all there is may be removed."""
    for name, content in FORMER.items():
        (tmp_path / name).write_bytes(content)
    real, done = Path.replace, []

    def once(self, target):
        if done:
            raise OSError(errno.EIO, "Input/output error")
        done.append(target.name)
        return real(self, target)

    monkeypatch.setattr(Path, "replace", once)
    with pytest.raises(OutputError, match="'a' be taken back: it is the new one") as refused:
        write_new(tmp_path)
    beside = re.findall(r"'(\.[^']+)'", str(refused.value))
    found = contents(tmp_path)
    assert found.keys() == {"a", "b", *beside}
    assert [found[name] for name in ("a", "b", *beside)] == [b"new a", b"former b", b"former a"]


def test_a_renaming_that_is_done_and_still_fails_is_taken_back(tmp_path):
    """File systems of the network do that; and so may an interruption."""
    real = Path.replace

    def late(self, target):
        real(self, target)
        if target.name == "new" and not target.is_symlink():
            raise KeyboardInterrupt
        return target

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Path, "replace", late)
        with pytest.raises(KeyboardInterrupt):
            write_all({tmp_path / "new": "x"})
    assert contents(tmp_path) == {}


def test_without_hard_links_a_copy_of_a_secret_is_its_owners_alone(tmp_path):
    modes = []
    (tmp_path / "s").write_text("former")
    (tmp_path / "s").chmod(0o600)
    copied = "shutil.copy2"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("os.link", lambda *_: (_ for _ in ()).throw(OSError(errno.EPERM, "no")))
        patch.setattr(copied, lambda _, target: modes.append(target.stat().st_mode & 0o777))
        with WholeFiles() as files:
            files.add(tmp_path / "s", private=True).write(b"new")
    assert modes == [0o600]


@pytest.fixture
def table(tmp_path):
    place = tmp_path / "d.csv"
    pd.DataFrame({"x": range(60), "label": ["A", "B", "B"] * 20}).to_csv(place, index=False)
    return place


def pair(folder):
    return tuple((folder / name).read_bytes() for name in ("r.parquet", "s.parquet"))


def test_a_release_and_its_secret_are_one_pair_whatever_fails(tmp_path, table, command):
    words = ["privatize", table, "--mechanism", "rr", "--epsilon", "1", "--quiet"]
    words += ["-o", tmp_path / "r.parquet", "--secret", tmp_path / "s.parquet", "--overwrite"]
    assert command(*words)[0] == 0
    former, names = pair(tmp_path), contents(tmp_path).keys()
    replaced = 0
    for turn in count(1):
        error = OSError(errno.EIO, "Input/output error")
        with failing_calls(Failing(tmp_path, turn, error)) as failing:
            status, out, err = command(*words)
        now = pair(tmp_path)
        assert contents(tmp_path).keys() == names
        assert not out
        if status:
            assert ((status, now), err.count("\n")) == ((2, former), 1), err
        else:
            assert "second, independent draw" in err
            assert all(new != old for new, old in zip(now[:1], former[:1], strict=True))
            assert pq.read_table(tmp_path / "r.parquet").num_rows == 60
            replaced += 1
        former = now
        if failing.calls < turn:
            break
    assert turn > 15
    assert replaced >= 2


def test_a_page_and_a_result_are_both_written_or_neither(tmp_path, command):
    words = ["mechanism", "describe", "rr", "--epsilon", "1", "--classes", "A,B"]
    words += ["--json", str(tmp_path / "m.json"), "--html", str(tmp_path / "m.html")]
    for name in ("m.json", "m.html"):
        (tmp_path / name).write_text(REPORT)
    for turn in count(1):
        error = OSError(errno.ENOSPC, "No space left on device")
        with failing_calls(Failing(tmp_path, turn, error)) as failing:
            status, _, err = command(*words)
        found = contents(tmp_path)
        assert found.keys() == {"m.json", "m.html"}
        if status:
            assert set(found.values()) == {REPORT.encode()}
            assert re.fullmatch(r"ldpaudit: The file 'm\.\w+' cannot be written: [a-z ]+\.\n", err)
        else:
            assert REPORT.encode() not in found.values()
            for name in found:
                (tmp_path / name).write_text(REPORT)
        if failing.calls < turn:
            break
    assert turn > 10


@pytest.mark.skipif(sys.platform != "linux", reason="LD_PRELOAD and /proc are Linux's")
@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler (cc) is on this machine")
@pytest.mark.validate
@pytest.mark.parametrize("name", CASES)
def test_nothing_is_half_written_whatever_call_fails(name, tmp_path):
    script = Path(__file__).with_name("campaign.py")
    done = subprocess.run(
        [sys.executable, str(script), str(tmp_path / "campaign"), name],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{done.stdout}{done.stderr}"
    assert "| all | 0 |" not in done.stdout


TOLD = "second, independent draw"


@pytest.fixture
def table_of_second_draw(tmp_path):
    place = tmp_path / "d.csv"
    people = [f"p{number}" for number in range(60)]
    frame = pd.DataFrame({"person": people, "x": range(60), "label": ["A", "B", "B"] * 20})
    frame.assign(other=frame["label"].str.lower()).to_csv(place, index=False)
    return place


def released(command, table, *words, quiet=True):
    options = ["--mechanism", "rr", "--epsilon", "1", "--drop", "other", "--drop", "person"]
    status, out, err = command("privatize", table, *options, *words, *["--quiet"] * quiet)
    assert status == 0, err
    return err if quiet else f"{out}{err}"


@pytest.mark.parametrize("name", ["r.parquet", "r.csv"])
def test_a_release_that_is_replaced(name, tmp_path, table_of_second_draw, command):
    words = ("-o", tmp_path / name, "--overwrite")
    assert released(command, table_of_second_draw, *words) == ""
    told = released(command, table_of_second_draw, *words)
    assert told.count("\n") == 1
    assert f"'{name}', which is replaced, was a release" in told
    assert TOLD in told
    assert (
        released(command, table_of_second_draw, *words, quiet=False).count(TOLD) == 2
    )  # At once, and at last.


def test_true_labels_that_are_replaced(tmp_path, table_of_second_draw, command):
    words = ("--secret", tmp_path / "s.parquet", "--overwrite")
    released(command, table_of_second_draw, "-o", tmp_path / "one.parquet", *words)
    told = released(command, table_of_second_draw, "-o", tmp_path / "two.parquet", *words)
    assert "'s.parquet', which is replaced, held the true values" in told
    assert TOLD in told


def test_without_leave_to_overwrite_it_is_told_what_that_would_be(
    tmp_path, table_of_second_draw, command
):
    words = ("-o", tmp_path / "r.parquet")
    released(command, table_of_second_draw, *words)
    before = (tmp_path / "r.parquet").read_bytes()
    status, _, err = command(
        "privatize", table_of_second_draw, "--mechanism", "rr", "--epsilon", "1", *words
    )
    assert status == 2
    assert "a second draw of the same labels reveals more than one" in err
    assert (tmp_path / "r.parquet").read_bytes() == before


def test_what_is_no_second_draw(tmp_path, table_of_second_draw, command):
    place = tmp_path / "r.parquet"
    place.write_bytes(b"no table")
    words = ("-o", place, "--overwrite")
    assert released(command, table_of_second_draw, *words) == ""
    other = ("--label", "other", "--drop", "label", "--mechanism", "rr", "--epsilon", "1")
    status, _, err = command("privatize", table_of_second_draw, *other, *words, "--quiet")
    assert (status, err) == (0, "")


def test_answers_that_are_remembered(tmp_path, table_of_second_draw, command):
    words = ("-o", tmp_path / "r.parquet", "--overwrite", "--id", "person")
    words += ("--remember", tmp_path / "m")
    assert released(command, table_of_second_draw, *words) == ""
    before = pd.read_parquet(tmp_path / "r.parquet")
    assert released(command, table_of_second_draw, *words) == ""
    assert pd.read_parquet(tmp_path / "r.parquet").equals(before)


def test_a_file_that_changes_after_publication_is_no_reason_to_draw_again(
    tmp_path, table_of_second_draw, command, monkeypatch
):
    """Who is told that it failed does it again."""
    publish = WholeFiles._publish

    def then_changes(files):
        publish(files)
        table_of_second_draw.write_text("")

    monkeypatch.setattr(WholeFiles, "_publish", then_changes)
    released(command, table_of_second_draw, "-o", tmp_path / "r.parquet")


def test_in_python_it_is_a_warning(tmp_path):
    frame = pd.DataFrame({"x": range(60), "label": ["A", "B", "B"] * 20})
    options = {"output": tmp_path / "r.parquet", "epsilon": 1.0, "overwrite": True}
    told = []
    for _ in range(2):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            ldpaudit.privatize(frame, "rr", **options)
        told.append([TOLD in str(one.message) for one in caught])
    assert [any(one) for one in told] == [False, True]


def at_once(*commands):
    """Carry out commands side by side, each in a child of this process; return their statuses."""

    def go(words):
        os.urandom = random._urandom = random.Random(str(words)).randbytes  # Each has its own.
        sys.argv = ["ldpaudit", *map(str, words)]
        cli.main()

    start = multiprocessing.get_context("fork").Process
    children = [start(target=go, args=(words,)) for words in commands]
    for child in children:
        child.start()
    for child in children:
        child.join(60)
    return [child.exitcode for child in children]


RR = ("--mechanism", "rr", "--epsilon", "1", "--quiet", "--drop", "other")


def test_two_runs_at_once_remember_one_draw(tmp_path, table_of_second_draw):
    """Two draws of the same people would be twice their ε."""
    words = ("privatize", table_of_second_draw, *RR, "--id", "person", "--remember", tmp_path / "m")
    names = [tmp_path / "1.parquet", tmp_path / "2.parquet"]
    assert at_once(*((*words, "-o", name) for name in names)) == [0, 0]
    one, two = map(pd.read_parquet, names)
    assert one.equals(two)


def test_two_runs_at_once_leave_one_pair(tmp_path, table_of_second_draw):
    """A release of one run beside the true labels of another would audit as a leak, or as none."""
    rows = pd.read_csv(table_of_second_draw)
    pair = tmp_path / "r.parquet", tmp_path / "s.parquet"
    words = (*RR, "--overwrite", "-o", pair[0], "--secret", pair[1])
    tables = [tmp_path / "1.parquet", tmp_path / "2.parquet"]
    for part, table in enumerate(tables, 1):
        rows.iloc[: len(rows) // part].to_parquet(table)
    assert 0 in at_once(*(("privatize", table, *words) for table in tables))
    release, secret = map(pd.read_parquet, pair)
    assert len(release) == len(secret)
