"""Bounds of ε of several answers of a person: what is counted, and what they are made of.

That they hold and find what is there: ``estimators/test_bounds.py``.
"""

import math

import numpy as np
from extras.several.person.worlds import (
    independent,
    of_columns,
    of_releases,
    response,
    shared_uniform,
)

from ldpaudit.extras.several.person.estimators import (
    column_codes,
    detectable_excess,
    releases_evidence,
    sum_lower,
)

ALPHA = 0.05


def test_an_excess_that_would_be_found_is() -> None:
    """A power of 70 % or more passes; of the right 90 % fewer than 14 of 20 are once in 400."""
    rng, known = np.random.default_rng(0), {"noise": "fresh", "releases": 3}
    bound = of_releases(2_000, rng, **known).epsilon  # type: ignore[arg-type]
    more = detectable_excess(bound, 3.0, 0.9)(ALPHA)
    assert 0 < more < 1
    leaks = (of_releases(2_000, rng, epsilon=1 + more / 3, **known) for _ in range(20))  # type: ignore[arg-type]
    assert sum(leak.epsilon(ALPHA) > 3 for leak in leaks) >= 14
    assert detectable_excess(lambda _: 0.5, 3.0, 0.9)(ALPHA) == math.inf


def test_a_shared_draw_is_bounded_beyond_the_claim() -> None:
    world = shared_uniform((1.0, 1.0), (2, 2))
    assert of_columns(world, 5_000, np.random.default_rng(1)).as_one(ALPHA).epsilon > 3.0


def test_of_many_values_pairs_are_looked_at() -> None:
    world = independent((1.0,) * 5, (3,) * 5, "uniform")
    found = of_columns(world, 2_000, np.random.default_rng(0))
    assert len(found.codes) == 10
    assert found.codes[0].counts.shape == (9, 9)


def test_many_classes_are_bounded_by_rates() -> None:
    known = {"noise": "fresh", "releases": 6, "epsilon": 2.0, "classes": 8}
    found = of_releases(5_000, np.random.default_rng(3), **known)  # type: ignore[arg-type]
    assert found.added[0](ALPHA).method == "rates"


def test_a_sum_is_stronger_than_equal_shares() -> None:
    def bound(alpha: float) -> float:
        return 1.0 - 0.05 * math.sqrt(-2 * math.log(alpha))

    for many in (2, 5):
        value = sum_lower([bound] * many, ALPHA)
        assert many * bound(ALPHA / many) < value < many * bound(0.25)


def test_without_two_labels_nothing_is_bounded() -> None:
    rng, labels = np.random.default_rng(0), np.zeros((100, 2), np.int32)
    released = rng.integers(0, 2, (100, 2)).astype(np.int32)
    assert not list(column_codes(labels, released, [(2, 2), (2, 2)], None, rng))
    channels = [response(2, 1.0)] * 2
    assert releases_evidence(labels[:, 0], released, channels, "fresh", rng) is None
    assert math.isfinite(of_releases(40, rng).epsilon(ALPHA))
