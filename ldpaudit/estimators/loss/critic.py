"""Critics: guesses of the log-odds of each label given features and released label.

A bound on a divergence holds for any guess that was fixed before the rows it is taken on; a better
guess only makes the bound larger. So a critic may rest on a wrong model or a wrong channel without
making anything invalid.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import expit, logit

from ldpaudit.release import BoolArray, FloatArray, IndexArray, IntArray

_BIN_ROWS = 60
_MOST_BINS = 60


@dataclass(frozen=True)
class HeldOut:
    """Rows that no model has seen, and what the fitting rows say about them.

    Attributes
    ----------
    posterior : float64 array of shape (n, k)
        P(y | x) of the held-out rows by a model of the fitting rows, positive.
    labels, released : int32 arrays of shape (n,)
        The held-out rows' true and released labels.
    prior : float64 array of shape (k,)
        Label shares among the fitting rows, inside (0, 1).
    channel : float64 array of shape (k, m)
        P(z | y) measured on the fitting rows, positive.
    """

    posterior: FloatArray
    labels: IntArray
    released: IntArray
    prior: FloatArray
    channel: FloatArray

    def __len__(self) -> int:
        """Return the number of rows n."""
        return len(self.labels)

    def take(self, rows: IndexArray | slice) -> "HeldOut":
        """Return the given rows."""
        return HeldOut(
            self.posterior[rows], self.labels[rows], self.released[rows], self.prior, self.channel
        )


@dataclass(frozen=True)
class ModelCritic:
    """The Donsker–Varadhan critic: a model's posterior times a channel, as log-odds.

    Parameters
    ----------
    channel : float64 array of shape (k, m)
        P(z | y), positive, estimated on the rows that the model was fitted on.
    """

    channel: FloatArray

    def log_odds(self, posterior: FloatArray, released: IntArray) -> FloatArray:
        """Return log of η_y T[y,z] / Σ_{j≠y} η_j T[j,z], float64 of shape (n, k)."""
        weights = posterior * self.channel.T[released]
        others = weights.sum(axis=1, keepdims=True) - weights
        return np.asarray(np.log(weights) - np.log(np.maximum(others, 1e-9 * weights)))

    def largest_odds(self) -> None:
        """Return None: the odds of all labels are those of one probability vector."""
        return None


@dataclass(frozen=True)
class CellCritic:
    """Cells of a model's score: quantile bins crossed with whether z speaks for the label.

    Each label has its own cells; a cell's log-odds are those of its tuning rows, shrunk towards the
    model's.

    Attributes
    ----------
    model : ModelCritic
        Gives the score that is binned.
    supports : bool array of shape (k, m)
        Whether z is likelier under y than under the other labels together.
    edges : float64 array of shape (k, 2, b − 1)
        Inner bin edges of each label, for rows against and for it.
    table : float64 array of shape (k, 2, b)
        The log-odds.
    """

    model: ModelCritic
    supports: BoolArray
    edges: FloatArray
    table: FloatArray

    @classmethod
    def fit(cls, tuning: HeldOut, trust: float) -> "CellCritic":
        """Learn cells and their log-odds from tuning rows, scored by a model of other rows.

        ``trust`` is the number of rows that a cell's average model score counts for.
        """
        k, labels, released = len(tuning.prior), tuning.labels, tuning.released
        model = ModelCritic(tuning.channel)
        bins = int(np.clip(len(labels) // _BIN_ROWS, 2, _MOST_BINS))
        scores = model.log_odds(tuning.posterior, released)
        supports = _supports(tuning.channel, tuning.prior)
        edges = np.empty((k, 2, bins - 1))
        table = np.empty((k, 2, bins))
        for y in range(k):
            side = supports[y, released].astype(np.int64)
            edges[y] = _quantile_edges(scores[:, y], side, bins)
            cell = _cells(scores[:, y], side, edges[y])
            table[y] = _cell_log_odds(cell, labels == y, scores[:, y], bins, trust)
        return cls(model, supports, edges, table)

    def log_odds(self, posterior: FloatArray, released: IntArray) -> FloatArray:
        """Return the log-odds of each row's cells, float64 of shape (n, k)."""
        scores = self.model.log_odds(posterior, released)
        for y in range(scores.shape[1]):
            side = self.supports[y, released].astype(np.int64)
            cell = _cells(scores[:, y], side, self.edges[y])
            scores[:, y] = self.table[y].ravel()[cell]
        return scores

    def largest_odds(self) -> FloatArray:
        """Return the largest odds in each label's table."""
        return np.asarray(np.exp(self.table.max(axis=(1, 2))))


Critic = ModelCritic | CellCritic
"""Guesses log-odds of each label against all others, given (x, z)."""


def _supports(channel: FloatArray, prior: FloatArray) -> BoolArray:
    joint = prior[:, None] * channel
    others = (joint.sum(axis=0) - joint) / (1 - prior)[:, None]
    return np.asarray(channel > others)


def _quantile_edges(scores: FloatArray, side: IndexArray, bins: int) -> FloatArray:
    levels = np.arange(1, bins) / bins
    edges = np.zeros((2, bins - 1))
    for s in (0, 1):
        chosen = scores[side == s]
        if len(chosen):
            edges[s] = np.quantile(chosen, levels)
    return edges


def _cells(scores: FloatArray, side: IndexArray, edges: FloatArray) -> IndexArray:
    bins = edges.shape[1] + 1
    against = np.searchsorted(edges[0], scores, side="right")
    speaking_for = np.searchsorted(edges[1], scores, side="right")
    return np.asarray(np.where(side == 1, bins + speaking_for, against))


def _cell_log_odds(
    cell: IndexArray, is_label: BoolArray, scores: FloatArray, bins: int, trust: float
) -> FloatArray:
    size = np.bincount(cell, minlength=2 * bins)
    hits = np.bincount(cell, is_label, minlength=2 * bins)
    score = np.bincount(cell, expit(scores), minlength=2 * bins)
    model = np.clip(np.where(size > 0, score / np.maximum(size, 1), 0.5), 1e-6, 1 - 1e-6)
    share = (hits + trust * model) / (size + trust)
    return np.asarray(logit(share).reshape(2, bins))
