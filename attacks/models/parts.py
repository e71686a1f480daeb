"""The models of P(y | x) that a posterior model blends: each fitted on some rows of one table."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ldpaudit.learners.corrections import clean_posterior, forward_losses
from ldpaudit.learners.logistic import LogisticModel, fit_forward_logistic
from ldpaudit.mechanisms.channel import Channel
from ldpaudit.modelling.encoding import BoostingMatrix, DesignMatrix
from ldpaudit.modelling.screening import TREE_COLUMNS, Screen, most_bins, screened
from ldpaudit.randomness import integer_seed
from ldpaudit.release import FeatureTable, FloatArray, IndexArray, IntArray

_PART_FLOOR = 1e-6
_INVERTED_FLOOR = 0.01
_LOGISTIC_WORK = 4e8
_BOOSTING_WORK = 4e8
_BOOSTED_CLASSES = 12
_ITERATIONS = 100
_FEWEST_ROWS = 2_000
_PENALTIES = (1000.0, 30.0, 1.0)
_ROWS_PER_WEIGHT = 50


@dataclass(frozen=True)
class Labelled:
    """Rows with labels that went through a channel.

    Attributes
    ----------
    features : FeatureTable
        n rows.
    codes : int32 array of shape (n,)
        Columns of ``transition``.
    transition : float64 array of shape (k, m)
        The channel, the identity where labels are not noisy.
    channel : Channel or None
        The same as an object where labels are noisy.
    prior : float64 array of shape (k,)
        The class frequencies behind the codes.
    """

    features: FeatureTable
    codes: IntArray
    transition: FloatArray
    channel: Channel | None
    prior: FloatArray

    @property
    def contrast(self) -> float:
        """What the channel leaves of a difference: its second singular value, 1 without noise."""
        return float(np.linalg.svd(self.transition, compute_uv=False)[1])

    def take(self, rows: IndexArray) -> "Labelled":
        """Return the table of the given rows; the class frequencies stay."""
        return replace(self, features=self.features.take(rows), codes=self.codes[rows])

    def screened(self, screen: Screen) -> "Labelled":
        """Return the table of the columns that a screen keeps."""
        return replace(self, features=screen.transform(self.features))

    def likelihood(self, rows: IndexArray) -> FloatArray:
        """Return T[y, code] for every class y and each row, float64 of shape (rows, k)."""
        likelihood: FloatArray = self.transition.T[self.codes[rows]]
        return likelihood


@dataclass(frozen=True)
class LogisticPart:
    """Ridge-penalised multinomial logistic regression."""

    design: Any
    model: LogisticModel
    penalty: float

    def predict(self, features: FeatureTable) -> FloatArray:
        """Return P(y | x), float64 of shape (n, k), every entry above 0."""
        return floored(self.model.predict(self.design.transform(features)), _PART_FLOOR)


@dataclass(frozen=True)
class BoostingPart:
    """Histogram gradient boosting on the codes, its probabilities inverted through the channel."""

    design: Any
    model: Any
    observed: IntArray
    outputs: int
    channel: Channel | None
    prior: FloatArray

    def predict(self, features: FeatureTable) -> FloatArray:
        """Return P(y | x), float64 of shape (n, k), every entry above 0."""
        probability = np.zeros((len(features), self.outputs))
        probability[:, self.observed] = self.model.predict_proba(self.design.transform(features))
        if self.channel is None:
            return floored(probability, _PART_FLOOR)
        clean = clean_posterior(probability, self.channel)
        return np.asarray((1 - _INVERTED_FLOOR) * clean + _INVERTED_FLOOR * self.prior)


def fit_logistic(
    table: Labelled,
    training: IndexArray,
    validation: IndexArray,
    rng: np.random.Generator,
    penalty: float | None = None,
) -> LogisticPart | None:
    """Fit a logistic regression, None where no column varies.

    Parameters
    ----------
    table : Labelled
    training, validation : int64 arrays
        Rows to fit on, and rows that choose the penalty.
    rng : numpy.random.Generator
        Thins the rows of large tables.
    penalty : float, optional
        The ridge penalty; by default chosen, and 1 where rows are many.
    """
    design = DesignMatrix.fit(table.features.take(training))
    if design.width == 0:
        return None
    work = design.width * len(table.transition)
    rows = _thinned(training, work, _LOGISTIC_WORK, rng)
    if penalty is None and len(rows) * table.contrast**2 > _ROWS_PER_WEIGHT * work:
        penalty = _PENALTIES[-1]
    matrix = design.transform(table.features.take(rows))
    held = design.transform(table.features.take(validation))
    parts: list[LogisticPart] = []
    for ridge in _PENALTIES if penalty is None else (penalty,):
        start = parts[-1].model if parts else None
        model = fit_forward_logistic(matrix, table.codes[rows], table.transition, ridge, start)
        parts.append(LogisticPart(design, model, ridge))
    if len(parts) == 1:
        return parts[0]
    likelihood = table.likelihood(validation)
    losses = np.stack([forward_losses(part.model.predict(held), likelihood) for part in parts])
    clean = table.channel is None
    return parts[int(losses.mean(axis=1).argmin()) if clean else _simplest_good(losses)]


def fit_boosting(
    table: Labelled, training: IndexArray, rng: np.random.Generator
) -> BoostingPart | None:
    """Fit histogram gradient boosting.

    None where a label has too few rows, more than 12 labels occur, or the channel has no inverse,
    and where the tenth of the rows on which boosting stops cannot hold every label.
    """
    from sklearn.ensemble import HistGradientBoostingClassifier

    labels = len(np.unique(table.codes[training]))
    rank = np.linalg.matrix_rank(table.transition, tol=1e-9)
    if not 2 <= labels <= _BOOSTED_CLASSES or rank < len(table.transition):
        return None
    trees = 1 if labels == 2 else labels
    iterations = int(np.clip(300 // trees, 20, _ITERATIONS))
    width = min(table.features.width, TREE_COLUMNS)
    rows = _thinned(training, width * trees * iterations, _BOOSTING_WORK, rng)
    observed, counts = np.unique(table.codes[rows], return_counts=True)
    features = table.features.take(rows)
    design = screened(BoostingMatrix, features, table.codes[rows], TREE_COLUMNS)
    too_few = counts.min() < 2 or len(rows) < 10 * len(observed)
    if len(observed) < 2 or too_few or not design.width:
        return None
    model = HistGradientBoostingClassifier(
        learning_rate=0.1 * (100 / iterations) ** 0.5,
        max_iter=iterations,
        min_samples_leaf=max(20, len(rows) // 2000),
        l2_regularization=1.0,
        categorical_features=design.categorical(),
        max_bins=most_bins(design.width, design.categorical()),
        early_stopping=True,
        n_iter_no_change=8,
        random_state=integer_seed(rng),
    )
    model.fit(design.transform(features), table.codes[rows])
    outputs = table.transition.shape[1]
    return BoostingPart(design, model, observed, outputs, table.channel, table.prior)


def _thinned(
    rows: IndexArray, work_per_row: float, budget: float, rng: np.random.Generator
) -> IndexArray:
    most = max(int(budget / max(work_per_row, 1.0)), _FEWEST_ROWS)
    if len(rows) <= most:
        return rows
    return np.sort(rng.choice(rows, size=most, replace=False))


def floored(probability: FloatArray, floor: float) -> FloatArray:
    """Return probabilities mixed with the uniform distribution so that none is below ``floor``."""
    return np.asarray((1.0 - probability.shape[1] * floor) * probability + floor)


def _simplest_good(losses: FloatArray) -> int:
    """Return the first model that is no more than one standard error worse than the best.

    ``losses``, of shape (models, n), are those of the same rows, simpler models first.
    """
    best = int(losses.mean(axis=1).argmin())
    worse = losses - losses[best]
    error = worse.std(axis=1) / np.sqrt(losses.shape[1])
    return int(np.argmax(worse.mean(axis=1) <= error))
