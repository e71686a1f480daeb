"""Labels released in stages keep more of them than one stage does, at the same ε of every row."""

import math

import numpy as np
import pytest

from ldpaudit.extras.kinds.mechanisms.with_features import STAGED
from ldpaudit.extras.receipt.stages import StagedRelease
from ldpaudit.mechanisms import Channel

NAMES, EPSILON = ("a", "b", "c"), 1.0


def table(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 3, n).astype(np.int32)
    corners = np.array([[2, 0], [-2, 0], [0, 2]])
    return corners[labels] + rng.normal(size=(n, 2)), labels


def test_stages_keep_more_labels_than_one_and_no_row_reveals_more() -> None:
    features, labels = table(1500, 1)
    kept = {}
    for stages in (1, 3):
        mechanism = STAGED(NAMES, EPSILON, stages)
        release = StagedRelease(mechanism, len(labels))
        rng, drawn = np.random.default_rng(2), []
        for start in range(0, 1500, 400):  # Batches that do not end where stages do.
            part = slice(start, start + 400)
            drawn.append(release.draw(features[part], labels[part], rng))
        right = np.concatenate(drawn) == labels
        kept[stages] = [float(share) for share in right.reshape(3, -1).mean(axis=1)]
        channels = mechanism.channels(release._prior(features[:400]))
        found = [Channel(one, NAMES, NAMES).epsilon for one in channels]
        assert max(found) <= EPSILON + 1e-12
        assert {round(one, 9) for one in found} <= {0.0, EPSILON}
        assert max(found) == pytest.approx(EPSILON)
    one = math.exp(EPSILON) / (math.exp(EPSILON) + 2)  # Randomized response on three labels.
    # Standard errors are below 0.023: four of them.
    assert kept[1] == pytest.approx([one] * 3, abs=0.092)
    assert kept[3][0] == pytest.approx(one, abs=0.092)
    assert min(kept[3][1:]) > one + 0.05
    assert np.mean(kept[3]) > np.mean(kept[1]) + 0.04


def test_features_that_tell_nothing_lose_nothing() -> None:
    _, labels = table(2000, 3)
    release = StagedRelease(STAGED(NAMES, EPSILON, 2), 2000)
    right = release.draw(np.zeros((2000, 1)), labels, np.random.default_rng(4)) == labels
    assert right.mean() == pytest.approx(math.exp(1) / (math.exp(1) + 2), abs=0.07)
