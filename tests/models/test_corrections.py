import numpy as np
import pytest
from estimators.worlds import WIDE
from worlds import TURNED

from ldpaudit.mechanisms import RandomizedResponse
from ldpaudit.models.corrections import nearest_source
from ldpaudit.models.counts import clean_prior, shrunk_cell_posteriors


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
