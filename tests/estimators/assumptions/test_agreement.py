"""What released labels alone show: rows that agree too often, a stretch that is unlike the rest.

That honest noise is seldom accused: ``estimators/test_bounds.py``.
"""

import numpy as np
import pytest
from estimators.worlds import Rng, labels

from ldpaudit.estimators.assumptions.agreement import agreement_p_value, sharpness_test


def seeded(seed: int) -> Rng:
    return np.random.default_rng(seed)


def pairs(n: int) -> tuple[np.ndarray, np.ndarray]:
    return np.arange(0, n, 2), np.arange(1, n, 2)


def test_agreement_that_no_channel_allows() -> None:
    keep, rng = 0.73, seeded(4)
    most = keep**2 + (1 - keep) ** 2
    drawn = (rng.random(2000) < keep).astype(np.int32)
    assert agreement_p_value(drawn, *pairs(2000), most) > 1e-6
    assert agreement_p_value(np.repeat(drawn[::2], 2), *pairs(2000), most) < 1e-6


def test_orders_by_released_labels_and_labels_that_no_feature_foretells_are_not_tested() -> None:
    rng = seeded(0)
    released, expected, ends = labels(rng)
    order = np.argsort(released, kind="stable")
    assert sharpness_test(released[order], expected[order], ends).p_value == 1
    side = (rng.random(2000) < 0.5).astype(np.int32)
    assert sharpness_test(side, rng.random(2000), ends).p_value == 1
    # Changed rows at the end show without true labels.
    agree = (expected > 0.5) == (released == 1)
    order = np.argsort(~agree & (rng.random(len(agree)) < 0.7), kind="stable")
    found = sharpness_test(released[order], expected[order], ends)
    assert found.p_value < 1e-20
    assert found.inside < found.usual


@pytest.mark.parametrize("shift", [0.0, 2.0])
def test_a_site_in_the_clear_shows_without_true_labels(shift: float) -> None:
    """Nine of ten draws at least; a model of the labels is all that it takes."""
    worlds = (labels(seeded(s), 10_000, slice(3000, 3800), 0, shift) for s in range(10))
    clear = [f for f in (sharpness_test(*world) for world in worlds) if f.p_value <= 0.025]
    assert len(clear) >= 9
    assert all(f.inside > f.usual and f.start < 3800 and f.stop > 3000 for f in clear)
