"""The views of mechanisms on numbers: their channels against sampling, their ε below the claim."""

import numpy as np
import pytest

from ldpaudit.errors import InputError
from ldpaudit.extras.kinds.mechanisms.bins import DebiasedRR, optimal_bins
from ldpaudit.extras.kinds.mechanisms.unbiased import optimal_unbiased
from ldpaudit.mechanisms import RandomizedResponse, UnknownMechanism
from ldpaudit.mechanisms.label_range import LabelRange
from ldpaudit.mechanisms.noise import (
    DiscreteLaplace,
    DiscreteStaircase,
    Exponential,
    Laplace,
    Staircase,
)
from ldpaudit.mechanisms.registry import from_declaration
from ldpaudit.mechanisms.view import group_channel, numeric_view, view_channel, view_family
from ldpaudit.numeric_labels import NumericCoding
from ldpaudit.release import Declaration

WEEKS, COUNTS, REAL = LabelRange(0, 52, 1), LabelRange(0, 400, 1), LabelRange(-1.0, 4.0)
UNIFORM = np.full(53, 1 / 53)
EPSILON = 1.5
GRIDDED = {
    "optimal-unbiased": optimal_unbiased(WEEKS.classes, UNIFORM, EPSILON).mechanism,
    "rr-on-bins": optimal_bins(WEEKS.classes, UNIFORM, EPSILON).mechanism,
    "debiased-rr": DebiasedRR(WEEKS.classes, EPSILON),
    "discrete-laplace": DiscreteLaplace(WEEKS, EPSILON),
    "discrete-laplace, clipped": DiscreteLaplace(COUNTS, EPSILON, clipped=True),
    "discrete-staircase": DiscreteStaircase(WEEKS, EPSILON),
    "exponential": Exponential(COUNTS, EPSILON),
    "laplace": Laplace(WEEKS, EPSILON),
}
CONTINUOUS = {
    "laplace": Laplace(REAL, EPSILON),
    "laplace, clipped": Laplace(REAL, EPSILON, clipped=True),
    "staircase": Staircase(REAL, EPSILON),
    "exponential": Exponential(REAL, EPSILON),
}


def released(mechanism, labels, rng):
    return np.asarray(mechanism.release(labels, rng), dtype=float)


def coded(mechanism, view, truth, rng):
    outputs = view.outputs.codes(released(mechanism, truth, rng))
    assert (outputs >= 0).all()
    counts = np.zeros((len(view.classes), len(view.outputs)))
    np.add.at(counts, (view.classes.codes(np.asarray(truth, dtype=float)), outputs), 1)
    return counts


@pytest.mark.parametrize("name", [*GRIDDED, *(f"real {name}" for name in CONTINUOUS)])
def test_the_channel_is_that_of_the_sampled_labels(name):
    mechanism = CONTINUOUS[name[5:]] if name.startswith("real ") else GRIDDED[name]
    rng = np.random.default_rng(5)
    low, high = (-1.0, 4.0) if name.startswith("real ") else (0, None)
    if high is None:
        k = len(mechanism.bias())
        truth = np.minimum(rng.geometric(4 / k, 20_000) - 1, k - 1)
    else:
        truth = rng.uniform(low, high, 20_000)
    view = numeric_view(mechanism, 20_000)
    channel = view_channel(mechanism, view) or group_channel(mechanism, view, truth.astype(float))
    assert channel.epsilon <= mechanism.epsilon * (1 + 1e-9)
    counts = coded(mechanism, view, truth, rng)
    expected = counts.sum(axis=1, keepdims=True) * channel.matrix
    large = expected > 5
    deviation = (counts - expected)[large] / np.sqrt(expected[large])
    # A variance of at most 1 for each of up to 3,400 entries: 6 is passed once in 10⁶ runs.
    assert np.abs(deviation).max() < 6
    assert np.abs(deviation).max() > 1


def test_few_labels_and_outputs_keep_their_values():
    view = numeric_view(GRIDDED["debiased-rr"], 20_000)
    assert view.classes.names == tuple(range(53))
    assert not view.outputs.grouped
    assert numeric_view(RandomizedResponse((0, 1), 0.5), 20_000) is None


def test_many_labels_are_grouped_and_few_rows_group_more():
    mechanism = GRIDDED["exponential"]
    wide, narrow = numeric_view(mechanism, 20_000), numeric_view(mechanism, 100)
    assert len(wide.classes) == 32
    assert len(narrow.classes) == 10
    assert view_channel(mechanism, wide) is None
    assert wide.classes.names[0].startswith("up to ")


def test_the_view_loses_little_privacy_of_noise():
    for name in ("discrete-laplace", "laplace", "discrete-staircase", "optimal-unbiased"):
        channel = view_channel(GRIDDED[name], numeric_view(GRIDDED[name], 10**6))
        assert channel.epsilon > 0.99 * EPSILON, name


def test_small_groups_are_merged_by_true_labels():
    coding = NumericCoding.of_bins(np.arange(1.0, 6.0))
    merged = coding.merged(np.array([50, 1, 1, 30, 40, 3]), 20)
    np.testing.assert_array_equal(merged.edges, [1.0, 4.0])
    with pytest.raises(InputError, match="spread"):
        coding.merged(np.array([90, 0, 0, 0, 0, 3]), 20)


SAME_OUTPUTS = [*CONTINUOUS, "discrete-laplace", "discrete-staircase", "exponential"]


@pytest.mark.parametrize("name", SAME_OUTPUTS)
def test_a_larger_epsilon_is_that_of_the_mechanism(name):
    claim = {**GRIDDED, **CONTINUOUS}[name]
    low, high = claim.label_bounds
    truth = np.linspace(low, high, 5 if claim.label_values is None else int(high - low) + 1)
    kept = {k: v for k, v in claim.declaration().items() if k not in ("gamma", "width")}
    worse = from_declaration(Declaration(claim.traits.name, {**kept, "epsilon": 4.0}), ())
    view = numeric_view(claim, 10_000)
    channel = view_family(claim, view, truth)(4.0).matrix
    fine = worse.binned(view.outputs.edges.tolist(), truth).matrix
    groups = view.classes.codes(truth)
    for group in np.unique(groups):
        assert channel[group] == pytest.approx(fine[groups == group].mean(axis=0))


@pytest.mark.parametrize("name", ["optimal-unbiased", "debiased-rr"])
def test_outputs_that_depend_on_epsilon_have_no_family(name):
    claim = GRIDDED[name]
    assert view_family(claim, numeric_view(claim, 10_000), None) is None


def test_an_unknown_mechanism_has_no_family():
    view = numeric_view(GRIDDED["laplace"], 10_000)
    assert view_family(UnknownMechanism(), view, None) is None


def test_beyond_the_largest_epsilon_a_family_stays_there():
    claim = CONTINUOUS["laplace"]
    at = view_family(claim, numeric_view(claim, 10_000), np.linspace(-1.0, 4.0, 40_000))
    assert at(80.0).matrix == pytest.approx(at(50.0).matrix)
    assert at(80.0).matrix.sum(axis=1) == pytest.approx(1.0)
    assert at(EPSILON).matrix == pytest.approx(
        group_channel(claim, numeric_view(claim, 10_000), np.linspace(-1.0, 4.0, 40_000)).matrix,
        abs=1e-3,
    )


def test_a_shape_that_somebody_chose_is_kept_at_a_larger_epsilon():
    range_, truth = {"low": -1.0, "high": 4.0}, np.linspace(-1.0, 4.0, 40)
    chosen = from_declaration(
        Declaration("staircase", {**range_, "epsilon": 1.5, "gamma": 0.1}), ()
    )
    worse = from_declaration(Declaration("staircase", {**range_, "epsilon": 4.0, "gamma": 0.1}), ())
    view = numeric_view(chosen, 10_000)
    channel = view_family(chosen, view, truth)(4.0).matrix
    assert channel == pytest.approx(group_channel(worse, view, truth).matrix)
