"""Progress below a notebook's cell, where a library that can draw there is installed."""

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Final

from ldpaudit.work.progress import NoProgress, Progress

_KERNEL: Final = "IPKernelApp"


@contextmanager
def notebook_progress(given: Progress | None) -> Iterator[Progress]:
    """Give the progress that was given; without one a bar in a notebook, and nothing elsewhere.

    The bar is tqdm's where it is installed, else rich's, which needs ipywidgets.
    """
    bar = None if given is not None else _bar()
    if bar is None:
        yield given or NoProgress()
        return
    try:
        yield _InNotebook(bar)
    finally:
        with suppress(Exception):  # The work is done: no bar changes that.
            bar.close()


def in_notebook() -> bool:
    """Return whether this process is a notebook's kernel; nothing is imported for it."""
    module = sys.modules.get("IPython")
    shell = None if module is None else module.get_ipython()
    return shell is not None and _KERNEL in shell.config


def _bar() -> Any:
    """Return a bar that can be drawn here, or None."""
    if not in_notebook():
        return None
    with suppress(Exception):  # No library that draws is a reason to stop.
        if find_spec("tqdm"):
            return import_module("tqdm.auto").tqdm(total=1, bar_format="{desc} {bar}", leave=False)
        if find_spec("ipywidgets"):
            return _Rich()
    return None


class _Rich:
    """A bar of rich with the few methods of tqdm's that are used."""

    def __init__(self) -> None:
        from rich.progress import BarColumn, Progress, TextColumn

        self._bar = Progress(TextColumn("{task.description}", markup=False), BarColumn())
        self._task = self._bar.add_task("", total=1)
        self._bar.start()
        self.total: float = 1
        self.n: float = 0

    def set_description_str(self, text: str) -> None:
        self._bar.update(self._task, description=text)

    def refresh(self) -> None:
        self._bar.update(self._task, completed=self.n, total=self.total, refresh=True)

    def close(self) -> None:
        self._bar.stop()


class _InNotebook(Progress):
    """Shows phases where there are some, else each step; remarks are notes of the result."""

    def __init__(self, bar: Any) -> None:
        self._bar = bar
        self._names: Sequence[str] = ()

    def step(self, text: str) -> None:
        if not self._names:
            self._shown(text, 0, 1)

    def advance(self, done: int, total: int) -> None:
        if not self._names:
            self._bar.n, self._bar.total = done, max(total, 1)
            self._bar.refresh()

    def phases(self, names: Sequence[str]) -> None:
        self._names = names

    def phase(self, number: int) -> None:
        count = len(self._names)
        self._shown(f"{number + 1} of {count}: {self._names[number]}", number, count)

    def _shown(self, text: str, done: int, total: int) -> None:
        self._bar.n, self._bar.total = done, total
        self._bar.set_description_str(text)
        self._bar.refresh()
