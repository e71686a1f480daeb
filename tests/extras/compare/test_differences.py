"""Differences of attacks, paired and not: they hold, and they find something."""

import json
import math
from dataclasses import dataclass
from functools import partial
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from estimators.worlds import allowed, guesses

from ldpaudit.audits.interface import NOT_ASKED, HeldOutGuesses
from ldpaudit.cli.parameters import recorded_command
from ldpaudit.estimators.intervals.bounded_mean import paired_interval
from ldpaudit.extras.compare import commands as cli_commands
from ldpaudit.extras.compare.comparison import Difference
from ldpaudit.extras.compare.differences import (
    REFERENCE,
    _best_of,
    _counts,
    _outside_family,
    best_counted,
    row_folds,
)
from ldpaudit.extras.compare.page import render_comparison
from ldpaudit.extras.compare.request import CompareRequest
from ldpaudit.extras.compare.sentences import remark, sentences
from ldpaudit.extras.compare.work import compare, told_apart
from ldpaudit.mechanisms.capabilities import StepNoise
from ldpaudit.result import AuditResult, Estimate, MechanismInfo, ReleaseInfo, RunInfo, Score

ALPHA = 0.1


def recorded(n, **right):
    found, rows = HeldOutGuesses(), np.arange(n)
    halves = (rows % 2).astype(np.int32)
    for name, values in right.items():
        found.record(name.replace("_", "-"), rows, values, halves)
    return found


def valued(name, measure, values):
    found, rows = HeldOutGuesses(), np.arange(len(values))
    found.record_values(name, rows, {measure: values}, (rows % 2).astype(np.int32))
    return found


def test_rows_that_were_not_asked_about_are_left_out():
    a = recorded(8, x=np.array([1, 1, 0, 0, 1, 1, 0, 0], dtype=bool))
    b = recorded(8, x=np.array([1, 0, 1, 0, 1, 0, 1, 0], dtype=bool))
    folds = row_folds(a, b, "x", "x", "accuracy")
    assert [part.tolist() for part in folds.parts] == [[0, 1, 0, 1], [-1, 0, -1, 0]]
    assert folds.mean() == 0
    b.outcomes["x"][6:] = NOT_ASKED
    folds = row_folds(a, b, "x", "x", "accuracy")
    assert (folds.n, folds.mean()) == (6, pytest.approx(3 / 6 - 4 / 6))


def test_an_advantage_is_held_against_each_releases_own_features():
    own = {"x": np.array([1, 1, 0, 0], dtype=bool), "features_only": np.array([1, 0, 1, 0]) > 0}
    other = {"x": np.array([1, 0, 0, 1], dtype=bool), "features_only": np.array([0, 1, 0, 0]) > 0}
    folds = row_folds(recorded(4, **own), recorded(4, **other), "x", "x", "advantage", 2.0)
    assert folds.reach == 2.0
    # b: 1, −1, 0, 1 on the four rows; a: 0, 1, −1, 0.
    assert np.concatenate(folds.parts).tolist() == [1, 1, -2, 1]


def advantages(rng, n, shares):
    """Attack and features of two releases with given shares of right guesses."""
    right = guesses(rng, n, shares)
    return (
        recorded(n, x=right[0], features_only=right[1]),
        recorded(n, x=right[2], features_only=right[3]),
    )


SHARES = [0.92, 0.86, 0.89, 0.79]
"""Accuracy falls by 0.03, the advantage rises by 0.04."""


@pytest.mark.parametrize("shares", [SHARES, [0.9, 0.8, 0.9, 0.8]])
def test_the_difference_of_advantages_holds(shares):
    runs, truth = 20, shares[2] - shares[3] - shares[0] + shares[1]
    rng = np.random.default_rng(21)
    misses = 0
    for _ in range(runs):
        a, b = advantages(rng, 500, shares)
        found = paired_interval(row_folds(a, b, "x", "x", "advantage", 2.0), ALPHA)
        misses += not found.low <= truth <= found.high
    assert misses <= allowed(runs, ALPHA)


@pytest.mark.validate
@pytest.mark.parametrize("n", [200, 2000])
def test_the_difference_of_advantages_holds_at_length(n):
    runs, rng, misses = 400, np.random.default_rng(22), 0
    for _ in range(runs):
        a, b = advantages(rng, n, SHARES)
        found = paired_interval(row_folds(a, b, "x", "x", "advantage", 2.0), ALPHA)
        misses += not found.low <= 0.04 <= found.high
    assert misses <= allowed(runs, ALPHA)


def test_an_advantage_that_rises_while_accuracy_falls_is_found():
    a, b = advantages(np.random.default_rng(23), 12_000, SHARES)
    accuracy = paired_interval(row_folds(a, b, "x", "x", "accuracy"), 0.025)
    advantage = paired_interval(row_folds(a, b, "x", "x", "advantage", 2.0), 0.025)
    assert accuracy.high < 0 < advantage.low


def squares(rng, n, scales):
    """Squared errors of guesses that share most of their error, in [0, 100]."""
    common = rng.standard_normal(n)
    return [
        np.minimum((scale * (0.9 * common + 0.44 * rng.standard_normal(n))) ** 2, 100.0)
        for scale in scales
    ]


def strongest(rng, n, a, b, alpha):
    """Return the interval of b's least mean squared error less a's."""
    found = squares(rng, n, [*a, *b])
    sides = []
    for part in (found[: len(a)], found[len(a) :]):
        both = HeldOutGuesses()
        for i, values in enumerate(part):
            both.values |= valued(str(i), "mse", values).values
        both.halves = (np.arange(n) % 2).astype(np.int32)
        sides.append((both, {str(i): float(v.mean()) for i, v in enumerate(part)}))
    (ours, known), (theirs, other) = sides
    return _best_of(ours, theirs, "mse", known, other, 100.0, alpha)


@pytest.mark.parametrize(("a", "b"), [([1.0, 1.2], [1.0, 1.0]), ([1.0], [0.7, 1.5, 2.0])])
def test_the_difference_of_the_least_errors_holds(a, b):
    runs, scale = 16, 0.9**2 + 0.44**2
    truth = scale * (min(b) ** 2 - min(a) ** 2)
    rng = np.random.default_rng(24)
    misses = 0
    for _ in range(runs):
        found = strongest(rng, 400, a, b, ALPHA)
        misses += not found.low <= truth <= found.high
        assert found.low <= found.value <= found.high
    assert misses <= allowed(runs, ALPHA)


def test_a_paired_error_is_found_where_two_intervals_find_nothing():
    rng = np.random.default_rng(25)
    found = strongest(rng, 6000, [1.0], [1.15], 0.05)
    assert 0 < found.low < found.high
    ours, theirs = squares(np.random.default_rng(25), 6000, [1.0, 1.15])
    none = valued("z", "mse", np.zeros(6000))
    alone = [
        paired_interval(row_folds(none, valued("z", "mse", one), "z", "z", "mse", 100.0), 0.025)
        for one in (ours, theirs)
    ]
    assert alone[1].low < alone[0].high


def test_guesses_within_a_tolerance_are_counted():
    near = [np.array([1.0, 1.0, 0.0, 1.0]), np.array([1.0, 0.0, 1.0, np.nan])]
    a, b = (valued("z", "within_5", values) for values in near)
    folds = row_folds(a, b, "z", "z", "within_5")
    assert [part.tolist() for part in folds.parts] == [[0, 1], [-1]]
    assert row_folds(a, b, "z", "z", "within_5", sign=-1.0).mean() == -folds.mean()


@pytest.mark.parametrize(
    ("ours", "theirs", "difference"),
    [(1.0, 3.0, 2.0), (1.0, None, None), (None, 1.0, None), (1.0, math.inf, None)],
)
def test_declared_epsilons_are_compared_where_both_are_known(ours, theirs, difference):
    def side(letter, epsilon):
        result = SimpleNamespace(
            mechanism=SimpleNamespace(epsilon=epsilon),
            release=SimpleNamespace(classes=2),
            estimates=(),
            estimate=lambda _: None,
        )
        return SimpleNamespace(letter=letter, result=result, guesses=None)

    found = list(_outside_family(side("A", ours), side("B", theirs)))
    assert [one.value for one in found] == ([] if difference is None else [difference])


def test_counts_are_those_of_all_attacks_or_none():
    counted = {"kind": "certified", "side": "two-sided", "low": 0.5, "high": 0.9, "level": 0.95}
    known = {
        name: Estimate.model_validate(
            {"id": f"attack.{name}.accuracy", "value": 0.7, "unit": "proportion", **counted, **more}
        )
        for name, more in {
            "bayes": {"n": 100, "count": 70},
            "votes": {"n": 200, "count": 0},
            "rounded": {"n": 100},
            "empty": {"n": 0, "count": 0},
        }.items()
    }
    result = SimpleNamespace(estimate=lambda one: known.get(one.split(".")[1]))
    assert _counts(result, ["bayes", "votes"]) == {"bayes": (70, 100), "votes": (0, 200)}
    for missing in ("rounded", "empty", "unknown"):
        assert _counts(result, ["bayes", missing]) == {}


def test_the_strongest_is_chosen_at_a_cost():
    rng = np.random.default_rng(26)
    right = guesses(rng, 4000, [0.8, 0.8, 0.8, 0.8])
    a = recorded(4000, x=right[0], **{REFERENCE: right[1]})
    b = recorded(4000, x=right[2], y=right[3], **{REFERENCE: right[1]})
    one = paired_interval(row_folds(a, b, "x", "x", "accuracy"), 0.05)
    best = _best_of(a, b, "accuracy", {"x": 0.8}, {"x": 0.81, "y": 0.8}, 1.0, 0.05)
    assert best.low < one.low


WHOLE = "bayes-whole-release"


@dataclass(frozen=True)
class Stored:
    """As much of a result as is looked at."""

    estimates: tuple[Estimate, ...]

    def estimate(self, identifier):
        return next((e for e in self.estimates if e.id == identifier), None)


def scored_by(name, measure, **fields):
    score = Score(subject=name, measure=measure, row=name, column=measure)
    given = {"id": f"attack.{name}.{measure}", "section": "label-inference", "score": score}
    return Estimate.model_validate(given | fields)


def stored(**right):
    found = []
    for name, count in right.items():
        given = {"unit": "proportion", "n": 1000, "method": "counts"}
        interval = {
            "kind": "certified",
            "level": 0.95,
            "side": "two-sided",
            "low": 0.0,
            "high": 1.0,
        }
        scored = partial(scored_by, name)
        found.append(scored("accuracy", value=count / 1000, count=count, **given, **interval))
        found.append(scored("multiplicative_advantage", value=0.5, **given, **interval))
        if name != WHOLE:
            found.append(scored("in_sample.accuracy", kind="estimated", value=0.5, **given))
    return Stored(tuple(found))


@pytest.mark.parametrize(
    ("a", "b", "change"),
    [
        ({"bayes": 700, WHOLE: 750}, {"bayes": 800, WHOLE: 790}, 0.05),
        ({"bayes": 760, WHOLE: 750}, {"bayes": 800}, 0.04),  # asked once, and not the strongest
        ({"bayes": 700, WHOLE: 750}, {"bayes": 800}, None),
    ],
)
def test_an_attack_that_one_result_lacks_decides_nothing(a, b, change):
    found = best_counted(stored(**a), stored(**b), 0.05)
    if change is None:
        assert found is None
    else:
        assert found.value == pytest.approx(change)
        assert found.low < change < found.high


def people(n, rng):
    features = rng.standard_normal((n, 2))
    frame = pd.DataFrame(features, columns=["x0", "x1"])
    frame["label"] = np.clip(np.round(5 + 2 * features[:, 0] + rng.standard_normal(n)), 0, 10)
    return frame


def released(frame, epsilon, path, rng):
    from ldpaudit.mechanisms import from_declaration
    from ldpaudit.mechanisms.label_range import LabelRange
    from ldpaudit.release import Declaration

    parameters = {**LabelRange.parse("0:10").declaration(), "epsilon": epsilon}
    mechanism = from_declaration(Declaration("discrete-laplace", parameters), ())
    assert isinstance(mechanism, StepNoise)
    own = dict(mechanism.declaration()) | {"name": "discrete-laplace"}
    noisy = mechanism.sample(frame["label"].to_numpy(dtype=np.int32), rng)
    table = pa.Table.from_pandas(frame.assign(label=noisy), preserve_index=False)
    content = {"version": 1, "label": "label", "mechanism": own}
    pq.write_table(table.replace_schema_metadata({"ldpaudit": json.dumps(content)}), path)
    return str(path)


@pytest.mark.validate
def test_less_noise_is_learnt_from_better_and_attacked_better(tmp_path):
    rng = np.random.default_rng(5)
    frame = people(2000, rng)
    frame[["label"]].to_parquet(tmp_path / "truth.parquet")
    people(500, rng).to_parquet(tmp_path / "test.parquet")
    names = (
        released(frame, 0.2, tmp_path / "fifth.parquet", rng),
        released(frame, 40.0, tmp_path / "forty.parquet", rng),
    )
    request = CompareRequest(
        inputs=names,
        truth=str(tmp_path / "truth.parquet"),
        test=str(tmp_path / "test.parquet"),
        only=("mechanism", "numeric-inference"),
        threads=1,
    )
    comparison = compare(request)
    error = comparison.difference("test_squared_error")
    assert error.paired
    assert error.unit == "squared label units"
    assert error.high < 0
    attack = comparison.difference("numeric.best.mse")
    assert attack.paired
    assert attack.simultaneous
    errors = [result.estimate("numeric.best.mse") for result in comparison.releases]
    assert attack.value == pytest.approx(errors[1].value - errors[0].value)
    near = comparison.difference("numeric.best.within_10")
    assert near.paired
    assert near.low > 0
    assert (attack.unit, near.unit) == ("squared label units", "proportion")
    groups = comparison.difference("numeric.best.bin_accuracy")
    assert not groups.paired
    assert attack.high < 0
    privacy, _, utility = comparison.sentences
    assert "the strongest guess of the numbers has a mean squared error of" in privacy
    assert "; smaller in" in privacy
    assert "; smaller with" in utility
    page = render_comparison(comparison)
    assert "Mean squared error of each guess" in page
    assert "Posterior mean" in page
    assert "squared error" in page[: page.index('id="attacks"')]
    assert comparison.remark.startswith("The intervals hold together at ")


def estimate(identifier, value):
    return Estimate(
        id=identifier, kind="certified", value=value, low=value - 0.01, high=value + 0.01,
        side="two-sided", level=0.95, unit="proportion",
    )  # fmt: skip


BEST, ADVANTAGE = ("attack.best.accuracy", "attack.best.advantage")
TEST = "test_accuracy"


def result(best, mechanism, advantage=None, **parameters):
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


def difference(identifier, value, half, **more):
    fields = {"kind": "certified", "level": 0.99, "b": "B", "simultaneous": True} | more
    return Difference(
        id=identifier, a="A", value=value, low=value - half, high=value + half, **fields
    )


RR, DOUBLE = ("randomized-response", "double-rr")
TITLES = ("Privacy: ", "Advantage over the features alone: ", "Utility: ")


def scored(releases, *scores):
    """Return the releases with scores on test rows."""
    return [with_estimates(r, {TEST: s}) for r, s in zip(releases, scores, strict=True)]


def with_estimates(release, values):
    more = tuple(estimate(key, value) for key, value in values.items())
    return release.model_copy(update={"estimates": (*release.estimates, *more)})


ALIKE = {"kind": "estimated", "simultaneous": False, "level": 0.9}
NINE = [result(0.9, RR), result(0.8, DOUBLE)]
SQUARED, GUESSED = "test_squared_error", "numeric.best.mse"
SAID = {
    "direction, points and interval": (
        scored([result(0.971, RR, 0.061), result(0.638, DOUBLE, 0.096)], 0.9, 0.888),
        [
            *(difference(BEST, -0.333, 0.01), difference(TEST, -0.012, 0.005)),
            difference(ADVANTAGE, 0.035, 0.02),
        ],
        (
            "Privacy: the strongest attack guesses 97.1 % of the labels right in a.parquet; fewer "
            "in b.parquet, 63.8 %: −33.3 percentage points (95 %: −34.3 to −32.3).",
            "Advantage over the features alone: a.parquet adds 6.1 percentage points to guesses; "
            "more with b.parquet, 9.6: +3.5 percentage points (95 %: 1.5 to 5.5).",
            "Utility: a model trained on a.parquet is right for 90.0 % of the test rows; fewer "
            "with b.parquet, 88.8 %: −1.2 percentage points (95 %: −1.7 to −0.7).",
        ),
    ),
    "neither clear": (
        scored([result(0.9, RR), result(0.89, DOUBLE)], 0.9, 0.888),
        [difference(BEST, -0.01, 0.02), difference(TEST, -0.012, 0.0151)],
        (
            "no difference shown in b.parquet, 89.0 %: −1.0 percentage points (95 %: −3.0 to 1.0)",
            "",
            "no difference shown with b.parquet, 88.8 %: −1.2 percentage points",
        ),
    ),
    "an estimate": (
        scored(NINE, 0.9, 0.888),
        [difference(BEST, -0.1, 0.02, **ALIKE)],
        (
            "fewer, by estimate, in b.parquet, 80.0 %: −10.0 percentage points (90 %: −12.0 to "
            "−8.0)",
        ),
    ),
    "nothing measured": (
        [result(None, RR), result(0.5, "unknown")],
        [],
        (
            "(--truth) and the audit label-inference.",
            "Advantage over the features alone: not compared",
            "Utility: not compared, because no test rows were given (--test).",
        ),
    ),
    "not in the same way": (
        [result(0.5, RR), result(None, "unknown")],
        [],
        ("; b.parquet was not measured in the same way.",),
    ),
    "no interval": (
        [result(0.9, RR), result(0.9, RR)],
        [],
        ("; 90.0 % in b.parquet (no interval for the change).",),
    ),
    "larger errors": (
        2 * [with_estimates(result(0.9, "laplace"), {SQUARED: 1.25})],
        [difference(SQUARED, 0.15, 0.05)],
        ("", "", "larger with b.parquet, 1.25: +0.15 (95 %: 0.1 to 0.2)"),
    ),
    "smaller errors": (
        2 * [with_estimates(result(0.9, "laplace"), {SQUARED: 1.25})],
        [difference(SQUARED, -0.2, 0.1)],
        ("", "", "smaller with b.parquet, 1.25: −0.2 (95 %: −0.3 to −0.1)"),
    ),
    "guessed numbers": (
        2 * [with_estimates(result(0.9, "laplace", 0.1), {GUESSED: 12.5})],
        [difference(GUESSED, 1.0, 0.5)],
        (
            "has a mean squared error of 12.5 in a.parquet; larger in b.parquet, 12.5: +1",
            "not for numbers",
        ),
    ),
    # 0.001 to 1.121 points: 0.0 would touch zero, 1.1 would claim too much.
    "no end rounded inward": (
        [result(0.9, RR), result(0.91, DOUBLE)],
        [difference(BEST, 0.00561, 0.0056)],
        ("; more in b.parquet, 91.0 %: +0.6 percentage points (95 %: 0.001 to 1.2)",),
    ),
    "eight releases": (
        8 * [result(0.9, RR)],
        [difference(BEST, -0.1, 0.02, **ALIKE, b=letter) for letter in "BCDEFGH"],
        ("in h.parquet, 90.0 %: −10.0 percentage points (90 %: −12.0 to −8.0)",),
    ),
}
"""Releases, their differences, and what each of the three sentences says."""


@pytest.mark.parametrize("case", SAID)
def test_a_change_is_claimed_where_the_interval_leaves_no_doubt(case):
    releases, differences, expected = SAID[case]
    names = [f"{letter}.parquet" for letter in "abcdefgh"]
    found = sentences([*zip(names, releases, strict=False)], differences, 0.95)
    assert [text[: len(title)] for text, title in zip(found, TITLES, strict=True)] == [*TITLES]
    for text, part in zip(found, expected, strict=False):
        assert part in text
    assert (found[0] + found[2]).count("fewer") == sum("fewer" in part for part in expected) or (
        case == "eight releases"
    )


def test_levels_add_up():
    own = difference(BEST, -0.1, 0.02, **ALIKE)
    assert remark([own], 0.95) == ""
    # Its error probability adds to that of the family.
    both = remark([own, difference(TEST, -0.012, 0.0151)], 0.95)
    assert both.startswith("An interval at less than 95 % combines")
    assert both.endswith("The intervals hold together at 85 %.")


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
def test_names_tell_releases_apart_without_a_whole_path(inputs, expected):
    names = [text.rpartition("/")[2] for text in inputs]
    assert told_apart(names, inputs) == expected


def test_stored_results_of_one_release_are_called_by_their_files():
    found = told_apart(["r.parquet", "r.parquet"], ["x/one.audit.json", "x/two.audit.json"])
    assert found == ["one.audit.json", "two.audit.json"]


def test_the_stored_command_names_no_file_and_no_column():
    words = ["ldpaudit", "compare", "secret/a.parquet", "b.parquet", "--truth", "t.parquet"]
    words += ["--seed", "7", "--drop=name", "--only=mechanism", "--force"]
    assert recorded_command(words, cli_commands.compare) == (
        "ldpaudit compare … … --truth … --seed 7 --drop=… --only=mechanism --force"
    )
