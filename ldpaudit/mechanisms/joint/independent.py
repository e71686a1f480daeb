"""Columns that are released independently of each other, each by its own mechanism."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, reduce
from typing import Any

import numpy as np

from ldpaudit.errors import InputError
from ldpaudit.mechanisms.by_stratum import ByStratum
from ldpaudit.mechanisms.channel import Channel
from ldpaudit.mechanisms.finite import FiniteMechanism
from ldpaudit.mechanisms.interface import Mechanism
from ldpaudit.mechanisms.joint.domains import checked
from ldpaudit.mechanisms.joint.interface import LARGEST, JointMechanism
from ldpaudit.release import FloatArray, IntArray


@dataclass(frozen=True)
class IndependentColumns(JointMechanism):
    """One mechanism for each column, with draws that are independent given the true vector.

    Parameters
    ----------
    columns : tuple of Mechanism, length d ≥ 2
        The columns' mechanisms, of any kind.
    by : tuple of str or None, length d, optional
        The public column by whose values each column's channels differ.

    Notes
    -----
    P(z | y) = Π_j P(z_j | y_j). The largest ratio of a product of functions of separate arguments
    is the product of the largest ratios: ε of the vector is exactly Σ ε_j. Of columns with channels
    by the same strata, the sum is taken in each stratum and the largest counts.

    A column's ε within the vector, the others' labels fixed, is its own: their factors cancel.
    An attacker who does not know the others' labels, but that they go along with this one, can
    learn more than ε_j of it from all released columns; never more than Σ ε_j.
    """

    name = "independent"

    columns: tuple[Mechanism, ...]
    by: tuple[str | None, ...] = field(default=())

    def __post_init__(self) -> None:
        if len(self.columns) < 2:
            raise InputError("There must be at least two private columns.")
        by = self.by or (None,) * len(self.columns)
        if len(by) != len(self.columns):
            raise InputError("Each private column must have its strata stated, or none.")
        object.__setattr__(self, "by", by)

    @property
    def description(self) -> str:
        """The number of columns and ε."""
        epsilon = self.epsilon
        total = "nothing claimed" if epsilon is None else f"ε = {epsilon:.6g} nats together"
        return f"{len(self.columns)} columns released independently of each other, {total}"

    @property
    def independent(self) -> bool:
        """True."""
        return True

    @cached_property
    def epsilon(self) -> float | None:
        """Σ ε_j in nats; None where a column claims nothing."""
        parts = [self._together(group) for group in self._groups()]
        claimed = [part for part in parts if part is not None]
        return math.fsum(claimed) if len(claimed) == len(parts) else None

    def _groups(self) -> list[list[Mechanism]]:
        """Return the columns, those with channels by the same public column together."""
        groups: dict[object, list[Mechanism]] = {}
        for place, (column, by) in enumerate(zip(self.columns, self.by, strict=True)):
            groups.setdefault(place if by is None else by, []).append(column)
        return list(groups.values())

    def _together(self, group: list[Mechanism]) -> float | None:
        """Return the largest sum of ε over the strata that the columns of a group share."""
        strata = [column for column in group if isinstance(column, ByStratum)]
        values = [set(column.values) for column in strata]
        if len(strata) < len(group) or any(one != values[0] for one in values):
            return _sum(group)
        return max(
            math.fsum(column.of_value(value).epsilon for column in strata) for value in values[0]
        )

    def channel(self) -> Channel | None:
        """Return the Kronecker product of the columns' channels, where it is not too large."""
        channels = [column.channel for column in self.columns]
        known = [channel for channel in channels if channel is not None]
        entries = math.prod(channel.matrix.size for channel in known)
        if len(known) < len(channels) or entries > LARGEST:
            return None
        matrix = reduce(_kronecker, [channel.matrix for channel in known])
        k, m = matrix.shape
        return Channel(matrix, tuple(range(k)), tuple(range(m)))

    def epsilon_of(self, position: int) -> float | None:
        """Return the column's own ε in nats: the others' factors cancel."""
        return self.columns[position].epsilon

    def remarks(self) -> tuple[str, ...]:
        """Say what the sum is."""
        return (
            "The ε of independent columns adds up, exactly: the largest ratios of all columns "
            "occur together.",
        )

    def sample(self, labels: IntArray, rng: Any = None) -> IntArray:
        """Release rows given as codes, as :meth:`JointMechanism.sample`.

        Raises
        ------
        InputError
            If a column's mechanism is not a finite channel.
        """
        finite = [column for column in self.columns if isinstance(column, FiniteMechanism)]
        if len(finite) < len(self.columns):
            raise InputError("Only columns with a finite channel can be released as codes.")
        codes = checked(labels, [len(column.channel.classes) for column in finite])
        drawn = [column.sample(codes[:, j], rng) for j, column in enumerate(finite)]
        return np.stack(drawn, axis=1)

    def declaration(self) -> Mapping[str, Any]:
        """Return ``mechanisms``: each column's, with its name."""
        stated = [{"name": c.name, **c.declaration()} for c in self.columns]
        return {"mechanisms": stated}


def _kronecker(first: FloatArray, second: FloatArray) -> FloatArray:
    return np.asarray(np.kron(first, second), dtype=np.float64)


def _sum(mechanisms: Sequence[Mechanism]) -> float | None:
    claimed = [one.epsilon for one in mechanisms if one.epsilon is not None]
    return math.fsum(claimed) if len(claimed) == len(mechanisms) else None
