"""The server: on this computer alone, with a folder of its own that goes when it ends."""

import contextlib
import logging
import secrets
import socket
import tempfile
import webbrowser
from asyncio import TimerHandle
from collections.abc import Sequence
from threading import Thread
from typing import Any, ClassVar, Final

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from ldpaudit.doors import InputError, Scratch
from ldpaudit.extras.web.forms import Commands
from ldpaudit.extras.web.guard import Guard
from ldpaudit.extras.web.site import Site
from ldpaudit.terminal import remark, say
from ldpaudit.work.memory import allowance, size_of

HEAD_SECONDS: Final = 10.0
MOST_WAITING: Final = 64
_DOOR: Final = (
    '<!DOCTYPE html><meta http-equiv="refresh" content="0; url={}"><title>ldpaudit</title>'
)


class Patient(H11Protocol):
    """A connection that ends unless a request's head comes soon; the oldest one makes room."""

    # Any user of the computer can open connections to the port and send half a request. Of those
    # that wait for their first head there are few; more than that, and the one that has waited
    # longest goes, so that a browser is answered all the same.
    _waiting: ClassVar[dict["Patient", TimerHandle]] = {}

    def connection_made(self, transport: Any) -> None:
        """Wait for a head, for as long as it may take."""
        super().connection_made(transport)
        self._waiting[self] = self.loop.call_later(HEAD_SECONDS, transport.abort)
        while len(self._waiting) > MOST_WAITING:
            oldest = next(iter(self._waiting))
            oldest._no_longer()
            oldest.transport.abort()

    def handle_events(self) -> None:
        """Read what came; whoever has sent a head waits no longer."""
        super().handle_events()
        if self.cycle is not None:
            self._no_longer()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        self._no_longer()
        super().connection_lost(exc)

    def _no_longer(self) -> None:
        timer = self._waiting.pop(self, None)
        if timer is not None:
            timer.cancel()


def serve(
    commands: Commands,
    files: Sequence[str] = (),
    *,
    port: int = 0,
    memory: str | None = None,
    browser: bool = True,
    container: bool = False,
) -> None:
    """Serve the page until Ctrl-C, or until somebody ends it there.

    ``commands``: the options of each command that pages may run; ``files``: what the page opens
    with; ``port``: 0: one that is free; ``memory``: the most that audits and uploads may take;
    ``browser``: whether to open the page in the browser; ``container``: whether a container's
    network is listened to, whose port is published to 127.0.0.1.
    """
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
                http=Patient,
                ws="none",
                proxy_headers=False,
                server_header=False,
                timeout_graceful_shutdown=1,
            )
        )
        # What others do to the port is no news for the terminal.
        logging.getLogger("asyncio").setLevel(logging.CRITICAL + 1)
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
