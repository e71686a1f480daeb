"""The labels that columns and the order of the rows are compared with."""

from dataclasses import dataclass
from typing import Final

import numpy as np

from ldpaudit.audits.interface import AuditContext
from ldpaudit.audits.models import aligned_channel, why_no_channel
from ldpaudit.errors import InputError
from ldpaudit.release import FloatArray, IndexArray, IntArray

_MOST: Final = 20
"""With more labels, the rarer ones count as one."""
ASSUMED: Final = {True: "the rows looked at are like the others", False: "the claim holds"}
"""What is assumed where labels are known, and where they are not."""


@dataclass(frozen=True)
class Labels:
    """The labels that columns are compared with."""

    codes: IntArray
    """Int32 (n,): true labels, or released ones."""
    classes: int
    """How many there are."""
    weights: FloatArray
    """Float64 (m, k): what a row with each code counts for each label."""
    most_equal: float | None = None
    """The excess over chance of equal released labels of two rows with one true label; None where
    the codes are true labels."""


def labels_of(context: AuditContext) -> Labels | None:
    """Return the true labels, else the released ones; None where neither can be compared."""
    release = context.release
    if release.bags is not None:
        return None
    if release.truth is not None:
        places, k = _places(np.bincount(release.truth, minlength=len(release.classes)))
        return Labels(places[release.truth], k, np.eye(k))
    try:
        channel = None if why_no_channel(context) is not None else aligned_channel(context)
    except InputError:
        channel = None
    if channel is None:
        return None
    counts = channel.inverse[release.released].sum(axis=0)
    places, k = _places(counts)
    weights = np.zeros((len(channel.outputs), k))
    for label, place in enumerate(places):
        weights[:, place] += channel.inverse[:, label]
    shares = np.clip(counts, 0, None) / np.clip(counts, 0, None).sum()
    chance = float((shares @ channel.matrix) @ (shares @ channel.matrix))
    equal = float(shares @ (channel.matrix**2).sum(axis=1))
    most_equal = max((equal - chance) / max(1 - chance, 1e-9), 1e-9)
    return Labels(release.released, k, weights, most_equal)


def _places(counts: FloatArray | IndexArray) -> tuple[IntArray, int]:
    """Return the new code of each label, the rarest ones sharing one, and how many there are."""
    if len(counts) <= _MOST:
        return np.arange(len(counts), dtype=np.int32), len(counts)
    places = np.full(len(counts), _MOST - 1, dtype=np.int32)
    places[np.argsort(-counts, kind="stable")[: _MOST - 1]] = np.arange(_MOST - 1)
    return places, _MOST
