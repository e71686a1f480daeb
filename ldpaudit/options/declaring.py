"""How an option is declared: once, as an annotation of a field; and what became of earlier ones."""

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, get_args


@dataclass(frozen=True)
class Option:
    """How a parameter of a command, or a field of its request, is given on the command line.

    It stands in the annotation, ``Annotated[int, Option("How many rows.")]``. A ``bool`` becomes a
    flag, a ``Literal`` a choice, a ``tuple`` or ``Collection`` a repeatable option. Every option
    can also be set by a variable of the environment, ``LDPAUDIT_`` and its name.

    Attributes
    ----------
    help : str
        One line for ``--help``.
    name : str
        The option, such as ``"--id"``; empty: made from the field's name.
    type : type or None
        What the command line reads, where a Python caller may give more than that; None: the
        annotated type.
    read : callable or None
        Turns what the command line reads into the field's value; it may raise an
        :class:`~ldpaudit.errors.InputError`. None: the value is taken as it is.
    shown : bool
        Whether a stored result may repeat the value: it holds no path and no column name.
    file : bool
        Whether it names a file that is read, so that no output may overwrite it.
    short : str
        A one-letter name, such as ``"-o"``; empty: none.
    lines : bool
        Whether a repeatable option's values may hold spaces: in the environment each then stands
        on a line of its own; those of other options are separated by spaces.
    """

    help: str
    name: str = ""
    type: Any = None
    read: Callable[[Any], Any] | None = None
    shown: bool = False
    file: bool = False
    short: str = ""
    lines: bool = False

    def long(self, field: str) -> str:
        """Return the option's name for the field called ``field``, ``"--label"``."""
        return self.name or "--" + field.strip("_").replace("_", "-")


@dataclass(frozen=True)
class Argument:
    """How a parameter of a command is taken by its position on the command line.

    Attributes
    ----------
    help : str
        One line for ``--help``.
    metavar : str or None
        What ``--help`` calls it; None: the field's name.
    file : bool
        Whether it names files that are read, so that no output may overwrite them.
    type : type or None
        What the command line reads, where a Python caller may give more than that; None: the
        annotated type.
    """

    help: str
    metavar: str | None = None
    file: bool = False
    type: Any = None


def declared(annotation: Any) -> Option | Argument | None:
    """Return the declaration in an annotation, None where it holds none."""
    return next((m for m in get_args(annotation)[1:] if isinstance(m, Option | Argument)), None)


def group(annotation: Any) -> Any:
    """Return the dataclass whose fields give this one on the command line, None without one."""
    parts = [annotation, *get_args(annotation)[1:]]
    return next((m for m in parts if isinstance(m, type) and dataclasses.is_dataclass(m)), None)


def option_name(options: Any, field: str) -> str:
    """Return what a field of a request is called on the command line."""
    option = declared(next(f.type for f in dataclasses.fields(options) if f.name == field))
    assert isinstance(option, Option)
    return option.long(field)


def input_files(options: Any) -> Iterator[str | Path]:
    """Give every file that the options name to be read."""
    for field in dataclasses.fields(options):
        value, option = getattr(options, field.name), declared(field.type)
        if dataclasses.is_dataclass(value) and group(field.type) is not None:
            yield from input_files(value)
        elif option is not None and option.file and value is not None:
            values = value if isinstance(value, tuple) else (value,)
            yield from (one for one in values if isinstance(one, str | Path))


# What became of each, by its name on the command line.
RETIRED: Final[Mapping[str, str]] = {
    "--resume": "an audit is given again from its start; sweep --resume goes on with its points",
    "--reference": "the exact optimum needs no linear program to compare with",
    "--budget": "all attacks run, on samples of the rows",
    "--thorough": "all attacks run, on samples of the rows",
    "--show-class-names": "internal pages show names",
}


def retired(name: str) -> str | None:
    """Return the line for an option of an earlier version; None for any other.

    ``name``: as on the command line, as a keyword of Python, or as a variable.
    """
    option = "--" + name.removeprefix("LDPAUDIT_").lstrip("-").replace("_", "-").lower()
    return f"The option {option} is gone: {RETIRED[option]}." if option in RETIRED else None
