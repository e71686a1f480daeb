"""The labels of a release, drawn again from its key."""

# For each kind of mechanism the same calls, with the same words, as ``privatize`` makes.

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final, cast

import numpy as np
import pyarrow as pa

from ldpaudit.datasets.domains import read_numbers
from ldpaudit.datasets.labels import label_forms, positions
from ldpaudit.doors import (
    FeatureDependentLabel,
    FiniteMechanism,
    FloatArray,
    InputError,
    IntArray,
    Mechanism,
    PublicModelLabel,
    StagedLabel,
    SyntheticFeatures,
)
from ldpaudit.extras.receipt.cells import growing_cells
from ldpaudit.extras.receipt.stages import StagedRelease
from ldpaudit.mechanisms.capabilities import AnyNumber, LabelByStratum, RoundedFirst, StepNoise
from ldpaudit.mechanisms.exact_sampling import WordArray
from ldpaudit.mechanisms.joint import JointMechanism
from ldpaudit.mechanisms.keyed import BLOCK_ROWS, KEY_BYTES, KeyedBits, KeyedStream, NoiseKey
from ldpaudit.mechanisms.listing import ORDER
from ldpaudit.release import Label

_SAME: Final = 1e-12
# Labels that a mechanism of another package is asked to draw twice.
_PROBED: Final = 256


class NotDrawnError(InputError):
    """Why labels cannot be drawn again."""


@dataclass(frozen=True, eq=False)
class Column:
    """One private column of the true labels, and what else its noise depends on."""

    name: str
    mechanism: Mechanism
    column: pa.ChunkedArray
    """The true labels."""
    from_text: bool = False
    """Whether the columns are of a text file."""
    strata: pa.ChunkedArray | None = None
    """The public column of its strata."""
    posterior: FloatArray | None = None
    """The public model's P̂(label | features), of shape (n, k)."""
    features: Callable[[], pa.Table] | None = None
    """Returns the features of all rows, in the order of the true labels."""


@dataclass(frozen=True, eq=False)
class Drawn:
    """What was drawn for each row of the true labels, and the true labels themselves."""

    # Of classes ``values`` and ``truth`` are positions in ``outputs``, int32 of shape (n,), −1 for
    # a true label that is no output; of numbers they are float64, and ``outputs`` is None.

    values: Any
    truth: Any
    outputs: tuple[Label, ...] | None = None


def not_drawn(mechanism: Mechanism) -> str:
    """Return why a mechanism's labels cannot be drawn again from the key; "" where they can."""
    inner = mechanism.after_rounding
    if inner.offers(FeatureDependentLabel) is not None:
        return f"the mechanism {inner.name!r} draws from features, and not from a key"
    if drawn_by_us(mechanism) or (not inner.by_stratum and _pure(inner)):
        return ""
    return f"the mechanism {inner.name!r} does not draw all its noise from the key that it is given"


def drawn_by_us(mechanism: Mechanism) -> bool:
    """Return whether the code that draws is ours, so that what it draws is what is declared."""
    inner = mechanism.after_rounding
    return all(_ours(one) for one in (inner, *inner.by_stratum))


def sealed_as_drawn(mechanism: Mechanism) -> bool:
    """Return whether labels depend on more than the key: on a model, or another package's code."""
    inner = mechanism.after_rounding
    theirs = any(one.name not in ORDER for one in (inner, *inner.by_stratum))
    modelled = any(inner.offers(one) is not None for one in (StagedLabel, PublicModelLabel))
    return theirs or modelled


def _ours(mechanism: Mechanism) -> bool:
    """Return whether the code that draws is ours; from another package's channel it is, too."""
    return mechanism.name in ORDER or type(mechanism).__module__.startswith("ldpaudit.")


def _pure(mechanism: Mechanism) -> bool:
    """Return whether a mechanism of another package draws the same again from the same words."""
    draw = _probe(mechanism)
    if draw is None:
        return False
    one, again = (_Counted() for _ in range(2))
    try:
        first, second = draw(one), draw(again)
    except Exception:  # Whatever their code raises for a source of words.
        return False
    return one.requests > 0 and bool(np.array_equal(np.asarray(first), np.asarray(second)))


class _Counted:
    """The words of a key that is used for nothing, and how often they were asked for."""

    def __init__(self) -> None:
        self._bits = NoiseKey(bytes(KEY_BYTES)).stream("release", "").at()
        self.requests = 0

    def words(self, n: int) -> WordArray:
        """Return the next ``n`` words."""
        self.requests += 1
        return self._bits.words(n)


def _probe(mechanism: Mechanism) -> Callable[[Any], Any] | None:
    """Return what draws some labels of a mechanism, by the method that a release is drawn by."""
    if (ranged := mechanism.offers(AnyNumber)) is not None:
        values = np.linspace(*ranged.label_bounds, _PROBED)
        return lambda bits: ranged.release(values, bits)
    if (stepped := mechanism.offers(StepNoise)) is not None:
        places = np.arange(_PROBED, dtype=np.int32) % np.int32(len(stepped.labels.classes))
        return lambda bits: stepped.sample(places, bits)
    classes = _domains(mechanism)[0]
    if not classes:
        return None
    codes = np.arange(_PROBED, dtype=np.int32) % np.int32(len(classes))
    each_label = np.arange(len(classes), dtype=np.int32)
    if (double := mechanism.offers(SyntheticFeatures)) is not None:
        return lambda bits: double.sample(codes, each_label, bits).labels
    if (finite := mechanism.offers(FiniteMechanism)) is not None:
        return lambda bits: finite.sample(codes, bits)
    prior = np.full((_PROBED, len(classes)), 1 / len(classes))
    if (modelled := mechanism.offers(PublicModelLabel)) is not None:
        return lambda bits: modelled.sample(codes, prior, bits)
    if (staged := mechanism.offers(StagedLabel)) is not None:
        return lambda bits: staged.sample(codes, prior, bits)
    return None


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
    if why := not_drawn(mechanism):
        raise NotDrawnError(why)
    rows, draws = len(column.column), key.stream("release", column.name)

    def every(draw: Callable[[slice, KeyedBits], Any]) -> Any:
        return np.concatenate([draw(part, draws.at(block)) for block, part in by_blocks(rows)])

    if (ranged := mechanism.offers(AnyNumber)) is not None:
        values = read_numbers(column.column, "true")
        return Drawn(every(lambda part, bits: ranged.release(values[part], bits)), values)
    if (rounded := column.mechanism.offers(RoundedFirst)) is not None:
        truth = read_numbers(column.column, "true")
        codes = _rounded(truth, column, rounded, key)
    elif (stepped := mechanism.offers(StepNoise)) is not None:
        truth = read_numbers(column.column, "true")
        codes = stepped.labels.codes(truth)
    elif (staged := mechanism.offers(StagedLabel)) is not None:
        codes = _codes(column, staged.classes)
        return Drawn(_in_stages(column, staged, codes, draws), codes, staged.classes)
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
    if (finite := mechanism.offers(FiniteMechanism)) is not None:
        return lambda part, bits: finite.sample(codes[part], bits)
    raise NotDrawnError(f"the mechanism {mechanism.name!r} has no labels to draw again")


def _in_stages(
    column: Column, mechanism: StagedLabel, codes: IntArray, draws: KeyedStream
) -> IntArray:
    """Draw labels stage by stage: each stage's model is learnt from those drawn before."""
    if column.features is None:
        raise NotDrawnError("each stage's model is learnt from features, which are not there")
    features, known = column.features(), dict[str, pa.Array | None]()
    release, out = StagedRelease(mechanism, len(codes)), list[IntArray]()
    for block, part in by_blocks(len(codes)):
        some = features.slice(part.start, part.stop - part.start).combine_chunks()
        batch = pa.RecordBatch.from_arrays(
            [one.chunk(0) for one in some.columns], names=some.schema.names
        )
        out.append(release.draw(growing_cells(batch, known), codes[part], draws.at(block)))
    return np.concatenate(out)


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


def classes_of(mechanism: Mechanism) -> tuple[Label, ...]:
    """Return the labels of a mechanism on classes."""
    return _domains(mechanism)[0]


def true_codes(column: Column, key: NoiseKey) -> IntArray:
    """Return the true labels of a column as positions in its mechanism's classes, once rounded."""
    if (rounded := column.mechanism.offers(RoundedFirst)) is not None:
        return _rounded(read_numbers(column.column, "true"), column, rounded, key)
    return _codes(column, classes_of(column.mechanism))


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
    values: FloatArray, column: Column, mechanism: RoundedFirst, key: NoiseKey
) -> IntArray:
    """Round the true labels again."""
    draws, rounding = key.stream("rounding", column.name), mechanism.rounding
    parts = [rounding.sample(values[p], draws.at(block)) for block, p in by_blocks(len(values))]
    return np.concatenate(parts)


def _equal_outputs(outputs: tuple[Label, ...], values: FloatArray) -> IntArray:
    """Return the place of the output that each value equals but for rounding, −1 without one."""
    points = np.asarray(outputs, dtype=np.float64)
    order = np.argsort(points, kind="stable")
    middles = (points[order][1:] + points[order][:-1]) / 2
    found = order[np.searchsorted(middles, values)]
    same = np.abs(points[found] - values) <= _SAME * np.maximum(1, np.abs(values))
    return np.where(same, found, -1).astype(np.int32)
