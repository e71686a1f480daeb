"""A user's own synthetic table as a generator: its rows, drawn with replacement."""

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
import pyarrow as pa

from ldpaudit.device import DeviceName
from ldpaudit.errors import InputError
from ldpaudit.progress import Progress
from ldpaudit.release import IndexArray, IntArray
from ldpaudit.synthesis.codecs.table import check_same_schema
from ldpaudit.synthesis.interface import (
    VERSION,
    TrainedOn,
    check_labels,
    check_training_set,
    not_fitted,
)


class UserTable:
    """Synthetic rows that came from elsewhere: public data, or a generator of the user's own.

    Parameters
    ----------
    table : pyarrow.Table
        Feature columns of s synthetic rows.
    labels : int32 array of shape (s,)
        Their class codes.
    trained_on : {"public", "private"}
        Whose rows they were made from, as the user states it.
    """

    name = "table"

    def __init__(self, table: pa.Table, labels: IntArray, *, trained_on: TrainedOn) -> None:
        self.trained_on = trained_on
        self._table = table
        self._labels = labels
        self._rows: tuple[IndexArray, ...] = ()

    @property
    def warnings(self) -> tuple[str, ...]:
        """Nothing: there is no fit."""
        return ()

    def fit(
        self,
        table: pa.Table,
        labels: IntArray,
        classes: int,
        *,
        rng: np.random.Generator,
        progress: Progress | None = None,
        device: DeviceName = "auto",
    ) -> Self:
        """Check the synthetic rows against a table with the real ones' columns and classes.

        Nothing is learnt from ``table``.

        Raises
        ------
        InputError
            If columns, their order or their types differ, or a class has no synthetic row.
        """
        del rng, progress, device
        check_training_set(table, labels, classes)
        check_same_schema(table.schema, self._table.schema, "The synthetic table")
        codes = check_labels(self._labels, classes, self._table.num_rows)
        rows = tuple(np.flatnonzero(codes == y).astype(np.int64) for y in range(classes))
        empty = sum(not len(found) for found in rows)
        if empty:
            raise InputError(
                f"The synthetic table must have rows of every class; {empty} of {classes} have "
                f"none."
            )
        self._table = self._table.cast(table.schema.remove_metadata())
        self._rows = rows
        return self

    def sample(self, labels: IntArray, rng: np.random.Generator) -> pa.Table:
        """Draw one of its class's rows for each label, with replacement."""
        if not self._rows:
            raise not_fitted()
        codes = check_labels(labels, len(self._rows))
        chosen = np.zeros(len(codes), dtype=np.int64)
        for y, rows in enumerate(self._rows):
            of_class = np.flatnonzero(codes == y)
            chosen[of_class] = rows[rng.integers(0, len(rows), len(of_class))]
        return self._table.take(pa.array(chosen))

    def describe(self) -> Mapping[str, Any]:
        """Return name, version, number of synthetic rows and whose rows they were made from."""
        return {
            "name": self.name,
            "version": VERSION,
            "seed": None,
            "rows": self._table.num_rows,
            "trained_on": self.trained_on,
        }
