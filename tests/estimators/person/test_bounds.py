"""Bounds of ε of several answers of a person: at their level, and near the truth.

One table of worlds: what is released, the bound, the true ε, and the share of it that is certified
of 10,000 people.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
import pytest
from estimators.person.worlds import (
    HONEST,
    JOINT,
    SHARED,
    World,
    drawn,
    independent,
    response,
    shared_uniform,
)
from scipy.stats import binom

from ldpaudit.estimators.epsilon.strongest import epsilon_evidence
from ldpaudit.estimators.person import (
    AnswersEvidence,
    Noise,
    coded_fresh,
    column_codes,
    columns_evidence,
    detectable_excess,
    releases_evidence,
    sum_lower,
)
from ldpaudit.release import label_table

FALSE_ALARM = 1e-6
ALPHA = 0.05
Draw = Callable[[int, np.random.Generator], float]


def of_columns(world: World, n: int, rng: np.random.Generator) -> AnswersEvidence:
    labels = world.labels(n, rng)
    released = world.release(labels, rng)
    columns = [
        epsilon_evidence(label_table(labels[:, a], released[:, a], *c.shape), c, rng)
        for a, c in enumerate(world.channels)
    ]
    channel = world.channel if world in JOINT else None
    codes = list(column_codes(labels, released, [c.shape for c in world.channels], channel, rng))
    found = columns_evidence([columns], codes)
    assert found is not None
    return found


def of_releases(
    n: int, rng: np.random.Generator, noise: Noise | None = None, **options: float
) -> AnswersEvidence:
    made = drawn(rng, n=n, **options)  # type: ignore[arg-type]
    channels = [made.channel] * made.truth.shape[1]
    found = releases_evidence(made.truth[:, 0], made.released, channels, noise, rng)
    assert found is not None
    return found


def columns(world: World, n: int, rng: np.random.Generator) -> float:
    return of_columns(world, n, rng).bound(ALPHA).epsilon


def as_one(world: World, n: int, rng: np.random.Generator) -> float:
    return of_columns(world, n, rng).as_one(ALPHA).epsilon


def releases(n: int, rng: np.random.Generator, **options: object) -> float:
    evidence = of_releases(n, rng, **options)  # type: ignore[arg-type]
    if options.get("remembered"):  # Noise that is not independent does not add up.
        evidence = evidence.without_sums() or evidence
    return evidence.bound(ALPHA).epsilon


def both(n: int, rng: np.random.Generator, noise: Noise) -> float:
    """Three columns over two releases at ε = 0.6 each."""
    kept = 1.0 if noise == "remembered" else 0.0
    made = [of_releases(n, rng, noise, epsilon=0.6, remembered=kept) for _ in range(3)]
    return sum_lower([one.epsilon for one in made], ALPHA)


@dataclass(frozen=True)
class Case:
    name: str
    draw: Draw
    epsilon: float
    share: float
    """Of the true ε that 10,000 people must certify."""
    short: bool = False
    """Whether it is drawn in every run of the tests."""


def release_case(share: float, *, short: bool = False, **options: object) -> Case:
    epsilon = float(options.get("epsilon", 1.0))  # type: ignore[arg-type]
    once = options.get("remembered") == 1.0
    true = epsilon * (1 if once else int(options.get("releases", 2)))  # type: ignore[call-overload]
    return Case(f"releases {options}", partial(releases, **options), true, share, short)


CASES = (
    *(Case(f"columns {w.name}", partial(columns, w), w.epsilon, 0.7) for w in HONEST[1:]),
    Case("columns in short", partial(columns, HONEST[0]), HONEST[0].epsilon, 0.9, short=True),
    *(
        Case(f"as one {w.name}", partial(as_one, w), w.epsilon, share, short)
        for w, share, short in (
            *((w, 0.0, i == 2) for i, w in enumerate(HONEST)),
            *zip(JOINT, (0.85, 0.6, 0.6), (False, True, False), strict=True),
            *zip(SHARED, (0.8, 0.8), (True, False), strict=True),
        )
    ),
    release_case(0.85, noise="fresh", short=True),
    *(release_case(0.85, noise="fresh", releases=t, epsilon=e) for t in (4, 8) for e in (0.5, 2.0)),
    release_case(0.8, noise=None, releases=3),
    release_case(0.7, noise="fresh", releases=6, epsilon=2.0, classes=8),
    release_case(0.85, noise="remembered", releases=8, remembered=1.0),
    release_case(0.8, noise=None, releases=3, remembered=1.0),
    Case("3 columns × 2 releases, fresh", partial(both, noise="fresh"), 3.6, 0.85, short=True),
    Case("3 columns × 2 releases, remembered", partial(both, noise="remembered"), 1.8, 0.85),
)


def misses(case: Case, draws: int, n: int) -> int:
    seeds = range(draws)
    return sum(case.draw(n, np.random.default_rng(s)) > case.epsilon + 1e-9 for s in seeds)


@pytest.mark.parametrize("case", [c for c in CASES if c.short], ids=lambda c: c.name)
def test_bounds_hold_at_their_level(case: Case) -> None:
    """A right bound fails this once in a million."""
    assert misses(case, 12, 400) <= binom.isf(FALSE_ALARM, 12, ALPHA)


@pytest.mark.validate
@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
@pytest.mark.parametrize("n", [300, 2_000])
def test_bounds_hold_at_their_level_over_500_draws(case: Case, n: int) -> None:
    assert misses(case, 500, n) <= binom.isf(FALSE_ALARM, 500, ALPHA)


@pytest.mark.parametrize("case", [c for c in CASES if c.share], ids=lambda c: c.name)
def test_bounds_come_near_the_true_epsilon(case: Case) -> None:
    found = case.draw(10_000, np.random.default_rng(5))
    assert case.share * case.epsilon < found < 1.1 * case.epsilon


def test_an_excess_that_would_be_found_is() -> None:
    """A power of 70 % or more passes; of the right 90 % fewer than 14 of 20 are once in 400."""
    rng, known = np.random.default_rng(0), {"noise": "fresh", "releases": 3}
    bound = of_releases(3_000, rng, **known).epsilon  # type: ignore[arg-type]
    more = detectable_excess(bound, 3.0, 0.9)(ALPHA)
    assert 0 < more < 1
    leaks = [releases(3_000, rng, epsilon=1 + more / 3, **known) for _ in range(20)]
    assert sum(one > 3 for one in leaks) >= 14
    assert detectable_excess(lambda _: 0.5, 3.0, 0.9)(ALPHA) == math.inf


def test_a_shared_draw_is_bounded_beyond_the_claim() -> None:
    world = shared_uniform((1.0, 1.0), (2, 2))
    assert as_one(world, 5_000, np.random.default_rng(1)) > 3.0


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

    assert sum_lower([bound], ALPHA) == bound(ALPHA)
    for many in (2, 5):
        value = sum_lower([bound] * many, ALPHA)
        assert many * bound(ALPHA / many) < value < many * bound(0.25)
    # One that fails at large levels is never asked there.
    assert sum_lower([lambda alpha: float(alpha <= 0.25)] * 2, ALPHA) == 2.0


def test_without_two_labels_nothing_is_bounded() -> None:
    rng, labels = np.random.default_rng(0), np.zeros((100, 2), np.int32)
    released = rng.integers(0, 2, (100, 2)).astype(np.int32)
    assert not list(column_codes(labels, released, [(2, 2), (2, 2)], None, rng))
    channels = [response(2, 1.0)] * 2
    assert releases_evidence(labels[:, 0], released, channels, "fresh", rng) is None
    assert math.isfinite(releases(40, rng))


def test_answers_with_one_likelihood_ratio_have_one_code() -> None:
    released = np.array([[0, 0, 1], [1, 0, 0], [1, 1, 1]], dtype=np.int32)
    codes, size, channel = coded_fresh([response(2, 1.0)] * 3, released)
    assert size == 4
    assert codes[0] == codes[1] != codes[2]
    assert channel is not None
    assert np.allclose(channel.sum(axis=1), 1)
    many = np.random.default_rng(0).integers(0, 60, (50, 6)).astype(np.int32)
    assert coded_fresh([response(60, 1.0)] * 6, many)[1:] == (120, None)
