"""The space in which neighbours are near: a feature table as a float32 matrix under L2 distance."""

# ``l2`` and ``raw`` look at features only, so every row may be an index row or a query. The
# ``learned`` metric is :func:`score_space` of a model's posteriors: index rows and queries must
# then both be rows that the model was not fitted on.

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from ldpaudit.errors import InputError
from ldpaudit.models.encoding import DesignMatrix, LevelsInAll, Limits
from ldpaudit.randomness import integer_seed
from ldpaudit.release import FeatureTable, Float32Array, FloatArray, IndexArray

MetricName = Literal["l2", "raw"]

LEARNED_DESCRIPTION = (
    "log-ratios of a model's class probabilities, the model fitted on rows that are neither "
    "index rows nor queries"
)

# Standardised values are cut at ± this, so that one odd value does not outweigh all columns.
_STANDARD_DEVIATIONS = 5.0
# More levels than these, over all categorical columns, are merged, the rarest first.
MAX_LEVELS = 256

# Where levels are merged at all, those on a smaller share of the rows are among them.
_LEVELS = LevelsInAll(MAX_LEVELS, 0.0005)
_LIMITS = {
    "l2": Limits(_LEVELS, _STANDARD_DEVIATIONS, single=True),
    "raw": Limits(_LEVELS, single=True, standardise=False),
}
_CELLS_AT_ONCE = 16_000_000


@dataclass(frozen=True)
class ColumnMetric:
    """Coded columns, or their principal components where the columns are too many."""

    design: DesignMatrix
    """Turns columns into coordinates."""
    components: Any
    """The projection, None where the coordinates are few."""
    description: str
    """What was done to the columns, in words for the report."""

    @property
    def dimensions(self) -> int:
        """The width of the points."""
        if self.components is None:
            return self.design.width
        return int(self.components.n_components_)

    def transform(self, table: FeatureTable, rows: IndexArray | None = None) -> Float32Array:
        """Return the points of some rows (None: all) of a table, float32 of (n, dimensions).

        Works in batches: no further copy of the table is made.
        """
        n = len(table) if rows is None else len(rows)
        points = np.empty((n, self.dimensions), dtype=np.float32)
        cells = 4_000_000 if self.components is None else _CELLS_AT_ONCE
        batch = max(1, cells // max(1, self.design.width))
        for start in range(0, n, batch):
            part = np.arange(start, min(start + batch, n))
            coded = self.design.transform(table.take(part if rows is None else rows[part]))
            points[part] = coded if self.components is None else self.components.transform(coded)
        return points


def fit_metric(
    table: FeatureTable,
    name: MetricName = "l2",
    *,
    rng: np.random.Generator,
    max_dimensions: int = 64,
) -> ColumnMetric:
    """Fit a metric on feature rows alone; no label takes part.

    Parameters
    ----------
    table : FeatureTable
        The features.
    name : {"l2", "raw"}
        ``l2``: numeric columns in units of their standard deviation, cut at ± 5, missing values
        replaced by the median and marked in a coordinate of their own. ``raw``: numeric columns
        as they are (missing: the median), the distance of the paper. Categorical columns are one
        0/1 coordinate per level in both.
    rng : numpy.random.Generator
        Draws the rows to fit on where there are more than 200,000.
    max_dimensions : int
        More coordinates than these are projected on as many principal components. With 64 the
        log-loss of η̂ was 0.338 on Adult (0.338 with all 110), 0.881 on diabetes130 (0.880 with
        all 292) and 0.26 on MNIST digits (0.31 with all 696), the search up to 2.5 times faster.

    Returns
    -------
    ColumnMetric
        Whose ``transform`` gives the points of any rows.

    Raises
    ------
    ldpaudit.errors.InputError
        If no column tells rows apart in this metric.

    References
    ----------
    Busa-Fekete, Munoz Medina, Syed, Vassilvitskii (2023), "Label differential privacy and private
    training data release", section 8.1: nearest neighbours under the L2 distance.
    """
    sample = table.take(_thinned(len(table), 200_000, rng))
    design = DesignMatrix.fit(sample, _LIMITS[name])
    if design.width == 0:
        raise InputError(f"No feature column distinguishes rows in the metric '{name}'.")
    words = _described(name, design)
    if design.width <= max_dimensions:
        return ColumnMetric(design, None, words)
    components = _fitted_components(sample, design, max_dimensions, rng)
    share = float(components.explained_variance_ratio_.sum())
    words += (
        f", projected on the first {components.n_components_} principal components "
        f"({100 * share:.0f} % of the variance)"
    )
    return ColumnMetric(design, components, words)


def score_space(posterior: FloatArray) -> Float32Array:
    """Return the points of the learned metric: what a model thinks of each row, as log-ratios.

    For two classes one coordinate, the log-odds. For K classes the K − 1 isometric log-ratios:
    the L2 distance of two rows is then that of their centred log-probabilities, the same whatever
    the order of the classes.

    Parameters
    ----------
    posterior : float64 array of shape (n, K), K ≥ 2
        Class probabilities given the features, by a model fitted on rows other than these n. With
        cross-fitted posteriors of two halves take index rows and queries from one half: one model
        scored both and saw the labels of neither.

    Returns
    -------
    float32 array of shape (n, K − 1)
        Probabilities below 1e-6 count as 1e-6.
    """
    if posterior.ndim != 2 or posterior.shape[1] < 2:
        raise InputError("The posterior must have one column for each of at least two classes.")
    from scipy.linalg import helmert

    logs = np.log(np.maximum(posterior, 1e-6))
    if posterior.shape[1] == 2:
        return np.asarray(logs[:, 1:] - logs[:, :1], dtype=np.float32)
    return np.asarray(logs @ helmert(posterior.shape[1]).T, dtype=np.float32)


def _thinned(n: int, most: int, rng: np.random.Generator) -> IndexArray:
    return np.arange(n) if n <= most else np.sort(rng.choice(n, most, replace=False))


def _fitted_components(
    sample: FeatureTable, design: DesignMatrix, dimensions: int, rng: np.random.Generator
) -> Any:
    from sklearn.decomposition import PCA

    rows = _thinned(len(sample), max(1, _CELLS_AT_ONCE // design.width), rng)
    coded = design.transform(sample.take(rows))
    return PCA(min(dimensions, *coded.shape), random_state=integer_seed(rng)).fit(coded)


def _described(name: MetricName, design: DesignMatrix) -> str:
    words = "L2 distance"
    if len(design.columns):
        scaled = f"in standard deviations (cut at ± {_STANDARD_DEVIATIONS:g})"
        words += (
            f", {len(design.columns)} numeric columns {'as they are' if name == 'raw' else scaled}"
        )
    if len(design.marked):
        words += f", {len(design.marked)} of them with a mark for missing values"
    if design.indicators:
        words += f", categorical columns as {design.indicators} 0/1 coordinates"
    if design.merged:
        words += f" ({design.merged} rare levels merged within their columns)"
    return words
