"""Commands of other packages: loaded when they are called or listed, and never before."""

import dataclasses
import inspect
from collections.abc import Callable, Iterator
from importlib.metadata import EntryPoint
from numbers import Integral
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from ldpaudit.cli.help import Command
from ldpaudit.cli.parameters import parameters_of, spread
from ldpaudit.commands.interface import EXIT
from ldpaudit.commands.registered import load_command, of_others
from ldpaudit.errors import InputError, LdpAuditError, refuse
from ldpaudit.options import declared, group
from ldpaudit.plugins import clash, watched, where


class Commands(TyperGroup):
    """A group of commands, ours and those of other packages; ours keep their names."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names of all commands, ours first."""
        return [*dict.fromkeys((*super().list_commands(ctx), *_named(self.name)))]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return a command; one of another package that cannot be used says why."""
        ours = super().get_command(ctx, cmd_name)
        point = _named(self.name).get(cmd_name)
        return ours if ours is not None or point is None else _command(point, cmd_name)


def every(command: Any) -> Iterator[Any]:
    """Yield the members of a group, none for a command."""
    for name in command.list_commands(None) if isinstance(command, Commands) else ():
        yield command.get_command(None, name)


def refused(program: Commands) -> Iterator[str]:
    """Yield a line for each command of another package that has the name of one of ours."""
    groups = [one for one in program.commands.values() if isinstance(one, Commands)]
    for members in (program, *groups):
        for name, point in _named(members.name).items():
            if name in members.commands:
                yield clash("command", point)


def _named(group_name: str | None) -> dict[str, EntryPoint]:
    """Return what other packages registered for a group, by the names on the command line."""
    found = {}
    for point in of_others().values():
        of, _, name = point.name.rpartition(".")
        if of == ("" if group_name == "ldpaudit" else group_name):
            found[name.replace("_", "-")] = point
    return found


class _Unusable(TyperCommand):
    """A command that cannot be used: it says why, which is its help."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:  # noqa: ARG002
        """Refuse whatever is asked for."""
        raise InputError(self.help or "")


class _OfOthers(Command):
    """A command of another package: the status that its function returns is the exit status."""

    part = ""

    def invoke(self, ctx: Any) -> None:
        """Carry it out; write and print what it found once it returned a status; end with that."""
        from ldpaudit.commands.shell import held_back  # --help must not wait for it.

        with held_back() as answers:
            try:
                returned = TyperCommand.invoke(self, ctx)
            except typer.Exit as ended:
                returned = ended.exit_code
        status = self._status(returned)
        for answer in answers:
            with watched("command", self.part, "nothing was written", (LdpAuditError,)):
                answer.write()
            answer.tell()
        ctx.exit(status)

    def _status(self, returned: object) -> int:
        known = sorted(EXIT.values())
        listed, part = ", ".join(map(str, known)), f"The plug-in {self.part!r} (command)"
        if returned is None:
            return EXIT["pass"]
        if isinstance(returned, bool) or not isinstance(returned, Integral):
            raise InputError(
                f"{part} must return an exit status ({listed}) or None. Got "
                f"{type(returned).__name__} instead."
            )
        refuse(
            returned not in known,
            f"{part} returned the exit status {int(returned)}; it must be one of {listed}.",
        )
        return int(returned)


def _command(point: EntryPoint, name: str) -> Any:
    made = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)
    try:
        function = load_command(point).function
        _check_options(point.name, function)
        named = type("Named", (_OfOthers,), {"part": point.name})
        made.command(name, cls=named)(spread(function))
        return typer.main.get_command(made)
    except InputError as error:
        why = str(error)
    except Exception as error:
        why = f"The options of the plug-in {point.name!r} (command) are unusable: {where(error)}."
    return _Unusable(name, help=why, callback=lambda: None)


def _check_options(name: str, function: Callable[..., Any]) -> None:
    """Refuse a command with parameters that the command line cannot give."""
    known = {parameter.name for parameter in parameters_of(function)}
    for parameter in inspect.signature(function).parameters.values():
        members = group(parameter.annotation)
        unknown = [
            one.name
            for one in (() if members is None else dataclasses.fields(members))
            if declared(one.type) is None
            and group(one.type) is None
            and one.default is dataclasses.MISSING
            and one.default_factory is dataclasses.MISSING
        ]
        if members is None and parameter.name not in known:
            unknown = [parameter.name]
        if unknown:
            raise InputError(
                f"The parameter {unknown[0]!r} of the plug-in {name!r} (command) must have an "
                "Option or an Argument."
            )
