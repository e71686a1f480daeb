"""Tasks on a Dask cluster: the same results, whatever becomes of a worker, and no data in sight."""

import os
import socket
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import releases
from cluster_tasks import SECRET, always_dies, dies_once, fails, here, killed_first, total

from ldpaudit.audits.interface import Plan
from ldpaudit.datasets import read_release
from ldpaudit.errors import InputError, InsufficientDataError, LdpAuditError, MissingDependencyError
from ldpaudit.estimators.neighbors import counts
from ldpaudit.mechanisms.coding import DeclaredCoding
from ldpaudit.pipeline import run_audit
from ldpaudit.running.progress import NoProgress
from ldpaudit.tasks import connecting, meeting, opening
from ldpaudit.tasks.cluster import Cluster
from ldpaudit.tasks.meeting import differences, meet
from ldpaudit.tasks.opening import check_cluster, open_cluster

distributed = pytest.importorskip("distributed", reason="the extra 'cluster' is not installed")
pytestmark = pytest.mark.filterwarnings("ignore")  # Those of Dask are not ours.


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Two processes, started as ``local:2`` does; they import this module by its folder."""
    folder, before = tmp_path_factory.mktemp("shared"), os.environ.get("PYTHONPATH", "")
    os.environ["PYTHONPATH"] = os.pathsep.join([str(Path(__file__).parents[1]), before])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with open_cluster("local:2", folder) as opened:
            yield opened
    os.environ["PYTHONPATH"] = before


@dataclass
class Deadly:
    """A cluster on which the worker of the first task is killed."""

    cluster: Cluster
    mark: Path
    workers: int = 2

    def map(self, function: Any, items: Any, *, shared: Any = None) -> Iterator[Any]:
        return self.cluster.map(killed_first, items, shared=(function, shared, self.mark))


def test_results_are_those_of_one_process(cluster: Cluster, tmp_path: Path) -> None:
    rows: Any = np.memmap(tmp_path / "rows", np.float32, "w+", shape=(1000,))
    rows[:] = np.arange(1000)
    shared = {"rows": rows[10:], "labels": np.ones(100_000, dtype=np.int32)}
    alone = [(i, float(rows[10 + i :].sum()), False) for i in range(20)]
    assert list(cluster.map(total, range(20), shared=shared)) == alone
    assert cluster.workers == 2
    assert not [*cluster.folder.glob("tasks-*")]


def test_an_audit_is_the_same_to_the_last_bit_though_a_worker_is_killed(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(counts, "EXACT_PAIRS", 0)  # Cells, as for a large table …
    monkeypatch.setattr(counts, "MOST_AT_ONCE", 256)  # … in several tasks.
    release, truth = releases.table(3000)
    deadly = Deadly(cluster, tmp_path / "died")
    results = [
        run_audit(
            read_release(release, truth=truth, coding=DeclaredCoding).release,
            Plan(seed=5, queries="all", neighbors=60, threads=2),
            only=["mechanism", "instance-loss"],
            tasks=tasks,
        ).model_dump()
        for tasks in (None, deadly)
    ]
    assert deadly.mark.exists()
    for result in results:
        result["run"]["seconds"] = [audit.pop("seconds") for audit in result["audits"]] and 0
    assert results[0] == results[1]


def test_what_a_task_raises_is_one_line_without_data(cluster: Cluster) -> None:
    with pytest.raises(InsufficientDataError, match="too few rows"):
        list(cluster.map(fails, [0]))
    with pytest.raises(LdpAuditError, match=r"Internal fault \(ValueError\)"):
        list(cluster.map(fails, [1, 0]))
    logs = str(cluster.client.get_worker_logs()) + str(cluster.client.get_scheduler_logs())
    assert SECRET not in logs


def test_a_task_that_ends_worker_after_worker_is_given_up(cluster: Cluster) -> None:
    cluster.client.run_on_scheduler(_forgiving, 0)
    with pytest.raises(LdpAuditError, match="Several workers ended"):
        list(cluster.map(always_dies, [0]))
    cluster.client.run_on_scheduler(_forgiving, 3)
    assert list(cluster.map(total, [0], shared={"rows": np.ones(3), "labels": np.ones(2)}))


def test_a_lost_worker_costs_its_tasks_and_not_the_run(cluster: Cluster, tmp_path: Path) -> None:
    assert list(cluster.map(dies_once, range(8), shared=tmp_path)) == list(range(8))
    assert (tmp_path / "died").exists()


def test_tasks_have_readable_names_without_data(cluster: Cluster) -> None:
    results = cluster.map(here, [SECRET] * 4)
    next(results)
    story = cluster.client.run_on_scheduler(_story)
    assert "here" in story
    assert SECRET not in story
    results.close()  # type: ignore[attr-defined]


def _forgiving(failures: int, dask_scheduler: Any) -> None:
    dask_scheduler.allowed_failures = failures


def _story(dask_scheduler: Any) -> str:
    names = [prefix.name for prefix in dask_scheduler.task_prefixes.values()]
    return str(names + [str(task.run_spec) for task in dask_scheduler.tasks.values()])


def test_a_worker_without_the_folder_is_one_line(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    meet(cluster.client, tmp_path, NoProgress())
    monkeypatch.setattr(meeting, "reads", lambda _place, _text: False)
    with pytest.raises(InputError, match=r"(\d) of \1 workers of the cluster cannot read"):
        meet(cluster.client, tmp_path, NoProgress())
    assert not [*tmp_path.iterdir()]


def test_workers_that_come_when_there_is_work_do_it(tmp_path: Path) -> None:
    with (
        distributed.LocalCluster(
            n_workers=0, processes=False, dashboard_address=None, silence_logs=50
        ) as growing,
        distributed.Client(growing, set_as_default=False) as client,
    ):
        growing.adapt(minimum=0, maximum=2, interval="50ms")
        assert not client.nthreads()
        with open_cluster(client, tmp_path) as cluster:
            assert set(cluster.map(here, range(3))) == {os.getpid()}


def test_other_versions_are_one_line() -> None:
    def facts(**versions: str | None) -> dict[str, Any]:
        same = {"python": "3.12.1.final.0", "distributed": "2026.1", "ldpaudit": "1", "numpy": "2"}
        return {"packages": same | versions}

    same = {"client": facts(), "scheduler": facts(ldpaudit=None), "workers": {"a": facts()}}
    assert not list(differences(same))
    assert not list(differences(same | {"scheduler": facts(python="3.12.9.final.0")}))
    (line,) = differences(same | {"scheduler": facts(distributed="2025.1")})
    assert line.startswith("The scheduler of the cluster has distributed 2025.1, and this machine")
    (line,) = differences(same | {"workers": {"a": facts(ldpaudit=None)}})
    assert "worker of the cluster has no ldpaudit" in line
    (line,) = differences(same | {"workers": {"a": facts(python="3.11.1.final.0")}})
    assert "python 3.11, and this machine has 3.12" in line


def test_no_scheduler_is_one_line_within_seconds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connecting, "_SECONDS", 1)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        start = time.monotonic()
        with (
            pytest.raises(InputError, match="No Dask scheduler answered"),
            open_cluster(f"tcp://127.0.0.1:{silent.getsockname()[1]}", tmp_path),
        ):
            pass
        assert time.monotonic() - start < 5


@pytest.mark.parametrize("place", ["local:0", "local:", "host:8786", "http://host", "tcp://"])
def test_what_names_no_cluster_is_refused(place: str) -> None:
    with pytest.raises(InputError, match="tcp://host:8786, or local:4"):
        check_cluster(place)
    assert opening.local_workers("local:12") == 12
    assert opening.local_workers("tcp://host:8786") is None


def test_without_the_extra_one_line_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opening, "find_spec", lambda _name: None)
    with pytest.raises(MissingDependencyError, match=r"pip install 'ldpaudit\[cluster\]'"):
        check_cluster("local:2")
