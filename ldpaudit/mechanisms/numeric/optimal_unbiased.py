"""The optimal unbiased randomizer for numeric labels, without a mesh.

Among all ε-DP channels with E[ŷ | y] = y for every label it has the least expected loss under a
prior. Squared loss: a closed form where it is optimal, else the exact program over intervals of
labels. Poisson log loss: the program.
Derivation, proofs and numerical checks: ``docs/mechanisms/optimal-unbiased.md``.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, Self

import numpy as np

from ldpaudit.errors import InputError
from ldpaudit.mechanisms.channel import Channel
from ldpaudit.mechanisms.design import PROVED, Candidate, Design, Problem, Proposal, numeric_traits
from ldpaudit.mechanisms.exact_sampling import WeightTable
from ldpaudit.mechanisms.finite import FiniteMechanism
from ldpaudit.mechanisms.losses import Loss
from ldpaudit.mechanisms.numeric.interval.columns import (
    IntervalColumns,
    integer_columns,
    lowered_growth,
)
from ldpaudit.mechanisms.options import DESIGN, MechanismOptions
from ldpaudit.mechanisms.parameters import (
    check_epsilon,
    check_numeric_classes,
    only_known,
    required,
)
from ldpaudit.release import FloatArray, Label

BIAS_TOLERANCE: Final = 1e-9
"""How far from unbiased a declared randomizer may be, in units of its largest output or label."""


@dataclass(frozen=True, eq=False)
class OptimalUnbiased(FiniteMechanism):
    """An unbiased randomizer made of interval columns.

    Output z is released with probability e^ε c_z for a label inside its interval and c_z outside.

    Parameters
    ----------
    classes : tuple
        The k labels, numbers in increasing order.
    target_epsilon : float
        ε in nats that it was made for; :attr:`epsilon` is never above it.
    columns : IntervalColumns
        Its outputs, intervals and masses.
    """

    traits = numeric_traits("optimal-unbiased", "the optimal unbiased randomizer", DESIGN, "prior")

    classes: tuple[Label, ...]
    target_epsilon: float
    columns: IntervalColumns

    @property
    def description(self) -> str:
        """Its size and ε."""
        return (
            f"the optimal unbiased randomizer on {len(self.classes)} labels with "
            f"{len(self.channel.outputs)} outputs, ε = {self.target_epsilon:.6g} nats"
        )

    @cached_property
    def channel(self) -> Channel:
        """The channel; columns with the same output are added up."""
        matrix = self.columns.matrix(len(self.classes), lowered_growth(self.target_epsilon))
        matrix = np.add.reduceat(matrix, self._firsts, axis=1)
        # Rounding leaves row sums of 1 ± 1e-15; the lowered growth has room for this division.
        return Channel(
            matrix / matrix.sum(axis=1, keepdims=True),
            self.classes,
            tuple(self.columns.outputs[self._firsts].tolist()),
        )

    @cached_property
    def _firsts(self) -> np.ndarray[Any, np.dtype[np.intp]]:
        """Where a new output begins."""
        new = np.diff(self.columns.outputs, prepend=-np.inf) > 0
        return np.flatnonzero(new)

    @cached_property
    def weights(self) -> WeightTable:
        """The channel as integers; their own ε is never above the target."""
        growth = lowered_growth(self.target_epsilon)
        table = integer_columns(self.columns, len(self.classes), growth)
        return WeightTable(np.add.reduceat(table, self._firsts, axis=1))

    def declaration(self) -> Mapping[str, Any]:
        """Return labels, ε and the columns."""
        return {
            "classes": list(self.classes),
            "epsilon": self.target_epsilon,
            "outputs": self.columns.outputs.tolist(),
            "intervals": np.column_stack([self.columns.first, self.columns.last]).tolist(),
            "masses": self.columns.masses.tolist(),
        }

    @property
    def error_tolerance(self) -> float:
        """The largest absolute bias that is the solver's rounding."""
        return BIAS_TOLERANCE

    @classmethod
    def candidates(cls) -> Iterator[Candidate]:
        """Yield the optimum; it is proved optimal if the solver closed the gap."""

        def build(problem: Problem) -> Proposal:
            design = _design(problem.labels.classes, problem.prior, problem.epsilon, problem.loss)
            among = "unbiased ε-label-DP mechanisms"
            return Proposal(design.mechanism, among if design.gap <= PROVED else "")

        yield Candidate("", build)

    @classmethod
    def from_options(cls, options: MechanismOptions) -> FiniteMechanism:
        """Build the one of least expected loss under the prior."""
        return _design(*options.for_prior(cls.traits.name), options.loss).mechanism

    @classmethod
    def from_parameters(cls, parameters: Mapping[str, Any], classes: tuple[Label, ...]) -> Self:
        """Build it from a declaration, with every number checked."""
        name, known = "optimal-unbiased", {"classes", "epsilon", "outputs", "intervals", "masses"}
        only_known(parameters, known, name)
        labels = check_numeric_classes(parameters.get("classes") or classes)
        epsilon = check_epsilon(required(parameters, "epsilon", name))
        columns = _declared_columns(parameters, len(labels))
        mechanism = cls(labels, epsilon, columns)
        scale = float(np.max(np.abs(mechanism.output_values), initial=1.0))
        if np.abs(mechanism.bias()).max() > BIAS_TOLERANCE * scale:
            raise InputError("The randomizer must be unbiased: E[ŷ | y] = y for every label.")
        return mechanism


def _design(classes: tuple[Label, ...], prior: FloatArray, epsilon: float, loss: Loss) -> Design:
    # The design's module imports this one.
    from ldpaudit.mechanisms.numeric.unbiased_design import optimal_unbiased

    return optimal_unbiased(classes, prior, epsilon, loss)


def _declared_columns(parameters: Mapping[str, Any], k: int) -> IntervalColumns:
    name = "optimal-unbiased"
    outputs = _numbers(required(parameters, "outputs", name), 1)
    masses = _numbers(required(parameters, "masses", name), 1)
    ends = _numbers(required(parameters, "intervals", name), 2)
    m = len(outputs)
    if m == 0 or masses.shape != (m,) or ends.shape != (m, 2):
        raise InputError("Each output must have one interval and one mass.")
    whole = bool(np.all(ends == np.rint(ends)))
    if not whole or (ends < 0).any() or (ends >= k).any() or (ends[:, 0] > ends[:, 1]).any():
        raise InputError(f"Each interval must be two label codes from 0 to {k - 1}, in order.")
    if (masses <= 0).any():
        raise InputError("The masses must be above 0.")
    first, last = ends.astype(np.int64).T
    return IntervalColumns.ordered(outputs, first, last, masses)


def _numbers(values: Sequence[Any], dimensions: int) -> FloatArray:
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError("The outputs, intervals and masses must be lists of numbers.") from None
    if array.ndim != dimensions or not np.isfinite(array).all():
        raise InputError("The outputs, intervals and masses must be lists of finite numbers.")
    return array
