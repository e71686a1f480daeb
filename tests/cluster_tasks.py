"""What test_tasks.py asks of workers, in a module that they import in no time."""

import os
import signal
import time
from pathlib import Path
from typing import Any

from ldpaudit.errors import InputError, InsufficientDataError

SECRET = "a-secret-cell"


def deed(task: tuple[str, Any], _shared: None) -> Any:
    """Do what is named: what a worker may do besides its work."""
    what, value = task
    if what == "square":
        return value**2
    if what == "raise":
        raise ValueError(SECRET)
    if what == "refuse":
        raise InputError("It is out of range.")
    if what == "exit":
        os._exit(value)
    if what == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    if what == "hang":
        with (Path(value) / "pids").open("a") as file:
            file.write(f"{os.getpid()} ")
        time.sleep(60)
    return os.environ["OMP_NUM_THREADS"]


def total(item: int, shared: dict[str, Any]) -> tuple[int, float]:
    return item, float(shared["rows"][item:].sum())


def fails(item: int, _shared: None) -> None:
    if item == 1:
        raise ValueError(SECRET)
    raise InsufficientDataError("There are too few rows.")


def always_dies(_item: int, _shared: None) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def here(_item: int, _shared: None) -> int:
    return os.getpid()
