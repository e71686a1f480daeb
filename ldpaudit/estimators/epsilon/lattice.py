"""Numbers that are read off: the true one, its remainder, or its part in the last digits."""

# Coarse bins of a released number hide this. Noise in steps of two keeps the parity of the number;
# noise from a generator with few states has digits by which it is recognised; a branch releases
# some numbers as they are; digits finer than the noise carry what they like. All are read off the
# released number, which is post-processing: a bound of ε from it holds whatever was done to the
# released numbers.

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import numpy.typing as npt

from ldpaudit.arrays import FloatArray, IndexArray
from ldpaudit.error_budget import ONE_HALF
from ldpaudit.estimators.epsilon.bounds import EpsilonBound
from ldpaudit.estimators.epsilon.strongest import BoundEvidence, epsilon_evidence
from ldpaudit.estimators.intervals.binomial import clopper_pearson_lower, clopper_pearson_upper
from ldpaudit.release import label_table

_MODULI: Final = range(2, 11)
_CLASSES: Final = 8
"""Remainders of a guessed number that are told apart, and parts of its range."""
_MOST_ROWS_COUNTED: Final = 200_000
_PRECISION: Final = 2.0**-21
"""The distance of two numbers of single precision that are the same, as a share of the largest."""
_RARELY_EQUAL: Final = 6
"""A number that at most one row in so many has is counted with others."""
_RARE_ROWS: Final = 4
"""One row in so many at least has such a number."""
_MOST_COMMON: Final = 2
"""Of more common numbers so many are looked at, each by itself."""
_COARSEST, _FINEST = 64, 1e-9
"""Remainders are looked at by this part of the range at most, and this share of it at least."""


_CHOSEN_AT: Final = 0.05
"""The error at which bounds are compared on the rows that choose between them."""
_SURE: Final = (0.0, 0.25, 0.5, 0.75)
"""The least share of a digit's rows that its likeliest noise may have for it to point to one."""

SAME_NUMBERS: Final = "same numbers"
"""The method of a bound from numbers that are true ones."""
DIGITS: Final = "digits"
"""The method of a bound from numbers to which the digits of released ones point."""
ROUNDED_NUMBERS: Final = "rounded numbers"
"""The method of a bound from numbers that are true ones, rounded."""


@dataclass(frozen=True)
class SameNumbers:
    """How many rows have a released number that is a true one: their own, or another row's.

    Of a mechanism with ε, whatever it is, P(M(y) = y) ≤ e^ε P(M(z) = y) for all labels y and z. So
    its own number stands in a row at most e^ε times as often as that of a random row with another.
    Which numbers are looked at, true ones decide.
    """

    own: int
    """Rows with such a number that stands in the release."""
    having: int
    """Rows with such a number."""
    others: int
    """Rows in whose place such a number stands that is not their own."""
    asked: int
    """The rows of which that was counted."""
    scale: float
    """What the share of these is multiplied by to be that of one number of a row at random."""
    method: str = SAME_NUMBERS
    """The method of the bound."""

    def bound(self, alpha: float) -> EpsilonBound:
        """Return the lower bound of ε at level 1 − alpha, in nats.

        Rows are independent, but not alike: Hoeffding (1956), Theorem 5.
        """
        own = float(clopper_pearson_lower(self.own, self.having, alpha * ONE_HALF))
        often = float(clopper_pearson_upper(self.others, self.asked, alpha * ONE_HALF))
        by_chance = min(1.0, often * self.scale)
        epsilon = max(0.0, float(np.log(own / by_chance))) if own > 0 else 0.0
        return EpsilonBound(epsilon, alpha, self.asked, self.method)


@dataclass(frozen=True, eq=False)
class LatticeEvidence:
    """What released numbers say about the true ones in themselves, not by their size."""

    bounds: BoundEvidence | None
    """From remainders, chosen on one half of the rows and counted on the other."""
    same: tuple[SameNumbers, ...]
    """Of numbers that few people have, of each that many have, and of rounded ones."""
    step: float | None
    """Between neighbouring labels; None where labels lie on no grid."""
    modulus: int | None
    """The divisor, in steps, whose remainder was counted; None where released numbers lie between
    labels and the noise is recognised by its digits."""
    right: float
    """The share of the counted rows whose true remainder is read off."""

    def bound(self, alpha: float) -> EpsilonBound:
        """Return the largest bound of ε at level 1 − alpha, in nats; each has an equal share."""
        parts = [part for part in (self.bounds, *self.same) if part is not None]
        found = [part.bound(alpha / len(parts)) for part in parts]
        best = max(found, key=lambda bound: bound.epsilon)
        return EpsilonBound(best.epsilon, alpha, best.n, best.method)


def lattice_evidence(
    truth: FloatArray,
    released: FloatArray,
    rng: np.random.Generator,
    label_bounds: tuple[float, float] | None = None,
) -> LatticeEvidence | None:
    """Count what at most 200,000 rows say, of which one half chooses what is counted on the other.

    Parameters
    ----------
    truth, released : float64 arrays of shape (n,)
    label_bounds : tuple of float, optional
        The declared lowest and highest label; without them those that occur.

    Returns
    -------
    LatticeEvidence or None
        None where there are fewer than 100 rows, or nothing can be counted.
    """
    if len(truth) < 100:
        return None
    rows = rng.permutation(len(truth))[:_MOST_ROWS_COUNTED]
    truth, released = truth[rows], released[rows]
    half = len(rows) // 2
    learn, test = np.arange(half), np.arange(half, len(rows))
    same = (*_same_numbers(truth, released), *_rounded_numbers(truth, released, learn, test))
    values = np.unique(truth)
    step = float(np.diff(values).min(initial=np.inf))
    steps, places = (truth - values[0]) / step, (released - values[0]) / step
    if not 0 < np.ptp(steps) < 1e9 or not _whole(steps).all():
        low, high = label_bounds or (float(values[0]), float(values[-1]))
        counts = None
        if high > low:
            distances = list(_distances(high - low))
            counts = _of_fine_remainders(truth, released - low, distances, learn, test)
        bounds = None if counts is None else epsilon_evidence(counts, None, rng)
        if bounds is None and not same:
            return None
        return LatticeEvidence(bounds, same, None, None, 0.0)
    labels = np.rint(steps).astype(np.int64)
    modulus = None
    if _whole(places).mean() >= 0.99:
        outputs = np.rint(places).astype(np.int64)
        found = [_dependence(labels[learn] % q, outputs[learn] % q, q) for q in _MODULI]
        # Twice the period shows as much: the smallest is named.
        modulus = next(q for q, one in zip(_MODULI, found, strict=True) if one >= 0.5 * max(found))
        counts = label_table(labels[test] % modulus, outputs[test] % modulus, modulus, modulus)
    else:
        guess, sure = _by_digits(labels, places, learn, test)
        outputs = np.where(sure, guess % _CLASSES, _CLASSES)
        counts = label_table(labels[test] % _CLASSES, outputs, _CLASSES, _CLASSES + 1)
        told = _same_numbers(labels[test].astype(np.float64), np.where(sure, guess, np.nan))
        same += tuple(replace(one, method=DIGITS) for one in told[:1])
    bounds = epsilon_evidence(counts, None, rng)
    if bounds is None and not same:
        return None
    right = float(np.trace(counts)) / len(test)
    return LatticeEvidence(bounds, same, step, modulus, right)


def _same_numbers(truth: FloatArray, released: FloatArray) -> tuple[SameNumbers, ...]:
    """Count released numbers that are true ones: rare ones together, and the commonest."""
    unit = max(float(np.abs(truth).max()) * _PRECISION, 1e-300)
    true, seen, n = np.rint(truth / unit), np.rint(released / unit), len(truth)
    values, place, counts = np.unique(true, return_inverse=True, return_counts=True)
    if len(values) < 2:
        return ()
    same, found = true == seen, []
    # So many rows at most have a rare number: the choice by which chance explains least.
    sizes, rows = np.unique(counts[place], return_counts=True)
    fits = (np.cumsum(rows) * _RARE_ROWS >= n) & (sizes * _RARELY_EQUAL <= n)
    if fits.any():
        most = int(sizes[np.where(fits, sizes / np.cumsum(rows), np.inf).argmin()])
        rare = counts[place] <= most
        few = values[counts <= most]
        at = np.minimum(np.searchsorted(few, seen), len(few) - 1)
        others, having = int(((few[at] == seen) & ~same).sum()), int(rare.sum())
        # The mean over all pairs of a row with a rare number and a row with another number.
        scale = most * n / (having * (n - most))
        found.append(SameNumbers(int((same & rare).sum()), having, others, n, scale))
    commonest = np.argsort(-counts, kind="stable")[:_MOST_COMMON]
    for value, size in zip(values[commonest], counts[commonest], strict=True):
        if size * _RARELY_EQUAL > n:
            mine, kept = true == value, seen == value
            own, theirs = int((kept & mine).sum()), int((kept & ~mine).sum())
            found.append(SameNumbers(own, int(size), theirs, n - int(size), 1.0))
    return tuple(found)


def _rounded_numbers(
    truth: FloatArray, released: FloatArray, learn: IndexArray, test: IndexArray
) -> tuple[SameNumbers, ...]:
    """Count released numbers that are true ones, rounded; how, the first half shows."""
    # A rounded true number is a function of it: the same bound holds. Whether anything is returned,
    # true numbers decide, so that the error is divided in the same way whatever is released.
    found = list[tuple[float, SameNumbers]]()
    for unit in _units(truth):
        for rounded in (np.rint(truth / unit) * unit, np.floor(truth / unit) * unit):
            chosen, counted = (_same_numbers(rounded[h], released[h])[:1] for h in (learn, test))
            if chosen and counted:
                found.append((chosen[0].bound(_CHOSEN_AT).epsilon, counted[0]))
    if not found:
        return ()
    return (replace(max(found, key=lambda one: one[0])[1], method=ROUNDED_NUMBERS),)


def _units(numbers: FloatArray) -> Iterator[float]:
    """Yield the powers of ten by which numbers may be rounded to several, but fewer, values."""
    width = float(np.ptp(numbers))
    values = len(np.unique(numbers))
    unit = 10.0 ** math.floor(math.log10(width / _CLASSES)) if width > 0 else 0.0
    while unit > 0 and len(np.unique(np.rint(numbers / unit))) < values:
        yield unit
        unit = unit / 10 if unit > _FINEST * width else 0.0


def _of_fine_remainders(
    truth: FloatArray,
    released: FloatArray,
    distances: Sequence[float],
    learn: IndexArray,
    test: IndexArray,
) -> IndexArray:
    """Return the counted rows by part of the range and by a remainder, shape (8, 8)."""
    # By which distance released numbers are divided, the first half shows.
    edges = np.quantile(truth[learn], np.linspace(0, 1, _CLASSES + 1)[1:-1])
    parts = np.searchsorted(edges, truth, side="right")

    def remainder(distance: float) -> IndexArray:
        place = released / distance
        inside: IndexArray = np.floor((place - np.floor(place)) * _CLASSES).astype(np.int64)
        return np.asarray(np.minimum(inside, _CLASSES - 1))

    strongest = max(
        distances,
        key=lambda one: _dependence(parts[learn], remainder(one)[learn], _CLASSES),
    )
    return label_table(parts[test], remainder(strongest)[test], _CLASSES, _CLASSES)


def _distances(width: float) -> Iterator[float]:
    """Yield distances, of which there are many in a range: its parts, powers of 2 and of 10."""
    for first, ratio in (
        (width / _COARSEST, 2),
        (2.0 ** math.floor(math.log2(width / _COARSEST)), 2),
        (10.0 ** math.floor(math.log10(width / _COARSEST)), 10),
    ):
        distance = first
        while distance >= _FINEST * width:
            yield distance
            distance /= ratio


def _whole(numbers: FloatArray) -> npt.NDArray[np.bool_]:
    return np.asarray(np.abs(numbers - np.rint(numbers)) <= 1e-6)


def _dependence(labels: IndexArray, outputs: IndexArray, q: int) -> float:
    """Return how far remainders go together beyond chance: χ² less its degrees of freedom."""
    table = label_table(labels, outputs, q, q)
    expected = np.outer(table.sum(axis=1), table.sum(axis=0)) / table.sum()
    squares = ((table - expected) ** 2 / np.maximum(expected, 1e-9)).sum()
    return max(float(squares) - (q - 1) ** 2, 0.0) / (q - 1)


def _by_digits(
    labels: IndexArray, places: FloatArray, learn: IndexArray, test: IndexArray
) -> tuple[IndexArray, npt.NDArray[np.bool_]]:
    """Return the label to which the digits of each tested number point, and whether they do."""
    # Digits that were not seen on other rows, or with noise of many sizes, point to none.
    below = np.floor(places)
    digits = np.rint((places - below) * 1e9).astype(np.int64)
    noise = below.astype(np.int64) - labels
    pairs, counts = np.unique(
        np.stack([digits[learn], noise[learn]], 1), axis=0, return_counts=True
    )
    order = np.lexsort((-counts, pairs[:, 0]))
    known, first = np.unique(pairs[order, 0], return_index=True)
    place = np.minimum(np.searchsorted(known, digits[test]), len(known) - 1)
    guess = below[test].astype(np.int64) - pairs[order][first[place], 1]
    sure = _sure(counts[order][first], np.add.reduceat(counts[order], first))
    return guess, (known[place] == digits[test]) & sure[place]


def _sure(likeliest: IndexArray, every: IndexArray) -> npt.NDArray[np.bool_]:
    """Return which digits point to a noise: those that together say most of the label.

    ``likeliest``, ``every``: how many rows have the likeliest noise of each digit, and any.
    """
    # The row that is guessed is not one of those that tell the noise of its digits; of wrong
    # guesses each remainder has an equal part.
    right, others = np.maximum(likeliest - 1, 0), np.maximum(every - 1, 1)
    share = right / others

    def worth(least: float) -> float:
        chosen = share >= least
        hits = float(right[chosen].sum())
        misses = float((every - 1 - right)[chosen].sum()) / _CLASSES
        return math.log((max(hits - 2 * math.sqrt(hits), 0.0) + misses + 1) / (misses + 3))

    return np.asarray(share >= max(_SURE, key=worth))


def repeated_numbers(released: FloatArray) -> int:
    """Return how many rows have a number, of more than six decimals, that another row has too.

    Continuous noise repeats no number. Rounded ones are not counted, and in single precision not
    those that are equal by chance.
    """
    if not len(released):
        return 0
    values, counts = np.unique(released, return_counts=True)
    scale = max(float(np.ptp(values)), 1e-300)
    fine = ~_whole(values * 1e6) if scale > 1 else ~_whole(values / scale * 1e6)
    repeated = int(counts[fine & (counts > 1)].sum())
    with np.errstate(over="ignore"):
        single = np.array_equal(values, values.astype(np.float32))
    return max(repeated - _equal_by_chance(values, counts), 0) if single else repeated


def _equal_by_chance(values: FloatArray, counts: IndexArray) -> int:
    """Return how many rows have another's number because single precision has no others there."""
    # By how many rows there are between the hundredth value below and the hundredth above.
    first = np.maximum(np.arange(len(values)) - 100, 0)
    last = np.minimum(np.arange(len(values)) + 100, len(values) - 1)
    before = np.concatenate([[0], np.cumsum(counts)])
    width = np.maximum(values[last] - values[first], 1e-300)
    near = (before[last + 1] - before[first]) / width
    spacing = np.spacing(np.abs(values).astype(np.float32)).astype(np.float64)
    return math.ceil(float(counts @ -np.expm1(-near * spacing)))
