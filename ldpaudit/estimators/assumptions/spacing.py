"""At which distances rows share noise, and which rows are left if none of them does."""

from dataclasses import dataclass
from typing import Final

import numpy as np

from ldpaudit.release import FloatArray, IndexArray

# Standard errors.
_SURE: Final = 3.0


@dataclass(frozen=True)
class Spacing:
    """The distances at which rows share noise, in an order of the rows.

    ``period``: the distance after which noise repeats, again and again; 0 where it does not.
    ``run``: the longest distance at which rows share noise where it does not repeat.
    """

    period: int = 0
    run: int = 0

    def apart(self, places: IndexArray) -> IndexArray:
        """Return those of some places in the order, sorted, of which no two share noise."""
        if self.period:
            return places[np.sort(np.unique(places % self.period, return_index=True)[1])]
        kept, at = [], 0
        while at < len(places):
            kept.append(at)
            at = int(np.searchsorted(places, places[at] + self.run + 1))
        return places[kept]

    def pairs(self, n: int) -> tuple[IndexArray, IndexArray]:
        """Return pairs of places, of n, that share noise, but not with other pairs."""
        if self.period:
            first = np.arange(min(self.period, n - self.period))
            return first, first + self.period
        first = np.arange(0, n - 1, self.run + 2)
        return first, first + 1


def spacing_of(clear: FloatArray, distance: int) -> Spacing:
    """Return what autocorrelations (distances from 1, in standard errors) look like.

    ``distance``: one at which rows surely share noise.
    """
    # A period is the first distance that is nearly as strong as any, where its multiples are strong
    # too. At long distances few pairs are left and chance makes some of them look strong, so what
    # is compared is what each correlation is at least.
    n = len(clear) + 1
    found = clear > np.sqrt(2 * np.log(n)) + 1.5
    found[distance - 1] = True
    spread = np.sqrt(n - 1 - np.arange(len(clear)))
    correlation = clear / spread
    most = float(np.max(np.where(found, (clear - _SURE) / spread, 0.0)))
    lag = int(np.flatnonzero(found & (correlation >= 0.8 * most))[0]) + 1
    again = correlation[2 * lag - 1 :: lag]
    if lag > 1 and (len(again) == 0 or np.mean(again >= most / 2) > 0.5):
        return Spacing(period=lag)
    return Spacing(run=max(_run(clear, correlation), distance if distance <= 3 else 1))


def _run(clear: FloatArray, correlation: FloatArray) -> int:
    """Return the longest distance at which rows seem to share noise."""
    # Correlations within blocks of one draw fall in a line: what half of the first is left at half
    # of the block's length is far clearer than where nothing is left. Where they fall otherwise,
    # the run goes on to the first distance that is not clear.
    half = int(np.argmax(correlation <= correlation[0] / 2)) or len(correlation)
    run = min(2 * half, len(clear))
    faded = np.flatnonzero(clear[run:] < _SURE)
    return run + (int(faded[0]) if len(faded) else len(clear) - run)
