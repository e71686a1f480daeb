"""Where the noise of rows may go together, and what that lets one guess of each row.

In: an order or groups of rows. Out: a guess of each row's noise from the rows before it.
"""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Final, Literal

import numpy as np

from ldpaudit.arrays import stable_order
from ldpaudit.estimators.row_noise import RowNoise, average, p_value
from ldpaudit.release import FloatArray, IndexArray, IntArray

Family = Literal[
    "distance", "distances", "triples", "stretch", "blocks", "groups", "equal groups", "model"
]
# A guess is drawn towards nothing by so many rows.
_PRIOR_ROWS: Final = 1.0


@dataclass(frozen=True, eq=False)
class Order:
    """An order of the rows that was there before the noise.

    ``name``: in words; ``rows``, int64 (s,): the rows in it; ``columns``: the array columns of
    which it is made, none for the file's own.
    """

    name: str
    rows: IndexArray
    columns: tuple[int, ...] = ()


@dataclass(frozen=True, eq=False)
class Groups:
    """A grouping of the rows that was there before the noise.

    ``name``: in words; ``codes``, int32 or int64 (n,): from 0; ``columns``: the array columns of
    which it is made; ``rows``, int64 (s,): a random order of all rows, or of a sample of them, in
    which bets take them (codes of other rows say nothing then); ``order``: the order of mirrored
    rows.
    """

    name: str
    codes: IntArray | IndexArray
    columns: tuple[int, ...]
    rows: IndexArray
    order: Order | None = None

    @property
    def every(self) -> IndexArray:
        """The codes, int64 (n,)."""
        return self.codes.astype(np.int64, copy=False)

    @property
    def sampled(self) -> bool:
        """Whether its codes are those of a sample of rows, all of groups with many rows."""
        return self.order is None and len(self.rows) < len(self.codes)

    @cached_property
    def small(self) -> bool:
        """Whether its groups have few rows each, as a person or a household has."""
        if self.sampled:
            return False
        sizes = np.bincount(self.codes)
        several = sizes[sizes > 1]
        return len(several) > 0 and float(np.median(several)) <= 30


@dataclass(frozen=True, eq=False)
class Departure:
    """Where rows go together, as sums show it, and what a bet on that gained.

    Attributes
    ----------
    family : str
        "distance", "distances": rows a distance, or a range of distances, apart in an order go
        together; "stretch": rows in sequence have other noise; "blocks", "equal groups": their
        counts are too equal; "groups": rows of one group go together; "model": a model of several
        columns foresees noise.
    where : Order or Groups
    first, last : int
        The distances; where a stretch starts and stops; the size of blocks.
    opposite : bool
        Whether noise of one row is the opposite of another's, not the same.
    tried : float
        By what its p-value is multiplied.
    log_wealth : float
    """

    family: Family
    where: Order | Groups
    first: int = 0
    last: int = 0
    opposite: bool = False
    tried: float = 1.0
    log_wealth: float = 0.0

    @property
    def p_value(self) -> float:
        """Valid for all tests at once."""
        return p_value(self.log_wealth, self.tried)

    @property
    def columns(self) -> tuple[int, ...]:
        """The array columns that it rests on."""
        return self.where.columns

    def bet(self, outcomes: RowNoise, *, both_signs: bool = False) -> float:
        """Bet on the outcomes of all rows of the release; the logarithm of the wealth.

        ``both_signs``: also that they go together the other way round.
        """
        rows = self.where.rows
        if self.family == "stretch":
            # Its rows first: chances are of rows to come, and a stretch may end with the file.
            rows = np.r_[rows[self.first :], rows[: self.first]]
        ordered = outcomes.take(rows)
        guesses = self._guesses(ordered)
        if both_signs:
            return average([ordered.bet(guesses), ordered.bet(-guesses)])
        return ordered.bet(-guesses if self.opposite else guesses)

    def _guesses(self, outcomes: RowNoise) -> FloatArray:
        if self.family in ("distance", "distances"):
            return _from_distances(outcomes, self.first, self.last)
        if self.family == "triples":
            return _from_two(outcomes, self.first, self.last)
        if self.family == "stretch":
            return (np.arange(len(outcomes)) < self.last - self.first).astype(np.float64)
        if self.family == "blocks":
            return _towards_equal(outcomes, np.arange(len(outcomes)) // self.first)
        assert isinstance(self.where, Groups)
        codes = self.where.codes[self.where.rows].astype(np.int64, copy=False)
        guess = _towards_equal if self.family == "equal groups" else _like_before
        return guess(outcomes, codes)


def _from_distances(outcomes: RowNoise, first: int, last: int) -> FloatArray:
    """Guess each residual from those of the rows ``first`` to ``last`` places before."""

    def sums(values: FloatArray) -> FloatArray:
        n, total = len(values), np.concatenate([[0.0], np.cumsum(values)])
        places = np.arange(n)
        ends = np.clip(places - first + 1, 0, n)
        return np.asarray(total[ends] - total[np.clip(places - last, 0, n)])

    every = sums(outcomes.residual)
    if outcomes.labels is not None:
        for label in np.unique(outcomes.labels):
            own = outcomes.labels == label
            every[own] -= sums(np.where(own, outcomes.residual, 0.0))[own]
    return every / math.sqrt(last - first + 1)


def _from_two(outcomes: RowNoise, near: int, far: int) -> FloatArray:
    """Guess each residual from the product of those ``near`` and ``far`` places before."""
    guesses = np.zeros(len(outcomes))
    one, other = slice(far - near, -near), slice(0, -far)
    guesses[far:] = outcomes.residual[one] * outcomes.residual[other]
    labels = outcomes.labels
    if labels is not None:
        guesses[far:] *= (labels[one] != labels[far:]) & (labels[other] != labels[far:])
    return guesses


def _like_before(outcomes: RowNoise, codes: IndexArray) -> FloatArray:
    """Guess each residual from the mean of its group's so far."""

    def so_far(groups: IndexArray, values: FloatArray) -> FloatArray:
        order = stable_order(groups)
        sizes = np.bincount(groups)
        starts = np.repeat(np.cumsum(sizes) - sizes, sizes)
        totals = np.concatenate([[0.0], np.cumsum(values[order])])
        found = np.empty(len(groups))
        found[order] = totals[:-1] - totals[starts]
        return found

    sums, rows = so_far(codes, outcomes.residual), so_far(codes, np.ones(len(codes)))
    if outcomes.labels is not None:
        same = codes * (int(outcomes.labels.max()) + 1) + outcomes.labels
        same = np.unique(same, return_inverse=True)[1]
        sums = sums - so_far(same, outcomes.residual)
        rows = rows - so_far(same, np.ones(len(codes)))
    sums[np.abs(sums) < 1e-9] = 0.0
    return sums / (rows + _PRIOR_ROWS)


def _towards_equal(outcomes: RowNoise, codes: IndexArray) -> FloatArray:
    """Guess that a group's residuals add up to nothing in the end."""
    order = stable_order(codes)
    sizes = np.bincount(codes)
    starts = np.repeat(np.cumsum(sizes) - sizes, sizes)
    totals = np.concatenate([[0.0], np.cumsum((outcomes.residual * outcomes.spread)[order])])
    # What is expected of the whole group is known beforehand.
    seen = totals[:-1] - totals[starts] + np.bincount(codes, outcomes.offset)[codes[order]]
    left = starts + np.repeat(sizes, sizes) - np.arange(len(codes))
    guesses = np.empty(len(codes))
    # A stake of .6 then bets nearly as if the sum were sure to be 0.
    guesses[order] = -seen / (0.6 * (left + 0.5))
    return guesses / np.maximum(outcomes.spread, 1e-6)


def ranks_within(codes: IndexArray) -> IndexArray:
    """Return which row of its code each row is, int64 (n,), from 0."""
    order = stable_order(codes)
    sizes = np.bincount(codes)
    ranks = np.empty(len(codes), dtype=np.int64)
    ranks[order] = np.arange(len(codes)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return ranks
