"""Are the draws of two columns independent, given the true vector? Exact tests.

Rows with the same two true labels (and stratum) are alike: if the draws are independent, any
pairing of the first column's outputs with the second's is equally likely among them, whatever the
two channels are. What noise did to each output is coded as 0 or 1; the number of rows with both
ones is hypergeometric in each group of alike rows, given how often each one occurs.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Final

import numpy as np
from scipy.special import gammaln

from ldpaudit.release import BoolArray, FloatArray, IndexArray, IntArray

MOST_ROWS: Final = 200_000
_DEVIATIONS: Final = 12.0
"""Farther from its mean a hypergeometric count is not followed: that has a mass below 1e-30."""
_NUMERICAL: Final = 1e-13
_FEWEST_ALONE: Final = 20
"""Fewer alike rows than this are not tested by themselves."""


@dataclass(frozen=True)
class SharedDraws:
    """Whether columns share draws.

    Attributes
    ----------
    p_value : float
        Valid for all pairs and codings at once: Bonferroni's.
    pair : tuple of two int
        The columns that go together most clearly.
    tests : int
        Pairs times codings.
    rows : int
        Rows that have another one like them, for the pair with most.
    """

    p_value: float
    pair: tuple[int, int]
    tests: int
    rows: int


def shared_draws(
    labels: IntArray,
    released: IntArray,
    strata: IndexArray,
    same_labels: Sequence[bool],
    pairs: Sequence[tuple[int, int]] | None = None,
) -> SharedDraws:
    """Test pairs of columns for draws that go together.

    Parameters
    ----------
    labels, released : int32 arrays of shape (n, d)
    strata : int64 array of shape (n,)
        Codes of rows with one channel.
    same_labels : sequence of d bool
        Whether a column's codes of labels and outputs stand for the same values: then also whether
        noise changed a label is looked at, besides whether its output is a high one.
    pairs : sequence of pairs of int, optional
        The columns to compare; default: each with every other.

    Returns
    -------
    SharedDraws
        Columns that depend on each other only three at a time are not found.
    """
    columns = range(released.shape[1])
    kinds = [kinds_of(labels[:, [a]], strata) for a in columns]
    codings = [
        list(_codings(labels[:, a], released[:, a], kinds[a], same_labels[a])) for a in columns
    ]
    tests, best, rows = 0, (2.0, (0, 1)), 0
    for a, b in combinations(columns, 2) if pairs is None else pairs:
        alike = kinds_of(labels[:, [a, b]], strata)
        sizes = np.bincount(alike)
        rows = max(rows, int(sizes[sizes > 1].sum()))
        for one in codings[a]:
            for other in codings[b]:
                tests += 1
                best = min(best, (paired_p_value(one, other, alike), (a, b)))
    return SharedDraws(min(best[0] * tests, 1.0), best[1], tests, rows)


def kinds_of(parts: IntArray, strata: IndexArray) -> IndexArray:
    """Return codes 0, 1 … of the distinct rows of ``parts`` (n, d) within strata, int64 (n,)."""
    kind: IndexArray = np.unique(strata, return_inverse=True)[1].astype(np.int64)
    for column in parts.T:
        code = kind * (int(column.max(initial=0)) + 1) + column
        kind = np.unique(code, return_inverse=True)[1].astype(np.int64)
    return kind


def _codings(
    labels: IntArray, outputs: IntArray, kind: IndexArray, same_labels: bool
) -> Iterator[BoolArray]:
    if same_labels:
        yield outputs != labels
    yield high_outputs(kind, outputs)


def high_outputs(kind: IndexArray, outputs: IntArray) -> BoolArray:
    """Return which outputs are above the cut nearest to the median of their kind, bool (n,).

    ``kind``: int64 codes of shape (n,), ``outputs``: int32 of shape (n,).
    """
    order = np.lexsort((outputs, kind))
    sizes = np.bincount(kind)
    starts = np.cumsum(sizes) - sizes
    sorted_outputs = outputs[order]
    cut = np.zeros(len(sizes), dtype=np.int64)
    for group, (start, size) in enumerate(zip(starts, sizes, strict=True)):
        if size:
            cut[group] = _cut(sorted_outputs[start : start + size])
    return np.asarray(outputs >= cut[kind])


def _cut(values: IntArray) -> int:
    """Return the value at which sorted values are parted most evenly."""
    middle = values[len(values) // 2]
    below = int(np.searchsorted(values, middle, side="left"))
    above = int(np.searchsorted(values, middle, side="right"))
    return (
        int(middle)
        if abs(2 * below - len(values)) <= abs(2 * above - len(values))
        else (int(middle) + 1)
    )


def paired_p_value(first: BoolArray, second: BoolArray, alike: IndexArray) -> float:
    """Return the exact two-sided p-value of "independent among alike rows".

    Twice the smaller tail of the number of rows with both ones, over all groups of alike rows. And
    of each larger group by itself, so that neither a small group nor dependence of different signs
    is lost among the others; Bonferroni for both.

    Parameters
    ----------
    first, second : bool arrays of shape (n,)
    alike : int64 array of shape (n,)
        Codes of rows among which any pairing is equally likely.

    References
    ----------
    Fisher (1935); Birch (1964), for the sum over several tables.
    """
    size = np.bincount(alike)
    ones, others = (np.bincount(alike, weights=x).astype(np.int64) for x in (first, second))
    both = np.bincount(alike, weights=first & second).astype(np.int64)
    varies = (ones > 0) & (ones < size) & (others > 0) & (others < size)
    if not varies.any():
        return 1.0
    at, law, alone = 0, np.ones(1), []
    for group in np.flatnonzero(varies):
        start, part = _hypergeometric(int(size[group]), int(ones[group]), int(others[group]))
        at, law = at + start, np.convolve(law, part)
        if size[group] >= _FEWEST_ALONE:
            alone.append(_two_sided(part, int(both[group]) - start))
    together = _two_sided(law, int(both[varies].sum()) - at)
    if np.count_nonzero(varies) == 1 or not alone:
        return together
    return min(2 * min(together, len(alone) * min(alone)), 1.0)


def _two_sided(law: FloatArray, seen: int) -> float:
    """Return twice the smaller tail of a count, given the chance of each from 0 on, at most 1."""
    place = np.arange(len(law))
    tails = law[place >= seen].sum(), law[place <= seen].sum()
    return float(min(2 * (min(tails) + _NUMERICAL), 1.0))


def _hypergeometric(size: int, ones: int, drawn: int) -> tuple[int, FloatArray]:
    """Return P(count) around the mean, and the first count."""
    mean = ones * drawn / size
    spread = np.sqrt(mean * (size - ones) / size * (size - drawn) / max(size - 1, 1))
    reach = _DEVIATIONS * spread + 40
    low = max(0, ones + drawn - size, int(mean - reach))
    high = min(ones, drawn, int(mean + reach) + 1)
    x = np.arange(low, high + 1)
    logs = (
        _log_choose(ones, x)
        + _log_choose(size - ones, drawn - x)
        - _log_choose(size, np.asarray(drawn))
    )
    return low, np.exp(logs)


def _log_choose(n: int, k: IndexArray) -> FloatArray:
    return np.asarray(gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1))
