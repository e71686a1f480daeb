import numpy as np
import pytest
from estimators.worlds import WIDE
from hypothesis import given
from hypothesis import strategies as st
from worlds import TURNED

from ldpaudit.errors import InputError
from ldpaudit.mechanisms import Channel, RandomizedResponse
from ldpaudit.models.corrections import label_targets, nearest_source
from ldpaudit.models.counts import clean_prior, shrunk_cell_posteriors


def random_channel(k, m, rng):
    matrix = rng.dirichlet(np.ones(m), size=k)
    return Channel(matrix, tuple(range(k)), tuple(range(m)))


@given(st.integers(2, 5), st.integers(0, 3), st.integers(0, 10_000))
def test_the_backward_loss_is_unbiased(k, more, seed):
    rng = np.random.default_rng(seed)
    channel = random_channel(k, k + more, rng)
    if np.linalg.svd(channel.matrix, compute_uv=False)[-1] < 1e-3:
        return
    losses = rng.exponential(size=(1, k))
    codes = np.arange(k + more)
    each = (label_targets(codes, channel) * losses).sum(axis=1)
    np.testing.assert_allclose(channel.matrix @ each, losses[0], atol=1e-9)


def test_labels_outside_the_channel_are_counted():
    channel = RandomizedResponse((0, 1), 0.4).channel
    with pytest.raises(InputError, match=r"(outside|rows): \d"):
        label_targets(np.array([0, 2, -1]), channel)


def test_many_labels_of_randomized_response_have_the_answers_of_any_channel():
    rng, k = np.random.default_rng(0), 70
    channel = RandomizedResponse.from_epsilon(tuple(range(k)), 3.0).channel.matrix
    nearly = channel.copy()
    nearly[0, :2] += np.array([1, -1]) * 1e-9 * channel[0, 1]
    counts = rng.multinomial(30, np.full(k, 1 / k), 20).astype(float)
    base = rng.dirichlet(np.ones(k), 20)
    found, other = (shrunk_cell_posteriors(counts, t, base, 2.0) for t in (channel, nearly))
    np.testing.assert_allclose(found, other, rtol=1e-6)
    assert (found != other).any()


@pytest.mark.parametrize("channel", [WIDE, TURNED.label_channel.matrix], ids=["wide", "turned"])
def test_frequencies_behind_released_labels_are_those_of_the_true_ones(channel):
    shares = np.array([0.6, 0.3, 0.1])
    released = np.repeat(
        np.arange(channel.shape[1]), np.rint(50_000 * shares @ channel).astype(int)
    )
    assert clean_prior(released.astype(np.int32), channel) == pytest.approx(shares, abs=0.01)


@pytest.mark.parametrize("channel", [WIDE, TURNED.label_channel.matrix], ids=["wide", "turned"])
def test_no_other_label_makes_what_was_released_likelier(channel):
    rng, base = np.random.default_rng(9), np.full((1, 3), 1 / 3)
    counts = 300 * rng.dirichlet(np.full(channel.shape[1], 0.3), 5)
    shrunk = shrunk_cell_posteriors(counts, channel, np.tile(base, (5, 1)), 2.0)
    nearest = nearest_source(counts / 300, channel)

    def value(eta, row, weight):
        evidence = counts[row] @ np.log(eta @ channel)
        return evidence + weight * (base @ np.log(eta))[0] if weight else evidence

    for row in range(5):
        for found, weight in ((shrunk[row], 2.0), (nearest[row], 0.0)):
            best = value(np.maximum(found, 1e-12), row, weight)
            others = 0.9 * found + 0.1 * rng.dirichlet(np.ones(3), 50)
            # Expectation maximisation ends a little below the top.
            assert max(value(other, row, weight) for other in others) <= best + 0.1
