"""The sentence claims a change only where the interval leaves no doubt of it."""

from typing import Any

import pytest

from ldpaudit.commands.compare.sentence import sentence as sentence_at
from ldpaudit.result import AuditResult, Estimate, MechanismInfo, ReleaseInfo, RunInfo
from ldpaudit.result.comparison import Difference


def estimate(identifier: str, value: float) -> Estimate:
    return Estimate(
        id=identifier, kind="certified", value=value, low=value - 0.01, high=value + 0.01,
        side="two-sided", level=0.95, unit="proportion",
    )  # fmt: skip


BEST, ADVANTAGE = ("attack.best.accuracy", "attack.best.advantage")
TEST = "test_accuracy"


def sentence(releases: list[AuditResult], differences: list[Difference]) -> str:
    return sentence_at(releases, differences, 0.95)


def result(
    best: float | None, mechanism: str, advantage: float | None = None, **parameters: Any
) -> AuditResult:
    known = {BEST: best, ADVANTAGE: advantage}
    estimates = [estimate(key, value) for key, value in known.items() if value is not None]
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
    fields = {"kind": "certified", "level": 0.99, "b": "B", "simultaneous": True} | more
    return Difference(
        id=identifier, a="A", value=value, low=value - half, high=value + half, **fields
    )


RR, DOUBLE = ("randomized-response", "double-rr")


def test_both_clear() -> None:
    releases = [result(0.971, RR, **{"lambda": 0.3}), result(0.638, DOUBLE, **{"lambda": 0.3})]
    found = sentence(releases, [difference(BEST, -0.333, 0.01), difference(TEST, -0.012, 0.005)])
    assert found == (
        "At λ = 0.3 double randomized response lowers the best attack from 97.1 % to 63.8 % "
        "(95 %: −34.3 to −32.3 points) and costs 1.2 points of test accuracy "
        "(95 %: −1.7 to −0.7 points), against randomized response; the intervals hold together."
    )


def test_neither_clear() -> None:
    releases = [result(0.9, RR, **{"lambda": 0.3}), result(0.89, DOUBLE, **{"lambda": 0.3})]
    found = sentence(releases, [difference(BEST, -0.01, 0.02), difference(TEST, -0.012, 0.0151)])
    assert "lowers" not in found
    assert "costs" not in found
    said = (
        "leaves the best attack at 89.0 %, no change shown from 90.0 % (95 %: −3.0 to 1.0 points)"
    )
    assert said in found
    assert "shows no change of test accuracy (95 %: −2.8 to 0.4 points)" in found


def test_an_estimate_says_so() -> None:
    releases = [result(0.9, RR, **{"lambda": 0.3}), result(0.8, DOUBLE, **{"lambda": 0.3})]
    own = difference(BEST, -0.1, 0.02, kind="estimated", simultaneous=False, level=0.9)
    found = sentence(releases, [own])
    said = (
        "lowers, by estimate, the best attack from 90.0 % to 80.0 % (90 %: −12.0 to −8.0 points),"
    )
    assert said in found
    assert "together" not in found
    # Its error probability adds to that of the family.
    both = sentence(releases, [own, difference(TEST, -0.012, 0.0151)])
    assert "to 80.0 % (85 %: −12.0 to −8.0 points)" in both
    assert "test accuracy (85 %: −2.8 to 0.4 points)" in both
    assert "the intervals hold together" in both


def test_different_parameters_and_equal_mechanisms() -> None:
    releases = [result(0.9, RR, eps=1.0, **{"lambda": 0.5}), result(0.95, RR, eps=2.0)]
    found = sentence(releases, [difference(BEST, 0.05, 0.02)])
    assert found == (
        "Randomized response with ε = 2 raises the best attack from 90.0 % to 95.0 % "
        "(95 %: 3.0 to 7.0 points), against randomized response with ε = 1."
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
    assert f"(95 %: {low:g} to {high:g})".replace("-", "−") in found


def test_an_advantage_that_rises_while_accuracy_falls_is_said() -> None:
    releases = [result(0.917, RR, 0.061), result(0.886, DOUBLE, 0.096)]
    own = [difference(BEST, -0.031, 0.02), difference(ADVANTAGE, 0.035, 0.02)]
    found = sentence(releases, [*own, difference(TEST, -0.012, 0.005)])
    assert found == (
        "Double randomized response lowers the best attack from 91.7 % to 88.6 % "
        "(95 %: −5.1 to −1.1 points), though its advantage over the features alone rises from 6.1 "
        "to 9.6 points (95 %: 1.5 to 5.5 points), and costs 1.2 points of test accuracy "
        "(95 %: −1.7 to −0.7 points), against randomized response; the intervals hold together."
    )


@pytest.mark.parametrize(
    ("accuracy", "half", "advantage", "said"),
    [
        (
            -0.031,
            0.02,
            0.01,
            "went from 6.1 to 9.6 points (95 %: −1.0 to 3.0 points), no change shown",
        ),
        (-0.001, 0.02, 0.035, "rises from 6.1 to 9.6 points"),  # no fall of the accuracy is shown
        (0.001, 0.02, 0.035, "rises from 6.1 to 9.6 points"),
        (0.031, 0.02, -0.035, "falls from 6.1 to 9.6 points"),
        (-0.031, 0.02, -0.035, ""),  # both fall
        (0.031, 0.02, 0.01, ""),
    ],
)
def test_when_the_advantage_is_named(
    accuracy: float, half: float, advantage: float, said: str
) -> None:
    releases = [result(0.917, RR, 0.061), result(0.886, DOUBLE, 0.096)]
    own = [difference(BEST, accuracy, half), difference(ADVANTAGE, advantage, 0.02)]
    found = sentence(releases, own)
    assert ("its advantage over the features alone" in found) == bool(said)
    assert said in found


def test_no_end_of_an_interval_is_rounded_inward() -> None:
    releases = [result(0.9, RR), result(0.91, DOUBLE)]
    found = sentence(releases, [difference(BEST, 0.00561, 0.0056)])
    # 0.001 to 1.121 points: 0.0 would touch zero, 1.1 would claim too much.
    assert "raises the best attack" in found
    assert "(95 %: 0.001 to 1.2 points)" in found


def test_many_releases_tell_each_interval_at_its_own_level() -> None:
    releases = [result(0.9, RR, eps=float(i + 1)) for i in range(8)]
    own = [
        difference(BEST, -0.1, 0.02, kind="estimated", simultaneous=False, level=0.9, b=letter)
        for letter in "BCDEFGH"
    ]
    found = sentence(releases, own)
    assert found.count("(90 %: −12.0 to −8.0 points)") == 7
    assert "together" not in found
