"""Noise that follows the rows' numbers: labels that are replaced in turn, or block by block.

In: what noise did given the true label, and given the released one. Out: a valid p-value.

A file may be put in an order by its released labels after the noise, which reveals nothing: then
the released label goes with the row's place, and the true one, given the released one, does not.
So two bets are made. The first: given the true label, noise goes with the place. The second: given
the released label, whether noise made it goes with how well that label fits its place. What is made
of released labels and places alone is a fair guess there. The larger p-value counts.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Final

import numpy as np

from ldpaudit.estimators.departures import Departure, Groups
from ldpaudit.estimators.row_noise import RowNoise, average, p_value
from ldpaudit.release import FloatArray, IndexArray

# The periods, and the equal parts of the file, that are tried; each place has so many rows.
_PERIODS: Final = range(2, 65)
_PARTS: Final = range(2, 33)
_FEWEST_ROWS: Final = 20
# What sums must show, in standard errors, before a bet is made.
_WORTH_A_BET: Final = 3.0
# Rows from the first on: more show the same.
_MOST_ROWS: Final = 1 << 17
# Up to this p-value it is asked what else explains a pattern.
_ASKED_AGAIN: Final = 0.05
# A share among the rows of a place is drawn towards that among all by so many rows.
_PRIOR_ROWS: Final = 4.0
_LARGEST_SCORE: Final = 3.0


def pattern_p_value(
    pairs: Sequence[tuple[RowNoise, RowNoise]],
    rng: np.random.Generator,
    numbers: IndexArray | None = None,
    explained: Callable[[int], RowNoise] | None = None,
    times: float = 1.0,
) -> float:
    """Return the p-value of "noise does not follow the row's number", valid for all that is tried.

    Parameters
    ----------
    pairs : sequence of pairs of RowNoise
        What noise did, n rows in the order of the file, with the true label's strata; and the same
        with those of the released label.
    rng : numpy.random.Generator
        Puts rows in the random order in which bets take them.
    numbers : int64 array of shape (n,) or None
        The row of the file that each is, in order, of a sample of the rows.
    explained : callable
        Returns what noise did in the pair at a place, as the features and the released label
        explain it; asked where both bets gain, as rows may have been put in an order by both.
    times : float
        How often a row may stand in the table: copies win together what one row wins.
    """
    smallest, counts = 1.0, 1.0 if times <= 1 else 0.5 / times
    for place, (given_truth, given_released) in enumerate(pairs):
        n = min(len(given_truth), _MOST_ROWS)
        first = np.arange(n)
        outcomes, released = given_truth.take(first), given_released.take(first)
        every = list(_places(first if numbers is None else numbers[:n]))
        if not every:
            continue
        sums = [_together(outcomes.residual, codes) for codes in every]
        best = int(np.argmax(sums))
        if sums[best] < _WORTH_A_BET:
            continue
        tried = float(len(every) * len(pairs))
        order = rng.permutation(n)
        groups = Groups("place", every[best], (), order)
        goes_with_place = Departure("groups", groups).bet(outcomes)
        fits = _fit(released.strata, every[best])[order]
        made = _bet(released.take(order), fits)
        found = p_value(counts * min(goes_with_place, made), tried)
        if found <= _ASKED_AGAIN and explained is not None:
            left = _bet(explained(place).take(first).take(order), fits)
            found = max(found, p_value(counts * left, tried))
        smallest = min(smallest, found)
    return smallest


def _bet(outcomes: RowNoise, fits: FloatArray) -> float:
    """Return the logarithm of the wealth of bets that noise goes with the fit, one way or other."""
    return average([outcomes.bet(fits), outcomes.bet(-fits)])


def _places(numbers: IndexArray) -> Iterator[IndexArray]:
    """Yield the codes of rows by their number's remainder, and by the part of the file."""
    n = len(numbers)
    for period in _PERIODS:
        if n >= period * _FEWEST_ROWS:
            yield numbers % period
    for parts in _PARTS:
        if n >= parts * _FEWEST_ROWS:
            yield np.arange(n) * parts // n


def _together(residual: FloatArray, codes: IndexArray) -> float:
    """Return how clearly rows of one place go together, in standard errors."""
    sizes = np.bincount(codes).astype(np.float64)
    sums, squares = np.bincount(codes, residual), np.bincount(codes, residual**2)
    pairs = float((sizes * (sizes - 1)).sum())
    return float((sums**2 - squares).sum()) / math.sqrt(2 * max(pairs, 1.0))


def _fit(released: IndexArray, codes: IndexArray) -> FloatArray:
    """Return how well each released label fits its place, in standard deviations of the label.

    The logarithm of its share among the rows of that place over its share among all.
    """
    labels, places = int(released.max()) + 1, int(codes.max()) + 1
    cells = codes * labels + released
    counts = np.bincount(cells, minlength=places * labels).reshape(places, labels)
    shares = counts.sum(axis=0) / len(released)
    sizes = counts.sum(axis=1, keepdims=True)
    smoothed = (counts + _PRIOR_ROWS * shares) / (sizes + _PRIOR_ROWS)
    scores = np.log(np.maximum(smoothed, 1e-12) / np.maximum(shares, 1e-12))[codes, released]
    rows = np.maximum(np.bincount(released, minlength=labels), 1)
    means = np.bincount(released, scores, minlength=labels) / rows
    centred = scores - means[released]
    spread = np.sqrt(np.bincount(released, centred**2, minlength=labels) / rows)[released]
    standard = np.where(spread > 1e-9, centred / np.where(spread > 1e-9, spread, 1.0), 0.0)
    return np.asarray(np.clip(standard, -_LARGEST_SCORE, _LARGEST_SCORE))
