"""Several answers of people: made-up columns whose true ε is known, and releases of one label."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial, reduce

import numpy as np
from estimators.worlds import WIDE

from ldpaudit.estimators.epsilon.strongest import epsilon_evidence
from ldpaudit.extras.several.files import Noise
from ldpaudit.extras.several.joint import JointRR, RandomSampling
from ldpaudit.extras.several.person.estimators import (
    AnswersEvidence,
    column_codes,
    columns_evidence,
    releases_evidence,
)
from ldpaudit.release import FloatArray, IntArray, label_table


def response(k: int, epsilon: float) -> FloatArray:
    weights = np.ones((k, k))
    np.fill_diagonal(weights, math.exp(epsilon))
    return weights / weights.sum(axis=1, keepdims=True)


def by_inverse(channel: FloatArray, labels: IntArray, uniform: FloatArray) -> IntArray:
    """Draw outputs by inversion: the usual way, and what two columns with one seed share."""
    above = uniform[:, None] > np.cumsum(channel, axis=1)[labels][:, :-1]
    return above.sum(axis=1).astype(np.int32)


@dataclass(frozen=True)
class World:
    """True vectors, the claimed channels of the columns, and what truly releases them."""

    name: str
    channels: tuple[FloatArray, ...]
    epsilon: float
    labels: Callable[[int, np.random.Generator], IntArray]
    release: Callable[[IntArray, np.random.Generator], IntArray]
    independent: bool = True
    channel: FloatArray | None = None
    """Of the vectors as one label, where one mechanism releases them."""


def uniform(sizes: tuple[int, ...], n: int, rng: np.random.Generator) -> IntArray:
    return np.stack([rng.integers(0, k, n) for k in sizes], axis=1).astype(np.int32)


def correlated(sizes: tuple[int, ...], n: int, rng: np.random.Generator) -> IntArray:
    """Skewed margins, and columns that go along with each other."""
    common = rng.random(n)
    columns = [np.floor(k * (0.6 * common + 0.4 * rng.random(n)) ** 1.7) for k in sizes]
    return np.stack(columns, axis=1).astype(np.int32)


LAWS = {"uniform": uniform, "correlated": correlated}


def independent(epsilons: tuple[float, ...], sizes: tuple[int, ...], labels: str) -> World:
    channels = tuple(response(k, e) for k, e in zip(sizes, epsilons, strict=True))
    return of_channels(f"{labels} {sizes} {epsilons}", channels, labels)


def of_channels(name: str, channels: tuple[FloatArray, ...], labels: str) -> World:
    sizes = tuple(len(channel) for channel in channels)
    law = partial(LAWS[labels], sizes)

    def release(truth: IntArray, rng: np.random.Generator) -> IntArray:
        columns = [
            by_inverse(c, truth[:, a], rng.random(len(truth))) for a, c in enumerate(channels)
        ]
        return np.stack(columns, axis=1)

    whole = reduce(np.kron, channels)
    return World(name, channels, float(np.log(whole.max(0) / whole.min(0)).max()), law, release)


def joint(kind: type, sizes: tuple[int, ...], epsilon: float, labels: str) -> World:
    mechanism = kind(tuple(tuple(range(k)) for k in sizes), epsilon)
    law = partial(LAWS[labels], sizes)
    channel = mechanism.channel()
    assert channel is not None
    return World(
        f"{mechanism.name} {sizes} {epsilon} {labels}",
        tuple(column.channel.matrix for column in mechanism.columns),
        channel.epsilon,
        law,
        mechanism.sample,
        independent=False,
        channel=channel.matrix,
    )


def shared_uniform(epsilons: tuple[float, ...], sizes: tuple[int, ...]) -> World:
    """One uniform number drives all columns: some outputs give the vector away, ε = ∞."""
    honest = independent(epsilons, sizes, "uniform")

    def release(truth: IntArray, rng: np.random.Generator) -> IntArray:
        u = rng.random(len(truth))
        return np.stack(
            [by_inverse(c, truth[:, a], u) for a, c in enumerate(honest.channels)], axis=1
        )

    return World("shared uniform", honest.channels, math.inf, honest.labels, release)


def shared_coin(epsilon: float, sizes: tuple[int, ...]) -> World:
    """Whether a label is kept is drawn once for all columns, what else is released is not.

    W(z | y) = (1 − λ)·1[z = y] + λ Π 1/k for columns with one λ: its ε is known.
    """
    keep = (math.exp(epsilon) - 1) / (math.exp(epsilon) + sizes[0] - 1)
    channels = tuple(keep * np.eye(k) + (1 - keep) / k for k in sizes)

    def release(truth: IntArray, rng: np.random.Generator) -> IntArray:
        anew = uniform(sizes, len(truth), rng)
        return np.where(rng.random(len(truth))[:, None] < keep, truth, anew).astype(np.int32)

    true_epsilon = math.log1p(keep / (1 - keep) * math.prod(sizes))
    return World("shared coin", channels, true_epsilon, partial(correlated, sizes), release)


@dataclass(frozen=True)
class Repeated:
    """Labels of n people in t releases, and what was released of them, both (n, t)."""

    truth: IntArray
    released: IntArray
    channel: FloatArray


def drawn(
    rng: np.random.Generator,
    *,
    n: int = 5_000,
    releases: int = 2,
    epsilon: float = 1.0,
    classes: int = 2,
    remembered: float = 0.0,
    changing: float = 0.0,
    reused: bool = False,
) -> Repeated:
    """Draw releases by randomized response.

    ``remembered``: the share of people whose answer is kept while their label is; ``changing``: of
    labels that change from one release to the next; ``reused``: the same random numbers each time.
    """
    channel = response(classes, epsilon)
    truth = np.empty((n, releases), dtype=np.int32)
    released = np.empty_like(truth)
    keeps = rng.random(n) < remembered
    noise = rng.random(n), rng.integers(0, classes, n).astype(np.int32)
    truth[:, 0] = rng.choice(classes, n, p=np.linspace(2, 1, classes) / (1.5 * classes))
    for t in range(releases):
        if t:
            moves = rng.random(n) < changing
            step = rng.integers(1, max(classes, 2), n)
            truth[:, t] = np.where(moves, (truth[:, t - 1] + step) % classes, truth[:, t - 1])
        if not reused:
            noise = rng.random(n), rng.integers(0, classes, n).astype(np.int32)
        keep = (channel[0, 0] - channel[0, 1]) > noise[0]
        released[:, t] = np.where(keep, truth[:, t], noise[1])
        if t:
            same = keeps & (truth[:, t] == truth[:, t - 1])
            released[same, t] = released[same, t - 1]
    return Repeated(truth, released, channel)


ASYMMETRIC = np.array([[0.9, 0.1], [0.5, 0.5]])

HONEST = (
    independent((1.0, 1.0), (2, 2), "uniform"),
    independent((2.0, 0.5), (2, 4), "correlated"),
    independent((0.5, 1.0, 1.5), (3, 2, 4), "correlated"),
    independent((1.0,) * 5, (2,) * 5, "correlated"),
    of_channels("asymmetric", (ASYMMETRIC, WIDE), "correlated"),
)
JOINT = (
    joint(JointRR, (2, 3), 2.0, "correlated"),
    joint(RandomSampling, (2, 3, 4), 1.0, "correlated"),
    joint(RandomSampling, (3, 3), 1.5, "uniform"),
)
SHARED = shared_coin(1.0, (2, 2)), shared_coin(1.5, (3, 3))
MANY = independent((1.0, 1.0), (12, 9), "correlated")


def of_columns(world: World, n: int, rng: np.random.Generator) -> AnswersEvidence:
    labels = world.labels(n, rng)
    released = world.release(labels, rng)
    columns = [
        epsilon_evidence(label_table(labels[:, a], released[:, a], *c.shape), c, rng)
        for a, c in enumerate(world.channels)
    ]
    channel = world.channel if world in JOINT else None
    codes = list(column_codes(labels, released, [c.shape for c in world.channels], channel, rng))
    found = columns_evidence([columns], codes)
    assert found is not None
    return found


def of_releases(
    n: int, rng: np.random.Generator, noise: Noise | None = None, **options: float
) -> AnswersEvidence:
    made = drawn(rng, n=n, **options)  # type: ignore[arg-type]
    channels = [made.channel] * made.truth.shape[1]
    found = releases_evidence(made.truth[:, 0], made.released, channels, noise, rng)
    assert found is not None
    return found
