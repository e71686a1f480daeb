"""Class frequencies and channels from counts of labels."""

from dataclasses import dataclass

import numpy as np

from ldpaudit.attacks.feature_cells import shrunk_cell_posteriors
from ldpaudit.release import FeatureTable, FloatArray, IntArray

_CLAIMED_ROWS = 20.0


def clean_prior(released: IntArray, transition: FloatArray) -> FloatArray:
    """Return the class frequencies behind released labels, float64 of shape (k,).

    The maximum-likelihood estimate under the channel, with one row's worth of the uniform
    distribution; all entries are above 0.
    """
    k, m = transition.shape
    counts = np.bincount(released, minlength=m).astype(np.float64)
    uniform = np.full((1, k), 1.0 / k)
    return shrunk_cell_posteriors(counts[None, :], transition, uniform, 1.0).ravel()


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
