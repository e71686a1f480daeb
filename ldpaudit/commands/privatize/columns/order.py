"""Whether the order of the rows tells true labels."""

import numpy as np

from ldpaudit.estimators.columns.row_order import LAGS, Agreement, agreement
from ldpaudit.release import IntArray

LEAST_EXCESS = 0.05
"""A smaller excess over chance is common in tables that grew over time."""
LEAST_Z = 6.0
"""By chance once in a thousand million tables."""


class RowOrder:
    """Counts, batch by batch, how often rows near each other have the same label."""

    def __init__(self) -> None:
        self._counts = np.zeros(0, dtype=np.int64)
        self._same = dict.fromkeys(LAGS, 0)
        self._last = np.zeros(0, dtype=np.int32)

    def watch(self, codes: IntArray) -> None:
        """Add the codes of a batch's true labels."""
        counts = np.bincount(codes, minlength=len(self._counts))
        counts[: len(self._counts)] += self._counts
        self._counts = counts
        joined = np.concatenate([self._last, codes])
        for lag in LAGS:
            # Pairs whose second row is new.
            later = joined[max(len(self._last), lag) :]
            first = max(len(self._last), lag) - lag
            self._same[lag] += int((later == joined[first : first + len(later)]).sum())
        self._last = joined[-max(LAGS) :]

    def strongest(self) -> Agreement | None:
        """Return the agreement least like chance, None where order tells nothing worth a word."""
        if self._counts.sum() <= 2 * max(LAGS) or (self._counts > 0).sum() < 2:
            return None
        found = [agreement(self._counts, lag, same) for lag, same in self._same.items()]
        one = max(found, key=lambda each: abs(each.z))
        return one if abs(one.z) >= LEAST_Z and abs(one.excess) >= LEAST_EXCESS else None
