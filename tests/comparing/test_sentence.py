"""The sentence claims a change only where the interval leaves no doubt of it."""

from typing import Any

import pytest

from ldpaudit.comparing.sentence import sentence
from ldpaudit.comparison import Difference
from ldpaudit.result import AuditResult, Estimate, MechanismInfo, ReleaseInfo, RunInfo


def result(best: float | None, mechanism: str, **parameters: Any) -> AuditResult:
    estimates = []
    if best is not None:
        estimates.append(
            Estimate(
                id="attack.best.accuracy", kind="certified", value=best, low=best - 0.01,
                high=best + 0.01, side="two-sided", level=0.95, unit="proportion",
            )
        )  # fmt: skip
    return AuditResult(
        ldpaudit_version="0",
        verdict="pass",
        sentence="",
        release=ReleaseInfo(
            name="r", sha256=None, rows=9, features=1, classes=2, class_names=(), label=None,
            truth=True,
        ),
        mechanism=MechanismInfo(
            name=mechanism, declared="file", parameters=parameters, epsilon=parameters.get("eps")
        ),
        estimates=tuple(estimates),
        curves=(),
        checks=(),
        audits=(),
        run=RunInfo(seed=1, command="", versions={}, threads=1, seconds=0.0),
    )  # fmt: skip


def difference(identifier: str, value: float, half: float, **more: Any) -> Difference:
    fields = {"kind": "certified", "level": 0.99, "b": "B"} | more
    return Difference(
        id=identifier, a="A", value=value, low=value - half, high=value + half, **fields
    )


RR, DOUBLE = ("randomized-response", "double-rr")
BEST, TEST = ("attack.best.accuracy", "test_accuracy")


def test_both_clear() -> None:
    releases = [result(0.971, RR, **{"lambda": 0.3}), result(0.638, DOUBLE, **{"lambda": 0.3})]
    found = sentence(releases, [difference(BEST, -0.333, 0.01), difference(TEST, -0.012, 0.005)])
    assert found == (
        "At λ = 0.3 double randomized response lowers the best attack from 97.1 % to 63.8 % and "
        "costs 1.2 points of test accuracy, against randomized response."
    )


def test_neither_clear() -> None:
    releases = [result(0.9, RR, **{"lambda": 0.3}), result(0.89, DOUBLE, **{"lambda": 0.3})]
    found = sentence(releases, [difference(BEST, -0.01, 0.02), difference(TEST, -0.012, 0.0151)])
    assert "lowers" not in found
    assert "costs" not in found
    assert "leaves the best attack at 89.0 %, no change shown from 90.0 %" in found
    assert "shows no change of test accuracy (−2.8 to 0.4 points)" in found


def test_an_estimate_says_so() -> None:
    releases = [result(0.9, RR, **{"lambda": 0.3}), result(0.8, DOUBLE, **{"lambda": 0.3})]
    found = sentence(releases, [difference(BEST, -0.1, 0.02, kind="estimated")])
    assert "lowers, by estimate, the best attack from 90.0 % to 80.0 %" in found


def test_different_parameters_and_equal_mechanisms() -> None:
    releases = [result(0.9, RR, eps=1.0, **{"lambda": 0.5}), result(0.95, RR, eps=2.0)]
    found = sentence(releases, [difference(BEST, 0.05, 0.02)])
    assert found == (
        "Randomized response with ε = 2 raises the best attack from 90.0 % to 95.0 %, against "
        "randomized response with ε = 1."
    )
    twins = [result(0.9, RR, eps=1.0), result(0.9, RR, eps=1.0)]
    assert "(B) has its best attack at 90.0 % (no interval" in sentence(twins, [])


def test_without_attacks() -> None:
    found = sentence([result(None, RR), result(0.5, "unknown")], [])
    assert found == (
        "An unknown mechanism was not attacked in the same way, against randomized response."
    )


@pytest.mark.parametrize(("low", "high"), [(0.1, 0.2), (-0.3, -0.1)])
def test_squared_error(low: float, high: float) -> None:
    releases = [result(0.9, "laplace"), result(0.9, "staircase")]
    middle = (low + high) / 2
    own = difference("test_squared_error", middle, (high - low) / 2)
    found = sentence(releases, [own])
    assert ("raises the squared error" if low > 0 else "lowers the squared error") in found
