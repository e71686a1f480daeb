"""The work of ``privatize``: two passes over the rows, batch by batch."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from ldpaudit.commands.outputs import check_apart, check_place, lies_in
from ldpaudit.commands.privatize.columns import (
    CHANGED,
    PrivateColumns,
    read_columns,
    stated_columns,
)
from ldpaudit.commands.privatize.features import (
    SyntheticSample,
    fit_generator,
    synthetic_sample,
    without_unused,
)
from ldpaudit.commands.privatize.plan import StatedRelease, stated_release
from ldpaudit.commands.privatize.release import RowRelease, row_release
from ldpaudit.commands.privatize.remembered import RememberedAnswers
from ldpaudit.commands.privatize.request import DataOptions, PrivatizeRequest
from ldpaudit.commands.privatize.result import (
    PrivatizeSummary,
    released_schema,
    second_draw,
    warnings_of,
)
from ldpaudit.commands.privatize.scan import ReleasedColumns
from ldpaudit.datasets.formats.csv_file import CsvFile
from ldpaudit.datasets.formats.locations import check_unchanged, locate, watching
from ldpaudit.datasets.formats.opening import open_table
from ldpaudit.datasets.formats.tables import TableSource
from ldpaudit.datasets.names import missing_column, quoted
from ldpaudit.datasets.writing import (
    USUAL,
    TableFile,
    check_format,
    check_holds,
    is_csv,
    write_declaration,
    written_places,
)
from ldpaudit.errors import InputError, OutputError
from ldpaudit.work.files import WholeFiles
from ldpaudit.work.progress import NoProgress, Progress


@dataclass(frozen=True, eq=False)
class _Plan:
    """Everything that the second pass needs; ``names`` are the released columns."""

    source: TableSource
    columns: PrivateColumns
    names: tuple[str, ...]
    rows: RowRelease
    schema: pa.Schema
    looked: ReleasedColumns
    sample: SyntheticSample | None
    letters: bool
    remembered: RememberedAnswers | None
    person: str | None

    @property
    def read(self) -> list[str]:
        """The columns that are read: those that are released, and who a row is about."""
        return list(dict.fromkeys([*self.names, *filter(None, [self.person])]))

    def batches(self) -> Iterator[tuple[pa.RecordBatch, pa.RecordBatch | None]]:
        """Yield the rows, with the letters that they are written in where those are released."""
        if self.letters and isinstance(self.source, CsvFile):
            for batch, letters in self.source.batches_as_written(self.read):
                yield batch, letters.select(list(self.names))
        else:
            yield from ((batch, None) for batch in self.source.batches(self.read))


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
    _check_places(request, stated)
    declared = stated_columns(stated)
    data: Any = request.data
    source = open_table(data, request)
    if source.remark:
        progress.remark(f"Read the data as {source.remark}.")
    _check_roles(stated, source)
    columns = read_columns(stated, declared, source, progress)
    again = tuple(second_draw(request, columns))
    for line in again:
        progress.remark(line)
    with WholeFiles(request.overwrite, last=True) as files:
        memory = None
        if request.remember is not None:
            # Locked from before it is read: another run would draw other answers.
            memory = files.add(request.remember, private=True, overwrite=True)
        plan, warnings = _plan(request, source, columns, progress)
        warnings += _write(plan, request, progress, files)
        if plan.remembered is not None and memory is not None:
            warnings += plan.remembered.write(memory)
    sampled = 0 if plan.sample is None else plan.sample.rows
    return PrivatizeSummary(request, columns, again + warnings, sampled, again)


def _check_places(request: PrivatizeRequest, stated: StatedRelease) -> None:
    """Check the files that will be written against each other and against those that are read."""
    others = [path for path in (request.secret, request.synthetic_out) if path is not None]
    targets = [*written_places(request.output), *others]
    data = locate(request.data) if isinstance(request.data, str | os.PathLike) else None
    remembered = [] if request.remember is None else [request.remember]
    tables = (request.public, request.synthetic, request.generator_data)
    plan = request.plan if isinstance(request.plan, str | os.PathLike) else None
    check_apart(
        [*targets, *remembered], (*(data.paths if data else ()), plan, *stated.files, *tables)
    )
    folder = None if data is None or data.folder is None else Path(data.folder)
    for place in remembered:
        check_place(place)
    for target in targets:
        shown = quoted(target.name)
        if folder is not None and lies_in(target, folder):
            raise OutputError(f"{shown} would lie in the folder that is read; write it elsewhere.")
        if target in (request.output, *others):
            check_format(target)
        check_place(target)
        if os.path.lexists(target) and not request.overwrite:
            raise OutputError(
                f"{shown} exists already and is left as it is; --overwrite replaces it, but a "
                "second draw of the same labels reveals more than one."
            )


def check_columns(options: DataOptions, roles: dict[str, str], source: TableSource) -> None:
    """Refuse a column that the data lack (InputError): of ``roles``, or to drop or to keep."""
    named = [(name, "to drop") for name in options.drop] + [(n, "to keep") for n in options.keep]
    for name, role in (*roles.items(), *named):
        if name not in source.schema.names:
            raise missing_column(name, role, source.schema.names)


def _check_roles(stated: StatedRelease, source: TableSource) -> None:
    """Refuse strata that are no public, released column, and labels dropped or kept (InputError).

    What one column is, another may not be: a private column is never a feature.
    """
    request, private = stated.columns[0], [one.label for one in stated.columns]
    check_columns(request, dict.fromkeys(private, "label"), source)
    for option, names in (("--drop", request.drop), ("--keep", request.keep)):
        if {*names} & {*private}:
            raise InputError(f"{option} must name other columns than the private ones.")
    if request.id_column is not None:
        check_columns(request, {request.id_column: "'id'"}, source)
    if request.id_column in private:
        raise InputError("--id must name another column than the private ones.")
    for one in stated.columns:
        if one.by is None:
            continue
        check_columns(request, {one.by: "'by'"}, source)
        if one.by in private or one.by in request.drop:
            raise InputError(
                f"The strata of {quoted(one.label)} must be a public column that is released: "
                f"{quoted(one.by)} is {'private' if one.by in private else 'dropped'}."
            )


def _plan(
    request: PrivatizeRequest, source: TableSource, columns: PrivateColumns, progress: Progress
) -> tuple[_Plan, tuple[str, ...]]:
    names = tuple(name for name in source.schema.names if name not in request.drop)
    features = pa.schema([source.schema.field(n) for n in names if n not in columns.names])
    # A generator is of a mechanism that releases one column only.
    one, survey = columns.first.request, columns.first.survey
    synthetic_sample(one, survey, features, None)
    fitted = fit_generator(one, source, survey, features, progress)
    rows = row_release(request, columns, features, fitted)
    released, types = rows.schema(features), dict(zip(columns.names, rows.types, strict=True))
    fields = [
        pa.field(name, types[name] if name in types else released.field(name).type)
        for name in names
    ]
    schema = released_schema(request, columns, fields, fitted)
    check_holds(request.output, schema)
    traits = columns.first.mechanism.traits
    # Where no feature value is released unchanged, a copy of the label among them is no leak.
    watched = [n for n in features.names if n not in request.keep and traits.feature_values_kept]
    looked = ReleasedColumns(watched, columns.names, survey.rows, source.schema.names)
    sample = synthetic_sample(one, survey, schema, fitted)
    # Text that is not changed keeps its letters: 1.50 stays 1.50.
    letters = is_csv(request.output) and traits.features == "unchanged"
    remembered = None if request.remember is None else RememberedAnswers(request.remember, columns)
    warnings = (*warnings_of(columns), *(() if fitted is None else fitted.warnings))
    person = request.id_column
    plan = _Plan(source, columns, names, rows, schema, looked, sample, letters, remembered, person)
    return plan, warnings


def _write(
    plan: _Plan, request: PrivatizeRequest, progress: Progress, files: WholeFiles
) -> tuple[str, ...]:
    """Write the release, with the true labels and the sample where asked, or nothing at all.

    Returns warnings of columns that tell more than they should.
    """
    progress.step("releasing")
    private, source, survey = plan.columns.names, plan.source, plan.columns.first.survey
    dialect = source.dialect if isinstance(source, CsvFile) else USUAL
    done, again = 0, [np.zeros_like(one.survey.counts) for one in plan.columns]
    # What is kept aside: the private columns, and who a row is about.
    aside = [name for name in plan.read if name in (*private, plan.person)]
    secret = None
    if request.secret is not None:
        true = pa.schema([pa.field(name, source.schema.field(name).type) for name in aside])
        secret = TableFile(files.add(request.secret, private=True), true, dialect)
    release = TableFile(files.add(request.output), plan.schema, dialect)
    write_declaration(files, request.output, plan.schema)
    for batch, letters in plan.batches():
        features = batch.select([name for name in plan.names if name not in private])
        labels = [batch.column(name) for name in private]
        codes = [one.codes(own) for one, own in zip(plan.columns, labels, strict=True)]
        plan.looked.watch(features, labels)
        for counts, own in zip(again, codes, strict=True):
            np.add(counts, np.bincount(own, minlength=len(counts)), out=counts)
        new, released = plan.rows.draw(features, labels, codes)
        if plan.remembered is not None:
            ids = batch.column(plan.person)
            released = plan.remembered.repeat(ids, features, labels, released)
        release.write(_together(plan, new, dict(zip(private, released, strict=True)), letters))
        if secret is not None:
            secret.write(batch.select(aside))
        done += len(batch)
        progress.advance(done, survey.rows)
    warnings = plan.looked.check()
    check_unchanged()
    for one, counts in zip(plan.columns, again, strict=True):
        before = one.survey.counts
        same = one.survey.domain.drawn or np.array_equal(counts, before)
        if counts.sum() != before.sum() or not same:
            raise InputError(CHANGED)
    if plan.sample is not None and request.synthetic_out is not None:
        file = TableFile(files.add(request.synthetic_out), plan.sample.schema)
        for batch in plan.sample.batches:
            file.write(batch)
    return warnings


def _together(
    plan: _Plan, features: pa.RecordBatch, labels: dict[str, pa.Array], letters: Any
) -> pa.RecordBatch:
    """Return released features and labels as rows of the release."""
    if letters is not None:
        for name, label in labels.items():
            letters = letters.set_column(plan.names.index(name), name, label)
        return letters
    columns = [labels[n] if n in labels else without_unused(features.column(n)) for n in plan.names]
    return pa.RecordBatch.from_arrays(columns, schema=plan.schema)
