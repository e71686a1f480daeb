"""Labels released in stages: each learns a prior from what the stages before released."""

from typing import Any, Final

import numpy as np

from ldpaudit.doors import FeatureTable, FloatArray, IntArray, StagedLabel
from ldpaudit.models.row_channels import fit_row_channels

# Of more rows before, a random sample is learnt from.
_MOST_ROWS_FITTED: Final = 100_000


class StagedRelease:
    """Releases the labels of a table's rows as they come, stage after stage."""

    # The stages are equal parts of the rows in their order; the first has a uniform prior, that of
    # each other one is learnt from the features and released labels of all rows before, each
    # through its own channel. What is learnt is post-processing: ε of every row is the mechanism's.
    # Ghazi et al. (2021), Deep learning with label differential privacy, Algorithm 4.

    def __init__(self, mechanism: StagedLabel, rows: int) -> None:
        self.mechanism, self.rows = mechanism, max(rows, 1)
        self._seen: list[tuple[FloatArray, FloatArray]] = []
        self._model: Any = None
        self._done = self._stage = 0

    def draw(self, features: FloatArray, labels: IntArray, rng: Any = None) -> IntArray:
        """Release the next rows: features (n, p), NaN where missing, and codes of true labels (n,).

        ``rng`` is for simulations; default: the operating system's randomness.
        """
        out, start, stages = np.empty(len(labels), dtype=np.int32), 0, self.mechanism.stages
        while start < len(labels):
            stage = min(self._done * stages // self.rows, stages - 1)
            end = -(-(stage + 1) * self.rows // stages) if stage < stages - 1 else None
            part = slice(start, None if end is None else start + end - self._done)
            if stage > self._stage:
                self._model, self._stage = self._learnt(), stage
            prior = self._prior(features[part])
            out[part] = drawn = self.mechanism.sample(labels[part], prior, rng)
            self._seen.append((features[part], self.mechanism.row_likelihood(prior, drawn)))
            start, self._done = start + len(drawn), self._done + len(drawn)
        return out

    def _learnt(self) -> Any:
        features, likelihood = (np.concatenate(part) for part in zip(*self._seen, strict=True))
        # Only public things are learnt from: the seed needs no secrecy.
        rng = np.random.default_rng(0)
        rows = rng.permutation(len(features))[:_MOST_ROWS_FITTED]
        self._seen = [(features[rows], likelihood[rows])]
        return fit_row_channels(_table(features[rows]), likelihood[rows], rng)

    def _prior(self, features: FloatArray) -> FloatArray:
        k = len(self.mechanism.classes)
        if self._model is None:
            return np.full((len(features), k), 1 / k)
        return np.asarray(self._model.predict(_table(features)))


def _table(features: FloatArray) -> FeatureTable:
    numeric = np.asarray(features, dtype=np.float32)
    return FeatureTable(numeric, np.zeros((len(numeric), 0), np.int32), (), numeric.shape[1])
