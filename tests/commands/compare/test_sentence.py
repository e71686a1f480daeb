"""The sentences claim a change only where the interval leaves no doubt of it."""

from typing import Any

import pytest

from ldpaudit.commands.compare.sentences import remark, sentences
from ldpaudit.commands.compare.work import told_apart
from ldpaudit.result import AuditResult, Estimate, MechanismInfo, ReleaseInfo, RunInfo
from ldpaudit.result.comparison import Difference


def estimate(identifier: str, value: float) -> Estimate:
    return Estimate(
        id=identifier, kind="certified", value=value, low=value - 0.01, high=value + 0.01,
        side="two-sided", level=0.95, unit="proportion",
    )  # fmt: skip


BEST, ADVANTAGE = ("attack.best.accuracy", "attack.best.advantage")
TEST = "test_accuracy"


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
TITLES = ("Privacy: ", "Advantage over the features alone: ", "Utility: ")


def test_three_sentences_with_direction_points_and_interval() -> None:
    releases = [result(0.971, RR, 0.061), result(0.638, DOUBLE, 0.096)]
    own = [difference(BEST, -0.333, 0.01), difference(TEST, -0.012, 0.005)]
    privacy, advantage, utility = said(
        scored(releases, 0.9, 0.888), [*own, difference(ADVANTAGE, 0.035, 0.02)]
    )
    assert privacy == (
        "Privacy: the strongest attack guesses 97.1 % of the labels right in a.parquet; fewer in "
        "b.parquet, 63.8 %: −33.3 percentage points (95 %: −34.3 to −32.3)."
    )
    assert advantage == (
        "Advantage over the features alone: a.parquet adds 6.1 percentage points to guesses; more "
        "with b.parquet, 9.6: +3.5 percentage points (95 %: 1.5 to 5.5)."
    )
    assert utility == (
        "Utility: a model trained on a.parquet is right for 90.0 % of the test rows; fewer with "
        "b.parquet, 88.8 %: −1.2 percentage points (95 %: −1.7 to −0.7)."
    )


def test_neither_clear() -> None:
    releases = scored([result(0.9, RR), result(0.89, DOUBLE)], 0.9, 0.888)
    own = [difference(BEST, -0.01, 0.02), difference(TEST, -0.012, 0.0151)]
    privacy, _, utility = said(releases, own)
    assert "fewer" not in privacy + utility
    assert (
        "no difference shown in b.parquet, 89.0 %: −1.0 percentage points (95 %: −3.0 to 1.0)"
        in privacy
    )
    assert "no difference shown with b.parquet, 88.8 %: −1.2 percentage points" in utility


def test_an_estimate_says_so_and_levels_add_up() -> None:
    releases = scored([result(0.9, RR), result(0.8, DOUBLE)], 0.9, 0.888)
    own = difference(BEST, -0.1, 0.02, kind="estimated", simultaneous=False, level=0.9)
    assert "fewer, by estimate, in b.parquet, 80.0 %" in said(releases, [own])[0]
    assert "(90 %: −12.0 to −8.0)" in said(releases, [own])[0]
    assert remark([own], 0.95) == ""
    # Its error probability adds to that of the family.
    both = [own, difference(TEST, -0.012, 0.0151)]
    assert remark(both, 0.95).startswith("An interval at less than 95 % combines")
    assert remark(both, 0.95).endswith("The intervals hold together at 85 %.")


def test_what_was_not_measured_is_said() -> None:
    privacy, advantage, utility = said([result(None, RR), result(0.5, "unknown")], [])
    assert privacy.endswith("(--truth) and the audit label-inference.")
    assert advantage.startswith("Advantage over the features alone: not compared")
    assert utility == "Utility: not compared, because no test rows were given (--test)."
    other = said([result(0.5, RR), result(None, "unknown")], [])[0]
    assert other.endswith("; b.parquet was not measured in the same way.")
    twins = said([result(0.9, RR), result(0.9, RR)], [])[0]
    assert twins.endswith("; 90.0 % in b.parquet (no interval for the change).")


@pytest.mark.parametrize(("low", "high"), [(0.1, 0.2), (-0.3, -0.1)])
def test_squared_error(low: float, high: float) -> None:
    name = "test_squared_error"
    releases = [with_estimates(result(0.9, "laplace"), {name: 1.25}) for _ in range(2)]
    own = difference(name, (low + high) / 2, (high - low) / 2)
    found = said(releases, [own])[2]
    assert ("larger with b.parquet" if low > 0 else "smaller with b.parquet") in found
    assert f"(95 %: {low:g} to {high:g})".replace("-", "−") in found
    assert "percent" not in found


def test_of_numbers_the_guess_is_told_and_no_advantage() -> None:
    numbers = {"numeric.best.mse": 12.5}
    releases = [with_estimates(result(0.9, "laplace", 0.1), numbers) for _ in range(2)]
    privacy, advantage, _ = said(releases, [difference("numeric.best.mse", 1.0, 0.5)])
    assert "has a mean squared error of 12.5 in a.parquet; larger in b.parquet, 12.5: +1" in privacy
    assert "not for numbers" in advantage


def test_no_end_of_an_interval_is_rounded_inward() -> None:
    releases = [result(0.9, RR), result(0.91, DOUBLE)]
    found = said(releases, [difference(BEST, 0.00561, 0.0056)])[0]
    # 0.001 to 1.121 points: 0.0 would touch zero, 1.1 would claim too much.
    assert "; more in b.parquet" in found
    assert "(95 %: 0.001 to 1.2)" in found


def test_many_releases_stay_three_sentences_with_a_clause_for_each() -> None:
    releases = [result(0.9, RR) for _ in range(8)]
    own = [
        difference(BEST, -0.1, 0.02, kind="estimated", simultaneous=False, level=0.9, b=letter)
        for letter in "BCDEFGH"
    ]
    found = said(releases, own)
    assert [text[: len(title)] for text, title in zip(found, TITLES, strict=True)] == [*TITLES]
    assert found[0].count("(90 %: −12.0 to −8.0)") == 7
    assert remark(own, 0.95) == ""


def said(releases: list[AuditResult], differences: list[Difference]) -> tuple[str, ...]:
    names = [f"{letter}.parquet" for letter in "abcdefgh"]
    return sentences([*zip(names, releases, strict=False)], differences, 0.95)


def scored(releases: list[AuditResult], *scores: float) -> list[AuditResult]:
    """Return the releases with scores on test rows."""
    return [with_estimates(r, {TEST: s}) for r, s in zip(releases, scores, strict=True)]


def with_estimates(release: AuditResult, values: dict[str, float]) -> AuditResult:
    more = tuple(estimate(key, value) for key, value in values.items())
    return release.model_copy(update={"estimates": (*release.estimates, *more)})


@pytest.mark.parametrize(
    ("inputs", "expected"),
    [
        (["x/a.parquet", "x/b.parquet"], ["a.parquet", "b.parquet"]),
        (["/d/x/r.parquet", "/d/y/r.parquet"], ["x/r.parquet", "y/r.parquet"]),
        (["/d/u/x/r.parquet", "/d/v/x/r.parquet", "/d/u/s.parquet"],
         ["u/x/r.parquet", "v/x/r.parquet", "s.parquet"]),
        # Only the whole paths differ: they are not shown.
        (["/x/r.parquet", "/y/r.parquet"], ["r.parquet (A)", "r.parquet (B)"]),
        (["r.parquet", "r.parquet"], ["r.parquet (A)", "r.parquet (B)"]),
    ],
)  # fmt: skip
def test_names_tell_releases_apart_without_a_whole_path(
    inputs: list[str], expected: list[str]
) -> None:
    names = [text.rpartition("/")[2] for text in inputs]
    assert told_apart(names, inputs) == expected


def test_stored_results_of_one_release_are_called_by_their_files() -> None:
    found = told_apart(["r.parquet", "r.parquet"], ["x/one.audit.json", "x/two.audit.json"])
    assert found == ["one.audit.json", "two.audit.json"]
