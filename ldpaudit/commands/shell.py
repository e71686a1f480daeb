"""The way of every command: check the places, work, write the files, print what was found."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeVar

from pydantic import Field

from ldpaudit.commands.outputs import Outputs
from ldpaudit.errors import refuse
from ldpaudit.options import input_files
from ldpaudit.plugins import contained, part_in
from ldpaudit.result import Frozen
from ldpaudit.result.access import KEPT_CLOSE
from ldpaudit.result.harmless import one_line
from ldpaudit.terminal import others_read, progress_on_terminal, say, show, stream, words_only
from ldpaudit.work.documents import as_json
from ldpaudit.work.progress import Progress

if TYPE_CHECKING:
    from ldpaudit.reports.public_forms import Public

Request = TypeVar("Request")
# A line; a line that begins with a word; or a table: its title, its headers, its rows.
Said = str | tuple[str, str] | tuple[str, Sequence[str], Sequence[Sequence[str]]]
_KEPT: Final = (
    "What was found is as confidential as the true labels. Others may read the log of this job, so "
    "it is in the files alone (--json)."
)


class Told(ABC):
    """What a command found: what it prints, and how its files are made.

    Where it has an attribute ``access`` that says it is confidential, its files are readable by
    their owner only.
    """

    @property
    def confidential(self) -> bool:
        """Whether it is for those alone who may see the true labels."""
        return str(getattr(self, "access", "")).startswith(KEPT_CLOSE)

    @abstractmethod
    def said(self, *, quiet: bool) -> Iterator[Said]:
        """Yield what is printed, each a ``Said``; only the answer when ``quiet``."""

    def makers(self) -> Mapping[str, Callable[[], str]]:
        """Return what makes the text of each format, by its name among the outputs."""
        return {}


Result = TypeVar("Result", bound=Told)


class Stored(Frozen, Told):
    """What a command found, as its JSON file holds it: a pydantic model, and a :class:`Told`."""

    def stored(self) -> dict[str, Any]:
        """Return what the JSON file holds."""
        return self.model_dump(by_alias=True)

    def makers(self) -> Mapping[str, Callable[[], str]]:
        """Return what makes the JSON file."""
        return {"json": lambda: as_json(self.stored())}


class Confidential(Stored):
    """What a command found out about people, as its JSON file holds it."""

    access: str = Field(KEPT_CLOSE, description="Who may see it.")
    schema_version: str = Field("1.0", description="The version of this form.")


@dataclass
class Answer:
    """What a command answers: what it found, its files, and what it prints of it."""

    result: Told
    words: list[Said]
    outputs: Outputs
    quiet: bool
    streamed: str = ""

    def write(self) -> None:
        """Write the files, all or none."""
        makers, confidential = self.result.makers(), self.result.confidential
        self.streamed = self.outputs.write(makers, confidential=confidential)

    def tell(self) -> None:
        """Print what is for people, and what goes to standard output."""
        with self.outputs.for_people(), words_only():
            tell(self.words)
            if not self.quiet:
                self.outputs.announce()
        if self.streamed:
            with words_only():
                stream(self.streamed)


_HELD_BACK: Final = ContextVar[list[Answer] | None]("held back", default=None)


@contextmanager
def held_back() -> Iterator[list[Answer]]:
    """Give the answers of the commands that are carried out meanwhile; none is written or told."""
    answers: list[Answer] = []
    token = _HELD_BACK.set(answers)
    try:
        yield answers
    finally:
        _HELD_BACK.reset(token)


def carry_out(
    work: Callable[[Request, Progress], Result],
    request: Request,
    outputs: Outputs,
    *,
    quiet: bool = False,
    discreet: bool = False,
    minds_log: bool = False,
) -> Result:
    """Carry out a command: check the outputs, work, write the files, print what was found.

    No output may overwrite a file that the request names. Outputs are written, all or none, before
    anything is printed; of a command of another package once its function has returned, and only if
    it returned an exit status.

    Parameters
    ----------
    work : callable
        Takes the request and a Progress, and returns what was found, a :class:`Told`.
    request : dataclass
        The command's options.
    outputs : Outputs
        Where its files go.
    quiet : bool
        Whether only the answer is printed, and no progress.
    discreet : bool
        Whether no progress is shown because its remarks are about the data.
    minds_log : bool
        Whether what is printed keeps what is confidential from a log that others may read. If not,
        nothing that is confidential is printed in such a log.

    Returns
    -------
    Told
        What ``work`` returned.

    Raises
    ------
    LdpAuditError
        What ``work`` raised, or an OutputError; nothing is written then.
    """
    held = _HELD_BACK.get()
    with outputs.for_people():
        outputs.check(input_files(request))
        kept = others_read() and not minds_log
        with progress_on_terminal(quiet or discreet or kept) as progress:
            with contained():
                result = work(request, progress)
                refuse(
                    not isinstance(result, Told),
                    f"The work of {_named(work)} must return a ldpaudit.doors.Told. Got "
                    f"{type(result).__name__} instead.",
                )
                words: list[Said] = [_KEPT]
                if not (kept and result.confidential):
                    words = words_of(result, quiet=quiet)
            answer = Answer(result, words, outputs, quiet)
            if held is None:
                answer.write()
    if held is None:
        answer.tell()
    else:
        held.append(answer)
    return result


def words_of(result: Told, *, quiet: bool = False) -> list[Said]:
    """Return all that a command prints, before anything is written: a fault in it is the command's.

    InputError where it is something else than lines, pairs and tables.
    """
    said: Any = result.said(quiet=quiet)
    words = list(said) if isinstance(said, Iterable) and not isinstance(said, str) else [said]
    for one in words:
        refuse(
            isinstance(said, str) or not _sayable(one),
            f"What {_named(type(result))} prints must be lines, pairs of texts, and tables: a "
            f"title, headers and rows of texts. Got {type(one).__name__} instead.",
        )
    return words


def _named(made: Any) -> str:
    part = part_in(str(made.__module__))
    return f"the plug-in {part[1]!r} ({part[0]})" if part else "the command"


def _sayable(one: Any) -> bool:
    if isinstance(one, str):
        return True
    if not isinstance(one, tuple) or len(one) not in (2, 3):
        return False
    if len(one) == 2:
        return _texts(one)
    title, headers, rows = one
    return (
        isinstance(title, str)
        and _texts(headers)
        and isinstance(rows, Sequence)
        and all(_texts(row) and len(row) == len(headers) > 0 for row in rows)
    )


def _texts(row: Any) -> bool:
    listed = isinstance(row, Sequence) and not isinstance(row, str)
    return listed and all(isinstance(cell, str) for cell in row)


def tell(said: Iterable[Said]) -> None:
    """Print lines and tables."""
    for one in said:
        if isinstance(one, str):
            say(one)
        elif len(one) == 2:
            say(f"  {one[0]:<12} {one_line(one[1])}")
        else:
            show(*one)


def public_lines(shared: "Public", *, quiet: bool) -> Iterator[Said]:
    """Yield the public form of a result; only the decision when ``quiet``."""
    from ldpaudit.reports.public_forms import summary_lines

    yield from (one_line(line) for line, answers in summary_lines(shared) if answers or not quiet)
