"""Drawing a randomizer's outputs, and counting events, in child processes."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from ldpaudit.commands.black_box.estimators.events import Event
from ldpaudit.commands.black_box.estimators.forms import OutputForm
from ldpaudit.commands.black_box.loading import Randomizer, load_function
from ldpaudit.errors import InputError
from ldpaudit.randomness import child_generator
from ldpaudit.running.progress import Progress
from ldpaudit.tasks.interface import Answer
from ldpaudit.tasks.processes import Processes

PREPARE: Final = "ldpaudit.commands.black_box.drawing:prepare"


@dataclass(frozen=True)
class RandomizerPlace:
    """Where a randomizer is imported from, and its inputs.

    ``features`` is empty where there is no feature function; modules are searched in ``path``.
    """

    function: str
    features: str
    inputs: tuple[Any, ...]
    path: tuple[str, ...]


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
        The inputs whose features the events need.
    form : OutputForm or None
        The form of the outputs that the events were chosen on.
    """

    chosen: int
    n: int
    seed: int
    key: tuple[str, ...]
    events: tuple[Event, ...] = ()
    used: tuple[int, ...] | None = None
    form: OutputForm | None = None

    def run(self, randomizer: Randomizer) -> Any:
        """Return the outputs, or each event's counts of guesses."""
        rng = child_generator(self.seed, "black-box", *self.key)
        table = randomizer.draw(self.chosen, self.n, rng, self.used, self.form)
        return [event.counts(table) for event in self.events] if self.events else table

    def checked(self, content: Any) -> Any:
        """Return what came back, if it can be the result: it comes from the client's process.

        Raises
        ------
        InputError
            If it cannot.
        """
        if self.events:
            fits = len(content) == len(self.events) and all(
                min(counts) >= 0 and sum(counts) <= self.n for counts in content
            )
        else:
            fits = isinstance(content, np.ndarray) and content.shape[1] > 0
            fits = fits and len(content) == self.n
        if not fits:
            raise InputError("The function's process answered with something that is no answer.")
        return content


def prepare(place: RandomizerPlace) -> Callable[[DrawTask], Any]:
    """Import a randomizer, and return what does a task with it."""
    function = load_function(place.function, place.path)
    features = load_function(place.features, ()) if place.features else None
    randomizer = Randomizer(function, features, place.inputs)
    return lambda task: task.run(randomizer)


def drawn(pool: Processes, tasks: Sequence[DrawTask], progress: Progress) -> list[Any]:
    """Run tasks and return their results in order.

    Raises
    ------
    InputError
        If the randomizer raises, returns what cannot be read, ends its process or takes longer
        than the time limit.
    """
    results: list[Any] = [None] * len(tasks)
    for done, (number, answer) in enumerate(pool.run(tasks), 1):
        if answer.reason:
            raise InputError(_in_words(answer, pool.seconds))
        results[number] = tasks[number].checked(answer.content)
        progress.advance(done, len(tasks))
    return results


def _in_words(answer: Answer, seconds: float) -> str:
    if answer.late:
        return (
            f"The function must return within {seconds:g} s; a call did not and was ended. Raise "
            f"--timeout if it is only slow."
        )
    if answer.status is not None:
        return f"The function must return outputs; it ended its process (status {answer.status})."
    return answer.reason
