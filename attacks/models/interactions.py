"""Logistic regression on the values of columns and of pairs of columns, where rows repeat.

Where there are few distinct rows of features, a model of P(y | x) needs only the counts of labels
in each: so it can be fitted many times, with a coefficient for every value of a column and for
every pair of values of two columns. Each kind has its own ridge penalty, chosen by
cross-validation: a hierarchy that shrinks pairs towards the effects of their columns alone.
"""

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from scipy.optimize import minimize
from scipy.special import softmax

from ldpaudit.attacks.models.cells import Cells
from ldpaudit.attacks.models.interaction_design import CrossDesign
from ldpaudit.attacks.models.parts import Labelled, floored
from ldpaudit.release import FeatureTable, FloatArray, IndexArray

_FLOOR = 1e-6
_FEWEST_ROWS = 1_000
_ROWS_PER_CELL = 3
_MOST_WORK = 4_000_000
_MOST_WEIGHTS = 200_000
_PENALTIES: Final = tuple(
    (penalty, 10 * penalty) for penalty in (10_000.0, 1_000.0, 300.0, 100.0, 30.0, 10.0, 3.0, 1.0)
)
"""Ridge penalties of single columns and of pairs: inverse prior variances of the coefficients."""
_TRIAL_ROUNDS = 60
_ROUNDS = 150

Penalties = tuple[float, float]


@dataclass(frozen=True)
class CrossesPart:
    """Multinomial logistic regression on columns and pairs of columns.

    Attributes
    ----------
    design : CrossDesign
        w columns.
    weights : float64 array of shape (w, k)
        Logits beyond those of the class frequencies.
    prior : float64 array of shape (k,)
        The class frequencies, above 0.
    penalties : tuple of two floats
        The ridge penalties that it was fitted with.
    """

    design: CrossDesign
    weights: FloatArray
    prior: FloatArray
    penalties: Penalties

    def predict(self, features: FeatureTable) -> FloatArray:
        """Return P(y | x), float64 of shape (n, k), every entry above 0."""
        logits = self.design.transform(features) @ self.weights + np.log(self.prior)
        return floored(softmax(logits, axis=1), _FLOOR)


@dataclass(frozen=True)
class CountLoss:
    """The penalised forward log-loss of counts of released labels, and its gradient.

    Attributes
    ----------
    matrix : sparse matrix of shape (c, w)
        The design of each cell.
    counts : float64 array of shape (c, m)
        Released labels in each cell.
    transition : float64 array of shape (k, m)
        The channel.
    offset : float64 array of shape (k,)
        Logits without any effect.
    penalty : float64 array of shape (w, 1)
        Of each coefficient.
    """

    matrix: Any
    counts: FloatArray
    transition: FloatArray
    offset: FloatArray
    penalty: FloatArray

    def __call__(self, flat: FloatArray) -> tuple[float, FloatArray]:
        """Return the loss, a mean over rows in nats, and its gradient, for flattened weights."""
        weights = flat.reshape(self.matrix.shape[1], len(self.transition))
        posterior, evidence = self._predicted(weights)
        pull = posterior * ((self.counts / evidence) @ self.transition.T)
        residual = pull - posterior * pull.sum(axis=1, keepdims=True)
        n = max(self.counts.sum(), 1.0)
        loss = -(self.counts * np.log(evidence)).sum() + (self.penalty * weights**2).sum() / 2
        gradient = self.penalty * weights - self.matrix.T @ residual
        return float(loss / n), np.asarray(gradient / n).ravel()

    def fitted(self, start: FloatArray | None, rounds: int) -> FloatArray:
        """Return the weights of least loss, float64 of shape (w, k), found by L-BFGS."""
        shape = (self.matrix.shape[1], len(self.transition))
        first = np.zeros(shape) if start is None else start
        optimum = minimize(
            self,
            first.ravel(),
            jac=True,
            method="L-BFGS-B",
            options={"maxiter": rounds, "ftol": 1e-9},
        )
        return np.asarray(optimum.x, dtype=np.float64).reshape(shape)

    def unpenalised(self, weights: FloatArray) -> float:
        """Return the mean forward log-loss of the counts without the penalty."""
        _, evidence = self._predicted(weights)
        return -float((self.counts * np.log(evidence)).sum() / max(self.counts.sum(), 1.0))

    def _predicted(self, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the probabilities of true and of released labels in each cell."""
        posterior = softmax(self.matrix @ weights + self.offset, axis=1)
        return posterior, np.maximum(posterior @ self.transition, 1e-300)


def fit_crosses(
    table: Labelled,
    training: IndexArray,
    rng: np.random.Generator,
    penalties: Penalties | None = None,
) -> CrossesPart | None:
    """Fit the model on the counts of labels in each distinct row.

    None with fewer than 1,000 rows, fewer than three rows for each distinct one on average, fewer
    than two varying columns, or too many values or pairs.

    Parameters
    ----------
    table : Labelled
    training : int64 array
        Rows to fit on; the penalties are chosen on random halves of them.
    rng : numpy.random.Generator
        Draws the halves.
    penalties : tuple of two floats, optional
        Of columns and pairs; by default chosen.
    """
    repeated = _distinct_rows(table, training)
    if repeated is None:
        return None
    cells, distinct, design = repeated
    matrix, codes = design.transform(distinct), table.codes[training]
    half = rng.permutation(len(training)) % 2
    outputs = table.transition.shape[1]
    counts = [cells.take(half == h).counts(codes[half == h], outputs) for h in (0, 1)]

    def loss(of: FloatArray, penalties: Penalties) -> CountLoss:
        each = np.where(design.pairs, penalties[1], penalties[0])[:, None]
        return CountLoss(matrix, of, table.transition, np.log(table.prior), each)

    start = None
    if penalties is None:
        penalties, start = _chosen([[loss(of, p) for of in counts] for p in _PENALTIES])
    weights = loss(counts[0] + counts[1], penalties).fitted(start, _ROUNDS)
    return CrossesPart(design, weights, table.prior, penalties)


def _distinct_rows(
    table: Labelled, training: IndexArray
) -> tuple[Cells, FeatureTable, CrossDesign] | None:
    """Return the cells, one row of each, and the design; None where the model does not apply."""
    if len(training) < _FEWEST_ROWS:
        return None
    rows = table.features.take(training)
    cells = Cells.fit(rows)
    if len(cells) * _ROWS_PER_CELL > len(training):
        return None
    distinct = rows.take(cells.representatives)
    design, k = CrossDesign.fit(distinct), len(table.transition)
    if design is None or design.width * k > _MOST_WEIGHTS:
        return None
    return (cells, distinct, design) if len(cells) * design.crosses * k <= _MOST_WORK else None


def _chosen(path: list[list[CountLoss]]) -> tuple[Penalties, FloatArray]:
    """Return the penalties of least two-fold loss, strongest first, and weights to start from."""
    starts: list[FloatArray | None] = [None, None]
    best: tuple[float, int, FloatArray] | None = None
    for step, (one, other) in enumerate(path):
        fitted = [one.fitted(starts[0], _TRIAL_ROUNDS), other.fitted(starts[1], _TRIAL_ROUNDS)]
        judged = other.unpenalised(fitted[0]) + one.unpenalised(fitted[1])
        if best is not None and judged > best[0]:
            break
        starts = list(fitted)
        best = (judged, step, (fitted[0] + fitted[1]) / 2)
    assert best is not None
    return _PENALTIES[best[1]], best[2]
