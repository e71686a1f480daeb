"""A mixture for each class: Gaussian numbers and independent categories within each component."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from ldpaudit.errors import InputError
from ldpaudit.randomness import integer_seed
from ldpaudit.release import IntArray
from ldpaudit.synthesis.class_mixture import ROWS_PER_COMPONENT, ClassMixture
from ldpaudit.synthesis.codecs.encoded import EncodedRows
from ldpaudit.synthesis.codecs.table import TableCodec
from ldpaudit.synthesis.gan.batches import check_class_sizes
from ldpaudit.synthesis.interface import Generator, TrainedOn, Training, check_labels, not_fitted


class ClassMixtures(Generator):
    """A mixture model for each class; fast, without a GPU, and steady.

    Parameters
    ----------
    trained_on : {"public", "private"}
        Whose rows it will be fitted on; goes into the declaration.
    components : int
        At most so many components for each class, and at most one for 50 rows.
    """

    name = "mixture"

    def __init__(self, *, trained_on: TrainedOn = "private", components: int = 40) -> None:
        if components < 1:
            raise InputError(f"There must be at least one component. Got {components} instead.")
        super().__init__(trained_on)
        self.components = components
        self._codec: TableCodec | None = None
        self._mixtures: tuple[ClassMixture, ...] = ()

    def _learn(self, training: Training) -> None:
        table, codes, classes = training.table, training.codes, training.classes
        check_class_sizes(codes, classes)
        counts = np.bincount(codes, minlength=classes)
        progress = training.progress
        progress.step(f"generator: {table.num_rows} rows, a mixture for each of {classes} classes")
        seed = integer_seed(training.rng)
        draws = np.random.default_rng(seed)
        codec = TableCodec.fit(table)
        rows = codec.encode(table, draws)
        mixtures = []
        for y in range(classes):
            chosen = draws.permutation(np.flatnonzero(codes == y))
            mixtures.append(
                ClassMixture.fit(rows.take(chosen), self.components, integer_seed(draws))
            )
            progress.advance(y + 1, classes)
        few = int((counts < ROWS_PER_COMPONENT * self.components).sum())
        self.warnings = (
            (f"{few} of {classes} classes have too few rows for all components.",) if few else ()
        )
        self._seed, self._rows = seed, table.num_rows
        self._codec, self._mixtures = codec, tuple(mixtures)

    def sample(self, labels: IntArray, rng: np.random.Generator) -> pa.Table:
        """Draw one row for each label; see :class:`ldpaudit.synthesis.interface.Generator`."""
        if self._codec is None:
            raise not_fitted()
        codes = check_labels(labels, len(self._mixtures))
        numbers = np.zeros((len(codes), self._codec.numbers), dtype=np.float32)
        cells = np.zeros((len(codes), len(self._codec.cardinalities)), dtype=np.int32)
        for y, mixture in enumerate(self._mixtures):
            rows = np.flatnonzero(codes == y)
            numbers[rows], cells[rows] = mixture.sample(len(rows), rng)
        return self._codec.decode(EncodedRows(numbers, cells, self._codec.cardinalities), rng)

    def _kind(self) -> Mapping[str, Any]:
        if self._codec is None:
            raise not_fitted()
        return {"components": self.components}

    def state(self) -> dict[str, Any]:
        """Return everything that :meth:`from_state` needs, as tensors and plain values."""
        import torch

        from ldpaudit.synthesis.codecs.state import codec_state

        if self._codec is None:
            raise not_fitted()
        parts = [
            {key: torch.from_numpy(getattr(mixture, key)) for key in _ARRAYS}
            | {"tables": [torch.from_numpy(table) for table in mixture.tables]}
            for mixture in self._mixtures
        ]
        return {
            "trained_on": self.trained_on,
            "components": self.components,
            "seed": self._seed,
            "rows": self._rows,
            "codec": codec_state(self._codec),
            "mixtures": parts,
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> "ClassMixtures":
        """Rebuild a fitted generator."""
        from ldpaudit.synthesis.codecs.state import codec_from_state

        mixtures = cls(trained_on=state["trained_on"], components=int(state["components"]))
        mixtures._seed, mixtures._rows = state["seed"], int(state["rows"])
        codec = codec_from_state(state["codec"])
        assert isinstance(codec, TableCodec)
        mixtures._codec = codec
        mixtures._mixtures = tuple(
            ClassMixture(
                **{key: part[key].numpy() for key in _ARRAYS},
                tables=tuple(table.numpy() for table in part["tables"]),
            )
            for part in state["mixtures"]
        )
        return mixtures


_ARRAYS = ("weights", "means", "roots", "center", "factors", "residual")
