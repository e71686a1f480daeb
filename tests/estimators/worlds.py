"""Worlds of known ε, drawn and handed to the bounds: what every test of a bound needs."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import binom

from ldpaudit.estimators.epsilon.bounds import Strongest
from ldpaudit.estimators.epsilon.guesses import GuessCounts, epsilon_lower
from ldpaudit.estimators.epsilon.release_only import SplitRows, release_only_evidence
from ldpaudit.estimators.epsilon.strongest import (
    RankedRows,
    claimed_evidence,
    subgroup_tests,
)
from ldpaudit.estimators.intervals.bounded_mean import Folds
from ldpaudit.extras.kinds.bags.audit import bag_bound
from ldpaudit.extras.kinds.mechanisms.with_features import ModelBasedRR
from ldpaudit.extras.kinds.observational.evidence import CanaryGuesses, ModelEvidence
from ldpaudit.extras.kinds.observational.matched import (
    RATIOS,
    ModelBasedFamily,
    match,
    matched_tests,
)
from ldpaudit.mechanisms import RandomizedResponse
from ldpaudit.release import FloatArray, IndexArray

Rng = np.random.Generator
Bound = Callable[[float], float]
"""From an error probability to a lower bound."""


def allowed(runs: int, alpha: float) -> int:
    """Return the most misses that chance explains: a false alarm has probability below 1e-5."""
    return int(binom.isf(1e-5, runs, alpha))


def randomized_response(k: int, epsilon: float) -> FloatArray:
    return RandomizedResponse.from_epsilon(tuple(range(k)), epsilon).channel.matrix


def epsilon_of(channel: FloatArray) -> float:
    return float(np.log(channel.max(axis=0) / channel.min(axis=0)).max())


def counted(sizes: IndexArray, channel: FloatArray, rng: Rng) -> IndexArray:
    return np.array([rng.multinomial(n, row) for n, row in zip(sizes, channel, strict=True)])


WIDE = np.array([[0.5, 0.3, 0.1, 0.1], [0.2, 0.3, 0.3, 0.2], [0.1, 0.2, 0.2, 0.5]])
ASYMMETRIC = np.array([[0.9, 0.1], [0.5, 0.5]])
CONSTANT = np.array([[0.8, 0.2], [0.8, 0.2]])
NARROW = np.array([[0.5, 0.3, 0.2], [0.3, 0.3, 0.4]])
RARE = np.array([[0.5, 0.499, 0.001], [0.49, 0.49, 0.02]])
ASYMMETRIC_THREE = np.array([[0.6, 0.3, 0.1], [0.25, 0.5, 0.25], [0.2, 0.2, 0.6]])
TALL = np.array([[0.7, 0.3], [0.5, 0.5], [0.4, 0.6], [0.45, 0.55]])
ONE_CLEAR = np.array([[0.576, 0.212, 0.212], [0.212, 0.576, 0.212], [0.005, 0.005, 0.99]])
TWO_SWAPPED = np.array([[0.6, 0.2, 0.2], [0.02, 0.2, 0.78], [0.02, 0.78, 0.2]])
SKEWED = np.array([[0.95, 0.05], [0.6, 0.4]])


@dataclass(frozen=True)
class World:
    """A way to draw data and bound a number, often ε, from it.

    ``least``: the mean bound at level 90 % as a share of the truth, which must be reached.
    ``sides``: 2 where ``draw`` returns both ends of an interval as a function of the error of both.
    """

    name: str
    draw: Callable[[Rng], Any]
    truth: float
    least: float = 0.0
    sides: int = 1

    def misses(self, found: list[Any], alpha: float) -> int:
        """Return how often a bound, or either end of an interval, lies beyond the truth."""
        return int(np.sum([self.missed(one, alpha) for one in found], axis=0).max())

    def missed(self, found: Any, alpha: float) -> list[bool]:
        """Return whether a bound, or each end of an interval, lies beyond the truth."""
        if self.sides == 1:
            return [found(alpha) > self.truth + 1e-9]
        low, high = found(2 * alpha)
        return [low > self.truth + 1e-9, high < self.truth - 1e-9]


def insider(
    name: str,
    claim: FloatArray | None,
    true: FloatArray,
    sizes: list[int],
    least: float = 0.0,
    method: str | None = None,
) -> World:
    """Return a world of true against released labels; of one method alone, or of both."""

    def draw(rng: Rng) -> Bound:
        evidence = claimed_evidence(counted(np.array(sizes), true, rng), claim, rng)
        assert evidence is not None
        if method == "selected":
            return lambda alpha: evidence.of_selected().bound(alpha).epsilon
        if method is not None:
            return lambda alpha: evidence.by_method(method, alpha).epsilon
        return lambda alpha: evidence.bound(alpha).epsilon

    return World(name, draw, epsilon_of(true), least)


def _insiders() -> list[World]:
    worlds = []
    for epsilon, least in ((0.5, 0.6), (2.0, 0.9), (5.0, 0.75)):
        true = randomized_response(2, epsilon)
        worlds.append(insider(f"rr {epsilon} even", true, true, [750, 750], least))
        worlds.append(insider(f"rr {epsilon} skewed", true, true, [1350, 150], 0.3))
    three, ten, one = (randomized_response(*pair) for pair in ((3, 1.0), (10, 2.0), (2, 1.0)))
    for method in ("accuracy", "two-sided", "odds-ratio", "selected"):
        worlds.append(insider(f"rr by {method}", one, one, [500, 1000], 0.6, method))
        worlds.append(
            insider(f"asymmetric by {method}", ASYMMETRIC, ASYMMETRIC, [750, 750], 0.0, method)
        )
    return [
        *worlds,
        insider("rr of three", three, three, [900, 450, 150], 0.6),
        insider("rr of ten", ten, ten, [150] * 10, 0.85),
        insider("asymmetric", ASYMMETRIC, ASYMMETRIC, [750, 750], 0.7),
        insider("wrong claim", one, ASYMMETRIC, [300, 1200], 0.5),
        insider("constant", one, CONSTANT, [1350, 150]),
        insider("narrow", NARROW, NARROW, [450, 1050], 0.55),
        insider("tall", TALL, TALL, [600, 450, 300, 150], 0.3),
        insider("rare", RARE, RARE, [1500, 1500], 0.45),
        insider("one class in the clear", three, ONE_CLEAR, [1400, 1400, 200], 0.4),
        insider("a large class in the clear", three, ONE_CLEAR, [1000, 1000, 1000], 0.65),
        insider("two classes changed about", three, TWO_SWAPPED, [1000, 1000, 1000], 0.7),
        insider("rare claim", RARE, ASYMMETRIC_THREE[:2], [1200, 300]),
        insider("few of two", ASYMMETRIC_THREE, ASYMMETRIC_THREE, [2910, 45, 45], 0.7),
        insider("one in a hundred", SKEWED, SKEWED, [2970, 30], 0.6),
        insider("four hundred", SKEWED, SKEWED, [120, 280], 0.55),
        insider("no claim, rr", None, one, [450, 1050], 0.6),
        insider("no claim, asymmetric", None, ASYMMETRIC, [450, 1050], 0.5),
        insider("no claim, constant", None, CONSTANT, [450, 1050]),
    ]


def clusters(
    n: int, k: int, epsilon: float, rng: Rng, gap: float = 4.0
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return points in clusters by label, released labels, halves, and a model's P(output | x)."""
    truth = rng.integers(0, k, n).astype(np.int32)
    points = rng.normal(size=(n, 3)).astype(np.float32)
    points[:, 0] += gap * truth
    mechanism = RandomizedResponse.from_epsilon(tuple(range(k)), epsilon)
    logs = -0.5 * (points[:, :1] - gap * np.arange(k)) ** 2
    eta = np.exp(logs - logs.max(axis=1, keepdims=True))
    scores = eta / eta.sum(axis=1, keepdims=True) @ mechanism.channel.matrix
    return points, mechanism.sample(truth, rng), (rng.permutation(n) % 2).astype(np.int8), scores


def outsider(epsilon: float, *, balls: bool, least: float) -> World:
    def draw(rng: Rng) -> Bound:
        # The features reveal the labels: nothing is left to chance but the channel.
        points, released, halves, scores = clusters(1200, 2, epsilon, rng, 40.0)
        given = None if balls else scores
        found = release_only_evidence(points, SplitRows(released, 2, halves), rng=rng, scores=given)
        return lambda alpha: found.bound(alpha).epsilon

    name = f"release only {epsilon}{' by balls' if balls else ''}"
    return World(name, draw, epsilon, least)


def numbers(rng: Rng, epsilon: float = 1.0, n: int = 800, k: int = 5) -> Bound:
    """Return the bound from groups of low and high numbers, the outer ones well told."""
    middle = rng.normal(2.0, 2.0, n)
    truth = np.clip(np.rint(middle + rng.normal(0, 0.3, n)), 0, k - 1).astype(np.int32)
    claimed = RandomizedResponse.from_epsilon(tuple(range(k)), epsilon)
    likely = np.exp(-((np.clip(middle, 0, k - 1)[:, None] - np.arange(k)) ** 2))
    scores = (likely / likely.sum(axis=1, keepdims=True)) @ claimed.channel.matrix
    halves, released = (rng.permutation(n) % 2).astype(np.int8), claimed.sample(truth, rng)
    found = release_only_evidence(
        None, SplitRows(released, k, halves, ordered=True), rng=rng, scores=scores
    )
    return lambda alpha: found.bound(alpha).epsilon


def noise_alone(rng: Rng) -> Bound:
    """Return the bound where the released label is a fair coin, and scores are noise."""
    points, noise = rng.normal(size=(800, 2)).astype(np.float32), rng.random(800)
    released, halves = rng.integers(0, 2, 800).astype(np.int32), rng.permutation(800) % 2
    scores = np.stack([noise, 1 - noise], axis=1)
    halves = halves.astype(np.int8)
    found = release_only_evidence(points, SplitRows(released, 2, halves), rng=rng, scores=scores)
    return lambda alpha: found.bound(alpha).epsilon


def ranked(n: int, k: int, epsilon: float, rng: Rng, clear: float = 0.0) -> RankedRows:
    """Return rows whose scores depend on the label; the highest are in the clear."""
    truth = np.where(rng.random(n) < 0.6, 0, rng.integers(0, k, n)).astype(np.int32)
    scores = np.round(rng.normal(size=n) + 0.5 * truth, 1)
    released = RandomizedResponse.from_epsilon(tuple(range(k)), epsilon).sample(truth, rng)
    if clear:
        top = scores > np.quantile(scores, 1 - clear)
        released = np.where(top, truth, released).astype(np.int32)
    return RankedRows(scores, truth, released)


def subgroups(k: int, epsilon: float, n: int = 400, clear: float = 0.0) -> World:
    def draw(rng: Rng) -> Bound:
        choosing, tested = (ranked(size, k, epsilon, rng, clear) for size in (n // 3, n))
        tests = subgroup_tests(choosing, tested, (k, k), 1.0, rng)
        assert sum(test.share for test in tests) <= 1 + 1e-9
        return lambda alpha: Strongest(tests).bound(alpha).epsilon

    return World(f"subgroups {k} {epsilon} {clear}", draw, epsilon)


def people(
    rng: Rng, n: int = 3000, groups: int = 60, k: int = 2
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return groups of rows with equal features, labels, and P(label | group)."""
    group = rng.integers(0, groups, n)
    eta = rng.dirichlet(np.full(k, 0.5), groups)
    labels = (rng.random(n)[:, None] > np.cumsum(eta[group], axis=1)).sum(axis=1)
    return group, np.minimum(labels, k - 1).astype(np.int32), eta


def matched(noise: float, floor: float, *, model: str = "right", least: float = 0.0) -> World:
    """Return a world of model-based randomized response in rows with equal features."""
    made = ModelBasedRR((0, 1), noise, floor)

    def draw(rng: Rng) -> Bound:
        group, labels, eta = people(rng)
        if model == "wrong":
            eta = rng.dirichlet(np.full(2, 0.5), len(eta))
        if model == "even":
            eta = np.full((len(eta), 2), 0.5)
        released = made.sample(labels, eta[group], rng)
        matchings = [match(group, labels, 2, ratio, rng) for ratio in RATIOS]
        counts = [(one.table(released == one.targets[group]), None) for one in matchings]
        return lambda alpha: Strongest(matched_tests(counts)).bound(alpha).epsilon

    return World(f"matched {noise} {model}", draw, 0.0 if noise == 1 else made.epsilon, least)


CHANCE = 0.27


def flips(rng: Rng, n: int, period: int = 0, run: int = 1) -> np.ndarray:
    """Return what noise did to n rows: a draw for each, repeated after a period or in runs."""
    drawn = (rng.random(period or n) < CHANCE).astype(float)
    return np.resize(drawn, n) if period else np.repeat(drawn, run)[:n]


def labels(
    rng: Rng,
    n: int = 10_000,
    clear: slice = slice(0, 0),
    drift: float = 0.0,
    shift: float = 0.0,
    by_truth: float = 0.0,
) -> tuple[np.ndarray, np.ndarray, tuple[float, float]]:
    """Return released labels, their chances given features by a model, and the chances' ends.

    ``shift``: how far the people in the clear are from the others; ``by_truth``: the share of the
    rows that the true labels put in order, with the spread of the scores.
    """
    score = rng.normal(0, 2 + 4 * by_truth, n) + drift * np.linspace(-1, 1, n)
    score[clear] += shift
    truth = (rng.random(n) < 1 / (1 + np.exp(-score))).astype(np.int32)
    if by_truth:
        order = np.argsort(np.where(rng.random(n) < by_truth, truth, rng.random(n)), kind="stable")
        score, truth = score[order], truth[order]
    lost = rng.random(n) < CHANCE
    lost[clear] = False
    expected = CHANCE + (1 - 2 * CHANCE) / (1 + np.exp(-score))
    return np.where(lost, 1 - truth, truth).astype(np.int32), expected, (CHANCE, 1 - CHANCE)


def people_of_homes(
    rng: Rng, homes: int, size: int, epsilon: float, *, shared: bool, k: int = 2
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return true labels, released labels and homes; where shared, each home has one draw."""
    home = np.repeat(np.arange(homes), size)
    truth = rng.integers(0, k, len(home)).astype(np.int32)
    lost = rng.random(homes)[home] if shared else rng.random(len(home))
    other = (truth + rng.integers(1, k, len(home))) % k
    kept = lost <= np.exp(epsilon) / (np.exp(epsilon) + k - 1)
    return truth, np.where(kept, truth, other).astype(np.int32), home


def guesses(rng: Rng, n: int, shares: list[float]) -> list[np.ndarray]:
    """Return right guesses of attacks that agree in nine of ten rows, each with its share."""
    rank, own = rng.random(n), rng.random((len(shares), n)) < 0.1
    return [np.where(own[i], rng.random(n), rank) < share for i, share in enumerate(shares)]


def pair(a: np.ndarray, b: np.ndarray) -> Folds:
    return Folds(tuple(np.array_split(b.astype(np.float64) - a.astype(np.float64), 2)))


def _canaries(rng: Rng) -> Bound:
    priors = rng.choice([0.2, 0.5, 0.7], 400)
    right = priors * math.e / (1 + priors * (math.e - 1))
    guesses = CanaryGuesses(priors, int((rng.random(400) < right).sum()))
    return lambda alpha: guesses.bound(alpha).epsilon


def _model(rng: Rng) -> Bound:
    otherwise = rng.uniform(0.2, 0.8, 800)
    changed = rng.random(800) < ModelBasedFamily(0.1).noise(2.0) * otherwise
    found = ModelEvidence(800, int(changed.sum()), float(otherwise.mean()), 0.1)
    return lambda alpha: found.bound(alpha).epsilon


def _guesses(rng: Rng) -> Bound:
    right = int(rng.binomial(300, 1 / (1 + math.exp(-1.5))))
    return lambda alpha: epsilon_lower(GuessCounts(900, right, 300 - right), alpha).epsilon


def _bags(rng: Rng) -> Bound:
    residuals = rng.laplace(0, 1 / 1.2, 1500)
    return lambda alpha: bag_bound(residuals, alpha)


WORLDS = [
    *_insiders(),
    outsider(0.5, balls=False, least=0.3),
    outsider(2.0, balls=False, least=0.7),
    outsider(2.0, balls=True, least=0.5),
    World("release only, numbers", numbers, 1.0, 0.1),
    World("release only, nothing", noise_alone, 0.0),
    subgroups(3, 3.0),
    matched(1.0, 0.0),
    matched(1.0, 0.0, model="wrong"),
    matched(0.5, 0.5, model="even", least=0.7),
    matched(0.6, 0.1, least=0.2),
    World("canaries", _canaries, 1.0, 0.6),
    World("public model", _model, 2.0, 0.85),
    World("guesses", _guesses, 1.5, 0.8),
    World("sums of bags", _bags, 1.2, 0.7),
]
