"""White noise is hardly ever taken for something else; each way in which it is not white is found.

That bets gain nothing on average is shown exactly: over all orders of the rows of a small table.
"""

import math
from collections.abc import Callable
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest
from estimators.worlds import Rng, allowed
from levels import check_level
from worlds import feature_table

from ldpaudit.estimators import departures, whiteness
from ldpaudit.estimators.assumptions.learner import cross_fitted_chances, foreseen
from ldpaudit.estimators.departures import Departure, Groups, Order, ranks_within
from ldpaudit.estimators.row_noise import RowNoise, average, p_value
from ldpaudit.estimators.whiteness import autocorrelations, white
from ldpaudit.release import FloatArray, IndexArray

LEVELS = (0.01, 0.05, 0.2)
N = 4_000


def order(rows: IndexArray | int, name: str = "the file") -> Order:
    columns = () if name == "the file" else (0,)
    return Order(name, np.arange(rows) if isinstance(rows, int) else rows, columns)


def grouping(codes: Any, rng: Rng) -> Groups:
    return Groups("value", np.asarray(codes, dtype=np.int64), (0,), rng.permutation(len(codes)))


def noise(rng: Rng, n: int = N, k: int = 2, epsilon: float = 1.0) -> RowNoise:
    """Randomized response changes a label or not."""
    changed = rng.random(n) < (k - 1) / (k - 1 + np.exp(epsilon))
    return RowNoise(changed.astype(np.float64), rng.integers(0, k, n))


def least_p_value(outcomes: RowNoise, rng: Rng) -> float:
    """Return the p-value of white noise in the file, in two orders, and in two groupings."""
    n = len(outcomes)
    orders = [order(n), order(rng.permutation(n), "a"), order(np.argsort(outcomes.strata), "b")]
    groups = [grouping(np.arange(n) // 3, rng), grouping(rng.integers(0, 6, n), rng)]
    return min((one.p_value for one in white(outcomes, orders, groups)), default=1.0)


def honest(n: int, k: int, epsilon: float, by_truth: bool, rng: Rng) -> float:
    outcomes = noise(rng, n, k, epsilon)
    if by_truth:
        outcomes = outcomes.take(np.argsort(outcomes.strata, kind="stable"))
    return least_p_value(outcomes, rng)


WORLDS = [
    (n, k, epsilon, by_truth)
    for n in (60, 300, 3_000)
    for k, epsilon in ((2, 0.5), (2, 4.0), (4, 1.0), (4, 4.0))
    for by_truth in (False, True)
]


def too_often(world: tuple[int, int, float, bool], runs: int) -> None:
    """Compare how often p ≤ α with α."""

    def refuted(seed: int) -> np.ndarray:
        rng = np.random.default_rng([seed, *map(int, world)])
        return honest(*world, rng) <= np.array(LEVELS)

    check_level(refuted, runs, LEVELS)


@pytest.mark.parametrize("world", WORLDS[::5], ids=str)
def test_white_noise_is_seldom_accused(world: tuple[int, int, float, bool]) -> None:
    too_often(world, 40)


@pytest.mark.validate
@pytest.mark.parametrize("world", WORLDS, ids=str)
def test_p_values_of_white_noise_are_valid(world: tuple[int, int, float, bool]) -> None:
    too_often(world, 4_000 if world[0] < 1_000 else 1_000)


STRATA = np.array([0, 1, 0, 0, 1, 0, 0, 1])
SMALL = np.array([0, 0, 1, 1, 0, 1, 2, 2])
SMALL_ORDER = np.array([3, 0, 7, 1, 5, 2, 6, 4])
SMALL_GROUPS = Groups("value", SMALL, (0,), SMALL_ORDER)
SMALL_DEPARTURES = [
    Departure("distance", order(8), 1, 1),
    Departure("distance", order(SMALL_ORDER), 2, 2, opposite=True),
    Departure("distances", order(8), 2, 4),
    Departure("triples", order(8), 1, 3),
    Departure("stretch", order(8), 2, 5, opposite=True),
    Departure("blocks", order(8), 4),
    Departure("groups", SMALL_GROUPS),
    Departure("groups", SMALL_GROUPS, opposite=True),
    Departure("equal groups", SMALL_GROUPS),
]


@pytest.mark.parametrize("ones", [(2, 1), (4, 2), (1, 1)])
@pytest.mark.parametrize("labels", [None, np.array([0, 1, 1, 0, 1, 0, 2, 1])], ids=["", "labels"])
@pytest.mark.parametrize("departure", SMALL_DEPARTURES, ids=lambda one: one.family)
def test_bets_gain_nothing_over_all_orders(
    departure: Departure, labels: IndexArray | None, ones: tuple[int, int]
) -> None:
    """All rows of a stratum in any order: the mean wealth is exactly 1, and bets are made."""
    wealth = []
    for some in product((0.0, 1.0), repeat=8):
        outcomes = np.array(some)
        if tuple(np.bincount(STRATA, outcomes).astype(int)) != ones:
            continue
        small = RowNoise(outcomes, STRATA, claimed=np.full(8, 0.4), labels=labels)
        wealth.append([np.exp(departure.bet(small)), np.exp(departure.bet(small, both_signs=True))])
    assert np.mean(wealth, axis=0) == pytest.approx([1, 1], abs=1e-12)
    assert np.ptp(wealth) > 0.1


@pytest.mark.parametrize("departure", SMALL_DEPARTURES, ids=lambda one: one.family)
def test_bets_gain_nothing_by_given_chances(departure: Departure) -> None:
    chances = np.array([0.1, 0.3, 0.2, 0.9, 0.5, 0.6, 0.3, 0.2])
    mean = 0.0
    for some in product((0.0, 1.0), repeat=8):
        outcomes = np.array(some)
        chance = np.prod(np.where(outcomes == 1, chances, 1 - chances))
        mean += chance * np.exp(departure.bet(RowNoise(outcomes, STRATA, chances)))
    assert mean == pytest.approx(1, abs=1e-12)


def test_fair_chances_are_the_share_of_ones_still_to_come() -> None:
    rng = np.random.default_rng(0)
    outcomes = RowNoise((rng.random(60) < 0.4).astype(float), rng.integers(0, 5, 60))
    by_hand = [
        outcomes.ones[i:][outcomes.strata[i:] == outcomes.strata[i]].mean() for i in range(60)
    ]
    assert outcomes._fair == pytest.approx(by_hand)
    chances = rng.random(60)
    assert (replace(outcomes, chances=chances)._fair == chances).all()


def test_residuals_are_standardized_within_strata() -> None:
    outcomes = RowNoise(np.array([1.0, 0, 0, 0, 1, 1, 0, 0]), np.array([0, 0, 0, 0, 1, 1, 2, 3]))
    spread = np.sqrt(3) / 4
    expected = np.array([0.75, -0.25, -0.25, -0.25]) / spread
    # Where all outcomes of a stratum are the same, noise has no choice.
    assert outcomes.residual == pytest.approx([*expected, 0, 0, 0, 0])
    assert outcomes.spread == pytest.approx([*[spread] * 4, 0, 0, 0, 0])
    entropy = -4 * (0.25 * np.log(0.25) + 0.75 * np.log(0.75))
    assert outcomes.entropy == pytest.approx(entropy, abs=1e-8)
    assert (outcomes.offset == 0).all()
    assert replace(outcomes, claimed=np.full(8, 0.1)).offset == pytest.approx([0.15] * 4 + [0] * 4)
    rows = np.array([6, 0, 4])
    assert outcomes.take(rows).ones.tolist() == [0, 1, 1]
    assert len(outcomes.take(rows)) == 3


def test_autocorrelations_are_those_of_numpy() -> None:
    residual = np.random.default_rng(1).normal(size=101)
    sums = np.correlate(residual, residual, "full")[101:]
    assert autocorrelations(residual) == pytest.approx(sums / np.sqrt(100 - np.arange(100)))


def random_small(seed: int, labels: bool) -> tuple[RowNoise, IndexArray]:
    rng = np.random.default_rng(seed)
    outcomes = RowNoise(
        (rng.random(40) < 0.4).astype(float),
        rng.integers(0, 2, 40),
        claimed=rng.random(40),
        labels=rng.integers(0, 3, 40) if labels else None,
    )
    return outcomes, rng.integers(0, 6, 40)


@pytest.mark.parametrize("labels", [False, True])
@pytest.mark.parametrize(("first", "last"), [(1, 1), (3, 3), (2, 9), (30, 60)])
def test_guesses_from_distances(first: int, last: int, labels: bool) -> None:
    outcomes, _ = random_small(2, labels)
    by_hand = np.zeros(40)
    for i in range(40):
        for j in range(max(i - last, 0), i - first + 1):
            if outcomes.labels is None or outcomes.labels[i] != outcomes.labels[j]:
                by_hand[i] += outcomes.residual[j]
    by_hand /= np.sqrt(last - first + 1)
    assert departures._from_distances(outcomes, first, last) == pytest.approx(by_hand)


@pytest.mark.parametrize("labels", [False, True])
def test_guesses_from_the_group_so_far(labels: bool) -> None:
    outcomes, codes = random_small(3, labels)
    by_hand = []
    for i in range(40):
        before = [
            outcomes.residual[j]
            for j in range(i)
            if codes[j] == codes[i]
            and (outcomes.labels is None or outcomes.labels[i] != outcomes.labels[j])
        ]
        by_hand.append(sum(before) / (len(before) + 1))
    assert departures._like_before(outcomes, codes) == pytest.approx(by_hand)


def test_guesses_that_a_groups_sum_comes_to_what_is_claimed() -> None:
    outcomes, codes = random_small(4, False)
    assert outcomes.claimed is not None
    shares = np.bincount(outcomes.strata, outcomes.ones) / np.bincount(outcomes.strata)
    usual = shares[outcomes.strata]
    by_hand = []
    for i in range(40):
        own = codes == codes[i]
        seen = (outcomes.ones - usual)[:i][own[:i]].sum() + (usual - outcomes.claimed)[own].sum()
        by_hand.append(-seen / 0.6 / (own[i:].sum() + 0.5) / outcomes.spread[i])
    assert departures._towards_equal(outcomes, codes) == pytest.approx(by_hand)


def test_wealth_and_p_values() -> None:
    assert np.exp(average(np.log([1.0, 3.0, 8.0]))) == pytest.approx(4)
    assert average([]) == 0
    assert p_value(np.log(50), 2) == pytest.approx(0.04)
    assert p_value(-3.0) == p_value(1.0, 100) == 1.0
    assert ranks_within(np.array([1, 0, 1, 1, 0])).tolist() == [0, 0, 1, 2, 1]


Plant = Callable[[FloatArray, Rng], tuple[FloatArray, Any]]


def shared(outcomes: FloatArray, rng: Rng) -> tuple[FloatArray, Any]:
    return np.repeat(outcomes[::2], 2), None


def opposite(outcomes: FloatArray, rng: Rng) -> tuple[FloatArray, Any]:
    """Antithetic pairs: of two rows the one has 1 only where the other has 0."""
    uniform = np.repeat(rng.random(len(outcomes) // 2), 2)
    uniform[1::2] = 1 - uniform[1::2]
    return (uniform < 0.4).astype(float), None


def with_rows_dropped(outcomes: FloatArray, rng: Rng) -> tuple[FloatArray, Any]:
    """A sequence that repeats after 400 rows, of which one in a hundred is dropped."""
    again = np.resize(outcomes[:400], 2 * len(outcomes))
    return again[rng.random(len(again)) < 0.99][: len(outcomes)], None


def clear(outcomes: FloatArray, rng: Rng) -> tuple[FloatArray, Any]:
    outcomes[1_300:1_500] = 0
    return outcomes, None


def clear_at_the_end(outcomes: FloatArray, rng: Rng) -> tuple[FloatArray, Any]:
    outcomes[3_800:] = 0
    return outcomes, None


def more_noise(outcomes: FloatArray, rng: Rng) -> tuple[FloatArray, Any]:
    outcomes[3_600:] = rng.random(400) < 0.6
    return outcomes, None


def exact_blocks(outcomes: FloatArray, rng: Rng) -> tuple[FloatArray, Any]:
    block = np.r_[np.ones(5), np.zeros(15)]
    return np.concatenate([rng.permutation(block) for _ in range(len(outcomes) // 20)]), None


def homes(outcomes: FloatArray, rng: Rng) -> tuple[FloatArray, Any]:
    codes = rng.permutation(np.repeat(np.arange(1_000), 4))
    return outcomes[codes], codes


def opposite_pairs(outcomes: FloatArray, rng: Rng) -> tuple[FloatArray, Any]:
    codes, (found, _) = rng.permutation(np.repeat(np.arange(2_000), 2)), opposite(outcomes, rng)
    rows = np.argsort(codes, kind="stable")
    outcomes[rows] = found
    return outcomes, codes


def sites(outcomes: FloatArray, rng: Rng) -> tuple[FloatArray, Any]:
    """One of eight sites has twice as much noise."""
    codes = rng.integers(0, 8, len(outcomes))
    outcomes[codes == 3] = rng.random(int(np.sum(codes == 3))) < 0.54
    return outcomes, codes


def exact_groups(outcomes: FloatArray, rng: Rng) -> tuple[FloatArray, Any]:
    codes, (found, _) = rng.permutation(np.repeat(np.arange(200), 20)), exact_blocks(outcomes, rng)
    outcomes[np.argsort(codes, kind="stable")] = found
    return outcomes, codes


def mirrored(outcomes: FloatArray, rng: Rng) -> tuple[FloatArray, Any]:
    """The second half is drawn from the same numbers backwards."""
    outcomes[N // 2 :] = outcomes[: N // 2][::-1]
    return outcomes, None


def partly_mirrored(outcomes: FloatArray, rng: Rng) -> tuple[FloatArray, Any]:
    outcomes[1_900:2_700] = outcomes[1_000:1_800][::-1]
    return outcomes, None


def antithetic_mirror(outcomes: FloatArray, rng: Rng) -> tuple[FloatArray, Any]:
    ones = rng.random(N // 2)
    return (np.r_[ones, 1 - ones[::-1]] < 0.27).astype(np.float64), None


def shift_register(bits: int, taps: tuple[int, ...], word: int) -> Plant:
    """Return outcomes by words of so many bits of a register with these taps."""

    def plant(outcomes: FloatArray, rng: Rng) -> tuple[FloatArray, Any]:
        state = [*rng.integers(0, 2, bits - 1), 1]
        for _ in range(N * word):
            state.append(sum(state[-tap] for tap in taps) % 2)
        words = np.array(state[bits:]).reshape(N, word) @ 0.5 ** np.arange(1, word + 1)
        return (words > 0.73).astype(np.float64), None

    plant.__name__ = f"register of {bits} bits"
    return plant


PLANTED: list[tuple[str, bool, Plant]] = [
    ("distance", False, shared),
    ("distance", True, opposite),
    ("distances", False, with_rows_dropped),
    ("stretch", True, clear),
    ("stretch", True, clear_at_the_end),
    ("stretch", False, more_noise),
    ("blocks", False, exact_blocks),
    ("groups", False, homes),
    ("groups", False, mirrored),
    ("groups", False, partly_mirrored),
    ("groups", True, antithetic_mirror),
    ("triples", True, shift_register(31, (28, 31), 16)),
    ("triples", True, shift_register(16, (11, 13, 14, 16), 13)),
    ("groups", True, opposite_pairs),
    ("groups", False, sites),
    ("equal groups", False, exact_groups),
]


@pytest.mark.parametrize("planted", PLANTED, ids=lambda planted: planted[2].__name__)
def test_a_planted_departure_is_found_by_its_family(planted: tuple[str, bool, Plant]) -> None:
    """In four of five draws at least, each at p < 1e-4."""
    family, negative, plant = planted
    p_values = []
    for seed in range(5):
        rng = np.random.default_rng(seed)
        white_ones = noise(rng)
        ones, codes = plant(white_ones.ones.copy(), rng)
        outcomes = replace(white_ones, ones=ones)
        groups = [] if codes is None else [grouping(codes, rng)]
        found = white(outcomes, [order(N), order(rng.permutation(N), "other")], groups)
        own = [d for d in found if d.family == family and d.opposite == negative]
        p_values.append(min((d.p_value for d in own), default=1.0))
    assert sorted(p_values)[3] < 1e-4


@pytest.mark.parametrize("distance", [1, 2, 700])
def test_a_departure_says_where_it_was_seen(distance: int) -> None:
    rng = np.random.default_rng(distance)
    outcomes = noise(rng)
    ones = outcomes.ones.copy()
    for start in range(0, N - distance, 2 * distance):
        ones[start + distance : start + 2 * distance] = ones[start : start + distance][
            : N - start - distance
        ]
    rows = rng.permutation(N)
    shuffled = np.empty(N)
    shuffled[rows] = ones
    clearest = min(
        white(replace(outcomes, ones=shuffled), [order(N), order(rows, "other")], []),
        key=lambda one: one.p_value,
    )
    assert (clearest.where.name, clearest.family) == ("other", "distance")
    assert clearest.first == clearest.last == distance


def test_a_stretch_starts_and_stops_near_the_rows_in_the_clear() -> None:
    rng = np.random.default_rng(5)
    outcomes = noise(rng)
    outcomes.ones[2_000:2_300] = 0
    found = [one for one in white(outcomes, [order(N)], []) if one.family == "stretch"]
    assert found[0].opposite
    assert 1_850 <= found[0].first <= 2_100
    assert 2_200 <= found[0].last <= 2_450


def test_shared_noise_of_rows_with_one_label_tells_nothing_of_other_people() -> None:
    rng = np.random.default_rng(6)
    outcomes = noise(rng)
    codes = np.repeat(np.arange(N // 4), 4)
    together = replace(outcomes, ones=outcomes.ones[codes], strata=outcomes.strata[codes])
    departure = Departure("groups", grouping(codes, rng))
    assert departure.bet(together) > 20
    assert departure.bet(replace(together, labels=together.strata)) == 0.0
    others = replace(together, strata=outcomes.strata, labels=outcomes.strata)
    assert departure.bet(others) > 20


def learnt(rng: Rng, steered: bool, n: int = 2_000) -> float:
    """Bet on noise that goes with two columns together, where ``steered``, and with neither."""
    numbers = rng.normal(size=(n, 4))
    rare = (numbers[:, 0] > 0) == (numbers[:, 1] > 0)
    chance = np.where(rare, 0.1, 0.45) if steered else np.full(n, 0.27)
    outcomes = RowNoise((rng.random(n) < chance).astype(float), rng.integers(0, 2, n))
    return next(foreseen(feature_table(numbers), [outcomes], rng))


def test_a_model_foresees_noise_that_goes_with_two_columns_together() -> None:
    found = [learnt(np.random.default_rng(seed), True) for seed in range(3)]
    assert min(found) > np.log(1e6)
    assert learnt(np.random.default_rng(0), True, 150) == 0.0


def test_a_model_of_white_noise_gains_nothing() -> None:
    # P(p ≤ 0.2) ≤ 0.2.
    found = [p_value(learnt(np.random.default_rng(seed), False, 600)) for seed in range(12)]
    assert sum(p <= 0.2 for p in found) <= allowed(12, 0.2)


@pytest.mark.validate
def test_p_values_of_a_model_are_valid() -> None:
    def refuted(seed: int) -> np.ndarray:
        return p_value(learnt(np.random.default_rng(seed), False, 600)) <= np.array(LEVELS)

    check_level(refuted, 600, LEVELS)


def test_cross_fitted_chances_are_those_of_features_and_stratum() -> None:
    rng = np.random.default_rng(7)
    n = 6_000
    numbers, strata = rng.normal(size=(n, 2)), rng.integers(0, 2, n)
    chance = np.where(numbers[:, 0] > 0, 0.1, 0.6) * np.where(strata == 1, 1.0, 0.5)
    outcomes = RowNoise((rng.random(n) < chance).astype(float), strata)
    found = cross_fitted_chances(feature_table(numbers), outcomes, np.arange(n), rng)
    assert np.abs(found - chance).mean() < 0.06
    # With few rows to learn from, or in one group, chances are the shares in each stratum.
    few = cross_fitted_chances(
        feature_table(numbers[:30]), outcomes.take(np.arange(30)), np.arange(30) % 2, rng
    )
    shares = np.bincount(strata[:30], outcomes.ones[:30]) / np.bincount(strata[:30])
    assert few == pytest.approx(np.clip(shares, 1e-3, 1 - 1e-3)[strata[:30]])


@pytest.mark.parametrize("count", [1, 2, 3])
@pytest.mark.parametrize("seed", range(3))
def test_a_few_groups_are_not_all_on_one_side(count: int, seed: int) -> None:
    """Of two, both halves of a coin's throws are empty half of the time."""
    rng = np.random.default_rng(seed)
    outcomes = noise(rng, 900)
    numbers = outcomes.ones[:, None] + rng.normal(size=(900, 1))
    found = cross_fitted_chances(feature_table(numbers), outcomes, np.arange(900) % count, rng)
    assert np.isfinite(found).all()
    # Rows in one group alone have the shares of their strata.
    assert (len(np.unique(found.round(9))) == 2) == (count == 1)


@pytest.mark.parametrize("n", [9, 40, 171])
def test_of_all_pairs_of_distances_the_clearest_is_found(n: int) -> None:
    residual = np.random.default_rng(n).standard_normal(n)
    sums = {
        (near, far): float(np.sum(residual[far:] * residual[far - near : -near] * residual[:-far]))
        / math.sqrt(n - far)
        for far in range(2, n // 4 + 1)
        for near in range(1, far)
    }
    near, far = max(sums, key=lambda pair: abs(sums[pair]))
    found = whiteness._clearest_triple(residual.tobytes())
    assert found == (pytest.approx(sums[near, far]), near, far)


def test_each_family_of_an_order_spends_a_sixth(monkeypatch):
    """The places and signs among which sums chose, each with its part of the error probability."""
    monkeypatch.setattr(whiteness, "_WORTH_A_BET", 0.0)
    monkeypatch.setattr(whiteness, "_surprising", lambda tried: 0.0)
    n = 700
    outcomes = RowNoise((np.random.default_rng(4).random(n) < 0.4) * 1.0, np.zeros(n, np.int64))
    found = list(whiteness.in_order(outcomes, Order("the file", np.arange(n)), 1.0))
    most = min(whiteness._TRIPLES, n // 4)
    # Both signs of every pair of distances; of every place of a mirror, and of its middle.
    for family, ways in {"triples": [most * (most - 1)], "groups": [2 * (2 * n - 1), 2]}.items():
        tried = [one.tried / whiteness._FAMILIES_OF_ORDERS for one in found if one.family == family]
        assert sum(way / times for way, times in zip(ways, tried, strict=True)) <= 1
