"""How many labels one column tells by itself, learnt on some rows and counted on others."""

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ldpaudit.arrays import FloatArray, IntArray

Values = npt.NDArray[Any]

MOST_CELLS: Final = 4096
"""A number with more different values is put into this many bins of equally many rows …"""
MOST_NOISY_CELLS: Final = 256
"""… or this many where labels are noisy: a bin must hold enough of them."""
_LEAST_LIFT: Final = 0.9
"""The share of the guesses beyond the most frequent label that must be right for accuracy to
count."""
LEAST_ROWS: Final = 10.0
"""Labels of fewer rows are left out of the mean over labels."""


@dataclass(frozen=True)
class Told:
    """The share of labels that a column tells.

    Attributes
    ----------
    share : float
        In [0, 1]: balanced accuracy, or accuracy where that is larger and no merit of the most
        frequent label.
    error : float
        Its standard error.
    wrong : int
        How many of the counted rows it tells wrongly.
    derived : bool
        Whether it seems to tell more than all labels.

    Through the inverse of a channel a column that was computed from the released label seems to
    tell more than all labels; it tells none that the released label does not, and counts as 0.
    """

    share: float
    error: float
    wrong: int
    derived: bool = False


def label_weights(labels: IntArray, classes: int) -> FloatArray:
    """Return weights for known labels, codes of shape (n,): one where the row has the label.

    Shape (n, k). Rows of the inverse of the channel, by released label, are such weights too: their
    mean is the same.
    """
    weights = np.zeros((len(labels), classes))
    weights[np.arange(len(labels)), labels] = 1.0
    return weights


def cells_of(values: Values, most: int = MOST_CELLS) -> tuple[npt.NDArray[np.int64], int]:
    """Return the cell of each value, int64 of shape (n,), and the number of cells.

    Equal values share a cell; a number with more than ``most`` is put into as many bins. Missing is
    a value.
    """
    distinct, codes = np.unique(values, return_inverse=True)
    if len(distinct) <= most or not np.issubdtype(values.dtype, np.floating):
        return codes.astype(np.int64), len(distinct)
    starts = _starts(codes, most)
    return np.searchsorted(starts, codes, side="right").astype(np.int64), len(starts) + 1


def _starts(codes: npt.NDArray[np.intp], most: int) -> npt.NDArray[np.intp]:
    """Return where bins of equally many rows begin, as codes of the sorted values."""
    ranks = np.sort(codes)
    return np.unique(ranks[np.arange(1, most) * len(ranks) // most])


def told(values: Values, weights: FloatArray, most: int = MOST_CELLS) -> Told:
    """Return the share of labels that a column tells.

    On one half of the rows (those at even places) the label that is commonest in each cell, as a
    share of its own frequency, is learnt; it is counted on the other half, and the reverse. Rows
    must be in random order.

    Parameters
    ----------
    values : array of shape (n,)
        Numbers or codes.
    weights : float64 array of shape (n, k)
        See :func:`label_weights`.
    most : int
        The largest number of bins of a number.
    """
    cells, amount = cells_of(values, most)
    between = np.issubdtype(values.dtype, np.floating)
    k = weights.shape[1]
    even = np.arange(len(cells)) % 2 == 0
    balanced, plain = np.zeros((2, k)), np.zeros((2, k))
    for learning in (even, ~even):
        both = _guesses(cells[learning], amount, weights[learning], between=between)
        asked, known = cells[~learning], weights[~learning]
        balanced += _right(both[0][asked], known)
        plain += _right(both[1][asked], known)
    return _judged(balanced, plain, weights)


def _guesses(
    cells: npt.NDArray[np.int64], amount: int, weights: FloatArray, *, between: bool
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return each cell's guess, once with every label as frequent as any other; −1: never seen.

    Cells of numbers that were never seen take the guess of the one before, if ``between``.
    """
    k = weights.shape[1]
    columns = [np.bincount(cells, weights[:, c], minlength=amount) for c in range(k)]
    counts = np.column_stack(columns)
    seen = np.bincount(cells, minlength=amount) > 0
    totals = np.maximum(counts.sum(axis=0), 1e-9)
    balanced, plain = (counts / totals).argmax(axis=1), counts.argmax(axis=1)
    if between and amount:
        last = np.maximum.accumulate(np.where(seen, np.arange(amount), seen.argmax()))
        return balanced[last], plain[last]
    return np.where(seen, balanced, -1), np.where(seen, plain, -1)


def _right(guess: npt.NDArray[np.int64], weights: FloatArray) -> FloatArray:
    """Return, by label, the weight of right guesses and the sum of its squares; shape (2, k)."""
    k = weights.shape[1]
    given = np.flatnonzero(guess >= 0)
    own = weights[given, guess[given]]
    powers = [np.bincount(guess[given], own**power, minlength=k) for power in (1, 2)]
    return np.array(powers, dtype=np.float64)


def _judged(balanced: FloatArray, plain: FloatArray, weights: FloatArray) -> Told:
    n, totals = float(len(weights)), weights.sum(axis=0)
    counted = totals >= LEAST_ROWS
    if counted.sum() < 2:
        return Told(0.0, 0.0, int(n))
    right, squares = balanced[:, counted]
    shares = right / totals[counted]
    others = (weights[:, counted] ** 2).sum(axis=0) - squares
    variances = (squares * (1 - shares) ** 2 + others * shares**2) / totals[counted] ** 2
    spread = max(float(variances.sum()), 0.0)
    share, error = float(shares.mean()), float(np.sqrt(spread) / counted.sum())
    correct, majority = float(plain[0].sum()), float(totals.max()) / n
    accuracy, wrong = correct / n, n - float(balanced[0].sum())
    if accuracy - majority >= _LEAST_LIFT * (1 - majority) and accuracy > share:
        error = float(np.sqrt(max(plain[1].sum() - n * accuracy**2, 0.0))) / n
        share, wrong = accuracy, n - correct
    if share > 1 + 2.5 * error + 1e-9:  # More than all: its noise is that of the released label.
        return Told(0.0, 0.0, int(n), derived=True)
    return Told(min(max(share, 0.0), 1.0), error, max(round(wrong), 0))
