"""Code of others: imported by name, registered as entry points, or given for one audit."""

# What goes wrong in it is told by its kind and line, never by its text, which may hold data.

import importlib
import importlib.util
import os
import sys
import threading
import traceback
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import fields, is_dataclass, replace
from functools import cache, lru_cache
from importlib.metadata import EntryPoint, EntryPoints, entry_points
from pathlib import Path
from types import ModuleType
from typing import Any, Final, Literal, TypeVar

from ldpaudit.errors import InputError, LdpAuditError

T = TypeVar("T")
# What a package may add.
Kind = Literal[
    "attack",
    "audit",
    "command",
    "format",
    "generator",
    "mechanism",
    "reader",
    "receipt",
    "tree",
]
# The entry-point group of each kind of part: a name, and the object.
GROUPS: Final[Mapping[Kind, str]] = {
    "attack": "ldpaudit.attacks",
    "audit": "ldpaudit.audits",
    "command": "ldpaudit.commands",
    "format": "ldpaudit.formats",
    "generator": "ldpaudit.generators",
    "mechanism": "ldpaudit.mechanisms",
    "reader": "ldpaudit.readers",
    "receipt": "ldpaudit.receipts",
    "tree": "ldpaudit.trees",
}
_OURS: Final = "ldpaudit"

# The end of a sentence on a part's name that nothing has.
NOT_HERE: Final = ". One of another package is known once that package is installed."


def load_object(name: str, path: Sequence[str], what: str, kind: str) -> Any:
    """Import ``MODULE:NAME``, or ``FILE.py:NAME``.

    ``name``: may be an attribute of an object: ``module:Class.method``; ``path``: where modules
    are searched first; ``what``, ``kind``: for messages: what is imported, ``"attack"``, and its
    kind, ``"CLASS"``.
    """
    module_name, colon, attribute = name.rpartition(":")
    if not (colon and module_name and attribute):
        raise InputError(f"The {what} must be given as MODULE:{kind} or FILE.py:{kind}.")
    sys.path[:0] = [place for place in path if place not in sys.path]
    shown = Path(module_name).name
    try:
        with contained():
            found: Any = _import(module_name)
    except (InputError, KeyboardInterrupt):
        raise
    except BaseException as error:
        raise InputError(f"The module {shown!r} cannot be imported: {where(error)}.") from None
    for part in attribute.split("."):
        if not hasattr(found, part):
            raise InputError(f"The module {shown!r} has no {attribute!r}.")
        found = getattr(found, part)
    return found


def _import(module: str) -> ModuleType:
    if not module.endswith(".py"):
        return importlib.import_module(module)
    file = Path(module)
    if not file.is_file():
        raise InputError(f"There is no file {file.name!r}.")
    known = getattr(sys.modules.get(file.stem), "__file__", None)
    # A file may be called like a module that others need.
    name = file.stem if known in (None, str(file.resolve())) else f"{file.stem} (file)"
    spec = importlib.util.spec_from_file_location(name, file.resolve())
    assert spec is not None
    assert spec.loader is not None
    loaded = importlib.util.module_from_spec(spec)
    sys.modules[name] = loaded
    spec.loader.exec_module(loaded)
    return loaded


class _Diverted:
    """Sends what is printed to standard error, as long as anybody holds it, in whatever thread."""

    def __init__(self) -> None:
        self._guard, self._held = threading.Lock(), 0
        self._before: Any = None

    def __enter__(self) -> None:
        with self._guard:
            self._held += 1
            if self._held == 1:
                self._before, sys.stdout = sys.stdout, sys.stderr

    def __exit__(self, *_: object) -> None:
        with self._guard:
            self._held -= 1
            if self._held == 0:
                sys.stdout = self._before


_DIVERTED: Final = _Diverted()


@contextmanager
def contained() -> Iterator[None]:
    """Run code of others, which prints to standard error and cannot move the program.

    Standard output is the answer's, which other programs may read. The current folder is come back
    to, since paths may be relative to it; not where that folder is gone.
    """
    here = None
    with suppress(OSError):
        here = Path.cwd()
    try:
        with _DIVERTED:
            yield
    finally:
        if here is not None:
            with suppress(OSError):
                os.chdir(here)


def where(error: BaseException) -> str:
    """Return an exception's type and the line of the user's code: its text may hold data."""
    kind = type(error).__name__
    if isinstance(error, SyntaxError) and error.lineno and error.filename:
        return f"{kind} at line {error.lineno} of {Path(error.filename).name}"
    package = os.path.dirname(__file__)  # noqa: PTH120
    foreign = ("<", package, os.path.dirname(os.__file__))  # noqa: PTH120
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        # Compiled code names its sources by relative paths.
        if os.path.isabs(frame.filename) and not frame.filename.startswith(foreign)  # noqa: PTH117
    ]
    own = [frame for frame in frames if "site-packages" not in frame.filename] or frames
    return f"{kind} at line {own[-1].lineno} of {Path(own[-1].filename).name}" if own else kind


def added(kind: Kind, built_in: Collection[str]) -> dict[str, EntryPoint]:
    """Return the parts of others by name; none can take the name of a built-in one."""
    return {
        point.name: point
        for point in points_of(kind)
        if point.name not in built_in and not is_ours(point)
    }


def ours(kind: Kind) -> dict[str, EntryPoint]:
    """Return the parts of a kind that this package registers, as others do, by name.

    A part that was taken out of this installation is not among them.
    """
    return {
        point.name: point for point in points_of(kind) if is_ours(point) and _present(point.module)
    }


@cache
def _present(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:
        return False


def taken_out(error: BaseException | None) -> str | None:
    """Return which module of this package an error is about that this installation lacks."""
    missing = error.name if isinstance(error, ModuleNotFoundError) else None
    return missing if missing and missing.startswith(f"{_OURS}.") else None


def refused(kind: Kind, built_in: Collection[str]) -> Iterator[str]:
    """Say of each part that has the name of a built-in one that it is not used."""
    for point in points_of(kind):
        if point.name in built_in and not is_ours(point):
            yield clash(kind, point)


def clash(kind: Kind, point: EntryPoint) -> str:
    """Return the line about a part that has the name of a built-in one."""
    return (
        f"The plug-in {point.name!r} ({kind}){of_package(point)} has a built-in {kind}'s name, so "
        "the built-in one is used."
    )


def of_package(point: EntryPoint) -> str:
    """Return which package a part is of, in words that follow its name."""
    return f" of the package {point.dist.name!r}" if point.dist else ""


def check_one(kind: Kind, name: str) -> None:
    """Refuse a name that is registered more than once: nothing says which of them is meant."""
    points = points_of(kind).select(name=name)
    found = sorted(point.dist.name if point.dist else "?" for point in points)
    if len(found) > 1:
        raise InputError(
            f"The plug-in {name!r} ({kind}) is registered {len(found)} times, by the packages "
            f"{', '.join(found)}; uninstall all but one."
        )


def points_of(kind: Kind) -> EntryPoints:
    """Return all that packages registered of a kind, ours among them."""
    return _in_group(tuple(sys.path))[GROUPS[kind]]


def is_ours(point: EntryPoint) -> bool:
    """Return whether a part belongs to this package: its faults are ours, not a plug-in's."""
    return point.module.partition(".")[0] == _OURS


@lru_cache(maxsize=1)
def _in_group(_path: tuple[str, ...]) -> Mapping[str, EntryPoints]:
    """Return what the packages on this path registered; reading them all takes milliseconds."""
    every = entry_points()
    return {group: every.select(group=group) for group in GROUPS.values()}


def check_name(kind: Kind, name: str, stated: object) -> None:
    """Refuse a part that calls itself otherwise than its package does (InputError)."""
    if stated != name:
        raise InputError(
            f"The plug-in {name!r} ({kind}) calls itself {stated!r}; its entry point must have the "
            "same name."
        )


def loaded(kind: Kind, point: EntryPoint, form: type[T]) -> T:
    """Return what an entry point names, an object of a class of the door (InputError)."""
    found = imported(kind, point)
    if not isinstance(found, form):
        raise InputError(
            f"The plug-in {point.name!r} ({kind}) must be a ldpaudit.doors.{form.__name__}. Got "
            f"{type(found).__name__} instead."
        )
    return found


# The modules of parts that were loaded to be looked at, and are not used.
_GLANCED: Final = set[str]()


def glanced(kind: Kind, point: EntryPoint, form: type[T]) -> T | None:
    """Return what an entry point names without using it; None where it cannot be loaded."""
    in_use = took_part(point)
    found = None
    with suppress(InputError):
        found = loaded(kind, point, form)
    if not in_use:
        _GLANCED.add(point.module)
    return found


def took_part(point: EntryPoint) -> bool:
    """Return whether the module of a part was loaded to be used."""
    return point.module in sys.modules and point.module not in _GLANCED


def imported(kind: str, point: EntryPoint) -> Any:
    """Return what an entry point of others names; InputError, in one line, where it cannot."""
    _GLANCED.discard(point.module)
    try:
        with contained():
            return point.load()
    except (Exception, SystemExit) as error:
        raise unloadable(kind, point.name, error) from error


def unloadable(kind: str, name: str, error: BaseException) -> InputError:
    """Return the one line about a part that cannot be imported: the kind of its error, no text."""
    missing = isinstance(error, ModuleNotFoundError) and error.name
    why = f"there is no module {missing!r}" if missing else where(error)
    return InputError(f"The plug-in {name!r} ({kind}) cannot be loaded ({why}).")


@contextmanager
def watched(
    kind: str,
    name: str,
    otherwise: str,
    unnamed: tuple[type[LdpAuditError], ...] = (),
    in_words: Callable[[BaseException], str] = lambda _: "",
) -> Iterator[None]:
    """Say in one line what goes wrong in a part of others; it cannot end or move the program.

    The line names the part, also where the error has a text to show. Errors of the classes
    ``unnamed`` stay as they are. ``in_words``: says of another error what is wrong, without data,
    where it can.
    """
    try:
        with contained():
            yield
    except MemoryError:
        raise
    except unnamed:
        raise
    except (Exception, SystemExit) as error:
        if not isinstance(error, LdpAuditError) or not str(error).strip():
            words = in_words(error)
            raise LdpAuditError(failed(kind, name, error, otherwise, words)) from error
        part = f"plug-in {name!r} ({kind})"
        if part in str(error):
            raise
        raise _own_class(error)(f"The {part}: {error}") from error


def _own_class(error: BaseException) -> type[BaseException]:
    """Return the class of this package's errors that an error is of: its own may take no text."""
    return next(one for one in type(error).__mro__ if one.__module__ == LdpAuditError.__module__)


def failed(kind: str, name: str, error: BaseException, otherwise: str, words: str = "") -> str:
    """Return the one line about a part of others that failed; ``words``: why, where known."""
    why = f" ({words})" if words else ""
    return f"The plug-in {name!r} ({kind}) failed: {where(error)}{why}; {otherwise}."


def at_fault(error: BaseException) -> tuple[str, str] | None:
    """Return kind and name of the plug-in in whose code an error arose; None if in no plug-in's."""
    for frame, _ in reversed(list(traceback.walk_tb(error.__traceback__))):
        if part := part_in(str(frame.f_globals.get("__name__"))):
            return part
    return None


def part_in(module: str) -> tuple[str, str] | None:
    """Return kind and name of the plug-in in a module, or else of one in the same package."""
    package = module.partition(".")[0]
    among = None
    for kind in GROUPS:
        for point in points_of(kind):
            if point.module == module and not is_ours(point):
                return kind, point.name
            if point.module.partition(".")[0] == package and not is_ours(point):
                among = kind, point.name
    return among


def read_only(value: Any) -> Any:
    """Return arrays, and what holds them, such that nobody can write to them; none is copied."""
    # What a part of others changed in place would be in the numbers of all others.
    import numpy as np

    from ldpaudit.arrays import unwriteable

    if isinstance(value, np.ndarray):
        return unwriteable(value)
    if type(value) is tuple:
        return tuple(map(read_only, value))
    if not is_dataclass(value) or isinstance(value, type):
        return value
    held = {one.name: getattr(value, one.name) for one in fields(value) if one.init}
    return replace(value, **{name: read_only(part) for name, part in held.items()})


def package_of(point: EntryPoint) -> dict[str, str | None]:
    """Return name and version of the package that registered a part."""
    return {"package": _said(point, "Name"), "version": _said(point, "Version")}


def _said(point: EntryPoint, key: str) -> str | None:
    """Return what the part's package says of itself; None where it leaves that out."""
    about = None if point.dist is None else point.dist.metadata
    return None if about is None or key not in about else about[key]
