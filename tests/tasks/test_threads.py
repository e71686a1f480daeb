"""Tasks in this process: in order, the first failure is raised, nothing runs too far ahead."""

import threading

import pytest

from ldpaudit.errors import InputError
from ldpaudit.tasks import Tasks, Threads
from ldpaudit.tasks.interface import Answer, in_order


def times(item: int, shared: int) -> int:
    if item == 13:
        raise InputError("Thirteen is refused.")
    return item * shared


def place(_item: int, _shared: None) -> str:
    return threading.current_thread().name


@pytest.mark.parametrize("workers", [1, 3])
def test_results_come_in_the_order_of_the_items(workers: int) -> None:
    tasks: Tasks = Threads(workers)
    assert list(tasks.map(times, range(10), shared=3)) == [3 * i for i in range(10)]
    results = tasks.map(times, range(10, 20), shared=1)
    assert [next(results) for _ in range(3)] == [10, 11, 12]
    with pytest.raises(InputError, match="Thirteen"):
        next(results)


def test_one_worker_is_the_caller() -> None:
    here = threading.current_thread().name
    assert set(Threads(1).map(place, range(3))) == {here}
    assert here not in set(Threads(2).map(place, range(3)))


def test_items_are_taken_only_as_far_ahead_as_workers_need() -> None:
    taken = []
    results = Threads(2).map(times, (taken.append(i) or i for i in range(1000)), shared=1)
    assert next(results) == 0
    assert len(taken) < 20
    results.close()
    assert not [t for t in threading.enumerate() if t.name.startswith("ldpaudit")]


def test_answers_are_put_in_order_and_the_first_failure_in_order_is_raised() -> None:
    assert list(in_order([(1, Answer("b")), (0, Answer("a")), (2, Answer("c"))])) == [*"abc"]
    late = Answer(reason="It failed.", error=InputError("It failed."))
    results = in_order([(1, late), (2, Answer("c")), (0, Answer("a"))])
    assert next(results) == "a"
    with pytest.raises(InputError, match="It failed"):
        next(results)
