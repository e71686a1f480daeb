import math
from typing import Any

import numpy as np
import pytest

from ldpaudit.errors import InputError
from ldpaudit.mechanisms import RandomizedResponse, from_declaration
from ldpaudit.mechanisms.parameters import Parameter, check_classes, fields_of
from ldpaudit.release import Declaration

AB = ("a", "b")


def test_both_forms_of_randomized_response_agree() -> None:
    noise = RandomizedResponse(AB, 0.3)
    declared = Declaration("randomized-response", {"lambda": 0.3, "epsilon": noise.epsilon})
    assert from_declaration(declared, AB) == noise


def test_what_is_declared_comes_back() -> None:
    mechanism = RandomizedResponse(("x", "y", "z"), 0.25)
    declared = Declaration(mechanism.name, mechanism.declaration())
    assert from_declaration(declared, AB) == mechanism
    channel = from_declaration(
        Declaration("channel", {"matrix": [[0.9, 0.1], [0.2, 0.8]], "outputs": [0, 1]}), AB
    )
    again = from_declaration(Declaration("channel", channel.declaration()), ())
    assert again.channel is not None
    assert channel.channel is not None
    np.testing.assert_array_equal(again.channel.matrix, channel.channel.matrix)
    assert again.channel.outputs == (0, 1)


def test_nothing_declared_is_unknown() -> None:
    assert from_declaration(None, AB).epsilon is None
    assert from_declaration(Declaration("unknown"), AB).channel is None


@pytest.mark.parametrize(
    ("name", "parameters", "message"),
    [
        ("randomized-response", {}, "'epsilon' or 'lambda'"),
        ("randomized-response", {"epsilon": 1.0, "lambda": 0.3}, "must agree"),
        ("randomized-response", {"epsilon": 0.0}, "above 0"),
        ("randomized-response", {"epsilon": -1.0}, "above 0"),
        ("randomized-response", {"epsilon": math.nan}, "must be a number. Got NaN instead"),
        ("randomized-response", {"epsilon": "1"}, "must be a number"),
        ("randomized-response", {"epsilon": 10**400}, "too large for a number"),
        ("randomized-response", {"lambda": 1.1}, r"\[0, 1\]"),
        ("randomized-response", {"lambda": -0.1}, r"\[0, 1\]"),
        ("randomized-response", {"lamda": 0.1}, "unknown"),
        ("randomized-response", {"lambda": 0.1, "classes": ["a", "a"]}, "distinct"),
        ("randomized-response", {"lambda": 0.1, "classes": ["a"]}, "two classes"),
        ("channel", {}, "matrix"),
        ("channel", {"matrix": [[0.5, 0.5], [0.5]]}, "rectangle"),
        ("channel", {"matrix": [[0.5, 0.4], [0.5, 0.5]]}, "sum to 1"),
        ("channel", {"matrix": [["x", 0.4], [0.5, 0.5]]}, "rectangle of numbers"),
        ("laplce", {}, "can be audited"),
    ],
)
def test_a_bad_declaration_is_refused(name: str, parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        from_declaration(Declaration(name, parameters), AB)


def test_the_solvers_types_come_back_from_their_declaration() -> None:
    from ldpaudit.mechanisms.numeric.bin_design import optimal_bins
    from ldpaudit.mechanisms.numeric.debiased_rr import DebiasedRR
    from ldpaudit.mechanisms.numeric.unbiased_design import optimal_unbiased

    classes, prior = (0, 1, 2, 5), np.array([0.4, 0.3, 0.2, 0.1])
    for mechanism in (
        optimal_unbiased(classes, prior, 1.0).mechanism,
        optimal_bins(classes, prior, 1.0, "squared").mechanism,
        DebiasedRR(classes, 1.0),
    ):
        again = from_declaration(Declaration(mechanism.name, mechanism.declaration()), ())
        assert again.channel is not None
        np.testing.assert_allclose(again.channel.matrix, mechanism.channel.matrix, atol=1e-12)


def test_a_default_that_is_computed_is_checked_too() -> None:
    """A plug-in's outputs that are no labels, where the file's labels already hold them."""
    more = Parameter("outputs", check_classes, default=lambda fields: (*fields["classes"], "none"))
    declared = (Parameter("classes", check_classes), more)
    assert fields_of(declared, {}, ("a", "b"), "odd")["outputs"] == ("a", "b", "none")
    with pytest.raises(InputError, match="must be distinct"):
        fields_of(declared, {}, ("a", "none"), "odd")
