"""A release ready to be drawn: features and labels of true rows, batch by batch, in their order.

How a mechanism releases follows from what it offers.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from ldpaudit.commands.privatize.columns import PrivateColumn, PrivateColumns
from ldpaudit.commands.privatize.features import (
    FeatureRelease,
    FittedGenerator,
    fit_public_model,
    growing_cells,
    replaced,
    synthetic_rows,
    unordered,
    with_gaussian_noise,
    withheld,
)
from ldpaudit.commands.privatize.labels import numbers, outputs_of, step_noise_type
from ldpaudit.commands.privatize.request import PrivatizeRequest
from ldpaudit.errors import InputError
from ldpaudit.mechanisms.capabilities import (
    AnyNumber,
    FeatureDependentLabel,
    NoisyFeatures,
    PublicModelLabel,
    StagedLabel,
    StepNoise,
    SyntheticFeatures,
)
from ldpaudit.mechanisms.finite import FiniteMechanism
from ldpaudit.mechanisms.interface import Mechanism
from ldpaudit.models.stages import StagedRelease
from ldpaudit.release import IntArray, Label

Schema = Callable[[pa.Schema], pa.Schema]
_AS_THEY_ARE = FeatureRelease()


@dataclass(frozen=True, eq=False)
class RowRelease:
    """Turns a batch of true rows into released ones, in the same order.

    Attributes
    ----------
    types : tuple of pyarrow.DataType
        Of the released labels, column by column.
    draw : callable
        From n rows of features, and of each private column the true labels and their int32 codes,
        to released features and labels.
    schema : callable
        From the features' columns and types to the released ones'.
    """

    types: tuple[pa.DataType, ...]
    draw: Callable[
        [pa.RecordBatch, Sequence[pa.Array], Sequence[IntArray]],
        tuple[pa.RecordBatch, list[pa.Array]],
    ]
    schema: Schema


@dataclass(frozen=True, eq=False)
class _ColumnRelease:
    """The same of one private column."""

    type: pa.DataType
    draw: Callable[[pa.RecordBatch, pa.Array, IntArray], tuple[pa.RecordBatch, pa.Array]]
    schema: Schema


def row_release(
    request: PrivatizeRequest,
    columns: PrivateColumns,
    features: pa.Schema,
    fitted: FittedGenerator | None = None,
) -> RowRelease:
    """Make the mechanisms of all private columns ready.

    ``features``: those that are released; ``fitted`` makes synthetic rows where there is no table.

    Raises
    ------
    InputError, MissingDependencyError
        If a table that one needs is missing or does not fit, or its noise cannot be drawn exactly.
    """
    joint = columns.joint
    if joint is not None:
        rng, channels = request.randomness("release"), [one.mechanism.channel for one in columns]
        written = [
            outputs_of(channel.outputs, one.field.type, one.survey.spelt)
            for one, channel in zip(columns, channels, strict=True)
            if channel is not None
        ]

        def draw_together(
            batch: pa.RecordBatch, _: Sequence[pa.Array], codes: Sequence[IntArray]
        ) -> tuple[pa.RecordBatch, list[pa.Array]]:
            drawn = joint.sample(np.stack(codes, axis=1), rng)
            return batch, [one.write(drawn[:, j]) for j, one in enumerate(written)]

        return RowRelease(tuple(o.type for o in written), draw_together, _AS_THEY_ARE.schema)
    each = [_column_release(one, features, fitted) for one in columns]

    def draw(
        batch: pa.RecordBatch, labels: Sequence[pa.Array], codes: Sequence[IntArray]
    ) -> tuple[pa.RecordBatch, list[pa.Array]]:
        released = []
        for one, label, own in zip(each, labels, codes, strict=True):
            batch, new = one.draw(batch, label, own)
            released.append(new)
        return batch, released

    # Where there are several columns, none of them changes the features.
    return RowRelease(tuple(one.type for one in each), draw, each[0].schema)


def _column_release(
    column: PrivateColumn, features: pa.Schema, fitted: FittedGenerator | None
) -> _ColumnRelease:
    request, rng = column.request, column.request.randomness("release")
    mechanism, given = column.mechanism.after_rounding, column.mechanism

    def coded(
        outputs: tuple[Label, ...],
        draw: Callable[[pa.RecordBatch, IntArray], tuple[pa.RecordBatch, IntArray]],
        schema: Schema = _AS_THEY_ARE.schema,
    ) -> _ColumnRelease:
        written = outputs_of(outputs, column.field.type, column.survey.spelt)

        def released(
            batch: pa.RecordBatch, _: pa.Array, codes: IntArray
        ) -> tuple[pa.RecordBatch, pa.Array]:
            new, drawn = draw(batch, codes)
            return new, written.write(drawn)

        return _ColumnRelease(written.type, released, schema)

    if column.strata is not None:
        by: Any = given
        return coded(by.outputs, lambda b, codes: (b, by.sample(codes, column.strata_of(b), rng)))
    if (double := mechanism.offers(SyntheticFeatures)) is not None:
        rows = synthetic_rows(request, features, double.classes, fitted)
        if rows is None:
            raise InputError(
                f"The mechanism {mechanism.name!r} must be given synthetic rows: --synthetic FILE, "
                "or --generator NAME."
            )

        def with_synthetic(b: pa.RecordBatch, codes: IntArray) -> tuple[pa.RecordBatch, IntArray]:
            drawn = double.sample(codes, rows.labels, rng)
            return replaced(b, rows, drawn.synthetic_rows), drawn.labels

        return coded(double.classes, with_synthetic, unordered)
    if (staged := mechanism.offers(StagedLabel)) is not None:
        if request.public is not None:
            raise InputError("--stages learns from the rows released before: leave out --public.")
        release, known = StagedRelease(staged, column.survey.rows), dict[str, pa.Array | None]()
        return coded(
            staged.classes, lambda b, codes: (b, release.draw(growing_cells(b, known), codes, rng))
        )
    if (modelled := mechanism.offers(PublicModelLabel)) is not None:
        if request.public is None:
            raise InputError(
                f"The mechanism {mechanism.name!r} must be given a table with --public."
            )
        model = fit_public_model(request.public, request, features, modelled.classes)
        return coded(
            modelled.classes,
            lambda b, codes: (b, modelled.sample(codes, modelled.synthetic(model, b), rng)),
        )
    if (dependent := mechanism.offers(FeatureDependentLabel)) is not None:
        return coded(dependent.classes, lambda b, codes: (b, dependent.sample_rows(codes, b, rng)))
    released = _features(column, mechanism, features, fitted)
    if (finite := mechanism.offers(FiniteMechanism)) is not None:
        return coded(
            finite.channel.outputs,
            lambda b, codes: (released.draw(b), finite.sample(codes, rng)),
            released.schema,
        )
    if (ranged := mechanism.offers(AnyNumber)) is not None:
        return _ColumnRelease(
            pa.float64(),
            lambda b, label, _: (released.draw(b), pa.array(ranged.release(numbers(label), rng))),
            released.schema,
        )
    if (stepped := mechanism.offers(StepNoise)) is not None:
        kind = step_noise_type(stepped, column.field.type)

        def noisy(
            batch: pa.RecordBatch, _: pa.Array, codes: IntArray
        ) -> tuple[pa.RecordBatch, pa.Array]:
            values = stepped.labels.at(stepped.sample(codes, rng))
            whole = values if pa.types.is_floating(kind) else np.rint(values).astype(np.int64)
            return released.draw(batch), pa.array(whole).cast(kind)

        return _ColumnRelease(kind, noisy, released.schema)
    raise InputError(f"The mechanism {mechanism.name!r} cannot be applied to a table.")


def _features(
    column: PrivateColumn, mechanism: Mechanism, features: pa.Schema, fitted: FittedGenerator | None
) -> FeatureRelease:
    """Return how features are released on which the label does not depend."""
    request, rng = column.request, column.request.randomness("features")
    if (noisy := mechanism.offers(NoisyFeatures)) is not None:
        noise = with_gaussian_noise(noisy, request.project, rng)
        noise.schema(features)
        return noise
    if mechanism.traits.features != "withheld":
        return _AS_THEY_ARE
    channel = mechanism.label_channel
    classes = () if channel is None else channel.classes
    return withheld(synthetic_rows(request, features, classes, fitted), rng)
