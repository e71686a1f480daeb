import numpy as np
import pytest
from scipy.stats import binom

from ldpaudit.errors import InputError, InsufficientDataError
from ldpaudit.estimators.synthetic import PairWins, count_memorisation, count_own_rows, exact_copies

ALPHA = 0.05


def draws(seed: int, rows: int = 150, kind: str = "normal") -> tuple[np.ndarray, ...]:
    """Training, held-out and other rows of one population."""
    rng = np.random.default_rng(seed)
    if kind == "ties":
        shape = (3, rows, 2)
        return tuple(rng.integers(0, 4, shape).astype(np.float32))
    return tuple(rng.standard_normal((3, rows, 3)).astype(np.float32))


def limit(runs: int) -> int:
    """At most so many false accusations, but for a chance of 1e-6."""
    return int(binom.isf(1e-6, runs, ALPHA))


def accused(runs: int, kind: str) -> tuple[int, int]:
    """How often a generator that saw nothing is accused: by the pairs, and row by row."""
    by_pairs = by_rows = 0
    for seed in range(runs):
        training, held_out, other = draws(seed, kind=kind)
        # A hundred copies of each of a few rows: a generator that hardly varies.
        made = np.repeat(other[:20], 100, axis=0) + (0 if kind == "ties" else 0.01)
        rng = np.random.default_rng(1000 + seed)
        counts = count_memorisation(training, held_out, made.astype(np.float32), rng)
        by_pairs += counts.share_lower(ALPHA) > 0.5
        by_rows += binom.sf(counts.nearest_training - 1, counts.synthetic, 0.5) < ALPHA
    return by_pairs, by_rows


@pytest.mark.parametrize("kind", ["normal", "ties"])
def test_a_generator_that_saw_nothing_is_hardly_ever_accused(kind: str) -> None:
    by_pairs, by_rows = accused(80, kind)
    assert by_pairs <= limit(80)
    if kind == "normal":
        # Counting synthetic rows as independent accuses it all the time.
        assert by_rows > limit(80)


@pytest.mark.validate
@pytest.mark.parametrize("kind", ["normal", "ties"])
def test_the_level_is_held_over_many_seeds(kind: str) -> None:
    assert accused(3000, kind)[0] <= limit(3000)


@pytest.mark.parametrize(("noise", "offset"), [(0.0, 0), (0.3, 0), (0.05, 20_000)])
def test_a_generator_that_copies_is_found_every_time(noise: float, offset: int) -> None:
    """Far from the origin, too, where squares in float32 hide every difference."""
    for seed in range(20):
        training, held_out, _ = (part + np.float32(offset) for part in draws(seed))
        rng = np.random.default_rng(seed)
        made = training[rng.integers(0, 150, 300)] + noise * rng.standard_normal((300, 3))
        counts = count_memorisation(training, held_out, made.astype(np.float32), rng)
        assert counts.share_lower(ALPHA) > 0.5
        if not noise:
            assert counts.p_value < 1e-9
            assert counts.share_lower(ALPHA) > 0.9
            assert counts.epsilon_lower(ALPHA) > 2
            assert (counts.training_copies, counts.held_out_copies) == (300, 0)


def test_a_generator_that_copies_one_row_in_a_hundred_is_found() -> None:
    found = by_all_pairs = 0
    for seed in range(20):
        training, held_out, other = draws(seed, rows=1000)
        rng = np.random.default_rng(seed)
        made = np.concatenate([training[rng.integers(0, 1000, 10)], other[10:]])
        counts = count_memorisation(training, held_out, made, rng)
        assert [pairs.decisive for pairs in counts.one_sided] == [100, 10]
        found += counts.share_lower(ALPHA) > 0.5
        by_all_pairs += PairWins(counts.decisive, counts.wins).p_value < ALPHA
    # Two of ten rows drawn twice would leave eight copies and two coins: 0.5 % of seeds.
    assert found >= 19
    assert by_all_pairs < 10


def test_pairs_of_equal_records_say_nothing() -> None:
    rows = np.ones((100, 2), dtype=np.float32)
    counts = count_memorisation(rows, rows, rows, np.random.default_rng(0))
    assert all(found.decisive == 0 for found in counts.one_sided)
    assert counts.share_lower(ALPHA) <= 0.5
    assert counts.epsilon_lower(ALPHA) == 0


@pytest.mark.parametrize("epsilon", [0.5, 1.5])
def test_the_bound_of_epsilon_is_missed_no_more_often_than_stated(epsilon: float) -> None:
    """Every record of a known pool is released or not, by randomized response on its membership.

    Exchanging two records changes two answers, so ε is twice that of one answer, and the chance of
    a decisive pair to be won is e^ε/(1 + e^ε): the case in which the bound is tight.
    """
    runs, missed, bounds = 200, 0, []
    for seed in range(runs):
        training, held_out, _ = draws(seed, rows=150)
        rng = np.random.default_rng(seed)
        keep = 1 / (1 + np.exp(-epsilon / 2))
        shown = rng.random(150) < keep, rng.random(150) < 1 - keep
        made = np.concatenate([training[shown[0]], held_out[shown[1]]])
        bound = count_memorisation(training, held_out, made, rng).epsilon_lower(ALPHA)
        missed += bound > epsilon
        bounds.append(bound)
    assert missed <= limit(runs)
    # Power: constant zero fails. 75 decisive pairs or fewer: a standard error of up to 0.35 nats.
    assert np.mean(bounds) > max(epsilon - 0.75, 0.05)


def test_own_rows_are_told_where_synthetic_rows_follow_the_label() -> None:
    fair = 0
    for seed in range(100):
        rng = np.random.default_rng(seed)
        true, made = rng.standard_normal((2, 600, 2)).astype(np.float32)
        fair += count_own_rows(true, made, rng).share_lower(ALPHA) > 0.5
        label = rng.integers(0, 2, 600)[:, None] * np.float32(2)
        told = count_own_rows(true + label, made + label, rng)
        assert told.share_lower(0.001) > 0.5
    assert fair <= limit(100)


def test_rows_that_differ_by_selection_do_not_betray_their_own_row() -> None:
    """Values 0, 1 against 1, 2: only rows that differ are known to be replaced.

    Counted without regard to that, every decisive pair is a win.
    """
    accusations = 0
    for seed in range(100):
        rng = np.random.default_rng(seed)
        true, made = rng.integers(0, 2, 900), rng.choice([0, 1, 2], 900, p=[0.05, 0.55, 0.4])
        seen = true != made
        points = [part[seen, None].astype(np.float32) for part in (true, made)]
        keys = (true[seen].astype(np.uint64), made[seen].astype(np.uint64))
        assert count_own_rows(*points, rng).share_lower(0.001) > 0.5
        accusations += count_own_rows(*points, rng, keys).share_lower(ALPHA) > 0.5
    assert accusations <= limit(100)


def test_own_rows_are_told_with_keys_as_well() -> None:
    rng = np.random.default_rng(0)
    true = rng.integers(0, 50, 900)
    made = np.clip(true + rng.integers(-20, 21, 900), 0, 49)
    seen = true != made
    points = [part[seen, None].astype(np.float32) for part in (true, made)]
    keys = (true[seen].astype(np.uint64), made[seen].astype(np.uint64))
    assert count_own_rows(*points, rng, keys).share_lower(0.001) > 0.6


def test_exact_copies_count_missing_values_as_equal() -> None:
    records = np.array([[1, np.nan], [0, 2]], dtype=np.float32)
    rows = np.array([[1, np.nan], [-0.0, 2], [1, 2]], dtype=np.float32)
    assert exact_copies(rows, records).tolist() == [True, True, False]


ROWS = np.random.default_rng(0).standard_normal((50, 2)).astype(np.float32)
ONE_NAN = np.where(np.arange(100).reshape(50, 2) == 15, np.float32(np.nan), ROWS)
REFUSED = {
    "same coordinates": (count_memorisation, (ROWS, ROWS, ROWS[:, :1]), InputError),
    "must be finite": (count_memorisation, (ONE_NAN, ROWS, ROWS), InputError),
    "at least 20": (count_memorisation, (ROWS[:10], ROWS, ROWS), InsufficientDataError),
    "one synthetic row": (count_own_rows, (ROWS, ROWS[:9]), InputError),
    "At least 40 rows": (count_own_rows, (ROWS[:39], ROWS[:39]), InsufficientDataError),
}


@pytest.mark.parametrize("words", REFUSED)
def test_what_cannot_be_compared_is_refused(words: str) -> None:
    count, tables, error = REFUSED[words]
    with pytest.raises(error, match=words):
        count(*tables, rng=np.random.default_rng(0))
    assert count_own_rows(ROWS[:40], ROWS[10:], rng=np.random.default_rng(0)).decisive <= 20
