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
from dataclasses import replace
from itertools import chain
from typing import Final

import numpy as np
import numpy.typing as npt
from scipy import fft

from ldpaudit.estimators.departures import Departure, Groups, Order
from ldpaudit.estimators.row_noise import RowNoise
from ldpaudit.release import FloatArray

Spectrum = npt.NDArray[np.complex128]
MIRRORED: Final = "mirrored rows"
_FAMILIES_OF_ORDERS: Final = 6
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


def in_order(outcomes: RowNoise, order: Order, share: float) -> Iterator[Departure]:
    """Yield what an order of the rows points to, each family with a sixth of a share.

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
        yield Departure("triples", _NOWHERE, near, far, clear < 0, 2.0 * tried)


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
    middle of the order; both signs count. ``n``: the rows of the release.
    """
    size = len(residual)
    sums = fft.irfft(spectrum**2, _padded(size))[: 2 * size - 1]
    places = np.arange(2 * size - 1)
    pairs = np.minimum(places, 2 * size - 2 - places) // 2 + 0.5
    # Each pair is counted twice; a row in the middle is none.
    sums[::2] -= residual**2
    clear = np.where(pairs >= _FEWEST_PAIRS, sums / (2 * np.sqrt(pairs)), 0.0)
    for place, tried in ((int(np.argmax(np.abs(clear))), 8.0 * size), (size - 1, 4.0)):
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
