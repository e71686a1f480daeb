"""Parts of other packages, registered as entry points, and those that one audit was given."""

import hashlib
import sys
from collections.abc import Collection, Iterator, Mapping
from functools import lru_cache
from importlib.metadata import EntryPoint, EntryPoints, entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ldpaudit.errors import InputError

if TYPE_CHECKING:
    from ldpaudit.result import PlugIn, PlugInKind

GROUPS: Final["Mapping[PlugInKind, str]"] = {
    "attack": "ldpaudit.attacks",
    "audit": "ldpaudit.audits",
    "mechanism": "ldpaudit.mechanisms",
}
"""The entry-point group of each kind of part: a name, and the class."""


def added(kind: "PlugInKind", built_in: Collection[str]) -> dict[str, EntryPoint]:
    """Return the parts of a kind by name; none can take the name of a built-in one."""
    return {point.name: point for point in _registered(kind) if point.name not in built_in}


def refused(kind: "PlugInKind", built_in: Collection[str]) -> Iterator[str]:
    """Say of each part that has the name of a built-in one that it is not used."""
    for point in _registered(kind):
        if point.name in built_in:
            of = f" of the package {point.dist.name!r}" if point.dist else ""
            yield f"The plug-in {point.name!r}{of} has a built-in {kind}'s name and was not used."


def _registered(kind: "PlugInKind") -> EntryPoints:
    return _in_group(GROUPS[kind], tuple(sys.path))


@lru_cache(maxsize=len(GROUPS))
def _in_group(group: str, _path: tuple[str, ...]) -> EntryPoints:
    """Return what the packages on this path registered; reading them all takes milliseconds."""
    return entry_points(group=group)


def unloadable(kind: str, name: str, error: BaseException) -> InputError:
    """Return the one line about a part that cannot be imported: the kind of its error, no text."""
    why = type(error).__name__
    return InputError(f"The plug-in {name!r} ({kind}) cannot be loaded ({why}).")


def used(
    kind: "PlugInKind", names: Collection[str], built_in: Collection[str]
) -> "Iterator[PlugIn]":
    """Yield the plug-ins of a kind that took part, with name and version of each.

    They are those among the names, and all others whose code was loaded: it ran, though it gave no
    number.
    """
    from ldpaudit.result import PlugIn

    for name, point in added(kind, built_in).items():
        if name in names or point.module in sys.modules:
            package, version = _said(point, "Name"), _said(point, "Version")
            yield PlugIn(kind=kind, name=name, package=package, version=version)


def given(kind: "PlugInKind", name: str, place: str) -> "PlugIn":
    """Return a part that an audit was given as ``FILE.py:CLASS`` or ``MODULE:CLASS``.

    A file is told by its digest, never by its path.
    """
    from ldpaudit.result import PlugIn

    file = Path(place.rpartition(":")[0])
    digest = hashlib.sha256(file.read_bytes()).hexdigest() if file.is_file() else None
    return PlugIn(kind=kind, name=name, sha256=digest)


def _said(point: EntryPoint, key: str) -> str | None:
    """Return what the part's package says of itself; None where it leaves that out."""
    about = None if point.dist is None else point.dist.metadata
    return None if about is None or key not in about else about[key]
