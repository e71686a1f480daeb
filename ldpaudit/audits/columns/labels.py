"""Labels as weights: known ones, or the released ones through the inverse of the channel."""

from dataclasses import dataclass
from typing import Final

import numpy as np

from ldpaudit.audits.claimed_channel import aligned_channel, why_no_channel
from ldpaudit.audits.interface import AuditContext
from ldpaudit.errors import InputError
from ldpaudit.estimators.columns.telling import label_weights
from ldpaudit.release import FloatArray, IndexArray, IntArray

_MOST: Final = 20
"""With more labels, the rarer ones count as one."""


@dataclass(frozen=True)
class Labels:
    """The labels that columns are compared with.

    Attributes
    ----------
    codes : int32 array of shape (n,)
        True labels, or released ones.
    classes : int
        How many there are.
    weights : float64 array of shape (m, k)
        What a row with each code counts for each label.
    most_equal : float or None
        The excess over chance of equal released labels of two rows with one true label; None where
        the codes are true labels.
    """

    codes: IntArray
    classes: int
    weights: FloatArray
    most_equal: float | None = None

    @property
    def known(self) -> bool:
        """Whether the codes are true labels."""
        return self.most_equal is None

    def of(self, rows: IndexArray) -> FloatArray:
        """Return the weights of rows, float64 of shape (s, k)."""
        return np.asarray(self.weights[self.codes[rows]])


def labels_of(context: AuditContext) -> Labels | None:
    """Return the true labels, else the released ones; None where neither can be compared."""
    release = context.release
    if release.bags is not None:
        return None
    if release.truth is not None:
        codes, k = _merged(release.truth, len(release.classes))
        return Labels(codes, k, label_weights(np.arange(k, dtype=np.int32), k))
    try:
        if why_no_channel(context) is not None:
            return None
        channel = aligned_channel(context)
    except InputError:
        return None
    assert channel is not None
    counts = channel.inverse[release.released].sum(axis=0)
    places, k = _places(counts)
    weights = np.zeros((len(channel.outputs), k))
    for label, place in enumerate(places):
        weights[:, place] += channel.inverse[:, label]
    shares = np.clip(counts, 0, None) / np.clip(counts, 0, None).sum()
    return Labels(release.released, k, weights, _most_equal(shares, channel.matrix))


def _most_equal(shares: FloatArray, matrix: FloatArray) -> float:
    chance = float((shares @ matrix) @ (shares @ matrix))
    equal = float(shares @ (matrix**2).sum(axis=1))
    return max((equal - chance) / max(1 - chance, 1e-9), 1e-9)


def _merged(codes: IntArray, classes: int) -> tuple[IntArray, int]:
    places, k = _places(np.bincount(codes, minlength=classes))
    return places[codes], k


def _places(counts: FloatArray | IndexArray) -> tuple[IntArray, int]:
    """Return the new code of each label, the rarest ones sharing one, and how many there are."""
    if len(counts) <= _MOST:
        return np.arange(len(counts), dtype=np.int32), len(counts)
    places = np.full(len(counts), _MOST - 1, dtype=np.int32)
    places[np.argsort(-counts, kind="stable")[: _MOST - 1]] = np.arange(_MOST - 1)
    return places, _MOST
