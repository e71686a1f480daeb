"""The server: on this computer alone, with a folder of its own that goes when it ends."""

import contextlib
import secrets
import socket
import tempfile
import webbrowser
from collections.abc import Sequence
from threading import Thread
from typing import Final

import uvicorn

from ldpaudit.errors import InputError
from ldpaudit.terminal import remark, say
from ldpaudit.web.forms import Commands
from ldpaudit.web.guard import Guard
from ldpaudit.web.site import Site
from ldpaudit.work.memory import Scratch, allowance, size_of

_DOOR: Final = (
    '<!DOCTYPE html><meta http-equiv="refresh" content="0; url={}"><title>ldpaudit</title>'
)


def serve(
    commands: Commands,
    files: Sequence[str] = (),
    *,
    port: int = 0,
    memory: str | None = None,
    browser: bool = True,
    container: bool = False,
) -> None:
    """Serve the page until Ctrl-C, or until somebody ends it there."""
    # ``commands``: the options of each command that pages may run; ``files``: what the page opens
    # with; ``port``: 0: one that is free; ``memory``: the most that audits and uploads may take;
    # ``browser``: whether to open the page in the browser; ``container``: whether a container's
    # network is listened to, whose port is published to 127.0.0.1.
    if not 0 <= port < 1 << 16:
        raise InputError(f"--port must be from 0 to 65535. Got {port}.")
    most = allowance(None if memory is None else size_of(memory))
    host = "0.0.0.0" if container else "127.0.0.1"  # only where asked for by name # nosec B104
    try:
        listener = socket.create_server((host, port))
    except OSError as error:
        why = (error.strerror or type(error).__name__).lower()
        raise InputError(f"--port {port} cannot be used: {why}.") from None
    port, token = listener.getsockname()[1], secrets.token_urlsafe(24)
    address = f"http://127.0.0.1:{port}/{token}/"
    with contextlib.suppress(KeyboardInterrupt), listener, Scratch() as scratch:
        # What a browser uploads is spooled there, too.
        tempfile.tempdir = str(scratch.folder)
        site = Site(commands, scratch.folder, token, most, memory)
        place = site.opened(files) if files else ""
        app = Guard(site.app, token, port, site.room)
        server = uvicorn.Server(
            uvicorn.Config(
                app,
                access_log=False,
                log_level="critical",
                loop="asyncio",
                http="h11",
                ws="none",
                proxy_headers=False,
                server_header=False,
                timeout_graceful_shutdown=1,
            )
        )
        site.end = lambda: setattr(server, "should_exit", True)
        say(f"Open {address}{place} in a browser on this computer. Ctrl-C ends it.")
        if browser:
            door = scratch.folder / "open.html"
            # Not the address itself: what a browser is started with, others may read.
            door.touch(0o600)
            door.write_text(_DOOR.format(address + place))
            # Some are programs of the terminal, and end only when somebody leaves them.
            Thread(target=webbrowser.open, args=(door.as_uri(),), daemon=True).start()
        server.run([listener])
    remark("Ended; nothing was kept.")
