"""The work of ``privatize``: two passes over the rows, batch by batch."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from ldpaudit.commands.outputs import check_apart, check_place
from ldpaudit.commands.privatize.checks import check_request, options_of
from ldpaudit.commands.privatize.columns.survey import ReleasedColumns, without_unused
from ldpaudit.commands.privatize.columns.warnings import amount_warnings
from ldpaudit.commands.privatize.features.generated_rows import fit_generator
from ldpaudit.commands.privatize.features.synthetic_sample import (
    SyntheticSample,
    check_sample,
    synthetic_sample,
)
from ldpaudit.commands.privatize.labels.priors import Prior, choose_prior
from ldpaudit.commands.privatize.labels.survey import Survey, survey_classes, survey_numbers
from ldpaudit.commands.privatize.mechanism import DeclaredLabels, build, declared_labels
from ldpaudit.commands.privatize.provenance import provenance, released_schema
from ldpaudit.commands.privatize.request import DataOptions, PrivatizeRequest
from ldpaudit.commands.privatize.result import PrivatizeSummary
from ldpaudit.commands.privatize.row_release import RowRelease, row_release
from ldpaudit.datasets.beside.priors import LabelPrior, read_prior
from ldpaudit.datasets.formats.batches import BatchSource
from ldpaudit.datasets.formats.csv_batches import CsvBatches
from ldpaudit.datasets.formats.dialect import Dialect
from ldpaudit.datasets.formats.locations import locate
from ldpaudit.datasets.formats.memory_batches import MemoryBatches
from ldpaudit.datasets.formats.opening import open_batches
from ldpaudit.datasets.names import missing_column, quoted
from ldpaudit.datasets.writing.tables import (
    USUAL,
    TableFile,
    check_format,
    check_holds,
    is_csv,
    write_declaration,
    written_places,
)
from ldpaudit.errors import InputError, OutputError
from ldpaudit.mechanisms.interface import Mechanism
from ldpaudit.release import IntArray, Label
from ldpaudit.running.progress import NoProgress, Progress
from ldpaudit.writing import WholeFiles, terminable

_CHANGED = "The data changed while it was read; run again when nothing writes to it."


_BETWEEN = (
    " Numbers between the mechanism's labels are rounded to one of them with --round unbiased, "
    "which keeps their mean, or --round nearest."
)
_NOT_IN_PRIOR = (
    " The classes are those that the prior (--prior) lists: give it a row for each label."
)


@dataclass(frozen=True, eq=False)
class _Plan:
    """Everything that the second pass needs."""

    source: BatchSource
    label: pa.Field
    names: tuple[str, ...]
    survey: Survey
    rows: RowRelease
    schema: pa.Schema
    watched: tuple[str, ...]
    warnings: tuple[str, ...]
    sample: SyntheticSample | None
    letters: bool

    @property
    def dialect(self) -> Dialect:
        """How CSV is written: as the data are."""
        return self.source.dialect if isinstance(self.source, CsvBatches) else USUAL

    @property
    def features(self) -> list[str]:
        return [name for name in self.names if name != self.label.name]


def privatize(request: PrivatizeRequest, progress: Progress | None = None) -> PrivatizeSummary:
    """Release a table: rows in their order, the label replaced, features as the options say.

    Its memory does not grow with the number of rows.

    Raises
    ------
    InputError, OutputError, MissingDependencyError
        One line about what is wrong, without any cell; nothing is left behind then.
    """
    progress = progress or NoProgress()
    check_request(request)
    _check_places(request)
    table = None if request.prior is None else read_prior(request.prior, request)
    labels = declared_labels(request, None if table is None else table.labels)
    source = _opened(request)
    if said := getattr(source, "remark", ""):
        progress.remark(f"Read the data as {said}.")
    check_columns(request, source)
    survey = survey_labels(request, labels, source, progress)
    mechanism, prior = _mechanism(request, labels, survey, table)
    plan = _plan(request, source, survey, mechanism, prior, progress)
    with terminable():
        warnings = plan.warnings + _write(plan, request, progress)
    spent = 0.0 if prior is None else prior.epsilon
    total = (mechanism.epsilon or 0.0) + spent
    sampled = 0 if plan.sample is None else plan.sample.rows
    return PrivatizeSummary(request, survey.rows, mechanism, total, warnings, sampled, spent)


def _opened(request: PrivatizeRequest) -> BatchSource:
    data: Any = request.data
    if isinstance(data, str | os.PathLike):
        return open_batches(data, request)
    return MemoryBatches.of(data)


def _check_places(request: PrivatizeRequest) -> None:
    """Check the files that will be written against each other and against those that are read."""
    others = [path for path in (request.secret, request.synthetic_out) if path is not None]
    targets = [*written_places(request.output), *others]
    data = locate(request.data) if isinstance(request.data, str | os.PathLike) else None
    tables = (request.public, request.synthetic, request.generator_data)
    check_apart(targets, (*(data.paths if data else ()), request.prior, request.channel, *tables))
    folder = None if data is None or data.folder is None else Path(data.folder)
    for target in targets:
        if folder is not None and folder.resolve() in target.resolve().parents:
            raise OutputError(
                f"{quoted(target.name)} would lie in the folder that is read; write it elsewhere."
            )
        if target in (request.output, *others):
            check_format(target)
        _check_free(target, overwrite=request.overwrite)


def _check_free(target: Path, *, overwrite: bool) -> None:
    """Check that a file may be written there."""
    shown = quoted(target.name)
    check_place(target)
    if os.path.lexists(target) and not overwrite:
        raise OutputError(f"{shown} exists already and is left as it is; --overwrite replaces it.")


def check_columns(options: DataOptions, source: BatchSource) -> None:
    """Refuse a label or a column to drop or to keep that the data lack (InputError)."""
    named = [(n, "'drop'") for n in options.drop] + [(n, "'keep'") for n in options.keep]
    for name, role in ((options.label, "label"), *named):
        if name not in source.schema.names:
            raise missing_column(name, role, source.schema.names)


def survey_labels(
    request: PrivatizeRequest, labels: DeclaredLabels, source: BatchSource, progress: Progress
) -> Survey:
    """Read the labels: numbers of a declared range, or classes."""
    domain = labels.numeric_domain(request.round, request.randomness("rounding"))
    between = "round" in options_of(request.mechanism) and request.round is None
    hint = _BETWEEN if between else ""
    if domain is not None:
        return survey_numbers(source, request.label, domain, progress, hint)
    if request.prior is not None and request.classes is None:
        hint = _NOT_IN_PRIOR
    return survey_classes(source, request.label, labels.classes, progress, hint)


def _mechanism(
    request: PrivatizeRequest,
    labels: DeclaredLabels,
    survey: Survey,
    table: LabelPrior | None,
) -> tuple[Mechanism, Prior | None]:
    used: list[Prior] = []

    def prior(classes: tuple[Label, ...]) -> Prior:
        used.append(choose_prior(request, table, survey, classes))
        return used[0]

    built = build(request, labels, survey.domain.classes, prior)
    return built, used[0] if used else None


def _plan(
    request: PrivatizeRequest,
    source: BatchSource,
    survey: Survey,
    mechanism: Mechanism,
    prior: Prior | None,
    progress: Progress,
) -> _Plan:
    names = tuple(name for name in source.schema.names if name not in request.drop)
    label = source.schema.field(request.label)
    features = pa.schema([source.schema.field(n) for n in names if n != label.name])
    check_sample(request, survey, features)
    fitted = fit_generator(request, source, survey, features, progress)
    rows = row_release(request, mechanism, survey, label, features, fitted)
    released = rows.schema(features)
    fields = [
        pa.field(name, rows.label_type if name == label.name else released.field(name).type)
        for name in names
    ]
    entries = provenance(request, mechanism, survey, prior, fitted)
    schema = released_schema(fields, label.name, mechanism, entries)
    check_holds(request.output, schema)
    # Where no feature value is released unchanged, a copy of the label among them is no leak.
    watched = tuple(features.names) if mechanism.traits.feature_values_kept else ()
    warnings = tuple(amount_warnings(mechanism, survey.rows))
    warnings += () if fitted is None else fitted.warnings
    sample = synthetic_sample(request, survey, schema, label, fitted)
    # Text that is not changed keeps its letters: 1.50 stays 1.50.
    letters = is_csv(request.output) and mechanism.traits.features == "unchanged"
    return _Plan(source, label, names, survey, rows, schema, watched, warnings, sample, letters)


def _write(plan: _Plan, request: PrivatizeRequest, progress: Progress) -> tuple[str, ...]:
    """Write the release, with the true labels and the sample where asked, or nothing at all.

    Returns warnings of columns that tell more than they should.
    """
    progress.step("releasing")
    columns, done = ReleasedColumns(plan.watched, request.keep, plan.survey.rows), 0
    with WholeFiles(overwrite=request.overwrite) as files:
        secret = None
        if request.secret is not None:
            true = pa.schema([pa.field(plan.label.name, plan.label.type)])
            secret = TableFile(files.add(request.secret, private=True), true, plan.dialect)
        release = TableFile(files.add(request.output), plan.schema, plan.dialect)
        write_declaration(files, request.output, plan.schema)
        for batch, letters in _batches(plan):
            label, features = batch.column(plan.label.name), batch.select(plan.features)
            codes = _codes(plan, label)
            columns.watch(features, label, codes)
            release.write(_released(plan, features, label, codes, letters))
            if secret is not None:
                secret.write(pa.RecordBatch.from_arrays([label], names=[plan.label.name]))
            done += len(batch)
            progress.advance(done, plan.survey.rows)
        warnings = columns.check()
        if done != plan.survey.rows:
            raise InputError(_CHANGED)
        _write_sample(files, plan.sample, request.synthetic_out)
    return warnings


def _write_sample(files: WholeFiles, sample: SyntheticSample | None, target: Path | None) -> None:
    if sample is None or target is None:
        return
    file = TableFile(files.add(target), sample.schema)
    for batch in sample.batches():
        file.write(batch)


def _codes(plan: _Plan, label: pa.Array) -> IntArray:
    codes = plan.survey.domain.codes(label)
    if (codes < 0).any():  # The first pass found none.
        raise InputError(_CHANGED)
    return codes


def _batches(plan: _Plan) -> Iterator[tuple[pa.RecordBatch, pa.RecordBatch | None]]:
    """Yield the rows, with the letters that they are written in where those are released."""
    if plan.letters and isinstance(plan.source, CsvBatches):
        yield from plan.source.batches_as_written(plan.names)
    else:
        yield from ((batch, None) for batch in plan.source.batches(plan.names))


def _released(
    plan: _Plan,
    features: pa.RecordBatch,
    label: pa.Array,
    codes: IntArray,
    letters: pa.RecordBatch | None,
) -> pa.RecordBatch:
    new, released = plan.rows.release(features, label, codes)
    if letters is not None:
        place = plan.names.index(plan.label.name)
        return letters.set_column(place, plan.label.name, released)
    columns = [
        released if n == plan.label.name else without_unused(new.column(n)) for n in plan.names
    ]
    return pa.RecordBatch.from_arrays(columns, schema=plan.schema)
