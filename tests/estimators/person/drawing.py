"""People whose labels are released several times, drawn for tests."""

from dataclasses import dataclass

import numpy as np

from ldpaudit.arrays import FloatArray, IntArray
from ldpaudit.mechanisms import RandomizedResponse


@dataclass(frozen=True)
class Repeated:
    """Labels of n people in t releases, and what was released of them, both (n, t)."""

    truth: IntArray
    released: IntArray
    channel: FloatArray


def response(classes: int, epsilon: float) -> FloatArray:
    """Return the channel of randomized response."""
    return RandomizedResponse.from_epsilon(tuple(range(classes)), epsilon).channel.matrix


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
    noise = _noise(rng, n, classes)
    truth[:, 0] = rng.choice(classes, n, p=np.linspace(2, 1, classes) / (1.5 * classes))
    for t in range(releases):
        if t:
            moves = rng.random(n) < changing
            step = rng.integers(1, max(classes, 2), n)
            truth[:, t] = np.where(moves, (truth[:, t - 1] + step) % classes, truth[:, t - 1])
        noise = noise if reused else _noise(rng, n, classes)
        keep = (channel[0, 0] - channel[0, 1]) > noise[0]
        released[:, t] = np.where(keep, truth[:, t], noise[1])
        if t:
            same = keeps & (truth[:, t] == truth[:, t - 1])
            released[same, t] = released[same, t - 1]
    return Repeated(truth, released, channel)


def _noise(rng: np.random.Generator, n: int, classes: int) -> tuple[FloatArray, IntArray]:
    return rng.random(n), rng.integers(0, classes, n).astype(np.int32)
