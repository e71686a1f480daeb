"""A setting meets a limit when its whole interval does, however luckily a simulated audit ends."""

import math
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from ldpaudit.extras.choose.advise.candidates import read_column, stretch
from ldpaudit.extras.choose.advise.request import AdviseRequest
from ldpaudit.extras.choose.advise.result import Choice, Recommendation, found_words
from ldpaudit.extras.choose.advise.work import Search, Tried, _Answer
from ldpaudit.extras.choose.sweep.request import Point
from ldpaudit.judging.policy import parse_policy
from ldpaudit.work.progress import NoProgress

# The feature is the label with probability 0.7. With noise of ε = 0.5 it is the best guess, with
# ε = 3 the released label is, right with probability e³/(1 + e³).
KNOWN, WEAK, STRONG = 0.7, 0.5, 3.0
GAIN = 1 / (1 + math.exp(-STRONG)) - KNOWN
LIMIT = """
schema = 1
[claim]
epsilon = 3.0
[checks.label-inference-{what}]
level = "{level}"
max = {most}
"""


def column_of(seed, folder, rows=2000):
    rng = np.random.default_rng([20, seed])
    ill = rng.integers(0, 2, rows)
    seen = np.where(rng.random(rows) < KNOWN, ill, 1 - ill)
    table = pd.DataFrame({"seen": np.array(["a", "b"])[seen], "ill": np.array(["no", "yes"])[ill]})
    table.to_csv(folder / "people.csv", index=False)
    request = AdviseRequest(str(folder / "people.csv"), label=("ill",), seed=seed)
    return read_column(request, 0, NoProgress())


class Lucky(Search):
    """Every simulated audit passes, by luck."""

    def _audited(self, parts, until):
        return SimpleNamespace(checks=(), labels=())

    def _utility(self, parts):
        return [None]


def tried(column, most, what="accuracy", level="error", epsilon=WEAK):
    policy = parse_policy(LIMIT.format(most=most, what=what, level=level))
    search = Lucky([column], policy, 0.95, math.inf, NoProgress())
    return search.measured((Point("randomized-response", "epsilon", epsilon, 1),), math.inf)


def test_a_setting_above_the_limit_is_met_no_more_often_than_the_level_says(tmp_path):
    # Of 20 two-sided intervals at 95 % more than 4 lie below the truth with probability 1e-4.
    columns = [column_of(seed, tmp_path) for seed in range(20)]
    above = [tried(column, KNOWN - 0.001) for column in columns]
    assert sum(one.passes for one in above) <= 4
    assert all(one.unclear for one in above if "straddles" in one.why_not)
    gain = [tried(column, GAIN - 0.001, "advantage", epsilon=STRONG) for column in columns]
    assert sum(one.passes for one in gain) <= 4
    # And what is clearly below is found: 400 rows bound a share to within 0.15.
    assert all(tried(column, KNOWN + 0.15).passes for column in columns)
    assert all(tried(column, 0.3, "advantage").passes for column in columns)


@pytest.mark.parametrize(
    ("most", "level", "why", "unclear"),
    [
        (0.5, "error", "label-inference-accuracy: at least", False),
        (0.5, "warn", "label-inference-accuracy: at least", False),
        (0.71, "error", "straddles the limit 0.71", True),
        (0.71, "warn", "", False),
    ],
)
def test_the_reason_says_whether_the_limit_is_broken(most, level, why, unclear, tmp_path):
    one = tried(column_of(1, tmp_path), most, level=level)
    assert why in one.why_not
    assert one.unclear == unclear
    assert one.passes == (not why)


def test_features_alone_are_hopeless_only_beyond_their_interval(tmp_path):
    column = column_of(2, tmp_path)
    share = float(column.tested.alone.mean())
    for most, value, sure in ((share - 0.01, True, False), (share - 0.2, True, True)):
        policy = parse_policy(LIMIT.format(most=most, what="accuracy", level="error"))
        assert (stretch(column, policy, column.tested) > 1) == value
        assert (stretch(column, policy, column.tested, 0.95) > 1) == sure


def test_confirmed_releases_come_first_and_the_others_are_called_not_confirmed(tmp_path):
    column, points = (
        column_of(3, tmp_path),
        [Point("randomized-response", "epsilon", e, 1) for e in (1.0, 2.0)],
    )
    search = Lucky([column], None, 0.95, math.inf, NoProgress())
    once, twice = (Tried((p,), ("result",) * n) for p, n in zip(points, (1, 2), strict=True))
    answer = _Answer(column.request, search, (), (), True, False)
    assert answer._ordered([once, twice]) == [twice, once]
    numbers = {"utility": None, "limits": [], "simulated": True, "kind": "certified"}
    for draws, said in ((1, True), (2, False)):
        (leaks, _) = column.leakage(points[0], 0.95)
        made = Recommendation(
            mechanism="rr",
            value=1.0,
            epsilon=1.0,
            passed=draws,
            leakage={leaks.id: leaks},
            command="",
            **numbers,
        )
        assert isinstance(made, Choice)
        assert ("Not confirmed" in found_words(made)) == said
        assert ("not confirmed" in made.sure) == said
