"""Released numbers that a claimed mechanism cannot give are refused, and no others are."""

from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest
from mechanisms.test_view import CONTINUOUS, GRIDDED

import ldpaudit
from ldpaudit.errors import InputError
from ldpaudit.mechanisms.label_range import LabelRange
from ldpaudit.mechanisms.noise import DiscreteLaplace, Laplace, Staircase
from ldpaudit.mechanisms.view import possible_numbers
from ldpaudit.numeric_labels import PossibleNumbers

N = 4_000


def true_labels(labels: LabelRange, n: int = N) -> np.ndarray:
    """Return labels of the whole range, and many at its ends, where noise goes farthest."""
    values = np.linspace(labels.low, labels.high, n)
    values[::3], values[1::3] = labels.low, labels.high
    return values if labels.step is None else labels.at(labels_of(labels, values))


def labels_of(labels: LabelRange, values: np.ndarray) -> np.ndarray:
    return np.rint((values - labels.low) / labels.spacing).astype(np.int64)


FAMILIES = [
    (DiscreteLaplace, LabelRange(0, 5, 1)),
    (DiscreteLaplace, LabelRange(-1000, 1000, 0.1)),
    (Laplace, LabelRange(0, 1)),
    (Laplace, LabelRange(-3, 1e6)),
    (Staircase, LabelRange(2, 9)),
]


@pytest.mark.parametrize("epsilon", [0.05, 2.0, 20.0])
@pytest.mark.parametrize(("family", "labels"), FAMILIES)
def test_what_is_released_is_possible(family, labels, epsilon):
    mechanism = family(labels, epsilon)
    possible = possible_numbers(mechanism, N)
    for seed in range(3):
        released = mechanism.release(true_labels(labels), np.random.default_rng(seed))
        assert possible.hold(released).all()
        assert possible.hold(released.astype(np.float32).astype(np.float64)).all()


@pytest.mark.parametrize("name", GRIDDED | CONTINUOUS)
def test_every_mechanism_releases_what_is_possible(name):
    mechanism = (GRIDDED | CONTINUOUS)[name]
    (low, high), labels = mechanism.label_bounds, mechanism.label_values
    rng = np.random.default_rng(0)
    truth = rng.uniform(low, high, N) if labels is None else rng.choice(labels, N)
    released = np.asarray(mechanism.release(truth, rng), dtype=np.float64)
    possible = possible_numbers(mechanism, N)
    assert possible.hold(released).all()
    assert not possible.hold(np.array([low - 1e9, high + 1e9])).any()


@pytest.mark.parametrize("shift", [0.01, 0.25, -0.5])
def test_what_is_off_the_grid_is_not(shift):
    mechanism = DiscreteLaplace(LabelRange(0, 5, 1), 2.0)
    possible = possible_numbers(mechanism, N)
    assert not possible.hold(np.arange(-9.0, 9.0) + shift).any()


def test_what_lies_beyond_all_noise_is_not():
    for mechanism in (DiscreteLaplace(LabelRange(0, 5, 1), 2.0), Laplace(LabelRange(0, 5), 2.0)):
        possible = possible_numbers(mechanism, N)
        assert possible.hold(np.array([-40.0, 40.0])).all()
        assert not possible.hold(np.array([-999.0, 99_999.0])).any()


def test_values_of_a_list_and_a_grid_are_told():
    listed = PossibleNumbers(np.array([0.0, 1.0, 4.0]))
    assert listed.hold(np.array([0.0, 1.0000001, 4.0, 2.0, -1.0, 0.3])).tolist() == [
        *(True, True, True),
        *(False, False, False),
    ]
    grid = PossibleNumbers(None, 0.5, 0.5, -1.0, 2.0)
    assert grid.hold(np.array([-1.0, 0.0, 2.0, 0.75, 2.5, -1.5])).tolist() == [
        *(True, True, True),
        *(False, False, False),
    ]
    assert PossibleNumbers().hold(np.array([-1e300, 0.1, 1e300])).all()


SPOILT: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "every label in the decimals": lambda z, y: z + y / 100,
    "a few people marked": lambda z, y: np.where((y == 3) & (np.arange(N) < 500), z + 0.25, z),
    "an error code": lambda z, y: np.where(np.arange(N) == 7, 99_999.0, z),
}


@pytest.mark.parametrize("name", SPOILT)
def test_a_file_with_numbers_that_the_claim_rules_out_is_refused(name):
    mechanism = DiscreteLaplace(LabelRange(0, 5, 1), 2.0)
    rng = np.random.default_rng(1)
    truth = rng.integers(0, 6, N).astype(float)
    released = mechanism.release(truth, rng)
    for numbers, refused in ((released, False), (SPOILT[name](released, truth), True)):
        table = pd.DataFrame({"x": rng.normal(size=N), "label": numbers})
        if not refused:
            assert ldpaudit.audit(table, truth, mechanism, only=("mechanism",)).verdict != "fail"
            continue
        with pytest.raises(InputError, match="released label must be one of the declared outputs"):
            ldpaudit.audit(table, truth, mechanism, only=("mechanism",))
