"""What counts neighbours, and where: threads or a cluster, memory or disk, processor or GPU."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np

from ldpaudit.device import DeviceName, torch_device
from ldpaudit.errors import InputError
from ldpaudit.running.finished import Finished
from ldpaudit.running.memory import allowance, shown
from ldpaudit.running.progress import NoProgress, Progress
from ldpaudit.running.scratch import Scratch
from ldpaudit.tasks import Tasks, Threads

_DRIVER: Final = Path("/dev/nvidiactl")
_SHARE: Final = 1 / 8
"""Of the memory that may be used: an array that takes more lies in a file."""
_MOST_PAIRS: Final = 5e11
SECONDS_PER_PAIR: Final = 8e-9


@dataclass(frozen=True, eq=False)
class Means:
    """How label counts are computed; except for ``exact``, no count depends on it.

    Attributes
    ----------
    threads : int
        Threads of this process, for the index.
    tasks : Tasks or None
        Answers batches of queries; None: the threads.
    scratch : Scratch or None
        Takes arrays that do not fit in memory; None: all arrays are in memory.
    memory : int or None
        The bytes that may be used in all; None: half of the machine's.
    device : {"auto", "cpu", "cuda"}
        Where cells are searched; a GPU gives the same counts but for ties within rounding.
    exact : bool
        Compare every query with every row.
    progress : Progress
        Is given the number of queries answered.
    finished : Finished
        Keeps batches that are answered.
    key : str
        Names this count among the finished parts.
    """

    threads: int = 1
    tasks: Tasks | None = None
    scratch: Scratch | None = None
    memory: int | None = None
    device: DeviceName = "cpu"
    exact: bool = False
    progress: Progress = field(default_factory=NoProgress)
    finished: Finished = field(default_factory=Finished)
    key: str = "neighbors"

    @property
    def workers(self) -> Tasks:
        """What answers batches of queries."""
        return self.tasks or Threads(self.threads)

    def accelerator(self) -> str | None:
        """Return the torch device to search on, None for the processor.

        Raises
        ------
        ldpaudit.errors.InputError
            If a GPU is asked for and there is none.
        """
        if self.device == "cpu" or (self.device == "auto" and not _DRIVER.exists()):
            return None  # torch, which takes seconds to import, is not asked
        found = torch_device(self.device)
        return None if found == "cpu" else found

    def array(self, shape: tuple[int, ...], dtype: Any) -> Any:
        """Return an array with undefined content, in a file where it is large."""
        size = int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize
        if self.scratch is not None and size > _SHARE * allowance(self.memory):
            return self.scratch.array(shape, dtype)
        return np.empty(shape, dtype)

    def check_exact(self, queries: int, rows: int, width: int) -> None:
        """Refuse to compare every query with every row where that takes hours, or the memory.

        Raises
        ------
        ldpaudit.errors.InputError
            If there are more than 5·10¹¹ pairs, or the rows do not fit in memory.
        """
        pairs, size = float(queries) * rows, rows * (12 * width + 200)
        if pairs > _MOST_PAIRS:
            hours = pairs * SECONDS_PER_PAIR / self.workers.workers / 3600
            raise InputError(
                f"--exact would compare {queries:,} rows with {rows:,} others each, about "
                f"{hours:,.0f} h. Ask fewer rows (--queries), or leave --exact out."
            )
        if size > allowance(self.memory):
            raise InputError(
                f"--exact keeps {rows:,} rows in memory, which takes {shown(size)}. Leave --exact "
                "out, or allow more (--memory)."
            )
