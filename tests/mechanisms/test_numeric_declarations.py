"""The value types of the mechanisms for numeric labels: declaration, sampling, exact analysis."""

import json
import math
from fractions import Fraction

import numpy as np
import pytest
from mesh_program import mesh_loss

from ldpaudit.errors import InputError
from ldpaudit.mechanisms.exact_sampling import TOTAL
from ldpaudit.mechanisms.numeric.bin_design import optimal_bins
from ldpaudit.mechanisms.numeric.debiased_rr import DebiasedRR, debiased_outputs
from ldpaudit.mechanisms.numeric.interval.columns import integer_columns, lowered_growth
from ldpaudit.mechanisms.numeric.optimal_unbiased import OptimalUnbiased
from ldpaudit.mechanisms.numeric.rr_on_bins import RROnBins
from ldpaudit.mechanisms.numeric.unbiased_design import optimal_unbiased

LABELS = (0, 1, 2, 5, 9, 10)
PRIOR = np.array([0.3, 0.2, 0.2, 0.1, 0.05, 0.15])


def mechanisms(epsilon=1.4):
    return [
        optimal_unbiased(LABELS, PRIOR, epsilon).mechanism,
        optimal_bins(LABELS, PRIOR, epsilon).mechanism,
        DebiasedRR(LABELS, epsilon),
    ]


@pytest.mark.parametrize("which", range(3))
@pytest.mark.parametrize("epsilon", [0.2, 1.4, 6.0])
def test_declarations_go_round_through_json(which, epsilon):
    mechanism = mechanisms(epsilon)[which]
    parameters = json.loads(json.dumps(mechanism.declaration()))
    again = type(mechanism).from_parameters(parameters, ())
    assert np.array_equal(again.channel.matrix, mechanism.channel.matrix)
    assert again.channel.outputs == mechanism.channel.outputs
    assert again.channel.classes == LABELS
    assert again.declaration() == mechanism.declaration()
    assert again.epsilon <= epsilon


@pytest.mark.parametrize("which", range(3))
def test_staircase_columns_have_their_closed_forms(which):
    mechanism, epsilon = mechanisms()[which], 1.4
    matrix, growth = mechanism.channel.matrix, math.exp(epsilon)
    assert math.isclose(mechanism.epsilon, epsilon, rel_tol=1e-12)
    # t: the mass where y is high and y' is low.
    t = max(
        float(np.minimum(row, other)[row > 1.5 * other].sum()) for row in matrix for other in matrix
    )
    assert mechanism.delta(0.0) == pytest.approx(t * (growth - 1), rel=1e-9)
    assert mechanism.rdp(1.0) == pytest.approx(epsilon * t * (growth - 1), rel=1e-9)
    for alpha in (2.0, 5.0):
        inner = growth**alpha + growth ** (1 - alpha) - growth - 1
        assert mechanism.rdp(alpha) == pytest.approx(math.log1p(t * inner) / (alpha - 1), rel=1e-9)
    assert mechanism.delta(epsilon) <= 1e-12


@pytest.mark.parametrize("which", range(3))
def test_draws_have_the_channel_s_frequencies(which):
    mechanism, rng, n = mechanisms()[which], np.random.default_rng(7), 200_000
    for code in (0, 5):
        drawn = mechanism.sample(np.full(n, code, dtype=np.int32), rng)
        found = np.bincount(drawn, minlength=len(mechanism.channel.outputs)) / n
        row = mechanism.channel.matrix[code]
        # 6 standard deviations: fails by chance less than once in 10⁷ runs.
        assert np.all(np.abs(found - row) <= 6 * np.sqrt(row * (1 - row) / n) + 1e-12)


@pytest.mark.parametrize("which", range(3))
def test_released_values_are_outputs(which):
    mechanism = mechanisms()[which]
    out = mechanism.release(np.array([0, 10, 5, 5]), np.random.default_rng(1))
    assert set(out.tolist()) <= set(mechanism.channel.outputs)
    with pytest.raises(InputError, match=r"\d row"):
        mechanism.release(np.array([0, 3, 5]), np.random.default_rng(1))


@pytest.mark.parametrize("which", range(3))
def test_descriptions_hold_no_label(which):
    words = mechanisms()[which].description
    assert "labels" in words
    assert "1.4" in words


@pytest.mark.parametrize("epsilon", [0.01, 1.0, 3.0, 12.0])
def test_integer_columns_are_exact(epsilon):
    prior = np.random.default_rng(4).dirichlet(np.ones(25))
    mechanism = optimal_unbiased(list(range(25)), prior, epsilon).mechanism
    growth = lowered_growth(epsilon)
    table = integer_columns(mechanism.columns, 25, growth)
    assert [sum(map(int, row)) for row in table] == [TOTAL] * 25
    limit = Fraction(1 + growth)
    ratios = [Fraction(int(c.max()), int(c.min())) for c in table.T]
    assert max(ratios) <= limit
    probabilities = mechanism.columns.matrix(25, growth)
    assert np.abs(table.astype(float) / TOTAL - probabilities).max() < 2.0**-50


def test_equal_outputs_are_one_output():
    # Neighbouring thresholds have the same odds where no probability lies between them.
    prior = np.array([0.5, 0, 0, 0, 0.5])
    mechanism = optimal_unbiased([0, 1, 2, 3, 4], prior, 0.5).mechanism
    assert len(set(mechanism.channel.outputs)) == len(mechanism.channel.outputs)
    assert len(mechanism.channel.outputs) == 2
    assert len(mechanism.columns) == 8
    assert mechanism.weights.weights.shape == (5, 2)
    assert np.abs(mechanism.bias()).max() < 1e-12


def test_debiased_outputs_of_the_definition():
    labels = np.array([0.0, 1.0, 4.0])
    epsilon = 0.8
    expected = ((math.exp(epsilon) + 2) * labels - 5) / math.expm1(epsilon)
    assert debiased_outputs(labels, math.expm1(epsilon)) == pytest.approx(expected)
    mechanism = DebiasedRR((0, 1, 4), epsilon)
    assert np.abs(mechanism.bias()).max() < 1e-12


def test_a_biased_program_finds_the_bins():
    design = optimal_bins(LABELS, PRIOR, 1.4)
    outputs = np.array(sorted({*design.mechanism.outputs, *map(float, LABELS)}))
    found = mesh_loss(LABELS, PRIOR, 1.4, outputs, unbiased=False)
    assert found == pytest.approx(design.loss, rel=1e-6)


def changed(mechanism, **parameters):
    return dict(mechanism.declaration()) | parameters


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"masses": [0.1]}, "one interval and one mass"),
        ({"outputs": "abc"}, "lists"),
        ({"outputs": [math.nan] * 10}, "finite"),
        ({"epsilon": 0}, "above 0"),
        ({"epsilon": None}, "must state"),
        ({"extra": 1}, "unknown"),
        ({"masses": None}, "must state"),
        ({"classes": [0, 1, 2, 5, 9]}, "codes"),
        ({"classes": [0, 1, 2, 5, 9, 11]}, "unbiased"),
    ],
)
def test_a_wrong_declaration_of_an_unbiased_randomizer_is_refused(parameters, words):
    with pytest.raises(InputError, match=words):
        OptimalUnbiased.from_parameters(changed(mechanisms()[0], **parameters), ())


def test_a_declared_epsilon_that_does_not_hold_is_refused():
    with pytest.raises(InputError):
        OptimalUnbiased.from_parameters(changed(mechanisms()[0], epsilon=1.3), ())


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"starts": [1, 2]}, "start at label code 0"),
        ({"starts": [0, 0]}, "increase"),
        ({"starts": [0, 6]}, "hold a label"),
        ({"starts": [0, "a"]}, "integers"),
        ({"starts": [0, 2, 3, 4]}, "one output"),
        ({"outputs": [1.0, 1.0], "starts": [0, 3]}, "distinct"),
        ({"outputs": [1.0, math.inf], "starts": [0, 3]}, "finite"),
        ({"outputs": ["a", "b"]}, "numbers"),
        ({"epsilon": -1}, "above 0"),
    ],
)
def test_a_wrong_declaration_of_bins_is_refused(parameters, words):
    with pytest.raises(InputError, match=words):
        RROnBins.from_parameters(changed(mechanisms()[1], **parameters), ())


def test_a_wrong_declaration_of_debiased_rr_is_refused():
    with pytest.raises(InputError, match="increasing"):
        DebiasedRR.from_parameters({"classes": [1, 0], "epsilon": 1.0}, ())
    with pytest.raises(InputError, match="epsilon"):
        DebiasedRR.from_parameters({"epsilon": 99.0}, (0, 1))
