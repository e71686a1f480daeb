"""Simulated releases: what privatize would write at a point, as a table in memory."""

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
from ldpaudit.commands.privatize.provenance import provenance, released_schema
from ldpaudit.commands.privatize.request import PrivatizeRequest
from ldpaudit.commands.privatize.row_release import RowRelease, row_release
from ldpaudit.commands.sweep.grid import Point
from ldpaudit.commands.sweep.points.tables import SweepTables
from ldpaudit.datasets.formats.batches import bare_schema
from ldpaudit.mechanisms.interface import Mechanism
from ldpaudit.randomness import child_generator, seed_from
from ldpaudit.release import Label

_POOL_PER_CLASS = 200
_MOST_POOLED = 20_000


@dataclass(frozen=True, eq=False)
class Simulation:
    """A release that nobody gets.

    Attributes
    ----------
    mechanism : Mechanism
    table : pyarrow.Table
        Features and released labels with the declaration, n rows.
    seed : int
        The point's root seed, for what is done with the table.
    """

    mechanism: Mechanism
    table: pa.Table
    seed: int


def point_seed(root: int, point: Point) -> int:
    """Return the seed of a point: the same whatever other points a sweep has."""
    return seed_from(child_generator(root, "sweep", point.key))


def mechanism_at(tables: SweepTables, point: Point) -> Mechanism:
    """Return the mechanism of a point.

    Raises
    ------
    InputError
        If the labels or the prior do not fit it, or its ε would be infinite.
    """
    asked = tables.request.privatized(point, 0)
    return _built(tables, asked)[0]


def _built(tables: SweepTables, asked: PrivatizeRequest) -> tuple[Mechanism, Survey]:
    stated, survey = tables.survey(asked)

    def prior(classes: tuple[Label, ...]) -> Prior:
        return choose_prior(asked, tables.prior, survey, classes)

    return build(asked, stated, survey.domain.classes, prior), survey


def simulate(tables: SweepTables, point: Point, fitted: FittedGenerator | None) -> Simulation:
    """Apply a point's mechanism to the training rows, with seeded draws.

    Parameters
    ----------
    tables : SweepTables
    point : Point
    fitted : FittedGenerator or None
        What makes synthetic rows, where the mechanism needs them and no table was given.
    """
    seed = point_seed(tables.seed, point)
    asked = tables.request.privatized(point, seed)
    mechanism, survey = _built(tables, asked)
    label = tables.training.schema.field(asked.label)
    own = fitted if asked.generator is not None else None
    rows = row_release(asked, mechanism, survey, label, tables.features, own)
    released = rows.schema(tables.features)
    names = tables.training.schema.names
    fields = [
        pa.field(n, rows.label_type if n == asked.label else released.field(n).type) for n in names
    ]
    said = provenance(asked, mechanism, survey, None, own)
    schema = released_schema(fields, asked.label, mechanism, said)
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
    """Return synthetic rows with the label that each stands for; None where there are none.

    The user's table where one was given, which is then the law of the synthetic rows itself; else
    rows of the generator that no release holds, equally many of each label.
    """
    asked = tables.request.privatized(point, 0)
    if asked.synthetic is not None or fitted is None or asked.generator is None:
        return asked.synthetic
    _, survey = tables.survey(asked)
    k = len(survey.domain.classes)
    most = max(min(tables.training.num_rows, _MOST_POOLED), _POOL_PER_CLASS * k)
    codes = np.repeat(np.arange(k, dtype=np.int32), most // k)
    made = fitted.generator.sample(codes, child_generator(tables.seed, "sweep", "pool"))
    kind = bare_type(tables.training.schema.field(asked.label).type)
    values = output_array(survey.domain.classes, kind, survey.found).take(pa.array(codes))
    return made.append_column(asked.label, values)


def true_table(tables: SweepTables) -> pa.Table:
    """Return the training rows as they are, without metadata."""
    return tables.training.cast(bare_schema(tables.training.schema))
