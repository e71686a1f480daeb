"""Rows for models that take numbers only: standardised, missing values flagged, codes one-hot."""

from dataclasses import dataclass

import numpy as np

from ldpaudit.release import BoolArray, Float32Array, FloatArray

_MOST_LEVELS = 40
_CLIP = 8.0


@dataclass(frozen=True)
class Inputs:
    """Learnt on fitting rows.

    Attributes
    ----------
    numeric : bool array of shape (d,)
        Numeric columns that vary.
    means, scales : float64 arrays
        Of those columns.
    flagged : bool array
        Which of those columns get a flag where a value is missing.
    levels : tuple of (column, codes)
        The codes of each categorical column that get an indicator.
    """

    numeric: BoolArray
    means: FloatArray
    scales: FloatArray
    flagged: BoolArray
    levels: tuple[tuple[int, FloatArray], ...]

    @classmethod
    def fit(cls, rows: Float32Array, categorical: BoolArray) -> "Inputs":
        """Learn means, scales and frequent codes."""
        values = rows.astype(np.float64)
        there = ~np.isnan(values)
        count = np.maximum(there.sum(axis=0), 1)
        means = np.where(there, values, 0).sum(axis=0) / count
        scales = np.sqrt((np.where(there, values - means, 0) ** 2).sum(axis=0) / count)
        numeric = ~categorical & (scales > 1e-12 * np.maximum(np.abs(means), 1e-30))
        flagged = np.asarray((~there).any(axis=0))[numeric]
        levels = tuple((int(c), _frequent(rows[:, c])) for c in np.flatnonzero(categorical))
        return cls(numeric, means[numeric], scales[numeric], flagged, levels)

    def transform(self, rows: Float32Array) -> Float32Array:
        """Return the matrix, float32 of shape (n, width)."""
        values = rows[:, self.numeric]
        missing = np.isnan(values)
        scaled = np.where(missing, 0, (values - self.means) / self.scales)
        blocks = [np.clip(scaled, -_CLIP, _CLIP), missing[:, self.flagged]]
        blocks += [rows[:, [column]] == codes for column, codes in self.levels]
        return np.concatenate([np.asarray(b, dtype=np.float32) for b in blocks], axis=1)


def _frequent(codes: Float32Array) -> FloatArray:
    found, counts = np.unique(codes[~np.isnan(codes)], return_counts=True)
    return np.asarray(found[np.argsort(-counts)[:_MOST_LEVELS]], dtype=np.float64)
