"""The commands that packages register, ours and those of others."""

import importlib.util
from collections.abc import Iterator, Mapping
from functools import lru_cache
from importlib.metadata import EntryPoint

from ldpaudit.commands.interface import Command
from ldpaudit.errors import InputError
from ldpaudit.plugins import check_name, check_one, is_ours, points_of, unloadable
from ldpaudit.terminal import remark


@lru_cache(maxsize=1)
def registered() -> Mapping[str, Command]:
    """Return the registered commands by their entry points' names, ours first.

    One of another package that cannot be loaded, or has the name of one of ours, is left out and
    said; the other commands work all the same.
    """
    found: dict[str, Command] = {}
    for point in sorted(points_of("command"), key=lambda one: not is_ours(one)):
        if is_ours(point) and not _present(point.module):
            continue
        try:
            found[point.name] = _loaded(point, found)
        except InputError as error:
            remark(str(error))
    return found


def work_within(option: str) -> Command:
    """Return the registered command that does the work of an option of another command."""
    # InputError where the part of this installation that has it was taken out.
    for command in registered().values():
        if command.within == option:
            return command
    raise InputError(f"This installation lacks what {option!r} needs; install ldpaudit again.")


def _loaded(point: EntryPoint, before: Mapping[str, Command]) -> Command:
    if point.name in before:
        raise InputError(
            f"The plug-in {point.name!r} (command) has the name of another command and was not "
            "used."
        )
    check_one("command", point.name)
    try:
        command = point.load()
    except Exception as error:
        raise unloadable("command", point.name, error) from None
    if not isinstance(command, Command):
        raise InputError(
            f"The plug-in {point.name!r} (command) must be a ldpaudit.doors.Command. Got "
            f"{type(command).__name__} instead."
        )
    words = filter(None, (command.group, command.name))
    check_name("command", point.name, ".".join(words))
    return command


def _present(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:
        return False


def each(group: str) -> Iterator[Command]:
    """Yield the registered commands of a group."""
    for command in registered().values():
        if command.group == group and not command.within:
            yield command
