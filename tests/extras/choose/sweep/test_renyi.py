"""The Rényi numbers of a sweep: one divergence for the generator, ε over the noise by order."""

import math

import pytest
from typer.testing import CliRunner

from ldpaudit.cli import app
from ldpaudit.errors import InputError
from ldpaudit.extras.choose.mechanism.analysis import conditional_curve
from ldpaudit.extras.choose.sweep.result import CONDITIONAL, DIVERGENCE, FLOOR, order_curves
from ldpaudit.extras.kinds.mechanisms.with_features import DoubleRR
from ldpaudit.mechanisms import RandomizedResponse


def content(estimate: float, noise: float) -> dict:
    mechanism = DoubleRR(("a", "b"), noise)
    curves = {
        f"{DIVERGENCE}.estimate": [estimate, 2 * estimate],
        CONDITIONAL: [mechanism.conditional_epsilon(estimate * j) for j in (1, 2)],
        FLOOR: [mechanism.conditional_rdp_floor(a) for a in (2.0, 4.0)],
    }
    stored = [
        {"id": name, "title": name, "kind": "estimated", "x": [2.0, 4.0], "value": values}
        for name, values in curves.items()
    ]
    return {"result": {"curves": stored}}


def test_curves_are_averaged_over_draws_and_missing_ones_are_left_out() -> None:
    found = {c.id: c for c in order_curves([content(1.0, 0.4), content(2.0, 0.4)])}
    assert found[f"{DIVERGENCE}.estimate"].value == [1.5, 3.0]
    assert found[CONDITIONAL].value[0] == pytest.approx(2 * math.log(4) + 1.5)
    assert found[FLOOR].x == [2.0, 4.0]
    assert order_curves([content(1.0, 0.4), {"result": {"curves": []}}]) == []


def test_a_divergence_gives_the_bound_of_theorem_7_1() -> None:
    double = DoubleRR(("a", "b", "c"), 0.3)
    every = conditional_curve(double, 1.0)
    assert {value for _, value in every} == {2 * math.log(1 + 3 * 0.7 / 0.3) + 1.0}
    assert all(value >= (double.conditional_rdp_floor(alpha) or 0.0) for alpha, value in every)
    assert conditional_curve(double, "4:2,2:1") == (
        (2.0, double.conditional_epsilon(1.0)),
        (4.0, double.conditional_epsilon(2.0)),
    )
    for wrong, said in (("2", "α:Δ"), ("1:1", "above 1"), ("2:-1", "at least 0"), (-1.0, "finite")):
        with pytest.raises(InputError, match=said):
            conditional_curve(double, wrong)
    with pytest.raises(InputError, match="no synthetic features"):
        conditional_curve(RandomizedResponse(("a", "b"), 0.3), 1.0)


def test_describe_prints_it_beside_the_floor() -> None:
    words = ["mechanism", "describe", "double-rr", "--lambda", "0.4", "--classes", "a,b"]
    said = CliRunner().invoke(app(), [*words, "--set", "divergence=2:1,4:1.8"])
    assert said.exit_code == 0
    assert "Theorem 7.1" in said.output
    assert "3.772589" in said.output
    assert said.output.index("Theorem 7.1") < said.output.index("Theorem 7.2")
