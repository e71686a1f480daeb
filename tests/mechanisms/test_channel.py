import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import log as mplog
from mpmath import mpf

from ldpaudit.errors import InputError
from ldpaudit.mechanisms import Channel, RandomizedResponse

EPSILONS = st.floats(0.05, 10)


def staircase(epsilon: float, inside: list[bool], scale: float) -> Channel:
    """A two-row channel with one staircase column and its complement."""
    high, low = scale * math.exp(epsilon), scale
    first = np.array([high if flag else low for flag in inside])
    matrix = np.column_stack([first, 1 - first])
    return Channel(matrix, tuple(range(len(inside))), (0, 1))


@given(EPSILONS, st.integers(2, 12))
def test_randomized_response_has_the_epsilon_it_states(epsilon: float, k: int) -> None:
    mechanism = RandomizedResponse.from_epsilon(tuple(range(k)), epsilon)
    assert mechanism.epsilon == pytest.approx(epsilon, rel=1e-9)
    assert mechanism.channel.epsilon == pytest.approx(epsilon, rel=1e-9)
    keep = math.exp(epsilon) / (math.exp(epsilon) + k - 1)
    assert mechanism.channel.matrix[0, 0] == pytest.approx(keep, rel=1e-12)


@pytest.mark.parametrize(
    ("noise", "k", "epsilon"), [(0.01, 2, math.log(199)), (0.001, 2, 7.600402), (0.3, 2, 1.734601)]
)
def test_lambda_form_gives_the_published_epsilon(noise: float, k: int, epsilon: float) -> None:
    assert RandomizedResponse(tuple(range(k)), noise).epsilon == pytest.approx(epsilon, abs=1e-6)


def test_ends_of_lambda() -> None:
    assert RandomizedResponse((0, 1), 0.0).epsilon == math.inf
    assert RandomizedResponse((0, 1), 0.0).channel.epsilon == math.inf
    assert RandomizedResponse((0, 1), 1.0).epsilon == 0.0
    with pytest.raises(InputError, match=r"\[0, 1\]"):
        RandomizedResponse((0, 1), 1.5)


@given(EPSILONS, st.floats(1.01, 60), st.floats(0.001, 0.02))
def test_staircase_closed_forms(epsilon: float, alpha: float, scale: float) -> None:
    # Rows (tE, 1 - tE) and (t, 1 - t): two outputs, both terms in closed form.
    scale = scale * math.exp(-epsilon)
    channel = staircase(epsilon, [True, False], scale)
    high = scale * math.exp(epsilon)
    assert channel.total_variation == pytest.approx(high - scale, rel=1e-9)

    def summed(p: float, q: float) -> float:
        first = alpha * math.log(p) + (1 - alpha) * math.log(q)
        second = alpha * math.log1p(-p) + (1 - alpha) * math.log1p(-q)
        return float(np.logaddexp(first, second))

    expected = max(summed(high, scale), summed(scale, high)) / (alpha - 1)
    assert channel.rdp(alpha) == pytest.approx(expected, rel=1e-6, abs=1e-9)


@given(EPSILONS, st.integers(2, 6))
@settings(max_examples=50)
def test_rdp_grows_with_alpha_up_to_epsilon(epsilon: float, k: int) -> None:
    channel = RandomizedResponse.from_epsilon(tuple(range(k)), epsilon).channel
    curve = [channel.rdp(alpha) for alpha in (0.5, 1, 1.5, 2, 8, 64, 4096, math.inf)]
    assert all(a <= b + 1e-12 for a, b in itertools.pairwise(curve))
    assert curve[-1] == pytest.approx(epsilon)


@given(EPSILONS, st.floats(0, 12))
def test_delta_of_binary_randomized_response(epsilon: float, at: float) -> None:
    channel = RandomizedResponse.from_epsilon((0, 1), epsilon).channel
    keep = 1 / (1 + math.exp(-epsilon))
    expected = max(keep - math.exp(at) * (1 - keep), 0.0)
    assert channel.delta(at) == pytest.approx(expected, abs=1e-9)


def test_an_impossible_output_is_infinite() -> None:
    channel = Channel(np.array([[1.0, 0.0], [0.5, 0.5]]), ("a", "b"), (0, 1))
    assert channel.epsilon == math.inf
    assert channel.rdp(2) == math.inf
    assert channel.rdp(0.5) < math.inf


def test_an_output_that_never_happens_is_ignored() -> None:
    channel = Channel(np.array([[0.75, 0.25, 0.0], [0.25, 0.75, 0.0]]), (0, 1), (0, 1, 2))
    assert channel.epsilon == pytest.approx(math.log(3))


@pytest.mark.parametrize(
    "matrix",
    [[[0.5, 0.4], [0.5, 0.5]], [[1.5, -0.5], [0.5, 0.5]], [[float("nan"), 1], [0.5, 0.5]], [[1.0]]],
)
def test_what_is_no_channel_is_refused(matrix: list[list[float]]) -> None:
    with pytest.raises(InputError):
        Channel(np.array(matrix), (0, 1), (0, 1))


@given(EPSILONS, st.lists(st.floats(0.01, 0.99), min_size=1, max_size=20))
def test_binary_advantage_closed_form(epsilon: float, etas: list[float]) -> None:
    channel = RandomizedResponse.from_epsilon((0, 1), epsilon).channel
    eta = np.array(etas)
    flip = 1 / (1 + math.exp(epsilon))
    expected = np.clip(np.minimum(eta, 1 - eta) - flip, 0, None).mean()
    posterior = np.column_stack([1 - eta, eta])
    gain = channel.informed_accuracy(posterior) - posterior.max(axis=1)
    assert gain.mean() == pytest.approx(expected, abs=1e-12)


@given(EPSILONS, st.integers(2, 8))
def test_inverse_recovers_the_prior(epsilon: float, k: int) -> None:
    channel = RandomizedResponse.from_epsilon(tuple(range(k)), epsilon).channel
    prior = np.arange(1, k + 1) / np.arange(1, k + 1).sum()
    assert prior @ channel.matrix @ channel.inverse == pytest.approx(prior, abs=1e-9)


def test_a_channel_that_loses_a_label_has_no_inverse() -> None:
    with pytest.raises(InputError, match="cannot be inverted"):
        _ = RandomizedResponse((0, 1), 1.0).channel.inverse


@pytest.mark.parametrize("seed", range(3))
def test_samples_follow_the_channel(seed: int) -> None:
    # Each cell is within 6 standard deviations: a false alarm has probability below 1e-7.
    rng = np.random.default_rng(seed)
    mechanism = RandomizedResponse.from_epsilon(("a", "b", "c"), 1.0)
    labels = rng.integers(0, 3, 100_000).astype(np.int32)
    released = mechanism.sample(labels, rng)
    for y in range(3):
        rows = labels == y
        for z in range(3):
            p = mechanism.channel.matrix[y, z]
            share = (released[rows] == z).mean()
            assert abs(share - p) < 6 * math.sqrt(p * (1 - p) / rows.sum())


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


def test_a_large_channel_is_analysed_in_blocks(monkeypatch):
    rng = np.random.default_rng(4)
    matrix = rng.random((7, 5))
    matrix /= matrix.sum(axis=1, keepdims=True)
    channel = Channel(matrix, tuple(range(7)), tuple(range(5)))
    monkeypatch.setattr("ldpaudit.mechanisms.channel._CACHED", 10)
    for epsilon in (0.0, 0.3):
        pairs = np.clip(matrix[:, None] - np.exp(epsilon) * matrix[None], 0, None).sum(axis=2)
        assert channel.delta(epsilon) == pytest.approx(pairs.max(), rel=1e-14)
    assert channel.delta(channel.epsilon) == 0
