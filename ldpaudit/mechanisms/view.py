"""How readers and audits see the labels of a mechanism: as codes, few and fixed by the declaration.

On numbers, many labels are grouped and many outputs put into bins before any released label is
seen. Binning is post-processing, and a group of labels is a mixture of them, so neither has a
larger ε than the mechanism: what is certified for the view is certified for the mechanism.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np

from ldpaudit.errors import InputError
from ldpaudit.mechanisms.capabilities import AnyNumber, BagSums, LocalReports
from ldpaudit.mechanisms.channel import Channel, ChannelFamily
from ldpaudit.mechanisms.exact_sampling import LARGEST_EPSILON
from ldpaudit.mechanisms.foreign import CheckedReports, checked_reports
from ldpaudit.mechanisms.interface import Mechanism, NumericMechanism, Traits
from ldpaudit.mechanisms.label_range import between, nearest, plain_numbers
from ldpaudit.mechanisms.registry import from_declaration, traits_of
from ldpaudit.numeric_labels import NumericCoding, NumericView, PossibleNumbers
from ldpaudit.release import Declaration, FloatArray
from ldpaudit.work.limits import EPSILON

# More labels or outputs than these are grouped.
MOST_VALUES: Final = 64
_GROUPS: Final = 32
_BLOCK: Final = 1 << 14
_ROUNDING, _DOUBLINGS, _NEVER = 1e-6, 24, 1e-9


def numeric_view(claim: Mechanism, rows: int) -> NumericView | None:
    """Return the coding of labels of a mechanism on numbers; None for other mechanisms."""
    if not claim.traits.numeric or not isinstance(claim, NumericMechanism):
        return None
    most = max(2, min(MOST_VALUES, rows // 10))
    outputs = claim.output_values
    if outputs is not None and len(outputs) <= most:
        coding = NumericCoding.of_values(plain_numbers(np.sort(outputs)))
    else:
        edges = claim.bin_edges(min(_GROUPS, most))
        coding = NumericCoding.of_bins(edges, possible=possible_numbers(claim, rows))
    return NumericView(_label_coding(claim, most), coding)


def possible_numbers(claim: NumericMechanism, rows: int) -> PossibleNumbers:
    """Return which numbers the claimed mechanism can release in so many rows.

    In bins a number off its grid, or far beyond its noise, would look like any other. Beyond the
    ends some number lies by chance in less than one of a thousand million honest releases.
    """
    outputs = claim.output_values
    if outputs is not None:
        return PossibleNumbers(np.sort(np.asarray(outputs, dtype=np.float64)))
    low, high = claim.label_bounds
    beyond = (high - low) * np.concatenate([[_ROUNDING], 2.0 ** np.arange(_DOUBLINGS)])
    edges = np.concatenate([low - beyond[::-1], high + beyond])
    matrix = claim.binned(edges.tolist(), np.array([low, high])).matrix
    below = np.cumsum(matrix, axis=1)[:, : len(beyond)].max(axis=0)[::-1]
    above = np.cumsum(matrix[:, ::-1], axis=1)[:, : len(beyond)].max(axis=0)[::-1]
    ends = [np.flatnonzero(rows * chances < _NEVER) for chances in (below, above)]
    least = low - beyond[ends[0][0]] if len(ends[0]) else -np.inf
    most = high + beyond[ends[1][0]] if len(ends[1]) else np.inf
    # One whose labels may be any number may be drawn in other steps than here, or in none.
    step = None if isinstance(claim, AnyNumber) else claim.output_step
    return PossibleNumbers(None, low, step, float(least), float(most))


def view_channel(claim: Mechanism, view: NumericView) -> Channel | None:
    """Return the exact channel from labels to the view's outputs; None where labels are grouped."""
    if view.classes.grouped or not isinstance(claim, NumericMechanism):
        return None
    return _named(_fine_channel(claim, view.outputs, None), view)


def point_channel(claim: Mechanism, view: NumericView) -> Channel | None:
    """Return the channel from single labels to the view's outputs; None for other mechanisms."""
    # From all labels where they are at most 64, else from 65 even points of their range.
    if not isinstance(claim, NumericMechanism):
        return None
    labels = claim.label_values
    if labels is None or len(labels) > MOST_VALUES + 1:
        low, high = claim.label_bounds
        even = np.linspace(low, high, MOST_VALUES + 1)
        labels = even if labels is None else np.unique(labels[nearest(labels, even)])
    matrix = _fine_channel(claim, view.outputs, labels)
    return Channel(matrix, tuple(labels.tolist()), view.outputs.names)


def group_channel(claim: Mechanism, view: NumericView, truth: FloatArray) -> Channel:
    """Return the channel from groups of labels to outputs for the labels of some people."""
    # Each group's row is the average over the true labels in it, weighted by their frequency: the
    # exact expected frequencies of the outputs, given these true labels.
    assert isinstance(claim, NumericMechanism)
    values, counts = np.unique(truth, return_counts=True)
    groups = view.classes.codes(values)
    rows = np.zeros((len(view.classes), len(view.outputs)))
    for start in range(0, len(values), _BLOCK):
        block = slice(start, start + _BLOCK)
        matrix = _fine_channel(claim, view.outputs, values[block])
        np.add.at(rows, groups[block], counts[block, None] * matrix)
    total = rows.sum(axis=1, keepdims=True)
    rows = np.where(total > 0, rows, 1.0)
    return _named(rows / rows.sum(axis=1, keepdims=True), view)


# What a mechanism may take as its ε at most: the first that it takes is tried.
_LARGEST: Final = (EPSILON[1], LARGEST_EPSILON, 28.0, 20.0)


def view_family(
    claim: Mechanism, view: NumericView, truth: FloatArray | None
) -> ChannelFamily | None:
    """Return the claimed mechanism at another ε in nats, as a channel to the view's outputs.

    From groups of the true labels given, from every label where ``view`` has no groups, or from
    single ones. Parameters that follow from ε, such as the width of stairs, follow from the other.
    None where the mechanism is not described by ε, or has other outputs at another.
    """
    stated = _without_implied(claim)
    if not isinstance(claim, NumericMechanism) or "epsilon" not in stated or "prior" in stated:
        return None
    name, labels = claim.traits.name, truth
    if truth is not None and len(truth) > _BLOCK:
        labels = np.sort(truth)[np.linspace(0, len(truth) - 1, _BLOCK).astype(np.int64)]

    def at(epsilon: float) -> NumericMechanism:
        """Return the mechanism at an ε, or at the largest one that it takes."""
        for largest in _LARGEST:
            worse = {**stated, "epsilon": min(epsilon, largest)}
            try:
                made = from_declaration(Declaration(name, worse), ())
            except InputError:
                if epsilon <= _LARGEST[-1] or largest == _LARGEST[-1]:
                    raise
                continue
            break
        assert isinstance(made, NumericMechanism)
        return made

    def channel(epsilon: float) -> Channel:
        mechanism = at(epsilon)
        if not view.classes.grouped:
            return _named(_fine_channel(mechanism, view.outputs, None), view)
        if labels is not None:
            return group_channel(mechanism, view, labels)
        found = point_channel(mechanism, view)
        assert found is not None
        return found

    try:
        own, other = claim.output_values, at(2 * claim.epsilon).output_values
    except InputError:
        return None
    if own is None or other is None:
        return channel if own is other else None
    return channel if np.array_equal(own, other) else None


def _without_implied(claim: Mechanism) -> dict[str, Any]:
    """Return a declaration's parameters without those that the others imply."""
    stated = dict(claim.declaration())
    for name in [one for one in stated if one != "epsilon"]:
        fewer = {key: value for key, value in stated.items() if key != name}
        try:
            made = from_declaration(Declaration(claim.traits.name, fewer), ())
        except InputError:
            continue
        if dict(made.declaration()) == dict(claim.declaration()):
            stated = fewer
    return stated


def _named(matrix: FloatArray, view: NumericView) -> Channel:
    return Channel(matrix, view.classes.names, view.outputs.names)


def _label_coding(claim: NumericMechanism, most: int) -> NumericCoding:
    (low, high), values = claim.label_bounds, claim.label_values
    if values is not None and len(values) <= most:
        return NumericCoding.of_values(plain_numbers(values))
    edges = np.linspace(low, high, min(_GROUPS, most) + 1)[1:-1]
    return NumericCoding.of_bins(edges if values is None else between(values, edges), low, high)


def _fine_channel(
    claim: NumericMechanism, outputs: NumericCoding, labels: FloatArray | None
) -> FloatArray:
    """Return P(output's code | label) for all labels, or the given ones."""
    if outputs.grouped:
        return claim.binned(outputs.edges.tolist(), labels).matrix
    released, every = claim.output_values, claim.label_values
    assert released is not None
    labels = every if labels is None else labels
    assert labels is not None
    codes = outputs.codes(released)
    return np.asarray(claim.likelihood(released, labels).T @ np.eye(len(outputs))[codes])


@dataclass(frozen=True)
class DeclaredCoding:
    """How a reader codes the released labels of a declared mechanism, or of none."""

    # The reader knows no mechanism: it is given this. The mechanism is built once, here, if its
    # declaration is complete; else the labels that occur complete it.

    declaration: Declaration | None

    @property
    def _traits(self) -> Traits:
        return traits_of("" if self.declaration is None else self.declaration.name)

    @property
    def outputs_are_labels(self) -> bool:
        """Whether the outputs are labels, unless outputs are declared."""
        return self._traits.outputs == "labels"

    @property
    def order_of_classes_matters(self) -> bool:
        """Whether the classes must be declared: they are the rows of a matrix."""
        return "matrix" in self._traits.needs

    @cached_property
    def _mechanism(self) -> Mechanism:
        return from_declaration(self.declaration, ())

    def view(self, rows: int) -> NumericView | None:
        """Return the coding of numeric labels; None for a mechanism on classes."""
        return numeric_view(self._mechanism, rows) if self._traits.numeric else None

    @property
    def bags(self) -> BagSums | None:
        """The mechanism that releases sums of bags; None where rows are released one by one."""
        return self._mechanism.offers(BagSums) if self._traits.rows == "bags" else None

    @property
    def reports(self) -> LocalReports | CheckedReports | None:
        """The protocol whose reports were recorded; None for a mechanism that releases labels."""
        reports = self._traits.outputs == "reports"
        protocol = self._mechanism.offers(LocalReports) if reports else None
        return None if protocol is None else checked_reports(protocol)
