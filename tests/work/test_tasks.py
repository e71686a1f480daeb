"""Tasks in threads, processes and on a Dask cluster: the same results, whatever becomes of one."""

import os
import signal
import socket
import subprocess
import sys
import threading
import time
import warnings
from pathlib import Path

import numpy as np
import psutil
import pytest
import releases
from cluster_tasks import SECRET, always_dies, deed, fails, here, total

from ldpaudit.audits.interface import Plan
from ldpaudit.datasets import read_release
from ldpaudit.errors import InputError, InsufficientDataError, LdpAuditError, MissingDependencyError
from ldpaudit.estimators import neighbors as counts
from ldpaudit.mechanisms.view import DeclaredCoding
from ldpaudit.pipeline.audit import audit
from ldpaudit.pipeline.terms import Terms
from ldpaudit.work import cluster as clusters
from ldpaudit.work.cluster import check_cluster, differences, open_cluster
from ldpaudit.work.tasks import Answer, Pool, Threads, processes


def times(item, shared):
    if item == 13:
        raise InputError("Thirteen is refused.")
    return item * shared


def place(_item, _shared):
    return threading.current_thread().name


@pytest.mark.parametrize("work", [Threads(1), Threads(3), Pool(1)])
def test_results_come_in_the_order_of_the_items(work):
    assert list(work.map(times, range(10), shared=3)) == [3 * i for i in range(10)]
    results = work.map(times, range(10, 20), shared=1)
    assert [next(results) for _ in range(3)] == [10, 11, 12]
    with pytest.raises(InputError, match="Thirteen"):
        next(results)


def test_one_thread_is_the_caller_and_more_take_items_only_as_they_need_them():
    caller = threading.current_thread().name
    assert set(Threads(1).map(place, range(3))) == {caller}
    assert caller not in set(Threads(2).map(place, range(3)))
    taken = []
    results = Threads(2).map(times, (taken.append(i) or i for i in range(1000)), shared=1)
    next(results)
    assert len(taken) < 20
    results.close()
    assert not [t for t in threading.enumerate() if t.name.startswith("ldpaudit")]


def test_the_first_failure_in_order_is_raised(monkeypatch):
    late = Answer(reason="It failed.", error=InputError("It failed."))
    answers = [(1, late), (2, Answer("c")), (0, Answer("a"))]
    monkeypatch.setattr(Pool, "answers", lambda *_: iter(answers))
    results = Pool(2).map(times, "abc")
    assert next(results) == "a"
    with pytest.raises(InputError, match="It failed"):
        next(results)


def test_processes_do_what_goes_wrong_in_none_of_the_others(tmp_path, capfd):
    with processes(2, 3, tmp_path, seconds=20.0) as pool:
        square = list(pool.map(deed, [("square", i) for i in range(6)]))
        assert square == [i**2 for i in range(6)]
        items = [("raise", 0), ("refuse", 0), ("exit", 7), ("square", 3), ("threads", 0)]
        found = dict(pool.answers(deed, items))
        pid = next(pool.map(here, [0]))
    assert found[0].reason == "Internal fault (ValueError)."
    assert found[1].reason == "It is out of range."
    assert (found[2].status, "status 7" in found[2].reason) == ("7", True)
    assert (found[3].content, found[4].content) == (9, "3")
    assert not psutil.pid_exists(pid)
    assert capfd.readouterr() == ("", "")


def test_what_hangs_is_ended_and_a_killed_one_is_no_other(tmp_path):
    with processes(1, 1, tmp_path, seconds=2.0) as pool:
        found = dict(pool.answers(deed, [("hang", tmp_path), ("square", 3), ("die", 0)]))
    assert (found[0].late, found[0].reason) == (True, "It took longer than 2 s and was ended.")
    assert found[1].content == 9
    assert "killed" in found[2].reason


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_processes_end_with_the_command(tmp_path, number):
    script = (
        "import sys\n"
        "from pathlib import Path\n"
        "from cluster_tasks import deed\n"
        "from ldpaudit.work.interruption import heeded\n"
        "from ldpaudit.work.tasks import processes\n"
        "place = Path(sys.argv[1])\n"
        "with heeded(), processes(2, 1, place) as pool:\n"
        "    list(pool.map(deed, [('hang', place), ('hang', place)]))\n"
    )
    command = [sys.executable, "-c", script, str(tmp_path)]
    folder = str(Path(__file__).parents[1])
    path = os.pathsep.join([folder, *sys.path])
    parent = subprocess.Popen(command, env=os.environ | {"PYTHONPATH": path}, stderr=-1)
    pids = tmp_path / "pids"
    while parent.poll() is None and not (pids.exists() and pids.read_text().count(" ") == 2):
        time.sleep(0.05)
    parent.send_signal(number)
    _, said = parent.communicate()
    if number == signal.SIGTERM:
        assert (parent.returncode, said) == (2, b"ldpaudit: Interrupted; nothing was written.\n")
    deadline = time.monotonic() + 60
    while any(map(_runs, pids.read_text().split())) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not any(map(_runs, pids.read_text().split()))


def _runs(pid):
    try:
        return bool(psutil.Process(int(pid)).status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def test_memory_limits_the_processes(tmp_path):
    for gib, workers in ((0.6, 1), (1.3, 2), (64, 4)):
        with processes(4, 1, tmp_path, gib * 2**30) as pool:
            assert pool.workers == workers


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """Two processes, started as ``local:2`` does; they import this module by its folder."""
    pytest.importorskip("distributed", reason="the extra 'cluster' is not installed")
    folder, before = tmp_path_factory.mktemp("shared"), os.environ.get("PYTHONPATH", "")
    os.environ["PYTHONPATH"] = os.pathsep.join([str(Path(__file__).parents[1]), before])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with open_cluster("local:2", folder) as opened:
            yield opened
    os.environ["PYTHONPATH"] = before


def test_a_cluster_gives_the_results_of_one_process(cluster, monkeypatch):
    rows = np.arange(1000, dtype=np.float32)
    shared = {"rows": rows[10:], "labels": np.ones(100_000, dtype=np.int32)}
    expected = [(i, float(rows[10 + i :].sum())) for i in range(20)]
    assert (list(cluster.map(total, range(20), shared=shared)), cluster.workers) == (expected, 2)
    monkeypatch.setattr(counts, "EXACT_PAIRS", 0)  # Cells, as for a large table …
    monkeypatch.setattr(counts, "MOST_AT_ONCE", 256)  # … in several tasks.
    release, truth = releases.table(1500)
    plan = Plan(seed=5, queries="all", neighbors=60, threads=2)
    terms = Terms(plan, only=["mechanism", "instance-loss"])
    results = [
        audit(
            read_release(release, truth=truth, coding=DeclaredCoding).release,
            terms,
            terms.execution(tasks=work),
        ).model_dump()
        for work in (None, cluster)
    ]
    for result in results:
        result["run"]["seconds"] = [audit.pop("seconds") for audit in result["audits"]] and 0
    assert results[0] == results[1]


def test_what_a_task_of_a_cluster_raises_is_one_line_without_data(cluster):
    client = cluster.client
    with pytest.raises(InsufficientDataError, match="too few rows"):
        list(cluster.map(fails, [0]))
    with pytest.raises(LdpAuditError, match=r"Internal fault \(ValueError\)"):
        list(cluster.map(fails, [1, 0]))
    logs = str(client.get_worker_logs()) + str(client.get_scheduler_logs())
    assert SECRET not in logs
    client.run_on_scheduler(_forgiving, 0)
    with pytest.raises(LdpAuditError, match="The cluster failed at a task"):
        list(cluster.map(always_dies, [0]))
    client.run_on_scheduler(_forgiving, 3)
    assert list(cluster.map(total, [0], shared={"rows": np.ones(3), "labels": np.ones(2)}))


def _forgiving(failures, dask_scheduler):
    dask_scheduler.allowed_failures = failures


def test_other_versions_are_one_line():
    def facts(**versions):
        same = {"python": "3.12.1.final.0", "distributed": "2026.1", "ldpaudit": "1", "numpy": "2"}
        return {"packages": same | versions}

    same = {"client": facts(), "scheduler": facts(ldpaudit=None), "workers": {"a": facts()}}
    assert not list(differences(same))
    assert not list(differences(same | {"scheduler": facts(python="3.12.9.final.0")}))
    (line,) = differences(same | {"scheduler": facts(distributed="2025.1")})
    assert line.startswith("The scheduler of the cluster has distributed 2025.1, and this machine")
    (line,) = differences(same | {"workers": {"a": facts(ldpaudit=None)}})
    assert "worker of the cluster has no ldpaudit" in line


def test_no_scheduler_is_one_line_within_seconds(tmp_path, monkeypatch):
    monkeypatch.setattr(clusters, "_SECONDS", 1)
    with (
        socket.create_server(("127.0.0.1", 0)) as silent,
        pytest.raises(InputError, match="No Dask scheduler answered"),
        open_cluster(f"tcp://127.0.0.1:{silent.getsockname()[1]}", tmp_path),
    ):
        pass


@pytest.mark.parametrize("place", ["local:0", "local:", "host:8786", "http://host", "tcp://"])
def test_what_names_no_cluster_is_refused(place):
    with pytest.raises(InputError, match="tls://host:8786, or local:4"):
        check_cluster(place)


@pytest.mark.parametrize("place", ["tcp://host:8786", "ws://10.0.0.1:1", "tcp://localhost.evil:1"])
def test_another_machine_needs_encryption_or_leave(place):
    """Whoever answers there runs code here."""
    with pytest.raises(InputError, match="--cluster-without-tls"):
        check_cluster(place)
    check_cluster(place, without_tls=True)
    for safe in ("tls://host:8786", "tcp://localhost:1", "tcp://127.0.0.1:1", "tcp://[::1]:1"):
        check_cluster(safe)


def test_without_the_extra_one_line_says_what_to_install(monkeypatch):
    monkeypatch.setattr(clusters, "find_spec", lambda _name: None)
    with pytest.raises(MissingDependencyError, match=r"pip install 'ldpaudit\[cluster\]'"):
        check_cluster("local:2")
