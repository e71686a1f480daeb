"""Importing a user's function by name, and drawing outputs from it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ldpaudit.commands.black_box.estimators.forms import OutputForm
from ldpaudit.commands.black_box.estimators.outputs import OutputTable, as_outputs, joined_columns
from ldpaudit.errors import InputError
from ldpaudit.files.loading import load_object, where


@dataclass(frozen=True)
class Randomizer:
    """A user's randomizer on some inputs.

    Attributes
    ----------
    function : callable
        ``function(value, n, rng)`` returns n outputs.
    features : callable or None
        ``features(outputs, value)`` returns one or more numbers for each output: what is public
        about the randomizer, such as whether a hash maps the value to the report.
    inputs : tuple
        The k values.
    """

    function: Callable[..., Any]
    features: Callable[..., Any] | None
    inputs: tuple[Any, ...]

    def draw(
        self,
        chosen: int,
        n: int,
        rng: np.random.Generator,
        used: Sequence[int] | None = None,
        form: OutputForm | None = None,
    ) -> OutputTable:
        """Draw n outputs of one of the inputs.

        Parameters
        ----------
        chosen, n : int
            Which input, and how many outputs.
        rng : numpy.random.Generator
        used : sequence of int or None
            The inputs whose features are needed; the others stay zero. None: all.
        form : OutputForm or None
            Outputs of another form are left out. None: any form.

        Returns
        -------
        array of shape (n, d)
            The outputs, or their features for every input side by side.
        """
        returned = _guarded(self.function, "function", self.inputs[chosen], n, rng)
        if self.features is None:
            return as_outputs(returned, n) if form is None else form.read(returned, n)
        table = self._described(returned, n, used)
        return table if form is None else form.read(table, n)

    def _described(self, returned: Any, n: int, used: Sequence[int] | None) -> OutputTable:
        table = as_outputs(returned, n)
        needed = range(len(self.inputs)) if used is None else used
        blocks = {i: self._features(returned, table, i, n) for i in needed}
        empty = np.zeros_like(next(iter(blocks.values())))
        return joined_columns([blocks.get(i, empty) for i in range(len(self.inputs))])

    def _features(self, returned: Any, table: OutputTable, i: int, n: int) -> OutputTable:
        # Lists of reports come as a table, so that a feature function can take columns of them.
        outputs = returned if isinstance(returned, np.ndarray) else table
        return as_outputs(_guarded(self.features, "feature function", outputs, self.inputs[i]), n)


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


def _guarded(call: Callable[..., Any] | None, role: str, *arguments: Any) -> Any:
    assert call is not None
    try:
        return call(*arguments)
    except BaseException as error:
        raise InputError(f"The {role} must return outputs; it raised {where(error)}.") from None
