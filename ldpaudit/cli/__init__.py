"""The command line: thin shells of the commands."""

# In: words and the environment. Out: a request to a command, and its exit status: 0 no violation
# found, 1 a violation, 2 could not run, 3 inconclusive.

import functools
import gc
import os
import re
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Annotated, Any, Final

import typer

from ldpaudit import __version__
from ldpaudit.cli.added import Commands, every, refused
from ldpaudit.cli.clashes import clashes
from ldpaudit.cli.commands import CORE
from ldpaudit.cli.help import Command
from ldpaudit.cli.parameters import PREFIX, spread
from ldpaudit.cli.process import CHILD, quiet_libraries, status_under_limit, steady_streams
from ldpaudit.commands.registered import each, lacked, of_others
from ldpaudit.errors import decimal_point, did_you_mean
from ldpaudit.surfaces import speaking
from ldpaudit.terminal import debugging, remark
from ldpaudit.work.interruption import COULD_NOT_RUN, interrupted
from ldpaudit.work.memory import few_arenas

_NO_OPTIONS = frozenset({CHILD, f"{PREFIX}DEBUG", f"{PREFIX}EFFORT"})
_COMPLETING = "_LDPAUDIT_COMPLETE"
# What people call commands.
_MEANT: Final = {"audit": "run", "check": "run", "anonymize": "privatize", "noise": "privatize"}
# What other programs call the option for the file that they write.
_OUTPUTS: Final = ("--output", "--out", "--report", "-o")
_NO_MEMORY: Final = re.compile(
    "can(not|'t) allocate memory|failed to map segment|bad_alloc", re.IGNORECASE
)
# What typer makes of Ctrl-C.
_BY_CTRL_C = 130


def _typer(help: str, name: str | None = None) -> typer.Typer:
    return typer.Typer(
        name=name,
        cls=Commands,
        help=help,
        no_args_is_help=True,
        add_completion=name == "ldpaudit",
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
    )


# The first commands of the help, in this order; others follow by name.
_FIRST: Final = (
    *("run", "open", "demo", "report", "privatize", "declare", "sweep", "advise", "compare"),
    *("learn", "selftest", "verify", "describe", "design", "compose", "channel", "audit"),
)
_GROUPS: Final = {
    "policy": "Check, explain, show or start a policy.",
    "mechanism": "Describe, design, compose or audit a mechanism.",
}


def members(group: str, *, whole: bool = True) -> list[Callable[..., Any]]:
    """Return our commands of a group: the core's and, as a whole, those of the extras."""
    core = [one for one in CORE if one.group == group]
    found = [one.function for one in (*core, *(each(group) if whole else ()))]
    places = {name: place for place, name in enumerate(_FIRST)}
    return sorted(found, key=lambda one: places.get(one.__name__, len(places)))


def app() -> typer.Typer:
    """Return the whole program: the core's commands and those that packages add."""
    return _program(whole=True)


@functools.cache
def _program(*, whole: bool) -> typer.Typer:
    program = _typer(
        "How much does a dataset with privatized labels reveal about each person's label?",
        "ldpaudit",
    )
    program.callback()(_root)
    _add(program, members("", whole=whole))
    for name, help in _GROUPS.items():
        if functions := members(name, whole=whole):
            group = _typer(help, name)
            _add(group, functions)
            program.add_typer(group)
    return program


def _add(group: typer.Typer, functions: Iterable[Callable[..., Any]]) -> None:
    for function in functions:
        group.command(cls=Command)(spread(function))


def _version(shown: bool) -> None:
    if shown:
        typer.echo(f"ldpaudit {__version__}")
        raise typer.Exit


def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    pass


@functools.cache
def _commands() -> Any:
    """Return what typer makes of all commands: made once, read by each call."""
    return typer.main.get_command(app())


def _asks_the_core(words: Sequence[str]) -> bool:
    """Return whether the command line names a command of the core: then no other is looked at."""
    core = {one.group or one.name for one in CORE}
    return len(words) > 1 and words[1] in core and _COMPLETING not in os.environ


def main() -> None:
    """Run the command line; every error becomes one line on stderr and exit status 2."""
    # The status is that of the work, whatever becomes of standard output and error.
    try:
        debug = debugging()
        with steady_streams(), quiet_libraries(debug), speaking("terminal"):
            _main(debug)
    except Exception as error:  # Of the streams and libraries themselves.
        _stop(_one_line(error), debugging())


def _main(debug: bool) -> None:
    try:
        _set_up()
        status, line = status_under_limit() or (None, "")
        for text in [line] if line else _remarks() if status is None else ():
            remark(text)
        if status is None:
            if _asks_the_core(sys.argv):
                commands = typer.main.get_command(_program(whole=False))
            else:
                commands = _commands()
            status = commands(standalone_mode=False, prog_name="ldpaudit")
    except (typer.Abort, KeyboardInterrupt):
        _stop(interrupted(), debug)
    except Exception as error:
        _stop(_one_line(error), debug)
    except SystemExit as gone:
        # click takes every broken pipe for that of standard output, which cannot break here.
        if isinstance(gone.__context__, OSError):
            _stop(_one_line(gone.__context__), debug)
        if _COMPLETING in os.environ:
            raise
        said = "Code of others ended the program (SystemExit) before it was done."
        _stop(_of_plug_in(gone) or said, debug)  # Never a status.
    else:
        if status == _BY_CTRL_C:
            _stop(interrupted(), debug)
        sys.exit(status if isinstance(status, int) else 0)


def _set_up() -> None:
    """Set the environment of libraries, before any is imported."""
    # Threads that wait must not spin: on a shared machine that costs more than the work itself.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    few_arenas()
    # Python looks for cycles after every 700 new objects: a sixteenth of a small audit's time.
    gc.set_threshold(10_000, 50, 100)
    # An optimiser of torch makes the compiler's cache folder; nothing is compiled here, so let it
    # find one that exists and leave none behind. Who has no folder for temporary files may still
    # run what needs none.
    with suppress(OSError):
        os.environ.setdefault("TORCHINDUCTOR_CACHE_DIR", tempfile.gettempdir())


def _one_line(error: Exception) -> str:
    from ldpaudit.errors import LdpAuditError

    if isinstance(error, LdpAuditError):
        return _with_variables(" ".join(str(error).split()))
    from ldpaudit.options.declaring import retired

    if line := retired(str(getattr(error, "option_name", None) or "")):
        return line
    if hasattr(error, "format_message"):  # typer's own usage errors
        if line := _lacked(error) or _called_otherwise(error):
            return line
        said = str(error.format_message()).replace(" Value error, ", " ")  # pydantic's
        said = re.sub(r"Input should be a valid (number|integer),.*", r"it must be a \1.", said)
        said = said.replace("be a integer", "be a whole number")
        said = said.rstrip(".") + _suggested(error, said)
        return _with_variables(" ".join(said.split()))
    # A library may say so in a way of its own: while it is loaded, or in C++.
    lacks = isinstance(error, OSError | ImportError | RuntimeError) and _NO_MEMORY.search(
        str(error)
    )
    if isinstance(error, MemoryError) or lacks:
        said = "This needs more memory than there is, or than the process may use."
        return _by_part(error, said)
    if isinstance(error, FileNotFoundError) and "temporary directory" in str(error.strerror):
        return "No folder for temporary files can be written; set TMPDIR to one that can."
    if isinstance(error, OSError) and error.strerror:
        return _by_part(error, f"A file could not be used: {error.strerror}.")
    if type(error).__name__ == "ArrowNotImplementedError":  # Of a file's types, odd ones only.
        said = "A column has a type that cannot be used here; write it as numbers, text or dates."
        return _by_part(error, said)
    if line := _of_plug_in(error):
        return line
    from ldpaudit.plugins import taken_out

    if module := taken_out(error):
        return f"This installation lacks {module!r}, which this needs; install ldpaudit again."
    # The text of a foreign exception may hold data, so only its type is shown.
    return f"Internal fault ({type(error).__name__}); run again with --debug and report it."


def _lacked(error: Any) -> str | None:
    """Return the line about a command that was taken out of this installation."""
    unknown = re.fullmatch(r"No such command '(.*)'\.", str(error.format_message()))
    if not unknown or error.ctx is None:
        return None
    groups = error.ctx.command_path.split()[1:]
    if not lacked(".".join([*groups, unknown[1]])):
        return None
    return f"This installation lacks the command {unknown[1]!r}; install ldpaudit again."


def _called_otherwise(error: Any) -> str | None:
    """Return the line about an option that this command calls otherwise than other programs."""
    option = getattr(error, "option_name", None)
    known = (
        [] if error.ctx is None else [name for one in error.ctx.command.params for name in one.opts]
    )
    if option not in _OUTPUTS or "--html" not in known:
        return None
    return f"No such option: {option}; --html FILE writes the report, --json FILE the result."


def _suggested(error: Any, said: str) -> str:
    """Return the end of a message: the command or the number that was meant, if that is known."""
    if command := re.fullmatch(r"No such command '(.*)'\.", said):
        known = list(_commands().commands)
        return did_you_mean(_MEANT.get(command[1], command[1]), known)
    option = next(iter(getattr(getattr(error, "param", None), "opts", ())), "")
    given = [word.removeprefix(f"{option}=") for word in sys.argv]
    numbers = [word for word in given if re.fullmatch(r"-?\d+,\d+", word)]
    if "must be a number" in said and numbers:
        return decimal_point(numbers[0])
    shares = [word for word in given if re.fullmatch(r"\d{1,3}%", word)]
    if "must be a number" in said and shares and option == "--lambda":
        return f"; write a share: {int(shares[0][:-1]) / 100:g}."
    return "" if said.endswith("?") else "."


def _by_part(error: BaseException, said: str) -> str:
    """Return a message about an error, which names the plug-in whose code was running."""
    from ldpaudit.plugins import at_fault

    part = at_fault(error)
    return f"The plug-in {part[1]!r} ({part[0]}): {said}" if part else said


def _of_plug_in(error: BaseException) -> str | None:
    from ldpaudit.plugins import at_fault, failed

    part = at_fault(error)
    return failed(*part, error, "run again with --debug for more") if part else None


def _with_variables(message: str) -> str:
    """Return a message with the variables of the environment that set the options it is about."""
    named = []
    for variable in sorted(os.environ):
        option = "--" + variable.removeprefix(PREFIX).lower().replace("_", "-")
        word = re.escape(option[2:]).replace(r"\-", "[-_ ]")
        given = any(w == option or w.startswith(f"{option}=") for w in sys.argv)
        about = re.search(rf"(?<![\w.]){word}(?!\w)", message, re.IGNORECASE)
        if variable.startswith(PREFIX) and about and not given:
            named.append(variable)
    return f"{message} ({' and '.join(named)}: set in the environment)" if named else message


def _remarks() -> Iterator[str]:
    """Yield a remark on each part that is not used, and each variable that sets no option."""
    if of_others():
        yield from refused(_commands())
    yield from clashes()
    from ldpaudit.options.declaring import retired

    stated = [one for one in sorted(os.environ) if one.startswith(PREFIX) and os.environ[one]]
    unknown = [one for one in stated if one not in _NO_OPTIONS]
    known = set(_variables(_commands())) if unknown else set()
    for variable in unknown:
        if variable not in known:
            near = did_you_mean(variable, known)
            yield retired(variable) or f"{variable} sets no option{near}"


def _variables(command: Any) -> Iterator[str]:
    yield from (one.envvar for one in command.params if isinstance(one.envvar, str))
    for member in every(command):
        yield from _variables(member)


def _stop(message: str, debug: bool) -> None:
    if debug:
        import traceback

        traceback.print_exc()
    remark(message)
    # An interruption inside an ``exec`` (a dataclass being made, say) leaves a mark in CPython,
    # by which ``python -m`` ends by the signal even though it was caught. The next exec lifts it.
    exec("")  # nothing to run # nosec B102
    sys.exit(COULD_NOT_RUN)
