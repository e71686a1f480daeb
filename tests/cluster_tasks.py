"""What test_cluster.py asks of workers, in a module that they import in no time."""

import os
import signal
from pathlib import Path
from typing import Any

from ldpaudit.errors import InsufficientDataError

SECRET = "a-secret-cell"


def total(item: int, shared: dict[str, Any]) -> tuple[int, float, bool]:
    return item, float(shared["rows"][item:].sum()), bool(shared["labels"].flags.writeable)


def fails(item: int, _shared: None) -> None:
    if item == 1:
        raise ValueError(SECRET)
    raise InsufficientDataError("There are too few rows.")


def dies_once(item: int, shared: Path) -> int:
    """End the whole process at the first try of the second item."""
    mark = shared / "died"
    if item == 1 and not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return item


def killed_first(item: Any, shared: tuple[Any, Any, Path]) -> Any:
    function, content, mark = shared
    try:
        mark.touch(exist_ok=False)  # Of tasks that start together, one alone dies.
    except FileExistsError:
        return function(item, content)
    os.kill(os.getpid(), signal.SIGKILL)


def always_dies(_item: int, _shared: None) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def here(_item: int, _shared: None) -> int:
    return os.getpid()
