"""Local randomizers on the labels 0 … 24 at ε = 1, honest and faulty ones, for black-box audits.

Each takes (value, n, rng) and returns n outputs. The faulty ones are written from the description
of the fault.
"""

from functools import partial

import numpy as np

K, EPSILON = 25, 1.0
E = np.exp(EPSILON)
_PRIME = (1 << 31) - 1


def grr(value, n, rng, epsilon=EPSILON, k=K):
    keep = rng.random(n) < np.expm1(epsilon) / (np.exp(epsilon) + k - 1)
    return np.where(keep, value, rng.integers(0, k, n))


def many_values(value, n, rng):
    return grr(value, n, rng, k=64)


def unary(value, n, rng, p, q):
    bits = rng.random((n, K)) < q
    bits[:, value] = rng.random(n) < p
    return bits


def sue(value, n, rng, epsilon=EPSILON):
    p = 1 / (1 + np.exp(-epsilon / 2))
    return unary(value, n, rng, p, 1 - p)


def oue(value, n, rng, epsilon=EPSILON):
    return unary(value, n, rng, 0.5, 1 / (np.exp(epsilon) + 1))


def she(value, n, rng, scale=2 / EPSILON):
    noisy = rng.laplace(scale=scale, size=(n, K))
    noisy[:, value] += 1
    return noisy


def the(value, n, rng):
    return she(value, n, rng) > 0.67


def subset(value, n, rng, size=7):
    """Subset selection: the labels of the smallest of random keys, the true one in or not."""
    keys = rng.random((n, K))
    kept = rng.random(n) < E * size / (E * size + K - size)
    keys[:, value] = np.where(kept, -1, 2)
    return np.sort(np.argpartition(keys, size - 1, axis=1)[:, :size], axis=1)


def hashed(seeds, value, g):
    """A hash of (seed, value) into 0 … g − 1, from a universal family."""
    a, b = seeds % _PRIME, (seeds * 48271) % _PRIME
    return ((a * (value + 1) + b) % _PRIME) % g


def local_hashing(value, n, rng, g):
    seeds = rng.integers(1, _PRIME, n)
    return np.column_stack([seeds, grr(hashed(seeds, value, g), n, rng, k=g)])


def blh(value, n, rng):
    return local_hashing(value, n, rng, 2)


def olh(value, n, rng):
    return local_hashing(value, n, rng, 4)


def blh_support(outputs, value):
    return hashed(outputs[:, 0], value, 2) == outputs[:, 1]


def olh_support(outputs, value):
    return hashed(outputs[:, 0], value, 4) == outputs[:, 1]


def laplace(value, n, rng):
    return value / (K - 1) + rng.laplace(scale=1 / EPSILON, size=n)


def identity(value, n, rng):
    return [value] * n


def constant(value, n, rng):
    return np.zeros(n)


# --- faulty ---------------------------------------------------------------------------------------


def extra_chance(value, n, rng, epsilon, optimized=False):
    """Unary encoding whose true bit is flipped like the rest first and then set with chance p."""
    p = 0.5 if optimized else 1 / (1 + np.exp(-epsilon / 2))
    q = 1 / (np.exp(epsilon) + 1) if optimized else 1 - p
    bits = rng.random((n, K)) < q
    bits[:, value] |= rng.random(n) < p
    return bits


def subset_in_order(value, n, rng, size=7):
    """Subset selection that gives the true label's place away."""
    keys = rng.random((n, K))
    kept = rng.random(n) < E * size / (E * size + K - size)
    keys[:, value] = np.where(kept, -1, 2)
    return np.argpartition(keys, size - 1, axis=1)[:, :size]


def scale_of_half_the_sensitivity(value, n, rng):
    """Histogram encoding with noise for a sensitivity of 1, though two entries change."""
    return she(value, n, rng, scale=1 / EPSILON)


def lambda_as_epsilon(value, n, rng):
    """Randomized response that draws anew with probability 1/(1 + ε), not λ(ε)."""
    keep = rng.random(n) >= 1 / (1 + EPSILON)
    return np.where(keep, value, rng.integers(0, K, n))


def forgets_the_rest(value, n, rng):
    """Randomized response whose keep probability is that of two labels, whatever k is."""
    return np.where(rng.random(n) < E / (E + 1), value, rng.integers(0, K, n))


def off_by_one(value, n, rng):
    """Randomized response that never draws the last label anew."""
    keep = rng.random(n) < (E - 1) / (E + K - 1)
    return np.where(keep, value, rng.integers(0, K - 1, n))


def one_noise_for_all_bits(value, n, rng):
    """Unary encoding that compares every bit with one and the same uniform draw."""
    p = 1 / (1 + np.exp(-EPSILON / 2))
    draw = rng.random((n, 1))
    bits = np.broadcast_to(draw < 1 - p, (n, K)).copy()
    bits[:, value] = draw[:, 0] < p
    return bits


def one_noise_for_all_entries(value, n, rng):
    """Histogram encoding that adds one and the same noise to every entry."""
    noisy = np.repeat(rng.laplace(scale=2 / EPSILON, size=(n, 1)), K, axis=1)
    noisy[:, value] += 1
    return noisy


def one_sided_noise(value, n, rng):
    """Laplace noise whose sign was lost."""
    return value / (K - 1) + np.abs(rng.laplace(scale=1 / EPSILON, size=n))


def forgets_some(value, n, rng):
    """Local hashing that forgets to perturb one report in twenty."""
    reports = local_hashing(value, n, rng, 4)
    clear = rng.random(n) < 0.05
    reports[clear, 1] = hashed(reports[clear, 0], value, 4)
    return reports


extra_chance_sue_0_5 = partial(extra_chance, epsilon=0.5)
extra_chance_sue_1 = partial(extra_chance, epsilon=1.0)
extra_chance_sue_2 = partial(extra_chance, epsilon=2.0)
extra_chance_oue_0_5 = partial(extra_chance, epsilon=0.5, optimized=True)
extra_chance_oue_1 = partial(extra_chance, epsilon=1.0, optimized=True)
extra_chance_oue_2 = partial(extra_chance, epsilon=2.0, optimized=True)


def rarely_none(value, n, rng):
    """Return a rare 1 at ε = 1, and None once in 30,000, whatever the value."""
    hits = rng.random(n) < (0.02 * E if value else 0.02)
    nothing = rng.random(n) < 1 / 30_000
    return [None if none else int(hit) for hit, none in zip(hits, nothing, strict=True)]
