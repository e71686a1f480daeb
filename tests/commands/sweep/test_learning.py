"""What learns from a simulated release: a network sees square images as images."""

import numpy as np
import pytest

from ldpaudit.commands.sweep.learning import Learner, score_classifier
from ldpaudit.datasets.beside.labelled_rows import LabelledRows
from ldpaudit.mechanisms.response.randomized_response import RandomizedResponse
from ldpaudit.release import FeatureTable, Release, ReleasedLabels


def images(rows: int, seed: int) -> tuple[FeatureTable, np.ndarray]:
    """Return a bright row or a bright column anywhere in 8 × 8 noise."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 2, rows).astype(np.int32)
    pixels = 0.3 * rng.random((rows, 8, 8), dtype=np.float32)
    for image, label, place in zip(pixels, labels, rng.integers(0, 8, rows), strict=True):
        image[(slice(None), place) if label else place] = 1
    return FeatureTable(pixels.reshape(rows, 64), np.empty((rows, 0), np.int32), (), 1), labels


@pytest.mark.parametrize(("kind", "least", "most"), [("network", 0.95, 1.0), ("linear", 0.0, 0.8)])
def test_only_the_network_sees_lines_anywhere(kind: str, least: float, most: float) -> None:
    (x, y), (other_x, other_y) = images(700, 0), images(400, 1)
    mechanism = RandomizedResponse((0, 1), 0.2)
    labels = ReleasedLabels(mechanism.sample(y, np.random.default_rng(2)))
    release = Release(x, labels, (0, 1), (0, 1))
    learner = Learner(kind, "cpu", 0.95, 3)
    test = LabelledRows(other_x, other_y, None)
    found, correction = score_classifier(release, mechanism, test, learner)
    assert correction == "forward"
    assert least <= found.value <= most


def test_a_table_has_a_dense_network_and_a_linear_model_none() -> None:
    x, _ = images(50, 0)
    narrow = FeatureTable(x.numeric[:, :63], x.categorical, (), 63)
    learner = Learner("network", "cpu", 0.95, 3)
    assert learner.network(x).architecture == "convolutional"
    assert learner.network(narrow).architecture == "dense"
    assert Learner("linear", "cpu", 0.95, 3).network(x) is None
    assert learner.design(x)(x).max() == x.numeric.max()
