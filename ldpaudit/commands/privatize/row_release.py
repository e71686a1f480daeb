"""A mechanism ready to be applied to rows: label and features together, batch by batch.

How a mechanism releases is registered by its type (:func:`released_by`); a package with another
kind of mechanism registers its own.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import singledispatch
from typing import Any, Protocol

import pyarrow as pa

from ldpaudit.commands.privatize.features.generated_rows import FittedGenerator, RowSource
from ldpaudit.commands.privatize.features.public_model import fit_public_model
from ldpaudit.commands.privatize.features.release import (
    AsTheyAre,
    FeatureRelease,
    GaussianNoise,
    Withheld,
    replaced,
    unordered,
)
from ldpaudit.commands.privatize.features.synthetic_rows import read_synthetic
from ldpaudit.commands.privatize.labels.domains import ClassDomain
from ldpaudit.commands.privatize.labels.release import (
    CodedRelease,
    ContinuousRelease,
    LabelRelease,
    coded_release,
    step_noise_release,
)
from ldpaudit.commands.privatize.private_columns import CHANGED, PrivateColumn
from ldpaudit.commands.privatize.request import ColumnRequest
from ldpaudit.errors import InputError
from ldpaudit.mechanisms.capabilities import (
    FeatureDependentLabel,
    NoisyFeatures,
    PublicModelLabel,
    SyntheticFeatures,
)
from ldpaudit.mechanisms.finite import FiniteMechanism
from ldpaudit.mechanisms.interface import Mechanism
from ldpaudit.mechanisms.noise.continuous import ContinuousMechanism
from ldpaudit.mechanisms.noise.discrete import DiscreteNoise
from ldpaudit.release import IntArray, Label

Released = tuple[pa.RecordBatch, pa.Array]


class RowRelease(Protocol):
    """Turns a batch of true rows into released ones, in the same order."""

    @property
    def label_type(self) -> pa.DataType:
        """The released label's type."""

    def schema(self, features: pa.Schema) -> pa.Schema:
        """Return the released features' columns and types."""

    def release(self, features: pa.RecordBatch, label: pa.Array, codes: IntArray) -> Released:
        """Return released features and labels of n rows.

        ``label`` holds the true labels, ``codes`` the same as int32 codes of the survey's domain.
        """


@dataclass(frozen=True, eq=False)
class SeparateRelease:
    """Label and features are released independently of each other."""

    labels: LabelRelease
    features: FeatureRelease

    @property
    def label_type(self) -> pa.DataType:
        """The released label's type."""
        return self.labels.type

    def schema(self, features: pa.Schema) -> pa.Schema:
        """Return the released features' columns and types."""
        return self.features.schema(features)

    def release(self, features: pa.RecordBatch, label: pa.Array, codes: IntArray) -> Released:
        """Return released features and labels of n rows."""
        return self.features.release(features), self.labels.release(label, codes)


@dataclass(frozen=True, eq=False)
class JointRelease:
    """Label and features are released together: one depends on the other.

    Parameters
    ----------
    outputs : CodedRelease
        How released codes become labels.
    draw : callable
        From n rows of features and codes to released ones.
    schema : callable
        From the features' columns and types to the released ones'.
    """

    outputs: CodedRelease
    draw: Callable[[pa.RecordBatch, IntArray], tuple[pa.RecordBatch, IntArray]]
    schema: Callable[[pa.Schema], pa.Schema] = AsTheyAre().schema

    @property
    def label_type(self) -> pa.DataType:
        """The released label's type."""
        return self.outputs.type

    def release(
        self,
        features: pa.RecordBatch,
        label: pa.Array,  # noqa: ARG002
        codes: IntArray,
    ) -> Released:
        """Return released features and labels of n rows."""
        released, drawn = self.draw(features, codes)
        return released, self.outputs.write(drawn)


@dataclass(frozen=True, eq=False)
class Application:
    """What a mechanism is applied to.

    Attributes
    ----------
    column : PrivateColumn
    features : pyarrow.Schema
        The features that are released.
    fitted : FittedGenerator or None
        The generator of synthetic rows, where there is no table of them.
    """

    column: PrivateColumn
    features: pa.Schema
    fitted: FittedGenerator | None = None

    @property
    def request(self) -> ColumnRequest:
        """The column's options."""
        return self.column.request

    @property
    def label(self) -> pa.Field:
        """The true label's column."""
        return self.column.field

    @property
    def rng(self) -> Any:
        """The randomness of the labels; None: the operating system's."""
        return self.request.randomness("release")

    def coded(self, mechanism: Any, outputs: tuple[Label, ...]) -> CodedRelease:
        """Return how codes of outputs become released labels."""
        spelt = self.column.survey.spelt
        return coded_release(mechanism, outputs, self.label.type, spelt, self.rng)

    def synthetic(self, classes: tuple[Label, ...]) -> RowSource | None:
        """Return the source of synthetic rows; None where the options name none."""
        request = self.request
        if self.fitted is not None:
            return self.fitted.rows(len(classes), request.randomness("synthetic"))
        if request.synthetic is None:
            return None
        columns = (self.features, self.label.name, classes, request.drop)
        return read_synthetic(request.synthetic, *columns, request)


def row_release(
    column: PrivateColumn, features: pa.Schema, fitted: FittedGenerator | None = None
) -> RowRelease:
    """Make a column's mechanism ready; the parameters are those of :class:`Application`.

    Raises
    ------
    InputError, MissingDependencyError
        If a table that it needs is missing or does not fit, or its noise cannot be drawn exactly.
    """
    to = Application(column, features, fitted)
    if column.strata is not None:
        return _by_stratum(column, column.strata, to)
    return released_by(column.mechanism.after_rounding, to)


def _by_stratum(column: PrivateColumn, strata: ClassDomain, to: Application) -> RowRelease:
    """Return the release of a column with a channel for each value of a public one."""
    mechanism: Any = column.mechanism
    coded = to.coded(mechanism, mechanism.outputs)

    def draw(features: pa.RecordBatch, codes: IntArray) -> tuple[pa.RecordBatch, IntArray]:
        places = strata.codes(features.column(column.request.by))
        if (places < 0).any():  # The first pass found none.
            raise InputError(CHANGED)
        return features, mechanism.sample(codes, places, coded.rng)

    return JointRelease(coded, draw)


@singledispatch
def released_by(mechanism: Mechanism, to: Application) -> RowRelease:  # noqa: ARG001
    """Return how a mechanism releases rows; registered by the mechanism's type."""
    raise InputError(f"The mechanism {mechanism.name!r} cannot be applied to a table.")


@released_by.register
def _(mechanism: FiniteMechanism, to: Application) -> RowRelease:
    coded = to.coded(mechanism, mechanism.channel.outputs)
    return SeparateRelease(coded, _features(mechanism, to))


@released_by.register
def _(mechanism: ContinuousMechanism, to: Application) -> RowRelease:
    return SeparateRelease(ContinuousRelease(mechanism, to.rng), _features(mechanism, to))


@released_by.register
def _(mechanism: DiscreteNoise, to: Application) -> RowRelease:
    stepped = step_noise_release(mechanism, to.label.type, to.rng)
    return SeparateRelease(stepped, _features(mechanism, to))


@released_by.register
def _(mechanism: SyntheticFeatures, to: Application) -> RowRelease:
    coded = to.coded(mechanism, mechanism.classes)
    rows = to.synthetic(mechanism.classes)
    if rows is None:
        raise InputError(
            f"The mechanism {mechanism.name!r} must be given synthetic rows: --synthetic FILE, or "
            "--generator NAME."
        )

    def draw(features: pa.RecordBatch, codes: IntArray) -> tuple[pa.RecordBatch, IntArray]:
        drawn = mechanism.sample(codes, rows.labels, coded.rng)
        return replaced(features, rows, drawn.synthetic_rows), drawn.labels

    return JointRelease(coded, draw, unordered)


@released_by.register
def _(mechanism: PublicModelLabel, to: Application) -> RowRelease:
    coded, path = to.coded(mechanism, mechanism.classes), to.request.public
    if path is None:
        raise InputError(f"The mechanism {mechanism.name!r} must be given a table with --public.")
    name, drop = to.label.name, to.request.drop
    model = fit_public_model(path, to.features, name, mechanism.classes, drop, to.request)

    def draw(features: pa.RecordBatch, codes: IntArray) -> tuple[pa.RecordBatch, IntArray]:
        probabilities = mechanism.synthetic(model, features)
        return features, mechanism.sample(codes, probabilities, coded.rng)

    return JointRelease(coded, draw)


@released_by.register
def _(mechanism: FeatureDependentLabel, to: Application) -> RowRelease:
    coded = to.coded(mechanism, mechanism.classes)

    def draw(features: pa.RecordBatch, codes: IntArray) -> tuple[pa.RecordBatch, IntArray]:
        return features, mechanism.sample_rows(codes, features, coded.rng)

    return JointRelease(coded, draw)


def _features(mechanism: Mechanism, to: Application) -> FeatureRelease:
    """Return how features are released on which the label does not depend."""
    rng = to.request.randomness("features")
    if isinstance(mechanism, NoisyFeatures):
        noise = GaussianNoise(mechanism, to.request.project, rng)
        noise.schema(to.features)
        noise.check()
        return noise
    if mechanism.traits.features != "withheld":
        return AsTheyAre()
    channel = mechanism.label_channel
    classes = () if channel is None else channel.classes
    return Withheld(to.synthetic(classes), rng)
