"""Is noise drawn for each row on its own? Bets against independence, of clusters and distances."""

# A bet starts with 1 and stakes a part of what it has on each row. Where the assumption holds no
# bet gains on average, so that P(wealth ≥ 1/α) ≤ α whatever it stakes on (Ville 1939): one over the
# wealth is a valid p-value at every sample size, and an average of several wealths is a wealth.

from dataclasses import dataclass
from typing import Final

import numpy as np
from scipy.stats import binom

from ldpaudit.estimators.epsilon.guesses import GuessCounts
from ldpaudit.release import BoolArray, FloatArray, IndexArray, IntArray


def p_value(log_wealth: float) -> float:
    """Return the valid p-value of a bet, at most 1."""
    return float(np.exp(-max(log_wealth, 0.0)))


def average(log_wealths: FloatArray | list[float]) -> float:
    """Return the logarithm of the mean of several wealths."""
    logs = np.asarray(log_wealths, dtype=np.float64)
    return float(np.logaddexp.reduce(logs) - np.log(len(logs))) if len(logs) else 0.0


def bet_on_rows(outcomes: IntArray, strata: IndexArray, log_odds: FloatArray) -> float:
    """Bet that 0/1 outcomes depend on more than their stratum.

    Within a stratum all orders of the outcomes are equally likely if they do not. So each outcome
    is predicted from the counts of those still to come, tilted by ``log_odds``.

    Parameters
    ----------
    outcomes : int32 array of shape (n,)
        0 or 1.
    strata : int64 array of shape (n,)
        Codes from 0.
    log_odds : float64 array of shape (n,)
        How much likelier 1 is presumed to be than in the stratum at large, learnt on other rows.

    Returns
    -------
    float
        The logarithm of the wealth at the end.

    References
    ----------
    Shafer & Vovk (2019), Game-Theoretic Foundations; Grünwald, Henzi & Lardy (2023).
    """
    order = np.argsort(strata, kind="stable")
    ones, tilt = outcomes[order].astype(np.float64), log_odds[order]
    sizes = np.bincount(strata)
    ends = np.cumsum(sizes)
    of = np.repeat(np.arange(len(sizes)), sizes)
    # Rows of the stratum still to come, this one among them, and the ones among those.
    left = ends[of] - np.arange(len(ones))
    total = np.concatenate([[0.0], np.cumsum(ones)])
    share = (total[ends][of] - total[:-1]) / left
    logs = []
    # How far bets on rows follow a model: 1 as if it were right.
    for boldness in (0.5, 1.0):
        factor = np.exp(np.clip(boldness * tilt, -30, 30))
        gain = ones * np.log(factor) - np.log(share * factor + 1 - share)
        logs.append(float(gain.sum()))
    return average(logs)


def bet_on_pairs(
    outcomes: FloatArray, chances: FloatArray, first: IndexArray, second: IndexArray
) -> float:
    """Bet that the outcomes of two rows of a pair go together.

    Parameters
    ----------
    outcomes, chances : float64 arrays of shape (n,)
        0 or 1, and the chance of 1; a row whose chance is 0 or 1 takes no part.
    first, second : int64 arrays of shape (p,)
        Disjoint pairs of rows, chosen without their outcomes.

    Returns
    -------
    float
        The logarithm of the wealth at the end. (e₁ − p₁)(e₂ − p₂) has mean 0 where the two are
        independent; it is staked in units of the most that can be lost.
    """
    p, q = chances[first], chances[second]
    usable = (p > 0) & (p < 1) & (q > 0) & (q < 1)
    p, q = p[usable], q[usable]
    product = (outcomes[first[usable]] - p) * (outcomes[second[usable]] - q)
    units = product / np.maximum(p * (1 - q), q * (1 - p))
    # Shares of the wealth that bets on pairs stake.
    return average([float(np.log1p(stake * units).sum()) for stake in (0.05, 0.1, 0.2, 0.4, 0.8)])


def disjoint_pairs(clusters: IndexArray, rng: np.random.Generator) -> tuple[IndexArray, IndexArray]:
    """Return random disjoint pairs of rows of one cluster, int64 arrays of shape (p,) each."""
    order = rng.permutation(len(clusters))
    order = order[np.argsort(clusters[order], kind="stable")]
    codes = clusters[order]
    starts = np.flatnonzero(np.r_[True, codes[1:] != codes[:-1]])
    place = np.arange(len(codes)) - np.repeat(starts, np.diff(np.r_[starts, len(codes)]))
    left = np.flatnonzero((place % 2 == 0)[:-1] & (codes[:-1] == codes[1:]))
    return order[left], order[left + 1]


# Distances that have half of the level: noise is most often shared with the row before.
_NEAR: Final = 3
# Standard errors.
_SURE_LAG: Final = 3.0


@dataclass(frozen=True)
class LagTest:
    """Whether outcomes go together with those of rows a fixed distance away."""

    # ``p_value``: valid for all distances at once. ``period``: the distance after which noise seems
    # to repeat, again and again; 0 where it does not. ``run``: the longest distance at which rows
    # seem to share noise where it does not repeat. ``strongest``: the distance at which the bets
    # gained the most.

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
    lags = n - 50
    if lags < 1:
        return LagTest(1.0)
    strength = _strength(outcomes, chances)[1 : lags + 1]
    best = np.argsort(-strength, kind="stable")[:16] + 1
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
    """Return the period and the run that autocorrelations (distances from 1) look like."""
    # A period is the first distance that is nearly as strong as any, where its multiples are strong
    # too. At long distances few pairs are left and chance makes some of them look strong, so what
    # is compared is what each correlation is at least.
    found = strength > np.sqrt(2 * np.log(n)) + 1.5
    if not found.any():
        return 0, 0
    spread = np.sqrt(n - 1 - np.arange(len(strength)))
    correlation = strength / spread
    most = float(np.max(np.where(found, (strength - _SURE_LAG) / spread, 0.0)))
    lag = int(np.flatnonzero(found & (correlation >= 0.8 * most))[0]) + 1
    again = correlation[2 * lag - 1 :: lag]
    if lag > 1 and (len(again) == 0 or np.mean(again >= most / 2) > 0.5):
        return lag, 0
    return 0, _run(strength, correlation)


def _run(strength: FloatArray, correlation: FloatArray) -> int:
    """Return the longest distance at which rows seem to share noise."""
    # Correlations within blocks of one draw fall in a line: what half of the first is left at half
    # of the block's length is far clearer than where nothing is left. Where they fall otherwise,
    # the run goes on to the first distance that is not clear.
    half = int(np.argmax(correlation <= correlation[0] / 2)) or len(correlation)
    run = min(2 * half, len(strength))
    faded = np.flatnonzero(strength[run:] < _SURE_LAG)
    return run + (int(faded[0]) if len(faded) else len(strength) - run)


FEWEST_PAIRS: Final = 30


def flip_chances(flips: BoolArray, strata: IndexArray, prior_rows: float = 5.0) -> FloatArray:
    """Return the share of flips in each row's stratum, drawn a little to that of all; (n,).

    ``prior_rows``: so many rows of the mean are added to each stratum.
    """
    rows = np.bincount(strata)
    ones = np.bincount(strata, weights=flips)
    overall = float(flips.mean())
    every = np.maximum(rows + prior_rows, 1.0)
    return np.asarray(((ones + prior_rows * overall) / every)[strata])


def agreement_p_value(
    labels: IntArray, first: IndexArray, second: IndexArray, most: float
) -> float:
    """Return the p-value of "independent noise, and agreement has a chance of at most ``most``".

    ``labels``: int32 of shape (n,); disjoint pairs of rows. Exact binomial tail (Hoeffding 1956 for
    chances that differ).
    """
    agreeing = int(np.sum(labels[first] == labels[second]))
    return float(binom.sf(agreeing - 1, len(first), most)) if len(first) else 1.0


def neighbour_guesses(
    truth: IntArray,
    released: IntArray,
    first: IndexArray,
    second: IndexArray,
    rng: np.random.Generator,
) -> GuessCounts:
    """Guess labels from what was released of them and from the noise of a neighbour.

    Who knows the neighbour's true label sees whether noise changed it. If noise is shared the same
    happened here: a label that was kept is the true one, a label that was changed is not.

    Parameters
    ----------
    truth, released : int32 arrays of shape (n,)
        Codes of the same labels.
    first, second : int64 arrays of shape (p,)
        Disjoint pairs; noise is independent from pair to pair.

    Returns
    -------
    GuessCounts
        Candidates are pairs of pairs whose neighbours have the same true label and whose own
        labels differ. A fair coin picks one of the two, so that given everything else its label is
        one of two equally likely ones.
    """
    own, beside = truth[first], truth[second]
    order = rng.permutation(len(first))
    order = order[np.argsort(beside[order], kind="stable")]
    edges = np.flatnonzero(np.diff(beside[order])) + 1
    chosen, decoys = [], []
    for alike in np.split(order, edges):
        places = alike[np.argsort(own[alike], kind="stable")]
        half = len(places) // 2
        one, other = places[:half], places[len(places) - half :]
        differ = own[one] != own[other]
        one, other = one[differ], other[differ]
        coin = rng.random(len(one)) < 0.5
        chosen.append(np.where(coin, one, other))
        decoys.append(own[np.where(coin, other, one)])
    rows, decoy = np.concatenate(chosen), np.concatenate(decoys)
    changed = released[second[rows]] != beside[rows]
    label, seen = own[rows], released[first[rows]]
    says_label = np.where(changed, seen == decoy, seen == label)
    says_decoy = np.where(changed, seen == label, seen == decoy)
    return GuessCounts(len(rows), int(says_label.sum()), int(says_decoy.sum()))
