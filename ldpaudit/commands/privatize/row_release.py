"""A mechanism ready to be applied to rows: label and features together, batch by batch."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pyarrow as pa

from ldpaudit.commands.privatize.features.generated_rows import FittedGenerator
from ldpaudit.commands.privatize.features.public_model import PublicModel, fit_public_model
from ldpaudit.commands.privatize.features.release import (
    AsTheyAre,
    FeatureRelease,
    GaussianNoise,
    Withheld,
    replaced,
    unordered,
)
from ldpaudit.commands.privatize.features.synthetic_rows import RowSource, read_synthetic
from ldpaudit.commands.privatize.labels.release import (
    CodedRelease,
    ContinuousRelease,
    LabelRelease,
    coded_release,
    step_noise_release,
)
from ldpaudit.commands.privatize.labels.survey import Survey
from ldpaudit.commands.privatize.request import PrivatizeRequest
from ldpaudit.errors import InputError
from ldpaudit.mechanisms.finite import FiniteMechanism
from ldpaudit.mechanisms.interface import Mechanism
from ldpaudit.mechanisms.noise.additive import AdditiveNoise
from ldpaudit.mechanisms.noise.discrete_noise import DiscreteNoise
from ldpaudit.mechanisms.response.double_rr import DoubleRR
from ldpaudit.mechanisms.response.dummy_features_rr import DummyFeaturesRR
from ldpaudit.mechanisms.response.gaussian_rr import GaussianRR
from ldpaudit.mechanisms.response.model_based_rr import ModelBasedRR
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

        Parameters
        ----------
        features : pyarrow.RecordBatch
        label : pyarrow.Array
            The true labels.
        codes : int32 array of shape (n,)
            The same as codes of the survey's domain.
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
class DoubleRelease:
    """Double randomized response: some rows get all features of a synthetic row."""

    mechanism: DoubleRR
    outputs: CodedRelease
    synthetic: RowSource
    rng: np.random.Generator | None

    @property
    def label_type(self) -> pa.DataType:
        """The released label's type."""
        return self.outputs.type

    def schema(self, features: pa.Schema) -> pa.Schema:
        """Return the features' columns and types, dictionaries unordered."""
        return unordered(features)

    def release(
        self,
        features: pa.RecordBatch,
        label: pa.Array,  # noqa: ARG002
        codes: IntArray,
    ) -> Released:
        """Return released features and labels of n rows."""
        drawn = self.mechanism.sample(codes, self.synthetic.labels, self.rng)
        mixed = replaced(features, self.synthetic, drawn.synthetic_rows)
        return mixed, self.outputs.write(drawn.labels)


@dataclass(frozen=True, eq=False)
class ModelRelease:
    """Model-based randomized response: the features are released, and say what a label may be."""

    mechanism: ModelBasedRR
    outputs: CodedRelease
    model: PublicModel
    rng: np.random.Generator | None

    @property
    def label_type(self) -> pa.DataType:
        """The released label's type."""
        return self.outputs.type

    def schema(self, features: pa.Schema) -> pa.Schema:
        """Return the features' columns and types."""
        return features

    def release(
        self,
        features: pa.RecordBatch,
        label: pa.Array,  # noqa: ARG002
        codes: IntArray,
    ) -> Released:
        """Return released features and labels of n rows."""
        probabilities = self.mechanism.synthetic(self.model, features)
        return features, self.outputs.write(self.mechanism.sample(codes, probabilities, self.rng))


def row_release(
    request: PrivatizeRequest,
    mechanism: Mechanism,
    survey: Survey,
    label: pa.Field,
    features: pa.Schema,
    fitted: FittedGenerator | None = None,
) -> RowRelease:
    """Make a mechanism ready.

    Parameters
    ----------
    request : PrivatizeRequest
    mechanism : Mechanism
    survey : Survey
    label : pyarrow.Field
        The true label's column.
    features : pyarrow.Schema
        The features that are released.
    fitted : FittedGenerator, optional
        What makes synthetic rows, where no table of them was given.

    Raises
    ------
    InputError, MissingDependencyError
        If a table that it needs is missing or does not fit, or its noise cannot be drawn exactly.
    """
    rng = request.randomness("release")
    if isinstance(mechanism, AdditiveNoise):
        continuous = ContinuousRelease(mechanism, rng)
        continuous.check()
        return SeparateRelease(continuous, AsTheyAre())
    if isinstance(mechanism, DiscreteNoise):
        return SeparateRelease(step_noise_release(mechanism, label.type, rng), AsTheyAre())
    if isinstance(mechanism, DoubleRR | ModelBasedRR):
        coded = coded_release(mechanism, mechanism.classes, label.type, survey.found, rng)
        return _with_table(request, mechanism, coded, label.name, features, fitted)
    assert isinstance(mechanism, FiniteMechanism)
    outputs = mechanism.channel.outputs
    coded = coded_release(mechanism, outputs, label.type, survey.found, rng)
    return SeparateRelease(coded, _features(request, mechanism, label.name, features, fitted))


def _with_table(
    request: PrivatizeRequest,
    mechanism: DoubleRR | ModelBasedRR,
    coded: CodedRelease,
    label: str,
    features: pa.Schema,
    fitted: FittedGenerator | None,
) -> RowRelease:
    classes = mechanism.classes
    if isinstance(mechanism, DoubleRR):
        rows = _synthetic(request, classes, label, features, fitted)
        if rows is None:
            raise InputError(
                "The mechanism 'double-rr' must be given synthetic rows: --synthetic FILE, or "
                "--generator NAME."
            )
        return DoubleRelease(mechanism, coded, rows, coded.rng)
    path = _needed(request.public, mechanism, "--public")
    model = fit_public_model(path, features, label, classes, request.drop)
    return ModelRelease(mechanism, coded, model, coded.rng)


def _needed(path: str | None, mechanism: Mechanism, option: str) -> str:
    if path is None:
        raise InputError(f"The mechanism {mechanism.name!r} must be given a table with {option}.")
    return path


def _synthetic(
    request: PrivatizeRequest,
    classes: tuple[Label, ...],
    label: str,
    features: pa.Schema,
    fitted: FittedGenerator | None,
) -> RowSource | None:
    """Return where synthetic rows come from; None where nothing was given."""
    if fitted is not None:
        return fitted.rows(len(classes), request.randomness("synthetic"))
    if request.synthetic is None:
        return None
    return read_synthetic(request.synthetic, features, label, classes, request.drop)


def _features(
    request: PrivatizeRequest,
    mechanism: FiniteMechanism,
    label: str,
    features: pa.Schema,
    fitted: FittedGenerator | None,
) -> FeatureRelease:
    rng = request.randomness("features")
    if isinstance(mechanism, GaussianRR):
        noise = GaussianNoise(mechanism, request.project, rng)
        noise.schema(features)
        noise.check()
        return noise
    if not isinstance(mechanism, DummyFeaturesRR):
        return AsTheyAre()
    return Withheld(_synthetic(request, mechanism.classes, label, features, fitted), rng)
