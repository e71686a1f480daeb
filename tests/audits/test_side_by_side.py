"""Audits side by side: the same results, errors and order as one after another."""

import json
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from releases import written
from worlds import feature_table

import ldpaudit
from ldpaudit.audits.interface import AuditContext, Memo, Plan
from ldpaudit.audits.running import run_audits
from ldpaudit.errors import InsufficientDataError, LdpAuditError
from ldpaudit.mechanisms import RandomizedResponse
from ldpaudit.release import Release, ReleasedLabels
from ldpaudit.result import Finding
from ldpaudit.work.progress import INTERRUPTED, NoProgress, Stop, Stopped, Watched
from ldpaudit.work.tasks import Threads, held, together, waited


def content(value: Any) -> Any:
    """Return a result without its times and the number of threads."""
    if isinstance(value, dict):
        return {k: content(v) for k, v in value.items() if k not in ("seconds", "threads")}
    return [content(one) for one in value] if isinstance(value, list) else value


@pytest.mark.parametrize("truth", [True, pytest.param(False, marks=pytest.mark.validate)])
def test_results_are_the_same_for_any_number_of_workers(truth: bool, tmp_path: Any) -> None:
    path, known = written(tmp_path, rows=600)
    given: dict[str, Any] = {"truth": str(known)} if truth else {}
    results = [ldpaudit.audit(str(path), threads=n, seed=3, **given) for n in (1, 3)]
    first, *others = [content(json.loads(one.to_json())) for one in results]
    assert sum(one["status"] == "ran" for one in first["audits"]) > 3
    assert all(other == first for other in others)


def test_pieces_that_wait_for_one_another_and_hand_out_tasks_come_to_an_end() -> None:
    """Each piece needs what others compute, which hands out tasks that need more."""
    for workers in (1, 2, 3):
        memo, built = Memo(), list[str]()

        def value(depth: int, branch: int, memo: Memo = memo, built: Any = built) -> int:
            key = f"{depth}.{branch}"

            def build() -> int:
                built.append(key)
                time.sleep(0.001)
                items = [(depth - 1, one) for one in range(3)] if depth else []
                return 1 + sum(Threads(2).map(lambda item, _: value(*item), items))

            return memo.once(key, build)

        pieces = [lambda one=one: value(4, one % 3) for one in range(9)]
        assert list(together(pieces, workers)) == [121] * 9
        assert len(built) == len(set(built)) == 15


def test_no_more_compute_at_once_than_there_are_workers() -> None:
    at_work, most, lock = [0], [0], threading.Lock()

    def task(_: int, __: None) -> None:
        with lock:
            at_work[0] += 1
            most[0] = max(most[0], at_work[0])
        time.sleep(0.002)
        with lock:
            at_work[0] -= 1

    def piece() -> int:
        return len(list(Threads(4).map(task, range(5))))

    assert list(together([piece] * 6, 2)) == [5] * 6
    assert most[0] == 2


@pytest.mark.parametrize("workers", [1, 2])
def test_pieces_that_begin_first_change_no_result(workers: int) -> None:
    begun, other = list[int](), threading.Event()

    def piece(place: int) -> int:
        begun.append(place)
        if place:
            other.set()
        elif workers > 1:  # With a processor of its own until another has begun.
            assert other.wait(60)
        return place

    pieces = [lambda one=one: piece(one) for one in range(6)]
    assert list(together(pieces, workers, first=(0, 5, 4))) == [*range(6)]
    assert sorted(begun) == [*range(6)]
    assert next(place for place in begun if place) in ({4, 5} if workers > 1 else {1})


def test_a_lock_is_waited_for_without_a_processor() -> None:
    lock, begun, over = threading.RLock(), threading.Event(), threading.Event()

    def holder() -> float:
        with held(lock):
            begun.set()
            assert over.wait(10)
        return waited()

    def waiter() -> float:
        assert begun.wait(10)
        with held(lock):
            return waited()

    def other() -> float:
        over.set()
        return waited()

    # One waits for the event, one for the lock: the last has a processor all the same.
    times = list(together([holder, waiter, other], 2))
    assert times[0] == times[2] == 0 <= times[1] < 10


@dataclass(frozen=True)
class Given:
    """An audit that does what a test says."""

    id: str
    work: Callable[[AuditContext], Any]
    needs: tuple[str, ...] = ()
    counts: str = "rows"

    def unavailable(self, context: AuditContext) -> None: ...

    def run(self, context: AuditContext) -> Finding:
        self.work(context)
        return Finding()


def fails(error: Exception, after: float = 0.0) -> Callable[[AuditContext], Any]:
    def work(_: AuditContext) -> None:
        time.sleep(after)
        raise error

    return work


def goes_on(context: AuditContext) -> None:
    for _ in range(1000):
        context.progress.step("another step")
        time.sleep(0.01)
    raise AssertionError("It was not ended.")


SLOW = Given("slow", fails(LdpAuditError("the first"), after=0.05))
QUICK = Given("quick", fails(LdpAuditError("the second")))
FEW = Given("few", fails(InsufficientDataError("too few rows")))
LONG = Given("long", goes_on)
GOOD = Given("good", lambda context: context.progress.step("a step"))


def ran(workers: int, *names: str, run: Any = None) -> list[tuple[str, str]]:
    codes = np.arange(50, dtype=np.int32) % 2
    table = feature_table(np.arange(50, dtype=np.float32)[:, None])
    release = Release(table, ReleasedLabels(codes), (0, 1), (0, 1))
    context = AuditContext(
        release, RandomizedResponse.from_epsilon((0, 1), 1.0), Plan(3, threads=workers)
    )
    context = context if run is None else replace(context, run=replace(context.run, **run))
    records, *_ = run_audits({name: f"{__name__}:{name.upper()}" for name in names}, context)
    return [(record.id, record.status) for record in records]


@pytest.mark.parametrize("workers", [1, 2, 4])
def test_the_first_error_in_order_is_raised_and_ends_what_comes_after(workers: int) -> None:
    with pytest.raises(LdpAuditError, match="the first"):
        ran(workers, "good", "slow", "quick", "long")
    done = ran(workers, "few", "good")
    assert done == [("few", "skipped"), ("good", "ran")]


@pytest.mark.parametrize("workers", [1, 2, 4])
def test_an_audit_that_ends_early_is_stopped_and_others_are_not_blamed(workers: int) -> None:
    class Late(NoProgress):
        def step(self, text: str) -> None:
            stop.asked = INTERRUPTED

    stop = Stop()
    run = {"stop": stop, "progress": Watched(Late(), stop)}
    statuses = dict(ran(workers, "good", "long", run=run))
    assert statuses == {"good": "ran", "long": "stopped"}
    assert stop.obeyed


def test_what_is_shared_is_built_again_where_building_it_failed() -> None:
    memo = Memo()

    def stopped() -> int:
        raise Stopped

    with pytest.raises(Stopped):
        memo.once("a", stopped)
    assert memo.once("a", lambda: 3) == memo.once("a", stopped) == 3
