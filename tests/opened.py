"""The page of ``ldpaudit open`` as tests see it: without a network."""

import io
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from starlette.testclient import TestClient

from ldpaudit.cli.commands import report, run
from ldpaudit.cli.parameters import parameters_of
from ldpaudit.extras.choose.commands import advise, sweep
from ldpaudit.extras.compare.commands import compare
from ldpaudit.extras.web.guard import Guard
from ldpaudit.extras.web.site import Site

TOKEN, PORT = "a-token", 8765
HERE = f"http://127.0.0.1:{PORT}"
COMMANDS = (run, report, advise, sweep, compare)
OPTIONS = {command.__name__: [*parameters_of(command)] for command in COMMANDS}
MOST = 5_000_000


class Page:
    """The page as a client sees it that has the secret address."""

    def __init__(self, folder: Path, most: int = MOST) -> None:
        self.site = Site(OPTIONS, folder, TOKEN, most)
        self.app = Guard(self.site.app, TOKEN, PORT, self.site.room)
        self.client = TestClient(self.app, base_url=HERE, follow_redirects=True)

    def get(self, place: str = "") -> Any:
        """Return the answer to a GET."""
        return self.client.get(f"/{TOKEN}/{place}")

    def post(self, place: str, files: dict[str, Path] | None = None, **values: Any) -> Any:
        """Send a form from the page itself."""
        named = {role: (path.name, path.read_bytes()) for role, path in (files or {}).items()}
        own = {"Origin": HERE}
        place = place.removeprefix(f"{HERE}/{TOKEN}/")
        return self.client.post(f"/{TOKEN}/{place}", files=named, data=values, headers=own)

    def finished(self, answer: Any) -> Any:
        """Return the page to which a job leads once it is over."""
        place = str(answer.url)
        for _ in range(600):
            answer = self.client.get(place)
            if 'id="progress"' not in answer.text:
                return answer
            time.sleep(0.05)
        raise AssertionError("the job does not end")


class Heard(io.StringIO):
    """A stream whose lines somebody hears."""

    def __init__(self, heard: Callable[[str], None]) -> None:
        super().__init__()
        self._heard = heard

    def write(self, text: str) -> int:
        super().write(text)  # Refuses bytes, by which typer knows what this is.
        for line in text.splitlines():
            if line.strip():
                self._heard(line.strip().removeprefix("ldpaudit: "))
        return len(text)
