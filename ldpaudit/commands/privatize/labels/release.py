"""Released labels as Arrow arrays, of the true labels' type wherever it can hold them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from ldpaudit.commands.privatize.labels.domains import bare_type, label_values, numbers
from ldpaudit.datasets.labels import canonical, positions
from ldpaudit.mechanisms.noise.continuous import ContinuousMechanism
from ldpaudit.mechanisms.noise.discrete import DiscreteNoise
from ldpaudit.release import IntArray, Label


@dataclass(frozen=True, eq=False)
class CodedRelease:
    """Labels and outputs one by one: randomized response and every other finite channel.

    Parameters
    ----------
    mechanism : object with ``sample(codes, rng)``
        Gives output codes.
    outputs : pyarrow.Array of m values
    type : pyarrow.DataType
        A dictionary holds all outputs in the declared order, whatever is released.
    rng : numpy.random.Generator or None
    """

    mechanism: Any
    outputs: pa.Array
    type: pa.DataType
    rng: np.random.Generator | None

    def release(self, column: pa.Array, codes: IntArray) -> pa.Array:  # noqa: ARG002
        """Release labels given as codes."""
        return self.write(self.mechanism.sample(codes, self.rng))

    def write(self, codes: IntArray) -> pa.Array:
        """Return outputs given as codes."""
        if pa.types.is_dictionary(self.type):
            indices = pa.array(codes).cast(self.type.index_type)
            return pa.DictionaryArray.from_arrays(indices, self.outputs)
        return self.outputs.take(pa.array(codes))


def coded_release(
    mechanism: Any,
    outputs: Sequence[Label],
    kind: pa.DataType,
    found: pa.Array,
    rng: np.random.Generator | None,
) -> CodedRelease:
    """Return the release of a finite mechanism.

    Parameters
    ----------
    mechanism : object with ``sample(codes, rng)``
    outputs : sequence of m values
    kind : pyarrow.DataType
        The true labels' type.
    found : pyarrow.Array
        The distinct true labels: an output that is one of them is written in the same way.
    rng : numpy.random.Generator or None
    """
    array = output_array(outputs, bare_type(kind), found)
    typed = array.type
    if pa.types.is_dictionary(kind) and array.type == bare_type(kind):
        typed = pa.dictionary(_index_type(kind, len(array)), array.type)
    return CodedRelease(mechanism, array, typed, rng)


def _index_type(kind: pa.DataType, size: int) -> pa.DataType:
    """Return the dictionary's own index type, or int32 where that is too narrow."""
    fits = size <= 1 << (kind.index_type.bit_width - 1)
    return kind.index_type if fits else pa.int32()


def output_array(outputs: Sequence[Label], kind: pa.DataType, found: pa.Array) -> pa.Array:
    """Return outputs in the true labels' type; in one of their own where that cannot hold them."""
    values = label_values(found) if len(found) else ()
    place = positions(outputs, values)
    absent = [canonical(v) for v, p in zip(outputs, place, strict=True) if p < 0]
    try:
        extra = pa.array(absent, pa.large_string()).cast(kind)
        known = found.cast(kind) if len(found) else pa.array([], kind)
        order, beyond = place.astype(np.int64), np.flatnonzero(place < 0)
        order[beyond] = len(known) + np.arange(len(beyond))
        array = pa.concat_arrays([known, extra]).take(pa.array(order))
    except pa.ArrowException:
        return _of_their_own(outputs)
    # A narrow float may hold an output only nearly.
    same = list(map(canonical, label_values(array))) == list(map(canonical, outputs))
    return array if same or not _are_numbers(outputs) else _of_their_own(outputs)


def _are_numbers(outputs: Sequence[Label]) -> bool:
    return not any(isinstance(value, str | bool) for value in outputs)


def _of_their_own(outputs: Sequence[Label]) -> pa.Array:
    if not _are_numbers(outputs):
        return pa.array([canonical(value) for value in outputs], pa.string())
    whole = all(float(value).is_integer() and abs(float(value)) < 2**53 for value in outputs)
    return pa.array([int(v) if whole else float(v) for v in outputs])


@dataclass(frozen=True, eq=False)
class StepNoiseRelease:
    """Labels on a grid with whole steps of noise."""

    mechanism: DiscreteNoise
    type: pa.DataType
    rng: np.random.Generator | None

    def release(self, column: pa.Array, codes: IntArray) -> pa.Array:  # noqa: ARG002
        """Release labels given as grid positions."""
        values = self.mechanism.labels.at(self.mechanism.sample(codes, self.rng))
        if pa.types.is_floating(self.type):
            return pa.array(values).cast(self.type)
        return pa.array(np.rint(values).astype(np.int64)).cast(self.type)


def step_noise_release(
    mechanism: DiscreteNoise, kind: pa.DataType, rng: np.random.Generator | None
) -> StepNoiseRelease:
    """Return the release of discrete noise.

    Clipped labels keep their integer type where it holds the whole declared range; all others are
    int64 where the grid is whole, else float64. The type does not depend on the data.
    """
    labels, bare = mechanism.labels, bare_type(kind)
    if not (labels.low.is_integer() and labels.spacing.is_integer()):
        return StepNoiseRelease(mechanism, pa.float64(), rng)
    if mechanism.clipped and pa.types.is_integer(bare) and _holds(bare, labels.low, labels.high):
        return StepNoiseRelease(mechanism, bare, rng)
    return StepNoiseRelease(mechanism, pa.int64(), rng)


def _holds(kind: pa.DataType, low: float, high: float) -> bool:
    try:
        pa.array([int(low), int(high)]).cast(kind)
    except pa.ArrowException:
        return False
    return True


@dataclass(frozen=True, eq=False)
class ContinuousRelease:
    """Any number of a range, with noise in steps."""

    mechanism: ContinuousMechanism
    rng: np.random.Generator | None

    @property
    def type(self) -> pa.DataType:
        """float64."""
        return pa.float64()

    def release(self, column: pa.Array, codes: IntArray) -> pa.Array:  # noqa: ARG002
        """Release labels given as numbers."""
        return pa.array(self.mechanism.release(numbers(column), self.rng))


LabelRelease = CodedRelease | StepNoiseRelease | ContinuousRelease
"""Turns a batch of true labels, as a column and as codes, into released ones."""
