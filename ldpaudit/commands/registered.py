"""The commands that packages register, ours and those of others."""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import lru_cache
from importlib.metadata import EntryPoint
from typing import Any

from ldpaudit.commands.interface import Command
from ldpaudit.errors import InputError
from ldpaudit.plugins import (
    check_name,
    check_one,
    is_ours,
    loaded,
    ours,
    points_of,
    taken_out,
)


@lru_cache(maxsize=1)
def registered() -> Mapping[str, Command]:
    """Return our registered commands by their entry points' names.

    One that needs a part which was taken out of this installation is not among them.
    """
    found = {}
    for name, point in ours("command").items():
        try:
            found[name] = loaded("command", point, Command)
        except InputError as error:
            if taken_out(error.__cause__) is None:
                raise
    return found


def lacked(name: str) -> bool:
    """Return whether this installation lacks a command of ours, ``GROUP.NAME``, or a group."""
    return any(one == name or one.startswith(f"{name}.") for one in _lacking())


def _lacking() -> set[str]:
    every = {point.name for point in points_of("command") if is_ours(point)}
    return every - registered().keys()


def lacking() -> list[str]:
    """Return the commands of ours, as they are typed, that this installation lacks."""
    return sorted(map(_typed, _lacking()))


def made_by(value: Any) -> str | None:
    """Return the command, as it is typed, that stores such a value; None where none here does."""
    for name, command in registered().items():
        with suppress(Exception):
            if command.stored is not None:
                command.stored().model_validate(value)
                return command.within or _typed(name)
    return None


def _typed(name: str) -> str:
    return name.replace(".", " ").replace("_", "-")


def work_within(option: str) -> Command:
    """Return the registered command that does the work of an option of another command."""
    # InputError where the part of this installation that has it was taken out.
    for command in registered().values():
        if command.within == option:
            return command
    raise InputError(f"This installation lacks what {option!r} needs; install ldpaudit again.")


def each(group: str) -> Iterator[Command]:
    """Yield our registered commands of a group."""
    for command in registered().values():
        if command.group == group and not command.within:
            yield command


def of_others() -> dict[str, EntryPoint]:
    """Return what other packages registered, by name; nothing of it is loaded."""
    return {point.name: point for point in points_of("command") if not is_ours(point)}


def load_command(point: EntryPoint) -> Command:
    """Return a command of another package (InputError where it cannot be used)."""
    check_one("command", point.name)
    command = loaded("command", point, Command)
    if command.within:
        raise InputError(f"The plug-in {point.name!r} (command) must be a command of its own.")
    name = getattr(command.function, "__name__", "")
    check_name("command", point.name, ".".join(filter(None, (command.group, name))))
    return command
