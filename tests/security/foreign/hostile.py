"""What a worker runs in the tests of hostile clients; it imports little, so that it starts fast."""

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ldpaudit.tasks.interface import Answer
from ldpaudit.tasks.wire import MessageError

STRAY = """import os, sys, time
if os.fork():
    os._exit(0)
os.setsid()
if os.fork():
    os._exit(0)
open(sys.argv[1], "a").write(f"{os.getpid()} ")
time.sleep(120)
"""
"""Starts a process of a session of its own, whose parents have ended."""


def pack(answer: Answer) -> bytes:
    return str(answer.content or answer.reason).encode()


def unpack(content: bytes) -> Answer:
    if not content.isascii():
        raise MessageError
    return Answer(content.decode())


def prepare(folder: str) -> Callable[[str], Any]:
    """Return what does a task: the name of what a client may do besides its work."""
    pids = Path(folder) / "pids"

    def do(task: str) -> Any:
        if task.startswith("stray"):
            before = pids.read_text() if pids.exists() else ""
            subprocess.Popen([sys.executable, "-S", "-c", STRAY, str(pids)])
            while not pids.exists() or pids.read_text() == before:
                time.sleep(0.01)
        if task == "stray, and exits":
            os._exit(5)
        if task == "stray, and hangs":
            time.sleep(120)
        if task == "half a message":
            os.write(int(sys.argv[1]), (10).to_bytes(8, "big") + b"five!")
            time.sleep(120)
        if task == "a long message":
            os.write(int(sys.argv[1]), (1 << 40).to_bytes(8, "big"))
            time.sleep(120)
        return "done"

    return do
