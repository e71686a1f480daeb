"""Tasks in this process, in threads: for work that lets go of Python's lock."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Final, TypeVar

T = TypeVar("T")

_AHEAD: Final = 4
"""Tasks begun or waiting for each worker: more would hold results that nobody takes yet."""


@dataclass(frozen=True)
class Threads:
    """Threads of this process, of which each computes with one processor.

    Attributes
    ----------
    workers : int
        At least 1; one thread means the caller's own.
    """

    workers: int = 1

    def map(
        self, function: Callable[[Any, Any], T], items: Iterable[Any], *, shared: Any = None
    ) -> Iterator[T]:
        """Yield the results in the order of the items; the first error in order is raised."""
        if self.workers <= 1:
            yield from (function(item, shared) for item in items)
            return
        pool = ThreadPoolExecutor(self.workers, "ldpaudit", initializer=_alone)
        begun: deque[Future[T]] = deque()
        try:
            for item in items:
                begun.append(pool.submit(function, item, shared))
                if len(begun) >= _AHEAD * self.workers:
                    yield begun.popleft().result()
            while begun:
                yield begun.popleft().result()
        finally:
            pool.shutdown(cancel_futures=True)


def _alone() -> None:
    """Let OpenMP start no threads beside this one: faiss, boosting, torch."""
    from threadpoolctl import threadpool_limits

    threadpool_limits(1, user_api="openmp")
