"""Standardised features, fitted on weighted rows."""

from dataclasses import dataclass

import numpy as np

from ldpaudit.release import FloatArray


@dataclass(frozen=True)
class Scaling:
    """Column means and scales, float64 of shape (d,); a column that does not vary has scale 1."""

    means: FloatArray
    scales: FloatArray

    @classmethod
    def fit(cls, matrix: FloatArray, weights: FloatArray) -> "Scaling":
        """Learn from rows (n, d) with weights (n,), not negative and not all zero."""
        share = weights / weights.sum()
        means = share @ matrix
        deviations = matrix - means
        scales = np.sqrt(share @ deviations**2)
        # Rounding leaves a constant column a scale of some 1e-16 of its mean.
        constant = scales <= 1e-12 * np.maximum(np.abs(means), 1e-30)
        return cls(means, np.where(constant, 1.0, scales))

    def pooled(self) -> "Scaling":
        """Return one mean and scale for all columns: an image's pixels keep their contrast."""
        spread = np.sqrt(float(np.mean(self.scales**2 + (self.means - self.means.mean()) ** 2)))
        return Scaling(
            np.full_like(self.means, self.means.mean()), np.full_like(self.means, spread)
        )

    def transform(self, matrix: FloatArray) -> FloatArray:
        """Return (matrix − means)/scales, float64 of shape (n, d)."""
        return np.asarray((matrix - self.means) / self.scales)
