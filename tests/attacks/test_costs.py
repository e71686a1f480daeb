import pytest

from ldpaudit.attacks import ATTACKS, DEFAULT, Knowledge, create_attack
from ldpaudit.attacks.costs import Size, affordable, cost_of
from ldpaudit.mechanisms import RandomizedResponse

SMALL, LARGE = Size(1_000, 5, 2), Size(500_000, 20, 2)
CHANNEL = RandomizedResponse((0, 1), 0.5).channel


def test_cheap_attacks_come_first_and_shared_parts_are_paid_once():
    costs = [
        ("dear", {"a": 5.0}),
        ("first", {"model": 2.0}),
        ("second", {"model": 2.0}),
        ("free", {}),
    ]
    chosen = affordable(costs, 2.5)
    assert chosen.names == ("free", "first", "second")
    assert chosen.too_dear == {"dear": 5.0}
    assert affordable(costs, 0.0).names == ("free",)
    assert affordable(costs, 7.0).names == ("free", "first", "second", "dear")
    # Five seconds are spent on what is preferred.
    assert affordable(costs, 5.0).names == ("free", "dear")


def test_bayes_is_preferred_to_the_single_classifiers():
    size = Size(130_000, 8, 53)
    costs = [(name, cost_of(create_attack(name, Knowledge(CHANNEL)), size)) for name in ATTACKS]
    chosen = affordable(costs, 60.0)
    assert {"bayes", "row-order", "near-rows"} <= set(chosen.names)
    assert "classifier-boosting-plain" in chosen.too_dear


@pytest.mark.parametrize("name", ATTACKS)
def test_costs_do_not_fall_with_the_size(name):
    attack = create_attack(name, Knowledge(CHANNEL))
    small, large = (sum(cost_of(attack, size).values()) for size in (SMALL, LARGE))
    assert 0 <= small <= large


def test_references_are_free_and_everything_fits_the_default_on_a_table_of_ordinary_size():
    costs = [(name, cost_of(create_attack(name, Knowledge(CHANNEL)), LARGE)) for name in DEFAULT]
    free = {name for name, parts in costs if not parts}
    assert free == {"prior", "features-only", "released-label", "oracle"}
    assert not affordable(costs, 60.0).too_dear


def test_an_attack_that_states_no_cost_is_free():
    assert cost_of(object(), SMALL) == {}


def test_a_convolutional_network_costs_what_was_measured():
    network = create_attack("bayes-network", Knowledge(CHANNEL))

    def seconds(rows: int, width: int) -> float:
        return sum(cost_of(network, Size(rows, width, 2)).values())

    # 28 × 28 pixels, two folds of 5,936 rows: 28 s to learn and 2 s to ask, each.
    assert 30 < seconds(5_936, 784) < 120
    # Few rows are gone through 30 times at most, many are thinned.
    assert seconds(500, 784) < 0.2 * seconds(5_936, 784)
    assert seconds(1_000_000, 784) < 2 * seconds(5_936, 784)
    # No square, no image.
    assert seconds(5_936, 783) < 5
