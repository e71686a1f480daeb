"""Drawing a randomizer's outputs, and counting events, in processes: it is the user's own code.

It runs with the rights of who starts the audit. A call that does not return is ended.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ldpaudit.commands.black_box.estimators.events import Event
from ldpaudit.commands.black_box.estimators.outputs import (
    OutputForm,
    OutputTable,
    as_outputs,
    joined_columns,
)
from ldpaudit.errors import InputError
from ldpaudit.plugins import load_object, where
from ldpaudit.randomness import child_generator
from ldpaudit.work.progress import Progress
from ldpaudit.work.tasks import Answer, Pool


@dataclass(frozen=True)
class DrawTask:
    """n outputs of one input (``chosen``) to be drawn, and perhaps counted.

    Attributes
    ----------
    key : tuple of str
        The name of the generator's child.
    events : tuple of Event
        What to count; empty: return the outputs themselves.
    used : tuple of int or None
        The inputs whose features the events need; None: all.
    form : OutputForm or None
        The form of the outputs that the events were chosen on; others are left out.
    """

    chosen: int
    n: int
    seed: int
    key: tuple[str, ...]
    events: tuple[Event, ...] = ()
    used: tuple[int, ...] | None = None
    form: OutputForm | None = None


@dataclass(frozen=True)
class Randomizer:
    """Where a randomizer is imported from, its feature function (or empty), and its inputs."""

    function: str
    features: str
    inputs: tuple[Any, ...]
    path: tuple[str, ...]

    @cached_property
    def _loaded(self) -> tuple[Callable[..., Any], Callable[..., Any] | None]:
        function = load_function(self.function, self.path)
        return function, load_function(self.features, ()) if self.features else None

    def draw(self, task: DrawTask) -> OutputTable:
        """Draw outputs; return them, or their features for every input side by side."""
        function, features = self._loaded
        n, rng = task.n, child_generator(task.seed, "black-box", *task.key)
        returned = _guarded(function, "function", self.inputs[task.chosen], n, rng)
        if features is not None:
            table = as_outputs(returned, n)
            # Lists of reports come as a table, so that a feature function can take its columns.
            outputs = returned if isinstance(returned, np.ndarray) else table
            every = range(len(self.inputs))
            blocks = {
                i: as_outputs(_guarded(features, "feature function", outputs, self.inputs[i]), n)
                for i in (every if task.used is None else task.used)
            }
            empty = np.zeros_like(next(iter(blocks.values())))
            table = joined_columns([blocks.get(i, empty) for i in every])
            return table if task.form is None else task.form.read(table, n)
        return as_outputs(returned, n) if task.form is None else task.form.read(returned, n)


def load_function(name: str, path: Sequence[str]) -> Callable[..., Any]:
    """Import ``MODULE:FUNCTION``, or ``FILE.py:FUNCTION``, with modules searched in ``path`` first.

    Raises
    ------
    InputError
        If the module cannot be imported, or has no such function.
    """
    function: Any = load_object(name, path, "function", "FUNCTION")
    if not callable(function):
        raise InputError(f"{name!r} must be a function; it is of type {type(function).__name__}.")
    return function  # type: ignore[no-any-return]


def _guarded(call: Callable[..., Any], role: str, *arguments: Any) -> Any:
    try:
        return call(*arguments)
    except BaseException as error:
        raise InputError(f"The {role} must return outputs; it raised {where(error)}.") from None


def drawn_here(task: DrawTask, randomizer: Randomizer) -> Any:
    """Do a task in this process: return the outputs, or each event's counts of guesses."""
    table = randomizer.draw(task)
    return [event.counts(table) for event in task.events] if task.events else table


def drawn(
    pool: Pool, randomizer: Randomizer, tasks: Sequence[DrawTask], progress: Progress
) -> list[Any]:
    """Do tasks in processes; return their results in order.

    Raises
    ------
    InputError
        If the randomizer raises, returns what cannot be read, ends its process or takes longer
        than the time limit.
    """
    results: list[Any] = [None] * len(tasks)
    for done, (number, answer) in enumerate(pool.answers(drawn_here, tasks, randomizer), 1):
        if answer.reason:
            raise InputError(_in_words(answer, pool.seconds))
        results[number] = answer.content
        progress.advance(done, len(tasks))
    return results


def _in_words(answer: Answer, seconds: float) -> str:
    if answer.late:
        return (
            f"The function must return within {seconds:g} s; a call did not and was ended. Raise "
            f"--timeout if it is only slow."
        )
    if answer.status:
        return f"The function must return outputs; it ended its process (status {answer.status})."
    return answer.reason
