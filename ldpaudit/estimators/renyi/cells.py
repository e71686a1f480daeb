"""A table over cells of a guess of log dP/dQ, in place of the guess itself."""

from dataclasses import dataclass

import numpy as np

from ldpaudit.release import FloatArray

_BIN_ROWS = 60
_MOST_BINS = 60
_TRUST = 20.0


@dataclass(frozen=True)
class CellMap:
    """The log ratio of counts in cells of the guess, shrunk towards the cell's mean guess.

    With a fixed table the variational bound is a bound on the divergence between the distributions
    over cells, with all cells counted jointly; grouping only loses divergence.
    """

    edges: FloatArray
    table: FloatArray

    @classmethod
    def fit(cls, p: FloatArray, q: FloatArray) -> "CellMap":
        """Learn quantile cells and their log ratios from guesses for rows of P and of Q."""
        both = np.concatenate([p, q])
        bins = int(np.clip(2 * min(len(p), len(q)) // _BIN_ROWS, 2, _MOST_BINS))
        edges = np.unique(np.quantile(both, np.arange(1, bins) / bins))
        cells = np.searchsorted(edges, both, side="right")
        size = np.bincount(cells, minlength=len(edges) + 1)
        mean = np.bincount(cells, both, minlength=len(edges) + 1) / np.maximum(size, 1)
        share = len(p) / len(both)
        odds = np.exp(np.clip(mean, -20, 20)) * share / (1 - share)
        prior = odds / (1 + odds)
        hits = np.bincount(cells[: len(p)], minlength=len(edges) + 1) + _TRUST * prior
        misses = np.bincount(cells[len(p) :], minlength=len(edges) + 1) + _TRUST * (1 - prior)
        table = np.log(hits / len(p)) - np.log(misses / len(q))
        return cls(np.asarray(edges), np.asarray(table))

    def __call__(self, guess: FloatArray) -> FloatArray:
        """Return the table's entry for each guess, float64 of the same shape."""
        return np.asarray(self.table[np.searchsorted(self.edges, guess, side="right")])
