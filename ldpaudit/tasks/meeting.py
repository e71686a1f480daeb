"""The first look at a cluster: versions, and whether its workers read what is shared."""

import secrets
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import ldpaudit
from ldpaudit.errors import InputError
from ldpaudit.running.progress import Progress

if TYPE_CHECKING:
    from distributed import Client

_SECONDS: Final = 30
_PATIENCE: Final = 300
"""Seconds until the first worker: clusters that grow on demand start machines."""
_SAME: Final = ("python", "distributed", "ldpaudit", "numpy")
"""Other versions cannot talk to one another, or would give other numbers."""


def meet(client: "Client", folder: Path, progress: Progress) -> None:
    """Check a cluster before it is given work.

    Raises
    ------
    InputError
        If no worker comes, a version differs, or a worker cannot read the shared folder.
    """
    if not client.nthreads():
        progress.step("waiting for a worker of the cluster")
        _call_a_worker(client)
    versions: Any = client.get_versions(packages=["ldpaudit"])
    for line in differences(versions):
        raise InputError(line)
    text = secrets.token_hex(16)
    place = folder / f"look-{secrets.token_hex(8)}"
    place.write_text(text)
    try:
        seen = client.run(reads, place, text, callback_timeout=_SECONDS)
    except Exception as error:
        raise InputError(
            f"A worker of the cluster did not answer within {_SECONDS} s ({type(error).__name__})."
        ) from None
    finally:
        place.unlink()
    missing = sum(not good for good in seen.values())
    if missing:
        raise InputError(
            f"{missing} of {len(seen)} workers of the cluster cannot read the scratch folder; set "
            "TMPDIR to a folder that all of them share, as the same user."
        )


def reads(place: Path, text: str) -> bool:
    """Return whether a file can be read here and holds ``text``."""
    try:
        return place.read_text() == text
    except OSError:
        return False


def differences(versions: Mapping[str, Any]) -> Iterator[str]:
    """Yield a line for each version on the cluster that differs from this machine's."""
    here = _packages(versions["client"])
    yield from _differences("The scheduler", versions["scheduler"], here, _SAME[:2])
    for worker in versions["workers"].values():
        yield from _differences("A worker", worker, here, _SAME)


def _differences(
    who: str, facts: Mapping[str, Any], here: Mapping[str, str], names: tuple[str, ...]
) -> Iterator[str]:
    there = _packages(facts)
    for name in names:
        if there[name] != here[name]:
            found = f"{name} {there[name]}" if there[name] else f"no {name}"
            yield (
                f"{who} of the cluster has {found}, and this machine has {here[name]}; install the "
                "same version there."
            )


def _packages(facts: Mapping[str, Any]) -> dict[str, str]:
    """Return the versions; of Python the first two numbers."""
    found = {name: facts["packages"].get(name) or "" for name in _SAME}
    return found | {"python": ".".join(found["python"].split(".")[:2])}


def _call_a_worker(client: "Client") -> None:
    """Wait until a worker does a task: a cluster that grows on demand starts one for it."""
    future = client.submit(_version, key=f"look-{secrets.token_hex(16)}", pure=False)
    try:
        future.result(timeout=_PATIENCE)
    except TimeoutError:
        raise InputError(
            f"The cluster has no worker, and none came within {_PATIENCE} s."
        ) from None
    except Exception as error:
        raise InputError(
            f"A worker of the cluster cannot be used ({type(error).__name__}); install ldpaudit "
            f"{ldpaudit.__version__} there."
        ) from None
    finally:
        future.cancel()


def _version() -> str:
    return ldpaudit.__version__
