"""A release ready to be drawn: features and labels of true rows, batch by batch, in their order."""

# How a mechanism releases follows from what it offers.

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import numpy as np
import pyarrow as pa

from ldpaudit.doors import (
    FeatureDependentLabel,
    FiniteMechanism,
    FloatArray,
    InputError,
    IntArray,
    NoisyFeatures,
    PublicModelLabel,
    StagedLabel,
    SyntheticFeatures,
    refuse,
)
from ldpaudit.extras.receipt.cells import growing_cells
from ldpaudit.extras.receipt.drawing import not_drawn
from ldpaudit.extras.receipt.secrets import DrawnSeal
from ldpaudit.extras.receipt.stages import StagedRelease
from ldpaudit.extras.release.privatize.columns import PrivateColumn, PrivateColumns, unchanged
from ldpaudit.extras.release.privatize.features import (
    FeatureRelease,
    FittedGenerator,
    PublicModel,
    fit_public_model,
    replaced,
    synthetic_rows,
    unordered,
    with_gaussian_noise,
    withheld,
)
from ldpaudit.extras.release.privatize.labels import numbers, outputs_of, step_noise_type
from ldpaudit.mechanisms.capabilities import AnyNumber, StepNoise
from ldpaudit.mechanisms.keyed import Stream
from ldpaudit.release import Label

Schema = Callable[[pa.Schema], pa.Schema]
NO_SEALS: Final[Mapping[str, DrawnSeal]] = {}
_AS_THEY_ARE = FeatureRelease()
_Drawn = tuple[pa.RecordBatch, Any]
# The type of one column's released labels, what draws them and the features, and their schema.
_Column = tuple[pa.DataType, Callable[[pa.RecordBatch, pa.Array, IntArray, int], _Drawn], Schema]


@dataclass(frozen=True, eq=False)
class RowRelease:
    """Turns a batch of true rows into released ones, in the same order.

    ``types`` are those of the released labels, column by column. ``draw`` goes from n rows of
    features, of each private column the true labels and their int32 codes, and the number of the
    block that they are, to released features and labels; ``schema`` from the features' columns
    and types to the released ones'. ``model``: the public one that labels are drawn from, where
    there is one.
    """

    types: tuple[pa.DataType, ...]
    draw: Callable[..., tuple[pa.RecordBatch, list[pa.Array]]]
    schema: Schema
    model: PublicModel | None = None
    # Where features are released as they are, the columns that ``draw`` looks at: those of strata.
    # None: it needs all features of a block at once.
    looks_at: tuple[str, ...] | None = None


def row_release(
    columns: PrivateColumns,
    features: pa.Schema,
    fitted: FittedGenerator | None = None,
    seals: Mapping[str, DrawnSeal] = NO_SEALS,
) -> RowRelease:
    """Make the mechanisms of all private columns ready.

    ``features``: those that are released; ``fitted`` makes synthetic rows where there is no
    table; ``seals`` are given the drawn labels of their columns. InputError,
    MissingDependencyError if a table that one needs is missing or does not fit, or its noise
    cannot be drawn exactly.
    """
    joint = columns.joint
    if joint is not None:
        together = columns.first.request.draws("joint release")
        written = [
            outputs_of(one.mechanism.channel.outputs, one.field.type, one.survey.spelt)
            for one in columns.each
            if one.mechanism.channel is not None
        ]

        def draw_together(
            batch: pa.RecordBatch, _: Sequence[pa.Array], codes: Sequence[IntArray], block: int = 0
        ) -> tuple[pa.RecordBatch, list[pa.Array]]:
            true = np.stack(codes, axis=1)
            drawn = _whole(joint.name, joint.sample(true, together.at(block)), true.shape)
            return batch, [write(drawn[:, j]) for j, (_, write) in enumerate(written)]

        kinds = tuple(kind for kind, _ in written)
        return RowRelease(kinds, draw_together, _AS_THEY_ARE.schema, looks_at=())
    model, modelled = None, columns.first.mechanism.offers(PublicModelLabel)
    if modelled is not None:
        one = columns.first.request
        if one.public is None:
            raise InputError(
                f"The mechanism {modelled.name!r} must be given a table with --public."
            )
        model = fit_public_model(one.public, one, features, modelled.classes)
    each = [
        _column_release(one, features, fitted, model, seals.get(one.name)) for one in columns.each
    ]

    def draw(
        batch: pa.RecordBatch,
        labels: Sequence[pa.Array],
        codes: Sequence[IntArray],
        block: int = 0,
    ) -> tuple[pa.RecordBatch, list[pa.Array]]:
        released = []
        for (_, draw_one, _), label, own in zip(each, labels, codes, strict=True):
            batch, new = draw_one(batch, label, own, block)
            released.append(new)
        return batch, released

    # Where there are several columns, none of them changes the features.
    kinds = tuple(kind for kind, _, _ in each)
    return RowRelease(kinds, draw, each[0][2], model, _looked_at(columns))


_SEE_FEATURES: Final = (
    SyntheticFeatures,
    StagedLabel,
    PublicModelLabel,
    FeatureDependentLabel,
    NoisyFeatures,
)


def _whole(name: str, drawn: Any, shape: tuple[int, ...], outputs: int | None = None) -> Any:
    """Return what a mechanism drew: whole numbers, and positions of its outputs if so many."""
    right = isinstance(drawn, np.ndarray) and drawn.dtype.kind in "iu" and drawn.shape == shape
    refuse(
        not right,
        f"The mechanism {name!r} must draw an array of whole numbers of shape {shape}. Got "
        f"{_got(drawn)} instead.",
    )
    refuse(
        outputs is not None and drawn.size and not 0 <= drawn.min() <= drawn.max() < outputs,
        f"What the mechanism {name!r} draws must be positions of its {outputs} outputs, from 0.",
    )
    return drawn


def _finite(mechanism: AnyNumber, labels: FloatArray, source: Any) -> FloatArray:
    """Return the numbers that a mechanism releases for some labels, one for each."""
    drawn: Any = mechanism.release(labels, source)
    right = isinstance(drawn, np.ndarray) and drawn.dtype.kind == "f"
    refuse(
        not right or drawn.shape != labels.shape or not np.isfinite(drawn).all(),
        f"The mechanism {mechanism.name!r} must release an array of finite numbers of shape "
        f"{labels.shape}. Got {_got(drawn)} instead.",
    )
    return np.asarray(drawn)


def _got(drawn: Any) -> str:
    array = isinstance(drawn, np.ndarray)
    return f"{drawn.dtype} of shape {drawn.shape}" if array else type(drawn).__name__


def _looked_at(columns: PrivateColumns) -> tuple[str, ...] | None:
    """Return the columns of strata; None where a mechanism looks at features or changes them."""
    found = []
    for column in columns.each:
        if column.strata is not None and column.request.by is not None:
            found.append(column.request.by)
            continue
        mechanism: Any = column.mechanism.after_rounding
        sees = any(mechanism.offers(one) is not None for one in _SEE_FEATURES)
        if sees or mechanism.traits.features == "withheld":
            return None
    return tuple(found)


def unkeyed(draws: Stream, block: int = 0) -> np.random.Generator | None:
    """Return the generator of an experiment, else None: what others draw from has no key."""
    bits = draws.at(block)
    return bits if isinstance(bits, np.random.Generator) else None


def _column_release(
    column: PrivateColumn,
    features: pa.Schema,
    fitted: FittedGenerator | None,
    model: PublicModel | None,
    seal: DrawnSeal | None,
) -> _Column:
    request, draws = column.request, column.request.draws("release")
    mechanism, given, by = column.mechanism.after_rounding, column.mechanism, column.request.by
    # A mechanism of another package that takes no words of a key draws from its own generator.
    source: Callable[[int], Any] = partial(unkeyed, draws) if not_drawn(mechanism) else draws.at

    def noted(values: Any) -> Any:
        if seal is not None:
            seal.add(values)
        return values

    def coded(
        outputs: tuple[Label, ...],
        draw: Callable[[pa.RecordBatch, IntArray, int], tuple[pa.RecordBatch, IntArray]],
        schema: Schema = _AS_THEY_ARE.schema,
    ) -> _Column:
        kind, write = outputs_of(outputs, column.field.type, column.survey.spelt)

        def released(batch: pa.RecordBatch, _: pa.Array, codes: IntArray, block: int) -> _Drawn:
            new, drawn = draw(batch, codes, block)
            drawn = _whole(mechanism.name, drawn, codes.shape, len(outputs))
            return new, write(noted(drawn))

        return kind, released, schema

    if (strata := column.strata) is not None:
        own: Any = given

        def by_stratum(
            b: pa.RecordBatch, codes: IntArray, block: int
        ) -> tuple[pa.RecordBatch, IntArray]:
            places = unchanged(strata.codes(b.column(by)))
            return b, own.sample(codes, places, source(block))

        return coded(own.outputs, by_stratum)
    if (double := mechanism.offers(SyntheticFeatures)) is not None:
        rows = synthetic_rows(request, features, double.classes, fitted)
        if rows is None:
            raise InputError(
                f"The mechanism {mechanism.name!r} must be given synthetic rows: --synthetic FILE, "
                "or --generator NAME."
            )

        def with_synthetic(
            b: pa.RecordBatch, codes: IntArray, block: int
        ) -> tuple[pa.RecordBatch, IntArray]:
            drawn = double.sample(codes, rows.labels, source(block))
            return replaced(b, rows, drawn.synthetic_rows, block), drawn.labels

        return coded(double.classes, with_synthetic, unordered)
    if (staged := mechanism.offers(StagedLabel)) is not None:
        alone = "--stages learns from the rows released before: leave out --public."
        refuse(request.public is not None, alone)
        release, known = StagedRelease(staged, column.survey.rows), dict[str, pa.Array | None]()
        return coded(
            staged.classes,
            lambda b, codes, block: (
                b,
                release.draw(growing_cells(b, known), codes, source(block)),
            ),
        )
    if (modelled := mechanism.offers(PublicModelLabel)) is not None:
        return coded(
            modelled.classes,
            lambda b, codes, block: (
                b,
                modelled.sample(codes, modelled.synthetic(model, b), source(block)),
            ),
        )
    if (dependent := mechanism.offers(FeatureDependentLabel)) is not None:
        return coded(
            dependent.classes,
            lambda b, codes, block: (b, dependent.sample_rows(codes, b, source(block))),
        )
    # Of the others the label does not depend on the features.
    unseen, away = _AS_THEY_ARE, request.draws("features")
    if (noise := mechanism.offers(NoisyFeatures)) is not None:
        unseen = with_gaussian_noise(noise, request.project, unkeyed(away))
        unseen.schema(features)
    elif mechanism.traits.features == "withheld":
        channel = mechanism.label_channel
        classes = () if channel is None else channel.classes
        unseen = withheld(synthetic_rows(request, features, classes, fitted), away)
    if (finite := mechanism.offers(FiniteMechanism)) is not None:
        return coded(
            finite.channel.outputs,
            lambda b, codes, block: (
                unseen.draw(b, block),
                finite.sample(codes, source(block)),
            ),
            unseen.schema,
        )
    if (ranged := mechanism.offers(AnyNumber)) is not None:
        return (
            pa.float64(),
            lambda b, label, _, block: (
                unseen.draw(b, block),
                pa.array(noted(_finite(ranged, numbers(label), source(block)))),
            ),
            unseen.schema,
        )
    if (stepped := mechanism.offers(StepNoise)) is not None:
        kind = step_noise_type(stepped, column.field.type)

        def noisy(batch: pa.RecordBatch, _: pa.Array, codes: IntArray, block: int) -> _Drawn:
            steps = _whole(mechanism.name, stepped.sample(codes, source(block)), codes.shape)
            values = noted(stepped.labels.at(steps))
            whole = values if pa.types.is_floating(kind) else np.rint(values).astype(np.int64)
            return unseen.draw(batch, block), pa.array(whole).cast(kind)

        return kind, noisy, unseen.schema
    raise InputError(f"The mechanism {mechanism.name!r} cannot be applied to a table.")
