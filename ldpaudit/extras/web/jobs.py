"""Jobs: the commands that answer a form, one at a time, each in a process that can be stopped."""

import asyncio
import contextlib
import json
import os
import re
import secrets
import signal
import sys
import time
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal

from ldpaudit.extras.web.drafts import Draft
from ldpaudit.terminal import remark

_PART: Final = re.compile(r"(\d+) of (\d+): (.*) …")
_GROUP: Final = re.compile(r"(\S.*):")
_ANSWERS: Final = {
    "publish": "publish: yes",
    "not yet": "publish: not yet",
    "do not publish": "publish: no",
}
"""What the page of a decision says first."""
Download = tuple[str, str, str]
"""A file that a job makes: what people call it, its own name, and what to save it as."""


@dataclass(eq=False)
class Job:
    """The answer to a form, as far as it has got."""

    draft: Draft
    """The form."""
    title: str
    """What it is about, for people."""
    folder: Path
    """Where its results go."""
    command: str
    """The line that does the same in a terminal."""
    steps: list[Callable[[], list[str]]]
    """Each returns the words of a command once it is to run; none where there is nothing to do."""
    downloads: dict[str, Download]
    """What it makes, the result that it is for first."""
    state: Literal["waiting", "running", "done", "refused", "stopped"] = "waiting"
    parts: list[str] = field(default_factory=list)
    """The parts that have begun, the last one running."""
    of: int = 0
    """How many parts there are, as far as that is known."""
    group: str = ""
    """The release or column that these are parts of, where there are several."""
    line: str = ""
    """What the command said last: why it refused, at the end."""
    answer: str = ""
    """What came out, in a few words."""
    asked: int = 0
    """How often it was asked to end."""
    about: str = ""
    """What tells it apart from others of the same file."""
    missing: str = ""
    """Why a later step gave nothing, where the answer is there."""
    began: float = 0.0
    ended: float = 0.0
    process: Process | None = None
    task: Any = None
    id: str = field(default_factory=lambda: secrets.token_urlsafe(9))

    def file(self, key: str) -> Path:
        """Return a file that the job makes."""
        return self.folder / self.downloads[key][1]

    def stored(self, key: str = "json") -> Any:
        """Return what a JSON file of the job holds; nothing where it was not made."""
        made = key in self.downloads and self.file(key).is_file()
        return json.loads(self.file(key).read_text("utf-8")) if made else {}

    @property
    def seconds(self) -> int:
        """How long it has run."""
        return round((self.ended or time.monotonic()) - self.began) if self.began else 0

    @property
    def left(self) -> int | None:
        """About how many seconds are left, by the parts that are done; None: not known yet."""
        done = len(self.parts) - 1
        return None if done < 2 or self.group else round(self.seconds / done * (self.of - done))

    def heard(self, text: str) -> None:
        """Take note of a line of progress."""
        if part := _PART.fullmatch(text):
            self.parts, self.of = [*self.parts[: int(part[1]) - 1], part[3]], int(part[2])
        elif group := _GROUP.fullmatch(text):
            self.group, self.parts, self.of = group[1], [], 0
        elif text:
            self.line = text

    async def run(self, turn: asyncio.Lock) -> None:
        """Do it when it is its turn, unless somebody stopped it before."""
        async with turn:
            if self.state == "stopped":
                return
            self.began, self.state = time.monotonic(), "running"
            try:
                status = await self._steps()
            except Exception as error:  # The next job is to run all the same.
                status, self.line = 2, f"Internal fault ({type(error).__name__})."
            self.ended = time.monotonic()
            made = self.file(next(iter(self.downloads))).is_file()
            self.state = "done" if made else "stopped" if self.asked else "refused"
            decision = self.stored().get("decision") or self.state
            self.answer = _ANSWERS.get(decision, decision)
            if self.state == "done" and self.asked:
                # What was measured may show a violation; that it shows none decides nothing.
                found = self.answer if decision == "do not publish" else "no answer"
                self.answer = f"stopped before the end: {found}"
            if self.state == "refused":
                self.draft.error = self.line or f"It ended before its time (status {status})."
            remark(f"{self.title}: {self.state} after {self.seconds} s.")

    async def _steps(self) -> int:
        status = 0
        for place, step in enumerate(self.steps):
            # A later step needs what the first one made.
            words = step() if self.asked == 0 or self.stored() else []
            if words:
                self.parts, self.of, self.group, self.line = [], 0, "", ""
                status = await work(words, self.draft.folder, self.heard, self)
            if status not in (0, 1, 3):
                self.missing = self.line if place else ""
                break
        return status

    def stop(self) -> None:
        """Ask it to end with what it has; ask again, and it ends now."""
        self.asked += 1
        if self.state == "waiting":
            self.state = "stopped"
        elif self.process is not None and self.process.returncode is None:
            (end if self.asked > 1 else Process.terminate)(self.process)


async def work(
    words: list[str], folder: Path, heard: Callable[[str], None], job: Job | None = None
) -> int:
    """Run a task in a process of its own; return its exit status."""
    # The folder may hold files of any name, so nothing is imported from it.
    # An empty path in it is the folder, too.
    paths = os.pathsep.join(filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep)))
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "ldpaudit.extras.web.worker", str(os.getpid())),
        stdin=PIPE,
        stdout=DEVNULL,
        stderr=PIPE,
        cwd=folder,
        env=os.environ | {"PYTHONSAFEPATH": "1", "PYTHONPATH": paths, "TMPDIR": str(folder.parent)},
        limit=1 << 20,
        start_new_session=True,
    )
    if job is not None:
        job.process = process
    try:
        assert process.stderr is not None
        assert process.stdin is not None
        # Not on its command line, which every user of the computer can read, and which is short.
        process.stdin.write(json.dumps(words).encode())
        with contextlib.suppress(ConnectionError):  # It may have been stopped already.
            await process.stdin.drain()
            process.stdin.close()
        async for line in process.stderr:
            heard(line.decode("utf-8", "replace").strip().removeprefix("ldpaudit: "))
        return await process.wait()
    finally:
        end(process)


def end(process: Process) -> None:
    """End a process and those that it started, unless it has ended: its number may be another's."""
    with contextlib.suppress(ProcessLookupError):
        if process.returncode is None:
            os.killpg(process.pid, signal.SIGKILL)
