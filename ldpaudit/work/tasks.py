"""Independent tasks of one function: in threads, in processes (joblib's loky), on a Dask cluster.

In: a function of a module, its items and what all of them share. Out: the results, the same
whatever did them.
"""

import faulthandler
import math
import os
import pickle
import re
import signal
import tempfile
import threading
import time
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from contextvars import ContextVar, copy_context
from dataclasses import dataclass
from functools import lru_cache, partial
from heapq import heappop, heappush
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

from ldpaudit.errors import LdpAuditError
from ldpaudit.version import __version__
from ldpaudit.work.interruption import undisturbed
from ldpaudit.work.memory import LEAST

if TYPE_CHECKING:
    from distributed import Client

T = TypeVar("T")
# Tasks begun or waiting for each thread: more would hold results that nobody takes yet.
_AHEAD: Final = 4
_KILLED: Final = "Its process was killed, perhaps for lack of memory; try --processes 1."


class Tasks(Protocol):
    """Does independent tasks; whatever does them, the results are the same."""

    # Each call is ``function(item, shared)``. Where tasks draw, an item names its generator
    # (:func:`ldpaudit.randomness.child_generator`): nothing depends on who does what, or when.

    @property
    def workers(self) -> int:
        """How many tasks are done at the same time; on a cluster, for now."""

    def map(
        self, function: Callable[[Any, Any], T], items: Iterable[Any], *, shared: Any = None
    ) -> Iterator[T]:
        """Yield the results in the order of the items.

        ``function``: of a module, by its name. It must not change what is shared. ``items``:
        picklable and small: numbers of blocks, names. ``shared``: picklable; may hold large
        arrays.
        """


@dataclass(frozen=True)
class Answer:
    """The answer to a task: its content, or the reason why it failed, in one line without data.

    ``error`` is what the task raised, where its message is for users; ``late`` whether it took
    longer than it may; ``status`` how a process ended that did not answer, where that is known.
    """

    content: Any = None
    reason: str = ""
    late: bool = False
    status: str = ""
    error: LdpAuditError | None = None

    def value(self) -> Any:
        """Return the content (LdpAuditError if the task failed)."""
        if self.reason:
            raise self.error or LdpAuditError(self.reason)
        return self.content


def attempt(work: Callable[..., Any], *task: Any) -> Answer:
    """Do a task; any failure becomes one line without data."""
    try:
        return Answer(work(*task))
    except LdpAuditError as error:
        return Answer(reason=" ".join(str(error).split()), error=error)
    except MemoryError:
        reason = "It needs more memory than there is."
    except Exception as error:
        # The text of a foreign exception may hold data, so only its type is shown.
        reason = f"Internal fault ({type(error).__name__})."
    return Answer(reason=reason)


class _Cores:
    """Processors that threads of this process take turns at, those of the lowest rank first."""

    def __init__(self, number: int) -> None:
        self.number, self.free = number, number
        self._changed, self._queue, self._tickets = threading.Condition(), [(0, 0)][:0], 0

    def take(self, rank: int) -> None:
        """Wait for a processor."""
        with self._changed:
            self._tickets += 1
            mine = (rank, self._tickets)
            heappush(self._queue, mine)
            self._changed.wait_for(lambda: self.free > 0 and self._queue[0] == mine)
            heappop(self._queue)
            self.free -= 1
            self._changed.notify_all()

    def give(self) -> None:
        """Give a processor back."""
        with self._changed:
            self.free += 1
            self._changed.notify_all()


@dataclass
class _Turn:
    """What one piece of work, and the tasks that it hands out, compute with."""

    cores: _Cores
    rank: int
    thread: int = 0
    waited: float = 0.0
    """Seconds for which the piece's own ``thread`` waited for other pieces."""

    def do(self, work: Callable[..., T], *task: Any) -> T:
        """Do a task when there is a processor for it."""
        self.cores.take(self.rank)
        try:
            return work(*task)
        finally:
            self.cores.give()


_turn: ContextVar[_Turn | None] = ContextVar("turn", default=None)


@contextmanager
def _lent() -> Iterator[None]:
    """Let others compute while the block waits for some of them."""
    turn = _turn.get()
    if turn is None:
        yield
        return
    turn.cores.give()
    try:
        yield
    finally:
        turn.cores.take(turn.rank)


@contextmanager
def held(lock: Any) -> Iterator[None]:
    """Hold a lock in the block; a processor does not wait for it, but computes something else."""
    if not lock.acquire(blocking=False):
        start = time.perf_counter()
        with _lent():
            lock.acquire()
        turn = _turn.get()
        if turn is not None and turn.thread == threading.get_ident():
            turn.waited += time.perf_counter() - start
    try:
        yield
    finally:
        lock.release()


def waited() -> float:
    """Return the seconds that the piece of work that runs has waited for others."""
    turn = _turn.get()
    return 0.0 if turn is None else turn.waited


def together(
    pieces: Sequence[Callable[[], T]],
    workers: int,
    end: Callable[[], None] = lambda: None,
    first: Sequence[int] = (),
) -> Iterator[T]:
    """Yield the results of different pieces of work, in order; the first error in order is raised.

    All begin in their order, each in a thread of its own, and as many compute as there are workers:
    one that waits for what another computes (:func:`held`), or for the tasks that it handed out
    (:class:`Threads`), leaves its processor to others. With one worker all happens in the caller's
    thread. ``end``: asks the pieces that still run to end, where the rest is not wanted.
    ``first``: the places of pieces that begin before the others, since they wait for none.
    """
    if workers <= 1 or len(pieces) < 2:
        yield from (piece() for piece in pieces)
        return
    from threadpoolctl import threadpool_limits

    cores = _Cores(workers)

    def do(piece: Callable[[], T], turn: _Turn) -> T:
        threadpool_limits(1, user_api="openmp")
        turn.thread = threading.get_ident()
        _turn.set(turn)
        return turn.do(piece)

    pool, begun = ThreadPoolExecutor(min(len(pieces), workers + 1), "ldpaudit"), dict[int, Any]()
    try:
        for place in dict.fromkeys((*first, *range(len(pieces)))):
            work = partial(copy_context().run, do, pieces[place], _Turn(cores, place))
            begun[place] = pool.submit(work)
        for place in range(len(pieces)):
            yield begun[place].result()
    except BaseException:
        end()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


@dataclass(frozen=True)
class Threads:
    """Threads of this process, each computing with one processor; one means the caller's own."""

    workers: int = 1

    def map(
        self, function: Callable[[Any, Any], T], items: Iterable[Any], *, shared: Any = None
    ) -> Iterator[T]:
        """Yield the results in the order of the items; the first error in order is raised."""
        if self.workers <= 1:
            yield from (function(item, shared) for item in items)
            return
        from threadpoolctl import threadpool_limits

        # OpenMP would start threads besides: faiss, boosting, torch.
        alone = lambda: threadpool_limits(1, user_api="openmp")  # noqa: E731
        pool, turn = ThreadPoolExecutor(self.workers, "ldpaudit", initializer=alone), _turn.get()
        begun: deque[Future[T]] = deque()

        def first() -> T:
            if begun[0].done():
                return begun.popleft().result()
            with _lent():
                return begun.popleft().result()

        try:
            for item in items:
                task = partial(function, item, shared)
                task = task if turn is None else partial(turn.do, task)
                begun.append(pool.submit(partial(copy_context().run, task)))
                if len(begun) >= _AHEAD * self.workers:
                    yield first()
            while begun:
                yield first()
        finally:
            with _lent():
                pool.shutdown(cancel_futures=True)


@dataclass(frozen=True)
class Pool:
    """Processes of this machine or a cluster's, through joblib; a task that fails costs no other.

    ``most``, ``threads``: processes, and the threads of each. ``folder``: where they put temporary
    files; None: where each of them would. ``client``: of a cluster; None: processes of this
    machine. ``seconds``: that a task may take, in a process of this machine, before that is ended.
    """

    most: int
    threads: int = 1
    folder: Path | None = None
    client: "Client | None" = None
    seconds: float = math.inf

    @property
    def workers(self) -> int:
        """How many tasks are done at the same time."""
        if self.client is None:
            return self.most
        return max(1, sum(map(int, self.client.nthreads().values())))

    def map(
        self, function: Callable[[Any, Any], T], items: Iterable[Any], *, shared: Any = None
    ) -> Iterator[T]:
        """Yield the results in the order of the items; the first error in order is raised."""
        waiting: dict[int, Answer] = {}
        position = 0
        for number, answer in self.answers(function, [*items], shared):
            waiting[number] = answer
            while position in waiting:
                yield waiting.pop(position).value()
                position += 1

    def answers(
        self, function: Callable[[Any, Any], Any], items: Sequence[Any], shared: Any = None
    ) -> Iterator[tuple[int, Answer]]:
        """Yield the number and the answer of each item as it is done, in any order."""
        if self.client is None and self.most == 1 and self.seconds == math.inf:
            from threadpoolctl import threadpool_limits

            with threadpool_limits(self.threads, user_api="blas"):
                for number, item in enumerate(items):
                    yield number, attempt(function, item, shared)
            return
        from joblib.externals.loky.process_executor import TerminatedWorkerError

        # A cluster must not take it for what an earlier call shared, and forgot just then.
        own = (self.threads, self.folder, self.seconds, os.urandom(8))
        packed = pickle.dumps((__version__, function, shared, *own))
        left = dict(enumerate(items))
        done = self._done_here if self.client is None else self._done_on_cluster
        began = time.monotonic()
        try:
            for number, answer in done(left, packed):
                yield number, answer
                del left[number]
        except TerminatedWorkerError as error:
            if len(items) == 1:
                yield 0, self._ended(error, began)
                return
            for number, item in left.items():  # Each by itself, as one of them was the cause.
                began = time.monotonic()
                try:
                    yield from done({number: item}, packed)
                except TerminatedWorkerError as own_error:
                    yield number, self._ended(own_error, began)

    def _ended(self, error: Exception, began: float) -> Answer:
        """Return what is said of a task whose process ended; ``began``: on the monotonic clock."""
        status = re.search(r"EXIT\((\d+)\)", str(error))
        late = time.monotonic() - began >= self.seconds
        if status is None:
            return Answer(reason=_KILLED, status="killed")
        if late and status[1] == "1":
            reason = f"It took longer than {self.seconds:g} s and was ended."
            return Answer(reason=reason, late=True)
        reason = f"Its process ended (status {status[1]})."
        return Answer(reason=reason, status=status[1])

    def _done_here(self, items: Mapping[int, Any], packed: bytes) -> Iterator[tuple[int, Answer]]:
        from joblib import Parallel, delayed, parallel_config

        work = [delayed(_do)(number, item, packed) for number, item in items.items()]
        with (
            warnings.catch_warnings(),
            parallel_config(backend="loky", inner_max_num_threads=self.threads),
        ):
            warnings.simplefilter("ignore")
            # With one job joblib would work in this process.
            yield from Parallel(
                max(self.most, 2),
                return_as="generator_unordered",
                batch_size=1,
                pre_dispatch=self.most,
            )(work)

    def _done_on_cluster(
        self, items: Mapping[int, Any], packed: bytes
    ) -> Iterator[tuple[int, Answer]]:
        # Not by joblib's backend for Dask, which waits for ever where a task ends its workers.
        from distributed import as_completed

        client: Any = self.client
        shared = client.scatter(packed, broadcast=True, hash=False)
        futures = client.map(_do, [*items], [*items.values()], packed=shared, pure=False)
        try:
            for future in as_completed(futures, loop=client.loop):
                if future.status != "finished":
                    raise LdpAuditError("The cluster failed at a task: perhaps it lacks memory.")
                answer: tuple[int, Answer] = future.result()
                yield answer
                future.release()
        finally:
            client.cancel(futures)


def _do(number: int, item: Any, packed: bytes) -> tuple[int, Answer]:
    """Do one task in a worker; whatever it raises is answered, so no log shows it."""
    try:
        version, function, shared, seconds = _opened(packed)
    except (ImportError, AttributeError) as error:
        return number, Answer(reason=f"A worker lacks a module ({type(error).__name__}).")
    if version != __version__:
        return number, Answer(reason=f"A worker has another version than ldpaudit {version}.")
    if seconds < math.inf:  # Unlike a thread of Python it needs no lock that a call may hold.
        faulthandler.dump_traceback_later(seconds, exit=True, file=2)
    try:
        return number, attempt(function, item, shared)
    finally:
        faulthandler.cancel_dump_traceback_later()


@lru_cache(1)
def _opened(packed: bytes) -> tuple[str, Any, Any, float]:
    """Return version, function, what is shared and a time limit; prepare this process for them."""
    from threadpoolctl import threadpool_limits

    warnings.simplefilter("ignore")
    with suppress(ValueError):  # Not the main thread: then Ctrl-C does not come here.
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # The command ends its workers.
    version, function, shared, threads, folder, seconds, _ = pickle.loads(packed)  # nosec B301
    if folder is not None:
        nowhere = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(nowhere, stream)
        tempfile.tempdir = str(folder)
        threading.Thread(target=_end_with, args=(os.getppid(),), daemon=True).start()
    threadpool_limits(threads, user_api="blas")
    return version, function, shared, seconds


def _end_with(command: int) -> None:
    """End this process with the command, even if that is killed."""
    while os.getppid() == command:
        time.sleep(0.5)
    os._exit(1)


@contextmanager
def processes(
    most: int,
    threads: int,
    folder: Path,
    memory: float | None = None,
    *,
    seconds: float = math.inf,
) -> Iterator[Pool]:
    """Give processes of this machine, which end with the block; a context manager.

    Parameters
    ----------
    most : int
        The most processes at a time, at least 1.
    threads : int
        Threads of each.
    folder : Path
        For their temporary files, for instance that of a :class:`~ldpaudit.work.memory.Scratch`.
    memory : float, optional
        Bytes for all of them: there are only as many as have what any audit needs. Default: three
        quarters of what is free.
    seconds : float
        What each task may take, in seconds, before its process is ended.

    Yields
    ------
    Pool
        Its ``map(function, items, shared=…)`` yields ``function(item, shared)`` in the order of the
        items, for a function of a module. The result is the same with any number of processes
        where each task draws from a generator of its own (:func:`ldpaudit.doors.child_generator`).
    """
    import psutil

    memory = 0.75 * psutil.virtual_memory().available if memory is None else memory
    try:
        most = max(1, min(most, int(memory / LEAST)))
        yield Pool(most, threads, folder, seconds=seconds)
    finally:
        from joblib.externals.loky import reusable_executor

        if (executor := reusable_executor._executor) is not None:
            with undisturbed():
                executor.shutdown(wait=True, kill_workers=True)
