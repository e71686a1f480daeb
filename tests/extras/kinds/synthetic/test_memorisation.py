import numpy as np
import pytest

from ldpaudit.extras.kinds.synthetic.counts import PairWins, count_memorisation, count_own_rows

ALPHA = 0.05


def draws(
    rng: np.random.Generator, rows: int = 150, *, ties: bool = False
) -> tuple[np.ndarray, ...]:
    """Training, held-out and other rows of one population."""
    if ties:
        return tuple(rng.integers(0, 4, (3, rows, 2)).astype(np.float32))
    return tuple(rng.standard_normal((3, rows, 3)).astype(np.float32))


@pytest.mark.parametrize(("noise", "offset"), [(0.0, 0), (0.3, 0), (0.05, 20_000)])
def test_a_generator_that_copies_is_found_every_time(noise: float, offset: int) -> None:
    """Far from the origin, too, where squares in float32 hide every difference."""
    for seed in range(5):
        rng = np.random.default_rng(seed)
        training, held_out, _ = (part + np.float32(offset) for part in draws(rng))
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
    for seed in range(10):
        rng = np.random.default_rng(seed)
        training, held_out, other = draws(rng, rows=1000)
        made = np.concatenate([training[rng.integers(0, 1000, 10)], other[10:]])
        counts = count_memorisation(training, held_out, made, rng)
        assert [pairs.decisive for pairs in counts.one_sided] == [100, 10]
        found += counts.share_lower(ALPHA) > 0.5
        by_all_pairs += PairWins(counts.decisive, counts.wins).p_value < ALPHA
    # Two of ten rows drawn twice would leave eight copies and two coins: 0.5 % of seeds.
    assert found >= 9
    assert by_all_pairs < 6


def test_pairs_of_equal_records_say_nothing() -> None:
    rows = np.ones((100, 2), dtype=np.float32)
    counts = count_memorisation(rows, rows, rows, np.random.default_rng(0))
    assert all(found.decisive == 0 for found in counts.one_sided)
    assert counts.share_lower(ALPHA) <= 0.5
    assert counts.epsilon_lower(ALPHA) == 0


def test_own_rows_are_told_by_labels_and_by_keys() -> None:
    rng = np.random.default_rng(0)
    true, made = rng.standard_normal((2, 600, 2)).astype(np.float32)
    label = rng.integers(0, 2, 600)[:, None] * np.float32(2)
    assert count_own_rows(true + label, made + label, rng).share_lower(0.001) > 0.5
    true = rng.integers(0, 50, 900)
    made = np.clip(true + rng.integers(-20, 21, 900), 0, 49)
    seen = true != made
    points = [part[seen, None].astype(np.float32) for part in (true, made)]
    keys = (true[seen].astype(np.uint64), made[seen].astype(np.uint64))
    assert count_own_rows(*points, rng, keys).share_lower(0.001) > 0.6
