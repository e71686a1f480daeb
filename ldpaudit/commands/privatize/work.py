"""The work of ``privatize``: two passes over the rows, batch by batch."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from ldpaudit.commands.privatize.columns.survey import ReleasedColumns, without_unused
from ldpaudit.commands.privatize.columns.warnings import (
    amount_warnings,
    size_warnings,
    vector_warnings,
)
from ldpaudit.commands.privatize.columns_release import VectorRelease, vector_release
from ldpaudit.commands.privatize.features.generated_rows import FittedGenerator, fit_generator
from ldpaudit.commands.privatize.features.synthetic_sample import (
    SyntheticSample,
    check_sample,
    synthetic_sample,
)
from ldpaudit.commands.privatize.labels.former import second_draw
from ldpaudit.commands.privatize.labels.remembered import RememberedAnswers, check_remembered
from ldpaudit.commands.privatize.places import check_places, check_roles
from ldpaudit.commands.privatize.private_columns import LabelCounts, PrivateColumns
from ldpaudit.commands.privatize.provenance import provenance, released_schema
from ldpaudit.commands.privatize.reading import read_columns, stated_columns
from ldpaudit.commands.privatize.request import PrivatizeRequest
from ldpaudit.commands.privatize.result import PrivatizeSummary
from ldpaudit.commands.privatize.stated import stated_release
from ldpaudit.datasets.formats.batches import BatchSource
from ldpaudit.datasets.formats.csv_batches import CsvBatches
from ldpaudit.datasets.formats.dialect import Dialect
from ldpaudit.datasets.formats.memory_batches import MemoryBatches
from ldpaudit.datasets.formats.opening import open_batches
from ldpaudit.datasets.formats.watching import check_unchanged, watching
from ldpaudit.datasets.names import quoted
from ldpaudit.datasets.writing.tables import (
    USUAL,
    TableFile,
    check_holds,
    is_csv,
    write_declaration,
)
from ldpaudit.files.writing import WholeFiles
from ldpaudit.running.progress import NoProgress, Progress


@dataclass(frozen=True, eq=False)
class _Plan:
    """Everything that the second pass needs."""

    source: BatchSource
    columns: PrivateColumns
    names: tuple[str, ...]
    rows: VectorRelease
    schema: pa.Schema
    watched: tuple[str, ...]
    warnings: tuple[str, ...]
    sample: SyntheticSample | None
    letters: bool
    remembered: RememberedAnswers | None = None
    person: str | None = None

    @property
    def read(self) -> list[str]:
        """The columns that are read: those that are released, and who a row is about."""
        return list(dict.fromkeys([*self.names, *filter(None, [self.person])]))

    @property
    def dialect(self) -> Dialect:
        """How CSV is written: as the data are."""
        return self.source.dialect if isinstance(self.source, CsvBatches) else USUAL

    @property
    def features(self) -> list[str]:
        return [name for name in self.names if name not in self.columns.names]

    @property
    def secret(self) -> list[str]:
        """What is kept aside: the private columns, and who a row is about."""
        return [n for n in self.read if n in self.columns.names or n == self.person]


@watching()  # Checked before anything is published: a fault after that would be a second draw.
def privatize(request: PrivatizeRequest, progress: Progress | None = None) -> PrivatizeSummary:
    """Release a table: rows in their order, private columns replaced, features as options say.

    Its memory does not grow with the number of rows.

    Raises
    ------
    InputError, OutputError, MissingDependencyError
        One line about what is wrong, without any cell; nothing is left behind then.
    """
    progress = progress or NoProgress()
    stated = stated_release(request)
    check_places(request, stated)
    declared = stated_columns(stated)
    source = _opened(request)
    if said := getattr(source, "remark", ""):
        progress.remark(f"Read the data as {said}.")
    check_roles(stated, source)
    columns = read_columns(stated, declared, source, progress)
    again = tuple(second_draw(request, columns))
    for line in again:
        progress.remark(line)
    plan = _plan(request, source, columns, progress)
    warnings = plan.warnings + _write(plan, request, progress)
    sampled = 0 if plan.sample is None else plan.sample.rows
    return PrivatizeSummary(request, columns, again + warnings, sampled, again)


def _opened(request: PrivatizeRequest) -> BatchSource:
    data: Any = request.data
    if isinstance(data, str | os.PathLike):
        return open_batches(data, request)
    return MemoryBatches.of(data)


def _plan(
    request: PrivatizeRequest, source: BatchSource, columns: PrivateColumns, progress: Progress
) -> _Plan:
    names = tuple(name for name in source.schema.names if name not in request.drop)
    features = pa.schema([source.schema.field(n) for n in names if n not in columns.names])
    # A generator is of a mechanism that releases one column only.
    first = columns.first
    check_sample(first.request, first.survey, features)
    fitted = fit_generator(first.request, source, first.survey, features, progress)
    rows = vector_release(request, columns, features, fitted)
    released = rows.schema(features)
    types = dict(zip(columns.names, rows.types, strict=True))
    fields = [
        pa.field(name, types[name] if name in types else released.field(name).type)
        for name in names
    ]
    schema = released_schema(fields, columns, provenance(request, columns, fitted))
    check_holds(request.output, schema)
    traits = first.mechanism.traits
    # Where no feature value is released unchanged, a copy of the label among them is no leak.
    watched = tuple(features.names) if traits.feature_values_kept else ()
    warnings = tuple(_warnings(columns, fitted))
    sample = synthetic_sample(first.request, first.survey, schema, first.field, fitted)
    # Text that is not changed keeps its letters: 1.50 stays 1.50.
    letters = is_csv(request.output) and traits.features == "unchanged"
    remembered = None
    if request.remember is not None:
        for one in columns:
            check_remembered(one)
        remembered = RememberedAnswers(request.remember, columns)
    return _Plan(
        source,
        columns,
        names,
        rows,
        schema,
        watched,
        warnings,
        sample,
        letters,
        remembered,
        request.id_column,
    )


def _warnings(columns: PrivateColumns, fitted: FittedGenerator | None) -> Iterator[str]:
    """Yield what is to be said of the mechanisms, before any row is released."""
    for one in columns:
        about = "" if len(columns) == 1 else f"Private column {quoted(one.name)}: "
        yield from (about + text for text in (*amount_warnings(one.mechanism), *one.warnings))
    if len(columns) > 1:
        alone = [one.mechanism.epsilon or 0.0 for one in columns]
        yield from vector_warnings(columns.labels_epsilon, alone)
    yield from size_warnings((one.mechanism for one in columns), columns.rows)
    if fitted is not None:
        yield from fitted.warnings


def _write(plan: _Plan, request: PrivatizeRequest, progress: Progress) -> tuple[str, ...]:
    """Write the release, with the true labels and the sample where asked, or nothing at all.

    Returns warnings of columns that tell more than they should.
    """
    progress.step("releasing")
    private, done, again = plan.columns.names, 0, LabelCounts(plan.columns)
    columns = ReleasedColumns(
        *(plan.watched, request.keep, plan.columns.rows, private), plan.source.schema.names
    )
    with WholeFiles(request.overwrite, last=True) as files:
        secret = None
        if request.secret is not None:
            true = pa.schema([pa.field(n, plan.source.schema.field(n).type) for n in plan.secret])
            secret = TableFile(files.add(request.secret, private=True), true, plan.dialect)
        release = TableFile(files.add(request.output), plan.schema, plan.dialect)
        write_declaration(files, request.output, plan.schema)
        for batch, letters in _batches(plan):
            features, labels = batch.select(plan.features), [batch.column(n) for n in private]
            codes = [one.codes(own) for one, own in zip(plan.columns, labels, strict=True)]
            columns.watch(features, labels, codes)
            again.add(codes)
            new, released = plan.rows.release(features, labels, codes)
            if plan.remembered is not None:
                ids = batch.column(plan.person)
                released = plan.remembered.repeat(ids, features, labels, released)
            release.write(_together(plan, new, released, letters))
            if secret is not None:
                secret.write(batch.select(plan.secret))
            done += len(batch)
            progress.advance(done, plan.columns.rows)
        warnings = columns.check()
        check_unchanged()
        again.check()
        if plan.remembered is not None and request.remember is not None:
            warnings += tuple(plan.remembered.check())
            plan.remembered.write(files.add(request.remember, private=True, overwrite=True))
        _write_sample(files, plan.sample, request.synthetic_out)
    return warnings


def _write_sample(files: WholeFiles, sample: SyntheticSample | None, target: Path | None) -> None:
    if sample is None or target is None:
        return
    file = TableFile(files.add(target), sample.schema)
    for batch in sample.batches():
        file.write(batch)


def _batches(plan: _Plan) -> Iterator[tuple[pa.RecordBatch, pa.RecordBatch | None]]:
    """Yield the rows, with the letters that they are written in where those are released."""
    if plan.letters and isinstance(plan.source, CsvBatches):
        for batch, letters in plan.source.batches_as_written(plan.read):
            yield batch, letters.select(list(plan.names))
    else:
        yield from ((batch, None) for batch in plan.source.batches(plan.read))


def _together(
    plan: _Plan,
    features: pa.RecordBatch,
    released: list[pa.Array],
    letters: pa.RecordBatch | None,
) -> pa.RecordBatch:
    """Return released features and labels as rows of the release."""
    labels = dict(zip(plan.columns.names, released, strict=True))
    if letters is not None:
        for name, label in labels.items():
            letters = letters.set_column(plan.names.index(name), name, label)
        return letters
    columns = [labels[n] if n in labels else without_unused(features.column(n)) for n in plan.names]
    return pa.RecordBatch.from_arrays(columns, schema=plan.schema)
