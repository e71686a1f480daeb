"""Whether true labels in the release's row order are in it: blocks of rows that stand elsewhere.

A table in parts can be read in two orders, and its true labels in a third. Labels that belong to
other rows look like more noise, which no further rows would make clearer, so the blocks are looked
for in the truth: each agrees with its own rows better than by chance, or with those elsewhere.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Final

import numpy as np
import numpy.typing as npt

from ldpaudit.errors import InputError
from ldpaudit.release import FloatArray, IntArray

_FEWEST, _MOST_BLOCKS, _MOST_PARTS = 200, 16, 200
# Labels that are compared, the commonest ones, and rows.
_MOST_CLASSES, _MOST_ROWS_ORDERED = 8, 4_000_000
# Standard deviations: of an agreement that is chance, and of one that no shift has by chance (that
# the best of 10⁸ shifts is above it has probability 6e-8).
_CHANCE, _SURE = 3.0, 8.0
# Blocks are compared with the truth at every shift until so many are known to stand elsewhere.
_ENOUGH: Final = 3


def check_row_order(released: IntArray, truth: IntArray, parts: Sequence[int] = ()) -> None:
    """Check that released labels stand beside their own true ones, both coded alike (InputError).

    ``released``, ``truth``: int32 of shape (n,); released codes that are no label are negative.
    ``parts``: how many rows each of the release's files has.
    """
    n = len(released)
    many = 1 < len(parts) <= _MOST_PARTS and min(parts) >= _FEWEST and sum(parts) == n
    blocks = min(_MOST_BLOCKS, n // _FEWEST)
    if blocks < 2 or n > _MOST_ROWS_ORDERED:
        return
    ends = np.cumsum([0, *parts]) if many else np.linspace(0, n, blocks + 1).astype(np.int64)
    own = _own_agreement(released, truth, ends)
    lost = np.flatnonzero(own <= _CHANCE)
    if len(lost) < 2:
        return
    spectrum, k = _spectrum(truth), int(truth.max()) + 1
    commonest = np.argsort(-np.bincount(truth, minlength=k), kind="stable")[:_MOST_CLASSES]
    shifts: list[int] = []
    first = -1
    for block in lost:
        start, stop = int(ends[block]), int(ends[block + 1])
        place = _best_place(released[start:stop], spectrum, commonest, n)
        if place is None or place == start:
            continue
        # Labels in long runs agree with a step in others nearly anywhere: what counts is how the
        # labels of the block and of the place alternate.
        there = truth[place : place + stop - start]
        if _own_agreement(released[start:stop], there, np.array([0, stop - start]))[0] > _SURE:
            first = int(block) if first < 0 else first
            shifts.append(place - start)
        if len({*shifts}) > 1 and len(shifts) >= _ENOUGH:
            break
    if len({*shifts}) > 1:
        which = f"part {first + 1} of {len(parts)}" if many else f"block {first + 1} of {blocks}"
        raise InputError(
            f"The rows of {which} of the release stand elsewhere in the true labels, as do those "
            "of others: the two tables have the same blocks of rows in different orders. Join them "
            "on an id (--id), or write the true labels in the release's order."
        )


def _own_agreement(released: IntArray, truth: IntArray, ends: npt.NDArray[np.int64]) -> FloatArray:
    """Return by how many standard deviations each block agrees with its rows beyond chance."""
    found = []
    for start, stop in pairwise(ends):
        ours, theirs = released[start:stop], truth[start:stop]
        k = int(max(ours.max(initial=0), theirs.max(initial=0))) + 1
        shares = [np.bincount(x[x >= 0], minlength=k) / len(x) for x in (ours, theirs)]
        chance = float(shares[0] @ shares[1])
        spread = np.sqrt(max(chance * (1 - chance), 1e-12) * len(ours))
        found.append((float((ours == theirs).sum()) - chance * len(ours)) / spread)
    return np.array(found)


def _spectrum(truth: IntArray) -> FloatArray:
    """Return the Fourier transform of each of the commonest labels' centred indicators."""
    k = int(truth.max()) + 1
    counts = np.bincount(truth, minlength=k)
    size = 2 * len(truth)
    rows = [
        np.fft.rfft((truth == label) - counts[label] / len(truth), size)
        for label in np.argsort(-counts, kind="stable")[:_MOST_CLASSES]
    ]
    return np.array(rows)


def _best_place(
    block: IntArray, spectrum: FloatArray, labels: npt.NDArray[np.int64], n: int
) -> int | None:
    """Return where in the truth a block's rows stand, None where no place is beyond chance."""
    total = np.zeros(2 * n)
    for label, of_truth in zip(labels, spectrum, strict=True):
        own = (block == label) - float((block == label).mean())
        total += np.fft.irfft(of_truth * np.conj(np.fft.rfft(own, 2 * n)), 2 * n)
    agreement = total[: n - len(block) + 1]
    spread = float(agreement.std())
    best = int(agreement.argmax())
    return best if spread > 0 and agreement[best] > _SURE * spread else None
