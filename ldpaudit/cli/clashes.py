"""Parts of other packages that are not used, because a built-in one has the name: a line each."""

import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from importlib.metadata import EntryPoint
from typing import Final

from ldpaudit.plugins import Kind, glanced, is_ours, of_package, points_of, refused

# Of commands, whose names are those of the program, see ``added``.


def _attacks() -> Collection[str]:
    from ldpaudit.attacks import taken_names

    return taken_names()


def _audits() -> Collection[str]:
    from ldpaudit.audits.listing import BUILT_IN

    return BUILT_IN


def _formats() -> Collection[str]:
    from ldpaudit.reports import FORMATS

    return FORMATS


def _generators() -> Collection[str]:
    from ldpaudit.generators import BUILT_IN

    return BUILT_IN


def _mechanisms() -> Collection[str]:
    from ldpaudit.mechanisms.listing import BUILT_IN

    return BUILT_IN


_BUILT_IN: Final[Mapping[Kind, Callable[[], Collection[str]]]] = {
    "attack": _attacks,
    "audit": _audits,
    "format": _formats,
    "generator": _generators,
    "mechanism": _mechanisms,
}


def clashes() -> Iterator[str]:
    """Yield a line for each part that is not used; nothing is imported where there are no parts."""
    for kind, names in _BUILT_IN.items():
        if _of_others(kind):
            yield from refused(kind, names())
    for point in _of_others("reader"):
        yield from _reader(point)


def _of_others(kind: Kind) -> list[EntryPoint]:
    return [point for point in points_of(kind) if not is_ours(point)]


def _reader(point: EntryPoint) -> Iterator[str]:
    """Yield a line where a file that is asked for has an ending of a reader and of a built-in one.

    Only the reader itself knows its endings, so it is loaded, where such a file is asked for.
    """
    from ldpaudit.datasets.formats import BUILT_IN

    asked = [word.lower() for word in sys.argv[1:] if word.lower().endswith(BUILT_IN)]
    if not asked:
        return
    from ldpaudit.commands.outputs import to_standard_error
    from ldpaudit.datasets.formats.added import Reader

    with to_standard_error():  # Whatever it prints is no answer.
        reader = glanced("reader", point, Reader)
    ends = getattr(reader, "endings", ())
    for end in ends if isinstance(ends, tuple) else ():
        known = isinstance(end, str) and end.endswith(BUILT_IN)
        if known and any(word.endswith(end) for word in asked):
            yield (
                f"The plug-in {point.name!r} (reader){of_package(point)} reads {end!r}, as a "
                "built-in reader does, so the built-in one is used."
            )
