import numpy as np
import pytest

from ldpaudit.randomness import child_generator, integer_seed, seed_from


def test_a_child_depends_on_seed_and_names_alone():
    first = child_generator(7, "instance-loss", "queries").random(4)
    again = child_generator(7, "instance-loss", "queries").random(4)
    np.testing.assert_array_equal(first, again)


@pytest.mark.parametrize("other", [(8, "a", "b"), (7, "a"), (7, "b", "a"), (7, "ab")])
def test_children_differ(other):
    seed, *names = other
    assert child_generator(7, "a", "b").random() != child_generator(seed, *names).random()


def test_seeds_are_in_range():
    rng = np.random.default_rng(0)
    assert all(0 <= seed_from(rng) < 2**63 for _ in range(100))
    assert all(0 <= integer_seed(rng) < 2**31 for _ in range(100))
