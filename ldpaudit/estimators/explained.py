"""How much of a label one column explains, and how true and released labels go together."""

from dataclasses import dataclass
from typing import Final

import numpy as np

from ldpaudit.arrays import FloatArray, IndexArray, IntArray
from ldpaudit.estimators.epsilon.consistency import binomial_p_value
from ldpaudit.estimators.intervals.binomial import clopper_pearson

MOST_BINS: Final = 8
FEWEST_ROWS: Final = 20
"""Rows of a bin; rarer values share one, so that no bin is about a few people."""
_BOTH: Final = 2


def bins_of_numbers(values: FloatArray, most: int = MOST_BINS) -> IndexArray:
    """Return the bin of each value, int64 (n,): ranges of about equally many rows, by rising value.

    A value that fills a bin has one of its own, and so have missing values (NaN), which come last.
    There may be some more than ``most``; a bin of fewer than :data:`FEWEST_ROWS` rows is joined to
    the one before it.
    """
    missing = np.isnan(values)
    kept, places, counts = np.unique(values[~missing], return_inverse=True, return_counts=True)
    labels = np.arange(len(kept))
    if len(kept) > most:
        heavy = counts >= max(counts.sum() / most, FEWEST_ROWS)
        light = np.where(heavy, 0, counts)
        room = max(most - int(heavy.sum()), 1)
        steps = (np.cumsum(light) - light) // max(light.sum() / room, FEWEST_ROWS)
        # Ranges before, at and after each heavy value.
        labels = _dense((2 * np.cumsum(heavy) - heavy) * (most + 1) + steps.astype(np.int64))
    bins = np.full(len(values), labels.max(initial=-1) + 1, dtype=np.int64)
    bins[~missing] = labels[places]
    return _joined(bins)


def bins_of_categories(codes: IntArray, most: int = MOST_BINS) -> IndexArray:
    """Return the bin of each code, int64 (n,): the most frequent codes, then all others as one.

    A missing value (-1) is a code. No bin has fewer than :data:`FEWEST_ROWS` rows, unless there are
    fewer in all.
    """
    sizes = np.bincount(codes + 1)
    order = np.argsort(-sizes, kind="stable")
    alone = order[: most if (sizes > 0).sum() <= most else most - 1]
    places = np.full(len(sizes), len(alone), dtype=np.int64)
    places[alone] = np.arange(len(alone))
    return _joined(_dense(places[codes + 1]))


def _joined(bins: IndexArray) -> IndexArray:
    """Return bins, each that has few rows joined to the one before it, the first to the next."""
    sizes = np.bincount(bins)
    places, held = np.zeros(len(sizes), dtype=np.int64), 0
    for place, size in enumerate(sizes):
        new = size >= FEWEST_ROWS and held >= FEWEST_ROWS
        places[place] = places[place - 1] + new if place else 0
        held = size if new else held + size
    return _dense(places[bins])


def _dense(bins: IndexArray) -> IndexArray:
    return np.unique(bins, return_inverse=True)[1].astype(np.int64)


def explained_of_classes(counts: IndexArray) -> float:
    """Return the share of a label's variance that the bins of a column explain, from 0 to 1.

    Parameters
    ----------
    counts : int64 array of shape (b, k)
        Rows by bin and label.

    Returns
    -------
    float
        Goodman and Kruskal's τ, less what b bins explain by chance: 1 − (1 − τ)(n − 1)/(n − b), at
        least 0; in expectation 0 for a column that is independent of the label, before it is cut
        off. 0 where all labels are the same, or there are not more rows than bins.

    References
    ----------
    Goodman & Kruskal (1954), Journal of the American Statistical Association 49(268), Section 9.
    """
    table = np.asarray(counts, dtype=np.float64)
    table = table[table.sum(axis=1) > 0]
    n, classes = float(table.sum()), table.sum(axis=0)
    by_chance = float((classes**2).sum()) / n if n else 0.0
    between = float((table**2 / table.sum(axis=1, keepdims=True)).sum()) - by_chance
    return _adjusted(between, n - by_chance, n, len(table))


def explained_of_numbers(bins: IndexArray, values: FloatArray) -> float:
    """Return the share of a number's variance that the bins of a column explain, from 0 to 1.

    η², less what the bins explain by chance, as :func:`explained_of_classes`. ``bins``: int64 (n,),
    ``values``: float64 (n,), in units of the label.
    """
    centred = values - values.mean()
    sizes = np.bincount(bins)
    sums = np.bincount(bins, centred)[sizes > 0]
    between = float((sums**2 / sizes[sizes > 0]).sum())
    return _adjusted(between, float((centred**2).sum()), len(values), int((sizes > 0).sum()))


def _adjusted(between: float, total: float, n: float, bins: int) -> float:
    if total <= 0 or n <= bins:
        return 0.0
    return min(max(1 - (1 - between / total) * (n - 1) / (n - bins), 0.0), 1.0)


@dataclass(frozen=True)
class Entries:
    """Each pair of a true and a released label: how often it was seen, against a claimed channel.

    Attributes
    ----------
    count, n : int64 arrays of shape (k, m)
        Rows with that true label and output, and rows with that true label.
    share, low, high : float64 arrays of shape (k, m)
        count/n with its interval; NaN for labels without rows.
    p_value : float64 array of shape (k, m)
        Of the claim, exact and two-sided, of the entry alone; 1 without a claim.
    """

    count: IndexArray
    n: IndexArray
    share: FloatArray
    low: FloatArray
    high: FloatArray
    p_value: FloatArray


def bands(weights: FloatArray, most: int) -> IndexArray:
    """Return the band of each of c ordered values, int64 (c,): about equal weights in each."""
    before = np.cumsum(weights) - weights
    share = (before + weights / 2) / max(float(weights.sum()), 1.0)
    return _dense(np.minimum((share * most).astype(np.int64), most - 1))


def entries_of(counts: IndexArray, channel: FloatArray | None, alpha: float) -> Entries:
    """Return the shares of outputs by true label, their intervals simultaneous at level 1 − alpha.

    Parameters
    ----------
    counts : int64 array of shape (k, m)
        Rows by true label and output.
    channel : float64 array of shape (k, m) or None
        The claim.
    alpha : float
        The error probability of all intervals together: Bonferroni over the entries of labels that
        have rows. With two outputs an entry for each label, since the other follows.

    References
    ----------
    Clopper & Pearson (1934).
    """
    sizes = np.broadcast_to(counts.sum(axis=1, keepdims=True), counts.shape)
    present = sizes > 0
    labels, outputs = int(present[:, 0].sum()), counts.shape[1]
    tests = max(labels * (1 if outputs == _BOTH else outputs), 1)
    n = np.maximum(sizes, 1)
    low, high = clopper_pearson(counts, n, alpha / tests)
    share = np.where(present, counts / n, np.nan)
    p_value = np.ones(counts.shape)
    if channel is not None:
        p_value = np.where(present, binomial_p_value(counts, n, channel), 1.0)
    unknown = np.where(present, 0.0, np.nan)
    return Entries(counts, sizes, share, low + unknown, high + unknown, p_value)
