import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mpmath import log as mplog
from mpmath import mpf

from ldpaudit.mechanisms import Channel, ExplicitChannel


def _divergence(p, q, alpha):
    """The definition, in exact rational powers of mpmath."""
    terms = [(mpf(float(a)), mpf(float(b))) for a, b in zip(p, q, strict=True) if a > 0]
    if any(b == 0 for _, b in terms) and alpha >= 1:
        return math.inf
    terms = [(a, b) for a, b in terms if b > 0]
    if alpha == 1:
        return float(sum(a * mplog(a / b) for a, b in terms))
    total = sum(a**alpha * b ** (1 - alpha) for a, b in terms)
    return math.inf if total == 0 else float(mplog(total) / (alpha - 1))


@pytest.mark.parametrize("alpha", [0.5, 1, 1.1, 2, 32, 1000])
@pytest.mark.parametrize("spread", [0.1, 2.0, 40.0])
def test_divergences_of_all_pairs_are_those_of_the_definition(alpha, spread):
    rng = np.random.default_rng(3)
    matrix = np.exp(spread * rng.standard_normal((5, 6)))
    matrix[0, :2] = matrix[1, 0] = matrix[:, 5] = 0
    matrix /= matrix.sum(axis=1, keepdims=True)
    channel = Channel(matrix, tuple(range(5)), tuple(range(6)))
    expected = [[_divergence(p, q, alpha) for q in channel.matrix] for p in channel.matrix]
    # Sums of about 1 are known to 1e-16, so their logarithm over α − 1 to less.
    np.testing.assert_allclose(channel.divergences(alpha), expected, rtol=1e-9, atol=1e-13)
    assert channel.rdp(alpha) == pytest.approx(np.max(expected), rel=1e-9)


def test_divergences_of_sharp_rows_from_flat_ones_are_those_of_the_definition():
    """Of sums over two sharp rows and a flat one next to nothing is left, in some directions."""
    logs = np.array([[-564, -381, -530, -119], [-439, -348, -405, -96], [0.0, -1.0, -1.0, 0.0]])
    for order in itertools.permutations(range(3)):
        matrix = np.exp(logs[list(order)])
        channel = Channel(matrix / matrix.sum(axis=1, keepdims=True), (0, 1, 2), (0, 1, 2, 3))
        expected = [[_divergence(p, q, 5) for q in channel.matrix] for p in channel.matrix]
        np.testing.assert_allclose(channel.divergences(5), expected, rtol=1e-9, atol=1e-13)


@given(st.integers(2, 4), st.integers(1, 4), st.integers(1, 4), st.integers(0, 1000))
def test_divergences_add_up(k: int, m: int, n: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    classes = tuple(range(k))
    first = Channel(rng.dirichlet(np.ones(m), size=k), classes, tuple(range(m)))
    second = Channel(rng.dirichlet(np.ones(n), size=k), classes, tuple(range(n)))
    joint = (first.matrix[:, :, None] * second.matrix[:, None, :]).reshape(k, -1)
    both = Channel(joint, classes, tuple(range(m * n)))
    for alpha in (0.5, 1, 3):
        total = first.divergences(alpha) + second.divergences(alpha)
        np.testing.assert_allclose(both.divergences(alpha), total, rtol=1e-7, atol=1e-9)


def explicit(matrix, classes, outputs):
    return ExplicitChannel(Channel(np.array(matrix), classes, outputs))


@given(st.integers(2, 6), st.integers(2, 7), st.integers(0, 10_000))
def test_moments_and_losses_are_sums_over_the_channel(k, m, seed):
    rng = np.random.default_rng(seed)
    matrix, prior = rng.dirichlet(np.ones(m), size=k), rng.dirichlet(np.ones(k))
    labels = tuple(np.cumsum(rng.uniform(0.1, 3, k)).tolist())
    outputs = tuple(rng.uniform(0.1, 9, m).tolist())
    mechanism = explicit(matrix, labels, outputs)
    sums = {"squared": 0.0, "absolute": 0.0, "poisson": 0.0}
    for y in range(k):
        mean = sum(matrix[y, z] * outputs[z] for z in range(m))
        spread = sum(matrix[y, z] * (outputs[z] - mean) ** 2 for z in range(m))
        assert mechanism.bias()[y] == pytest.approx(mean - labels[y], abs=1e-12)
        assert mechanism.variance()[y] == pytest.approx(spread, rel=1e-10)
        for z in range(m):
            weight = prior[y] * matrix[y, z]
            sums["squared"] += weight * (outputs[z] - labels[y]) ** 2 / 2
            sums["absolute"] += weight * abs(outputs[z] - labels[y])
            sums["poisson"] += weight * (outputs[z] - labels[y] * math.log(outputs[z]))
    for name, expected in sums.items():
        assert mechanism.expected_loss(prior, name) == pytest.approx(expected, rel=1e-12)
