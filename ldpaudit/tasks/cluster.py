"""Tasks on a Dask cluster.

The scheduler sees names of functions, numbers of items and places of files. What tasks need lies
in files of the shared folder, and what they return goes from the worker to this process.
"""

import secrets
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import ldpaudit
from ldpaudit.errors import LdpAuditError
from ldpaudit.tasks.interface import Answer, Pool, attempt
from ldpaudit.tasks.parcels import opened, parcel

if TYPE_CHECKING:
    from distributed import Client, Future


@dataclass(frozen=True)
class Cluster(Pool):
    """A Dask cluster; whoever made its client closes it.

    A task whose worker is lost is done again by another one.

    Attributes
    ----------
    client : distributed.Client
    folder : Path
        The folder that all workers read.
    """

    client: "Client"
    folder: Path

    @property
    def workers(self) -> int:
        """How many tasks the workers that are there now do at the same time."""
        return max(1, sum(map(int, self.client.nthreads().values())))

    def answers(
        self, function: Callable[[Any, Any], Any], items: Sequence[Any], shared: Any = None
    ) -> Iterator[tuple[int, Answer]]:
        """Yield the number and the answer of each item as it is done, in any order."""
        from distributed import as_completed

        name = f"{function.__name__.strip('_')}-{secrets.token_hex(16)}"
        with parcel(self.folder, (function, items, shared)) as place:
            numbers = {f"{name}-{number}": number for number in range(len(items))}
            futures = self.client.map(
                _do,
                numbers.values(),
                place=str(place),
                version=ldpaudit.__version__,
                key=[*numbers],
                pure=False,
            )
            try:
                completed = as_completed(futures, loop=self.client.loop)
                for future in completed:
                    number = numbers[future.key]
                    if future.status == "cancelled" and self.client.status == "running":
                        # Its worker was lost after it was done: once more.
                        stated = {"place": str(place), "version": ldpaudit.__version__}
                        key = f"{name}-{number}-{len(futures)}"
                        again = self.client.submit(_do, number, **stated, key=key, pure=False)
                        numbers[again.key] = number
                        futures.append(again)
                        completed.add(again)
                        continue
                    yield number, _answer(future)
                    future.release()
            finally:
                self.client.cancel(futures)


def _do(number: int, place: str, version: str) -> Answer:
    """Do one task on a worker; whatever it raises is answered, so no log of Dask shows it."""
    if version != ldpaudit.__version__:
        return Answer(reason=f"A worker of the cluster has another version than {version}.")
    try:
        function, items, shared = _prepared(place)
    except OSError:
        return Answer(reason="A worker of the cluster cannot read the scratch folder; set TMPDIR.")
    except (ImportError, AttributeError) as error:
        return Answer(reason=f"A worker of the cluster lacks a module ({type(error).__name__}).")
    return attempt(function, items[number], shared)


@lru_cache(1)
def _prepared(place: str) -> Any:
    """Return what a parcel holds, with one thread for BLAS: more would round sums differently."""
    from threadpoolctl import threadpool_limits

    content = opened(Path(place))  # It imports what the function needs.
    threadpool_limits(1, user_api="blas")
    return content


def _answer(future: "Future[Any]") -> Answer:
    """Return the answer of a task that is done, or why it never will be."""
    from distributed.scheduler import KilledWorker

    if future.status == "finished":
        answer: Answer = future.result()
        return answer
    error = future.exception() if future.status == "error" else None
    if isinstance(error, KilledWorker):
        return Answer(reason="Several workers ended while they did it, perhaps for lack of memory.")
    if isinstance(error, ImportError):
        reason = f"A worker of the cluster lacks ldpaudit {ldpaudit.__version__}."
        return Answer(reason=reason)
    if error is None:
        raise LdpAuditError("The scheduler of the cluster was lost.")
    return Answer(reason=f"The cluster failed at it ({type(error).__name__}).")
