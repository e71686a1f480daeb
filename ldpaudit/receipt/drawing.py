"""The labels of a release, drawn again from its key."""

# For each kind of mechanism the same calls, with the same words, as ``privatize`` makes.

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final, cast

import numpy as np
import pyarrow as pa

from ldpaudit.datasets.domains import read_numbers
from ldpaudit.datasets.labels import label_forms, positions
from ldpaudit.errors import InputError
from ldpaudit.mechanisms.capabilities import (
    AnyNumber,
    FeatureDependentLabel,
    LabelByStratum,
    PublicModelLabel,
    StagedLabel,
    StepNoise,
    SyntheticFeatures,
)
from ldpaudit.mechanisms.finite import FiniteMechanism
from ldpaudit.mechanisms.interface import Mechanism
from ldpaudit.mechanisms.joint import JointMechanism
from ldpaudit.mechanisms.keyed import BLOCK_ROWS, KeyedBits, NoiseKey
from ldpaudit.mechanisms.listing import PLACES
from ldpaudit.mechanisms.rounded import RoundedLabels, as_rounded
from ldpaudit.release import FloatArray, IntArray, Label

_SAME: Final = 1e-12


class NotDrawnError(InputError):
    """Why labels cannot be drawn again."""


@dataclass(frozen=True, eq=False)
class Column:
    """One private column of the true labels, and what else its noise depends on."""

    # ``column``: the true labels. ``strata``: the public column of its strata. ``posterior``: the
    # public model's P̂(label | features), of shape (n, k). ``from_text``: whether the columns are of
    # a text file.

    name: str
    mechanism: Mechanism
    column: pa.ChunkedArray
    from_text: bool = False
    strata: pa.ChunkedArray | None = None
    posterior: FloatArray | None = None


@dataclass(frozen=True, eq=False)
class Drawn:
    """What was drawn for each row of the true labels, and the true labels themselves."""

    # Of classes ``values`` and ``truth`` are positions in ``outputs``, int32 of shape (n,), −1 for
    # a true label that is no output; of numbers they are float64, and ``outputs`` is None.

    values: Any
    truth: Any
    outputs: tuple[Label, ...] | None = None


def keyed(mechanism: Mechanism | JointMechanism) -> bool:
    """Return whether a mechanism's labels are drawn from the key: those of others may not be."""
    if isinstance(mechanism, JointMechanism):
        return True
    every = mechanism.by_stratum or (mechanism,)
    own = all(one.name in PLACES for one in (mechanism, *every))
    return own and mechanism.offers(FeatureDependentLabel) is None


def numeric(mechanism: Mechanism) -> bool:
    """Return whether the true labels of a mechanism are sealed as numbers."""
    return mechanism.traits.numeric


def by_blocks(rows: int) -> Iterator[tuple[int, slice]]:
    """Yield the blocks in which ``rows`` rows are drawn, by number."""
    for block, start in enumerate(range(0, rows, BLOCK_ROWS)):
        yield block, slice(start, min(start + BLOCK_ROWS, rows))


def drawn_again(column: Column, key: NoiseKey) -> Drawn:
    """Draw the labels of one column again (InputError where a true label is none)."""
    mechanism = column.mechanism.after_rounding
    if not keyed(mechanism):
        raise NotDrawnError(f"the mechanism {mechanism.name!r} does not draw its noise from a key")
    rows, draws = len(column.column), key.stream("release", column.name)

    def every(draw: Callable[[slice, KeyedBits], Any]) -> Any:
        return np.concatenate([draw(part, draws.at(block)) for block, part in by_blocks(rows)])

    if (ranged := mechanism.offers(AnyNumber)) is not None:
        values = read_numbers(column.column, "true")
        return Drawn(every(lambda part, bits: ranged.release(values[part], bits)), values)
    if (rounded := as_rounded(column.mechanism)) is not None:
        truth = read_numbers(column.column, "true")
        codes = _rounded(truth, column, rounded, key)
    elif (stepped := mechanism.offers(StepNoise)) is not None:
        truth = read_numbers(column.column, "true")
        codes = stepped.labels.codes(truth)
    else:
        classes, outputs = _domains(mechanism)
        codes = _codes(column, classes)
        draw = _drawing(column, mechanism, codes)
        return Drawn(every(draw), positions(classes, outputs)[codes], outputs)
    if (stepped := mechanism.offers(StepNoise)) is not None:
        places = every(lambda part, bits: stepped.sample(codes[part], bits))
        return Drawn(stepped.labels.at(places), truth)
    _, outputs = _domains(mechanism)  # A true label need not be an output.
    return Drawn(every(_drawing(column, mechanism, codes)), _equal_outputs(outputs, truth), outputs)


def _drawing(
    column: Column, mechanism: Mechanism, codes: IntArray
) -> Callable[[slice, KeyedBits], IntArray]:
    """Return what draws codes of outputs for a part of the rows."""
    if column.strata is not None:
        strata, by = _strata(column), cast(Any, mechanism)
        return lambda part, bits: by.sample(codes[part], strata[part], bits)
    if (double := mechanism.offers(SyntheticFeatures)) is not None:
        # Which synthetic row is drawn changes nothing of the label.
        each = np.arange(len(double.classes), dtype=np.int32)
        return lambda part, bits: double.sample(codes[part], each, bits).labels
    if (modelled := mechanism.offers(PublicModelLabel)) is not None:
        if (known := column.posterior) is None:
            raise NotDrawnError(
                "its labels are drawn by a public model: give its probabilities "
                "(--public-posterior)"
            )
        return lambda part, bits: modelled.sample(codes[part], known[part], bits)
    if mechanism.offers(StagedLabel) is not None:
        raise NotDrawnError(
            "each stage's model is fitted again by the library that is installed, so its labels "
            "cannot be drawn again for certain"
        )
    if (finite := mechanism.offers(FiniteMechanism)) is not None:
        return lambda part, bits: finite.sample(codes[part], bits)
    raise NotDrawnError(f"the mechanism {mechanism.name!r} has no labels to draw again")


def drawn_together(joint: JointMechanism, columns: list[Column], key: NoiseKey) -> list[Drawn]:
    """Draw the labels of all columns of a joint mechanism again."""
    draws, domains = key.stream("joint release", ""), [_domains(one.mechanism) for one in columns]
    pairs = zip(columns, domains, strict=True)
    codes = np.stack([_codes(one, classes) for one, (classes, _) in pairs], axis=1)
    parts = [joint.sample(codes[part], draws.at(block)) for block, part in by_blocks(len(codes))]
    values = np.concatenate(parts)
    return [
        Drawn(values[:, j], positions(classes, outputs)[codes[:, j]], outputs)
        for j, (classes, outputs) in enumerate(domains)
    ]


def _domains(mechanism: Mechanism) -> tuple[tuple[Label, ...], tuple[Label, ...]]:
    """Return the labels and the outputs of a mechanism on classes."""
    if (by := mechanism.offers(LabelByStratum)) is not None:
        return by.classes, by.outputs
    channel = mechanism.label_channel
    if channel is not None:
        return channel.classes, channel.outputs
    classes = tuple(getattr(mechanism, "classes", ()))
    return classes, classes


def _codes(column: Column, classes: tuple[Label, ...]) -> IntArray:
    forms, codes = label_forms(column.column, "true", from_text=column.from_text)
    places = np.append(positions(forms, classes), np.int32(-1))[codes]
    if outside := int((places < 0).sum()):
        raise NotDrawnError(
            f"{outside:,} of {len(places):,} true labels are none of the declared ones"
        )
    return places


def _strata(column: Column) -> IntArray:
    by = column.mechanism.offers(LabelByStratum)
    assert by is not None
    assert column.strata is not None
    forms, codes = label_forms(column.strata, "true", from_text=column.from_text)
    places = np.append(positions(forms, by.values), np.int32(-1))[codes]
    if outside := int((places < 0).sum()):
        raise NotDrawnError(f"{outside:,} rows of the true labels have no declared stratum")
    return places


def _rounded(
    values: FloatArray, column: Column, mechanism: RoundedLabels, key: NoiseKey
) -> IntArray:
    """Round the true labels again."""
    draws, rounding = key.stream("rounding", column.name), mechanism.rounding
    parts = [rounding.sample(values[p], draws.at(block)) for block, p in by_blocks(len(values))]
    return np.concatenate(parts)


def _equal_outputs(outputs: tuple[Label, ...], values: FloatArray) -> IntArray:
    points = np.asarray(outputs, dtype=np.float64)
    order = np.argsort(points, kind="stable")
    places = np.clip(np.searchsorted(points[order], values), 0, len(points) - 1)
    found = order[places]
    same = np.abs(points[found] - values) <= _SAME * np.maximum(1, np.abs(values))
    return np.where(same, found, -1).astype(np.int32)
