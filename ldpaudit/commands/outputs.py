"""Where a command writes its result (JSON), its page (HTML) and more; reading a stored result."""

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, redirect_stdout, suppress
from dataclasses import dataclass, fields, replace
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Self

from ldpaudit.errors import InputError, OutputError, quoted
from ldpaudit.options import Option
from ldpaudit.terminal import say
from ldpaudit.work.files import place_of, write_all

if TYPE_CHECKING:
    from ldpaudit.result import AuditResult

# Standard output, as the name of an output; a file of that name is ``./-``.
STREAM: Final = Path("-")
_STANDARD_OUTPUT, _STANDARD_ERROR = 1, 2
# The formats with an option of their own.
_OPTIONS: Final = ("html", "json", "sarif", "junit", "markdown")
# The formats of our own.
_OURS: Final = (*_OPTIONS, "registry")
# A file that is there is replaced where it has one of these in its first bytes, as all ours have.
_MARKS: Final = (b"ldpaudit", b"schema_version")
_LOOKED_AT: Final = 2**20
_SUFFIXES: Final = (
    *(".gz", ".parquet", ".pq", ".csv", ".tsv", ".json"),
    *(".jsonl", ".ndjson", ".feather", ".arrow", ".xlsx", ".npz"),
)


@dataclass(frozen=True)
class Outputs:
    """Where the result and the page are written, both or neither.

    One of them may go to standard output (``-``); all that is for people then goes to standard
    error. A subclass may have further formats, each a field with an option.

    Attributes
    ----------
    json : Path or None
        The result as JSON; None: it is not written.
    html : Path or None
        The page; None: it is not written.
    made : Path or None
        A folder that the work makes: files in it are not checked beforehand.
    """

    json: Annotated[Path | None, Option("The result as JSON; - is standard output.")] = None
    html: Annotated[Path | None, Option("The page as HTML; - is standard output.")] = None
    made: Path | None = None

    def or_beside(self, source: str, kind: str) -> Self:
        """Return these places; without result and page, they become two files beside an input.

        The files are ``NAME.KIND.json`` and ``.html`` with the name of the input, ``source``, and
        its ``kind``, in the input's folder; for a URL or a pattern in the current one. Where
        something goes to standard output nothing is added.
        """
        if self.json or self.html or self.streamed:
            return self
        local = "://" not in source and not any(mark in source for mark in "*?[")
        folder, stem = Path(source).parent if local else Path(), stem_of(source)
        json, html = (folder / f"{stem}.{kind}.{ending}" for ending in ("json", "html"))
        return replace(self, json=json, html=html)

    @property
    def asked(self) -> dict[str, Path]:
        """The places by the name of their format, the page first and then the result."""
        names = [field.name for field in fields(self) if field.name != "made"]
        places = {name: getattr(self, name) for name in ("html", *names)}
        return {name: place for name, place in places.items() if place}

    @property
    def streamed(self) -> str | None:
        """The format that goes to standard output, None if none does."""
        return next((name for name, place in self.asked.items() if place == STREAM), None)

    def given(self) -> tuple[Path, ...]:
        """Return the files that are written: the page first."""
        return tuple(place for place in self.asked.values() if place != STREAM)

    def check(self, inputs: Iterable[Path | str | None] = ()) -> None:
        """Refuse, by an OutputError, places that cannot be written to, and those of ``inputs``."""
        streamed = [
            f"--{name.replace('_', '-')}" for name, place in self.asked.items() if place == STREAM
        ]
        if len(streamed) > 1:
            raise OutputError(
                f"{' and '.join(streamed)} both go to standard output (-); only one of them can."
            )
        check_apart(self.given(), inputs)
        for path in self.given():
            if path.parent != self.made:
                check_place(path)
        for name, path in self.asked.items():
            if path != STREAM and path.is_file() and not self.replaces(name, path):
                raise OutputError(
                    f"{quoted(path.name)} exists, and ldpaudit did not write it, so it is left as "
                    "it is. Give another name, or delete that file."
                )

    def replaces(self, name: str, path: Path) -> bool:
        """Return whether the format ``name`` may replace the file that is at ``path``.

        It may where the file is a report of ldpaudit, or empty. What other formats write is not
        known here, so they replace every file; a subclass knows its own.
        """
        from ldpaudit.datasets.formats.locations import SIDECAR  # Help must not wait for it.

        if name not in _OURS:
            return True
        try:
            with path.open("rb") as file:
                start = file.read(_LOOKED_AT)
        except OSError:
            return True  # Whether it can be written to is another question.
        # A declaration, or a key, beside a file of data names ldpaudit, and is no report.
        beside = path.name.endswith(SIDECAR)
        return not start or (not beside and any(mark in start for mark in _MARKS))

    def for_people(self) -> Any:
        """Return a context in which prints go to standard error, where a format is streamed."""
        return to_standard_error() if self.streamed else nullcontext()

    def write(self, makers: Mapping[str, Callable[[], str]], *, confidential: bool = False) -> str:
        """Write what is asked for and can be made, all or nothing; nothing else is made.

        ``makers`` return the text of each format, by its name. What is ``confidential`` only its
        owner may read (mode 0600). Returns what is for standard output; empty without it.
        OutputError if a file cannot be written.
        """
        texts = {place: makers[name]() for name, place in self.asked.items() if name in makers}
        streamed = texts.pop(STREAM, "")
        write_all(texts, last=True, private=confidential)
        return streamed

    def announce(self) -> None:
        """Print where the files are."""
        from ldpaudit.result.harmless import one_line

        for path in self.given():
            say(f"  {'written':<12} {one_line(str(path))}")


@contextmanager
def to_standard_error() -> Iterator[None]:
    """Send to standard error what is printed, by libraries in C and by other processes too."""
    sys.stdout.flush()
    kept = os.dup(_STANDARD_OUTPUT)
    os.dup2(_STANDARD_ERROR, _STANDARD_OUTPUT)
    try:
        with redirect_stdout(sys.stderr):
            yield
    finally:
        os.dup2(kept, _STANDARD_OUTPUT)
        with suppress(OSError):  # Nothing was written by this name, so nothing is lost.
            os.close(kept)


@dataclass(frozen=True)
class ReportOutputs(Outputs):
    """Where the result of one release is written, for people and for pipelines; all or nothing."""

    sarif: Annotated[Path | None, Option("The checks as SARIF (code scanning).")] = None
    junit: Annotated[Path | None, Option("The checks as JUnit XML (test reports).")] = None
    markdown: Annotated[Path | None, Option("A summary in Markdown (merge requests).")] = None
    formats: Annotated[
        tuple[str, ...],
        Option("A report by a plug-in: NAME=FILE (repeatable).", "--format"),
    ] = ()
    """Each as NAME=FILE."""
    registry: Annotated[Path | None, Option("An entry of OpenDP's registry (YAML).")] = None
    """``sarif``, ``junit``, ``markdown`` and ``registry``: None: not written."""

    def check(self, inputs: Iterable[Path | str | None] = ()) -> None:
        """Refuse formats that there are not, besides."""
        from ldpaudit.reports import check_format

        super().check(inputs)
        for name in self.asked:
            check_format(name)

    @property
    def asked(self) -> dict[str, Path]:
        """The places by the name of their format, the page first and then the result."""
        places = super().asked
        places.pop("formats", None)
        for stated in self.formats:
            name, equals, place = stated.partition("=")
            if not (name and equals and place):
                raise InputError("A --format must be given as NAME=FILE.")
            if name in _OPTIONS:
                raise InputError(f"The format {name!r} has an option of its own: --{name} FILE.")
            if name in places:
                raise InputError(f"The format {name!r} is asked for twice; give it once.")
            places[name] = Path(place)
        return places


def read_result(path: Path) -> "AuditResult":
    """Read a stored result (InputError where it is none)."""
    from ldpaudit.result import AuditResult
    from ldpaudit.work.documents import read_document, why_unreadable
    from ldpaudit.work.limits import DOCUMENT_BYTES

    try:
        text = read_document(path, DOCUMENT_BYTES)
    except (OSError, UnicodeDecodeError) as error:
        why = why_unreadable(error)
        if isinstance(error, UnicodeDecodeError):
            why = "it is no result (.json); a release is read by ldpaudit run"
        raise InputError(
            f"The result {quoted(path.name or str(path))} cannot be read: {why}."
        ) from None
    try:
        return AuditResult.from_json(text)
    except InputError:
        if found := _of_another_command(text):
            raise InputError(f"{quoted(path.name or str(path))} {found}") from None
        raise


def _of_another_command(text: str) -> str | None:
    """Return what to say of a result that no audit stored; None where it is no result."""
    from ldpaudit.commands.registered import lacking, made_by
    from ldpaudit.result.public import PublicResult
    from ldpaudit.work.documents import parse_json

    value: Any = None
    with suppress(InputError):
        value = parse_json(text, "It", "")
    if not isinstance(value, dict) or "schema_version" not in value or "audits" in value:
        return None
    with suppress(ValueError):
        PublicResult.model_validate(value)
        return "is what everybody may see of a result; give the result that it was made of."
    if command := made_by(value):
        return f"is a result of ldpaudit {command}; this takes results of ldpaudit run."
    if missing := lacking():
        return (
            "is no result of ldpaudit run. It may be one of a command that this installation lacks "
            f"({', '.join(missing)}); install ldpaudit again."
        )
    return None


def check_place(path: Path) -> None:
    """Check, as far as that is possible beforehand, that a file can be written there."""
    # OutputError if the place is a folder, a device or the like, or its folder does not exist or
    # cannot be written to.
    shown = quoted(path.name or str(path))
    try:
        folder = place_of(path).parent
        place, writable = folder.is_dir(), os.access(folder, os.W_OK)
    except IsADirectoryError:
        raise OutputError(f"{shown} is a folder; give the name of a file.") from None
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or type(error).__name__
        raise OutputError(f"{shown} cannot be written: {why.lower()}.") from None
    if not place:
        raise OutputError(f"The folder for {shown} does not exist.")
    if not writable:
        raise OutputError(f"The folder for {shown} cannot be written to.")


def check_apart(targets: Sequence[Path], inputs: Iterable[Path | str | None]) -> None:
    """Check that no two files go to one place, and none to the place of an input."""
    # OutputError with which file is which.
    for one, other in combinations(targets, 2):
        if _same(one, other):
            raise OutputError(
                f"{quoted(one.name)} is asked for twice; the outputs must be two files."
            )
    from ldpaudit.datasets.formats.locations import SIDECAR  # Help must not wait for it.

    read = [Path(path) for path in inputs if path is not None]
    read += [path.with_name(path.name + SIDECAR) for path in read if path.name]
    for target in targets:
        if any(_same(target, path) for path in read):
            raise OutputError(f"{quoted(target.name)} is an input and is not overwritten.")
        if any(lies_in(target, path) for path in read if path.is_dir()):
            raise OutputError(
                "A folder is read, all its Parquet files as one table, and "
                f"{quoted(target.name)} would lie in it. Name one file, or write the report "
                "elsewhere (--html, --json)."
            )


def lies_in(target: Path, folder: Path) -> bool:
    """Return whether a file lies in a folder, or would, wherever links lead."""
    return Path(os.path.realpath(folder)) in Path(os.path.realpath(target)).parents


def _same(one: Path, other: Path) -> bool:
    """Say whether two paths are one file; the other may be a pattern of files."""
    try:
        # Unlike resolve(), this stands links in a circle.
        here, there = Path(os.path.realpath(one)), Path(os.path.realpath(other))
        return here == there or here.match(str(there)) or one.samefile(other)
    except (OSError, ValueError):
        return False


def stem_of(source: str) -> str:
    """Return the name of a file without its folder and its usual endings."""
    name = source.rstrip("/").rsplit("/", 1)[-1].strip(".")
    for suffix in _SUFFIXES:
        name = name.removesuffix(suffix)
    return "".join(letter for letter in name if letter not in "*?[]") or "data"
