"""Noise that follows the rows' numbers: what replaces a label is written in turn, or in blocks."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom

import ldpaudit
from ldpaudit.estimators.assumptions.learner import label_sides
from ldpaudit.estimators.assumptions.patterns import pattern_p_value
from ldpaudit.estimators.row_noise import RowNoise

N = 4000
HONEST = ("plain", "sorted before", "periodic before", "dealt by released", "sorted by released")
LEAKING = ("in turn", "permuted in turn", "in blocks", "rare ones in turn")


def world(kind, classes, seed, rows=N):
    """True and released labels of randomized response with ε = 1."""
    rng = np.random.default_rng(seed)
    truth = np.minimum(rng.geometric(0.35, rows) - 1, classes - 1)
    number = np.arange(rows)
    if kind == "sorted before":
        truth = np.sort(truth)
    elif kind == "periodic before":
        truth = np.where(rng.random(rows) < 0.5, number % classes, truth)
    replaced = {
        "in turn": number % classes,
        "permuted in turn": rng.permutation(classes)[number % classes],
        "in blocks": number * classes // rows,
    }.get(kind, rng.integers(0, classes, rows))
    kept = rng.random(rows) < np.expm1(1) / (np.expm1(1) + classes)
    released = np.where(kept, truth, replaced)
    if kind == "rare ones in turn":
        released = np.where(truth >= classes // 2, number % (classes // 2), released)
    if kind == "dealt by released":
        order = np.lexsort((released, pd.Series(released).groupby(released).cumcount()))
        truth, released = truth[order], released[order]
    elif kind == "sorted by released":
        order = np.lexsort((rng.random(rows), released))
        truth, released = truth[order], released[order]
    return truth.astype(np.int64), released.astype(np.int64)


def found(kind, classes, seed, numbers=None):
    truth, released = world(kind, classes, seed)
    changed = (truth != released).astype(np.float64)
    side = label_sides(truth.astype(np.int32), released.astype(np.int32), same_labels=True)[1]
    by_released = RowNoise(changed, released)
    pairs = [
        (RowNoise(changed, truth), by_released),
        (RowNoise(side.astype(np.float64), truth), by_released),
    ]
    return pattern_p_value(pairs, np.random.default_rng(seed), numbers)


@pytest.mark.parametrize(
    ("kind", "classes"),
    # Of two labels the rare one is replaced by the other.
    [(kind, k) for kind in LEAKING for k in (2, 5, 8) if (kind, k) != ("rare ones in turn", 2)],
)
def test_labels_that_are_replaced_by_number_are_found(kind, classes):
    assert max(found(kind, classes, seed) for seed in range(5)) < 1e-6


@pytest.mark.parametrize("kind", HONEST)
@pytest.mark.parametrize("classes", [2, 7])
def test_an_order_by_true_or_by_released_labels_is_no_pattern(kind, classes):
    assert sum(found(kind, classes, seed) <= 0.05 for seed in range(20)) <= 4


@pytest.mark.validate
@pytest.mark.parametrize("kind", HONEST)
def test_p_values_are_valid(kind):
    p_values = np.array([found(kind, 4, seed) for seed in range(400)])
    for level in (0.01, 0.05, 0.2):
        assert (p_values <= level).sum() <= binom.isf(1e-6, 400, level)


@pytest.mark.parametrize("kind", ["plain", "in turn"])
def test_copies_of_rows_win_together_what_one_row_wins(kind):
    """Each row stands in the table four times, all next to each other."""
    truth, released = (labels.repeat(4) for labels in world(kind, 5, 1, rows=1000))
    changed, side = (truth != released).astype(np.float64), (released >= 2).astype(np.float64)
    pairs = [(RowNoise(side, truth), RowNoise(changed, released))]
    once, copied = (
        pattern_p_value(pairs, np.random.default_rng(1), np.arange(4000) // 4, times=times)
        for times in (1, 4)
    )
    assert copied >= once
    assert (copied < 1e-3) == (kind == "in turn")


def test_rows_of_a_sample_keep_their_numbers():
    truth, released = world("in turn", 5, 1, rows=3 * N)
    rows = np.sort(np.random.default_rng(2).choice(3 * N, N, replace=False))
    truth, released = truth[rows], released[rows]
    changed = (truth != released).astype(np.float64)
    side = (released >= 2).astype(np.float64)
    pairs = [(RowNoise(side, truth), RowNoise(changed, released))]
    assert pattern_p_value(pairs, np.random.default_rng(1)) > 0.05
    assert pattern_p_value(pairs, np.random.default_rng(1), rows) < 1e-6


@pytest.mark.parametrize("kind", ["in turn", "plain"])
def test_a_release_whose_labels_are_replaced_in_turn_is_refused(kind):
    truth, released = world(kind, 5, 3)
    features = np.random.default_rng(1).normal(size=(N, 2))
    table = pd.DataFrame(features, columns=["a", "b"]).assign(label=released)
    claim = {"name": "randomized-response", "classes": list(range(5)), "epsilon": 1.0}
    only = ("mechanism", "assumptions", "power")
    result = ldpaudit.audit(table, truth, claim, only=only, rng=1)
    checks = {check.id: check.verdict for check in result.checks}
    leaks = kind == "in turn"
    assert (result.decision == "publish") != leaks
    assert checks["shared-noise"] == ("fail" if leaks else "pass")
    said = any("follow the row's number" in note.text for note in result.notes)
    assert said == leaks
    said = " ".join(result.next_steps)
    assert ("Look at how replaced labels are drawn" in said) == leaks
