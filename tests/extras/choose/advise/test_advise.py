"""Advice on a small table, from the command line: it runs, it keeps what it says, it says no."""

import json
import math
import re
import shlex
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from processes import called
from worlds import ASYMMETRIC

from ldpaudit.estimators.intervals.bounded_mean import mean_lower, mean_upper
from ldpaudit.extras.choose.advise import candidates
from ldpaudit.extras.choose.advise.candidates import (
    GRID,
    Column,
    Line,
    Rows,
    information_share,
    largest_epsilon,
    limits_nothing,
    share_error,
    shared_out,
)
from ldpaudit.extras.choose.advise.page import Advice
from ldpaudit.extras.choose.advise.work import (
    MOST_SIMULATED,
    Search,
    Tried,
    is_useless,
    no_use,
    stops,
)
from ldpaudit.extras.choose.sweep.request import Point
from ldpaudit.judging.policy import parse_policy
from ldpaudit.result import Check, Estimate


def table(rows=2000):
    rng = np.random.default_rng(1)
    codes = rng.integers(0, 2, rows)
    x = rng.standard_normal((rows, 2)) + 0.9 * codes[:, None]
    return pd.DataFrame(
        {"x 1": x[:, 0], "y": x[:, 1], "ill": np.array(["no", "yes"])[codes], "weeks": codes * 7}
    )


CLAIM = """
schema = 1
[claim]
epsilon = {}
[audit]
max_undetected_excess = {}
[checks.claimed-epsilon]
level = "error"
"""
LEAKING = """
schema = 1
extends = "ldpaudit:default"
[claim]
epsilon = 1.0
[checks.features-reveal-label]
level = "error"
max = 0.9
"""
POLICIES = {
    "claim": CLAIM.format(0.5, 2.0),
    "both": CLAIM.format(1.5, 2.0),
    "weak": CLAIM.format(0.1, 0.3),
    "leaking": LEAKING,
}
CLAIMED = 'mechanism = "laplace"\nepsilon = 1.0\n'
QUICK = ("--minutes", "0.000001")


def leaking(rows):
    """Return a table whose columns give labels and people away."""
    made, rng = table(rows).drop(columns="weeks"), np.random.default_rng(4)
    ill = (made["ill"] == "yes").to_numpy()
    made["test result"] = 5 * ill + rng.standard_normal(len(made))
    made["code"] = np.where(ill, "p", "q")
    made["number"] = rng.permutation(len(made)) + 10_000
    return made


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("advice")
    table(600).drop(columns="weeks").to_csv(folder / "people.csv", index=False)
    table(600).to_csv(folder / "both.csv", index=False)
    leaking(1200).to_csv(folder / "leaking.csv", index=False)
    for name, text in POLICIES.items():
        (folder / f"{name}.toml").write_text(text)
    return folder


@pytest.fixture
def place(folder, monkeypatch):
    monkeypatch.chdir(folder)
    monkeypatch.setattr(candidates, "MOST", 1)
    return folder


def asked(*words):
    status, _ = called("advise", *words, "--json", "asked.json")
    return status, json.loads(Path("asked.json").read_text())


@pytest.fixture(scope="module")
def advised(folder):
    words = ("people.csv", "--label", "ill", "--policy", "claim.toml", "--json", "a.json")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setattr(candidates, "MOST", 1)
        assert called("advise", *words, "--html", "a.html")[0] == 0
    return json.loads((folder / "a.json").read_text())


def test_the_best_is_simulated_and_keeps_the_claim(advised):
    first = Advice.model_validate(advised).recommendations[0]
    assert (first.mechanism, first.epsilon) == ("randomized-response", 0.5)
    assert first.simulated
    assert first.kind == "certified"
    assert first.utility.low > 0.5
    # All intervals of the table hold at once with 95 %: three of each release, four of features.
    level = 1 - 0.05 / (3 * MOST_SIMULATED + 4)
    assert first.utility.level == pytest.approx(level)
    gain = first.leakage["advice.advantage"]
    assert gain.level == pytest.approx(level)
    assert gain.low <= gain.value <= gain.high
    assert advised["run"]["simulated"] >= 2
    assert any(one["passes"] and not one["why_not"] for one in advised["candidates"])
    assert '"yes"' not in json.dumps(advised)


def test_the_command_runs_and_the_page_shows_it(advised, place):
    words = shlex.split(advised["recommendations"][0]["command"])
    assert (words[:3], called(*words[1:])[0]) == (["ldpaudit", "privatize", "people.csv"], 0)
    assert (place / "people.released.parquet").is_file()
    page = (place / "a.html").read_text()
    assert "Leakage against utility" in page
    assert "ldpaudit privatize people.csv" in page


def test_when_the_time_ends_what_is_known_is_told(place):
    words = ("people.csv", "--label", "ill", "--policy", "claim.toml", "--missing", "drop")
    status, found = asked(*words, *QUICK)
    assert status == 3
    assert found["recommendations"][0]["command"].endswith("--missing drop")
    assert found["run"]["simulated"] == 0
    first = found["recommendations"][0]
    assert not first["simulated"]
    assert first["utility"] is None
    assert first["kind"] == "estimated"
    assert found["candidates"][0]["why_not"] == "it was not simulated"
    assert "--minutes" in found["sentence"]
    assert "first try randomized-response ε = 0.5" in found["sentence"]


REFUSED = {
    "range": (("people.csv", "--label", "y", "--for", "regression"), "--labels LO:HI:STEP"),
    "column": (("people.csv", "--label", "il"), "il"),
    "minutes": (("people.csv", "--label", "ill", "--minutes", "0"), "--minutes"),
    "rows": (("people.csv", "--label", "ill", "--truth", "labels.csv"), "row by row"),
    "mechanism": (("both.csv", "--label", "ill:rr:epsilon=1"), "advise chooses the mechanism"),
    "twice": (("both.csv", "--label", "ill", "--label", "ill"), "twice"),
    "labels": (
        ("people.csv", "--label", "ill", "--test", "others.csv"),
        "1 of 20 rows hold another value or none",
    ),
    "words": (("people.csv", "--label", "ill", "--test", "words.csv"), "Column 2 of the test rows"),
    "own rows": (
        ("people.csv", "--label", "ill", "--test", "own.csv"),
        "The test rows must be of other people",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_advised_on_is_one_line(case, place):
    (place / "labels.csv").write_text("ill\nno\n")
    (place / "others.csv").write_text("x 1,y,ill\n1,2,maybe\n" + "1.5,2,no\n" * 19)
    (place / "words.csv").write_text("x 1,y,ill\n" + "1.5,many,no\n1.5,few,yes\n" * 20)
    pd.read_csv("people.csv").iloc[::3].to_csv("own.csv", index=False)
    words, expected = REFUSED[case]
    status, printed = called("advise", *words)
    assert (status, expected in printed) == (2, True), printed


def test_rows_of_the_table_among_the_test_rows_are_said(place):
    others = table(900).drop(columns="weeks").iloc[600:]
    pd.concat([others, pd.read_csv("people.csv").iloc[:60]]).to_csv("mixed.csv", index=False)
    words = ("people.csv", "--label", "ill", "--policy", "claim.toml", "--test", "mixed.csv")
    _, found = asked(*words, *QUICK)
    assert any("of the test rows have the features of a row" in note for note in found["notes"])


@pytest.mark.scanned
def test_a_kept_column_that_tells_is_not_made_up_for_by_leaving_out_others(place):
    words = ("leaking.csv", "--label", "ill", "--policy", "leaking.toml")
    status, found = asked(*words, "--keep", "test result")
    assert status == 1
    assert sum(one["columns"] for one in found["dropped"]) == 2
    assert "more time" not in found["sentence"]
    assert "features alone" in found["sentence"]
    assert "with --public FILE" in found["sentence"]


@pytest.mark.scanned
def test_double_rr_is_simulated_where_a_public_table_is_given(place):
    leaking(900).drop(columns=["code", "number"]).to_csv("public.csv", index=False)
    words = ("leaking.csv", "--label", "ill", "--policy", "leaking.toml", "--keep", "test result")
    more = ("--public", "public.csv")
    assert asked(*words, *more, "--minutes", "0.000001")[0] == 3
    status, found = asked(*words, *more)
    assert status == 0, found["sentence"]
    first = found["recommendations"][0]
    assert first["mechanism"] == "double-rr"
    assert {"advice.accuracy", "advice.advantage"} <= first["leakage"].keys()
    assert "--generator-data public.csv" in first["command"]
    assert called(*shlex.split(first["command"])[1:])[0] == 0


@pytest.mark.scanned
def test_columns_that_give_labels_or_people_away_are_left_out(place, monkeypatch):
    monkeypatch.setattr(Search, "least_noise", lambda *_: False)
    words = ("leaking.csv", "--label", "ill", "--policy", "leaking.toml")
    status, found = asked(*words)
    assert status == 3
    command = shlex.split(found["recommendations"][0]["command"])
    left_out = {command[i + 1] for i, word in enumerate(command) if word == "--drop"}
    assert left_out == {"code", "number", "test result"}
    told = found["dropped"][-1]
    assert told["before"]["advice.features_auc"]["low"] > 0.85
    assert told["before"]["advice.features_auc"]["value"] > 0.9
    assert told["after"]["advice.features_auc"]["value"] < 0.9
    assert "test result" not in json.dumps(found["dropped"])
    assert "Leave out 'code', 'number', 'test result' (--drop)" in found["sentence"]


@pytest.mark.scanned
def test_nothing_in_reach_is_an_answer(place):
    keep = ("--keep", "test result", "--keep", "code", "--keep", "number")
    words = ("leaking.csv", "--label", "ill", "--policy", "leaking.toml", *keep)
    status, printed = called("advise", *words)
    assert (status, "Nothing in reach passes" in printed) == (1, True), printed


def test_a_search_that_ran_out_of_time_decides_nothing(place):
    words = ("leaking.csv", "--label", "ill", "--policy", "leaking.toml", "--minutes", "0.001")
    status, printed = called("advise", *words)
    assert (status, "--minutes" in printed) == (3, True), printed


def test_a_release_and_true_labels_in_either_file_are_enough(place):
    words = ("people.csv", "-o", "made.csv", "--label", "ill", "--mechanism", "rr")
    secret = ("--epsilon", "3", "--overwrite", "--secret", "truth.csv")
    assert called("privatize", *words, *secret)[0] == 0
    options = ("--policy", "claim.toml", "--seed", "1", *QUICK)
    whole = asked("people.csv", "--label", "ill", *options)[1]["recommendations"][0]
    table = asked("made.csv", "--truth", "people.csv", *options)[1]["recommendations"][0]
    apart = asked("made.csv", "--truth", "truth.csv", *options)[1]["recommendations"][0]
    assert "privatize people.csv" in table["command"]
    assert "privatize TABLE" in apart["command"]
    assert table["leakage"] == apart["leakage"] == whole["leakage"]


def test_each_column_gets_its_mechanism_and_the_command_runs(place):
    words = ("both.csv", "--label", "ill", "--label", "weeks:labels=0:7:7", "--policy", "both.toml")
    status, advice = asked(*words)
    assert status == 0
    found = advice["recommendations"][0]
    assert found["simulated"]
    assert len(found["labels"]) == 2
    assert found["epsilon"] == pytest.approx(sum(one["epsilon"] for one in found["labels"]))
    assert found["epsilon"] <= 1.5 + 1e-9
    command = shlex.split(found["command"])
    assert sum(word == "--label" for word in command) == 2
    assert called(*command[1:])[0] == 0


def test_a_column_that_several_leave_out_counts_once(place):
    people = table(600).assign(born=[f"1980-01-{1 + n % 28:02d}" for n in range(600)])
    people.assign(person=range(600)).to_csv("named.csv", index=False)
    words = ("named.csv", "--label", "ill", "--label", "weeks", "--for", "counts")
    found = asked(*words, *QUICK)[1]
    command = shlex.split(found["recommendations"][0]["command"])
    gone = sum(word == "--drop" for word in command)
    assert gone > 0
    assert sum(one["columns"] for one in found["dropped"]) == gone
    (left,) = re.findall(r"Leave out (.*?) \(--drop\)", found["sentence"])
    assert left.count("'") == 2 * gone


def test_what_an_audit_of_all_columns_could_miss_is_held_against_the_policy(place):
    words = ("both.csv", "--label", "ill", "--label", "weeks", "--for", "counts")
    status, found = asked(*words, "--policy", "weak.toml")
    assert (status, found["recommendations"]) == (3, [])
    assert "could have gone unnoticed" in found["sentence"]
    assert "more rows, or fewer private columns" in found["sentence"]


@pytest.mark.parametrize(
    ("surest", "made", "said"),
    [
        (0.1, True, "It takes a policy that allows more."),
        (0.0, True, "It takes more rows"),
        (0.1, False, "It takes more rows"),
    ],
)
def test_rows_are_asked_for_only_where_they_help(surest, made, said, place, monkeypatch):
    """What cannot be made with the most noise says nothing of the releases that were audited."""

    def measured(self, parts, until, draws=1):
        unclear = parts[0].value > surest
        self.tried[parts] = Tried(parts, why_not="broken", unclear=unclear, made=unclear or made)
        return self.tried[parts]

    monkeypatch.setattr(Search, "measured", measured)
    words = ("people.csv", "--label", "ill", "--policy", "claim.toml")
    status, found = asked(*words)
    assert status == 3
    assert said in found["sentence"]


def test_what_was_not_simulated_is_named_when_the_time_ends(place):
    words = ("both.csv", "--label", "ill", "--label", "weeks", "--for", "counts", *QUICK)
    status, found = asked(*words)
    assert status == 3
    (note,) = [text for text in found["notes"] if text.startswith("Not simulated: ")]
    assert note.count("ε = ") == 2
    assert [one["epsilon"] for one in found["recommendations"][0]["labels"]]


def test_the_shares_of_labels_have_half_a_row_added_to_each():
    truth = np.repeat(np.arange(3, dtype=np.int32), [6, 3, 0])
    release = SimpleNamespace(truth=truth, classes=("a", "b", "c"))
    column = Column(None, None, None)
    vars(column)["release"] = release
    assert column.prior == pytest.approx(np.array([6.5, 3.5, 0.5]) / 10.5)


def test_one_answer_for_everybody_is_right_as_often_as_its_share():
    truth = np.repeat(np.arange(2, dtype=np.int32), [15, 5])
    release = SimpleNamespace(truth=truth, classes=("a", "b"), numeric=None)
    column = Column(None, None, None)
    vars(column)["release"] = release
    assert column.constant == 0.75


def test_guesses_are_averaged_over_the_noise_exactly():
    rng = np.random.default_rng(0)
    channel, posterior = rng.dirichlet(np.ones(6), 4), rng.dirichlet(np.ones(4), 500)
    rows = Rows(posterior, np.array([rng.choice(4, p=p) for p in posterior], dtype=np.int32))
    expected, drawn = rows.right(channel), np.zeros(500)
    for _ in range(400):
        released = (rng.random((500, 1)) > channel[rows.truth].cumsum(axis=1)).sum(axis=1)
        drawn += (rows.posterior * channel.T[released]).argmax(axis=1) == rows.truth
    # The mean of 200,000 independent draws: six standard errors.
    assert abs(drawn.mean() / 400 - expected.mean()) < 6 * 0.5 / math.sqrt(200_000)
    assert np.array_equal(rows.right(np.ones((4, 1))), rows.alone)
    assert rows.right(np.eye(4)).all()


def test_what_a_release_reveals_has_both_ends_of_its_interval():
    values = np.random.default_rng(4).uniform(0.2, 0.9, 2_000)
    found = candidates._mean("advantage", "Advantage", values, 0.0, 0.9)
    assert (found.low, found.high) == (
        mean_lower(values, 0.05, 0, 1),
        mean_upper(values, 0.05, 0, 1),
    )
    assert found.value == pytest.approx(values.mean())
    assert found.low < found.value < found.high
    assert (found.level, found.n) == (0.9, 2_000)


def test_the_information_of_a_noisy_label_is_the_textbooks():
    posterior = np.random.default_rng(2).dirichlet(np.ones(3), 50)
    assert information_share(posterior, np.eye(3)) == pytest.approx(1)
    assert information_share(posterior, np.full((3, 2), 0.5)) == pytest.approx(0)
    eta, up, down = np.array([0.1, 0.5, 0.8]), 0.1, 0.3
    noisy = eta * (1 - down) + (1 - eta) * up
    wanted = (1 - up - down) ** 2 * eta * (1 - eta) / (noisy * (1 - noisy))
    channel = np.array([[1 - up, up], [down, 1 - down]])
    assert information_share(np.stack([1 - eta, eta], axis=1), channel) == pytest.approx(
        wanted.mean()
    )


def test_the_error_of_shares_is_that_of_draws():
    rng, channel, n = np.random.default_rng(3), ASYMMETRIC.label_channel.matrix, 2000
    prior = np.array([0.5, 0.3, 0.2])
    counts = (prior * n).astype(int)
    released = sum(rng.multinomial(c, row, 3000) for c, row in zip(counts, channel, strict=True))
    errors = (released / n @ np.linalg.inv(channel) - prior) ** 2
    # The root mean square of 9,000 errors: within 5 %, far beyond six standard errors.
    assert math.sqrt(errors.mean()) == pytest.approx(share_error(prior, channel, n), rel=0.05)
    assert share_error(np.array([0.5, 0.5]), np.full((2, 2), 0.5), 100) == math.inf


@pytest.mark.parametrize(
    ("claim", "most"),
    [
        ("", math.inf),
        ("[claim]\nepsilon = 0.29\n", 0.29),
        ("[claim]\nepsilon = 0.7654329\n", 0.765432),  # A command says no more.
        ('[claim]\nmechanism = "randomized-response"\nlambda = 0.5\n', 1.38629),
    ],
)
def test_a_claim_is_a_largest_epsilon(claim, most):
    policy = parse_policy(f'schema = 1\nextends = "ldpaudit:default"\n{claim}')
    assert largest_epsilon(policy, 3) == most


@pytest.mark.parametrize(
    ("claim", "found"),
    [
        ('mechanism = "rr-top-k"\nepsilon = 0.7654329\n', [("rr-top-k", 0.765432)]),
        ("lambda = 0.1\n", [("randomized-response", 2.94443)]),
    ],
)
def test_a_claimed_mechanism_is_the_only_one_and_a_lambda_the_only_noise(claim, found, place):
    Path("named.toml").write_text(f'schema = 1\nextends = "ldpaudit:default"\n[claim]\n{claim}')
    words = ("people.csv", "--label", "ill", "--for", "counts", "--policy", "named.toml", *QUICK)
    made = asked(*words)[1]["recommendations"]
    assert [(one["mechanism"], one["epsilon"]) for one in made] == found
    assert f"--epsilon {found[0][1]}" in made[0]["command"]
    Path("named.toml").write_text(Path("named.toml").read_text().replace(claim, CLAIMED))
    status, printed = called("advise", *words)
    assert (status, "claims the mechanism 'laplace'" in printed) == (2, True), printed


@pytest.mark.parametrize(
    ("costs", "total", "shares"),
    [
        ([(8, 4, 2, 1), (8, 4, 2, 1)], 2.0, [1.0, 1.0]),  # Alike columns share alike.
        ([(8, 1, 0.9, 0.8), (8, 6, 4, 2)], 2.5, [1.0, 1.5]),  # ε goes where it is worth most.
        ([(3, 2), (3, 2, 1)], 9.0, [1.0, 1.5]),
        ([(2, 1), (2, 1)], 0.9, None),
        ([(5, 5, 0)], 1.5, [1.5]),  # A later gain is seen behind a flat start.
    ],
)
def test_epsilon_is_shared_out(costs, total, shares):
    columns = [[(0.5 * place, cost) for place, cost in enumerate(one, 1)] for one in costs]
    assert shared_out(columns, total) == shares


class Simulated(Search):
    """Releases that pass up to an ε, the second draw of each up to another."""

    passing = (1.2, 1.1)
    affordable = 99

    def measured(self, parts, until, draws=1):
        if self.drawn >= self.affordable:
            return None
        self.drawn += 1
        limit = self.passing[draws - 1]
        why = "" if parts[0].value <= limit else "too much"
        self.tried[parts] = Tried(parts, ("result",) * draws, why_not=why)
        return self.tried[parts]


@pytest.mark.parametrize("start", [0, 10, 24, 45])
@pytest.mark.parametrize("passing", [(1.2, 1.1), (8.0, 8.0), (0.05, 0.05), (0.0, 0.0)])
def test_the_least_noise_is_the_one_that_passes_twice(start, passing):
    line = Line(tuple((Point("rr", "epsilon", epsilon, 1),) for epsilon in GRID), start)
    search = Simulated([], None, 0.95, math.inf, None)
    search.passing = passing
    assert search.least_noise(line, 1.0)
    twice = [one for one in search.tried.values() if one.passes and len(one.results) == 2]
    assert [one.parts[0].value for one in twice] == ([passing[1]] if passing[1] else [])
    assert search.drawn <= 16
    search = Simulated([], None, 0.95, math.inf, None)
    search.affordable = 1
    assert not search.least_noise(line, 1.0)


@pytest.mark.parametrize(
    ("name", "verdict", "level", "held_up"),
    [
        ("label-inference-advantage", "fail", "warn", True),
        ("label-inference-advantage", "inconclusive", "warn", False),
        ("label-inference-advantage", "inconclusive", "error", True),
        ("claimed-epsilon", "inconclusive", "error", True),
        ("claimed-epsilon", "fail", "error", False),  # The noise is as declared: it is chance.
        ("shared-noise", "fail", "error", False),
        ("guessable-seed", "inconclusive", "error", False),  # Its audit is left out.
        ("identifiers", "fail", "error", False),
    ],
)
def test_what_speaks_against_a_release(name, verdict, level, held_up):
    check = Check(id=name, question="?", limit=1, observed=2, verdict=verdict, level=level)
    assert stops(check) == held_up


def test_the_grid_ascends():
    assert list(GRID) == sorted(set(GRID))


def test_what_can_be_learnt_is_held_against_the_commonest_label():
    made = partial(Estimate.estimated, "test_accuracy", "accuracy", unit="proportion", method="")
    assert is_useless(made(value=0.722), 0.74)
    assert not is_useless(made(value=0.8), 0.74)
    one = made(value=0.722)
    assert no_use(one, 0.74, "").startswith("Always guessing the commonest label is right in 74")
    of_one = no_use(one, 0.74, "'ill'")
    assert "commonest label of 'ill' is right" in of_one
    assert "a model that learns it from the first" in of_one


def test_what_can_be_learnt_of_numbers_is_held_against_their_mean():
    made = partial(Estimate.estimated, "test_squared_error", "error", unit="1", method="")
    assert is_useless(made(value=2.3), 2.2)
    assert not is_useless(made(value=2.1), 2.2)
    assert not is_useless(made(value=2.1).model_copy(update={"id": "share_error"}), 2.2)
    said = no_use(made(value=2.3), 2.2, "'pay'")
    assert said.startswith("Always guessing the mean of 'pay' has a squared error of 2.2")


def test_where_nothing_is_of_use_the_sentence_says_so_first(place):
    """Features that say nothing about the label: no ε makes a release worth its leakage."""
    rng = np.random.default_rng(8)
    noise = pd.DataFrame({"x": rng.standard_normal(600), "y": rng.standard_normal(600)})
    noise.assign(ill=np.where(rng.random(600) < 0.7, "no", "yes")).to_csv("noise.csv", index=False)
    status, found = asked("noise.csv", "--label", "ill", "--policy", "claim.toml")
    assert status == 0
    assert found["sentence"].startswith(
        "No release that meets the policy is shown to be of use: always guessing the commonest "
        "label is right in "
    )
    assert "With randomized-response ε = 0.5, the best of them, a model" in found["sentence"]
    assert not any("commonest" in note for note in found["notes"])
    noise.assign(pay=rng.integers(0, 8, 600)).to_csv("noise.csv", index=False)
    words = ("--label", "pay:labels=0:7:1", "--for", "regression", "--policy", "claim.toml")
    status, found = asked("noise.csv", *words)
    assert status == 0
    assert "of use: always guessing the mean has a squared error of " in found["sentence"]


@pytest.mark.parametrize(
    ("text", "nothing"),
    [
        ("", True),
        ('[claim]\nmechanism = "rr"', True),
        ("[claim]\nepsilon = 3.0", False),
        ("[claim]\nlambda = 0.3", False),
        ('[checks.label-inference-advantage]\nmax = "claim"', True),
        ("[checks.label-inference-advantage]\nmax = 0.1", False),
        ("[checks.label-inference-accuracy]\nmax = 0.9", False),
        ("[checks.renyi-epsilon]\nmax = 1.0", False),
        ('[checks.instance-loss-exceedance]\nat = "claim + 5"\nmax = 0.05', True),
        ("[checks.instance-loss-exceedance]\nat = 6.0\nmax = 0.05", False),
    ],
)
def test_a_policy_that_limits_nothing(text, nothing):
    stated = f'schema = 1\nextends = "ldpaudit:default"\n{text}\n'
    assert limits_nothing(parse_policy(stated, "p.toml")) == nothing


def test_a_policy_that_limits_nothing_is_said_to(place):
    for policy, said in (("ldpaudit:strict", True), ("claim.toml", False)):
        _, found = asked("people.csv", "--label", "ill", "--policy", policy, *QUICK)
        assert any("limits neither ε nor" in note for note in found["notes"]) == said


def test_waiting_is_over_at_the_deadline():
    column = SimpleNamespace(audited=None)
    late = Search([column], None, 0.95, -math.inf, None)
    assert late.measured((Point("rr", "epsilon", 1.0, 1),), -math.inf) is None
