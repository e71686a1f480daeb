"""What ``--cluster`` names: checked before any work, and opened."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final, Union

from ldpaudit.errors import InputError, MissingDependencyError
from ldpaudit.running.progress import NoProgress, Progress

if TYPE_CHECKING:
    from distributed import Client

    from ldpaudit.tasks.cluster import Cluster

ClusterPlace = Union["Client", str]
"""The address of a Dask scheduler, ``local:N`` or a connected client."""
_LOCAL: Final = re.compile(r"local:([1-9][0-9]{0,3})")
_ADDRESS: Final = re.compile(r"(tcp|tls|ucx|ucxx|ws|wss)://\S+")


def check_cluster(place: ClusterPlace | None) -> None:
    """Refuse, before any work, what names no cluster.

    Raises
    ------
    InputError
        If it is neither an address nor ``local:N``.
    MissingDependencyError
        If the libraries for clusters are not installed.
    """
    if place is None:
        return
    if isinstance(place, str) and not (_LOCAL.fullmatch(place) or _ADDRESS.fullmatch(place)):
        raise InputError("The cluster must be an address such as tcp://host:8786, or local:4.")
    if not all(map(find_spec, ("distributed", "cryptography"))):
        raise MissingDependencyError(
            "--cluster needs Dask; install it with: pip install 'ldpaudit[cluster]'"
        )


def local_workers(place: ClusterPlace) -> int | None:
    """Return N of ``local:N``, None for another cluster."""
    found = _LOCAL.fullmatch(place) if isinstance(place, str) else None
    return int(found[1]) if found else None


@contextmanager
def open_cluster(
    place: ClusterPlace,
    folder: Path,
    *,
    memory: float | None = None,
    progress: Progress | None = None,
) -> "Iterator[Cluster]":
    """Give a cluster; one that is started here ends with the block.

    Parameters
    ----------
    place : str or distributed.Client
    folder : Path
        Where files are shared with the workers.
    memory : float, optional
        Bytes that all workers of ``local:N`` may use together.
    progress : Progress, optional

    Raises
    ------
    LdpAuditError
        One line: a missing library, no scheduler, other versions, no access to the folder.
    """
    check_cluster(place)
    from ldpaudit.tasks.connecting import connected

    (progress or NoProgress()).step("connecting with the cluster")
    with connected(place, local_workers(place), memory, folder) as client:
        from ldpaudit.tasks.cluster import Cluster
        from ldpaudit.tasks.meeting import meet

        meet(client, folder, progress or NoProgress())
        yield Cluster(client, folder)
