"""Where a command writes its result (JSON) and its page (HTML); reading a stored result."""

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

from ldpaudit.errors import InputError, OutputError, quoted
from ldpaudit.options import Option
from ldpaudit.terminal import say
from ldpaudit.writing import write_all

if TYPE_CHECKING:
    from ldpaudit.result import AuditResult

_SUFFIXES: Final = (".gz", ".parquet", ".pq", ".csv", ".tsv", ".json")


@dataclass(frozen=True)
class Outputs:
    """Where the result and the page are written, both or neither.

    Parameters
    ----------
    json, html : Path or None
        None: not written.
    made : Path or None
        A folder that the work makes: files in it are not checked beforehand.
    """

    json: Annotated[Path | None, Option("Where to write the result.")] = None
    html: Annotated[Path | None, Option("Where to write the page.")] = None
    made: Path | None = None

    def or_beside(self, source: str, kind: str) -> "Outputs":
        """Return these places; where there are none, two files beside an input.

        Parameters
        ----------
        source : str
            The input; for a URL or a pattern the files go into the current folder.
        kind : str
            The files are ``<name of the input>.<kind>.json`` and ``.html``.
        """
        if self.given():
            return self
        local = "://" not in source and not any(mark in source for mark in "*?[")
        folder, stem = Path(source).parent if local else Path(), _stem(source)
        return Outputs(folder / f"{stem}.{kind}.json", folder / f"{stem}.{kind}.html")

    def given(self) -> tuple[Path, ...]:
        """Return the files that are written: the page first."""
        return tuple(path for path in (self.html, self.json) if path is not None)

    def check(self, inputs: Iterable[Path | str | None] = ()) -> None:
        """Refuse places that cannot be written to, and those of inputs.

        Raises
        ------
        OutputError
            With what is wrong with which file.
        """
        check_apart(self.given(), inputs)
        for path in self.given():
            if path.parent != self.made:
                check_place(path)

    def write(self, json: Callable[[], str] | None, html: Callable[[], str] | None = None) -> None:
        """Write what is asked for and can be made; nothing else is made."""
        wanted = ((self.html, html), (self.json, json))
        write_all({path: make() for path, make in wanted if path is not None and make})

    def announce(self) -> None:
        """Print where the files are."""
        for path in self.given():
            say(f"  {'written':<12} {path}")


def read_result(path: Path) -> "AuditResult":
    """Read a stored result (InputError where it is none)."""
    from ldpaudit.result import AuditResult

    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        raise InputError(f"The result {path.name!r} cannot be read.") from None
    return AuditResult.from_json(text)


def check_place(path: Path) -> None:
    """Check, as far as that is possible beforehand, that a file can be written there.

    Raises
    ------
    OutputError
        If the place is a folder, or its folder does not exist or cannot be written to.
    """
    shown = quoted(path.name)
    try:
        folder, place = path.is_dir(), path.parent.is_dir()
        writable = os.access(path.parent, os.W_OK)
    except (OSError, ValueError) as error:
        raise OutputError(f"{shown} cannot be written ({type(error).__name__}).") from None
    if folder:
        raise OutputError(f"{shown} is a folder; give the name of a file.")
    if not place:
        raise OutputError(f"The folder for {shown} does not exist.")
    if not writable:
        raise OutputError(f"The folder for {shown} cannot be written to.")


def check_apart(targets: Sequence[Path], inputs: Iterable[Path | str | None]) -> None:
    """Check that no two files go to one place, and none to the place of an input.

    Raises
    ------
    OutputError
        With which file is which.
    """
    for one, other in combinations(targets, 2):
        if _same(one, other):
            raise OutputError(
                f"{quoted(one.name)} is asked for twice; the outputs must be two files."
            )
    read = [Path(path) for path in inputs if path is not None]
    for target in targets:
        if any(_same(target, path) for path in read):
            raise OutputError(f"{quoted(target.name)} is an input and is not overwritten.")
        if any(path.resolve() in target.resolve().parents for path in read if path.is_dir()):
            raise OutputError(
                f"{quoted(target.name)} would lie in a folder that is read; write it elsewhere."
            )


def _same(one: Path, other: Path) -> bool:
    """Say whether two paths are one file; the other may be a pattern of files."""
    try:
        here, there = one.resolve(), other.resolve()
        return here == there or here.match(str(there)) or one.samefile(other)
    except (OSError, ValueError):
        return False


def _stem(source: str) -> str:
    name = source.rstrip("/").rsplit("/", 1)[-1]
    for suffix in _SUFFIXES:
        name = name.removesuffix(suffix)
    return "".join(letter for letter in name if letter not in "*?[]") or "data"
