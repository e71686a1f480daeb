import numpy as np
import pytest

from ldpaudit.attacks.confident_joint import confident_channel
from ldpaudit.mechanisms import RandomizedResponse


@pytest.mark.parametrize("epsilon", [1.0, 3.0])
def test_finds_the_channel_of_classes_that_lie_apart(epsilon):
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 3, 9000).astype(np.int32)
    mechanism = RandomizedResponse.from_epsilon((0, 1, 2), epsilon)
    released = mechanism.sample(truth, rng)
    # A model that tells the classes apart predicts the channel's row of the true one.
    posterior = mechanism.channel.matrix[truth]
    found = confident_channel(posterior, released)
    # Each entry rests on 3,000 rows: five standard errors are at most 0.046.
    np.testing.assert_allclose(found, mechanism.channel.matrix, atol=0.05)


def test_a_class_without_confident_rows_keeps_its_label():
    posterior = np.tile([0.9, 0.1], (50, 1))
    found = confident_channel(posterior, np.zeros(50, np.int32))
    assert found[1, 1] > 0.99
    np.testing.assert_allclose(found.sum(axis=1), 1.0)


def test_the_joint_is_scaled_to_the_released_labels():
    # By hand: both thresholds are 2/3; of the rows labelled 0 two are confident 0s and one a 1.
    posterior = np.array([[0.9, 0.1], [0.9, 0.1], [0.2, 0.8], [0.4, 0.6], [0.3, 0.7], [0.3, 0.7]])
    released = np.array([0, 0, 0, 1, 1, 1], dtype=np.int32)
    own = posterior[np.arange(6), released]
    assert [own[:3].mean(), own[3:].mean()] == pytest.approx([2 / 3, 2 / 3])
    found = confident_channel(posterior, released)
    # Joint: label 0 → (2, 1), label 1 → (0, 2) scaled to (0, 3).
    np.testing.assert_allclose(found, [[1.0, 0.0], [0.25, 0.75]], atol=2e-3)
