"""Channels made of interval columns: an output is e^ε times likelier inside an interval.

Output z has a mass c_z, the probability of z for a label outside its interval; inside it the
probability is e^ε c_z.
"""

import math
from collections import defaultdict
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

import numpy as np
import numpy.typing as npt

from ldpaudit.errors import InputError
from ldpaudit.mechanisms.exact_sampling import TOTAL
from ldpaudit.release import BoolArray, FloatArray, IndexArray

LARGEST_EPSILON: Final = 40.0
"""Above it outputs have probabilities below 2⁻⁵⁷, too small for a table of 64-bit integers."""

_TOWARDS_PRIVACY: Final = 2.0**-47
"""e^ε is lowered by this share, more than all later rounding can add."""


def lowered_growth(epsilon: float) -> float:
    """Return e^ε − 1 a little too low, so that rounded probabilities never exceed ε.

    Raises
    ------
    InputError
        If ε (nats) is so small that lowering it leaves nothing, or so large that probabilities
        vanish.
    """
    if not 1e-13 <= epsilon <= LARGEST_EPSILON:
        raise InputError(
            f"The 'epsilon' parameter of this mechanism must lie between 1e-13 and "
            f"{LARGEST_EPSILON:g}. Got {epsilon:g} instead."
        )
    return math.expm1(epsilon) - math.exp(epsilon) * _TOWARDS_PRIVACY


def raised_growth(epsilon: float) -> float:
    """Return e^ε − 1 a little too high, for bounds that must hold at ε (nats)."""
    return math.expm1(epsilon) * (1 + 2.0**-50)


@dataclass(frozen=True, eq=False)
class IntervalColumns:
    """Outputs with their intervals of labels, in increasing order of output.

    Parameters
    ----------
    outputs : float64 array of shape (m,)
        The released values.
    first, last : int64 arrays of shape (m,)
        The interval of label codes, both ends included.
    masses : float64 array of shape (m,)
        The probability of the output outside its interval.
    """

    outputs: FloatArray
    first: IndexArray
    last: IndexArray
    masses: FloatArray

    @classmethod
    def ordered(
        cls, outputs: FloatArray, first: IndexArray, last: IndexArray, masses: FloatArray
    ) -> "IntervalColumns":
        """Build it with the outputs sorted."""
        order = np.argsort(outputs, kind="stable")
        return cls(outputs[order], first[order], last[order], masses[order])

    def __len__(self) -> int:
        return len(self.outputs)

    def inside(self, k: int) -> BoolArray:
        """Return which of k labels lie in each interval, shape (k, m)."""
        label = np.arange(k)[:, None]
        return np.asarray((self.first <= label) & (label <= self.last))

    def matrix(self, k: int, growth: float) -> FloatArray:
        """Return the probabilities, float64 of shape (k, m), for e^ε = 1 + growth."""
        return np.where(self.inside(k), self.masses * (1 + growth), self.masses)


def integer_columns(columns: IntervalColumns, k: int, growth: float) -> npt.NDArray[np.uint64]:
    """Turn interval columns into integers that keep ε exactly and sum to 2⁶³ in each row.

    The part of each column that exceeds its mass, inside its interval, is a flow along the line of
    label boundaries: as every label has the same total, what ends at a boundary starts again there.
    An integer flow keeps the row sums equal despite rounding, and the rest is rounded up, towards
    privacy.

    Parameters
    ----------
    columns : IntervalColumns
        m columns with row sums 1 at this growth.
    k : int
        The number of labels.
    growth : float
        e^ε − 1, already lowered.

    Returns
    -------
    uint64 array of shape (k, m)
        No entry of a column exceeds (1 + growth) times another.
    """
    rational = Fraction(1 + growth) - 1
    source = int(float(columns.masses[columns.first == 0].sum()) * growth * TOTAL)
    while True:
        flow = _integer_flow(columns, k, source)
        low = [-(-x * rational.denominator // rational.numerator) for x in flow]
        rest = TOTAL - source - sum(low)
        if rest >= 0:
            break
        source += rest
    share, left = divmod(rest, len(low))
    base = np.array([v + share + (i < left) for i, v in enumerate(low)], dtype=np.uint64)
    extra = np.where(columns.inside(k), np.array(flow, dtype=np.uint64), np.uint64(0))
    table = np.asarray(base + extra, dtype=np.uint64)
    if (table.sum(axis=1) != TOTAL).any():
        raise InputError("The declared intervals do not fit together: rows have different sums.")
    return table


def _integer_flow(columns: IntervalColumns, k: int, source: int) -> list[int]:
    """Send ``source`` units from the first boundary to the last, in proportion to the masses."""
    starting = defaultdict(list)
    for z, first in enumerate(columns.first.tolist()):
        starting[first].append(z)
    parts = [int(Fraction(mass) * (1 << 100)) for mass in columns.masses.tolist()]
    arrived, flow = [0] * (k + 1), [0] * len(columns)
    arrived[0] = source
    for node in range(k):
        total, sent, reached = sum(parts[z] for z in starting[node]), 0, 0
        for z in starting[node]:
            reached += parts[z]
            upto = arrived[node] * reached // total
            flow[z] = upto - sent
            arrived[int(columns.last[z]) + 1] += flow[z]
            sent = upto
    return flow
