"""The work of ``privatize``: two passes over the rows, batch by batch; and what is said of it."""

import json
import math
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, cast

import numpy as np
import pyarrow as pa

from ldpaudit.commands.outputs import check_apart, check_place, lies_in
from ldpaudit.datasets.as_read import ColumnReader
from ldpaudit.datasets.declaration import KeyFileError, check_true_labels, declared_content
from ldpaudit.datasets.formats import open_table
from ldpaudit.datasets.formats.dialect import Dialect
from ldpaudit.datasets.formats.locations import check_unchanged, locate, watching
from ldpaudit.datasets.formats.tables import DECLARATION_KEY, TableSource, allowed, held_to
from ldpaudit.datasets.labels import nearly_alike
from ldpaudit.datasets.names import missing_column, quoted
from ldpaudit.doors import (
    LdpAuditError,
    NoProgress,
    OutputError,
    Progress,
    Said,
    Told,
    parse_declaration,
    refuse,
)
from ldpaudit.extras.kinds.files.written import (
    USUAL,
    TableFile,
    check_format,
    check_holds,
    is_csv,
    write_declaration,
    written_places,
)
from ldpaudit.extras.receipt.drawing import not_drawn, sealed_as_drawn
from ldpaudit.extras.receipt.secrets import DrawnSeal
from ldpaudit.extras.release.privatize.columns import (
    CHANGED,
    PrivateColumn,
    PrivateColumns,
    read_columns,
    stated_columns,
)
from ldpaudit.extras.release.privatize.features import (
    FittedGenerator,
    SyntheticSample,
    fit_generator,
    labelled_rows,
    sample_rows,
    synthetic_sample,
    without_unused,
)
from ldpaudit.extras.release.privatize.labels import (
    RowPair,
    blocks,
    completed,
    held,
    in_pieces,
    joined,
    one_batch,
    row_pairs,
)
from ldpaudit.extras.release.privatize.others import check_not_the_same_file, check_other_rows
from ldpaudit.extras.release.privatize.plan import StatedRelease, stated_release
from ldpaudit.extras.release.privatize.release import RowRelease, row_release
from ldpaudit.extras.release.privatize.remembered import RememberedAnswers
from ldpaudit.extras.release.privatize.request import DataOptions, PrivatizeRequest
from ldpaudit.extras.release.privatize.scan import ReleasedColumns
from ldpaudit.mechanisms.keyed import BLOCK_ROWS, NoiseKey
from ldpaudit.receipt.commitment import PrivatePrior, Secret, Statement
from ldpaudit.terminal import remark
from ldpaudit.work.files import WholeFiles
from ldpaudit.work.memory import size_of

_LARGE_EPSILON: Final = 5.0
# For each label; with fewer at ε = 1 an excess of 0.5 is hardly ever found.
_FEW_OF_A_LABEL: Final = 5
_FEW_ROWS: Final = 200
# The part of the memory that the text of one block may take: its cells take some times that.
_BLOCK_SHARE: Final = 32


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
    secret: Secret | None
    """The key of the noise, where it is kept with the true labels."""
    seals: Mapping[str, DrawnSeal]
    """What is added to it when all labels are drawn."""


@dataclass(frozen=True)
class PrivatizeSummary(Told):
    """What was released.

    ``columns`` have their mechanisms, whose ``description`` holds no label. ``warnings`` are
    sentences; those of them that say that the same labels were drawn a second time are ``again``.
    ``sample_rows``: rows of the synthetic sample, 0 where none was asked for. ``new_memory``:
    whether the file of remembered answers is a new one; ``receipt``: whether the file of true
    labels holds a key.
    """

    request: PrivatizeRequest
    columns: PrivateColumns
    warnings: tuple[str, ...] = ()
    sample_rows: int = 0
    again: tuple[str, ...] = ()
    new_memory: bool = False
    receipt: bool = False

    @property
    def rows(self) -> int:
        """How many rows were released."""
        return self.columns.first.survey.rows

    @property
    def total_epsilon(self) -> float:
        """ε in nats of the whole release: of all released labels, and what priors spent."""
        return self.columns.labels_epsilon + self.columns.spent

    def said(self, *, quiet: bool) -> Iterator[Said]:
        """Yield what was released and where; ``quiet``: remark that labels were drawn again."""
        if quiet:
            for line in self.again:
                remark(line)
            return
        request, columns, spent = self.request, self.columns, self.columns.spent
        rows, total = _counted(self.rows), f"ε = {self.total_epsilon:.6g} nats"
        if len(columns.each) == 1:
            yield f"Released {rows} by {columns.first.mechanism.description}."
            if spent > 0:
                whole = f"the whole release comes to {total}"
                yield f"With the private prior's ε = {spent:.6g} {whole}."
        else:
            how = "" if columns.joint is None else f" together, by {columns.joint.description}"
            yield f"Released {rows} with {len(columns.each)} private columns{how}."
            width = max(12, *(len(quoted(name)) for name in columns.names))
            alone = "" if columns.joint is None else "seen alone: "
            for column in columns.each:
                yield f"  {quoted(column.name):<{width}} {alone}{column.mechanism.description}"
            which = "both" if len(columns.each) == 2 else f"all {len(columns.each)}"
            prior = f"; ε = {spent:.6g} of it went into private priors" if spent > 0 else ""
            yield f"Releasing {which} reveals up to {total} about a person{prior}."
        if request.remember is not None:
            prior = f", except that each spends the prior's ε = {spent:.6g} again" if spent else ""
            yield (
                "Releases by the same mechanism that share the remembered answers reveal no more "
                f"than that about a person whose labels stay the same{prior}; a changed answer "
                "shows that a label changed."
            )
        if request.experimental:
            yield "An experiment: its draws can be repeated, so it protects nobody."
        yield from (("warning", warning) for warning in self.warnings)
        own = TableFile.unnamed_format(request.output)
        for place in written_places(request.output):
            yield "written", f"{place} ({own})" if own else str(place)
        new = "new file: no answer of an earlier release was repeated; " * self.new_memory
        sample = f"({self.sample_rows} synthetic rows, none of them in the release)"
        places = () if request.secret is None else written_places(request.secret)
        beside = places[1:] if self.receipt else ()
        inside = self.receipt and not beside
        kept = "true labels and the key of the noise" if inside else "true labels"
        for word, path, what in (
            ("synthetic", request.synthetic_out, sample),
            ("model", request.posterior_out, "(what --public-posterior of an audit is given)"),
            ("remembered", request.remember, f"({new}people's answers, readable by you only)"),
            ("secret", request.secret, f"({kept}, readable by you only)"),
        ):
            if path is not None:
                own = "" if word == "remembered" else TableFile.unnamed_format(path)
                yield word, f"{path} {what}" if not own else f"{path} {what}, {own}"
        for path in beside:
            yield "key", f"{path} (of the noise: keep it beside the true labels, never publish it)"


@watching()  # Checked before anything is published: a fault after that would be a second draw.
def privatize(request: PrivatizeRequest, progress: Progress | None = None) -> PrivatizeSummary:
    """Release a table: rows in their order, private columns replaced, features as options say.

    Its memory does not grow with the number of rows. One line says what is wrong, without any
    cell; nothing is left behind then (InputError, OutputError, MissingDependencyError).
    """
    with held_to(None if request.memory is None else size_of(request.memory)):
        return _privatized(request, progress or NoProgress())


def _privatized(request: PrivatizeRequest, progress: Progress) -> PrivatizeSummary:
    # Drawn here and handed to nothing else: no key serves two releases.
    key = None if request.experimental else NoiseKey.drawn()
    stated = stated_release(request, key)
    _check_places(request, stated)
    declared = stated_columns(stated)
    data: Any = request.data
    source = open_table(data, request)
    if source.remark:
        progress.remark(f"Read the data as {source.remark}.")
    _check_roles(stated, source)
    check_true_labels(source, [one.label for one in stated.columns], "The table")
    classes = [one.request.label for one in declared if one.labels.are_classes(one.request)]
    source.read_as_labels(classes)
    source = completed(source, [one.label for one in stated.columns], request.missing)
    sealed = key if request.secret is not None else None
    columns = read_columns(stated, declared, source, progress, sealed)
    again = tuple(second_draw(request, columns))
    for line in again:
        progress.remark(line)
    with WholeFiles(request.overwrite, last=True) as files:
        memory = None
        if request.remember is not None:
            # Locked from before it is read: another run would draw other answers.
            memory = files.add(request.remember, private=True, overwrite=True)
        plan, warnings = _plan(request, source, columns, progress, sealed)
        warnings += _write(plan, request, progress, files)
        if plan.remembered is not None and memory is not None:
            warnings += plan.remembered.write(memory)
        sampled = 0 if plan.sample is None else plan.sample.rows
        new, proven = plan.remembered is not None and plan.remembered.new, plan.secret is not None
        made = PrivatizeSummary(request, columns, again + warnings, sampled, again, new, proven)
        # A fault in its words must come before the files take their names: not a second draw.
        list(made.said(quiet=False))
    return made


def _check_places(request: PrivatizeRequest, stated: StatedRelease) -> None:
    """Check the files that will be written against each other and against those that are read."""
    beside = (request.secret, request.synthetic_out, request.posterior_out)
    others = [path for path in beside if path is not None]
    secret = () if request.secret is None else written_places(request.secret)[1:]
    targets = [*written_places(request.output), *others, *secret]
    data = locate(request.data) if isinstance(request.data, str | os.PathLike) else None
    remembered = [] if request.remember is None else [request.remember]
    plan = request.plan if isinstance(request.plan, str | os.PathLike) else None
    every = [one for c in stated.columns for one in (c, *c.strata.values())]
    stated_files = (path for one in every for path in (one.prior, one.channel))
    read = (plan, *stated_files, request.public, request.synthetic, request.generator_data)
    check_apart([*targets, *remembered], (*(data.paths if data else ()), *read))
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
        if target not in (request.secret, *secret) and _holds_key(target):
            raise OutputError(
                f"{shown} holds true labels and the key of a release's noise, and is left as it is."
            )


def _holds_key(path: Path) -> bool:
    """Return whether a file holds the key of a release, which nothing can bring back."""
    if not path.is_file():
        return False
    try:
        with watching(noted=False):
            declared = open_table(path).declaration
        if declared is not None:
            parse_declaration(declared)
    except KeyFileError:
        return True
    except (LdpAuditError, OSError, pa.ArrowException):
        return False
    return False


def check_columns(options: DataOptions, roles: dict[str, str], source: TableSource) -> None:
    """Refuse a column that the data lack (InputError): of ``roles``, or one that options name."""
    asked = {"to drop": options.drop, "to keep": options.keep}
    named = [(name, role) for role, names in asked.items() for name in names]
    for name, role in (*roles.items(), *named):
        if name not in source.names:
            raise missing_column(name, role, source.names)


def _check_roles(stated: StatedRelease, source: TableSource) -> None:
    """Refuse strata that are no public, released column, and labels dropped or kept (InputError).

    What one column is, another may not be: a private column is never a feature.
    """
    request, private = stated.columns[0], [one.label for one in stated.columns]
    roles = dict.fromkeys(request.text, "to read as text") | dict.fromkeys(private, "label")
    check_columns(request, roles, source)
    for option, names in (("--drop", request.drop), ("--keep", request.keep)):
        refuse({*names} & {*private}, f"{option} must name other columns than the private ones.")
    if request.id_column is not None:
        check_columns(request, {request.id_column: "'id'"}, source)
    refuse(request.id_column in private, "--id must name another column than the private ones.")
    for one in stated.columns:
        if one.by is not None:
            check_columns(request, {one.by: "'by'"}, source)
            refuse(
                one.by in private or one.by in request.drop,
                f"The strata of {quoted(one.label)} must be a public column that is released: "
                f"{quoted(one.by)} is {'private' if one.by in private else 'dropped'}.",
            )


def _plan(
    request: PrivatizeRequest,
    source: TableSource,
    columns: PrivateColumns,
    progress: Progress,
    key: NoiseKey | None,
) -> tuple[_Plan, tuple[str, ...]]:
    names = tuple(name for name in source.schema.names if name not in request.drop)
    features = pa.schema([source.schema.field(n) for n in names if n not in columns.names])
    # A generator is of a mechanism that releases one column only.
    one, survey = columns.first.request, columns.first.survey
    synthetic_sample(one, survey, features, None)
    _check_other_rows(request, source, columns, features)
    fitted = fit_generator(one, source, survey, features, progress)
    unproven: tuple[str, ...] = ()
    if key is not None and (why := _without_receipt(columns)):
        key, unproven = None, (f"No receipt: {why}. An audit cannot draw the noise again.",)
    sealed = [] if key is None or columns.joint is not None else columns.each
    seals = {
        one.name: DrawnSeal(key, one.name)
        for one in sealed
        if key is not None and sealed_as_drawn(one.mechanism)
    }
    rows = row_release(columns, features, fitted, seals)
    released, types = rows.schema(features), dict(zip(columns.names, rows.types, strict=True))
    kinds = [types[name] if name in types else released.field(name).type for name in names]
    schema = released_schema(request, columns, map(pa.field, names, kinds), fitted)
    schema, secret = _with_receipt(request, columns, schema, key)
    check_holds(request.output, schema)
    traits = columns.first.mechanism.traits
    # Where no feature value is released unchanged, a copy of the label among them is no leak.
    watched = [n for n in features.names if n not in request.keep and traits.feature_values_kept]
    read = ColumnReader.of(source, request.files)
    looked = ReleasedColumns(watched, columns.names, survey.rows, source.schema.names, read)
    sample = synthetic_sample(one, survey, schema, fitted)
    # Text that is not changed keeps its letters: 1.50 stays 1.50.
    letters = is_csv(request.output) and traits.features == "unchanged"
    remembered = None if request.remember is None else RememberedAnswers(request.remember, columns)
    of_generator = () if fitted is None else fitted.warnings
    plan = _Plan(
        source,
        columns,
        names,
        rows,
        schema,
        looked,
        sample,
        letters,
        remembered,
        secret,
        seals,
    )
    return plan, (*unproven, *warnings_of(columns), *of_generator)


def _check_other_rows(
    request: PrivatizeRequest, source: TableSource, columns: PrivateColumns, features: pa.Schema
) -> None:
    """Refuse further tables that hold the private rows (InputError)."""
    for column in columns.each:
        one, classes = column.request, column.survey.domain.classes
        for place, role in (
            (one.synthetic, "synthetic"),
            (one.public, "public"),
            (one.generator_data, "generator's"),
        ):
            if place is not None:
                check_not_the_same_file(request.data, place, role)
                check_other_rows(
                    source, labelled_rows(place, one, features, classes, role)[0], role
                )


def _without_receipt(columns: PrivateColumns) -> str:
    """Return why labels could not be drawn again, so that a receipt would say nothing; or ""."""
    if columns.joint is not None:
        return ""
    return next(filter(None, (not_drawn(one.mechanism) for one in columns.each)), "")


def _with_receipt(
    request: PrivatizeRequest, columns: PrivateColumns, schema: pa.Schema, key: NoiseKey | None
) -> tuple[pa.Schema, Secret | None]:
    """Return the release's schema with the receipt in its declaration, and what is kept of it."""
    if key is None:
        return schema, None
    declared = (schema.metadata or {})[DECLARATION_KEY]
    statement = Statement.of(declared, columns.first.survey.rows, columns.seals or {})
    content = json.loads(declared) | {"receipt": statement.receipt(key)}
    priors = {
        one.name: PrivatePrior(one.prior.epsilon, one.prior.left, one.request.loss or "squared")
        for one in columns.each
        if one.prior is not None and one.prior.epsilon
    }
    secret = Secret(key, statement, request.id_column, priors=priors)
    return schema.with_metadata({DECLARATION_KEY: json.dumps(content)}), secret


class _Aside:
    """The file of true labels, with the key in its metadata."""

    # Where answers are repeated it is known only at the end which rows repeat one, and a seal of
    # drawn labels is, too: rows are held until then.

    def __init__(
        self,
        files: WholeFiles,
        place: Path,
        schema: pa.Schema,
        dialect: Dialect,
        plan: _Plan,
        private: Sequence[str],
    ) -> None:
        self._part, self._schema = files.add(place, private=True), schema
        self._files, self._place, self._dialect, self._plan = files, place, dialect, plan
        self._private = private
        self._held, self._open = list[pa.RecordBatch](), cast("TableFile | None", None)
        if not plan.seals and (plan.remembered is None or plan.remembered.new):
            self._start({})

    def write(self, batch: pa.RecordBatch) -> None:
        """Append rows."""
        if self._open is None:
            self._held.append(batch)
        else:
            self._open.write(batch)

    def close(self) -> None:
        """Write what was held."""
        if self._open is None:
            remembered = self._plan.remembered
            started = self._start({} if remembered is None else remembered.repeated())
            for batch in self._held:
                started.write(batch)

    def _start(self, repeated: Mapping[str, str]) -> TableFile:
        schema = self._schema
        if self._plan.secret is not None:
            drawn = {name: seal.digest() for name, seal in self._plan.seals.items()}
            content = replace(self._plan.secret, repeated=repeated, drawn=drawn).content()
            schema = schema.with_metadata({DECLARATION_KEY: content})
            write_declaration(self._files, self._place, schema, private=True)
        described = getattr(self._plan.source, "described", None)
        self._open = TableFile(self._part, schema, self._dialect, self._private, described)
        return self._open


def _write(
    plan: _Plan, request: PrivatizeRequest, progress: Progress, files: WholeFiles
) -> tuple[str, ...]:
    """Write the release, with the true labels and the sample where asked, or nothing at all."""
    # Returns warnings of columns that reveal more than they should.
    progress.step("releasing")
    private, source, survey = plan.columns.names, plan.source, plan.columns.first.survey
    person, dialect = request.id_column, getattr(source, "dialect", None) or USUAL
    read = list(dict.fromkeys([*plan.names, *filter(None, [person])]))
    done, again = 0, [np.zeros_like(one.survey.counts) for one in plan.columns.each]
    # What is kept aside: the private columns, who a row is about, and with the key all that the
    # noise depends on.
    strata = [one.request.by for one in plan.columns.each if plan.secret is not None]
    aside = [name for name in read if name in (*private, person, *strata)]
    secret = None
    if request.secret is not None:
        true = pa.schema([pa.field(name, source.schema.field(name).type) for name in aside])
        secret = _Aside(files, request.secret, true, dialect, plan, private)
    posterior, model = None, plan.rows.model
    if request.posterior_out is not None and model is not None:
        posterior = TableFile(files.add(request.posterior_out), model.schema, dialect)
    described = getattr(source, "described", None)
    release = TableFile(files.add(request.output), plan.schema, dialect, private, described)
    write_declaration(files, request.output, plan.schema)
    others = [name for name in plan.names if name not in private]
    alone = plan.rows.looks_at
    # Noise is drawn for a block; other columns than it needs stay in the batches they came in.
    needed = others if alone is None else [*alone]
    looked_at = list(dict.fromkeys([*private, *needed, *filter(None, [person])]))
    for block, (seen, pieces) in enumerate(_blocks(plan, read, looked_at)):
        features, labels = seen.select(needed), [seen.column(name) for name in private]
        codes = [one.codes(own, block) for one, own in zip(plan.columns.each, labels, strict=True)]
        for counts, own in zip(again, codes, strict=True):
            np.add(counts, np.bincount(own, minlength=len(counts)), out=counts)
        new, drawn = plan.rows.draw(features, labels, codes, block)
        if plan.remembered is not None:
            drawn = plan.remembered.repeat(seen.column(person), features, labels, drawn)
        if posterior is not None and model is not None:
            posterior.write(model.table(features))
        start = 0
        for batch, letters in pieces:
            refuse(start + len(batch) > len(seen), CHANGED)
            own_labels = [label.slice(start, len(batch)) for label in drawn]
            released = dict(zip(private, own_labels, strict=True))
            plan.looked.watch(batch.select(others), [batch.column(name) for name in private])
            if letters is not None:
                rows = letters.select(list(plan.names))
                for name, label in released.items():
                    rows = rows.set_column(plan.names.index(name), name, label)
            else:
                shown = batch if alone is not None else new
                kept = {n: without_unused(shown.column(n)) for n in others}
                cells = [(released | kept)[name] for name in plan.names]
                rows = pa.RecordBatch.from_arrays(cells, schema=plan.schema)
            release.write(rows)
            if secret is not None:
                secret.write(batch.select(aside))
            start += len(batch)
            done += len(batch)
            progress.advance(done, survey.rows)
        refuse(start != len(seen), CHANGED)
    if secret is not None:
        secret.close()
    warnings = plan.looked.check()
    check_unchanged()
    for one, counts in zip(plan.columns.each, again, strict=True):
        before = one.survey.counts
        same = one.survey.domain.drawn or np.array_equal(counts, before)
        refuse(counts.sum() != before.sum() or not same, CHANGED)
    if plan.sample is not None and request.synthetic_out is not None:
        file = TableFile(files.add(request.synthetic_out), plan.sample.schema)
        for batch in plan.sample.batches:
            file.write(batch)
    return warnings


def _blocks(
    plan: _Plan, read: Sequence[str], looked_at: Sequence[str]
) -> Iterator[tuple[pa.RecordBatch, Iterator[RowPair]]]:
    """Yield of each block what noise is drawn from, and its rows in the batches they come in."""
    source, rows = plan.source, plan.columns.first.survey.rows
    together = in_pieces(row_pairs(source, read, letters=plan.letters))
    if plan.rows.looks_at is not None and (not source.parsed or _is_large(source, rows)):
        # Read twice, so that no block is held: a few bytes can stand for very many of one.
        first = blocks((batch, None) for batch in source.batches(looked_at))
        for (seen, _), pieces in zip(first, together, strict=False):
            yield seen, pieces
        return
    for pieces in together:
        parts = held(pieces)
        if plan.rows.looks_at is None:
            parts = [joined(parts)]
        seen = one_batch([batch.select(list(looked_at)) for batch, _ in parts])
        parts.reverse()
        yield seen, (parts.pop() for _ in range(len(parts)))


def _is_large(source: TableSource, rows: int) -> bool:
    """Return whether a block of a text file may take more than a small part of the memory."""
    place = source.location
    size = 0 if place is None else place.most_bytes()
    return size * min(1.0, BLOCK_ROWS / max(rows, 1)) > allowed() / _BLOCK_SHARE


def released_schema(
    request: PrivatizeRequest,
    columns: PrivateColumns,
    fields: Iterable[pa.Field],
    fitted: FittedGenerator | None = None,
) -> pa.Schema:
    """Return the release's schema, with the declaration as its only metadata."""
    # Nothing in its ``provenance`` depends on a single row. With several columns the origin of
    # classes and priors is stated by column.

    def stated(of_columns: Mapping[str, str]) -> Any:
        return of_columns if len(columns.each) > 1 else next(iter(of_columns.values()))

    classes = {one.name: "data" if one.survey.from_data else "declared" for one in columns.each}
    entries: dict[str, Any] = {
        "randomness": "experimental generator" if request.experimental else "operating system",
        "classes": stated(classes),
    }
    if request.remember is not None:
        entries["answers"] = "remembered"
    if request.missing != "refuse":
        entries["missing"] = "left out" if request.missing == "drop" else "a class"
    if priors := {one.name: one.prior.source for one in columns.each if one.prior is not None}:
        labels, spent = columns.labels_epsilon, columns.spent
        parts = {"prior": spent, "labels": labels, "total": spent + labels}
        entries |= {"prior": stated(priors), "epsilon": parts}
    if fitted is not None:
        entries["generator"] = fitted.provenance()
    if request.synthetic_out is not None:
        rows = sample_rows(columns.first.request, columns.first.survey)
        entries["synthetic_sample"] = {"rows": rows, "draws": "independent of the release"}
    fields, unchanged = [*fields], columns.first.mechanism.traits.features == "unchanged"
    before = tuple(f.name for f in fields if unchanged and f.name not in columns.names)
    declared = replace(columns.declaration(), before=before, provenance=entries)
    return pa.schema(fields, metadata={DECLARATION_KEY: declared_content(declared)})


def warnings_of(columns: PrivateColumns) -> Iterator[str]:
    """Yield what is to be said of the mechanisms, before any row is released."""
    alone, rows = len(columns.each) == 1, columns.first.survey.rows
    channels = [one.mechanism.channel for one in columns.each]
    epsilons = [one.mechanism.epsilon or 0.0 for one in columns.each]
    for one, channel, epsilon in zip(columns.each, channels, epsilons, strict=True):
        about = "" if alone else f"Private column {quoted(one.name)}: "
        yield from _in_the_clear(one, about)
        if _LARGE_EPSILON < epsilon < math.inf:
            share = ""
            if channel is not None and channel.outputs == channel.classes:
                kept, most = (100 * end(channel.matrix.diagonal()) for end in (np.min, np.max))
                part = (
                    f"{kept:.1f} % of" if most - kept < 0.05 else f"{kept:.1f} to {most:.1f} % of"
                )
                part = "nearly all" if kept >= 99.95 else part
                share = f": {part} labels are released as they are"
            yield (
                f"{about}With ε = {epsilon:.6g} the mechanism hides little{share}. Give a smaller "
                "--epsilon."
            )
        few = int((one.survey.counts < _FEW_OF_A_LABEL).sum()) if one.survey.from_data else 0
        if few:
            stand = "1 label stands" if few == 1 else f"{few} labels each stand"
            yield (
                f"{about}{stand} in fewer than {_FEW_OF_A_LABEL} rows, and the release declares "
                "every label by name. Where that is a row of totals, a mark of a missing value or "
                "a misspelling, correct it, or name the labels with --classes."
            )
        for alike in nearly_alike(() if channel is None else channel.classes):
            yield (
                f"{about}{alike}, and they are randomized as labels of their own: spell each label "
                "in one way."
            )
        if channel is not None and len(channel.outputs) == 1:
            yield (
                f"{about}At this ε and prior the mechanism gives every row the same label: the "
                "release says nothing of the labels. Give a larger --epsilon, or another mechanism."
            )
        if (strata := one.strata) is not None:
            empty = len(strata.classes) - len(np.unique(strata.codes(strata.found)))
            if empty:
                yield (
                    f"{about}{empty} of {len(strata.classes)} strata have no row; their channels "
                    "are declared."
                )
    total = columns.labels_epsilon
    if not alone and total > _LARGE_EPSILON >= max(epsilons):
        yield (
            f"With ε = {total:.6g} for all {len(columns.each)} private columns together the "
            "release hides little of a person: give some a smaller epsilon, or release fewer of "
            "them."
        )
    labels = max(2 if channel is None else len(channel.classes) for channel in channels)
    if rows < _FEW_ROWS * labels:
        size = f"{_counted(rows)}, {labels} labels"
        yield f"Few people are in this table ({size}): an audit of so few may be inconclusive."


def _counted(rows: int) -> str:
    return "1 row" if rows == 1 else f"{rows:,} rows"


def _in_the_clear(column: PrivateColumn, about: str) -> Iterator[str]:
    """Yield who is released as they are, and what that reveals about everybody."""
    strata = column.mechanism.by_stratum
    parts = [one.channel for one in strata or (column.mechanism,) if one.channel is not None]
    kept = sorted({place for channel in parts for place in channel.unperturbed})
    if not kept:
        return
    epsilon = max(channel.epsilon_of_others for channel in parts)
    labels = "1 label is" if len(kept) == 1 else f"{len(kept)} labels are"
    whose, rows = "", column.survey.rows
    if not strata:
        people = int(column.survey.counts[kept].sum())
        whose = f": the true label of {people:,} of the {rows:,} people ({people / rows:.1%})"
    yield (
        f"{about}{labels} released as {'it is' if len(kept) == 1 else 'they are'}"
        f"{' in some strata' if strata else ''}{whose}, whose ε is infinite. Of everybody else it "
        f"is revealed that the label is another one; which one of the others costs ε = "
        f"{epsilon:.6g}."
    )


def second_draw(request: PrivatizeRequest, columns: PrivateColumns) -> Iterator[str]:
    """Yield a sentence where a release, or true labels, of the same columns are replaced."""
    # Not where its answers are remembered, and not for an experiment, whose draws protect nobody.
    remembered = request.remember is not None and request.remember.is_file()
    if not request.overwrite or remembered or request.experimental:
        return
    for file, was, declares in (
        (request.output, "was a release of private columns", True),
        (request.secret, "held the true values of columns", False),
    ):
        if file is not None and frozenset(columns.names) & _held(file, declares=declares):
            yield (
                f"{quoted(file.name)}, which is replaced, {was} of the same name. If it was of the "
                "same people, this is a second, independent draw of their labels, and the two "
                "together reveal up to the sum of their ε: let nobody have both. --remember "
                "repeats answers instead."
            )
            return


def _held(path: Path, *, declares: bool) -> frozenset[str]:
    """Return the columns that a table holds, or the private ones that it declares."""
    if not path.is_file():
        return frozenset()
    try:
        with watching(noted=False):
            table = open_table(path)
        if not declares or table.declaration is None:
            return frozenset() if declares else frozenset(table.names)
    except (LdpAuditError, OSError, pa.ArrowException):
        return frozenset()
    try:
        return frozenset(parse_declaration(table.declaration).names)
    except LdpAuditError:  # Whatever it declares, it is a release.
        return frozenset(table.names)
