"""How an audit sees a mechanism on numbers: few labels and outputs, fixed by the declaration.

Many labels are grouped and many outputs put into bins before any released label is seen. Binning
is post-processing, and a group of labels is a mixture of them, so neither has a larger ε than the
mechanism: what is certified of the view is certified of the mechanism.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from ldpaudit.errors import InputError
from ldpaudit.mechanisms import from_declaration
from ldpaudit.mechanisms.channel import Channel
from ldpaudit.mechanisms.finite import FiniteMechanism
from ldpaudit.mechanisms.interface import Mechanism
from ldpaudit.mechanisms.label_range import LabelRange
from ldpaudit.mechanisms.noise.additive import AdditiveNoise
from ldpaudit.mechanisms.noise.discrete_noise import DiscreteNoise
from ldpaudit.mechanisms.noise.exponential import Exponential
from ldpaudit.numeric_labels import NumericCoding, NumericView
from ldpaudit.release import Declaration, FloatArray

MOST_VALUES: Final = 64
"""With more labels or outputs they are grouped."""
_GROUPS: Final = 32
_BLOCK: Final = 1 << 14

NUMERIC_NAMES: Final = frozenset(
    {"rr-on-bins", "optimal-unbiased", "debiased-rr", "laplace", "discrete-laplace"}
    | {"staircase", "discrete-staircase", "exponential"}
)
"""The mechanisms whose labels are numbers."""


@dataclass(frozen=True)
class _Labels:
    """The true labels of a mechanism: all of them, or None where they fill an interval."""

    low: float
    high: float
    values: FloatArray | None


def numeric_view(claim: Mechanism, rows: int) -> NumericView | None:
    """Return how to code the labels of a mechanism on numbers; None for other mechanisms.

    Parameters
    ----------
    claim : Mechanism
    rows : int
        The number of rows n; one code per ten rows at most, at least two.
    """
    if claim.name not in NUMERIC_NAMES:
        return None
    most = max(2, min(MOST_VALUES, rows // 10))
    return NumericView(_label_coding(claim, most), _output_coding(claim, most))


def declared_view(declaration: Declaration, rows: int) -> NumericView | None:
    """Return the view of a declared mechanism; None for one that is not on numbers.

    Raises
    ------
    InputError
        If the declaration is not that of a mechanism.
    """
    if declaration.name not in NUMERIC_NAMES:
        return None
    return numeric_view(from_declaration(declaration, ()), rows)


def view_channel(claim: Mechanism, view: NumericView) -> Channel | None:
    """Return the exact channel from labels to the view's outputs; None where labels are grouped."""
    if view.classes.grouped:
        return None
    return _named(_fine_channel(claim, view.outputs, None), view.classes, view.outputs)


def group_channel(claim: Mechanism, view: NumericView, truth: FloatArray) -> Channel:
    """Return the channel from groups of labels to outputs for the labels of some people.

    Each group's row is the average over the true labels in it, as often as they occur: exactly
    the expected frequencies of the outputs, given these true labels.

    Parameters
    ----------
    claim : Mechanism
    view : NumericView
        With grouped labels.
    truth : float64 array of shape (n,)
        True labels. A group without any gets a row of equal probabilities.
    """
    values, counts = np.unique(truth, return_counts=True)
    groups = view.classes.codes(values)
    rows = np.zeros((len(view.classes), len(view.outputs)))
    for start in range(0, len(values), _BLOCK):
        block = slice(start, start + _BLOCK)
        matrix = _fine_channel(claim, view.outputs, values[block])
        np.add.at(rows, groups[block], counts[block, None] * matrix)
    total = rows.sum(axis=1, keepdims=True)
    rows = np.where(total > 0, rows, 1.0)
    return _named(rows / rows.sum(axis=1, keepdims=True), view.classes, view.outputs)


def _named(matrix: FloatArray, classes: NumericCoding, outputs: NumericCoding) -> Channel:
    return Channel(matrix, classes.names, outputs.names)


def _labels(claim: Mechanism) -> _Labels:
    if isinstance(claim, FiniteMechanism):
        values = claim.label_values
        return _Labels(float(values[0]), float(values[-1]), values)
    grid = _range(claim)
    return _Labels(grid.low, grid.high, None if grid.step is None else grid.values)


def _range(claim: Mechanism) -> LabelRange:
    if not isinstance(claim, AdditiveNoise | DiscreteNoise | Exponential):
        raise InputError(f"The mechanism {claim.name!r} has no labels that are numbers.")
    return claim.labels


def _label_coding(claim: Mechanism, most: int) -> NumericCoding:
    labels = _labels(claim)
    if labels.values is not None and len(labels.values) <= most:
        return NumericCoding.of_values(_names(labels.values))
    groups = min(_GROUPS, most)
    edges = np.linspace(labels.low, labels.high, groups + 1)[1:-1]
    if labels.values is not None:
        edges = _between(labels.values, edges)
    return NumericCoding.of_bins(edges, labels.low, labels.high)


def _names(values: FloatArray) -> tuple[int | float, ...]:
    whole = bool(np.all(values == np.rint(values)))
    return tuple(values.astype(np.int64).tolist() if whole else values.tolist())


def _between(values: FloatArray, edges: FloatArray) -> FloatArray:
    """Move edges halfway between two neighbouring values, so that rounding moves no label."""
    places = np.unique(np.clip(np.searchsorted(values, edges), 1, len(values) - 1))
    return np.asarray((values[places - 1] + values[places]) / 2)


def _output_coding(claim: Mechanism, most: int) -> NumericCoding:
    finite = _finite_outputs(claim)
    if finite is not None and len(finite) <= most:
        return NumericCoding.of_values(_names(finite))
    bins = min(_GROUPS, most)
    if finite is not None:
        # Equal numbers of outputs: those of an unbiased randomizer are far apart at the ends.
        places = np.unique(np.linspace(0, len(finite), bins + 1).astype(int)[1:-1])
        return NumericCoding.of_bins((finite[places - 1] + finite[places]) / 2)
    grid = _range(claim)
    if isinstance(claim, DiscreteNoise):
        low, high = grid.low + grid.spacing / 2, grid.high - grid.spacing / 2
        return NumericCoding.of_bins(_between(_padded(grid), np.linspace(low, high, bins - 1)))
    # Both ends have a bin of their own: clipping puts mass there, and tails tell labels best.
    inner = np.linspace(grid.low, grid.high, bins - 1)
    inner[-1] = np.nextafter(grid.high, -np.inf)
    return NumericCoding.of_bins(inner)


def _padded(grid: LabelRange) -> FloatArray:
    return np.concatenate([[grid.low - grid.spacing], grid.values, [grid.high + grid.spacing]])


def _finite_outputs(claim: Mechanism) -> FloatArray | None:
    """Return the outputs of a mechanism that has finitely many, in increasing order."""
    if isinstance(claim, FiniteMechanism):
        return np.sort(claim.output_values)
    if isinstance(claim, DiscreteNoise) and claim.clipped:
        return claim.labels.values
    return None


def _fine_channel(
    claim: Mechanism, outputs: NumericCoding, labels: FloatArray | None
) -> FloatArray:
    """Return P(output's code | label) for all labels, or the given ones."""
    if isinstance(claim, AdditiveNoise | Exponential):
        return claim.binned(outputs.edges.tolist(), labels).matrix
    matrix = _finite_channel(claim, outputs)
    if labels is None:
        return matrix
    values = _labels(claim).values
    assert values is not None
    return matrix[np.searchsorted((values[1:] + values[:-1]) / 2, labels)]


def _finite_channel(claim: Mechanism, outputs: NumericCoding) -> FloatArray:
    """Return P(output's code | label) for all of finitely many labels."""
    if isinstance(claim, DiscreteNoise) and outputs.grouped:
        return claim.binned(outputs.edges.tolist()).matrix
    channel = claim.channel
    assert channel is not None
    codes = outputs.codes(np.asarray(channel.outputs, dtype=np.float64))
    return np.asarray(channel.matrix @ np.eye(len(outputs))[codes])
