"""Bets that rows share noise: valid for honest noise, exact, and sure of shared noise."""

from collections.abc import Callable

import numpy as np
import pytest
from scipy.stats import binom

from ldpaudit.estimators.assumptions.noise import (
    LagTest,
    agreement_p_value,
    bet_on_pairs,
    bet_on_rows,
    disjoint_pairs,
    flip_chances,
    lag_test,
    neighbour_guesses,
    of_some,
    p_value,
)
from ldpaudit.estimators.assumptions.order import (
    ORDER_SHARES,
    NoiseTest,
    OrderTest,
    Stretch,
    block_test,
    least_clear,
    noise_test,
    sharpness_test,
    stretch_test,
)
from ldpaudit.estimators.epsilon.guesses import epsilon_lower
from ldpaudit.estimators.person_noise import largest_agreement

CHANCE = 0.27
Rng = np.random.Generator


def flips(rng: Rng, n: int, period: int = 0, run: int = 1) -> np.ndarray:
    """Return what noise did to n rows: a draw for each, repeated after a period or in runs."""
    drawn = (rng.random(period or n) < CHANCE).astype(float)
    return np.resize(drawn, n) if period else np.repeat(drawn, run)[:n]


def flat(outcomes: np.ndarray) -> np.ndarray:
    return np.full(len(outcomes), outcomes.mean())


def lags_of(outcomes: np.ndarray) -> LagTest:
    return lag_test(outcomes, flat(outcomes))


def pairs(n: int) -> tuple[np.ndarray, np.ndarray]:
    return np.arange(0, n, 2), np.arange(1, n, 2)


def labels(
    rng: Rng,
    n: int = 10_000,
    clear: slice = slice(0, 0),
    drift: float = 0.0,
    shift: float = 0.0,
    by_truth: float = 0.0,
) -> tuple[np.ndarray, np.ndarray, tuple[float, float]]:
    """Return released labels, their chances given features by a model, and the chances' ends.

    ``shift``: how far the people in the clear are from the others; ``by_truth``: the share of the
    rows that the true labels put in order, with the spread of the scores.
    """
    score = rng.normal(0, 2 + 4 * by_truth, n) + drift * np.linspace(-1, 1, n)
    score[clear] += shift
    truth = (rng.random(n) < 1 / (1 + np.exp(-score))).astype(np.int32)
    if by_truth:
        order = np.argsort(np.where(rng.random(n) < by_truth, truth, rng.random(n)), kind="stable")
        score, truth = score[order], truth[order]
    lost = rng.random(n) < CHANCE
    lost[clear] = False
    expected = CHANCE + (1 - 2 * CHANCE) / (1 + np.exp(-score))
    return np.where(lost, 1 - truth, truth).astype(np.int32), expected, (CHANCE, 1 - CHANCE)


def bets_on_rows(rng: Rng) -> float:
    outcomes = (rng.random(60) < 0.3).astype(np.int32)
    # The presumed tilt is as wild as it may be: it does not look at these outcomes.
    return p_value(bet_on_rows(outcomes, rng.integers(0, 3, 60), rng.normal(0, 1, 60)))


def bets_on_pairs(rng: Rng) -> float:
    chances = rng.choice([0.02, 0.3, 0.8], 200)
    return p_value(bet_on_pairs((rng.random(200) < chances).astype(float), chances, *pairs(200)))


def of_known_chances(rng: Rng) -> float:
    chances = np.linspace(0.05, 0.6, 3000)  # They change along the file, and are known.
    return stretch_test((rng.random(3000) < chances).astype(float), chances).p_value


def of_flips(test: Callable[..., object], n: int) -> Callable[[Rng], float]:
    def drawn(rng: Rng) -> float:
        outcomes = flips(rng, n)
        return float(test(outcomes, flat(outcomes)).p_value)  # type: ignore[attr-defined]

    return drawn


HONEST: dict[str, Callable[[Rng], float]] = {
    "bets on rows": bets_on_rows,
    "bets on pairs": bets_on_pairs,
    "lags": of_flips(lag_test, 400),
    "stretch of 100": of_flips(stretch_test, 100),
    "stretch": of_flips(stretch_test, 600),
    "blocks": of_flips(block_test, 600),
    "known chances": of_known_chances,
    "sharpness": lambda rng: sharpness_test(*labels(rng, 3000)).p_value,
    "more frequent labels": lambda rng: sharpness_test(*labels(rng, 3000, drift=2.0)).p_value,
    "half sorted by truth": lambda rng: sharpness_test(*labels(rng, 3000, by_truth=0.5)).p_value,
    "sorted by truth": lambda rng: sharpness_test(*labels(rng, 3000, by_truth=1.0)).p_value,
}


@pytest.mark.parametrize("name", HONEST)
def test_honest_noise_is_seldom_accused(name: str) -> None:
    """P(p ≤ 0.05) ≤ 0.05: of 200 draws more than 27 have a chance of 1e-6."""
    found = (HONEST[name](np.random.default_rng(seed)) for seed in range(200))
    assert sum(p <= 0.05 for p in found) <= 27


def test_a_dependence_and_shared_noise_are_found() -> None:
    rng = np.random.default_rng(0)
    tilt, same = rng.choice([-0.5, 0.5], 1000), np.zeros(1000, dtype=np.int64)
    outcomes = (rng.random(1000) < 1 / (1 + np.exp(-tilt))).astype(np.int32)
    assert p_value(bet_on_rows(outcomes, same, tilt)) < 1e-6
    assert p_value(bet_on_rows(outcomes, same, 0 * tilt)) > 0.999
    shared, chances = np.repeat((rng.random(100) < 0.1).astype(float), 2), np.full(200, 0.1)
    of_homes = disjoint_pairs(np.repeat(np.arange(100), 2), rng)
    assert len(of_homes[0]) == 100
    assert p_value(bet_on_pairs(shared, chances, *of_homes)) < 1e-6


def test_pairs_are_disjoint_and_of_one_cluster() -> None:
    clusters = np.random.default_rng(2).integers(0, 40, 300)
    first, second = disjoint_pairs(clusters, np.random.default_rng(3))
    assert (clusters[first] == clusters[second]).all()
    assert len(np.unique(np.r_[first, second])) == 2 * len(first)
    assert len(first) == (np.bincount(clusters) // 2).sum()


@pytest.mark.parametrize("period", [20, 1000])
def test_noise_that_repeats(period: int) -> None:
    found = lags_of(flips(np.random.default_rng(0), 4000, period=period))
    assert found.p_value < 1e-9
    assert (found.period, found.run) == (period, 0)
    assert len(found.apart(np.arange(4000))) == period
    first, second = found.pairs(4000)
    assert (second - first == period).all()


@pytest.mark.parametrize("size", [4, 20])
def test_runs_of_one_draw(size: int) -> None:
    outcomes = flips(np.random.default_rng(0), 8000, run=size)
    found = lags_of(outcomes)
    assert found.p_value < 1e-9
    assert found.period == 0
    assert size - 3 <= found.run <= 2 * size
    assert lags_of(outcomes[found.apart(np.arange(8000))]).p_value > 0.05


@pytest.mark.parametrize("size", [5, 10, 20])
def test_a_short_tables_run_is_hardly_underestimated(size: int) -> None:
    """In 600 rows nine of ten draws give most of the block of one draw, and seldom two of them."""
    runs = [lags_of(flips(np.random.default_rng(s), 600, run=size)).run for s in range(40)]
    assert np.mean(np.array(runs) >= 0.6 * (size - 1)) >= 0.9
    assert np.median(runs) <= 2 * size


def test_a_short_tables_period_is_found() -> None:
    """Not one of its multiples, where few pairs make chance look strong."""
    found = [lags_of(flips(np.random.default_rng(s), 600, period=10)) for s in range(40)]
    periods = [test.period for test in found if test.p_value <= 0.05]
    assert np.mean(np.array(periods) <= 10) >= 0.8
    assert all((period and period % 5 == 0) or period <= 10 for period in periods)
    assert lags_of(np.zeros(40)).p_value == lags_of(np.zeros(400)).p_value == 1


def test_rows_that_take_no_part_keep_their_places() -> None:
    """Every other row of a sequence with period 10 repeats after 10 places, not after 5."""
    outcomes, rows = flips(np.random.default_rng(1), 2000, period=10), np.arange(0, 2000, 2)
    found = lag_test(outcomes, of_some(flat(outcomes), rows))
    assert found.period == 10
    assert found.apart(rows).tolist() == [0, 2, 4, 6, 8]
    chances = np.where(np.arange(2000) % 2, CHANCE, 0.0)
    other = np.where(chances > 0, outcomes, 1 - outcomes)
    assert OrderTest.of(outcomes, chances) == OrderTest.of(other, chances)


def test_a_file_sorted_by_its_released_labels_shares_no_noise() -> None:
    """Given the true label alone noise comes in two blocks; given the released one it does not."""
    rng = np.random.default_rng(0)
    truth = (rng.random(40_000) < 0.4).astype(np.int64)
    released = truth ^ (rng.random(40_000) < CHANCE)
    order = np.argsort(released, kind="stable")
    truth, released = truth[order], released[order]
    flipped = truth != released
    chances = [flip_chances(flipped, codes) for codes in (truth, released)]
    assert lag_test(flipped.astype(float), chances[0]).p_value < 0.001
    assert least_clear(lag_test, flipped.astype(float), *chances).p_value > 0.05


def households(
    rng: Rng, homes: int, size: int, epsilon: float, *, shared: bool, k: int = 2
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return true labels, released labels and homes; where shared, each home has one draw."""
    home = np.repeat(np.arange(homes), size)
    truth = rng.integers(0, k, len(home)).astype(np.int32)
    lost = rng.random(homes)[home] if shared else rng.random(len(home))
    lost = lost > np.exp(epsilon) / (np.exp(epsilon) + k - 1)
    other = (truth + rng.integers(1, k, len(home))) % k
    return truth, np.where(lost, other, truth).astype(np.int32), home


def test_the_neighbours_bound_is_valid() -> None:
    """At 90 % each of 200 bounds misses with chance 0.1 at most: more than 41 has chance 1e-6."""
    missed = 0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        truth, released, _ = households(rng, 300, 2, 0.1, shared=False)
        counts = neighbour_guesses(truth, released, *pairs(600), rng)
        missed += epsilon_lower(counts, 0.1).epsilon > 0.1
    assert missed <= 41


def test_the_neighbours_bound_finds_shared_noise_but_not_that_of_one_person() -> None:
    for k in (2, 4):
        rng = np.random.default_rng(0)
        truth, released, home = households(rng, 1000, 2, 1.0, shared=True, k=k)
        found = neighbour_guesses(truth, released, *pairs(2000), rng)
        assert epsilon_lower(found, 0.05).epsilon > 2.5
    own = truth[2 * home]
    released = np.where(released != truth, 1 - own, own).astype(np.int32)
    assert neighbour_guesses(own, released, *pairs(2000), rng).candidates == 0


@pytest.mark.parametrize("shared", [True, False])
def test_groups_that_share_noise(shared: bool) -> None:
    rng = np.random.default_rng(2)
    truth, released, home = households(rng, 400, 4, 1.0, shared=shared)
    rows = rng.permutation(len(truth))
    truth, flipped, home = truth[rows], (released != truth)[rows], home[rows]
    chances = flip_chances(flipped, truth.astype(np.int64))
    kinds, shares = {"homes": home}, {"homes": 0.5}
    test = noise_test(flipped.astype(float), chances, kinds, rng, OrderTest(), shares)
    assert (test.p_value < 1e-6) is shared
    assert test.shared(0.05) == (["homes"] if shared else [])


def test_the_smallest_of_several_ways_to_share_noise() -> None:
    rng = np.random.default_rng(0)
    outcomes, chances = (rng.random(400) < 0.3).astype(float), np.full(400, 0.3)
    kinds = {"a": np.repeat(np.arange(200), 2), "few": np.arange(400)}
    order = OrderTest(LagTest(0.2), Stretch(0.11))
    found = noise_test(outcomes, chances, kinds, rng, order, dict.fromkeys(kinds, 0.25))
    assert set(found.by_clusters) == {"a"}
    # A quarter of the level for lags, an eighth for stretches, a quarter for each kind.
    assert found.p_value == min(4 * 0.2, 8 * 0.11, 4 * found.by_clusters["a"], 1.0)
    shared = NoiseTest({"a": 0.01, "b": 0.02}, ORDER_SHARES | {"a": 0.4, "b": 0.1}, order)
    assert shared.shared(0.03) == ["a"]


def test_agreement_that_no_channel_allows() -> None:
    keep, rng = 0.73, np.random.default_rng(4)
    most = largest_agreement(*2 * [np.array([[keep, 1 - keep], [1 - keep, keep]])])
    assert most == pytest.approx(keep**2 + (1 - keep) ** 2)
    drawn = (rng.random(2000) < keep).astype(np.int32)
    assert agreement_p_value(drawn, *pairs(2000), most) > 1e-6
    assert agreement_p_value(np.repeat(drawn[::2], 2), *pairs(2000), most) < 1e-6
    six = np.array([0, 0, 1, 1, 2, 0], np.int32)
    assert agreement_p_value(six, *pairs(6), 0.4) == pytest.approx(binom.sf(1, 3, 0.4))
    assert agreement_p_value(six, *pairs(0), 0.4) == 1.0
