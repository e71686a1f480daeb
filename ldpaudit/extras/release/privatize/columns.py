"""The private columns: their labels read in the first pass, their mechanisms built."""

import math
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

import numpy as np
import pyarrow as pa

from ldpaudit.datasets.declaration import BY_STRATUM
from ldpaudit.datasets.formats.tables import TableSource
from ldpaudit.datasets.labels import positions
from ldpaudit.datasets.probabilities import ColumnChannels, column_channels, embedded
from ldpaudit.doors import (
    Declaration,
    FloatArray,
    InputError,
    IntArray,
    Mechanism,
    NoisyFeatures,
    Progress,
    check_classes,
    family,
    refuse,
)
from ldpaudit.errors import quoted
from ldpaudit.extras.release.priors import LabelPrior, prior_over, read_prior
from ldpaudit.extras.release.privatize.labels import (
    ClassCount,
    ClassDomain,
    LabelCount,
    NumberCount,
    NumberDomain,
    Survey,
    Tally,
    blocks,
)
from ldpaudit.extras.release.privatize.plan import StatedRelease, about, options_of
from ldpaudit.extras.release.privatize.request import ColumnRequest
from ldpaudit.mechanisms import MechanismOptions, traits_of
from ldpaudit.mechanisms.joint import IndependentColumns, JointMechanism, joint_family
from ldpaudit.mechanisms.keyed import NoiseKey
from ldpaudit.mechanisms.label_range import LabelRange
from ldpaudit.mechanisms.parameters import check_list, check_numeric_classes
from ldpaudit.mechanisms.prior_budget import check_prior_budget, prior_budget, private_prior
from ldpaudit.mechanisms.rounded import with_rounding
from ldpaudit.mechanisms.rounding import Rounding
from ldpaudit.receipt.commitment import LabelSeal
from ldpaudit.release import ColumnsDeclaration, Label, LabelDeclaration

CHANGED: Final = "The data changed while it was read; run again when nothing writes to it."
# By how much more ε than asked for is rounding alone, relatively.
_ROUNDING: Final = 1e-6
# Options that are further parameters of a declaration, with their names there.
_SETTINGS: Final = {
    "clipped": "clipped",
    "floor": "floor",
    "stages": "stages",
    "radius": "radius",
    "sigma": "sigma",
    "feature_epsilon": "feature_epsilon",
    "delta": "feature_delta",
}
_BETWEEN: Final = (
    " Numbers between the mechanism's labels are rounded to one of them by privatize --round "
    "unbiased, which keeps their mean, or --round nearest; sweep and advise need a table in which "
    "they are rounded."
)
_NOT_IN_PRIOR: Final = (
    " The classes are those that the prior (--prior) lists: give it a row for each label."
)


@dataclass(frozen=True, eq=False)
class Prior:
    """Probabilities of the k labels, and ε₁ in nats that they cost where they are of the data."""

    probabilities: FloatArray
    source: Literal["file", "uniform", "private histogram"]
    epsilon: float = 0.0
    left: float = 0.0
    """What they leave of ε for the labels, where they cost some."""


@dataclass(frozen=True, eq=False)
class PrivateColumn:
    """A private column with its mechanism."""

    request: ColumnRequest
    field: pa.Field
    """The true labels' column."""
    survey: Survey
    mechanism: Mechanism
    """Of a joint release the column's own, as somebody sees it who sees no other."""
    prior: Prior | None = None
    """What a design was made for."""
    strata: ClassDomain | None = None
    """The values of the column ``request.by``."""

    @property
    def name(self) -> str:
        """The column."""
        return self.request.label

    def codes(self, label: pa.Array, block: int = 0) -> IntArray:
        """Return codes of a block's true labels, int32 of shape (n,)."""
        return unchanged(self.survey.domain.codes(label, block))


def unchanged(codes: IntArray) -> IntArray:
    """Return codes of a batch; refuse one that the first pass has not seen."""
    refuse((codes < 0).any(), CHANGED)
    return codes


@dataclass(frozen=True, eq=False)
class PrivateColumns:
    """All private columns of a release, one at least.

    ``joint`` is the mechanism that releases all of them together; None: each has its own.
    ``seals``: the digests of the true labels, where there is a receipt.
    """

    each: tuple[PrivateColumn, ...]
    joint: JointMechanism | None = None
    seals: Mapping[str, str] | None = None

    @property
    def first(self) -> PrivateColumn:
        """The only column, where there is one."""
        return self.each[0]

    @property
    def names(self) -> tuple[str, ...]:
        """The columns."""
        return tuple(one.name for one in self.each)

    @property
    def labels_epsilon(self) -> float:
        """ε in nats of all released labels of a row together."""
        if self.joint is not None or len(self.each) == 1:
            return (self.joint or self.first.mechanism).epsilon or 0.0
        mechanisms = tuple(one.mechanism for one in self.each)
        together = IndependentColumns(mechanisms, tuple(one.request.by for one in self.each))
        return together.epsilon or 0.0

    @property
    def spent(self) -> float:
        """ε in nats that private priors spent, those of all columns together."""
        return sum(one.prior.epsilon for one in self.each if one.prior is not None)

    def declaration(self) -> ColumnsDeclaration:
        """Return what is declared about the columns, without the provenance."""
        if self.joint is not None:
            labels = tuple(map(LabelDeclaration, self.names))
            return ColumnsDeclaration(labels, _claim(self.joint))
        each = (LabelDeclaration(c.name, _claim(c.mechanism), c.request.by) for c in self.each)
        return ColumnsDeclaration(tuple(each))


def _claim(mechanism: Mechanism | JointMechanism) -> Declaration:
    return Declaration(mechanism.name, dict(mechanism.declaration()), "api")


@dataclass(frozen=True)
class DeclaredLabels:
    """What is known of labels before data is read: their range, their classes, or neither."""

    range: LabelRange | None = None
    classes: tuple[Label, ...] | None = None

    def are_classes(self, request: ColumnRequest) -> bool:
        """Return whether labels are classes, which a text file spells, and no numbers."""
        numeric = request.round is not None or traits_of(request.mechanism).numeric
        return self.range is None and not numeric

    def count(self, request: ColumnRequest, kind: pa.DataType) -> LabelCount:
        """Return what reads the labels of a column of this type, as its mechanism needs them."""
        hint, draws = "", request.draws("rounding")
        if request.round is not None:
            points = self.classes if self.range is None else self.range.classes
            rounding = Rounding(points or (), request.round)
            return NumberCount(kind, NumberDomain(self.range, rounding, draws))
        if "round" in options_of(request.mechanism):
            hint = _BETWEEN
        if self.range is not None:
            return NumberCount(kind, NumberDomain(self.range), hint)
        if request.prior is not None and request.classes is None:
            hint = _NOT_IN_PRIOR
        return ClassCount(kind, self.classes, hint)


def declared_labels(request: ColumnRequest, of_prior: tuple[Label, ...] | None) -> DeclaredLabels:
    """Return the labels that the options state, else those of the prior's file (``of_prior``)."""
    # InputError if they are no range of numbers, or a numeric mechanism is given none.
    mechanism = family(request.mechanism)
    traits = mechanism.traits
    if "matrix" in traits.needs:
        return DeclaredLabels(classes=check_classes(_matrix(request)["classes"]))
    if request.labels is not None:
        labels = LabelRange.parse(request.labels)
        if (
            of_prior
            and request.round is not None
            and labels.step is None
            and "prior" in traits.needs
        ):
            return DeclaredLabels(classes=_points_of_prior(labels, of_prior))
        return DeclaredLabels(mechanism.applied_range(labels))
    classes = request.classes if request.classes is not None else of_prior
    if "range" in traits.needs or (classes is None and traits.numeric):
        must = "the labels' range with --labels LO:HI[:STEP]; it is declared"
        if "range" not in traits.needs:
            must = "its labels with --labels LO:HI:STEP or --classes; they are declared"
        raise InputError(
            f"The mechanism {request.mechanism!r} must be given {must}, never read from the data."
        )
    if classes is None:
        return DeclaredLabels()
    refuse(
        request.classes is None and len(classes) < 2,
        "The prior (--prior) must list every label: at least two. It lists one.",
    )
    checked = check_numeric_classes(classes) if traits.numeric else check_classes(classes)
    return DeclaredLabels(classes=checked)


def _points_of_prior(labels: LabelRange, of_prior: tuple[Label, ...]) -> tuple[Label, ...]:
    """Return the labels of the prior's file in order: what numbers in the range are rounded to."""
    numeric = all(isinstance(v, int | float) and not isinstance(v, bool) for v in of_prior)
    points = check_numeric_classes(sorted(of_prior, key=float) if numeric else of_prior)
    refuse(
        (float(points[0]), float(points[-1])) != (labels.low, labels.high),
        "The labels of --prior are what numbers are rounded to: its lowest and highest must be "
        "the bounds of --labels.",
    )
    return points


@dataclass(frozen=True, eq=False)
class StatedColumn:
    """A private column before any row is read, with the files that its options name."""

    request: ColumnRequest
    labels: DeclaredLabels
    table: LabelPrior | None
    channels: ColumnChannels | None
    """The table of the strata's channels, where there is one."""

    @property
    def strata(self) -> Collection[str]:
        """The values of the public column that have channels of their own, as text."""
        return self.request.strata if self.channels is None else self.channels.tables


def stated_columns(stated: StatedRelease) -> tuple[StatedColumn, ...]:
    """Read priors and channels (InputError where one cannot be read, or labels are lacking)."""
    columns = []
    for request in stated.columns:
        with about(request):
            table = None if request.prior is None else read_prior(request.prior, request)
            of_table = request.by is not None and not request.strata
            channels = _channels(request) if of_table else None
            of_prior = None if table is None else table.labels
            labels = declared_labels(request, of_prior)
            own = [declared_labels(one, of_prior).classes for one in request.strata.values()]
            if len({*own}) > 1 and all(own):
                every = dict.fromkeys(label for classes in own for label in classes or ())
                labels = DeclaredLabels(classes=check_classes(tuple(every)))
            columns.append(StatedColumn(request, labels, table, channels))
    return tuple(columns)


class _Sealing:
    """Seals the labels of one column; what is wrong with them is told by what reads them."""

    def __init__(self, key: NoiseKey, stated: StatedRelease, name: str) -> None:
        one = next(column for column in stated.columns if column.label == name)
        numeric = one.by is None and stated.joint is None and traits_of(one.mechanism).numeric
        self.seal = LabelSeal(key, name, numeric=numeric)

    def add(self, column: pa.Array, block: int) -> None:
        with suppress(InputError):
            self.seal.add(column, block)


def read_columns(
    stated: StatedRelease,
    columns: Sequence[StatedColumn],
    source: TableSource,
    progress: Progress,
    key: NoiseKey | None = None,
) -> PrivateColumns:
    """Read the labels of all private columns in one pass, and build their mechanisms.

    ``key``: seals the labels. InputError if a label is missing or none that its mechanism takes,
    or a parameter is out of range.
    """
    labels: list[tuple[str, LabelCount]] = []
    strata: dict[str, tuple[str, Tally]] = {}
    for one in columns:
        with about(one.request):
            name, by = one.request.label, one.request.by
            labels.append((name, one.labels.count(one.request, source.schema.field(name).type)))
            if by is not None:
                strata[name] = by, Tally(source.schema.field(by).type)
    seals = {} if key is None else {name: _Sealing(key, stated, name) for name, _ in labels}
    read_labels(source, [*labels, *strata.values(), *seals.items()], progress)
    sealed = {name: one.seal.digest() for name, one in seals.items()}
    surveys = []
    for one, (_, count) in zip(columns, labels, strict=True):
        with about(one.request):
            surveys.append(count.survey(source.name))
    fields = [source.schema.field(one.request.label) for one in columns]
    if stated.joint is not None:
        domains = [survey.domain.classes for survey in surveys]
        kind = joint_family(stated.joint)
        joint = kind.from_parameters({"epsilon": stated.epsilon}, domains)
        # What our rs-fd calls ε, as its authors do, is less than its exact one.
        if not kind.__module__.startswith("ldpaudit."):
            _check_within(joint, stated.epsilon)
        parts = zip((c.request for c in columns), fields, surveys, joint.columns, strict=True)
        return PrivateColumns(tuple(PrivateColumn(*part) for part in parts), joint, sealed)
    built = []
    for column, field, survey in zip(columns, fields, surveys, strict=True):
        with about(column.request):
            request, domain, prior = column.request, None, None
            if (tally := strata.get(request.label)) is None:
                mechanism, prior = build(request, column.labels, survey, column.table)
            else:
                domain = tally[1].strata(tally[0], column.strata)
                mechanism, prior = _by_stratum(column, survey, domain)
            built.append(PrivateColumn(request, field, survey, mechanism, prior, domain))
    return PrivateColumns(tuple(built), seals=sealed)


def read_labels(
    source: TableSource,
    counts: Sequence[tuple[str, LabelCount | Tally | _Sealing]],
    progress: Progress,
) -> None:
    """Read columns, each with what reads its labels, in one pass over the rows."""
    progress.step("reading the labels")
    done, names = 0, list(dict.fromkeys(name for name, _ in counts))
    for block, (batch, _) in enumerate(blocks((batch, None) for batch in source.batches(names))):
        for name, count in counts:
            count.add(batch.column(name), block)
        done += len(batch)
        if source.row_count:
            progress.advance(done, source.row_count)


def survey_labels(
    request: ColumnRequest, labels: DeclaredLabels, source: TableSource, progress: Progress
) -> Survey:
    """Read the labels of one column: numbers of a declared range, or classes."""
    count = labels.count(request, source.schema.field(request.label).type)
    read_labels(source, [(request.label, count)], progress)
    return count.survey(source.name)


def _by_stratum(
    column: StatedColumn, survey: Survey, strata: ClassDomain
) -> tuple[Mechanism, Prior | None]:
    """Return the mechanism of a column whose strata have channels of their own."""
    prior: Prior | None = None
    if column.channels is not None:
        channels = column.channels.mechanism()["strata"]
    else:
        channels = []
        for value, one in zip(strata.classes, column.request.strata.values(), strict=True):
            labels = declared_labels(one, None if column.table is None else column.table.labels)
            every = survey.domain.classes
            if labels.classes is None or labels.classes == every:
                own, spent = build(one, labels, survey, column.table)
                stated: Mapping[str, Any] = {"name": own.name, **own.declaration()}
            else:
                own, spent = build(one, labels, _within(survey, labels.classes), column.table)
                stated = _over_every(own, every)
            prior = prior or spent
            channels.append({"value": value, "mechanism": stated})
    mechanism = family(BY_STRATUM).from_parameters({"strata": channels}, ())
    if column.channels is not None:
        _check_hides(mechanism)  # Others are checked one by one.
    return mechanism, prior


def _within(survey: Survey, classes: tuple[Label, ...]) -> Survey:
    """Return what is known of some of the labels, those of a group (InputError)."""
    place = positions(classes, survey.domain.classes)
    refuse(
        (place < 0).any(),
        "A stratum's labels must be among those of the column; where the column's classes are not "
        "given, they are read from the data.",
    )
    domain = ClassDomain(classes, survey.found)
    return replace(survey, domain=domain, counts=survey.counts[place])


def _over_every(own: Mechanism, every: tuple[Label, ...]) -> Mapping[str, Any]:
    """Return a group's mechanism as a channel over the labels of all groups."""
    channel = own.channel
    if channel is None or not {*channel.outputs} <= {*channel.classes}:
        raise InputError(
            "A mechanism of some of the labels (strata with their own, --unperturbed) must release "
            "these labels."
        )
    matrix = embedded(channel.matrix, channel.classes, channel.outputs, every)
    labels = list(every)
    return {"name": "channel", "classes": labels, "outputs": labels, "matrix": matrix.tolist()}


def build(
    request: ColumnRequest, labels: DeclaredLabels, survey: Survey, table: LabelPrior | None
) -> tuple[Mechanism, Prior | None]:
    """Return the mechanism, and the prior that it was designed for.

    ``table``: the file of the prior. InputError if a parameter is out of range, or ε would be
    infinite, but for labels that are asked to stay as they are.
    """
    if request.unperturbed is not None:
        return _with_unperturbed(request, labels, survey, table)
    mechanism = family(request.mechanism)
    prior: Prior | None = None
    options = MechanismOptions(
        epsilon=request.epsilon,
        noise=request.noise,
        classes=survey.domain.classes or None,
        labels=labels.range,
        loss=request.loss or "squared",
        settings=_settings(request, survey.rows),
    )
    if "prior" in mechanism.traits.needs:
        prior = _prior(request, table, survey)
        assert options.epsilon is not None
        left = options.epsilon - prior.epsilon
        options = replace(options, prior=prior.probabilities, epsilon=left)
    try:
        built = mechanism.from_options(options)
    except InputError as error:
        message = str(error)
        for option, name in _SETTINGS.items():
            message = message.replace(f"'{name}'", f"--{option.replace('_', '-')}")
        raise InputError(message) from None
    _check_hides(built)
    _check_within(built, options.epsilon)
    noisy = built.offers(NoisyFeatures)
    refuse(
        noisy is not None and not noisy.claim_holds(),
        "--sigma is too small for --feature-epsilon and --delta; give a larger one.",
    )
    return with_rounding(built, request.round), prior


def _with_unperturbed(
    request: ColumnRequest, labels: DeclaredLabels, survey: Survey, table: LabelPrior | None
) -> tuple[Mechanism, Prior | None]:
    """Return a channel that keeps some labels, and draws among the others by the mechanism."""
    every, asked = survey.domain.classes, check_list("unperturbed", request.unperturbed or ())
    kept = positions(asked, every)
    refuse(
        (kept < 0).any(),
        f"--unperturbed must name labels of the column; {int((kept < 0).sum())} of {len(kept)} "
        "are none of its classes.",
    )
    others = tuple(label for place, label in enumerate(every) if place not in {*kept.tolist()})
    refuse(
        len(others) < 2,
        f"--unperturbed must leave two labels at least to draw among; it leaves {len(others)}.",
    )
    inner = replace(request, unperturbed=None, classes=None)
    within = replace(labels, classes=others if labels.classes is not None else None)
    own, prior = build(inner, within, _within(survey, others), table)
    matrix = np.array(_over_every(own, every)["matrix"])
    matrix[kept] = np.eye(len(every))[kept]
    stated = {"classes": list(every), "outputs": list(every), "matrix": matrix.tolist()}
    return family("channel").from_parameters(stated, ()), prior


def _check_hides(mechanism: Mechanism) -> None:
    """Refuse a mechanism whose ε is infinite (InputError)."""
    refuse(
        mechanism.epsilon is None or not math.isfinite(mechanism.epsilon),
        "With these parameters epsilon is infinite: some true label would be revealed for "
        "certain; give a larger lambda or floor, or a channel without zeros.",
    )


def _check_within(mechanism: Mechanism | JointMechanism, asked: float | None) -> None:
    """Refuse a mechanism whose exact ε is larger than the one asked for (InputError)."""
    epsilon = mechanism.epsilon
    if asked is not None and epsilon is not None and epsilon > asked * (1 + _ROUNDING):
        raise InputError(
            f"The mechanism {mechanism.name!r} has ε = {epsilon:.6g} where ε = {asked:.6g} was "
            "asked for; nothing was released."
        )


def _prior(request: ColumnRequest, table: LabelPrior | None, survey: Survey) -> Prior:
    """Return the prior of the labels that the options state: of a file, the data, or uniform."""
    # InputError if the file's labels are not the classes, it is no distribution or gives no
    # probability to labels that occur; if a private prior leaves no ε; or if RR-Top-k is given
    # none.
    classes, asked = survey.domain.classes, request.private_prior
    if table is not None:
        probabilities = prior_over(classes, table)
        impossible = survey.counts * (probabilities == 0)
        # Rounding reaches neighbours of what occurs.
        refuse(
            request.round is None and impossible.any(),
            f"The prior gives no probability to labels ({np.count_nonzero(impossible)}) that "
            f"occur in {impossible.sum():,} of {survey.rows:,} rows; give every label that is "
            "possible a probability above 0.",
        )
        return Prior(probabilities, "file")
    if asked is not None:
        assert request.epsilon is not None
        budget = prior_budget(request.epsilon, len(classes), survey.rows)
        first = budget if asked == "auto" else asked
        # Few rows may do with a poor prior; where one count is noise alone, none does.
        check_prior_budget(first, 1, survey.rows)
        noisy = private_prior(survey.counts, first, request.draws("prior").at())
        return Prior(noisy, "private histogram", first, request.epsilon - first)
    # On classes a uniform prior would say nothing about which labels to keep.
    refuse(
        not traits_of(request.mechanism).numeric,
        f"The mechanism {request.mechanism!r} must be given a prior: --prior FILE or "
        "--private-prior EPS1.",
    )
    return Prior(np.full(len(classes), 1 / len(classes)), "uniform")


def _settings(request: ColumnRequest, rows: int) -> Mapping[str, Any]:
    takes = options_of(request.mechanism)
    if "channel" in takes:
        stated = _matrix(request)
        return {key: stated[key] for key in ("outputs", "matrix")}
    stated = {
        name: getattr(request, option) for option, name in _SETTINGS.items() if option in takes
    }
    stated["rows"] = None if stated.get("stages") is None else max(rows, 1)  # Tell the stages.
    return {name: value for name, value in stated.items() if value is not None}


def _matrix(request: ColumnRequest) -> Mapping[str, Any]:
    """Return a channel as a declaration states it, its labels as values; of strata the first."""
    stated = _channels(request).mechanism()
    return next(iter(stated["strata"]))["mechanism"] if "strata" in stated else stated


def _channels(request: ColumnRequest) -> ColumnChannels:
    """Return the channel of a column, or those of its strata, as its table states them."""
    # InputError if there is no table, or none of its channels is the column's.
    if request.channel is None:
        raise InputError(
            f"The mechanism {request.mechanism!r} must be given its matrix with --channel FILE."
        )
    # Strata of a plan have a table each.
    by = None if request.strata else request.by
    tables = column_channels(request.channel, by, request)
    found = [one for one in tables if one.variable in (None, request.label)]
    refuse(
        not found,
        f"The table of channels has none for the column {quoted(request.label)}; it has those "
        f"of other columns ({len(tables)}).",
    )
    refuse(
        found[0].by is not None and by is None,
        "The table has a channel for each value of one of its columns; name it: by=COLUMN.",
    )
    return found[0]
