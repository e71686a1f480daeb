"""Generators of other packages: their faults are one line, and what they return is checked."""

import json
import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.metadata import EntryPoint
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ldpaudit.datasets.formats.tables import LISTS, is_any
from ldpaudit.datasets.names import called
from ldpaudit.device import DeviceName
from ldpaudit.doors import Generator, InputError, IntArray, Progress
from ldpaudit.generators import TrainedOn, check_labels, not_fitted
from ldpaudit.plugins import check_name, check_one, imported, package_of, watched

# The chance that a column with some values has none in as many rows: a smaller one is none.
_CHANCE: Final = 1e-9


class ForeignGenerator(Generator):
    """A generator of another package, by its entry point."""

    def __init__(self, point: EntryPoint, trained_on: TrainedOn = "private") -> None:
        super().__init__(trained_on)
        self._maker, self._package = load_maker(point), package_of(point)
        self.name: str = point.name  # type: ignore[misc]
        self._schema: pa.Schema | None = None
        self._classes = 0
        self._filled: dict[str, float] = {}
        self._finite: list[str] = []
        with self.watched():
            self._own = self._maker(trained_on=trained_on)

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Say in one line, which names the generator, what goes wrong in its code."""
        with watched("generator", self.name, "nothing was released"):
            yield

    def _learn(
        self,
        table: pa.Table,
        codes: IntArray,
        classes: int,
        rng: np.random.Generator,
        progress: Progress,
        device: DeviceName,
    ) -> None:
        with self.watched():
            self._own.fit(table, codes, classes, rng=rng, progress=progress, device=device)
            said: Any = self._own.warnings
            self.warnings = (said,) if isinstance(said, str) else tuple(map(str, said))
            json.dumps(dict(self._own._kind()))
        self._schema, self._classes = table.schema, classes
        self._filled = {name: _filled(table.column(name)) for name in table.column_names}
        self._finite = [n for n in table.column_names if not _infinite(table.column(n))]

    def sample(self, labels: IntArray, rng: np.random.Generator) -> pa.Table:
        if self._schema is None:
            raise not_fitted()
        codes = check_labels(labels, self._classes)
        with self.watched():
            drawn = self._own.sample(codes, rng)
        must = f"The plug-in {self.name!r} (generator) must return a table"
        if not isinstance(drawn, pa.Table):
            raise InputError(f"{must}. Got {type(drawn).__name__} instead.")
        if len(drawn) != len(codes):
            raise InputError(f"{must} of {len(codes):,} rows. Got {len(drawn):,} instead.")
        same = drawn.schema.names == self._schema.names and drawn.schema.types == self._schema.types
        if not same:
            raise InputError(f"{must} with the columns and types of the table it was fitted on.")
        self._check_values(drawn, must)
        return drawn

    def _check_values(self, drawn: pa.Table, must: str) -> None:
        """Check that what was drawn could be features: no infinite ones, no column of nothing."""
        infinite = [name for name in self._finite if _infinite(drawn.column(name))]
        if infinite:
            which = called(infinite[0], drawn.column_names)
            raise InputError(f"{must} of finite numbers; {which} holds infinite ones.")
        for name, share in self._filled.items():
            impossible = share >= 1 or len(drawn) * math.log1p(-share) < math.log(_CHANCE)
            if len(drawn) and share and impossible and not _filled(drawn.column(name)):
                which = called(name, drawn.column_names)
                raise InputError(f"{must} with values in every column; {which} holds none.")

    def _kind(self) -> Mapping[str, Any]:
        with self.watched():
            return {**self._own._kind(), **self._package}

    def state(self) -> Mapping[str, Any]:
        if self._schema is None:
            raise not_fitted()
        with self.watched():
            own = self._own.state()
        return {
            "trained_on": self.trained_on,
            "rows": self._rows,
            "classes": self._classes,
            "warnings": list(self.warnings),
            "schema": self._schema,
            "filled": self._filled,
            "finite": self._finite,
            "own": own,
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> "ForeignGenerator":
        raise NotImplementedError

    @classmethod
    def restored(cls, point: EntryPoint, state: Mapping[str, Any]) -> "ForeignGenerator":
        """Return the fitted generator of an entry point whose :meth:`state` this is."""
        made = cls(point, state["trained_on"])
        made._rows, made._classes = state["rows"], state["classes"]
        made.warnings, made._schema = tuple(state["warnings"]), state["schema"]
        made._filled, made._finite = state.get("filled", {}), state.get("finite", [])
        with made.watched():
            own: Any = made._maker.from_state(state["own"])
        if not isinstance(own, Generator):
            raise InputError(
                f"The plug-in {point.name!r} (generator) must make a generator of its state. "
                f"Got {type(own).__name__} instead."
            )
        made._own = own
        return made


def _floats(column: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """Return the numbers of a column, also those in its lists; None where it has none."""
    while is_any(column.type, *LISTS):
        column = pc.list_flatten(column)
    return column.cast(pa.float64()) if pa.types.is_floating(column.type) else None


def _infinite(column: pa.ChunkedArray) -> bool:
    """Return whether a column holds an infinite number."""
    numbers = _floats(column)
    return numbers is not None and bool(pc.any(pc.is_inf(numbers)).as_py())


def _filled(column: pa.ChunkedArray) -> float:
    """Return the share of a column's values that are not missing."""
    numbers = _floats(column)
    some = column if numbers is None else numbers
    nan = 0 if numbers is None else pc.sum(pc.is_nan(numbers)).as_py() or 0
    return (len(some) - some.null_count - nan) / len(some) if len(some) else 0.0


def load_maker(point: EntryPoint) -> type[Generator]:
    """Return the class of a generator of another package (InputError where it is none)."""
    check_one("generator", point.name)
    found = imported("generator", point)
    if not (isinstance(found, type) and issubclass(found, Generator)):
        raise InputError(
            f"The plug-in {point.name!r} (generator) must be a class that derives from "
            "ldpaudit.doors.Generator."
        )
    check_name("generator", point.name, getattr(found, "name", None))
    return found
