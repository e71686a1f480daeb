"""From declared options to typer's: the fields of a command's dataclasses become parameters."""

import inspect
import os
import types
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import MISSING, dataclass, fields
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Union, get_args, get_origin

import typer

from ldpaudit.audits.listing import BUILT_IN, built_in_audits
from ldpaudit.mechanisms.listing import BUILT_IN as BUILT_IN_MECHANISMS
from ldpaudit.mechanisms.listing import SHORT, built_in_mechanisms
from ldpaudit.options import Argument, Option, declared, group
from ldpaudit.plugins import added

# Of the variables of the environment that set options.
PREFIX: Final = "LDPAUDIT_"


@dataclass(frozen=True)
class Parameter:
    """One parameter of a command: a field of a dataclass, or an argument of its function."""

    name: str
    annotation: Any
    default: Any

    @property
    def declared(self) -> Option | Argument:
        """How it is declared."""
        declaration = declared(self.annotation)
        assert declaration is not None
        return declaration

    @property
    def long(self) -> str:
        """The option's name on the command line."""
        declaration = self.declared
        return declaration.long(self.name) if isinstance(declaration, Option) else self.name

    @property
    def type(self) -> Any:
        """What a Python caller gives, without None."""
        kind = getattr(self.declared, "type", None) or get_args(self.annotation)[0]
        parts = [part for part in get_args(kind) if part is not types.NoneType]
        return parts[0] if get_origin(kind) in (Union, types.UnionType) else kind

    @property
    def repeatable(self) -> bool:
        """Whether it takes several values."""
        return get_origin(self.type) in (tuple, Collection, Sequence)

    @property
    def flag(self) -> bool:
        """Whether it takes no value."""
        return self.type is bool

    def for_typer(self) -> inspect.Parameter:
        """Return the parameter that typer reads."""
        option, kind, default = self.declared, self.type, self.default
        names: Any = StrEnum
        # What stands for its value in ``--help``; None: typer's own, or that of a choice.
        metavar = "NUMBER" if kind in (int, float) else None if self.flag else "TEXT"
        metavar = "FILE" if getattr(option, "file", False) or kind is Path else metavar
        if self.repeatable:
            kind, default = list[str], MISSING if default is MISSING else None
        elif get_origin(kind) is Literal:
            kind = names("Choice", {choice: choice for choice in get_args(kind)})
            default, metavar = default if default in (None, MISSING) else kind(default), None
        if isinstance(option, Argument):
            completing = completer(self.name)
            about: Any = typer.Argument(
                help=option.help, metavar=option.metavar, autocompletion=completing
            )
        else:
            about = typer.Option(
                *(self.long, option.short) if option.short else (self.long,),
                help=option.help,
                envvar=self._variable,
                show_envvar=False,
                autocompletion=completer(self.long),
                metavar=metavar,
            )
        return inspect.Parameter(
            self.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=inspect.Parameter.empty if default is MISSING else default,
            annotation=Annotated[kind | None if default is None else kind, about],
        )

    def recorded(self, text: str) -> str:
        """Return what a stored result repeats of a value."""
        return text if getattr(self.declared, "shown", False) else "…"

    def value(self, parsed: Any) -> Any:
        """Return the command's argument for the value that typer read."""
        if not parsed and (self.repeatable or parsed is None):
            return self.default
        value = parsed.value if isinstance(parsed, StrEnum) else parsed
        if self.repeatable:  # Typer has split those of the environment.
            stated = os.environ.get(self._variable, "")
            whole = getattr(self.declared, "lines", False) and [*parsed] == stated.split()
            value = tuple(stated.splitlines() if whole else parsed)
        read = getattr(self.declared, "read", None)
        return read(value) if read else value

    @property
    def _variable(self) -> str:
        """The variable of the environment that sets the option."""
        return PREFIX + self.long.removeprefix("--").replace("-", "_").upper()


def spread(command: Callable[..., Any]) -> Callable[..., Any]:
    """Return a command that typer can read: each field of its dataclasses is a parameter."""

    def call(**parsed: Any) -> Any:
        taken = inspect.signature(command).parameters
        values = {n: _value(n, p.annotation, p.default, parsed) for n, p in taken.items()}
        return command(**values)

    call.__name__, call.__doc__ = command.__name__, command.__doc__
    listed = [parameter.for_typer() for parameter in parameters_of(command)]
    call.__signature__ = inspect.Signature(listed)  # type: ignore[attr-defined]
    return call


def parameters_of(command: Callable[..., Any]) -> Iterator[Parameter]:
    """Give the parameters of a command in the order in which ``--help`` lists them."""
    for parameter in inspect.signature(command).parameters.values():
        default = MISSING if parameter.default is parameter.empty else parameter.default
        yield from _leaves(parameter.name, parameter.annotation, default)


def _leaves(name: str, annotation: Any, default: Any) -> Iterator[Parameter]:
    members = group(annotation)
    if members is not None:
        for field in fields(members):
            yield from _leaves(field.name, field.type, field.default)
    elif declared(annotation) is not None:
        yield Parameter(name, annotation, default)


def _value(name: str, annotation: Any, default: Any, parsed: dict[str, Any]) -> Any:
    """Return the argument of a parameter; a dataclass is made of its fields."""
    # Where the dataclass has a method ``value``, its result is the argument.
    members = group(annotation)
    if members is None:
        return Parameter(name, annotation, default).value(parsed[name])
    options = members(
        **{
            field.name: _value(field.name, field.type, field.default, parsed)
            for field in fields(members)
            if group(field.type) or declared(field.type)
        }
    )
    return options.value() if hasattr(options, "value") else options


def recorded_command(words: Sequence[str], command: Callable[..., Any]) -> str:
    """Return a command line with its option names; a value only where its option is shown.

    A value could name a path or a column, and a word that is no declared option could be one.
    ``words``: the program, the command's name, then its words; ``command``: with the options as
    its declared parameters.
    """
    options = {p.long: p for p in parameters_of(command) if isinstance(p.declared, Option)}
    recorded, rest = ["ldpaudit", command.__name__], iter(words[2:])
    places: dict[str, int] = {}
    for word in rest:
        name, equals, value = word.partition("=")
        if name in places:  # Only the last value of an option was checked.
            recorded[places[name]] = "…"
        if name in options and not options[name].repeatable and not options[name].flag:
            places[name] = len(recorded) + (not equals)
        if word == "--":  # All that follows is no option.
            options = {}
        if name not in options:
            recorded.append("…")
        elif options[name].flag:
            recorded.append(name)
        elif equals:
            recorded.append(f"{name}={options[name].recorded(value)}")
        else:
            recorded += [name, options[name].recorded(next(rest, ""))]
    return " ".join(recorded)


def completer(name: str) -> Callable[[str], list[str]] | None:
    """Return what completes the value of an option or an argument, None where files do."""
    if name not in ("--mechanism", "name", "--only", "--skip"):
        return None

    def names(incomplete: str) -> list[str]:
        mechanisms = (*built_in_mechanisms(), *SHORT, *added("mechanism", BUILT_IN_MECHANISMS))
        audits = (*built_in_audits(), *added("audit", BUILT_IN))
        known = mechanisms if name in ("--mechanism", "name") else audits
        return [one for one in known if one.startswith(incomplete)]

    return names
