"""A user's own synthetic table as a generator: its rows, drawn with replacement."""

import numpy as np
import pyarrow as pa

from ldpaudit.errors import InputError
from ldpaudit.release import IndexArray, IntArray
from ldpaudit.synthesis.codecs.table import check_same_schema
from ldpaudit.synthesis.interface import Generator, TrainedOn, Training, check_labels, not_fitted


class UserTable(Generator):
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
        super().__init__(trained_on)
        self._table = table
        self._labels = labels
        self._rows = table.num_rows
        self._rows_of: tuple[IndexArray, ...] = ()

    def _learn(self, training: Training) -> None:
        """Check the synthetic rows against a table with the real ones' columns and classes.

        Nothing is learnt from that table.

        Raises
        ------
        InputError
            If columns, their order or their types differ, or a class has no synthetic row.
        """
        table, classes = training.table, training.classes
        check_same_schema(table.schema, self._table.schema, "The synthetic table")
        codes = check_labels(self._labels, classes, self._table.num_rows)
        rows = tuple(np.flatnonzero(codes == y).astype(np.int64) for y in range(classes))
        empty = sum(not len(some) for some in rows)
        if empty:
            raise InputError(
                f"The synthetic table must have rows of every class; {empty} of {classes} have "
                f"none."
            )
        self._table = self._table.cast(table.schema.remove_metadata())
        self._rows_of = rows

    def sample(self, labels: IntArray, rng: np.random.Generator) -> pa.Table:
        """Draw one of its class's rows for each label, with replacement."""
        if not self._rows_of:
            raise not_fitted()
        codes = check_labels(labels, len(self._rows_of))
        chosen = np.zeros(len(codes), dtype=np.int64)
        for y, rows in enumerate(self._rows_of):
            of_class = np.flatnonzero(codes == y)
            chosen[of_class] = rows[rng.integers(0, len(rows), len(of_class))]
        return self._table.take(pa.array(chosen))
