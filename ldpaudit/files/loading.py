"""Python code of others: imported by name, with errors that say where and never show data."""

import importlib
import importlib.util
import os
import sys
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import ModuleType
from typing import Any

from ldpaudit.errors import InputError


def load_object(name: str, path: Sequence[str], what: str, kind: str) -> Any:
    """Import ``MODULE:NAME``, or ``FILE.py:NAME``.

    Parameters
    ----------
    name : str
        May be an attribute of an object: ``module:Class.method``.
    path : sequence of str
        Where modules are searched first.
    what, kind : str
        For messages: what is imported, ``"attack"``, and its kind, ``"CLASS"``.

    Raises
    ------
    InputError
        If the module cannot be imported, or has no such object.
    """
    module_name, colon, attribute = name.rpartition(":")
    if not (colon and module_name and attribute):
        raise InputError(f"The {what} must be given as MODULE:{kind} or FILE.py:{kind}.")
    sys.path[:0] = [place for place in path if place not in sys.path]
    shown = Path(module_name).name
    try:
        found: Any = _import(module_name)
    except InputError:
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


@contextmanager
def staying() -> Iterator[None]:
    """Come back to the current folder, wherever code of others goes: paths may be relative to it.

    Not where that folder is gone.
    """
    here = None
    with suppress(OSError):
        here = Path.cwd()
    try:
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
    package = os.path.dirname(os.path.dirname(__file__))  # noqa: PTH120
    foreign = ("<", package, os.path.dirname(os.__file__))  # noqa: PTH120
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        # Compiled code names its sources by relative paths.
        if os.path.isabs(frame.filename) and not frame.filename.startswith(foreign)  # noqa: PTH117
    ]
    own = [frame for frame in frames if "site-packages" not in frame.filename] or frames
    return f"{kind} at line {own[-1].lineno} of {Path(own[-1].filename).name}" if own else kind
