"""What columns tell together of a label."""

import numpy as np

from ldpaudit.commands.privatize.columns.together import told_together


def test_groups_of_many_values_are_fine_and_no_number_is_one_of_its_own() -> None:
    """The label is decided by a narrow band of one column, or by where the other has no number."""
    rng = np.random.default_rng(3)
    wide, holes = rng.random((2, 2000))
    holes[rng.random(2000) < 0.1] = np.inf
    decided = (np.abs(wide - 0.5) < 0.1) ^ np.isinf(holes)
    told = told_together([wide, holes], decided.astype(np.int32))
    assert told is not None
    assert told > 0.98
    by_chance = told_together([wide, holes], rng.integers(0, 2, 2000).astype(np.int32))
    assert by_chance is not None
    assert by_chance < 0.6
