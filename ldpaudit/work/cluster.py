"""Tasks on a Dask cluster, of this machine or of others."""

import os
import re
import signal
import warnings
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from importlib.util import find_spec
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Union
from urllib.parse import urlsplit

from ldpaudit.errors import InputError, LdpAuditError, MissingDependencyError
from ldpaudit.work.progress import NoProgress, Progress
from ldpaudit.work.tasks import Pool

if TYPE_CHECKING:
    from distributed import Client

# The address of a Dask scheduler, ``local:N`` or a connected client.
ClusterPlace = Union["Client", str]
_LOCAL: Final = re.compile(r"local:([1-9][0-9]{0,3})")
_ADDRESS: Final = re.compile(r"(tcp|tls|ucx|ucxx|ws|wss)://\S+")
_ENCRYPTED: Final = ("tls", "wss")
# Seconds that a scheduler may take to answer.
_SECONDS: Final = 5
# Seconds until the first worker: clusters that grow on demand start machines.
_PATIENCE: Final = 300
# Other versions cannot talk to one another, or would give other numbers; a scheduler has two.
_SAME: Final = ("python", "distributed", "ldpaudit", "numpy")


def check_cluster(place: ClusterPlace | None, *, without_tls: bool = False) -> None:
    """Refuse, before any work, what names no cluster, or one whose traffic others can change."""
    if place is None:
        return
    if isinstance(place, str) and not _LOCAL.fullmatch(place):
        if not _ADDRESS.fullmatch(place):
            raise InputError("The cluster must be an address such as tls://host:8786, or local:4.")
        scheme, host = urlsplit(place).scheme, urlsplit(place).hostname or ""
        here = host == "localhost"
        with suppress(ValueError):
            here = ip_address(host).is_loopback
        if scheme not in _ENCRYPTED and not here and not without_tls:
            raise InputError(
                "The cluster is on another machine and its traffic is not encrypted: who can read "
                "or change it can run code here. Use tls://, or give --cluster-without-tls."
            )
    if not all(map(find_spec, ("dask", "distributed", "cryptography"))):
        raise MissingDependencyError(
            "--cluster needs Dask; install it with: pip install 'ldpaudit[cluster]'"
        )


@contextmanager
def open_cluster(
    place: ClusterPlace,
    folder: Path,
    *,
    memory: float | None = None,
    without_tls: bool = False,
    progress: Progress | None = None,
) -> Iterator[Pool]:
    """Give a cluster's workers; a cluster that is started here ends with the block.

    ``folder``: for what workers of ``local:N`` put on the disk; ``memory``: bytes that all
    workers of ``local:N`` may use together; ``without_tls``: whether another machine's traffic
    may be unencrypted.
    """
    check_cluster(place, without_tls=without_tls)
    progress = progress or NoProgress()
    progress.step("connecting with the cluster")
    with ExitStack() as stack, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if isinstance(place, str):
            stack.enter_context(_quiet())
            local = _LOCAL.fullmatch(place)
            place = stack.enter_context(
                _started(int(local[1]), memory, folder) if local else _client(place)
            )
        elif place.asynchronous:
            raise InputError("The 'cluster' must be a client that is not asynchronous.")
        if not place.nthreads():
            progress.step("waiting for a worker of the cluster")
        try:
            # A cluster that grows on demand starts a worker for a task.
            place.submit(os.getpid, pure=False).result(timeout=_PATIENCE)
            found: Any = place.get_versions(packages=["ldpaudit"])
        except Exception as error:
            late = isinstance(error, TimeoutError)
            why = f"none came within {_PATIENCE} s" if late else "it failed"
            raise InputError(
                f"The cluster has no worker that can be used: {why} ({type(error).__name__})."
            ) from None
        for line in differences(found):
            raise InputError(line)
        yield Pool(-1, client=place)


def _client(address: str) -> "Client":
    import asyncio

    from distributed import Client
    from distributed.comm import connect
    from distributed.security import Security

    async def knock() -> None:
        """Connect and shake hands, for which a client would wait without end."""
        arguments = Security().get_connection_args("client")
        (await connect(address, timeout=_SECONDS, **arguments)).abort()

    try:
        with ThreadPoolExecutor(1) as apart:  # A notebook's own loop runs in this thread.
            apart.submit(asyncio.run, asyncio.wait_for(knock(), _SECONDS)).result()
        return Client(address, timeout=_SECONDS, set_as_default=False)
    except Exception as error:
        raise InputError(
            f"No Dask scheduler answered at the cluster's address within {_SECONDS} s "
            f"({type(error).__name__}); check the address, TLS and that its version is the same."
        ) from None


@contextmanager
def _started(workers: int, memory: float | None, folder: Path) -> "Iterator[Client]":
    """Start a scheduler and workers that nobody without this process's key can talk to."""
    from multiprocessing.resource_tracker import ensure_running

    import dask.config
    from distributed import Client, LocalCluster
    from distributed.security import Security

    own: dict[str, Any] = {
        # Pages about a local cluster would be open to all of the machine.
        "distributed.scheduler.http.routes": [],
        "distributed.worker.http.routes": [],
        "distributed.worker.profile.enabled": False,
        "distributed.nanny.pre-spawn-environ": dict.fromkeys(
            ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"
        ),
        "temporary-directory": str(folder),
    }
    ensure_running()  # When it starts it would let the signal through again.
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:  # Threads and processes that start here never see Ctrl-C: this process ends them.
        with dask.config.set(own):
            cluster = LocalCluster(
                n_workers=workers,
                threads_per_worker=1,
                memory_limit="auto" if memory is None else int(memory / workers),
                dashboard_address="127.0.0.1:0",
                local_directory=str(folder),
                silence_logs=50,
                security=Security.temporary(),
            )
    except Exception as error:
        kind = type(error).__name__
        raise LdpAuditError(f"The local cluster could not be started ({kind}).") from None
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
    with cluster, Client(cluster, set_as_default=False) as client:
        yield client


def differences(versions: Mapping[str, Any]) -> Iterator[str]:
    """Yield a line for each version on the cluster that differs from this machine's."""
    every: list[tuple[str, Any, tuple[str, ...]]]
    every = [("The scheduler", versions["scheduler"], _SAME[:2])]
    every += [("A worker", worker, _SAME) for worker in versions["workers"].values()]
    for who, said, names in every:
        for name in names:
            both = [one["packages"].get(name) or "" for one in (said, versions["client"])]
            # Of Python the first two numbers.
            there, here = (".".join(v.split(".")[:2]) if name == "python" else v for v in both)
            if there != here:
                yield (
                    f"{who} of the cluster has {f'{name} {there}' if there else f'no {name}'}, and "
                    f"this machine has {here}; install the same version there."
                )


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep the log of Dask from users: what matters is said in one line."""
    import logging

    import distributed  # noqa: F401 - It makes its loggers.

    of = ("distributed", "tornado", "asyncio", "bokeh")
    names = [*logging.root.manager.loggerDict]
    loggers = [logging.getLogger(n) for n in {*names, *of} if n.partition(".")[0] in of]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)
