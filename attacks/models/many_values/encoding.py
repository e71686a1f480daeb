"""Columns of many values as numbers: what the labels of rows with the same value say.

A zip code, an employer or a combination of columns has too many values for an indicator each. Its
value is replaced by the log-odds of the labels among the rows that share it, corrected for the
channel and drawn towards the class frequencies. A row that a model is fitted on never takes part in
its own number: such rows are numbered in parts, each from the labels of the others.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import softmax

from ldpaudit.attacks.models.cells import Cells, shrunk_cell_posteriors
from ldpaudit.attacks.models.many_values.combinations import chosen_combinations
from ldpaudit.attacks.models.parts import Labelled, floored
from ldpaudit.learners.corrections import forward_loss
from ldpaudit.modelling.values import many_valued, projected
from ldpaudit.release import FeatureTable, Float32Array, FloatArray, IndexArray

_PARTS = 5
_WEIGHTS = (0.5, 2.0, 8.0, 32.0, 128.0, 512.0)
_JUDGED_CELLS = 2_000
_MOST_ADDED = 24
_MOST_CLASSES = 12
_LEAST_GAIN = 1e-4
_FLOOR = 1e-6

Effect = tuple[int, ...]


@dataclass(frozen=True)
class ValueLabels:
    """What the labels say about each value of a column, or combination of columns.

    Attributes
    ----------
    columns : tuple of int
        Numeric columns first.
    cells : Cells
        The values that were seen.
    logits : float32 array of shape (values + 1, k − 1)
        Log-odds against the last class beyond those of the class frequencies; the last row, for
        values that were not seen, is 0.
    prior : float64 array of shape (k,)
        The class frequencies, above 0.
    """

    columns: Effect
    cells: Cells
    logits: Float32Array
    prior: FloatArray

    def predict(self, features: FeatureTable) -> FloatArray:
        """Return P(y | value), float64 of shape (n, k), every entry above 0."""
        return self.posterior(self.transform(features))

    def posterior(self, numbers: Float32Array) -> FloatArray:
        """Return P(y | value) from the numbers of rows, float64 of shape (n, k)."""
        last = np.zeros((len(numbers), 1))
        logits = np.append(numbers.astype(np.float64), last, axis=1) + np.log(self.prior)
        return floored(softmax(logits, axis=1), _FLOOR)

    def transform(self, features: FeatureTable) -> Float32Array:
        """Return the numbers of each row, float32 of shape (n, k − 1)."""
        return self.logits[self.cells.locate(projected(features, self.columns))]


@dataclass(frozen=True)
class ValueEncoder:
    """Adds the numbers of columns of many values; categorical ones among them are left out.

    ``strongest`` predicts the labels of the training rows best, each by the labels of others.
    """

    effects: tuple[ValueLabels, ...]
    strongest: ValueLabels

    def transform(self, features: FeatureTable) -> FeatureTable:
        """Return the table with the added columns."""
        return self.extended(features, [effect.transform(features) for effect in self.effects])

    def extended(self, features: FeatureTable, added: list[Float32Array]) -> FeatureTable:
        """Return the table with these columns in place of the categorical ones they stand for."""
        d = features.numeric.shape[1]
        replaced = {e.columns[0] - d for e in self.effects if len(e.columns) == 1}
        kept = [j for j in range(features.categorical.shape[1]) if j not in replaced]
        return replace(
            features,
            numeric=np.concatenate([features.numeric, *added], axis=1),
            categorical=features.categorical[:, kept],
            cardinalities=tuple(features.cardinalities[j] for j in kept),
        )


@dataclass(frozen=True)
class EncodedDesign:
    """A design on encoded columns, as a design on the table itself."""

    encoder: ValueEncoder
    design: Any

    @property
    def effects(self) -> list[Effect]:
        """The columns and combinations that are encoded."""
        return [effect.columns for effect in self.encoder.effects]

    def transform(self, features: FeatureTable) -> Any:
        """Return the matrix of the rows."""
        return self.design.transform(self.encoder.transform(features))


def fit_encoder(
    table: Labelled,
    training: IndexArray,
    rng: np.random.Generator,
    effects: Sequence[Effect] | None = None,
) -> tuple[ValueEncoder | None, Labelled]:
    """Learn the numbers of columns of many values from the labels of the training rows.

    ``effects`` are the columns and combinations; by default they are chosen.

    Returns
    -------
    tuple
        The encoder, None where no column needs one, and the whole table encoded: training rows by
        the labels of other training rows, all others by those of every training row.
    """
    k = len(table.transition)
    if k > _MOST_CLASSES:
        return None, table
    rows = table.take(training)
    if effects is None:
        found = many_valued(rows.features)
        effects = [(j,) for j in found] + chosen_combinations(rows.features, rows.codes, found, rng)
        effects = effects[: max(_MOST_ADDED // (k - 1), 1)]
    part = rng.permutation(len(training)) % _PARTS
    fitted = [(e, a) for e, a in (_fitted(rows, effect, part) for effect in effects) if e]
    if not fitted:
        return None, table
    likelihood = rows.transition.T[rows.codes]
    strongest, _ = min(fitted, key=lambda f: forward_loss(f[0].posterior(f[1]), likelihood))
    encoder = ValueEncoder(tuple(effect for effect, _ in fitted), strongest)
    added = []
    for effect, crossed in fitted:
        numbers = effect.transform(table.features)
        numbers[training] = crossed
        added.append(numbers)
    return encoder, replace(table, features=encoder.extended(table.features, added))


def _fitted(
    rows: Labelled, columns: Effect, part: IndexArray
) -> tuple[ValueLabels | None, Float32Array]:
    """Return what the values say, and the numbers of the rows themselves, cross-fitted."""
    cells = Cells.fit(projected(rows.features, columns))
    outputs = rows.transition.shape[1]
    total = cells.counts(rows.codes, outputs)
    others = [
        total - cells.take(np.flatnonzero(part == p)).counts(rows.codes[part == p], outputs)
        for p in range(_PARTS)
    ]
    weight = _weight(rows, total, others)
    crossed = np.zeros((len(part), len(rows.prior) - 1), dtype=np.float32)
    if weight is None:
        return None, crossed
    for p, counts in enumerate(others):
        mine = np.flatnonzero(part == p)
        crossed[mine] = _logits(rows, counts, weight)[cells.members[mine]]
    unseen = np.zeros((1, crossed.shape[1]), dtype=np.float32)
    logits = np.append(_logits(rows, total, weight), unseen, axis=0)
    return ValueLabels(columns, cells, logits, rows.prior), crossed


def _weight(rows: Labelled, total: FloatArray, others: list[FloatArray]) -> float | None:
    """Return how many rows the class frequencies are worth; None where the values say nothing."""
    most = np.linspace(0, len(total) - 1, min(len(total), _JUDGED_CELLS)).astype(np.int64)
    n = max(float(total[most].sum()), 1.0)

    def loss(posteriors: Iterator[FloatArray]) -> float:
        pairs = zip(posteriors, others, strict=True)
        return sum(
            -float(((total - o)[most] * np.log(p @ rows.transition + 1e-300)).sum())
            for p, o in pairs
        )

    base = np.tile(rows.prior, (len(most), 1))
    best: tuple[float, float | None] = (loss(base for _ in others) - _LEAST_GAIN * n, None)
    for weight in _WEIGHTS:
        shrunk = (shrunk_cell_posteriors(o[most], rows.transition, base, weight) for o in others)
        trial = loss(shrunk)
        best = (trial, weight) if trial < best[0] else best
    return best[1]


def _logits(rows: Labelled, counts: FloatArray, weight: float) -> Float32Array:
    base = np.tile(rows.prior, (len(counts), 1))
    posterior = shrunk_cell_posteriors(counts, rows.transition, base, weight)
    logs = np.log(np.maximum(posterior / rows.prior, 1e-9))
    return np.asarray(logs[:, :-1] - logs[:, -1:], dtype=np.float32)
