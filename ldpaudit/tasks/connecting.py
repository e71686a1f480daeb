"""A client of a Dask cluster, or of one started here, without the log of Dask."""

import asyncio
import logging
import signal
import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from multiprocessing.resource_tracker import ensure_running
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import psutil

from ldpaudit.errors import InputError, LdpAuditError
from ldpaudit.interruption import at_end
from ldpaudit.tasks.processes import THREADS

if TYPE_CHECKING:
    from distributed import Client

    from ldpaudit.tasks.opening import ClusterPlace

_SECONDS: Final = 5
_OWN: Final[dict[str, Any]] = {
    # Pages about a local cluster would be open to all of the machine.
    "distributed.scheduler.http.routes": [],
    "distributed.worker.http.routes": [],
    "distributed.worker.profile.enabled": False,  # It takes time, and nobody sees it.
    # Memory is kept as in any process: Dask's setting for workers gives it back after each use.
    "distributed.nanny.pre-spawn-environ": dict.fromkeys(THREADS, "1"),
}
_LOGS: Final = ("distributed", "tornado", "asyncio", "bokeh")


@contextmanager
def connected(
    place: "ClusterPlace", workers: int | None, memory: float | None, folder: Path
) -> "Iterator[Client]":
    """Give a client; a cluster of ``workers`` processes on this machine is started for it.

    What these put on the disk lies in ``folder``.

    Raises
    ------
    InputError
        If no scheduler answers within seconds.
    """
    if not isinstance(place, str):
        if place.asynchronous:
            raise InputError("The 'cluster' must be a client that is not asynchronous.")
        yield place
        return
    with _quiet(), ExitStack() as open_until_then:
        if workers is None:
            client = open_until_then.enter_context(_client(place))
        else:
            open_until_then.callback(at_end(_end_children))
            client = open_until_then.enter_context(_started(workers, memory, folder))
        yield client


def _client(address: str) -> "Client":
    from distributed import Client

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Other versions: said in one line, if they matter.
            with ThreadPoolExecutor(1) as apart:  # A notebook's own loop runs in this thread.
                apart.submit(asyncio.run, asyncio.wait_for(_knock(address), _SECONDS)).result()
            return Client(address, timeout=_SECONDS, set_as_default=False)
    except Exception as error:
        raise InputError(
            f"No Dask scheduler answered at the cluster's address within {_SECONDS} s "
            f"({type(error).__name__}); check the address, TLS and that its version is the same."
        ) from None


async def _knock(address: str) -> None:
    """Connect and shake hands, for which a client would wait without end."""
    from distributed.comm import connect
    from distributed.security import Security

    arguments = Security().get_connection_args("client")
    (await connect(address, timeout=_SECONDS, **arguments)).abort()


@contextmanager
def _started(workers: int, memory: float | None, folder: Path) -> "Iterator[Client]":
    """Start a scheduler and workers that nobody without this process's key can talk to."""
    import dask.config
    from distributed import Client, LocalCluster
    from distributed.security import Security

    own = {**_OWN, "temporary-directory": str(folder)}
    try:
        with _undisturbed(), dask.config.set(own), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            cluster = LocalCluster(
                n_workers=workers,
                threads_per_worker=1,
                memory_limit="auto" if memory is None else int(memory / workers),
                dashboard_address="127.0.0.1:0",
                local_directory=str(folder),
                silence_logs=logging.CRITICAL,
                security=Security.temporary(),
            )
    except Exception as error:
        raise LdpAuditError(
            f"The local cluster could not be started ({type(error).__name__})."
        ) from None
    with cluster, Client(cluster, set_as_default=False) as client:
        yield client


def _end_children() -> None:
    """End the workers: nothing waits for them any more."""
    for child in psutil.Process().children(recursive=True):
        with suppress(psutil.Error):
            child.kill()


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Let threads and processes that start here never see Ctrl-C: this process ends them."""
    ensure_running()  # When it starts it would let the signal through again.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep the log of Dask from users: what matters is said in one line."""
    import distributed  # noqa: F401 - It makes its loggers.

    names = [*logging.root.manager.loggerDict]
    loggers = [logging.getLogger(n) for n in {*names, *_LOGS} if n.partition(".")[0] in _LOGS]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)
