"""The JSON schemas of what the commands store."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any, Final, NamedTuple

from pydantic import BaseModel

from ldpaudit.commands.interface import Command
from ldpaudit.commands.registered import lacked, load_command, of_others, registered
from ldpaudit.errors import InputError, did_you_mean
from ldpaudit.plugins import watched
from ldpaudit.result import SCHEMA_VERSION, AuditResult


class Stored(NamedTuple):
    """The form of a result: the words that make it, its model, and its version."""

    words: str
    model: Callable[[], Any]
    version: str


def _result() -> Any:
    return AuditResult


def _public() -> Any:
    from ldpaudit.result.public import PublicResult

    return PublicResult


_CORE: Final = {
    "run": Stored("run", _result, SCHEMA_VERSION),
    "public": Stored("run --profile public", _public, "1.0"),
}


def storing() -> Mapping[str, Stored]:
    """Return what is stored, by the names that ``report --schema`` takes."""
    found = dict(_CORE)
    for command in (*registered().values(), *_of_others()):
        if command.stored is not None and command.name not in found:
            words = " ".join(filter(None, (command.group, command.name)))
            found[command.name] = Stored(words, command.stored, command.schema_version)
    return found


def _of_others() -> Iterator[Command]:
    """Yield the commands of other packages that can be used."""
    for point in of_others().values():
        with suppress(InputError):
            command = load_command(point)
            if command.stored is not None:
                yield replace(command, stored=partial(_model, point.name, command.stored))


def _model(name: str, stored: Callable[[], Any]) -> Any:
    """Return the model of what a command of another package stores (InputError if it is none)."""
    with watched("command", name, "its schema is not known"):
        model = stored()
    if not (isinstance(model, type) and issubclass(model, BaseModel)):
        raise InputError(f"The plug-in {name!r} (command) must store a pydantic model.")
    return model


def schema_of(name: str) -> str:
    """Return the JSON schema of the result of a command, as JSON text."""
    # InputError if the command stores no result.
    from ldpaudit.reports.schema import json_schema

    known = storing()
    if name not in known and lacked(name):
        raise InputError(f"This installation lacks the command {name!r}; install ldpaudit again.")
    if name not in known:
        rest = f"; choose from {', '.join(known)}."
        raise InputError(f"There is no schema {name!r}{did_you_mean(name, known, rest)}")
    words, model, version = known[name]
    title = f"Result of ldpaudit {words}, schema {version}"
    return json_schema(model(), title, f"{name}:{version}")
