"""The command that makes a recommended release, as it is typed."""

import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path

from ldpaudit.commands.advise.request import AdviseRequest, Simulated
from ldpaudit.commands.privatize.checks import options_of
from ldpaudit.options import LabelOptions

_SUFFIXES = (".gz", ".parquet", ".pq", ".csv", ".tsv", ".jsonl", ".feather", ".xlsx")


def privatize_command(
    request: AdviseRequest,
    asked: Simulated,
    choice: tuple[str, float],
    dropped: Sequence[str],
) -> str:
    """Return the command for one private column.

    Parameters
    ----------
    request : AdviseRequest
    asked : Simulated
        The simulations of the column.
    choice : tuple of str and float
        The mechanism and ε.
    dropped : sequence of str
        The columns to leave out.
    """
    return shlex.join(["ldpaudit", "privatize", *_words(request, asked, choice, dropped)])


def _words(
    request: AdviseRequest, asked: Simulated, choice: tuple[str, float], dropped: Sequence[str]
) -> Iterator[str]:
    name, epsilon = choice
    yield from (request.shown_table, "-o")
    yield released_name(request.data)
    yield from ("--label", asked.label, "--mechanism", name, "--epsilon", f"{epsilon:g}")
    takes = options_of(name)
    if asked.labels is not None and "labels" in takes:
        yield from ("--labels", asked.labels)
    if asked.prior is not None and "prior" in takes:
        yield from ("--prior", str(asked.prior))
    if asked.buys_prior(name):
        yield from ("--private-prior", "auto")
    yield from shared_words(request, dropped)


def vector_command(
    request: AdviseRequest, columns: Sequence[tuple[Simulated, str, float]], dropped: Sequence[str]
) -> str:
    """Return the command for several private columns: each with its mechanism and ε."""
    words = ["ldpaudit", "privatize", request.shown_table, "-o", released_name(request.data)]
    for asked, name, epsilon in columns:
        takes = options_of(name)
        stated = LabelOptions(
            label=asked.label,
            mechanism=name,
            epsilon=epsilon,
            labels=asked.labels if "labels" in takes else None,
            prior=asked.prior if "prior" in takes else None,
            private_prior="auto" if asked.buys_prior(name) else None,
        )
        words += ["--label", stated.text()]
    return shlex.join([*words, *shared_words(request, dropped)])


def shared_words(request: AdviseRequest, dropped: Sequence[str]) -> Iterator[str]:
    """Yield the options of the table, whatever the mechanism."""
    for column in dropped:
        yield from ("--drop", column)
    for column in request.keep:
        yield from ("--keep", column)
    for name in ("separator", "decimal", "encoding", "sheet"):
        value = getattr(request, name)
        if value is not None:
            yield from (f"--{name}", value)
    if request.header:
        yield "--header"


def released_name(data: str) -> str:
    """Return what the release is to be called: beside nothing that is there, in this folder."""
    stem = Path(data.rstrip("/")).name
    for suffix in _SUFFIXES:
        stem = stem.removesuffix(suffix)
    return f"{stem}.released.parquet"
