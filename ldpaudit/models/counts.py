"""Counts of labels: class frequencies and channels behind them, and identical rows."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize
from scipy.special import softmax
from scipy.stats import chi2

from ldpaudit.arrays import GOLDEN, code_counts, scrambled
from ldpaudit.release import FeatureTable, FloatArray, IntArray, label_table

_CLAIMED_ROWS = 20.0


def clean_prior(released: IntArray, transition: FloatArray) -> FloatArray:
    """Return the class frequencies behind released labels, float64 of shape (k,)."""
    # The maximum-likelihood estimate under the channel, with one row's worth of the uniform
    # distribution; all entries are above 0. Behind a channel that hides much, the frequencies of
    # few rows are mostly noise, so they are drawn towards the uniform distribution by the share (1
    # − c²)·χ²₀.₉₅/χ² of the way, χ² the statistic of the released labels against uniform classes
    # and c the channel's contrast: all the way where the released labels do not contradict them,
    # and not at all where labels are not noisy.
    k, m = transition.shape
    counts = code_counts(released, m).astype(np.float64)
    expected = counts.sum() * transition.mean(axis=0)
    possible = expected > 0
    apart = (counts[possible] - expected[possible]) ** 2 / expected[possible]
    contrast = float(np.linalg.svd(transition, compute_uv=False)[1])
    noise = (1.0 - min(contrast, 1.0) ** 2) * float(chi2.ppf(0.95, max(m - 1, 1)))
    pull = min(1.0, noise / max(float(apart.sum()), 1e-12)) if noise > 0 else 0.0
    return np.asarray((1.0 - pull) * _most_likely(counts, transition) + pull / k)


def _most_likely(counts: FloatArray, transition: FloatArray) -> FloatArray:
    """Return the π of largest Σ_z n_z log (πT)_z + Σ_y log π_y / k, float64 of shape (k,)."""
    # By quasi-Newton steps on the logits: expectation–maximisation would need some 1/c² rounds
    # behind a channel of contrast c.
    k = len(transition)
    n = max(float(counts.sum()), 1.0)
    inverted, *_ = np.linalg.lstsq(transition.T, counts / n, rcond=None)
    start = np.log(np.maximum(inverted, 0.1 / k))

    def objective(logits: FloatArray) -> tuple[float, FloatArray]:
        p = np.maximum(softmax(logits), 1e-300)
        evidence = np.maximum(p @ transition, 1e-300)
        slope = transition @ (counts / evidence) + 1.0 / (k * p)
        value = counts @ np.log(evidence) + np.log(p).sum() / k
        return -float(value) / n, -p * (slope - p @ slope) / n

    # The loss is nearly flat where labels are hidden well.
    optimum = minimize(
        objective,
        start,
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": 1_000, "ftol": 1e-15, "gtol": 1e-10},
    )
    return np.asarray(softmax(optimum.x), dtype=np.float64)


def measured_channel(
    truth: IntArray, released: IntArray, shape: tuple[int, int], claimed: FloatArray | None
) -> FloatArray:
    """Return the channel as counted on rows with true labels, float64 of shape (k, m)."""
    # Each row that the counts do not contradict (at 5 %, by Pearson's statistic) is the claimed
    # one; others are drawn towards it, as if it were worth 20 rows. Without a claim a row is drawn
    # towards the uniform distribution, worth one.
    pull = np.full(shape, 1.0 / shape[1]) if claimed is None else _CLAIMED_ROWS * claimed
    counts = label_table(truth, released, *shape)
    table = counts + pull
    table /= table.sum(axis=1, keepdims=True)
    if claimed is None:
        return np.asarray(table)
    expected = counts.sum(axis=1, keepdims=True) * claimed
    apart = (counts - expected) ** 2 / np.maximum(expected, 1e-9)
    fits = apart.sum(axis=1) <= chi2.ppf(0.95, max(shape[1] - 1, 1))
    return np.where(fits[:, None], claimed, table)


@dataclass(frozen=True)
class Frequencies:
    """The model without features: the class frequencies, float64 of shape (k,)."""

    prior: FloatArray

    def predict(self, features: FeatureTable) -> FloatArray:
        return np.tile(self.prior, (len(features), 1))


Hashes = npt.NDArray[np.uint64]
Product = Callable[[FloatArray], FloatArray]

_ROUNDS = 60
_SETTLED = 1e-7
_MANY = 64


def hash_rows(features: FeatureTable) -> Hashes:
    """Return a 64-bit hash of each row, uint64 of shape (n,); equal rows have equal hashes."""
    # Missing values equal each other and −0.0 equals 0.0. With a million distinct rows two of them
    # collide with probability below 3e-8.
    hashes = np.zeros(len(features), dtype=np.uint64)
    for column in features.categorical.T:
        hashes = _mix(hashes, column.astype(np.int64).view(np.uint64))
    for values in features.numeric.T:
        canonical = np.where(np.isnan(values), np.float32(np.nan), values + np.float32(0.0))
        hashes = _mix(hashes, canonical.astype(np.float32).view(np.uint32).astype(np.uint64))
    return hashes


def _mix(hashes: Hashes, values: Hashes) -> Hashes:
    return scrambled(hashes * GOLDEN + values + np.uint64(0x632BE59BD9B4E019))


def shrunk_cell_posteriors(
    counts: FloatArray, transition: FloatArray, base: FloatArray, weight: float
) -> FloatArray:
    """Return P(y | cell), the ``counts`` (c, m) of released labels shrunk towards ``base`` (c, k).

    The maximiser of the likelihood of the counts, Σ_z n_z log Σ_y p_y T[y, z], plus weight · Σ_y
    base_y log p_y, found by expectation–maximisation; with the identity channel it is (n_y + weight
    · base_y)/(n + weight). Base and ``weight``, the rows it is worth, are above 0.
    """
    forth, back = _products(transition)
    total = counts.sum(axis=1, keepdims=True) + weight
    current = base
    for _ in range(_ROUNDS):
        evidence = np.maximum(forth(current), 1e-300)
        expected = current * back(counts / evidence)
        update = (expected + weight * base) / total
        moved = float(np.abs(update - current).max(initial=0.0))
        current = update
        if moved < _SETTLED:
            break
    return current


def _products(transition: FloatArray) -> tuple[Product, Product]:
    """Return what multiplies probability rows by a channel, and other rows by its transpose."""
    k, m = transition.shape
    others = np.median(transition, axis=0)
    # Of many labels under randomized response only the diagonal is apart: k operations, not k².
    if k == m >= _MANY:
        own = np.diag(transition) - others
        if np.allclose(transition, others + np.diag(own), rtol=1e-12, atol=0.0):
            return (
                lambda rows: rows * own + others,
                lambda rows: rows * own + (rows @ others)[:, None],
            )
    return lambda rows: rows @ transition, lambda rows: rows @ transition.T
