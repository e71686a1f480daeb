"""Batches with equally many rows of each class, and rows kept aside."""

from collections.abc import Iterator

import numpy as np

from ldpaudit.errors import InsufficientDataError
from ldpaudit.release import BoolArray, IndexArray, IntArray

MIN_CLASS_ROWS = 20
"""A class with fewer rows cannot be learnt."""
_HELD_OUT = 0.1
_FEWEST_HELD_OUT = 5


class BalancedBatches:
    """Endless batches with equally many rows of each class; small classes come round more often.

    Parameters
    ----------
    labels : int32 array of shape (n,)
    classes : int
    batch : int
        Rows of a batch, at least two of each class.
    rng : numpy.random.Generator
    """

    def __init__(
        self, labels: IntArray, classes: int, batch: int, rng: np.random.Generator
    ) -> None:
        per_class = max(batch // classes, 2)
        self._pools = [np.flatnonzero(labels == y) for y in range(classes)]
        self.labels = np.repeat(np.arange(classes, dtype=np.int32), per_class)
        self._per_class, self._rng = per_class, rng

    def __iter__(self) -> Iterator[IndexArray]:
        """Yield rows, int64 of shape (batch,)."""
        queues: list[IndexArray] = [np.zeros(0, dtype=np.int64) for _ in self._pools]
        while True:
            for y, pool in enumerate(self._pools):
                while len(queues[y]) < self._per_class:
                    queues[y] = np.concatenate([queues[y], self._rng.permutation(pool)])
            yield np.concatenate([queue[: self._per_class] for queue in queues])
            queues = [queue[self._per_class :] for queue in queues]


def check_class_sizes(codes: IntArray, classes: int) -> None:
    """Check that every class has 20 rows.

    Raises
    ------
    InsufficientDataError
    """
    small = int((np.bincount(codes, minlength=classes) < MIN_CLASS_ROWS).sum())
    if small:
        raise InsufficientDataError(
            f"A generator needs at least {MIN_CLASS_ROWS} rows of every class; {small} of "
            f"{classes} classes have fewer."
        )


def held_out_rows(codes: IntArray, classes: int, rng: np.random.Generator) -> BoolArray:
    """Return a tenth of the rows of each class, and at least 5: a mask of shape (n,)."""
    mask = np.zeros(len(codes), dtype=np.bool_)
    for y in range(classes):
        rows: IndexArray = rng.permutation(np.flatnonzero(codes == y))
        mask[rows[: max(int(_HELD_OUT * len(rows)), _FEWEST_HELD_OUT)]] = True
    return mask


def small_class_warning(codes: IntArray, classes: int, batch: int) -> tuple[str, ...]:
    """Return a sentence where classes have fewer rows than their share of a batch."""
    small = int((np.bincount(codes, minlength=classes) < batch // classes).sum())
    if not small:
        return ()
    return (
        f"{small} of {classes} classes have fewer rows than their share of one batch; their rows "
        f"were used again and again, so the generator may repeat them.",
    )
