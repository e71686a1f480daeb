"""Importing a user's function by name, and drawing outputs from it."""

import importlib
import importlib.util
import os
import sys
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from ldpaudit.commands.black_box.estimators.forms import OutputForm
from ldpaudit.commands.black_box.estimators.outputs import OutputTable, as_outputs, joined_columns
from ldpaudit.errors import InputError


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
    """Import ``MODULE:FUNCTION``, or ``FILE.py:FUNCTION``.

    Parameters
    ----------
    name : str
        The function may be an attribute of an object: ``module:Class.method``.
    path : sequence of str
        Where modules are searched first.

    Raises
    ------
    InputError
        If the module cannot be imported, or has no such function.
    """
    module_name, colon, attribute = name.rpartition(":")
    if not (colon and module_name and attribute):
        raise InputError("The function must be given as MODULE:FUNCTION, for instance client:grr.")
    sys.path[:0] = [place for place in path if place not in sys.path]
    try:
        function: Any = _import(module_name)
    except InputError:
        raise
    except BaseException as error:
        raise InputError(
            f"The module {module_name!r} cannot be imported: {_where(error)}."
        ) from None
    for part in attribute.split("."):
        if not hasattr(function, part):
            raise InputError(f"The module {module_name!r} has no {attribute!r}.")
        function = getattr(function, part)
    if not callable(function):
        raise InputError(f"{name!r} must be a function; it is of type {type(function).__name__}.")
    return function  # type: ignore[no-any-return]


def _import(module: str) -> ModuleType:
    if not module.endswith(".py"):
        return importlib.import_module(module)
    file = Path(module)
    if not file.is_file():
        raise InputError(f"There is no file {file.name!r}.")
    spec = importlib.util.spec_from_file_location(file.stem, file)
    assert spec is not None
    assert spec.loader is not None
    loaded = importlib.util.module_from_spec(spec)
    sys.modules[file.stem] = loaded
    spec.loader.exec_module(loaded)
    return loaded


def _guarded(call: Callable[..., Any] | None, role: str, *arguments: Any) -> Any:
    assert call is not None
    try:
        return call(*arguments)
    except BaseException as error:
        raise InputError(f"The {role} must return outputs; it raised {_where(error)}.") from None


def _where(error: BaseException) -> str:
    """Return an exception's type and the line of the user's code: its text may hold data."""
    frames = traceback.extract_tb(error.__traceback__)
    foreign = ("<", os.path.dirname(__file__), os.path.dirname(os.__file__))  # noqa: PTH120
    places = [
        frame
        for frame in frames
        # Compiled code names its sources by relative paths.
        if os.path.isabs(frame.filename) and not frame.filename.startswith(foreign)  # noqa: PTH117
    ]
    place = f" at line {places[-1].lineno} of {Path(places[-1].filename).name}" if places else ""
    return f"{type(error).__name__}{place}"
