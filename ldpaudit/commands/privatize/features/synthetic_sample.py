"""A synthetic sample to hand out with the release: rows of its generator, drawn independently."""

import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from ldpaudit.commands.privatize.features.generated_rows import FittedGenerator
from ldpaudit.commands.privatize.features.release import as_batch, unordered
from ldpaudit.commands.privatize.features.synthetic_rows import plain_schema
from ldpaudit.commands.privatize.labels.release import CodedRelease, coded_release
from ldpaudit.commands.privatize.labels.survey import Survey
from ldpaudit.commands.privatize.request import ColumnRequest
from ldpaudit.datasets.writing.tables import check_holds, is_text
from ldpaudit.errors import InputError
from ldpaudit.release import IntArray, Label

if TYPE_CHECKING:
    from ldpaudit.synthesis import Generator

_ROWS = 8192


@dataclass(frozen=True, eq=False)
class SyntheticSample:
    """Rows of the generator for each label in turn, so that all labels have equally many.

    They are new draws: no row of the sample is in the release or shows which rows are synthetic.

    Parameters
    ----------
    generator : Generator
        Fitted.
    labels : CodedRelease
        Writes codes as the release writes them.
    schema : pyarrow.Schema
        Of the sample: the release's columns in its order.
    label : str
        The label's column.
    rows : int
        How many rows, at least one for each label.
    classes : int
        k, the number of labels.
    rng : numpy.random.Generator or None
        None: a new generator for each batch, seeded by the operating system.
    """

    generator: "Generator"
    labels: CodedRelease
    schema: pa.Schema
    label: str
    rows: int
    classes: int
    rng: np.random.Generator | None

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the sample, batch by batch."""
        for start in range(0, self.rows, _ROWS):
            places = np.arange(start, min(start + _ROWS, self.rows))
            yield self._batch((places % self.classes).astype(np.int32))

    def _batch(self, codes: IntArray) -> pa.RecordBatch:
        names = self.schema.names
        features = pa.schema([self.schema.field(name) for name in names if name != self.label])
        rng = self.rng or np.random.default_rng(secrets.randbits(256))
        rows = as_batch(self.generator.sample(codes, rng), features)
        label = self.labels.write(codes).cast(self.schema.field(self.label).type)
        columns = [label if name == self.label else rows.column(name) for name in names]
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)


def synthetic_sample(
    request: ColumnRequest,
    survey: Survey,
    released: pa.Schema,
    label: pa.Field,
    fitted: FittedGenerator | None,
) -> SyntheticSample | None:
    """Return the requested sample; None where none is.

    ``released`` is the release's schema, ``label`` the true label's column.
    """
    if request.synthetic_out is None or fitted is None:
        return None
    classes = survey.domain.classes
    return SyntheticSample(
        fitted.generator,
        coded_release(None, classes, label.type, survey.spelt, None),
        sample_schema(request.synthetic_out, released),
        label.name,
        sample_rows(request.synthetic_rows, survey.rows, classes),
        len(classes),
        request.randomness("synthetic sample"),
    )


def check_sample(request: ColumnRequest, survey: Survey, features: pa.Schema) -> None:
    """Check that the sample can be written, before a generator is fitted.

    Raises
    ------
    InputError, OutputError
        If it has fewer rows than labels, or its format cannot hold a column.
    """
    if request.synthetic_out is None:
        return
    sample_schema(request.synthetic_out, features)
    sample_rows(request.synthetic_rows, survey.rows, survey.domain.classes)


def sample_schema(target: Path, schema: pa.Schema) -> pa.Schema:
    """Return the sample's schema: the release's, without its declaration; decoded for text.

    Raises
    ------
    OutputError
        If the format cannot hold a column.
    """
    check_holds(target, schema)
    return plain_schema(schema) if is_text(target) else unordered(schema)


def sample_rows(asked: int | None, released: int, classes: tuple[Label, ...]) -> int:
    """Return how many rows the sample has: as requested, else as many as the release.

    Raises
    ------
    InputError
        If that is less than one for each label.
    """
    if asked is None:
        return max(released, len(classes))
    if asked < len(classes):
        raise InputError(
            f"--synthetic-rows must be at least {len(classes)}, one row for each label. "
            f"Got {asked}."
        )
    return asked
