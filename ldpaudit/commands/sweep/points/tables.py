"""The data of a sweep in memory: rows that are released in simulations, and rows held out."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from ldpaudit.commands.privatize.labels.survey import Survey
from ldpaudit.commands.privatize.mechanism import DeclaredLabels, declared_labels
from ldpaudit.commands.privatize.places import check_columns
from ldpaudit.commands.privatize.reading import survey_labels
from ldpaudit.commands.privatize.request import ColumnRequest
from ldpaudit.commands.sweep.request import SweepRequest
from ldpaudit.datasets.beside.priors import LabelPrior, read_prior
from ldpaudit.datasets.formats.batches import BatchSource, read_whole
from ldpaudit.datasets.formats.columns import computed_type, decoded, value_type
from ldpaudit.datasets.formats.memory_batches import MemoryBatches
from ldpaudit.datasets.formats.opening import open_batches
from ldpaudit.errors import InputError
from ldpaudit.randomness import child_generator
from ldpaudit.running.progress import NoProgress, Progress


@dataclass(frozen=True, eq=False)
class SweepTables:
    """The data of every point of a sweep.

    Attributes
    ----------
    request : SweepRequest
    seed : int
        The sweep's root seed.
    everything : MemoryBatches
        All rows of the data, from which the labels are surveyed.
    training : pyarrow.Table
        The n rows that are released in simulations, with the true label.
    test : pyarrow.Table or str
        The rows that learners are tested on, or their file.
    prior : LabelPrior or None
    columns : sequence of str
        All columns of the data's file, whose places messages tell.
    """

    request: SweepRequest
    seed: int
    everything: MemoryBatches
    training: pa.Table
    test: Any
    prior: LabelPrior | None
    columns: Sequence[str]
    _surveys: dict[str, tuple[DeclaredLabels, Survey]] = field(default_factory=dict)

    @property
    def features(self) -> pa.Schema:
        """The features' columns and types."""
        label = self.request.label
        return pa.schema([column for column in self.training.schema if column.name != label])

    def survey(self, request: ColumnRequest) -> tuple[DeclaredLabels, Survey]:
        """Return the labels as a mechanism needs them, read once for each mechanism.

        Raises
        ------
        InputError
            If a label is missing, or the mechanism does not take it.
        """
        if request.mechanism not in self._surveys:
            stated = declared_labels(request, None if self.prior is None else self.prior.labels)
            survey = survey_labels(request, stated, self.everything, NoProgress())
            self._surveys[request.mechanism] = stated, survey
        return self._surveys[request.mechanism]


def read_tables(
    request: SweepRequest,
    seed: int | None = None,
    progress: Progress | None = None,
    source: BatchSource | None = None,
) -> SweepTables:
    """Read the data and split it; ``seed`` defaults to the request's, else is 0.

    ``source``: the data, where they are read already.

    Raises
    ------
    InputError
        If a column is missing, or there are too few rows to hold some out.
    """
    source = source or opened_data(request, progress)
    check_columns(request, [request.label], source)
    whole = read_whole(source).drop_columns(list(request.drop))
    for place, kind in enumerate(whole.schema.types):
        if computed_type(value_type(kind)) != value_type(kind):
            whole = whole.set_column(place, whole.schema.names[place], decoded(whole.column(place)))
    whole = whole.unify_dictionaries().combine_chunks()
    if seed is None:
        # Not derived from the data: it is shown, and would tell whether a guess of them is right.
        seed = request.seed or 0
    training, test = whole, request.test
    if request.test is None:
        training, test = _split(whole, request.test_share, seed)
    prior = None if request.prior is None else read_prior(request.prior, request)
    rows = MemoryBatches(whole, source.location)
    return SweepTables(request, seed, rows, training, test, prior, source.schema.names)


def opened_data(request: SweepRequest, progress: Progress | None) -> BatchSource:
    """Return the data, and say how they are read."""
    source = open_batches(request.data, request)
    if source.remark and progress is not None:
        progress.remark(f"Read the data as {source.remark}.")
    return source


def _split(table: pa.Table, share: float, seed: int) -> tuple[pa.Table, pa.Table]:
    """Return the rows to release and those held out, each in the order of the data."""
    n = table.num_rows
    held_out = round(share * n)
    if not 1 <= held_out < n:
        raise InputError(f"A share of {share:g} of {n} rows leaves none to release or to test on.")
    order = child_generator(seed, "sweep", "split").permutation(n)
    test, training = np.sort(order[:held_out]), np.sort(order[held_out:])
    return table.take(pa.array(training)), table.take(pa.array(test))
