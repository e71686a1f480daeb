"""The first pass: the private columns' labels are read, and their mechanisms built."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from ldpaudit.commands.privatize.checks import options_of
from ldpaudit.commands.privatize.labels.domains import ClassDomain
from ldpaudit.commands.privatize.labels.priors import Prior, choose_prior
from ldpaudit.commands.privatize.labels.strata import StratumCount
from ldpaudit.commands.privatize.labels.survey import (
    ClassCount,
    LabelCount,
    NumberCount,
    Survey,
    read_labels,
)
from ldpaudit.commands.privatize.mechanism import (
    DeclaredLabels,
    build,
    channels_of,
    check_hides,
    declared_labels,
)
from ldpaudit.commands.privatize.private_columns import PrivateColumn, PrivateColumns
from ldpaudit.commands.privatize.request import ColumnRequest
from ldpaudit.commands.privatize.stated import StatedRelease, about
from ldpaudit.datasets.beside.channel_tables import ColumnChannels
from ldpaudit.datasets.beside.priors import LabelPrior, read_prior
from ldpaudit.datasets.declaration.parsing import BY_STRATUM
from ldpaudit.datasets.formats.batches import BatchSource
from ldpaudit.errors import InputError
from ldpaudit.mechanisms import family
from ldpaudit.mechanisms.interface import Mechanism
from ldpaudit.mechanisms.joint import joint_family
from ldpaudit.release import Label
from ldpaudit.running.progress import Progress

_BETWEEN = (
    " Numbers between the mechanism's labels are rounded to one of them with --round unbiased, "
    "which keeps their mean, or --round nearest."
)
_NOT_IN_PRIOR = (
    " The classes are those that the prior (--prior) lists: give it a row for each label."
)


@dataclass(frozen=True, eq=False)
class StatedColumn:
    """A private column before any row is read.

    Attributes
    ----------
    request : ColumnRequest
    labels : DeclaredLabels
    table : LabelPrior or None
        The prior's file.
    channels : ColumnChannels or None
        The table of the strata's channels, where there is one.
    """

    request: ColumnRequest
    labels: DeclaredLabels
    table: LabelPrior | None
    channels: ColumnChannels | None

    @property
    def strata(self) -> Collection[str]:
        """The values of the public column that have channels of their own, as text."""
        return self.request.strata if self.channels is None else self.channels.tables


def stated_columns(stated: StatedRelease) -> tuple[StatedColumn, ...]:
    """Read what the options name: priors and channels.

    Raises
    ------
    InputError
        If a file cannot be read, or labels are not declared where they must be.
    """
    return tuple(_stated(request) for request in stated.columns)


def _stated(request: ColumnRequest) -> StatedColumn:
    with about(request):
        table = None if request.prior is None else read_prior(request.prior, request)
        of_prior = None if table is None else table.labels
        of_table = request.by is not None and not request.strata
        channels = channels_of(request) if of_table else None
        return StatedColumn(request, declared_labels(request, of_prior), table, channels)


def read_columns(
    stated: StatedRelease,
    columns: Sequence[StatedColumn],
    source: BatchSource,
    progress: Progress,
) -> PrivateColumns:
    """Read the labels of all private columns in one pass, and build their mechanisms.

    Raises
    ------
    InputError
        If a label is missing or none that its mechanism takes, or a parameter is out of range.
    """
    counts = [_counts(column, source) for column in columns]
    labels = [(one.request.label, count) for one, (count, _) in zip(columns, counts, strict=True)]
    strata = [(count.by, count) for _, count in counts if count is not None]
    read_labels(source, [*labels, *strata], progress)
    surveys = []
    for column, (count, _) in zip(columns, counts, strict=True):
        with about(column.request):
            surveys.append(count.survey(source.name))
    if stated.joint is not None:
        return _jointly(stated, columns, surveys, source)
    built = []
    for column, survey, (_, by) in zip(columns, surveys, counts, strict=True):
        with about(column.request):
            built.append(_built(column, survey, source, None if by is None else by.domain()))
    return PrivateColumns(tuple(built))


def _counts(column: StatedColumn, source: BatchSource) -> tuple[LabelCount, StratumCount | None]:
    """Return what reads a column's labels, and its strata."""
    request, by = column.request, column.request.by
    with about(request):
        kind = source.schema.field(request.label).type
        count = label_count(request, column.labels, kind)
        if by is None:
            return count, None
        return count, StratumCount(by, source.schema.field(by).type, column.strata)


def _built(
    column: StatedColumn, survey: Survey, source: BatchSource, strata: ClassDomain | None
) -> PrivateColumn:
    """Return a column that is released by itself."""
    request, used = column.request, list[Prior]()
    field = source.schema.field(request.label)

    def prior(classes: tuple[Label, ...]) -> Prior:
        used.append(choose_prior(request, column.table, survey, classes))
        return used[-1]

    def mechanism(one: ColumnRequest, labels: DeclaredLabels) -> Mechanism:
        return build(one, labels, survey.domain.classes, prior)

    if strata is None:
        built = mechanism(request, column.labels)
    elif column.channels is not None:
        built = _declared_strata(column.channels.mechanism())
    else:
        own = [(one, _same_labels(one, column, survey)) for one in request.strata.values()]
        built = _by_stratum(strata, [mechanism(*one) for one in own])
    used_prior = used[0] if used else None
    return PrivateColumn(request, field, survey, built, used_prior, strata, _empty(strata))


def _empty(strata: ClassDomain | None) -> tuple[str, ...]:
    """Return a warning of strata without rows."""
    if strata is None:
        return ()
    empty = len(strata.classes) - len(np.unique(strata.codes(strata.found)))
    if not empty:
        return ()
    return (f"{empty} of {len(strata.classes)} strata have no row; their channels are declared.",)


def _same_labels(one: ColumnRequest, column: StatedColumn, survey: Survey) -> DeclaredLabels:
    """Return the labels of a stratum's channel, which must be the column's (InputError)."""
    labels = declared_labels(one, None if column.table is None else column.table.labels)
    if labels.classes is not None and labels.classes != survey.domain.classes:
        raise InputError(
            "The channels of all strata must have the same labels in the same order; where only "
            "some state them, give the column's classes."
        )
    return labels


def _by_stratum(strata: ClassDomain, mechanisms: Sequence[Mechanism]) -> Mechanism:
    stated = [
        {"value": value, "mechanism": {"name": one.name, **one.declaration()}}
        for value, one in zip(strata.classes, mechanisms, strict=True)
    ]
    return _declared_strata({"strata": stated})


def _declared_strata(stated: Mapping[str, Any]) -> Mechanism:
    built = family(BY_STRATUM).from_parameters({"strata": stated["strata"]}, ())
    check_hides(built)
    return built


def _jointly(
    stated: StatedRelease,
    columns: Sequence[StatedColumn],
    surveys: Sequence[Survey],
    source: BatchSource,
) -> PrivateColumns:
    """Return columns that one mechanism releases together."""
    assert stated.joint is not None
    domains = [survey.domain.classes for survey in surveys]
    joint = joint_family(stated.joint).from_parameters({"epsilon": stated.epsilon}, domains)
    built = zip(columns, surveys, joint.columns, strict=True)
    return PrivateColumns(
        tuple(
            PrivateColumn(one.request, source.schema.field(one.request.label), survey, alone)
            for one, survey, alone in built
        ),
        joint,
    )


def survey_labels(
    request: ColumnRequest, labels: DeclaredLabels, source: BatchSource, progress: Progress
) -> Survey:
    """Read the labels of one column: numbers of a declared range, or classes."""
    count = label_count(request, labels, source.schema.field(request.label).type)
    read_labels(source, [(request.label, count)], progress)
    return count.survey(source.name)


def label_count(request: ColumnRequest, labels: DeclaredLabels, kind: pa.DataType) -> LabelCount:
    """Return what reads the labels of a column of this type, as its mechanism needs them."""
    domain = labels.numeric_domain(request.round, request.randomness("rounding"))
    between = "round" in options_of(request.mechanism) and request.round is None
    if domain is not None:
        return NumberCount(kind, domain, _BETWEEN if between else "")
    hint = _BETWEEN if between else ""
    if request.prior is not None and request.classes is None:
        hint = _NOT_IN_PRIOR
    return ClassCount(kind, labels.classes, hint)
