"""What ``--overwrite`` replaces: a second draw of the same labels tells more than one."""

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

from ldpaudit.commands.privatize.private_columns import PrivateColumns
from ldpaudit.commands.privatize.request import PrivatizeRequest
from ldpaudit.datasets.declaration import parse_declaration
from ldpaudit.datasets.formats.opening import open_table
from ldpaudit.datasets.formats.tabular import TableSource
from ldpaudit.datasets.formats.watching import unwatched
from ldpaudit.datasets.names import quoted
from ldpaudit.errors import LdpAuditError


def second_draw(request: PrivatizeRequest, columns: PrivateColumns) -> Iterator[str]:
    """Yield a sentence where a release, or true labels, of the same columns are replaced.

    Not where its answers are remembered, and not for an experiment, whose draws protect nobody.
    """
    remembered = request.remember is not None and request.remember.is_file()
    if not request.overwrite or remembered or request.experimental:
        return
    names = frozenset(columns.names)
    if names & _released(request.output):
        file, was = request.output, "was a release of private columns"
    elif request.secret is not None and names & _kept(request.secret):
        file, was = request.secret, "held the true values of columns"
    else:
        return
    yield (
        f"{quoted(file.name)}, which is replaced, {was} of the same name. If it was of the same "
        "people, this is a second, independent draw of their labels, and the two together tell up "
        "to the sum of their ε: let nobody have both. --remember repeats answers instead."
    )


def _released(path: Path) -> frozenset[str]:
    """Return the private columns that a release declares; none where it is no release."""
    table = _opened(path)
    if table is None or table.declaration is None:
        return frozenset()
    try:
        return frozenset(parse_declaration(table.declaration).names)
    except LdpAuditError:  # Whatever it declares, it is a release.
        return frozenset(table.names)


def _kept(path: Path) -> frozenset[str]:
    table = _opened(path)
    return frozenset() if table is None else frozenset(table.names)


def _opened(path: Path) -> TableSource | None:
    """Return the table that is there; None where none is, or none that can be read."""
    if not path.is_file():
        return None
    try:
        with unwatched():
            return open_table(path)
    except (LdpAuditError, OSError, pa.ArrowException):
        return None
