"""The manual page ``man ldpaudit``, made from the commands."""

import inspect
from collections.abc import Callable, Iterator, Mapping
from typing import Any, get_args

from typer.models import ArgumentInfo, ParameterInfo

from ldpaudit import __version__
from ldpaudit.cli.parameters import PREFIX

STATUS = {
    "0": "No violation found: every required check ran and none failed.",
    "1": "Violation found: at least one check of level error failed.",
    "2": "Could not run: usage, unreadable input, a bad policy, a missing library, a fault.",
    "3": "Inconclusive: too few rows for what the policy asks, or an interval straddles a limit.",
}


def manual(
    about: str, commands: Mapping[str, Callable[..., Any]], value_of: Callable[[Any], str]
) -> str:
    """Return the page in roff.

    Parameters
    ----------
    about : str
        What the program does.
    commands : mapping
        By name, with the group's: ``"mechanism describe"``.
    value_of : callable
        The sort of value that an option of a type takes, in words.
    """
    lines = [
        f'.TH LDPAUDIT 1 "" "ldpaudit {__version__}" "User Commands"',
        *(".SH NAME", r"ldpaudit \- audits datasets with privatized labels"),
        *(".SH SYNOPSIS", r"\fBldpaudit\fR \fICOMMAND\fR [\fIOPTIONS\fR]"),
        *(".SH DESCRIPTION", text(about)),
        ".SH COMMANDS",
    ]
    known = set(entries(commands["run"], value_of))
    for name, command in commands.items():
        lines += [f".SS {bold(f'ldpaudit {name}')}", *described(command)]
        shared = []
        for written, about in entries(command, value_of):
            if name == "run" or (written, about) not in known:
                lines += [".TP", written, about]
            else:
                shared.append(written.partition(r"\fR")[0] + r"\fR")
        if shared:
            lines += [".PP", f"As for {bold('run')}: {', '.join(shared)}."]
    lines.append(".SH EXIT STATUS")
    for status, meaning in STATUS.items():
        lines += [".TP", bold(status), text(meaning)]
    lines += [
        ".SH ENVIRONMENT",
        text(f"Each option can be set by a variable: --label by {PREFIX}LABEL, and so on. "),
        text("NO_COLOR and FORCE_COLOR are respected."),
    ]
    return "\n".join(lines) + "\n"


def described(command: Callable[..., Any]) -> Iterator[str]:
    """Yield the paragraphs of what a command does."""
    for paragraph in inspect.cleandoc(command.__doc__ or "").split("\n\n"):
        yield text(" ".join(paragraph.split()))


def entries(
    command: Callable[..., Any], value_of: Callable[[Any], str]
) -> Iterator[tuple[str, str]]:
    """Yield the arguments of a command, then its options: how each is written, what it does."""
    taken = [
        (p.name, *get_args(p.annotation)) for p in inspect.signature(command).parameters.values()
    ]
    taken.sort(key=lambda one: not isinstance(one[2], ArgumentInfo))
    for name, kind, info in taken:
        yield label(name, kind, info, value_of), text(info.help or "")


def label(name: str, kind: Any, info: ParameterInfo, value_of: Callable[[Any], str]) -> str:
    """Return how an argument or an option is written."""
    if isinstance(info, ArgumentInfo):
        return rf"\fI{text(info.metavar or name.upper())}\fR"
    names = ", ".join(bold(n) for n in (info.default, *(info.param_decls or ())))
    value = value_of(kind).replace("`", "").replace("\\|", "|")
    return names + (rf"\fI{text(value)}\fR" if value else "")


def bold(words: str) -> str:
    """Return words in bold."""
    return rf"\fB{text(words)}\fR"


def text(words: str) -> str:
    """Return words so that roff shows them as they are."""
    shown = words.replace("\\", r"\e").replace("-", r"\-")
    return rf"\&{shown}" if shown.startswith((".", "'")) else shown
