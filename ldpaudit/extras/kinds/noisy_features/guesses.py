"""Lower bounds on ε of noise on feature vectors, from true and released ones.

People are paired by their true features. Of a pair it is known which two vectors a and b went in
and which two came out, and it is guessed which is whose. People are taken in a random order, so
whose vector came first is a fair coin, of which nothing is known but by the noisy vectors u and v:
(u − v)·(a − b) is above 0 if they are in the order of a and b. Noise is drawn for each row by
itself, so pairs are independent; and all of them together are one run, of one coin for each pair.

Between a and b Gaussian noise of σ has the curve of μ = |a − b|/σ, and a pair, which is both of
its rows, that of √2 |a − b|/σ. Changes to released vectors that do not look at true ones, such as
rounding and clipping, only lower these. So how often guesses are right bounds σ from above, and μ
of the whole ball of radius R, 2R/σ, from below.

References
----------
Mahloujifar, Melis & Chaudhuri (2025), Auditing f-differential privacy in one run, Algorithm 1;
Dong, Roth & Su (2022), Gaussian differential privacy, Corollary 3.3; Steinke, Nasr & Jagielski
(2023), Theorem 5.2.
"""

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
from scipy.optimize import brentq
from scipy.special import ndtr

from ldpaudit.doors import FloatArray, IndexArray, clopper_pearson_lower
from ldpaudit.estimators.epsilon.guesses import GuessCounts
from ldpaudit.extras.kinds.noisy_features.one_run import one_run_epsilon
from ldpaudit.extras.kinds.noisy_features.tradeoff import epsilon_of_mu, one_run_mu, promised_share
from ldpaudit.release import BoolArray

_MOST_ROWS_PAIRED: Final = 40_000
_FEWEST_PAIRS: Final = 40
_PARTS: Final = (1.0, 0.5, 0.25, 0.1)
"""Of the pairs, those farthest apart, among which the number that promises most is chosen."""
_LARGEST_ALPHA: Final = 0.3
"""Up to here right guesses exceed their mean by more than one, as the theorem asks."""
_TURNS: Final = 20
_ROWS_A_COLUMN: Final = 20
"""Rows that show how noise spreads over columns, for each column."""


@dataclass(frozen=True, eq=False)
class PairGuesses:
    """Guesses of whose noisy vector is whose.

    Attributes
    ----------
    right : bool array of shape (m,)
        Whether the guess is right, of all pairs.
    distances : float array of shape (m,)
        Between the true vectors of each pair.
    counts : GuessCounts
        Of the pairs farthest apart, the surest guesses by both rows of a pair.
    first : GuessCounts
        The same by one row of a pair alone.
    """

    right: BoolArray
    distances: FloatArray
    counts: GuessCounts
    first: GuessCounts

    def point_epsilon(self, alpha: float, delta: float) -> float:
        """Return the lower bound of ε at δ, in nats, at level 1 − alpha, whatever the noise."""
        return one_run_epsilon(self.first, alpha, delta)

    def one_run_epsilon(self, alpha: float, radius: float, delta: float) -> float:
        """Return the lower bound of ε at δ, in nats, at level 1 − alpha, if noise is Gaussian.

        Of noise with one σ for every row, on vectors of a ball of radius R. The noise of different
        pairs may depend on one another.
        """
        inverse = one_run_mu(self.counts, alpha) / (math.sqrt(2) * float(self.distances.max()))
        return epsilon_of_mu(2 * radius * inverse, delta)

    def curve_epsilon(self, alpha: float, radius: float, delta: float) -> float:
        """Return the same bound where noise is drawn for each row by itself.

        Then guesses are independent, that of a pair right with a probability of at most
        Φ(|a − b|/(√2 σ)). Of sums of such guesses no tail is above the binomial one of their mean
        (Hoeffding 1956, Theorem 5).
        """
        m, right = len(self.right), int(self.right.sum())
        least = float(clopper_pearson_lower(right, m, min(alpha, _LARGEST_ALPHA)))
        return epsilon_of_mu(2 * radius * self._inverse_sigma(least), delta)

    def _inverse_sigma(self, share: float) -> float:
        """Return the least 1/σ with which so large a share of guesses is right."""
        reach = self.distances / math.sqrt(2)
        if share <= 0.5:
            return 0.0

        def missing(inverse: float) -> float:
            return float(ndtr(reach * inverse).mean()) - share

        most = 1.0 / float(reach.max())
        while missing(most) < 0:
            most *= 2
        return float(brentq(missing, 0.0, most, xtol=1e-9 * most))


def pair_guesses(
    original: FloatArray,
    released: FloatArray,
    sigma: float,
    alpha: float,
    rng: np.random.Generator,
) -> PairGuesses | None:
    """Return how often it is guessed which of two noisy vectors is whose; None with too few pairs.

    Parameters
    ----------
    original, released : float array of shape (n, p)
        True vectors and noisy ones, row by row, without missing values; in a random order, each
        person once (:func:`once`).
    sigma : float
        The claimed standard deviation: it decides beforehand how many pairs are guessed.
    alpha : float
        One minus the level for which that is decided.
    rng : numpy.random.Generator
    """
    true, noisy = original, released
    shown = _ROWS_A_COLUMN * true.shape[1]
    spread = np.eye(true.shape[1])
    if 5 * shown <= len(true):
        spread = _inverse_spread(noisy[:shown] - true[:shown])
        true, noisy = true[shown:], noisy[shown:]
    first, second = _opposite(true, rng)
    apart = true[first] - true[second]
    distances = np.linalg.norm(apart, axis=1)
    order = np.argsort(-distances, kind="stable")
    order = order[: np.count_nonzero(distances)]
    if len(order) < _FEWEST_PAIRS:
        return None
    weights = apart @ spread
    both = ((noisy[first] - noisy[second]) * weights).sum(axis=1)
    middle = (true[first] + true[second]) / 2
    one = ((noisy[first] - middle) * weights).sum(axis=1)
    far, share = _how_many(distances[order], sigma, alpha)
    most, pairs = math.ceil(share * far), order[:far]
    counts, alone = (_guessed(scores[pairs], most) for scores in (both, one))
    return PairGuesses(both[order] > 0, distances[order], counts, alone)


def once(original: FloatArray, released: FloatArray, rng: np.random.Generator) -> IndexArray:
    """Return at most 40,000 rows in a random order, copies of a row with its noise only once."""
    both = np.hstack([original, released])
    _, rows = np.unique(both, axis=0, return_index=True)
    return np.asarray(rng.permutation(rows)[:_MOST_ROWS_PAIRED])


def _inverse_spread(noise: FloatArray) -> FloatArray:
    """Return the inverse of the noise's covariance: columns with little of it count most."""
    found = noise.T @ noise / len(noise)
    least = 1e-9 * max(float(np.trace(found)) / len(found), 1e-300)
    return np.asarray(np.linalg.inv(found + least * np.eye(len(found))))


def _opposite(true: FloatArray, rng: np.random.Generator) -> tuple[IndexArray, IndexArray]:
    """Return pairs from opposite ends of the direction in which the rows differ most."""
    centred = true - true.mean(axis=0)
    direction = rng.normal(size=true.shape[1])
    for _ in range(_TURNS):
        direction = centred.T @ (centred @ direction)
        direction /= max(float(np.linalg.norm(direction)), 1e-300)
    order = np.argsort(centred @ direction, kind="stable")
    half = len(order) // 2
    return order[:half], order[::-1][:half]


def _how_many(distances: FloatArray, sigma: float, alpha: float) -> tuple[int, float]:
    """Return how many of the farthest pairs to look at, and the share of them to guess."""
    best, found = 0.0, (len(distances), 1.0)
    for part in _PARTS:
        far = math.ceil(part * len(distances))
        if far < _FEWEST_PAIRS:
            break
        typical = float(np.sqrt(np.mean(np.square(distances[:far]))))
        share, mu = promised_share(math.sqrt(2) * typical / sigma, far, alpha)
        if mu / distances[0] > best:
            best, found = mu / distances[0], (far, share)
    return found


def _guessed(scores: FloatArray, most: int) -> GuessCounts:
    """Return how many of the surest guesses are right: those whose score is above 0."""
    surest: BoolArray = scores[np.argsort(-np.abs(scores), kind="stable")[:most]] > 0
    right = int(surest.sum())
    return GuessCounts(len(scores), right, most - right)
