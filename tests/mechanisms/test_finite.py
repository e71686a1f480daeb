import math
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ldpaudit.errors import InputError
from ldpaudit.mechanisms import Channel, ExplicitChannel, RandomizedResponse
from ldpaudit.mechanisms.finite import codes_of
from ldpaudit.mechanisms.losses import loss


def explicit(matrix, classes, outputs):
    return ExplicitChannel(Channel(np.array(matrix), classes, outputs))


@given(st.integers(2, 6), st.integers(2, 7), st.integers(0, 10_000))
def test_moments_and_losses_are_sums_over_the_channel(k, m, seed):
    rng = np.random.default_rng(seed)
    matrix, prior = rng.dirichlet(np.ones(m), size=k), rng.dirichlet(np.ones(k))
    labels = tuple(np.cumsum(rng.uniform(0.1, 3, k)).tolist())
    outputs = tuple(rng.uniform(0.1, 9, m).tolist())
    mechanism = explicit(matrix, labels, outputs)
    sums = {"squared": 0.0, "absolute": 0.0, "poisson": 0.0}
    for y in range(k):
        mean = sum(matrix[y, z] * outputs[z] for z in range(m))
        spread = sum(matrix[y, z] * (outputs[z] - mean) ** 2 for z in range(m))
        assert mechanism.bias()[y] == pytest.approx(mean - labels[y], abs=1e-12)
        assert mechanism.variance()[y] == pytest.approx(spread, rel=1e-10)
        for z in range(m):
            weight = prior[y] * matrix[y, z]
            sums["squared"] += weight * (outputs[z] - labels[y]) ** 2 / 2
            sums["absolute"] += weight * abs(outputs[z] - labels[y])
            sums["poisson"] += weight * (outputs[z] - labels[y] * math.log(outputs[z]))
    for name, expected in sums.items():
        assert mechanism.expected_loss(prior, name) == pytest.approx(expected, rel=1e-12)


def test_poisson_loss_at_and_below_zero():
    values = loss("poisson", np.array([-1.0, 0.0, 0.0, 2.0]), np.array([1.0, 1.0, 0.0, 0.0]))
    assert values.tolist() == [math.inf, math.inf, 0.0, 2.0]
    impossible = explicit([[1.0, 0.0], [0.5, 0.5]], (1, 2), (1.0, -1.0))
    assert impossible.expected_loss([1, 0], "poisson") == pytest.approx(1.0)
    assert impossible.expected_loss([0.5, 0.5], "poisson") == math.inf


def test_releases_values():
    rng = np.random.default_rng(0)
    exact = explicit([[1.0, 0.0], [0.0, 1.0]], ("a", "b"), (10, 20.5))
    assert exact.release(["b", "a"], rng).tolist() == [20.5, 10.0]
    mixed = explicit([[1.0, 0.0], [0.0, 1.0]], (0, 1), ("low", 7))
    assert mixed.release(np.array([1, 0]), rng).tolist() == [7, "low"]


def test_accuracy_counts_labels_that_are_outputs():
    mechanism = explicit([[0.75, 0.25], [0.5, 0.5]], ("a", "b"), ("b", "c"))
    assert mechanism.accuracy([0.4, 0.6]) == pytest.approx(0.6 * 0.5)


@pytest.mark.parametrize(
    ("labels", "classes", "codes"),
    [
        ([1, 0, 1], (0, 1), [1, 0, 1]),
        ([1.0, 0.0], (0, 1), [1, 0]),
        ([True, False], (False, True), [1, 0]),
        (np.array(["x", "y"], dtype=object), ("y", "x"), [1, 0]),
        (np.array(["x", 3], dtype=object), (3, "x"), [1, 0]),
        ([], (0, 1), []),
    ],
)
def test_codes_of_values(labels, classes, codes):
    assert codes_of(labels, classes).tolist() == codes


@pytest.mark.parametrize(
    "labels", [[0, 5], [0, math.nan], np.array([0, None], dtype=object), ["0", "1"]]
)
def test_rows_outside_are_counted_and_not_shown(labels):
    with pytest.raises(InputError, match=r"\d row\(s\) are not"):
        codes_of(labels, (0, 1))


@pytest.mark.parametrize("codes", [[0, 2], [-1, 0], [0.0, 1.0], [[0, 1]]])
def test_codes_outside_are_refused(codes):
    with pytest.raises(InputError):
        RandomizedResponse((0, 1), 0.5).sample(np.array(codes), np.random.default_rng(0))


@pytest.mark.parametrize(
    ("prior", "message"),
    [
        ([0.5, 0.6], "sum to 1"),
        ([1.5, -0.5], "not negative"),
        ([math.nan, 1.0], "finite"),
        ([1.0], "each of the 2"),
    ],
)
def test_a_bad_prior_is_refused(prior, message):
    with pytest.raises(InputError, match=message):
        RandomizedResponse((0, 1), 0.5).expected_loss(prior)


@pytest.mark.parametrize(
    ("classes", "message"),
    [
        (("a", "b"), "numbers"),
        ((1, 0), "increasing"),
        ((0.0, math.inf), "finite"),
        ((False, True), "numbers"),
    ],
)
def test_numbers_are_asked_for_where_they_are_needed(classes, message):
    with pytest.raises(InputError, match=message):
        RandomizedResponse(classes, 0.5).bias()


def test_an_unknown_loss_is_refused():
    with pytest.raises(InputError, match="one of squared, absolute, poisson"):
        RandomizedResponse((0, 1), 0.5).expected_loss([0.5, 0.5], "huber")  # type: ignore[arg-type]


def test_randomized_response_agrees_with_its_channel():
    for k, epsilon in ((2, 0.3), (7, 2.0)):
        mechanism = RandomizedResponse.from_epsilon(tuple(range(k)), epsilon)
        for alpha in (0.3, 0.5, 1, 1.5, 2, 30, 1000, math.inf):
            expected = mechanism.channel.rdp(alpha)
            assert mechanism.rdp(alpha) == pytest.approx(expected, rel=1e-9, abs=1e-14)
        for at in (0.0, 0.1, 1.0, 3.0):
            assert mechanism.delta(at) == pytest.approx(mechanism.channel.delta(at), abs=1e-15)


def test_a_family_needs_no_more_than_a_channel():
    from ldpaudit.mechanisms.explicit import ExplicitChannel
    from ldpaudit.mechanisms.finite import FiniteMechanism

    @dataclass(frozen=True)
    class Family(FiniteMechanism):
        channel: Channel
        traits = ExplicitChannel.traits
        description = "a test"

        def declaration(self):
            return {}

        @classmethod
        def from_parameters(cls, parameters, classes):
            return cls(parameters["channel"])

    family = Family(Channel(np.array([[0.75, 0.25], [0.25, 0.75]]), (0, 1), (-0.5, 1.5)))
    assert family.epsilon == pytest.approx(math.log(3))
    assert family.bias() == pytest.approx([0, 0])
