"""The way of every command: check the places, work, write the files, print the summary."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

from ldpaudit.commands.outputs import Outputs
from ldpaudit.options import input_files
from ldpaudit.plugins import staying
from ldpaudit.result.harmless import one_line
from ldpaudit.terminal import others_read, progress_on_terminal, say, stream, words_only
from ldpaudit.work.documents import as_json
from ldpaudit.work.progress import Progress

if TYPE_CHECKING:
    from ldpaudit.reports.public_forms import Public

Request = TypeVar("Request")
Result = TypeVar("Result")
Shown = TypeVar("Shown", contravariant=True)
_KEPT: Final = (
    "What was found is as confidential as the true labels. Others may read the log of this job, so "
    "it is in the files alone (--json)."
)


class Summary(Protocol[Shown]):
    """Prints a result; only the answer when ``quiet``."""

    def __call__(self, result: Shown, /, *, quiet: bool) -> None:
        """Print the result."""


def carry_out(
    work: Callable[[Request, Progress], Result],
    request: Request,
    outputs: Outputs,
    text: Summary[Result],
    *,
    stored: Callable[[Result], Any] | None = None,
    html: Callable[[Result], str] | None = None,
    more: Mapping[str, Callable[[Result], str]] | None = None,
    confidential: Callable[[Result], bool] = lambda _: False,
    quiet: bool = False,
    discreet: bool = False,
    minds_log: bool = False,
) -> Result:
    """Carry out a command; return its result.

    Parameters
    ----------
    work : callable
        From the request to the result, with progress.
    request : dataclass of options
        No output may overwrite a file that it names.
    outputs : Outputs
        Checked before the work; written, all or none, before anything is printed.
    text : callable
        Prints the summary; whatever becomes of that, the work counts as done.
    stored, html : callable
        What the JSON file holds of the result, and its page; None: the command has none.
    more : mapping
        Further formats, by their names among the outputs.
    confidential : callable
        Whether the files are for those alone who may see the true labels (mode 0600).
    quiet : bool
        Whether to show no progress and print the answer only.
    discreet : bool
        Whether to show no progress, whose remarks are about the data.
    minds_log : bool
        Whether ``text`` itself keeps what is confidential from a log that others may read.

    Raises
    ------
    LdpAuditError
        One line about what is wrong; nothing is written then.
    """
    outputs.check(input_files(request))
    with outputs.for_people():
        kept = others_read() and not minds_log
        with progress_on_terminal(quiet or discreet or kept) as progress:
            with staying():
                result = work(request, progress)
            json = None if stored is None else partial(_json, stored)
            makers = {"json": json, "html": html, **(more or {})}
            private = confidential(result)
            streamed = outputs.write(
                {name: partial(make, result) for name, make in makers.items() if make is not None},
                confidential=private,
            )
        with words_only():
            if kept and private:
                say(_KEPT)
            else:
                text(result, quiet=quiet)
            if not quiet:
                outputs.announce()
    if streamed:
        with words_only():
            stream(streamed)
    return result


def say_public(shared: "Public", /, *, quiet: bool) -> None:
    """Print the public form of a result; only the decision when ``quiet``."""
    from ldpaudit.reports.public_forms import summary_lines

    for line, answers in summary_lines(shared):
        if answers or not quiet:
            say(one_line(line))


def _json(stored: Callable[[Result], Any], result: Result) -> str:
    return as_json(stored(result))
