"""Synthetic rows of a generator that is fitted for one release."""

import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from ldpaudit.commands.privatize.features.synthetic_rows import (
    SyntheticRows,
    label_codes,
    plain_schema,
    read_features,
)
from ldpaudit.commands.privatize.labels.survey import Survey
from ldpaudit.commands.privatize.request import ColumnRequest
from ldpaudit.datasets.formats.batches import BatchSource
from ldpaudit.release import IndexArray, IntArray, Label
from ldpaudit.running.progress import Progress

if TYPE_CHECKING:
    from ldpaudit.synthesis import Generator

TRAINED_ON_PRIVATE = (
    "The generator was trained on the private rows themselves, so its synthetic rows may give some "
    "of them away; the guarantee of the mechanism assumes public rows (--generator-data)."
)


@dataclass(frozen=True, eq=False)
class GeneratedRows:
    """A generator as a source of synthetic rows: row y is a new draw of P̂(x | y).

    Every row is drawn anew, so that no synthetic row is recognised by coming twice.

    Parameters
    ----------
    generator : Generator
        Fitted.
    labels : int32 array of shape (k,)
        0 … k − 1: one entry for each label.
    rng : numpy.random.Generator or None
        None: a new generator for each draw, seeded by the operating system.
    """

    generator: "Generator"
    labels: IntArray
    rng: np.random.Generator | None

    def __len__(self) -> int:
        """Return the number of labels k."""
        return len(self.labels)

    def take(self, rows: IndexArray) -> pa.Table:
        """Return one new synthetic row for each given label."""
        rng = self.rng or np.random.default_rng(secrets.randbits(256))
        return self.generator.sample(self.labels[rows], rng)


RowSource = SyntheticRows | GeneratedRows
"""Synthetic rows of a table or a generator, with the codes of their labels; every label occurs."""


@dataclass(frozen=True, eq=False)
class FittedGenerator:
    """A fitted generator and its warnings, one sentence each."""

    generator: "Generator"
    warnings: tuple[str, ...]

    def rows(self, classes: int, rng: np.random.Generator | None) -> GeneratedRows:
        """Return the generator as a source of rows for k labels."""
        return GeneratedRows(self.generator, np.arange(classes, dtype=np.int32), rng)

    def provenance(self) -> dict[str, Any]:
        """Return what the declaration says: name, version, seed, size, trained_on; no row."""
        description = dict(self.generator.describe())
        return {"size": description.pop("rows")} | description


def fit_generator(
    request: ColumnRequest,
    source: BatchSource,
    survey: Survey,
    features: pa.Schema,
    progress: Progress,
) -> FittedGenerator | None:
    """Fit the requested generator; None where none is.

    Parameters
    ----------
    request : ColumnRequest
    source : BatchSource
        The data: where ``generator_data`` names no other rows, its rows are used, all in memory.
    survey : Survey
    features : pyarrow.Schema
        The features that are released.
    progress : Progress

    Raises
    ------
    InputError, InsufficientDataError, GeneratorDivergedError
        If the table does not fit the data, a class has too few rows, or training fails.
    """
    if request.generator is None:
        return None
    from ldpaudit.synthesis import generator

    classes, public = survey.domain.classes, request.generator_data
    if public is not None:
        table, codes = _public_rows(public, request, features, classes)
    else:
        table, codes = _private_rows(source, request, features, survey)
    unfitted = generator(request.generator, trained_on="private" if public is None else "public")
    progress.step(f"fitting the generator {request.generator}")
    fitted = unfitted.fit(
        table,
        codes,
        len(classes),
        rng=request.randomness("generator") or np.random.default_rng(secrets.randbits(256)),
        progress=progress,
        device=request.device,
    )
    warning = (TRAINED_ON_PRIVATE,) if public is None else ()
    return FittedGenerator(fitted, (*warning, *fitted.warnings))


def _public_rows(
    path: str, request: ColumnRequest, features: pa.Schema, classes: tuple[Label, ...]
) -> tuple[pa.Table, IntArray]:
    plain = plain_schema(features)
    table = read_features(path, plain, "generator's", request.label, request.drop, request)
    codes = label_codes(table.column(request.label), classes, "generator's")
    return table.select(features.names), codes


def _private_rows(
    source: BatchSource, request: ColumnRequest, features: pa.Schema, survey: Survey
) -> tuple[pa.Table, IntArray]:
    names, codes, batches = [*features.names, request.label], [], []
    for batch in source.batches(names):
        codes.append(survey.domain.codes(batch.column(request.label)))
        batches.append(batch.select(features.names))
    table = pa.Table.from_batches(batches).cast(plain_schema(features))
    return table, np.concatenate(codes)
