"""What columns say of the released label, by hand."""

from dataclasses import replace

import numpy as np
import pytest

from ldpaudit.estimators.assumptions import outside
from ldpaudit.estimators.assumptions.columns import Halves
from ldpaudit.estimators.assumptions.outside import Signals, bin_frequencies, looked_at, signals
from ldpaudit.release import FeatureTable, FloatArray


def table(numbers: FloatArray) -> FeatureTable:
    n, d = numbers.shape
    return FeatureTable(numbers.astype(np.float32), np.zeros((n, 0), np.int32), (), d)


def test_correlations_are_those_of_numpy() -> None:
    values = np.random.default_rng(0).normal(2, 3, (50, 4))
    values[:, 3] = 7.0
    found = outside._correlations(values, 1)
    assert found[:3] == pytest.approx(np.corrcoef(values[:, :3].T)[1])
    assert found[3] == pytest.approx(0)


def test_columns_are_centred_within_codes() -> None:
    values, codes = np.arange(12.0).reshape(6, 2), np.array([0, 2, 2, 0, 2, 4], np.int32)
    expected = values.copy()
    for code in (0, 2, 4):
        expected[codes == code] -= values[codes == code].mean(axis=0)
    assert outside._centred(values, codes) == pytest.approx(expected)


def test_odds_are_cut_at_three_nats() -> None:
    assert outside._odds(np.array([-9, -1.0, 0, 3.5])) == pytest.approx(np.exp([-3, -1, 0, 3]))


def test_the_frequency_of_an_output_is_learnt_on_the_other_half() -> None:
    values = np.array([1.0, 1, 2, 2, 1, 2, 2, 1])[:, None]
    released = np.array([0, 1, 2, 2, 0, 2, 1, 1], np.int32)
    halves = np.array([0, 0, 0, 0, 1, 1, 1, 1], np.int8)
    found = bin_frequencies(table(values), 0, released, 3, halves)
    for row in range(8):
        learn = np.flatnonzero(halves != halves[row])
        usual = (np.bincount(released[learn], minlength=3) + 0.5) / 5
        alike = learn[values[learn, 0] == values[row, 0]]
        counts = np.bincount(released[alike], minlength=3) + usual
        assert found[row] == pytest.approx(counts / counts.sum())


def test_of_many_columns_the_clearest_are_looked_at() -> None:
    rng = np.random.default_rng(0)
    released = rng.integers(0, 2, 300).astype(np.int32)
    numbers = rng.normal(size=(300, 6))
    numbers[:, [1, 4]] += 2 * released[:, None]
    assert looked_at(table(numbers), released, 6).tolist() == list(range(6))
    assert sorted(looked_at(table(numbers), released, 2).tolist()) == [1, 4]


def made(scores: FloatArray, side: FloatArray, n: int) -> Signals:
    halves = Halves(np.arange(0, n, 2), np.arange(1, n, 2))
    codes = side.astype(np.int32)
    return Signals(table(scores), codes, codes, halves, scores, 0)


def levels(surest: float, others: float, n: int = 4_000) -> bool:
    """Ask it of a score whose surest rows, and the next ones, are right so often."""
    rng = np.random.default_rng(1)
    size = np.linspace(1, 0, n)
    rate = np.where(np.arange(n) < 0.3 * n, surest, np.where(np.arange(n) < 0.6 * n, others, 0.5))
    side = np.arange(n) % 2
    right = np.zeros(n, bool)
    for part in np.split(np.arange(n), [int(0.3 * n), int(0.6 * n)]):
        right[rng.permutation(part)[: round(rate[part[0]] * len(part))]] = True
    score = np.where(right == (side == 1), 1.0, -1.0) * (0.01 + size)
    order = rng.permutation(n)
    return made(score[order, None], side[order], n).levels_off(0)


@pytest.mark.parametrize(
    ("surest", "others", "expected"),
    [
        (0.80, 0.80, True),
        (0.84, 0.80, True),  # A gap of 0.27 nats, two standard errors of 0.21 above it: below 0.5.
        (0.86, 0.80, False),  # 0.43 and 0.22.
        (0.95, 0.80, False),
        (0.70, 0.90, True),
        (0.965, 0.965, True),
        (0.975, 0.975, False),  # As good as determined.
    ],
)
def test_a_natural_columns_surest_rows_are_no_surer(
    surest: float, others: float, expected: bool
) -> None:
    assert levels(surest, others) is expected


def test_too_few_rows_level_off_nowhere() -> None:
    assert not made(np.array([[1.0], [-1.0]]), np.array([1, 0]), 2).levels_off(0)


def world(n: int = 2_000) -> tuple[FeatureTable, Signals]:
    """Two features of the true label, a copy of one, noise, and a score of the released label."""
    rng = np.random.default_rng(3)
    truth = rng.integers(0, 2, n)
    released = np.where(rng.random(n) < 0.75, truth, 1 - truth).astype(np.int32)
    x = 2 * truth + rng.normal(size=n)
    score = released + 0.7 * rng.normal(size=n)
    columns = [x, 2 * truth + rng.normal(size=n), 2 * x, rng.normal(size=n), score]
    features = table(np.stack(columns, axis=1))
    halves = Halves(np.arange(0, n, 2), np.arange(1, n, 2))
    return features, Signals.of(features, released, released, halves, 0)


def test_what_others_explain_of_a_column_given_the_released_label() -> None:
    _, found = world()
    explained = [found.explained(j) for j in range(5)]
    assert explained[0] > 0.05
    assert explained[1] > 0.05
    assert explained[3] == explained[4] == 0.0
    two = table(found.features.numeric[:, :2])
    alone = replace(found, made=found.made[:, [0, 2]], features=two)
    assert alone.explained(0) == 0.0  # Another version of itself takes no part.


def test_each_rows_signal_is_learnt_on_the_other_half() -> None:
    features, found = world(400)
    changed = found.side.copy()
    changed[found.halves.test] = 1 - changed[found.halves.test]
    again = signals(features, found.released, changed, found.halves)
    same = again == found.made
    assert same[found.halves.test].all()
    assert not same[found.halves.learn].all()
