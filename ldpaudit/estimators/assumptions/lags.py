"""Noise shared by rows at a fixed distance: runs of equal noise, and noise that repeats."""

from dataclasses import dataclass
from typing import Final

import numpy as np

from ldpaudit.estimators.assumptions.bets import average, bet_on_pairs, p_value
from ldpaudit.release import BoolArray, FloatArray, IndexArray

_CANDIDATES: Final = 16
_NEAR: Final = 3
"""Distances that have half of the level: noise is most often shared with the row before."""
_FEWEST_PAIRS: Final = 50
_MARGIN: Final = 1.5
_AS_STRONG: Final = 0.8
_SURELY: Final = 3.0
"""Standard errors."""


@dataclass(frozen=True)
class LagTest:
    """Whether outcomes go together with those of rows a fixed distance away.

    Attributes
    ----------
    p_value : float
        Valid for all distances at once.
    period : int
        The distance after which noise seems to repeat, again and again; 0 where it does not.
    run : int
        The longest distance at which rows seem to share noise where it does not repeat.
    strongest : int
        The distance at which the bets gained the most.
    """

    p_value: float
    period: int = 0
    run: int = 0
    strongest: int = 1

    def apart(self, rows: IndexArray) -> IndexArray:
        """Return those of some rows, in order, of which no two share noise by their distance."""
        if self.period:
            return rows[np.sort(np.unique(rows % self.period, return_index=True)[1])]
        kept, place = [], 0
        while place < len(rows):
            kept.append(place)
            place = int(np.searchsorted(rows, rows[place] + self.run + 1))
        return rows[kept]

    def pairs(self, n: int) -> tuple[IndexArray, IndexArray]:
        """Return pairs of rows of n that share noise, but not with other pairs."""
        if self.period:
            first = np.arange(min(self.period, n - self.period))
            return first, first + self.period
        first = np.arange(0, n - 1, self.run + 2)
        return first, first + 1


def lag_test(outcomes: FloatArray, chances: FloatArray) -> LagTest:
    """Test 0/1 outcomes in the order of their rows against independence.

    Parameters
    ----------
    outcomes, chances : float64 arrays of shape (n,)
        0 or 1, and the chance of 1.

    Returns
    -------
    LagTest
        The autocorrelations of all distances by FFT say where to look; the bets of the best are
        Bonferroni's over all, with half of the level for distances 1 to 3. At one distance pairs
        form chains: every other link is a bet of its own, on disjoint pairs, and the two are
        averaged.
    """
    n = len(outcomes)
    lags = n - _FEWEST_PAIRS
    if lags < 1:
        return LagTest(1.0)
    strength = _strength(outcomes, chances)[1 : lags + 1]
    best = np.argsort(-strength, kind="stable")[:_CANDIDATES] + 1
    looked_at = {*range(1, _NEAR + 1), *best.tolist()}
    wealths = {lag: bet_at(outcomes, chances, lag) for lag in sorted(looked_at)}
    lag = max(wealths, key=lambda lag: wealths[lag] - np.log(tried(lag, n)))
    smallest = min(1.0, tried(lag, n) * p_value(wealths[lag]))
    if smallest == 1:
        return LagTest(1.0)
    period, run = _shape(strength, n)
    if not period and lag <= _NEAR:
        run = max(run, lag)
    return LagTest(smallest, period, run, lag)


def tried(lag: int, n: int) -> int:
    """Return by what the p-value of one distance in n rows is multiplied, all being looked at."""
    return 2 * (_NEAR if lag <= _NEAR else n)


def of_some(chances: FloatArray, rows: IndexArray) -> FloatArray:
    """Return chances with which only some rows take part in a test, at the places they have."""
    kept = np.zeros(len(chances))
    kept[rows] = chances[rows]
    return kept


def least_clear(outcomes: FloatArray, *chances: FloatArray) -> LagTest:
    """Return the test with the largest p-value of several chances, each float64 of shape (n,).

    Where it is not known by which labels the rows were put in order, what any of them explains is
    no shared noise.
    """
    found = lag_test(outcomes, chances[0])
    for others in chances[1:]:
        if found.p_value < 1:
            found = max(found, lag_test(outcomes, others), key=lambda test: test.p_value)
    return found


def _strength(outcomes: FloatArray, chances: FloatArray) -> FloatArray:
    """Return the autocorrelation of each distance in standard errors, float64 of shape (n,)."""
    n = len(outcomes)
    spread = np.sqrt(np.maximum(chances * (1 - chances), 1e-12))
    centred = np.where((chances > 0) & (chances < 1), (outcomes - chances) / spread, 0.0)
    size = 1 << (2 * n - 1).bit_length()
    spectrum = np.fft.rfft(centred, size)
    sums = np.fft.irfft(spectrum * np.conj(spectrum), size)[:n]
    return np.asarray(sums / np.sqrt(np.arange(n, 0, -1)))


def bet_at(
    outcomes: FloatArray, chances: FloatArray, lag: int, taking_part: BoolArray | None = None
) -> float:
    """Bet on the pairs of rows at one distance; the logarithm of the wealth at the end.

    ``taking_part``: bool of shape (n − lag,), which first rows of a pair do; default: all.
    """
    first = np.arange(len(outcomes) - lag)
    odd = (first // lag) % 2 == 1
    used = np.ones(len(first), dtype=bool) if taking_part is None else taking_part
    chains = [chain for chain in (first[~odd & used], first[odd & used]) if len(chain)]
    return average([bet_on_pairs(outcomes, chances, chain, chain + lag) for chain in chains])


def _shape(strength: FloatArray, n: int) -> tuple[int, int]:
    """Return the period and the run that autocorrelations (distances from 1) look like.

    A period is the first distance that is nearly as strong as any, where its multiples are strong
    too. At long distances few pairs are left and chance makes some of them look strong, so what is
    compared is what each correlation is at least.
    """
    found = strength > np.sqrt(2 * np.log(n)) + _MARGIN
    if not found.any():
        return 0, 0
    spread = np.sqrt(n - 1 - np.arange(len(strength)))
    correlation = strength / spread
    most = float(np.max(np.where(found, (strength - _SURELY) / spread, 0.0)))
    lag = int(np.flatnonzero(found & (correlation >= _AS_STRONG * most))[0]) + 1
    again = correlation[2 * lag - 1 :: lag]
    if lag > 1 and (len(again) == 0 or np.mean(again >= most / 2) > 0.5):
        return lag, 0
    return 0, _run(strength, correlation)


def _run(strength: FloatArray, correlation: FloatArray) -> int:
    """Return the longest distance at which rows seem to share noise.

    Correlations within blocks of one draw fall in a line: what half of the first is left at half of
    the block's length is far clearer than where nothing is left. Where they fall otherwise, the run
    goes on to the first distance that is not clear.
    """
    half = int(np.argmax(correlation <= correlation[0] / 2)) or len(correlation)
    run = min(2 * half, len(strength))
    faded = np.flatnonzero(strength[run:] < _SURELY)
    return run + (int(faded[0]) if len(faded) else len(strength) - run)
