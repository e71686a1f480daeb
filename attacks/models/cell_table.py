"""The counts of identical rows as a part of a posterior model, where cells are few."""

from dataclasses import dataclass

import numpy as np

from ldpaudit.attacks.interface import Model
from ldpaudit.attacks.models.cells import Cells, shrunk_cell_posteriors
from ldpaudit.attacks.models.parts import Labelled
from ldpaudit.release import FloatArray, IndexArray

_MOST_CELLS = 20_000
_REPEATED = 0.9
"""The largest share of distinct rows at which cells are tried, where they are not too many."""
_CELL_WEIGHTS = (1.0, 4.0, 16.0, 64.0, 256.0, 1024.0, 4096.0)


@dataclass(frozen=True)
class CellTable:
    """The posterior of each cell of identical rows, float64 of shape (cells, K).

    ``weight`` is how many rows the blend is worth in a cell.
    """

    cells: Cells
    table: FloatArray
    weight: float


def cell_weight(blend: Model, table: Labelled, training: IndexArray) -> float:
    """Return how many rows the blend is worth in a cell; 0 where cells do not help or are many.

    Cells are filled from ``training``, the rows that the blend was fitted on, and judged by the
    forward log-loss on all others.
    """
    distinct, n = len(Cells.fit(table.features.take(training))), len(training)
    if distinct > (n // 3 if distinct > _MOST_CELLS else _REPEATED * n):
        return 0.0
    outputs = table.transition.shape[1]
    cells = Cells.fit(table.features)
    base = blend.predict(table.features.take(cells.representatives))
    filled = cells.take(training).counts(table.codes[training], outputs)
    others = cells.counts(table.codes, outputs) - filled

    def loss(posterior: FloatArray) -> float:
        return -float((others * np.log(posterior @ table.transition + 1e-300)).sum())

    best = (loss(base), 0.0)
    for weight in _CELL_WEIGHTS:
        trial = shrunk_cell_posteriors(filled, table.transition, base, weight)
        best = min(best, (loss(trial), weight))
    return best[1]


def cell_table(blend: Model, weight: float, table: Labelled) -> CellTable | None:
    """Return the cells of all rows, None where the weight is 0."""
    if weight == 0.0:
        return None
    cells = Cells.fit(table.features)
    base = blend.predict(table.features.take(cells.representatives))
    counts = cells.counts(table.codes, table.transition.shape[1])
    posterior = shrunk_cell_posteriors(counts, table.transition, base, weight)
    return CellTable(cells, posterior, weight)
