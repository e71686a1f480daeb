"""Noise that shows what it is: numbers whose last digits or remainder come through unchanged."""

# Coarse bins of a released number hide this. Noise in steps of two keeps the parity of the number;
# noise from a generator with few states has digits by which it is recognised. Both are read off the
# remainder of the released number, which is post-processing: a bound of ε from it holds whatever
# was done to the released numbers.

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from ldpaudit.arrays import FloatArray, IndexArray
from ldpaudit.estimators.epsilon.strongest import BoundEvidence, epsilon_evidence
from ldpaudit.release import label_table

_MODULI: Final = range(2, 11)
_CLASSES: Final = 8  # remainders of a guessed number that are told apart
_MOST_ROWS_COUNTED: Final = 200_000


@dataclass(frozen=True, eq=False)
class LatticeEvidence:
    """What remainders of released numbers say about the true ones, counted on half of the rows."""

    bounds: BoundEvidence
    step: float
    """Between neighbouring labels."""
    modulus: int | None
    """The divisor, in steps, whose remainder was counted; None where released numbers lie between
    labels and the noise is recognised by its digits."""
    right: float
    """The share of the counted rows whose true remainder is read off."""


def lattice_evidence(
    truth: FloatArray, released: FloatArray, rng: np.random.Generator
) -> LatticeEvidence | None:
    """Count what remainders of numbers say, chosen on the other half of at most 200,000 rows.

    Parameters
    ----------
    truth, released : float64 arrays of shape (n,)

    Returns
    -------
    LatticeEvidence or None
        None where the true numbers lie on no grid, or there are fewer than 100 rows.
    """
    if len(truth) < 100:
        return None
    values = np.unique(truth)
    step = float(np.diff(values).min(initial=np.inf))
    steps, places = (truth - values[0]) / step, (released - values[0]) / step
    if not 0 < np.ptp(steps) < 1e9 or not _whole(steps).all():
        return None
    labels, rows = np.rint(steps).astype(np.int64), rng.permutation(len(truth))[:_MOST_ROWS_COUNTED]
    learn, test = rows[: len(rows) // 2], rows[len(rows) // 2 :]
    modulus = None
    if _whole(places).mean() >= 0.99:
        outputs = np.rint(places).astype(np.int64)
        found = [_dependence(labels[learn] % q, outputs[learn] % q, q) for q in _MODULI]
        # Twice the period shows as much: the smallest is named.
        modulus = next(q for q, one in zip(_MODULI, found, strict=True) if one >= 0.5 * max(found))
        counts = label_table(labels[test] % modulus, outputs[test] % modulus, modulus, modulus)
    else:
        guess = _by_digits(labels, places, learn, test)
        counts = label_table(labels[test] % _CLASSES, guess, _CLASSES, _CLASSES + 1)
    bounds = epsilon_evidence(counts, None, rng)
    right = float(np.trace(counts)) / len(test)
    return None if bounds is None else LatticeEvidence(bounds, step, modulus, right)


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
) -> IndexArray:
    """Return the remainder of the label that the digits of each tested number point to."""
    # Digits that were not seen on other rows point to none: one more than the largest remainder.
    below = np.floor(places)
    digits = np.rint((places - below) * 1e9).astype(np.int64)
    noise = below.astype(np.int64) - labels
    pairs, counts = np.unique(
        np.stack([digits[learn], noise[learn]], 1), axis=0, return_counts=True
    )
    order = np.lexsort((-counts, pairs[:, 0]))
    known, first = np.unique(pairs[order, 0], return_index=True)
    place = np.minimum(np.searchsorted(known, digits[test]), len(known) - 1)
    guess = (below[test].astype(np.int64) - pairs[order][first[place], 1]) % _CLASSES
    return np.asarray(np.where(known[place] == digits[test], guess, _CLASSES))


def repeated_numbers(released: FloatArray) -> int:
    """Return how many rows have a number, of more than six decimals, that another row has too.

    Continuous noise repeats no number. Rounded ones are not counted.
    """
    if not len(released):
        return 0
    values, counts = np.unique(released, return_counts=True)
    scale = max(float(np.ptp(values)), 1e-300)
    fine = ~_whole(values * 1e6) if scale > 1 else ~_whole(values / scale * 1e6)
    return int(counts[fine & (counts > 1)].sum())
