"""``ldpaudit open``."""

# What a command needs is imported when it is called: the command line itself must start at once.

from typing import Annotated, Final

from ldpaudit.cli.commands import CORE
from ldpaudit.cli.parameters import parameters_of
from ldpaudit.commands.registered import each
from ldpaudit.doors import Argument, Command, Debug, Option

# The commands that the page runs.
_ON_PAGE: Final = ("run", "report", "advise", "sweep", "compare")


def open(
    files: Annotated[
        tuple[str, ...],
        Argument(
            "What the page opens with: released files, or a stored result (.json).", "[FILE]…"
        ),
    ] = (),
    no_browser: Annotated[bool, Option("Print the page's address, and open no browser.")] = False,
    port: Annotated[int, Option("The port on this computer (default: one that is free).")] = 0,
    memory: Annotated[
        str | None, Option("The most memory of audits and uploads, such as 4GiB (default: half).")
    ] = None,
    container: Annotated[
        bool,
        Option("In a container: listen to its network; publish the port to 127.0.0.1 alone."),
    ] = False,
    _debug: Debug = False,
) -> None:
    """Audit releases and choose the noise on a page in the browser of this computer."""
    from importlib.util import find_spec

    from ldpaudit.doors import MissingDependencyError

    if not all(map(find_spec, ("starlette", "uvicorn", "python_multipart"))):
        raise MissingDependencyError(
            "ldpaudit open needs starlette, uvicorn and python-multipart, which are installed with "
            "ldpaudit; install it again."
        )
    from ldpaudit.extras.web.server import serve

    by_name = {one.name: one for one in (*CORE, *each(""))}
    serve(
        {name: [*parameters_of(by_name[name].function)] for name in _ON_PAGE},
        files,
        port=port,
        memory=memory,
        browser=not no_browser,
        container=container,
    )


OPEN: Final = Command(open)
