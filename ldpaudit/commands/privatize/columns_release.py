"""All private columns of a batch released at once: each by itself, or all together."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from ldpaudit.commands.privatize.features.generated_rows import FittedGenerator
from ldpaudit.commands.privatize.labels.release import CodedRelease, coded_release
from ldpaudit.commands.privatize.private_columns import PrivateColumns
from ldpaudit.commands.privatize.request import PrivatizeRequest
from ldpaudit.commands.privatize.row_release import RowRelease, row_release
from ldpaudit.mechanisms.joint import JointMechanism
from ldpaudit.release import IntArray

Released = tuple[pa.RecordBatch, list[pa.Array]]


class VectorRelease(Protocol):
    """Turns a batch of true rows into released ones, in the same order."""

    @property
    def types(self) -> tuple[pa.DataType, ...]:
        """The released labels' types, column by column."""

    def schema(self, features: pa.Schema) -> pa.Schema:
        """Return the released features' columns and types."""

    def release(
        self, features: pa.RecordBatch, labels: Sequence[pa.Array], codes: Sequence[IntArray]
    ) -> Released:
        """Return released features and labels of n rows.

        ``labels`` holds the true labels of each private column, ``codes`` the same as int32 codes
        of the columns' domains.
        """


@dataclass(frozen=True, eq=False)
class SeparateColumns:
    """Each private column is released independently of the others.

    Where there are several, none of them changes the features.
    """

    each: tuple[RowRelease, ...]

    @property
    def types(self) -> tuple[pa.DataType, ...]:
        """The released labels' types."""
        return tuple(one.label_type for one in self.each)

    def schema(self, features: pa.Schema) -> pa.Schema:
        """Return the released features' columns and types."""
        for one in self.each:
            features = one.schema(features)
        return features

    def release(
        self, features: pa.RecordBatch, labels: Sequence[pa.Array], codes: Sequence[IntArray]
    ) -> Released:
        """Return released features and labels of n rows."""
        released = []
        for one, label, own in zip(self.each, labels, codes, strict=True):
            features, new = one.release(features, label, own)
            released.append(new)
        return features, released


@dataclass(frozen=True, eq=False)
class JointColumns:
    """All private columns are released by one mechanism; the features stay as they are."""

    mechanism: JointMechanism
    outputs: tuple[CodedRelease, ...]
    rng: np.random.Generator | None

    @property
    def types(self) -> tuple[pa.DataType, ...]:
        """The released labels' types."""
        return tuple(one.type for one in self.outputs)

    def schema(self, features: pa.Schema) -> pa.Schema:
        """Return the features' columns and types."""
        return features

    def release(
        self,
        features: pa.RecordBatch,
        labels: Sequence[pa.Array],  # noqa: ARG002
        codes: Sequence[IntArray],
    ) -> Released:
        """Return features and released labels of n rows."""
        drawn = self.mechanism.sample(np.stack(codes, axis=1), self.rng)
        return features, [one.write(drawn[:, j]) for j, one in enumerate(self.outputs)]


def vector_release(
    request: PrivatizeRequest,
    columns: PrivateColumns,
    features: pa.Schema,
    fitted: FittedGenerator | None = None,
) -> VectorRelease:
    """Make the mechanisms of all private columns ready.

    Raises
    ------
    InputError, MissingDependencyError
        As :func:`row_release`.
    """
    if columns.joint is None:
        return SeparateColumns(tuple(row_release(one, features, fitted) for one in columns))
    outputs: list[Any] = [one.mechanism.channel for one in columns]
    written = tuple(
        coded_release(None, channel.outputs, one.field.type, one.survey.spelt, None)
        for one, channel in zip(columns, outputs, strict=True)
    )
    return JointColumns(columns.joint, written, request.randomness("release"))
