"""Tasks in processes beside this one, below one memory limit."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from ldpaudit.tasks.interface import Answer, Pool
from ldpaudit.tasks.parcels import opened, parcel
from ldpaudit.tasks.processes import Processes

PREPARE: Final = "ldpaudit.tasks.local:prepare"


@dataclass(frozen=True)
class LocalProcesses(Pool):
    """Tasks in processes.

    Attributes
    ----------
    processes : Processes
        Made with :data:`PREPARE`; whoever made them ends them.
    folder : Path
        Where what tasks share is put.
    """

    processes: Processes
    folder: Path

    @property
    def workers(self) -> int:
        """How many processes there are at most."""
        return self.processes.most

    def answers(
        self, function: Callable[[Any, Any], Any], items: Sequence[Any], shared: Any = None
    ) -> Iterator[tuple[int, Answer]]:
        """Yield the number and the answer of each item as it is done, in any order."""
        with parcel(self.folder, (function, items, shared)) as place:
            yield from self.processes.run([(place, number) for number in range(len(items))])


def prepare(_setup: None) -> Callable[[tuple[Path, int]], Any]:
    """Return what does one task in a process."""
    return _do


def _do(task: tuple[Path, int]) -> Any:
    place, number = task
    function, items, shared = opened(place)
    return function(items[number], shared)
