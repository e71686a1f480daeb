"""How many of each row's nearest neighbours carry each label, without ever listing neighbours.

A query's neighbourhood is a ball whose radius is chosen without looking at any label, so that,
given the features, the counts in it are sums of independent labels: every binomial bound on them
holds whatever the radius. Ties at the border are all inside: breaking them by position would let
the order of a file, which may follow the labels, into the choice.

Index rows and query rows must be different rows of the release. There is no leave-one-out: a
row's own label must not enter its own count, so split the rows before calling.
"""

from dataclasses import dataclass

import numpy as np

from ldpaudit.errors import InputError
from ldpaudit.estimators.distinct import distinct_rows
from ldpaudit.progress import NoProgress, Progress
from ldpaudit.release import Float32Array, IntArray


@dataclass(frozen=True)
class NeighborCounts:
    """Label counts in a neighbourhood of each query.

    Attributes
    ----------
    counts : int32 array of shape (m, n_labels)
        Index rows of each label in the neighbourhood.
    totals : int32 array of shape (m,)
        Their sums: the size of each neighbourhood, never 0.
    method : str
        How the neighbours were found, in words for the report.
    """

    counts: IntArray
    totals: IntArray
    method: str


def count_labels(
    index: Float32Array,
    labels: IntArray,
    queries: Float32Array,
    k: int,
    n_labels: int,
    *,
    threads: int = 1,
    progress: Progress | None = None,
    seed: int = 0,
) -> NeighborCounts:
    """Count the labels among about k nearest index rows of each query.

    Parameters
    ----------
    index : float32 array of shape (n, d)
        The rows whose labels are counted; finite. L2 distance.
    labels : int32 array of shape (n,)
        Their labels, 0 … n_labels − 1.
    queries : float32 array of shape (m, d)
        Other rows of the same release.
    k : int
        The wanted neighbourhood size, at least 1; taken as n where n is smaller.
    n_labels : int
        The number of labels.
    threads : int
        Threads used; the result does not depend on it.
    progress : Progress, optional
        Told how many queries are answered.
    seed : int
        Chooses the k-means start of a large search; blind to the labels.

    Returns
    -------
    NeighborCounts
        With totals ≥ min(k, n) and, without ties, exactly that.

    Raises
    ------
    ldpaudit.errors.InputError
        If shapes, labels or k do not fit, or a value is not finite.
    """
    _check(index, labels, queries, k, n_labels)
    progress = progress or NoProgress()
    return _brute_force(index, labels, queries, min(k, len(index)), n_labels)


def _check(
    index: Float32Array, labels: IntArray, queries: Float32Array, k: int, n_labels: int
) -> None:
    if index.ndim != 2 or queries.ndim != 2 or index.shape[1] != queries.shape[1]:
        raise InputError("The index and the queries must be matrices of the same width.")
    if len(index) == 0 or len(labels) != len(index):
        raise InputError(f"The index has {len(index)} rows and {len(labels)} labels.")
    if k < 1:
        raise InputError(f"The 'k' parameter must be at least 1. Got {k} instead.")
    if labels.min() < 0 or labels.max() >= n_labels:
        raise InputError(f"The labels must be codes from 0 to {n_labels - 1}.")
    if not (np.isfinite(index).all() and np.isfinite(queries).all()):
        raise InputError("The index and the queries must be finite.")


def _brute_force(
    index: Float32Array, labels: IntArray, queries: Float32Array, k: int, n_labels: int
) -> NeighborCounts:
    distinct = distinct_rows(index)
    weights = distinct.label_counts(labels, n_labels).astype(np.float64)
    center = distinct.rows.mean(axis=0, dtype=np.float64)
    rows = distinct.rows - center
    half_norms = 0.5 * np.einsum("ij,ij->i", rows, rows)
    counts = np.empty((len(queries), n_labels), dtype=np.int32)
    batch = max(1, 20_000_000 // len(rows))
    for start in range(0, len(queries), batch):
        near = half_norms - (queries[start : start + batch] - center) @ rows.T
        order = np.argsort(near, axis=1)
        sizes = np.cumsum(weights.sum(axis=1)[order], axis=1)
        last = (sizes < k).sum(axis=1)
        radius = np.take_along_axis(near, np.take_along_axis(order, last[:, None], 1), 1)
        counts[start : start + batch] = (near <= radius) @ weights
    return NeighborCounts(counts, counts.sum(axis=1, dtype=np.int32), "exact search")
