"""Linear operators of the interval program, on the arcs of a line of label boundaries.

Node i is the boundary before label i (0-based), node k the end. The interval of labels i … j − 1 is
the arc from i to j. With growth = e^ε − 1, a column of the program is e^ε on the labels of its
interval and 1 on the others. In differences of neighbouring rows it has three entries: +1 at node
j, −1 at node i, and its entry at the last label. So the sums over all k²/2 columns that a Newton
step needs are sums along the rows and columns of one array.

Every array over arcs has shape (k + 1, k + 1), entry [i, j] for the arc from i to j; entries off
the arcs (j ≤ i, and the arc of all labels) must be 0 where they are summed.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ldpaudit.release import BoolArray, FloatArray


@dataclass(frozen=True)
class IntervalArcs:
    """The arcs of k labels at e^ε = 1 + growth.

    Multipliers are float64 vectors of shape (k,): entries 0 … k − 2 are the potentials of the inner
    nodes 1 … k − 1 times growth, entry k − 1 is the potential of the end. The multipliers of the
    labels are the differences of the potentials.
    """

    k: int
    growth: float

    @cached_property
    def mask(self) -> BoolArray:
        """Which entries are arcs: i < j, except the arc of all labels."""
        mask = np.triu(np.ones((self.k + 1, self.k + 1), dtype=np.bool_), 1)
        mask[0, self.k] = False
        return mask

    def spread(self, cumulative: FloatArray) -> FloatArray:
        """Return Σ_{labels} weight × column for cumulative weights of shape (k + 1,).

        The sum over all labels plus growth times the sum over the interval.
        """
        return np.asarray(
            cumulative[-1] + self.growth * (cumulative[None, :] - cumulative[:, None])
        )

    def columns(self, multipliers: FloatArray) -> FloatArray:
        """Return the product of the multipliers with each column, shape (k + 1, k + 1)."""
        potential = np.zeros(self.k + 1)
        potential[1 : self.k] = multipliers[:-1]
        product = potential[None, :] - potential[:, None] + multipliers[-1]
        product[:, self.k] += self.growth * multipliers[-1]
        return np.asarray(product)

    def columns_of(self, multipliers: FloatArray) -> FloatArray:
        """Return the same for multipliers of the labels, shape (k,)."""
        return self.spread(np.concatenate([[0.0], np.cumsum(multipliers)]))

    def total(self, amounts: FloatArray) -> FloatArray:
        """Return Σ amount × column over the arcs, shape (k,): the transpose of `columns`."""
        arriving, leaving = amounts.sum(axis=0), amounts.sum(axis=1)
        result = np.empty(self.k)
        result[:-1] = arriving[1 : self.k] - leaving[1 : self.k]
        result[-1] = amounts.sum() + self.growth * arriving[self.k]
        return result

    def normal(self, amounts: FloatArray) -> FloatArray:
        """Return Σ amount × column columnᵀ over the arcs, shape (k, k): a bordered Laplacian."""
        k, inner = self.k, amounts[1 : self.k, 1 : self.k]
        arriving, leaving = amounts.sum(axis=0), amounts.sum(axis=1)
        matrix = np.empty((k, k))
        matrix[:-1, :-1] = -(inner + inner.T)
        diagonal = np.arange(k - 1)
        matrix[diagonal, diagonal] += arriving[1:k] + leaving[1:k]
        border = arriving[1:k] - leaving[1:k] - self.growth * amounts[1:k, k]
        matrix[:-1, -1] = matrix[-1, :-1] = border
        high = 1 + self.growth
        matrix[-1, -1] = amounts.sum() + (high * high - 1) * arriving[k]
        return matrix

    def target(self, values: FloatArray) -> FloatArray:
        """Return Σ amount × column for the row sums ``values``, shape (k,) → (k,)."""
        result = np.empty(self.k)
        result[:-1] = -np.diff(values) / self.growth
        result[-1] = values[-1]
        return result

    def label_multipliers(self, multipliers: FloatArray) -> FloatArray:
        """Return the multipliers of the k labels' equations, shape (k,) → (k,)."""
        potential = np.zeros(self.k + 1)
        potential[1 : self.k] = multipliers[:-1] / self.growth
        potential[self.k] = multipliers[-1]
        return np.diff(potential)

    def random_partition(self, chance: float) -> FloatArray:
        """Return positive amounts with row sums 1: the bins of a random partition.

        Each inner boundary is drawn with probability ``chance``; an arc's amount is proportional
        to the probability that its interval is a bin. Shape (k + 1, k + 1).
        """
        node = np.arange(self.k + 1)
        inside = np.maximum(node[None, :] - node[:, None] - 1, 0)
        amounts = np.where(self.mask, (1 - chance) ** inside, 0.0)
        amounts[1:, :] *= chance
        amounts[:, : self.k] *= chance
        return np.asarray(amounts / self.total(amounts)[-1])
