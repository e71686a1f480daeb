"""Who is answered: who has the secret address and comes from a page of this server; nobody else."""

# A page elsewhere can make a browser send requests here (cross-site posts), and can let its own
# name point to this computer (DNS rebinding). Such requests lack the token, or carry another Host
# or Origin; none of them reaches the site.

import secrets
from collections.abc import Callable
from typing import Any, Final

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

HEADERS: Final = {
    "Content-Security-Policy": "default-src 'none'; style-src 'self'; script-src 'self'; "
    "connect-src 'self'; img-src data:; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}


class Guard:
    """Lets requests through to an application that has been checked; adds headers to answers.

    ``token``: the first part of every address; ``port``: of the server, as the browser sees it;
    ``room``: returns how many bytes may be uploaded now.
    """

    def __init__(self, app: ASGIApp, token: str, port: int, room: Callable[[], int]) -> None:
        self._app, self._token, self._room = app, token.encode(), room
        self._hosts, self._coming = {f"{name}:{port}" for name in ("127.0.0.1", "localhost")}, 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it without a word about why."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
        elif scope["type"] != "http" or not self._known(scope):
            await PlainTextResponse("", 403)(scope, receive, self._sending(send))
        else:
            sizes: list[int] = []
            told = int(Headers(scope=scope).get("content-length", "0"))
            try:
                await self._app(scope, self._counted(receive, sizes, told), self._sending(send))
            finally:
                self._coming -= sum(sizes)

    def _known(self, scope: Scope) -> bool:
        headers, asked = Headers(scope=scope), scope["method"] in ("GET", "HEAD")
        hosts, origins = headers.getlist("host"), headers.getlist("origin")
        token = f"{scope['path']}/".split("/", 2)[1].encode("utf-8", "replace")
        return (
            len(hosts) == 1
            and hosts[0] in self._hosts
            and (origins == [f"http://{hosts[0]}"] or (asked and not origins))
            and (asked or headers.get("sec-fetch-site", "same-origin") == "same-origin")
            and secrets.compare_digest(token, self._token)
        )

    def _counted(self, receive: Receive, sizes: list[int], told: int) -> Receive:
        """Return what receives a request and refuses it once all that come have no room."""
        # One that says so itself is refused before it comes. The server throws away what comes all
        # the same; of others it is taken here, for a browser shows no answer before.

        async def counted() -> Message:
            if not sizes and self._coming + told > self._room():
                raise HTTPException(413)
            message = await receive()
            sizes.append(len(message.get("body", b"")))
            self._coming += sizes[-1]
            if sizes[-1] and self._coming > self._room():
                while message["type"] == "http.request" and message.get("more_body"):
                    message = await receive()
                raise HTTPException(413)
            return message

        return counted

    def _sending(self, send: Send) -> Send:
        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers: Any = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        return sending
