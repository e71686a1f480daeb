"""Class frequencies and channels from counts of labels."""

from dataclasses import dataclass

import numpy as np
from scipy.stats import chi2

from ldpaudit.attacks.feature_cells import shrunk_cell_posteriors
from ldpaudit.release import FeatureTable, FloatArray, IntArray

_CLAIMED_ROWS = 20.0


def clean_prior(released: IntArray, transition: FloatArray) -> FloatArray:
    """Return the class frequencies behind released labels, float64 of shape (k,).

    The maximum-likelihood estimate under the channel, with one row's worth of the uniform
    distribution; all entries are above 0. Behind a channel that hides much, the frequencies of few
    rows are mostly noise, so they are drawn towards the uniform distribution by the share
    (1 − c²)·χ²₀.₉₅/χ² of the way, χ² the statistic of the released labels against uniform classes
    and c the channel's contrast: all the way where the released labels do not contradict them, and
    not at all where labels are not noisy.
    """
    k, m = transition.shape
    counts = np.bincount(released, minlength=m).astype(np.float64)
    uniform = np.full((1, k), 1.0 / k)
    found = shrunk_cell_posteriors(counts[None, :], transition, uniform, 1.0).ravel()
    expected = counts.sum() * transition.mean(axis=0)
    possible = expected > 0
    apart = (counts[possible] - expected[possible]) ** 2 / expected[possible]
    contrast = float(np.linalg.svd(transition, compute_uv=False)[1])
    noise = (1.0 - min(contrast, 1.0) ** 2) * float(chi2.ppf(0.95, max(m - 1, 1)))
    pull = min(1.0, noise / max(float(apart.sum()), 1e-12)) if noise > 0 else 0.0
    return np.asarray((1.0 - pull) * found + pull / k)


def measured_channel(
    truth: IntArray, released: IntArray, shape: tuple[int, int], claimed: FloatArray | None
) -> FloatArray:
    """Return the channel as counted on rows with true labels, float64 of shape (k, m).

    Each row is shrunk towards the claimed one, worth 20 rows, or without a claim towards the
    uniform distribution, worth one.
    """
    k, m = shape
    counts = np.bincount(truth * m + released, minlength=k * m).reshape(k, m)
    pull = np.full(shape, 1.0 / m) if claimed is None else _CLAIMED_ROWS * claimed
    table = counts + pull
    return np.asarray(table / table.sum(axis=1, keepdims=True))


@dataclass(frozen=True)
class Frequencies:
    """The model that looks at no features: the class frequencies, float64 of shape (k,)."""

    prior: FloatArray

    def predict(self, features: FeatureTable) -> FloatArray:
        """Return the class frequencies for every row, float64 of shape (n, k)."""
        return np.tile(self.prior, (len(features), 1))
