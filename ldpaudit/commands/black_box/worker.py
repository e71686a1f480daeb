"""The process in which a user's randomizer runs: ``python -m`` this module, with a descriptor.

A process of its own, so that a randomizer that hangs can be ended, and several draw at once. It
reads tasks from a pipe and answers each with a result or one line about what went wrong.
"""

import os
import sys
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

from ldpaudit.commands.black_box.estimators.events import Event
from ldpaudit.commands.black_box.estimators.forms import OutputForm
from ldpaudit.commands.black_box.loading import Randomizer, load_function
from ldpaudit.errors import LdpAuditError
from ldpaudit.randomness import child_generator


@dataclass(frozen=True)
class Setting:
    """What a worker is told first.

    Attributes
    ----------
    function, features : str
        ``MODULE:FUNCTION``; no features where the name is empty.
    inputs : tuple
    path : tuple of str
        Where modules are looked for.
    """

    function: str
    features: str
    inputs: tuple[Any, ...]
    path: tuple[str, ...]


@dataclass(frozen=True)
class Task:
    """Outputs to be drawn, and perhaps counted.

    Attributes
    ----------
    chosen : int
        Which input.
    n : int
        How many outputs.
    seed : int
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


def serve(connection: Any) -> None:
    """Answer tasks until the pipe closes."""
    try:
        setting: Setting = connection.recv()
        function = load_function(setting.function, setting.path)
        features = load_function(setting.features, ()) if setting.features else None
    except LdpAuditError as error:
        connection.send((False, str(error)))
        return
    randomizer = Randomizer(function, features, setting.inputs)
    connection.send((True, None))
    while True:
        task: Task = connection.recv()
        try:
            connection.send((True, task.run(randomizer)))
        except LdpAuditError as error:
            connection.send((False, str(error)))


def _end_with_parent() -> None:
    parent = os.getppid()
    while os.getppid() == parent:
        time.sleep(0.5)
    os._exit(1)


def main() -> None:
    """Serve on the file descriptor named on the command line."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    connection = Connection(int(sys.argv[1]))
    with suppress(EOFError, BrokenPipeError):
        serve(connection)


if __name__ == "__main__":
    main()
