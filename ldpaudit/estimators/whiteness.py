"""Noise is white: given the true label, what it did to a row goes with nothing there was before.

In: what noise did to each row, as 0 or 1, and what was there before, as orders and groups of rows.
Out: departures, each with a valid p-value and with where it was seen.

How a departure is found, and why its p-value is valid: sums show quickly where the noise of rows
goes together, and nothing is concluded from them. What they point to is bet on. Rows are taken one
by one, and the noise of each is guessed from the rows before it. If noise is white, the rows with
one true label have their outcomes in any order, so the chance of the next outcome is the share of
ones among the rows of that label still to come, whatever the guess was made of. A bet that is fair
by these chances gains nothing on average, so 1/wealth is a valid p-value for any number of rows
(Ville 1939; Shafer & Vovk 2019), with no approximation. It is multiplied by the number of
distances, stretches or groups among which the sums chose.
"""

import functools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from typing import Final, Literal

import numpy as np
import numpy.typing as npt
from scipy import fft

from ldpaudit.arrays import stable_order
from ldpaudit.release import FloatArray, IndexArray, IntArray

Family = Literal[
    "distance", "distances", "triples", "stretch", "blocks", "groups", "equal groups", "model"
]
Spectrum = npt.NDArray[np.complex128]
MIRRORED: Final = "mirrored rows"
_FAMILIES_OF_ORDERS: Final = 6

# How far a bet follows a guess, as a correlation.
_STAKES: Final = (0.015, 0.04, 0.1, 0.25, 0.6, 1.6)
_LARGEST_TILT: Final = 6.0
# What sums must show, in standard errors, before a bet is made.
_WORTH_A_BET: Final = 3.0
_FEWEST_PAIRS: Final = 50
# Distances that have half of the level: noise is most often shared with the row before.
_NEAR: Final = 3
_SHORTEST_STRETCH: Final = 32
_BLOCKS: Final = (4, 8, 10, 16, 20, 25, 32, 50, 64, 100, 128, 200, 250, 256, 500, 512, 1000)
_FEWEST_BLOCKS: Final = 8
# Of triples of rows, the longest distance, and the rows in sequence that are looked at.
_TRIPLES: Final = 400
_ROWS_OF_TRIPLES: Final = 1 << 13
_TRIPLES_TOGETHER: Final = 32
# The widest band of distances, and the longest stretch, as parts of the rows.
_WIDEST_BAND, _LONGEST_STRETCH = 8, 2
# Distances at which rows are alike in an order of outcomes, by so many standard errors.
_FAR: Final = range(24, 41)
_LEAST_ALIKE: Final = 6.0
# A guess is drawn towards nothing by so many rows.
_PRIOR_ROWS: Final = 1.0


def average(log_wealths: Sequence[float] | FloatArray) -> float:
    """Return the logarithm of the mean of several wealths."""
    logs = np.asarray(log_wealths, dtype=np.float64)
    return float(np.logaddexp.reduce(logs) - np.log(len(logs))) if len(logs) else 0.0


def p_value(log_wealth: float, tried: float = 1.0) -> float:
    """Return the valid p-value of a bet that was chosen among ``tried``, at most 1."""
    return float(min(1.0, tried * math.exp(-max(log_wealth, 0.0))))


@dataclass(frozen=True, eq=False)
class RowNoise:
    """What noise did to rows, in some order.

    Attributes
    ----------
    ones : float64 array of shape (n,)
        1 where noise changed the label (or raised it, or put it on one side), else 0.
    strata : int64 array of shape (n,)
        Codes from 0 of the rows among which outcomes are in any order if noise is white.
    chances : float64 array of shape (n,) or None
        The chance of 1 as a model says it; None: the share of ones in the stratum.
    claimed : float64 array of shape (n,) or None
        The chance of 1 under the claim: to what counts are held that may be too equal.
    labels : int64 array of shape (n,) or None
        Where given, a row is guessed only from rows with another label.
    """

    ones: FloatArray
    strata: IndexArray
    chances: FloatArray | None = None
    claimed: FloatArray | None = None
    labels: IndexArray | None = None

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.ones)

    def take(self, rows: IndexArray) -> "RowNoise":
        """Return the outcomes of some rows, in that order."""
        for before, taken in self._last:
            if before is rows:
                return taken
        # Most groupings are bet on in one order of all rows, or of a sample of them.
        self._last[:] = [(rows, self._taken(rows)), *self._last[:1]]
        return self._last[0][1]

    @cached_property
    def _last(self) -> list[tuple[IndexArray, "RowNoise"]]:
        return []

    def _taken(self, rows: IndexArray) -> "RowNoise":
        return RowNoise(
            self.ones[rows],
            self.strata[rows],
            None if self.chances is None else self.chances[rows],
            None if self.claimed is None else self.claimed[rows],
            None if self.labels is None else self.labels[rows],
        )

    @cached_property
    def spread(self) -> FloatArray:
        """The standard deviation of each row's outcome, float64 (n,)."""
        return np.sqrt(np.maximum(self._usual * (1 - self._usual), 0.0))

    @cached_property
    def residual(self) -> FloatArray:
        """RowNoise less what is usual, in standard deviations; 0 where noise has no choice."""
        open_ = self.spread > 1e-6
        return np.where(open_, (self.ones - self._usual) / np.where(open_, self.spread, 1.0), 0.0)

    @cached_property
    def _usual(self) -> FloatArray:
        if self.chances is not None:
            return self.chances
        sizes = np.maximum(np.bincount(self.strata), 1)
        return np.asarray((np.bincount(self.strata, self.ones) / sizes)[self.strata])

    @cached_property
    def _fair(self) -> FloatArray:
        """The share of ones among the rows of each row's stratum from that row on."""
        if self.chances is not None:
            return self.chances
        order = stable_order(self.strata)
        sizes = np.bincount(self.strata)
        ends = np.repeat(np.cumsum(sizes), sizes)
        totals = np.concatenate([[0.0], np.cumsum(self.ones[order])])
        fair = np.empty(len(order))
        fair[order] = (totals[ends] - totals[:-1]) / (ends - np.arange(len(order)))
        return fair

    @cached_property
    def entropy(self) -> float:
        """The entropy of all outcomes, in nats: what a bet could gain at most, about."""
        p = np.clip(self._usual, 1e-12, 1 - 1e-12)
        return float(-(p * np.log(p) + (1 - p) * np.log1p(-p)).sum())

    @property
    def offset(self) -> FloatArray:
        """By how much what is usual lies above what the claim expects of each outcome."""
        if self.claimed is None:
            return np.zeros(len(self))
        return np.where(self.spread > 1e-6, self._usual - self.claimed, 0.0)

    def bet(self, guesses: FloatArray) -> float:
        """Bet on each row in turn; the logarithm of the wealth at the end.

        ``guesses``, float64 (n,): of each residual, made of the rows before it; 0 is no bet.
        """
        used = (guesses != 0) & (self._fair > 0) & (self._fair < 1) & (self.spread > 1e-6)
        chance, ones = self._fair[used], self.ones[used]
        tilt_of_one = guesses[used] / self.spread[used]
        logs = []
        for stake in _STAKES:
            tilt = np.clip(stake * tilt_of_one, -_LARGEST_TILT, _LARGEST_TILT)
            logs.append(float((ones * tilt - np.log1p(chance * np.expm1(tilt))).sum()))
        return average(logs)


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


def in_order(outcomes: RowNoise, order: Order, share: float) -> Iterator[Departure]:
    """Yield what an order of the rows points to, each family with a quarter of a share.

    ``outcomes``: of all rows; ``share``: of the error probability. P-values are not yet known.
    """
    residual = outcomes.take(order.rows).residual
    spectrum, tried = _spectrum(residual), _FAMILIES_OF_ORDERS / share
    looks = [_stretches, _equal_blocks]
    # A generator's numbers are drawn in the order of the file, as a rule.
    looks += [] if order.columns else [_triples]
    others = chain.from_iterable(look(residual) for look in looks)
    for found in chain(_distances(residual, spectrum), others):
        yield replace(found, where=order, tried=found.tried * tried)
    for found in _mirrors(residual, spectrum, order, len(outcomes)):
        yield replace(found, tried=found.tried * tried)


_NOWHERE: Final = Order("", np.empty(0, dtype=np.int64))


def _distances(residual: FloatArray, spectrum: Spectrum) -> Iterator[Departure]:
    """Yield the distance, and the band of distances, at which rows go together most clearly."""
    n = len(residual)
    most = n - _FEWEST_PAIRS
    if most < 2:
        return
    clear = _autocorrelations(spectrum, n)[:most]
    pairs = n - np.arange(1.0, most + 1)
    sums = clear * np.sqrt(pairs)
    near = int(np.argmax(np.abs(clear[:_NEAR])))
    far = int(np.argmax(np.abs(clear)))
    for place, tried in {far: 4.0 * most, near: 4.0 * _NEAR}.items():
        if abs(clear[place]) >= _WORTH_A_BET:
            yield Departure(
                "distance", _NOWHERE, place + 1, place + 1, bool(clear[place] < 0), tried
            )
    totals = np.concatenate([[0.0], np.cumsum(sums)])
    every = np.concatenate([[0.0], np.cumsum(pairs)])
    bands = 0
    # Bands from the first distance on have half of the level: noise is shared near by, as a rule.
    near_by: list[_Band] = []
    others: list[_Band] = []
    width = 2
    while width <= n // _WIDEST_BAND:
        starts = np.arange(0, most - width + 1, width // 2)
        if not len(starts):
            break
        of_bands = totals[starts + width] - totals[starts]
        of_bands = of_bands / np.sqrt(every[starts + width] - every[starts])
        near_by.append((float(of_bands[0]), 1, width))
        if len(starts) > 1:
            at = 1 + int(np.argmax(np.abs(of_bands[1:])))
            others.append((float(of_bands[at]), int(starts[at]) + 1, int(starts[at]) + width))
        bands += len(starts) - 1
        width *= 2
    for found, tried in ((near_by, len(near_by)), (others, bands)):
        clearest, first, last = max(found, key=lambda band: abs(band[0]), default=_NO_BAND)
        if abs(clearest) >= _WORTH_A_BET:
            yield Departure("distances", _NOWHERE, first, last, clearest < 0, 4.0 * tried)


# How clearly rows go together, in standard errors, and from which to which distance.
_Band = tuple[float, int, int]
_NO_BAND: Final[_Band] = (0.0, 0, 0)


def autocorrelations(residual: FloatArray) -> FloatArray:
    """Return the autocorrelation at each distance from 1, in standard errors; float64 (n − 1,)."""
    return _autocorrelations(_spectrum(residual), len(residual))


def _spectrum(residual: FloatArray) -> Spectrum:
    """Return the transform of the residuals, as many zeros behind them."""
    return np.asarray(fft.rfft(residual, _padded(len(residual))))


def _padded(n: int) -> int:
    return int(fft.next_fast_len(2 * n, real=True))


def _autocorrelations(spectrum: Spectrum, n: int) -> FloatArray:
    sums = fft.irfft(np.abs(spectrum) ** 2, _padded(n))[1:n]
    return np.asarray(sums / np.sqrt(n - np.arange(1.0, n)))


def _triples(residual: FloatArray) -> Iterator[Departure]:
    """Yield the two distances at which rows before a row say most of its noise together.

    Shift registers are linear: each bit is the sum of a few before it, so the product of a few
    residuals has a mean. Every register of 16 bits has such triples within 400 rows, and one with
    two taps has them at its taps.
    """
    some = residual[:_ROWS_OF_TRIPLES]
    most = min(_TRIPLES, len(some) // 4)
    if most < 2:
        return
    clear, near, far = _clearest_triple(np.ascontiguousarray(some, dtype=np.float64).tobytes())
    tried = most * (most - 1) // 2
    if abs(clear) >= _surprising(tried):
        yield Departure("triples", _NOWHERE, near, far, clear < 0, float(tried))


# Several orders and views of one release often have the same residuals.
@functools.lru_cache(maxsize=128)
def _clearest_triple(residual: bytes) -> tuple[float, int, int]:
    """Return the sum that is furthest from 0, in standard errors, and its two distances."""
    some = np.frombuffer(residual, dtype=np.float64)
    n, most = len(some), min(_TRIPLES, len(some) // 4)
    # No sum goes further back than ``most`` rows, so fewer zeros behind the rows suffice.
    size = fft.next_fast_len(n + most, real=True)
    spectrum = np.conj(fft.rfft(some, size))
    best = (0.0, 0, 0)
    near = np.arange(1, most)
    for first in range(1, most, _TRIPLES_TOGETHER):
        between = np.arange(first, min(first + _TRIPLES_TOGETHER, most))
        # The row at t, and those ``near`` and ``near + between`` places before it.
        pairs = np.zeros((len(between), n))
        for row, distance in zip(pairs, between, strict=True):
            row[distance:] = some[distance:] * some[:-distance]
        sums = fft.irfft(np.conj(fft.rfft(pairs, size) * spectrum), size)[:, 1:most]
        further = near + between[:, None]
        clear = np.where(further <= most, sums / np.sqrt(np.maximum(n - further, 1)), 0.0)
        one, at = divmod(int(np.argmax(np.abs(clear))), len(near))
        if abs(clear[one, at]) > abs(best[0]):
            best = float(clear[one, at]), int(near[at]), int(further[one, at])
    return best


def _mirrors(residual: FloatArray, spectrum: Spectrum, order: Order, n: int) -> Iterator[Departure]:
    """Yield pairs of rows at equal distances from one place of an order, if they go together.

    As where noise is drawn once and written forwards and backwards. Half of the level is for the
    middle of the order. ``n``: the rows of the release.
    """
    size = len(residual)
    sums = fft.irfft(spectrum**2, _padded(size))[: 2 * size - 1]
    places = np.arange(2 * size - 1)
    pairs = np.minimum(places, 2 * size - 2 - places) // 2 + 0.5
    # Each pair is counted twice; a row in the middle is none.
    sums[::2] -= residual**2
    clear = np.where(pairs >= _FEWEST_PAIRS, sums / (2 * np.sqrt(pairs)), 0.0)
    for place, tried in ((int(np.argmax(np.abs(clear))), 4.0 * size), (size - 1, 2.0)):
        if abs(clear[place]) < _surprising(tried):
            continue
        ranks = np.arange(size)
        mirrored = place - ranks
        inside = (mirrored >= 0) & (mirrored < size)
        codes = np.arange(size, size + n)
        codes[order.rows] = np.where(inside, np.minimum(ranks, mirrored), codes[order.rows])
        codes = np.unique(codes, return_inverse=True)[1].astype(np.int64)
        where = Groups(MIRRORED, codes, order.columns, order.rows, order)
        yield Departure("groups", where, opposite=bool(clear[place] < 0), tried=tried)


def _surprising(tried: float) -> float:
    """Return how many standard errors chance seldom reaches among so many."""
    return max(_WORTH_A_BET, math.sqrt(2 * math.log(max(tried, 1.0))))


def _stretches(residual: FloatArray) -> Iterator[Departure]:
    """Yield the stretch of rows whose outcomes are least usual."""
    n, totals = len(residual), np.concatenate([[0.0], np.cumsum(residual)])
    best, tried, length = (0.0, 0, 0), 0, _SHORTEST_STRETCH
    while length <= n // _LONGEST_STRETCH:
        starts = np.arange(0, n - length + 1, length // 4)
        sums = (totals[starts + length] - totals[starts]) / math.sqrt(length * (1 - length / n))
        tried += len(starts)
        at = int(np.argmax(np.abs(sums)))
        if abs(sums[at]) > abs(best[0]):
            best = float(sums[at]), int(starts[at]), int(starts[at]) + length
        length = length * 3 // 2
    if abs(best[0]) >= _WORTH_A_BET:
        yield Departure("stretch", _NOWHERE, best[1], best[2], best[0] < 0, 2.0 * tried)


def _equal_blocks(residual: FloatArray) -> Iterator[Departure]:
    """Yield the size of the blocks, from the first row on, whose counts are most equal."""
    sizes = [size for size in _BLOCKS if size * _FEWEST_BLOCKS <= len(residual)]
    best = (0.0, 0)
    for size in sizes:
        count = len(residual) // size
        sums = residual[: count * size].reshape(count, size).sum(axis=1)
        best = min(best, (_too_equal(float((sums**2).sum()) / size, count), size))
    if best[0] <= -_WORTH_A_BET:
        yield Departure("blocks", _NOWHERE, best[1], tried=float(len(sizes)))


def _too_equal(squares: float, groups: int) -> float:
    """Return how much a χ² lies below its mean, about in standard errors (Wilson & Hilferty)."""
    cube = float(np.cbrt(max(squares, 0.0) / groups))
    return (cube - (1 - 2 / (9 * groups))) / math.sqrt(2 / (9 * groups))


def in_groups(outcomes: RowNoise, groups: Groups, share: float) -> Iterator[Departure]:
    """Yield what a grouping of the rows points to; each of two families has half of a share."""
    codes = groups.codes
    if groups.sampled:
        outcomes, codes = outcomes.take(groups.rows), codes[groups.rows]
    residual, sizes = outcomes.residual, np.bincount(codes)
    sums, squares = np.bincount(codes, residual), np.bincount(codes, residual**2)
    several = sizes > 1
    if int(several.sum()) < 2:
        return
    pairs = np.maximum((sizes * (sizes - 1.0))[several], 1.0)
    together = float((sums**2 - squares)[several].sum()) / math.sqrt(2 * float(pairs.sum()))
    # Groups of unequal sizes: each counts alike, too.
    each = float(((sums**2 - squares)[several] / np.sqrt(2 * pairs)).sum()) / math.sqrt(len(pairs))
    strongest = max(together, each, key=abs)
    if abs(strongest) >= _WORTH_A_BET:
        yield Departure("groups", groups, opposite=strongest < 0, tried=4 / share)
    large = sizes >= 4
    if int(large.sum()) >= 4:
        chi2 = float((sums[large] ** 2 / sizes[large]).sum())
        if _too_equal(chi2, int(large.sum())) <= -_WORTH_A_BET:
            yield Departure("equal groups", groups, tried=2 / share)


def white(
    outcomes: RowNoise, orders: Sequence[Order], groups: Sequence[Groups], share: float = 1.0
) -> list[Departure]:
    """Test whether noise is white; return the departures on which bets gained.

    Parameters
    ----------
    outcomes : RowNoise
        What noise did, n rows.
    orders : sequence of Order
        The first, the file's, has half of the error probability, and the others a quarter.
    groups : sequence of Groups
        They have the last quarter.
    share : float
        Of the error probability, that of all tests together.

    Returns
    -------
    list of Departure
        The p-value of each is valid for all of them at once.
    """
    proposed: list[Departure] = []
    for place, order in enumerate(orders):
        own = 0.5 if place == 0 else 0.25 / (len(orders) - 1)
        proposed += in_order(outcomes, order, own * share)
    for grouping in groups:
        proposed += in_groups(outcomes, grouping, 0.25 / len(groups) * share)
    found = [replace(one, log_wealth=one.bet(outcomes)) for one in proposed]
    return [one for one in found if one.p_value < 1]


def is_in_an_order(outcomes: RowNoise) -> bool:
    """Return whether rows are in an order of their outcomes, as where a file was sorted by them.

    Rows far apart are alike then; rows that share random numbers are so at a few distances.
    """
    residual = outcomes.residual
    distances = [far for far in _FAR if far < len(residual)]
    together = sum(float(residual[far:] @ residual[:-far]) for far in distances)
    pairs = sum(len(residual) - far for far in distances)
    return together >= _LEAST_ALIKE * math.sqrt(max(pairs, 1))


def ranks_within(codes: IndexArray) -> IndexArray:
    """Return which row of its code each row is, int64 (n,), from 0."""
    order = stable_order(codes)
    sizes = np.bincount(codes)
    ranks = np.empty(len(codes), dtype=np.int64)
    ranks[order] = np.arange(len(codes)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return ranks
