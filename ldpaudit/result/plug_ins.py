"""Which parts of other packages, or of files, took part in an audit."""

import hashlib
from collections.abc import Collection, Iterator
from pathlib import Path

from ldpaudit.plugins import added, package_of, took_part
from ldpaudit.result.run_info import PlugIn, PlugInKind


def used(kind: PlugInKind, names: Collection[str], built_in: Collection[str]) -> Iterator[PlugIn]:
    """Yield the plug-ins of a kind that took part, with name and version of each."""
    # They are those among the names, and all others whose code was loaded: it ran, though it gave
    # no number.
    for name, point in added(kind, built_in).items():
        if name in names or took_part(point):
            yield PlugIn(kind=kind, name=name, **package_of(point))


def given(kind: PlugInKind, name: str, place: str) -> PlugIn:
    """Return a part that an audit was given as ``FILE.py:CLASS`` or ``MODULE:CLASS``."""
    # A file is told by its digest, never by its path.
    file = Path(place.rpartition(":")[0])
    digest = hashlib.sha256(file.read_bytes()).hexdigest() if file.is_file() else None
    return PlugIn(kind=kind, name=name, sha256=digest)
