"""What ε of one column can become through the other released columns, by the claims.

Exactly, whatever the true values have to do with each other: at most the ε of the vector, which for
independent draws is the sum. Who knows how the true values go together, and nothing of a person but
the released columns, learns of column a what the channel

    P(z_a, z_b, … | y_a) = T_a[y_a, z_a] Σ_{y_b, …} P(y_b, … | y_a) Π_b T_b[y_b, z_b]

tells: its ε is ε_a and what the others tell, added up for each pair of labels. With the law of the
true values as counted it is an estimate.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from ldpaudit.audits.claimed_channel import aligned_channel
from ldpaudit.audits.interface import AuditContext, Beside
from ldpaudit.audits.mechanism.evidence import INDEPENDENT
from ldpaudit.mechanisms import from_declaration
from ldpaudit.mechanisms.channel import largest_log_ratios
from ldpaudit.release import FloatArray, IntArray, ReleasedVector
from ldpaudit.result import Estimate

BOUND, BY_LAW = "others.epsilon_bound", "others.epsilon_by_law"
TOLD: Final = "others.told_by.column-{}"
_LARGEST: Final = 1 << 22
"""The most entries of a table of the true or released values of all columns."""
_SMOOTHING: Final = 0.5


def bound_estimates(context: AuditContext, beside: Beside) -> Iterator[Estimate]:
    """Yield what the claims, and the counted law of the true values, say of a column's ε."""
    joint = beside.claim
    if joint is not None and joint.epsilon is not None:
        yield Estimate.exact(
            BOUND,
            "ε of this column through all released columns, at most",
            joint.epsilon,
            axis="epsilon",
            unit="nats",
            method="the columns' ε added up: an attacker may know how the columns go together"
            if joint.independent
            else "the exact channel of the vector",
        )
    if joint is None or not joint.independent:
        return
    channels = column_channels(beside.vector, context)
    if channels is not None:
        yield from _by_law(beside, channels)


def column_channels(vector: ReleasedVector, context: AuditContext) -> list[FloatArray] | None:
    """Return the claimed channel of each column, float64 of shape (k, m); None if one has none."""
    found = []
    for place in range(len(vector.columns)):
        alone = vector.alone(place)
        claim = from_declaration(alone.declaration, alone.classes)
        channel = aligned_channel(replace(context, release=alone, claim=claim, _shared={}))
        if channel is None:
            return None
        found.append(channel.matrix)
    return found


def _by_law(beside: Beside, channels: Sequence[FloatArray]) -> Iterator[Estimate]:
    """Yield what each other column tells of this one, and ε of all together, by the counted law."""
    columns, a = beside.vector.columns, beside.position
    labels = [column.truth for column in columns if column.truth is not None]
    if len(labels) < len(columns):
        return
    others = [b for b in range(len(columns)) if b != a]
    n = len(columns[0])
    for b in others:
        told = float(largest_log_ratios(told_of(a, [b], labels, channels)).max())
        yield Estimate.estimated(
            TOLD.format(b + 1),
            f"What column {b + 1} tells of this one",
            told,
            unit="nats",
            method="ε of the channel from this column's true label to that column's released one, "
            "by the law of the true values as counted",
            assumptions=_ASSUMED,
            n=n,
        )
    sizes = math.prod(channels[b].shape[0] for b in range(len(columns)))
    outputs = channels[a].shape[0] * math.prod(channels[b].shape[1] for b in others)
    if max(sizes, outputs) > _LARGEST:
        return
    total = largest_log_ratios(channels[a]) + largest_log_ratios(
        told_of(a, others, labels, channels)
    )
    yield Estimate.estimated(
        BY_LAW,
        "ε of this column through all released columns, by the law of the true values",
        float(total.max()),
        axis="epsilon",
        unit="nats",
        method="the exact channel from this column's true label to all released columns, by the "
        "law of the true values as counted",
        assumptions=_ASSUMED,
        n=n,
    )


_ASSUMED: Final = (
    "the declared channels are the true ones",
    "the attacker knows how the true values go together, and no feature",
    INDEPENDENT,
)


def told_of(
    a: int,
    others: Sequence[int],
    labels: Sequence[IntArray],
    channels: Sequence[FloatArray],
) -> FloatArray:
    """Return P(released values of the others | y_a), float64 of shape (k_a, outputs).

    Parameters
    ----------
    a : int
        The column whose label is looked at.
    others : sequence of int
    labels : sequence of int32 arrays of shape (n,)
        The true labels of all columns.
    channels : sequence of float64 arrays of shape (k, m)
    """
    sizes = [channels[b].shape[0] for b in (a, *others)]
    codes = np.ravel_multi_index(tuple(labels[b] for b in (a, *others)), sizes)
    table = np.bincount(codes, minlength=math.prod(sizes)).reshape(sizes[0], -1)
    counts = table.astype(float)
    # Half a row, spread as all rows are: labels that hardly occur say little of the law.
    counts += _SMOOTHING * counts.sum(axis=0) / counts.sum()
    law = (counts / counts.sum(axis=1, keepdims=True)).reshape(sizes)
    for b in others:  # Each contraction moves the next true column's axis to the end as released.
        law = np.tensordot(law, channels[b], axes=([1], [0]))
    return np.asarray(law.reshape(sizes[0], -1))
