"""A client of the black-box audit that turns against who audits it."""

import os
import pickle
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ldpaudit.commands.black_box import plain
from ldpaudit.commands.black_box.drawing import DrawTask
from ldpaudit.commands.black_box.estimators.outputs import as_outputs, joined
from ldpaudit.commands.black_box.request import BlackBoxRequest
from ldpaudit.commands.black_box.work import audit_black_box
from ldpaudit.errors import InputError
from ldpaudit.tasks.interface import Answer
from ldpaudit.tasks.keeper import KEEPERS
from ldpaudit.tasks.processes import Processes
from ldpaudit.tasks.wire import Inbox, MessageError, Wire, post

OUTPUTS: dict[str, Any] = {
    "numbers": np.random.default_rng(0).random((5, 3)),
    "floats that are no numbers": np.array([np.nan, np.inf, -np.inf]),
    "integers": np.arange(6, dtype=np.uint8).reshape(2, 3),
    "truths": np.array([True, False]),
    "text": np.array(["no", "é", "\U0010ffff"]),
    "bytes": [b"a\xff", b""],
    "mixed": [("a,[", 1, 2.5, None, True), ("b", -1, float("inf"), None, False)],
    "sets": [{1, 2}, frozenset({"x", b"y"}), {frozenset({3})}],
    "of unequal length": [(1, 2), (1,), ()],
    "long integers": [1 << 5000, -(1 << 40_000), {1 << 6000}],
}


@pytest.mark.parametrize("name", OUTPUTS)
def test_outputs_come_back_as_they_were(name: str) -> None:
    table = as_outputs(OUTPUTS[name], len(OUTPUTS[name]))
    back = plain.unpacked(plain.packed(Answer(table))).content
    assert back.dtype == table.dtype
    assert back.tolist() == table.tolist()
    assert [[type(e) for e in row] for row in back] == [[type(e) for e in row] for row in table]


def test_counts_and_reasons_come_back_as_they_were() -> None:
    assert plain.unpacked(plain.packed(Answer([(3, 4), (0, 1)]))) == Answer([[3, 4], [0, 1]])
    assert plain.unpacked(plain.packed(Answer())) == Answer()
    assert plain.unpacked(plain.packed(Answer(reason="It raised."))).reason == "It raised."
    hostile = "\x1b[31mred\nPASS " + "x" * 10_000
    said = plain.unpacked(plain.packed(Answer(reason=hostile))).reason
    assert said.isprintable()
    assert len(said) <= 500


@pytest.mark.parametrize(
    "outputs",
    [[2**63, 2**63 + 1, -1], [2**53, 2**53 + 1, 0.5], [(2**63, 1), (2**63 + 1, -1)]],
    ids=["beyond a word", "beside a fraction", "in tuples"],
)
def test_integers_that_differ_stay_different(outputs: list[Any]) -> None:
    """NumPy makes float64 of a list of such integers, and a client that leaks in them passed."""
    table = as_outputs(outputs, len(outputs))
    assert len({tuple(row) for row in table.tolist()}) == len(outputs)


def test_integers_of_two_calls_stay_different() -> None:
    kinds = (np.array([[2**63], [2**63 + 1]], np.uint64), np.array([[-1]]))
    assert len(set(joined(kinds)[:, 0].tolist())) == 3
    assert joined([np.array([[1]]), np.array([[0.5]])]).dtype == np.float64


def test_outputs_too_large_for_the_audit_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each call within its limit, those of many inputs took all memory."""
    code = "def wide(value, n, rng):\n    return rng.random((n, 50))\n"
    (tmp_path / "wide.py").write_text(code)
    monkeypatch.setattr("ldpaudit.commands.black_box.work._MOST_ENTRIES", 4_000)
    request = BlackBoxRequest("wide:wide", (0, 1), 400, path=(str(tmp_path),), processes=1)
    with pytest.raises(InputError, match="one takes 400 bytes, and 100 of each of 2 inputs"):
        audit_black_box(request)


class Harmful:
    """Runs code where it is unpickled."""

    def __init__(self, place: Path) -> None:
        self.place = place

    def __reduce__(self) -> Any:
        return os.mkdir, (str(self.place),)


BAD = {
    "nothing": b"",
    "no kind": b"zz",
    "objects": b"a|O8 1\n" + bytes(8),
    "dates": b"a<M8 1\n" + bytes(8),
    "a field list": b"a[('a','<i8')] 1\n" + bytes(8),
    "half a number": b"a<i8 1\n" + bytes(7),
    "no width": b"a<i8\n" + bytes(8),
    "no rows of that width": b"a<i8 3\n" + bytes(8),
    "no width at all": b"a<i8 0\n" + bytes(8),
    "no letters": b"a<U1 1\n" + b"\xff\xff\xff\x7f",
    "deep": b"r" + b"[" * 200_000,
    "long": b"r[[" + b"9" * 10_000 + b"]]",
    "many": b"r[" + b"[]," * 11_000_000,
    "uneven": b"r[[1],[1,2]]",
    "no rows": b'r{"set":[]}',
    "a list in a row": b"r[[[1]]]",
    "a list in a set": b'r[[{"set":[[1]]}]]',
    "another object": b'r[[{"py":"os"}]]',
    "counts of one": b"c" + bytes(8),
}


@pytest.mark.parametrize("name", BAD)
def test_what_is_no_answer_is_refused(name: str) -> None:
    start = time.process_time()
    with pytest.raises(MessageError):
        plain.unpacked(BAD[name])
    assert time.process_time() - start < 2


def test_nothing_is_unpickled(tmp_path: Path) -> None:
    place = tmp_path / "made"
    for kind in (b"", b"a", b"r", b"s"):
        with pytest.raises(MessageError):
            plain.unpacked(kind + pickle.dumps(Harmful(place)))
    assert not place.exists()


@given(st.sampled_from([b"a", b"r", b"s", b"c", b"!", b"a<i8 1\n", b"a<U2 1\n"]), st.binary())
def test_any_bytes_are_an_answer_or_none(kind: bytes, rest: bytes) -> None:
    try:
        answer = plain.unpacked(kind + rest)
    except MessageError:
        return
    assert isinstance(answer.content, np.ndarray | list | None)


def test_answers_that_do_not_fit_their_task_are_refused() -> None:
    task = DrawTask(0, 4, 0, ("x",))
    tested = DrawTask(0, 4, 0, ("x",), events=(mock.sentinel.event,))
    assert task.checked(np.zeros((4, 2))).shape == (4, 2)
    assert tested.checked([[3, 1]]) == [[3, 1]]
    for one, content in (
        (task, np.zeros((5, 2))),
        (task, np.zeros((4, 0))),
        (task, [[1, 2]]),
        (task, None),
        (tested, [[3, 2]]),
        (tested, [[-1, 2]]),
        (tested, []),
        (tested, np.zeros((4, 2))),
    ):
        with pytest.raises(InputError, match="no answer"):
            one.checked(content)


def test_a_message_is_read_without_waiting_for_the_rest() -> None:
    mine, theirs = socket.socketpair()
    with mine, theirs:
        inbox = Inbox(mine, 100)
        assert inbox.take() is None
        theirs.sendall((5).to_bytes(8, "big") + b"abc")
        assert inbox.take() is None
        theirs.sendall(b"de")
        post(theirs, b"")
        assert (inbox.take(), inbox.take(), inbox.take()) == (b"abcde", b"", None)
        theirs.sendall((101).to_bytes(8, "big"))
        with pytest.raises(MessageError):
            inbox.take()


@pytest.fixture(autouse=True)
def children_import_the_helper(monkeypatch: pytest.MonkeyPatch) -> None:
    here = str(Path(__file__).parent)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([here, os.environ.get("PYTHONPATH", "")]))


def answers(folder: Path, *tasks: str, seconds: float = 60.0) -> list[Answer]:
    from hostile import pack, unpack

    wire = Wire(pack, unpack, 1000)
    with Processes("hostile:prepare", str(folder), 1, seconds=seconds, wire=wire) as pool:
        done = dict(pool.run(tasks))
    return [done[number] for number in range(len(tasks))]


def test_half_a_message_and_a_long_one_cost_their_own_task_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(Path(__file__).parent))
    long, good = answers(tmp_path, "a long message", "work")
    assert (long.reason, good.content) == (
        "Its process answered with something that is no answer.",
        "done",
    )
    half, good = answers(tmp_path, "half a message", "work", seconds=3.0)
    assert (half.late, good.content) == (True, "done")


@pytest.mark.skipif(not KEEPERS, reason="only Linux lets a process inherit orphans")
def test_what_a_client_starts_ends_with_its_worker(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also in a session of its own, with no living parent; however the worker ends."""
    monkeypatch.syspath_prepend(str(Path(__file__).parent))
    well, exits, hangs = answers(
        tmp_path, "stray", "stray, and exits", "stray, and hangs", seconds=4.0
    )
    assert (well.content, exits.status, hangs.late) == ("done", 5, True)
    pids = [int(pid) for pid in (tmp_path / "pids").read_text().split()]
    assert len(pids) == 3
    assert not any(map(psutil.pid_exists, pids))


ENDED = """
import sys
from hostile import pack, unpack
from ldpaudit.interruption import heeded
from ldpaudit.tasks.processes import Processes
from ldpaudit.tasks.wire import Wire
with heeded(), Processes("hostile:prepare", sys.argv[1], 1, wire=Wire(pack, unpack, 1000)) as pool:
    list(pool.run(["stray, and hangs"]))
"""


@pytest.mark.skipif(not KEEPERS, reason="only Linux lets a process inherit orphans")
def test_what_a_client_starts_ends_with_the_command(tmp_path: Path) -> None:
    command = subprocess.Popen([sys.executable, "-c", ENDED, str(tmp_path)], stderr=subprocess.PIPE)
    pids = tmp_path / "pids"
    while not (pids.exists() and pids.read_text().endswith(" ")):
        time.sleep(0.02)
    command.terminate()
    _, said = command.communicate()
    assert (command.returncode, said) == (2, b"ldpaudit: Interrupted; nothing was written.\n")
    assert not psutil.pid_exists(int(pids.read_text()))


FORGER = """
import os, pickle, sys
from pathlib import Path

class Harmful:
    def __reduce__(self):
        return os.mkdir, (os.environ["PLACE"],)

def forges(value, n, rng):
    content = pickle.dumps(Harmful())
    os.write(int(sys.argv[1]), len(content).to_bytes(8, "big") + content)
    return rng.random(n)
"""


def test_a_forged_answer_runs_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "forger.py").write_text(FORGER)
    monkeypatch.setenv("PLACE", str(tmp_path / "made"))
    request = BlackBoxRequest("forger:forges", (0, 1), 400, path=(str(tmp_path),), processes=1)
    with pytest.raises(InputError, match="something that is no answer"):
        audit_black_box(request)
    assert not (tmp_path / "made").exists()
