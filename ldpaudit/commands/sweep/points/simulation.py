"""Simulated releases: the table that ``privatize`` would write at a point, in memory."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from ldpaudit.commands.privatize.features.generated_rows import FittedGenerator
from ldpaudit.commands.privatize.labels.domains import bare_type
from ldpaudit.commands.privatize.labels.priors import Prior, choose_prior
from ldpaudit.commands.privatize.labels.release import output_array
from ldpaudit.commands.privatize.labels.survey import Survey
from ldpaudit.commands.privatize.mechanism import build
from ldpaudit.commands.privatize.private_columns import PrivateColumn, PrivateColumns
from ldpaudit.commands.privatize.provenance import provenance, released_schema
from ldpaudit.commands.privatize.request import ColumnRequest
from ldpaudit.commands.privatize.row_release import RowRelease, row_release
from ldpaudit.commands.sweep.grid import Point
from ldpaudit.commands.sweep.points.tables import SweepTables
from ldpaudit.datasets.formats.tabular import bare_schema
from ldpaudit.mechanisms.interface import Mechanism
from ldpaudit.randomness import child_generator, seed_from
from ldpaudit.release import Label

_POOL_PER_CLASS = 200
_MOST_POOLED = 20_000


@dataclass(frozen=True, eq=False)
class Simulation:
    """A simulated release: features and released labels with the declaration, n rows.

    ``seed`` is the point's root seed, for everything done with the table.
    """

    mechanism: Mechanism
    table: pa.Table
    seed: int


def point_seed(root: int, point: Point) -> int:
    """Return the seed of a point: the same in every sweep with this root."""
    return seed_from(child_generator(root, "sweep", point.key))


def mechanism_at(tables: SweepTables, point: Point) -> Mechanism:
    """Return the mechanism of a point.

    Raises
    ------
    InputError
        If the labels or the prior do not fit it, or its ε would be infinite.
    """
    return _built(tables, tables.request.privatized(point, 0))[0]


def _built(tables: SweepTables, request: ColumnRequest) -> tuple[Mechanism, Survey]:
    stated, survey = tables.survey(request)

    def prior(classes: tuple[Label, ...]) -> Prior:
        return choose_prior(request, tables.prior, survey, classes)

    return build(request, stated, survey.domain.classes, prior), survey


def simulate(tables: SweepTables, point: Point, fitted: FittedGenerator | None) -> Simulation:
    """Apply a point's mechanism to the training rows, with seeded draws.

    ``fitted`` makes synthetic rows where the mechanism needs them and there is no table of them.
    """
    seed = point_seed(tables.seed, point)
    request = tables.request.privatized(point, seed)
    mechanism, survey = _built(tables, request)
    label = tables.training.schema.field(request.label)
    generator = fitted if request.generator is not None else None
    column = PrivateColumn(request, label, survey, mechanism)
    rows = row_release(column, tables.features, generator)
    released = rows.schema(tables.features)
    fields = [
        pa.field(n, rows.label_type if n == label.name else released.field(n).type)
        for n in tables.training.schema.names
    ]
    columns = PrivateColumns((column,))
    schema = released_schema(fields, columns, provenance(request, columns, generator))
    batches = list(_batches(tables, rows, survey, schema))
    return Simulation(mechanism, pa.Table.from_batches(batches, schema), seed)


def _batches(
    tables: SweepTables, rows: RowRelease, survey: Survey, schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    name, features = tables.request.label, tables.features.names
    for batch in tables.training.to_batches():
        label = batch.column(name)
        new, released = rows.release(batch.select(features), label, survey.domain.codes(label))
        columns = [released if n == name else new.column(n) for n in schema.names]
        yield pa.RecordBatch.from_arrays(columns, schema=schema)


def synthetic_pool(
    tables: SweepTables, point: Point, fitted: FittedGenerator | None
) -> pa.Table | str | None:
    """Return labelled synthetic rows; None where there are none.

    The user's table, which is then the distribution of the synthetic rows; else new rows of the
    generator that are in no release, equally many of each label.
    """
    request = tables.request.privatized(point, 0)
    if request.synthetic is not None or fitted is None or request.generator is None:
        return request.synthetic
    _, survey = tables.survey(request)
    k = len(survey.domain.classes)
    most = max(min(tables.training.num_rows, _MOST_POOLED), _POOL_PER_CLASS * k)
    codes = np.repeat(np.arange(k, dtype=np.int32), most // k)
    rows = fitted.generator.sample(codes, child_generator(tables.seed, "sweep", "pool"))
    kind = bare_type(tables.training.schema.field(request.label).type)
    values = output_array(survey.domain.classes, kind, survey.found).take(pa.array(codes))
    return rows.append_column(request.label, values)


def true_table(tables: SweepTables) -> pa.Table:
    """Return the training rows without metadata."""
    return tables.training.cast(bare_schema(tables.training.schema))
