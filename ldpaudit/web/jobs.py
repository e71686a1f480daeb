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

from ldpaudit.terminal import remark
from ldpaudit.web.drafts import Draft

State = Literal["waiting", "running", "done", "refused", "stopped"]
_PART: Final = re.compile(r"(\d+) of (\d+): (.*) …")
_LINE: Final = 1 << 20
"""Bytes of the longest line that a command may print."""


Download = tuple[str, str, str]
"""A file that a job makes: what people call it, its own name, and what to save it as."""


@dataclass(eq=False)
class Job:
    """The answer to a form, as far as it has got.

    Attributes
    ----------
    draft : Draft
        The form.
    title : str
        What it is about, for people.
    folder : Path
        Where its results go.
    command : str
        The line that does the same in a terminal.
    steps : list of callables
        Each returns the words of a command once it is to run; none where there is nothing to do.
    downloads : dict
        What it makes, the result that it is for first.
    parts : list of str
        The parts that have begun, the last one running.
    of : int
        How many parts there are, as far as that is known.
    line : str
        What the command said last: why it refused, at the end.
    answer : str
        What was decided, in a few words.
    asked : int
        How often it was asked to end.
    """

    draft: Draft
    title: str
    folder: Path
    command: str
    steps: list[Callable[[], list[str]]]
    downloads: dict[str, Download]
    state: State = "waiting"
    parts: list[str] = field(default_factory=list)
    of: int = 0
    line: str = ""
    answer: str = ""
    asked: int = 0
    began: float = 0.0
    ended: float = 0.0
    process: Process | None = None
    id: str = field(default_factory=lambda: secrets.token_urlsafe(9))

    def file(self, key: str) -> Path:
        """Return a file that the job makes."""
        return self.folder / self.downloads[key][1]

    def stored(self, key: str = "json") -> Any:
        """Return what a JSON file of the job holds; None where it was not made."""
        if key not in self.downloads or not self.file(key).is_file():
            return None
        return json.loads(self.file(key).read_text("utf-8"))

    @property
    def over(self) -> bool:
        """Whether nothing more will happen."""
        return self.state in ("done", "refused", "stopped")

    @property
    def seconds(self) -> int:
        """How long it has run."""
        return round((self.ended or time.monotonic()) - self.began) if self.began else 0

    @property
    def left(self) -> int | None:
        """About how many seconds are left, by the parts that are done; None: not known yet."""
        done = len(self.parts) - 1
        return None if done < 2 else round(self.seconds / done * (self.of - done))

    def heard(self, text: str) -> None:
        """Take note of a line of progress."""
        if part := _PART.fullmatch(text):
            self.parts = [*self.parts[: int(part[1]) - 1], part[3]]
            self.of = int(part[2])
        elif text:
            self.line = text


async def work(
    words: list[str],
    folder: Path,
    heard: Callable[[str], None],
    started: Callable[[Process], None] = lambda _: None,
) -> int:
    """Run a task in a process of its own; return its exit status.

    The folder may hold files of any name, so nothing is imported from it.
    """
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "ldpaudit.web.worker", str(os.getpid()), *words),
        stdin=DEVNULL,
        stdout=DEVNULL,
        stderr=PIPE,
        cwd=folder,
        env=os.environ | {"PYTHONSAFEPATH": "1", "TMPDIR": str(folder.parent)},
        limit=_LINE,
        start_new_session=True,
    )
    started(process)
    try:
        assert process.stderr is not None
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


class Jobs:
    """All jobs since the server started; they run one at a time, in their order."""

    def __init__(self) -> None:
        self.all: dict[str, Job] = {}
        self._queue: asyncio.Queue[Job] = asyncio.Queue()

    def add(self, job: Job) -> Job:
        """Let a job wait for its turn."""
        job.folder.mkdir(mode=0o700)
        self.all[job.id] = job
        self._queue.put_nowait(job)
        return job

    async def run(self) -> None:
        """Run jobs as they come, until this is cancelled."""
        while True:
            job = await self._queue.get()
            if job.state == "waiting":
                job.began, job.state = time.monotonic(), "running"
                try:
                    status = await self._steps(job)
                except Exception as error:  # The next job is to run all the same.
                    status, job.line = 2, f"Internal fault ({type(error).__name__})."
                job.ended = time.monotonic()
                made = job.file(next(iter(job.downloads))).is_file()
                job.state = "done" if made else "stopped" if job.asked else "refused"
                if job.state == "refused":
                    job.draft.error = job.line or f"It ended before its time (status {status})."
                decision = (job.stored() or {}).get("decision") if made else None
                job.answer = f"publish: {decision}" if decision else job.state
                remark(f"{job.title}: {job.state} after {job.seconds} s.")

    async def _steps(self, job: Job) -> int:
        status = 0
        for step in job.steps:
            words = step()
            if words and status in (0, 1, 3) and (job.asked == 0 or job.stored() is not None):
                job.parts, job.of, job.line = [], 0, ""

                def started(process: Process) -> None:
                    job.process = process

                status = await work(words, job.draft.folder, job.heard, started)
        return status

    def stop(self, job: Job) -> None:
        """Ask a job to end with what it has; ask again, and it ends now."""
        job.asked += 1
        if job.state == "waiting":
            job.state = "stopped"
        elif job.process is not None and job.process.returncode is None:
            if job.asked > 1:
                end(job.process)
            else:
                job.process.terminate()
