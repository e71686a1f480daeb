"""What is refused, with one line that says why: declarations, parameters, labels, priors."""

import math
from functools import partial
from typing import Any

import numpy as np
import pytest

from ldpaudit.errors import InputError
from ldpaudit.extras.kinds.mechanisms.bins import DebiasedRR, optimal_bins
from ldpaudit.extras.kinds.mechanisms.gaussian import GaussianRR, gaussian_epsilon
from ldpaudit.extras.kinds.mechanisms.label_proportions import LabelProportions
from ldpaudit.extras.kinds.mechanisms.unbiased import optimal_unbiased
from ldpaudit.extras.kinds.mechanisms.with_features import DoubleRR
from ldpaudit.extras.several.joint import JointRR
from ldpaudit.mechanisms import Channel, ExplicitChannel, RandomizedResponse, family
from ldpaudit.mechanisms.exact_sampling import WeightTable
from ldpaudit.mechanisms.finite import codes_of
from ldpaudit.mechanisms.joint import IndependentColumns
from ldpaudit.mechanisms.joint import from_declaration as joint_from_declaration
from ldpaudit.mechanisms.label_range import LabelRange
from ldpaudit.mechanisms.noise import (
    DiscreteLaplace,
    DiscreteStaircase,
    Exponential,
    Laplace,
    Staircase,
)
from ldpaudit.mechanisms.parameters import check_classes
from ldpaudit.mechanisms.prior_budget import check_prior_budget, prior_budget, private_prior
from ldpaudit.mechanisms.registry import from_declaration
from ldpaudit.mechanisms.response import conditional_rdp_floor
from ldpaudit.mechanisms.rounded import RoundedLabels, with_rounding
from ldpaudit.mechanisms.rounding import Rounding
from ldpaudit.release import ColumnsDeclaration, Declaration, LabelDeclaration

AB, RANGE, GRID = ("a", "b"), LabelRange(2.0, 9.0), LabelRange(2, 9, 1)
RR = RandomizedResponse((0, 1), 0.5)
NORTH = {"name": "randomized-response", "classes": ["q", "r"], "epsilon": 1.0}
LABELS, PRIOR = (0, 1, 2, 5, 9, 10), np.array([0.3, 0.2, 0.2, 0.1, 0.05, 0.15])
UNBIASED = dict(optimal_unbiased(LABELS, PRIOR, 1.4).mechanism.declaration())
BINS = dict(optimal_bins(LABELS, PRIOR, 1.4).mechanism.declaration())


def strata(*mechanisms: dict[str, Any]) -> dict[str, Any]:
    return {"strata": [{"value": i, "mechanism": m} for i, m in enumerate(mechanisms)]}


DECLARATIONS: list[tuple[str, dict[str, Any], str]] = [
    ("laplce", {}, "can be audited"),
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
    ("randomized-response", {"epsilon": 1.0, "round": "nearest"}, "round"),
    ("channel", {}, "matrix"),
    ("channel", {"matrix": [[0.5, 0.5], [0.5]]}, "rectangle"),
    ("channel", {"matrix": [[0.5, 0.4], [0.5, 0.5]]}, "sum to 1"),
    ("channel", {"matrix": [["x", 0.4], [0.5, 0.5]]}, "rectangle of numbers"),
    ("laplace", {"low": 0, "high": 1}, "'epsilon' or 'scale'"),
    ("laplace", {"low": 0, "epsilon": 1}, "high"),
    ("laplace", {"low": 0, "high": 1, "epsilon": 1, "scale": 2}, "must agree"),
    ("laplace", {"low": 0, "high": 1, "epsilon": 0}, "above 0"),
    ("laplace", {"low": 1, "high": 0, "epsilon": 1}, "below"),
    ("laplace", {"low": 0, "high": 1, "epsilon": "1"}, "must be a number"),
    ("laplace", {"low": 0, "high": 1, "epsilon": 1, "clipped": "no"}, "true or false"),
    ("discrete-laplace", {"low": 0, "high": 1.5, "epsilon": 1}, "whole number of steps"),
    ("staircase", {"low": 0, "high": 1, "epsilon": 1, "gamma": 1.5}, "gamma"),
    ("discrete-staircase", {"low": 0, "high": 4, "epsilon": 1, "width": 1.5}, "whole number"),
    ("discrete-staircase", {"low": 0, "high": 4, "epsilon": 1, "width": 0}, "whole number"),
    ("exponential", {"low": 0, "high": math.inf, "epsilon": 1}, "finite"),
    ("rr-top-k", {"kept": ["z"], "epsilon": 1}, "among"),
    ("rr-top-k", {"kept": [], "epsilon": 1}, "at least one"),
    ("rr-top-k", {"kept": "a", "epsilon": 1}, "list"),
    ("rr-top-k", {"kept": ["a"]}, "must state 'epsilon'"),
    ("model-based-rr", {}, "must state 'lambda'"),
    ("model-based-rr", {"lambda": 1.2}, r"\[0, 1\]"),
    ("model-based-rr", {"lambda": 0.5, "floor": 0.6}, "floor"),
    ("double-rr", {"classes": ["a"], "lambda": 0.5}, "two classes"),
    ("dummy-features-rr", {}, "'epsilon' or 'lambda'"),
    ("gaussian-rr", {"lambda": 0.5}, "must state 'radius'"),
    ("label-proportions", {}, "state 'bag'"),
    ("label-proportions", {"bag": 3}, "name of a column"),
    ("label-proportions", {"bag": "b", "classes": ("a", "b", "c")}, "two classes"),
    ("label-proportions", {"bag": "b", "noise": "gauss"}, "'noise' parameter must be one of"),
    ("label-proportions", {"bag": "b", "noise": "laplace"}, "'epsilon' with noise"),
    ("label-proportions", {"bag": "b", "epsilon": 1.0}, "'epsilon' with noise"),
    ("label-proportions", {"bag": "b", "noise": "laplace", "epsilon": 0}, "above 0"),
    ("label-proportions", {"bag": "b", "size": 3}, "unknown"),
    ("frequency-oracle", {}, "'protocol'"),
    ("frequency-oracle", {"protocol": "XYZ", "epsilon": 1}, "one of GRR"),
    ("frequency-oracle", {"protocol": "SUE"}, "must state 'epsilon'"),
    ("frequency-oracle", {"protocol": "SUE", "epsilon": -1}, "above 0"),
    ("frequency-oracle", {"protocol": "SUE", "epsilon": 1, "size": 3}, "unknown"),
    ("frequency-oracle", {"protocol": "SS", "epsilon": 1, "size": 2}, "from 1 to 1"),
    ("frequency-oracle", {"protocol": "SS", "epsilon": 1, "size": 0}, "from 1 to 1"),
    ("frequency-oracle", {"protocol": "OLH", "epsilon": 1, "buckets": 1}, "whole number from 2"),
    ("frequency-oracle", {"protocol": "BLH", "epsilon": 1, "hash": "md5"}, "must be 'xxhash32'"),
    ("frequency-oracle", {"protocol": "THE", "epsilon": 1, "threshold": 0.4}, "threshold"),
    ("frequency-oracle", {"protocol": "THE", "epsilon": 1, "threshold": 1.5}, "threshold"),
    ("by-stratum", strata({"name": "unknown"}), "finite channel"),
    ("by-stratum", strata({"epsilon": 1}), "state its 'name'"),
    ("by-stratum", strata(NORTH, NORTH | {"classes": ["r", "q"]}), "same labels"),
    ("by-stratum", strata(), "at least one stratum"),
    ("optimal-unbiased", UNBIASED | {"masses": [0.1]}, "one interval and one mass"),
    ("optimal-unbiased", UNBIASED | {"outputs": "abc"}, "lists"),
    ("optimal-unbiased", UNBIASED | {"outputs": [math.nan] * 10}, "finite"),
    ("optimal-unbiased", UNBIASED | {"epsilon": 0}, "above 0"),
    ("optimal-unbiased", UNBIASED | {"epsilon": None}, "must state"),
    ("optimal-unbiased", UNBIASED | {"epsilon": 1.3}, "unbiased"),
    ("optimal-unbiased", UNBIASED | {"extra": 1}, "unknown"),
    ("optimal-unbiased", UNBIASED | {"masses": None}, "must state"),
    ("optimal-unbiased", UNBIASED | {"classes": [0, 1, 2, 5, 9]}, "codes"),
    ("optimal-unbiased", UNBIASED | {"classes": [0, 1, 2, 5, 9, 11]}, "unbiased"),
    ("rr-on-bins", BINS | {"starts": [1, 2]}, "start at label code 0"),
    ("rr-on-bins", BINS | {"starts": [0, 0]}, "increase"),
    ("rr-on-bins", BINS | {"starts": [0, 6]}, "hold a label"),
    ("rr-on-bins", BINS | {"starts": [0, "a"]}, "integers"),
    ("rr-on-bins", BINS | {"starts": [0, 2, 3, 4]}, "one output"),
    ("rr-on-bins", BINS | {"outputs": [1.0, 1.0], "starts": [0, 3]}, "distinct"),
    ("rr-on-bins", BINS | {"outputs": [1.0, math.inf], "starts": [0, 3]}, "finite"),
    ("rr-on-bins", BINS | {"outputs": ["a", "b"]}, "must be a number"),
    ("rr-on-bins", BINS | {"starts": 5}, "starts must be a list. Got int"),
    ("rr-on-bins", BINS | {"epsilon": -1}, "above 0"),
    ("debiased-rr", {"classes": [1, 0], "epsilon": 1.0}, "increasing"),
    ("debiased-rr", {"classes": [0, 1], "epsilon": 99.0}, "epsilon"),
    ("debiased-rr", {"classes": [0, 1], "epsilon": 1.0, "round": "up"}, "nearest"),
]


@pytest.mark.parametrize(("name", "parameters", "message"), DECLARATIONS)
def test_a_bad_declaration_is_refused(name: str, parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        from_declaration(Declaration(name, parameters), AB)
    assert "\n" not in str(caught.value)


def test_a_channel_of_a_stratum_names_its_classes() -> None:
    stated = strata({"name": "channel", "matrix": [[1, 0], [0, 1]]})
    with pytest.raises(InputError, match="name its classes"):
        from_declaration(Declaration("by-stratum", stated), AB)


@pytest.mark.parametrize(
    ("name", "parameters", "message"),
    [
        ("joint-r", {"epsilon": 1.0}, "did you mean 'joint-rr'"),
        ("joint-rr", {}, "must state 'epsilon'"),
        ("rs-fd", {"epsilon": 0}, "must be above 0"),
        ("rs-fd", {"epsilon": 31}, "at most 30"),
        ("rs-fd", {"epsilon": 1, "domains": [["a", "b"]]}, "at least two domains"),
        ("rs-fd", {"epsilon": 1, "domains": [["a", "b"]] * 3}, "states 3 domains"),
        ("rs-fd", {"epsilon": 1, "domains": [["a", "a"]] * 2}, "distinct"),
        ("rs-fd", {"epsilon": 1, "domains": "ab"}, "list of labels"),
        ("rs-fd", {"epsilon": 1, "lambda": 0.1}, "unknown"),
    ],
)
def test_a_bad_joint_declaration_is_refused(name: str, parameters: Any, message: str) -> None:
    columns = tuple(LabelDeclaration(label) for label in "uv")
    with pytest.raises(InputError, match=message):
        joint_from_declaration(ColumnsDeclaration(columns, Declaration(name, parameters)), (AB, AB))


class Fixed:
    """A classifier that always returns the same row."""

    def __init__(self, classes: list[Any], row: list[float]) -> None:
        self.classes_, self.row = np.array(classes), row

    def predict_proba(self, X: Any, /) -> np.ndarray[Any, Any]:
        return np.tile(self.row, (len(X), 1))


def classified(classes: list[Any], row: list[float]) -> Any:
    model = family("model-based-rr")(("a", "b", "c"), 0.4)
    return model.synthetic(Fixed(classes, row), np.zeros((4, 1)))


def checked(protocol: str, report: list[Any]) -> Any:
    stated = {"protocol": protocol, "epsilon": 1.0, "classes": list("abcdef")}
    return from_declaration(Declaration("frequency-oracle", stated), ()).check(np.array(report))


def explicit(matrix: Any) -> Channel:
    return Channel(np.array(matrix), (0, 1), (0, 1))


CODES = [[0, 2], [-1, 0], [0.0, 1.0], [[0, 1]]]
RANGES = {
    "0": "LO:HI",
    "a:b": "three numbers",
    "3:3": "below",
    "0:inf": "finite",
    "0:1:0.3": "whole number",
    "0:1:0": "above 0",
    "0:1:-1": "above 0",
    "0:1:2": "whole number",
    "0:1:1e-9": "at most",
}
CALLS: list[tuple[Any, str]] = [
    *((partial(LabelRange.parse, text), message) for text, message in RANGES.items()),
    *((partial(RR.sample, np.array(codes)), "codes must be|row") for codes in CODES),
    (partial(explicit, [[0.5, 0.4], [0.5, 0.5]]), "sum to 1"),
    (partial(explicit, [[1.5, -0.5], [0.5, 0.5]]), "not negative"),
    (partial(explicit, [[math.nan, 1], [0.5, 0.5]]), "finite"),
    (partial(explicit, [[1.0]]), "shape"),
    (lambda: RandomizedResponse((0, 1), 1.5), r"\[0, 1\]"),
    (lambda: RandomizedResponse((0, 1), 1.0).channel.inverse, "cannot be inverted"),
    (lambda: RR.channel.divergences(0.0), "above 0"),
    (lambda: RR.channel.divergences(-1.0), "above 0"),
    (lambda: RR.expected_loss([0.5, 0.6]), "sum to 1"),
    (lambda: RR.expected_loss([1.5, -0.5]), "not negative"),
    (lambda: RR.expected_loss([math.nan, 1.0]), "finite"),
    (lambda: RR.expected_loss([1.0]), "each of the 2"),
    (lambda: RR.expected_loss([0.5, 0.5], "huber"), "one of squared, absolute, poisson"),
    (lambda: RandomizedResponse(AB, 0.5).bias(), "numbers"),
    (lambda: RandomizedResponse((1, 0), 0.5).bias(), "increasing"),
    (lambda: RandomizedResponse((0.0, math.inf), 0.5).bias(), "finite"),
    (lambda: RandomizedResponse((False, True), 0.5).bias(), "numbers"),
    (lambda: codes_of([0, 5], (0, 1)), r"rows: \d"),
    (lambda: codes_of([0, math.nan], (0, 1)), r"rows: \d"),
    (lambda: codes_of(np.array([0, None], dtype=object), (0, 1)), r"rows: \d"),
    (lambda: codes_of(["0", "1"], (0, 1)), r"rows: \d"),
    *(
        (partial(check_classes, labels), "texts, numbers")
        for labels in (["a", ["b"]], [{"a": 1}, "b"], [(1, 2), 3], ["a", None], [math.nan, 1])
    ),
    (lambda: WeightTable(np.broadcast_to(np.uint64(0), (1 << 13, 1 << 13))), "too large"),
    (lambda: Laplace(RANGE, 1.0).rdp(0.0), "above 0"),
    (lambda: Laplace(RANGE, 1.0).rdp(math.nan), "above 0"),
    (lambda: Exponential(LabelRange(0.0, 1.0), 1.0).rdp(0.0), "above 0"),
    (lambda: conditional_rdp_floor(1.0, 0.3, 4), "above 1"),
    (lambda: LabelRange(0.0, float((1 << 22) + 1), 1.0), "4194304"),
    (lambda: LabelRange(0.0, 10.0 + 0.75e-6, 0.5), "whole number"),
    (lambda: LabelRange(0.0, 10.0, 0.5).codes([5.0, 1.0 + 0.75e-6]), "off it: 1"),
    (lambda: LabelRange(0.0, 10.0, 0.5).codes([5.0, 1.0 - 0.75e-6]), "off it: 1"),
    (lambda: DiscreteLaplace(GRID, 1.0).release([1.0]), r"outside: \d"),
    (lambda: DiscreteLaplace(GRID, 1.0).release([math.nan, 3]), r"outside: \d"),
    (lambda: DiscreteLaplace(GRID, 1.0).release(["x"]), "numbers"),
    (lambda: DiscreteLaplace(GRID, 1.0).release([3.5, 4]), r"off it: \d"),
    (lambda: DiscreteLaplace(GRID, 1.0).sample(np.array([8])), "row"),
    (lambda: DiscreteLaplace(GRID, 1.0, True).sample(np.array([8])), "row"),
    (lambda: DiscreteLaplace(RANGE, 1.0), "step"),
    (lambda: DiscreteStaircase(GRID, 1.0, False, 8), "width"),
    (lambda: Staircase(RANGE, 1.0, False, 1.0), "gamma"),
    (lambda: Laplace(RANGE, 1.0, 1), "clipped"),
    (lambda: Laplace(RANGE, 1.0).binned([3.0, 2.0], np.array([2.0, 9.0])), "increasing"),
    (
        lambda: Laplace(LabelRange(-1, 3), 1.0).expected_loss(
            [0.5, 0.5], "poisson", np.array([-1.0, 3.0])
        ),
        "not negative",
    ),
    *(
        (partial(made, GRID, epsilon), "epsilon")
        for made in (Laplace, Staircase, DiscreteLaplace, DiscreteStaircase, Exponential)
        for epsilon in (0.0, -1.0, math.inf, math.nan)
    ),
    (lambda: Rounding((0, 10)).sample([-0.1]), r"(outside|rows): \d"),
    (lambda: Rounding((0, 10)).sample([10.1]), r"(outside|rows): \d"),
    (lambda: Rounding((0, 10)).sample([math.nan]), r"(outside|rows): \d"),
    (lambda: Rounding((1, 0)), "increasing"),
    (lambda: Rounding((0, 1), "up"), "nearest"),
    (lambda: with_rounding(ExplicitChannel(RR.channel), "unbiased"), "not rounded"),
    (lambda: RoundedLabels(Laplace(RANGE, 1.0), "unbiased"), "nothing to round"),
    (lambda: prior_budget(0.1, 100, 10_000), "rows"),
    (lambda: prior_budget(1.0, 2, 0), "rows"),
    (lambda: prior_budget(0.5, 10, 3), "rows"),
    (lambda: check_prior_budget(1e-12, 2, 10**6), "noise alone"),
    (lambda: check_prior_budget(0.1, 100, 1000), "noise alone"),
    *(
        (partial(private_prior, counts, 1.0), "counts")
        for counts in ([1.5, 2.0], [-1, 2], [[1, 2]])
    ),
    (lambda: private_prior([1, 2], 0.0), "above 0"),
    (
        lambda: DoubleRR(AB, 0.5).sample(np.zeros(3, np.int32), np.array([0, 0], np.int32)),
        "any: 1",
    ),
    (partial(classified, ["a", "b"], [0.5, 0.5]), "It knows 2, 2 of them among these"),
    (partial(classified, ["a", "b", "d"], [0.2, 0.3, 0.5]), "It knows 3, 2 of them among these"),
    (partial(classified, ["a", "b", "c"], [0.2, 0.3, 0.6]), "sum to 1; 4 do not"),
    (partial(classified, ["a", "b", "c"], [0.2, -0.2, 1.0]), "sum to 1; 4 do not"),
    (partial(classified, ["a", "b", "c"], [0.5, 0.5]), "one probability per row and label"),
    (lambda: GaussianRR((0, 1), 0.5, 0, 1), "radius"),
    (lambda: GaussianRR((0, 1), 0.5, 1, 0), "sigma"),
    (lambda: GaussianRR((0, 1), 0.5, 1, -1), "sigma"),
    (lambda: GaussianRR((0, 1), 0.5, 1, math.inf), "sigma"),
    (lambda: GaussianRR((0, 1), 0.5, 1, 1, 1.0, 0), "delta"),
    (lambda: GaussianRR((0, 1), 0.5, 1, 1, 1.0, 1), "delta"),
    (lambda: gaussian_epsilon(1.0, 0.0, 1e-5), "sensitivity"),
    (lambda: gaussian_epsilon(1.0, -1.0, 1e-5), "sensitivity"),
    (
        lambda: LabelProportions("bag", AB, "geometric", 1.0).release(
            np.array([0, 2], np.int32), np.array([0, 0])
        ),
        "declared range",
    ),
    (partial(checked, "GRR", [[6]]), "1 are not"),
    (partial(checked, "GRR", [[0, 1]]), "1 entries"),
    (partial(checked, "SS", [[0, 0]]), "1 are not"),
    (partial(checked, "SS", [[-1, 2]]), "1 are not"),
    (partial(checked, "SUE", [[0, 1, 2, 0, 0, 0]]), "1 are not"),
    (partial(checked, "SUE", [[0, 1]]), "6 entries"),
    (partial(checked, "SHE", [[0, 0, 0, 0, 0, math.nan]]), "1 are not"),
    (partial(checked, "BLH", [[5, 2]]), "1 are not"),
    (partial(checked, "BLH", [[5.5, 1.0]]), "whole numbers"),
    (lambda: JointRR((AB, AB), 1.0).sample(np.array([[0, 1], [2, 0]])), r"(outside|rows): \d"),
    (lambda: JointRR((AB, AB), 1.0).sample(np.zeros((3, 3), int)), "one column for each"),
    (lambda: JointRR((tuple(range(1000)),) * 6, 2.0), "next to nothing would be kept"),
    (
        lambda: IndependentColumns((RR, DiscreteLaplace(GRID, 1.0))).sample(np.zeros((2, 2), int)),
        "finite channel",
    ),
    (lambda: DebiasedRR((0, 1), 1.0).release([0, 3]), r"(outside|rows): \d"),
    *(
        (partial(design, labels, prior, epsilon), message)
        for design in (optimal_unbiased, optimal_bins)
        for labels, prior, epsilon, message in (
            ([3], [1.0], 1.0, "at least two"),
            ([0, 0], [0.5, 0.5], 1.0, "distinct"),
            ([2, 1], [0.5, 0.5], 1.0, "increasing"),
            ([0, math.inf], [0.5, 0.5], 1.0, "finite"),
            (["a", "b"], [0.5, 0.5], 1.0, "numbers"),
            ([0, 1], [0.5, 0.4], 1.0, "sum to 1"),
            ([0, 1], [1.5, -0.5], 1.0, "negative"),
            ([0, 1], [0.5, 0.3, 0.2], 1.0, "one probability"),
            ([0, 1], [0.5, 0.5], 0.0, "above 0"),
            ([0, 1], [0.5, 0.5], math.inf, "finite"),
            ([0, 1], [0.5, 0.5], 1e-16, "epsilon"),
            ([0, 1], [0.5, 0.5], 50.0, "epsilon"),
        )
    ),
    (lambda: optimal_bins([0, 1], [0.5, 0.5], 1.0, "hinge"), "squared, absolute or poisson"),
    (lambda: optimal_bins([-1, 1], [0.5, 0.5], 1.0, "poisson"), "not negative"),
    (lambda: optimal_unbiased([0, 1], [0.5, 0.5], 1.0, "absolute"), "its outputs diverge"),
    (lambda: optimal_unbiased([0, 1, 2], [0.5, 0.25, 0.25], 1.0, "poisson"), "positive outputs"),
    (
        lambda: optimal_unbiased([1, 2, 3], [0.5, 0.25, 0.25], math.log(3) - 1e-9, "poisson"),
        "positive outputs",
    ),
]


@pytest.mark.parametrize(("call", "message"), CALLS)
def test_a_bad_parameter_is_refused(call: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        call()


def test_a_default_that_is_computed_is_checked_too() -> None:
    """A plug-in's outputs that are no labels, where the file's labels already hold them."""
    from ldpaudit.mechanisms.parameters import Parameter, fields_of

    more = Parameter("outputs", check_classes, default=lambda fields: (*fields["classes"], "none"))
    declared = (Parameter("classes", check_classes), more)
    assert fields_of(declared, {}, ("a", "b"), "odd")["outputs"] == ("a", "b", "none")
    with pytest.raises(InputError, match="must be distinct"):
        fields_of(declared, {}, ("a", "none"), "odd")


def test_a_short_name_in_a_declaration_hints_at_the_full_one():
    message = r"must be declared by its full name; did you mean 'randomized-response'\?$"
    with pytest.raises(InputError, match=message):
        from_declaration(Declaration("rr", {"epsilon": 1.0}), AB)
