"""The strata: values of a public column, each with a channel of its own."""

from collections.abc import Collection

import pyarrow as pa

from ldpaudit.commands.privatize.labels.domains import (
    ClassDomain,
    bare_type,
    check_label_type,
    label_values,
)
from ldpaudit.commands.privatize.labels.survey import Tally
from ldpaudit.datasets.labels import read_texts
from ldpaudit.datasets.names import quoted
from ldpaudit.errors import InputError


class StratumCount:
    """Reads the column of strata, batch by batch.

    Parameters
    ----------
    by : str
        The column.
    kind : pyarrow.DataType
        Its type.
    values : collection of str
        The strata: numbers where all of them are written as numbers.
    """

    def __init__(self, by: str, kind: pa.DataType, values: Collection[str]) -> None:
        check_label_type(kind, numeric=False)
        self.by, self._values = by, read_texts(tuple(values))
        self._tally = Tally(bare_type(kind))

    def add(self, column: pa.Array) -> None:
        """Add the values of further rows."""
        self._tally.add(column)

    def domain(self) -> ClassDomain:
        """Return the strata as codes.

        Raises
        ------
        InputError
            If a row has no value, or one without a stratum; rows are counted.
        """
        found, counts = self._tally.found, self._tally.counts
        domain = ClassDomain(self._values, found, label_values(found))
        lost = self._tally.missing + int(counts[domain.codes(found) < 0].sum())
        if lost:
            raise InputError(
                f"Every row must have one of the {len(self._values)} strata in the column "
                f"{quoted(self.by)}; {lost:,} row(s) have another value or none."
            )
        return domain
