"""Where may be written: never over an input, and never two files in one place."""

from itertools import combinations
from pathlib import Path

from ldpaudit.commands.privatize.request import PrivatizeRequest
from ldpaudit.datasets.formats.locations import locate
from ldpaudit.datasets.names import quoted
from ldpaudit.datasets.writing.streamed import check_target
from ldpaudit.errors import OutputError


def check_paths(request: PrivatizeRequest) -> None:
    """Check the files that will be written against each other and against those that are read.

    Raises
    ------
    OutputError
        If a file would be an input, lie in the folder that is read, be written twice, or cannot
        be written.
    """
    every = (request.secret, request.output, request.synthetic_out)
    targets = [path for path in every if path is not None]
    if any(_same(one, other) for one, other in combinations(targets, 2)):
        raise OutputError(
            "The release, --secret and --synthetic-out must not be one file: two files cannot "
            "have one name."
        )
    inputs, folders = _inputs(request)
    for target in targets:
        if any(_same(target, path) for path in inputs):
            raise OutputError(f"{quoted(target.name)} is an input and is not overwritten.")
        if any(folder in target.resolve().parents for folder in folders):
            raise OutputError(
                f"{quoted(target.name)} would lie in the folder that is read; write it elsewhere."
            )
        check_target(target, overwrite=request.overwrite, text=target == request.synthetic_out)


def _inputs(request: PrivatizeRequest) -> tuple[list[Path], list[Path]]:
    """Return the files that are read, and the folder where a whole folder is."""
    data = locate(request.data)
    paths = [Path(path) for path in data.paths]
    beside = (request.prior, request.channel)
    tables = (request.public, request.synthetic, request.generator_data)
    paths += [Path(path) for path in (*beside, *tables) if path is not None]
    return paths, [] if data.folder is None else [Path(data.folder).resolve()]


def _same(one: Path, other: Path) -> bool:
    try:
        return one.resolve() == other.resolve() or one.samefile(other)
    except (OSError, ValueError):
        return False
