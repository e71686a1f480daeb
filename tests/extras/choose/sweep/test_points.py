"""A point: what is simulated is the mechanism, and its audit and its learner know the truth."""

import json
from datetime import date

import numpy as np
import pandas as pd
import pytest
from extras.choose.sweep.conftest import asked, bench, frame, numbers

from ldpaudit.errors import InputError
from ldpaudit.extras.choose.sweep.points import point_seed, read_tables, simulate
from ldpaudit.extras.choose.sweep.request import SweepRequest, parse_grid
from ldpaudit.extras.choose.sweep.result import Mean, least_noise, setting_of
from ldpaudit.extras.choose.sweep.run import SweepFolder, is_finished, manifest
from ldpaudit.extras.learn.utility.scores import ACCURACY, SQUARED_ERROR
from ldpaudit.judging.policy import parse_policy
from ldpaudit.options import option_name

REST = ("laplace", "debiased-rr", "rr-on-bins", "optimal-unbiased", "discrete-staircase")
ATTACKS = ("label-inference",)


def estimates(content):
    return {e["id"]: float(e["value"]) for e in content["result"]["estimates"]}


def test_rows_are_split_and_the_draws_are_the_mechanism(data):
    request = asked(data, "randomized-response", grid=("lambda", "0.2,0.5"))
    tables = read_tables(request)
    assert (tables.training.num_rows, tables.test.num_rows) == (480, 120)
    both = pd.concat([tables.training.to_pandas(), tables.test.to_pandas()])
    pd.testing.assert_frame_equal(
        both.sort_values("x", ignore_index=True), frame().sort_values("x", ignore_index=True)
    )
    true = tables.training.to_pandas()
    for point in request.points():
        made = simulate(tables, point).table.to_pandas()
        pd.testing.assert_frame_equal(made[["x", "y", "town"]], true[["x", "y", "town"]])
        # 480 rows: ±5 standard deviations, a false alarm in 2 million.
        assert abs((made["label"] != true["label"]).mean() - point.value / 2) < 0.1


@pytest.mark.parametrize("how", ["drop", "class"])
def test_rows_without_a_label_are_left_out_or_a_class(how, tmp_path):
    table = frame()
    table.loc[::10, "label"] = None
    table.to_parquet(tmp_path / "some.parquet", index=False)
    request = asked(tmp_path / "some.parquet", "randomized-response", missing=how)
    tables = read_tables(request)
    labels = [*tables.training["label"].to_pylist(), *tables.test["label"].to_pylist()]
    left = table["label"].dropna() if how == "drop" else table["label"].fillna("missing")
    assert sorted(labels) == sorted(left)


def test_a_point_is_the_same_whatever_else_is_swept(data):
    alone = asked(data, "randomized-response", grid=("lambda", "0.3"))
    among = asked(data, "randomized-response", grid=("lambda", "0.1:0.5:5"), repeats=2)
    point = alone.points()[0]
    one, other = (simulate(read_tables(r), point).table for r in (alone, among))
    assert one.equals(other)
    assert len({point_seed(7, p) for p in among.points()}) == 10
    again = next(p for p in among.points() if p.value == point.value and p.repeat == 2)
    assert not simulate(read_tables(among), again).table.equals(one)


def test_classification(data, tmp_path):
    request = asked(
        data,
        "randomized-response",
        "double-rr",
        "dummy-features-rr",
        grid=("lambda", "0.2,0.7"),
        generator="mixture",
        only=ATTACKS,
    )
    at = bench(request, tmp_path)
    assert any("private" in text for text in at.run("generator")["warnings"])
    clean = at.run("reference")
    assert clean["id"] == ACCURACY
    assert clean["low"] < clean["value"] < clean["high"]
    found = {(p.mechanism, p.value): at.run(p) for p in request.points()}
    for (name, value), content in found.items():
        assert content["lambda"] == value
        assert content["epsilon"] == pytest.approx(np.log(1 + 2 * (1 - value) / value))
        assert content["result"]["mechanism"]["name"] == name
        corrected = {"randomized-response": "forward", "double-rr": "unbiased"}
        assert content["correction"] == corrected.get(name, content["correction"])
        assert content["test"]["n"] == 120
    leaks = {key: estimates(content)["attack.best.accuracy"] for key, content in found.items()}
    # The label alone gives 1 − λ/2; features make it more, synthetic ones less.
    assert leaks["randomized-response", 0.2] > 0.85
    assert leaks["randomized-response", 0.2] > leaks["randomized-response", 0.7]
    assert leaks["randomized-response", 0.7] > leaks["double-rr", 0.7]
    # Corrected learners lose little: 120 test rows, ±5 standard deviations are 0.2.
    for name in ("randomized-response", "double-rr"):
        assert abs(found[name, 0.2]["test"]["value"] - clean["value"]) < 0.2
    # Without features a learner can only name the more frequent label.
    assert abs(found["dummy-features-rr", 0.7]["test"]["value"] - 0.5) < 0.15


@pytest.mark.parametrize(
    "mechanism",
    ["discrete-laplace", *(pytest.param(n, marks=pytest.mark.validate) for n in REST)],
)
def test_numbers(mechanism, tmp_path):
    path = tmp_path / "weeks.parquet"
    numbers(600).to_parquet(path)
    own = {"label": "weeks", "labels": "0:20", "only": ("numeric-inference",)}
    request = asked(path, mechanism, grid=("epsilon", "0.5,8"), **own)
    at = bench(request, tmp_path)
    clean = at.run("reference")
    assert clean["id"] == SQUARED_ERROR
    found = [at.run(point) for point in request.points()]
    leaks = []
    for content in found:
        assert content["test"]["value"] >= 0.9 * clean["value"]
        assert content["test"]["low"] <= content["test"]["value"] <= content["test"]["high"]
        leak = setting_of(mechanism, "epsilon", 8.0, [content], [], 0.95).leakage
        leaks.append(leak.value)
    # ε = 8 and then ε = 0.5.
    assert leaks[0] > leaks[1]
    assert found[0]["test"]["value"] < found[1]["test"]["value"]


def test_a_claim_limits_the_declared_epsilon(data, tmp_path):
    claim = parse_policy('schema = 1\nextends = "ldpaudit:default"\n[claim]\nepsilon = 1.0\n')
    asked_for = {"grid": ("lambda", "0.1,0.85"), "only": ("mechanism", "power")}
    request = asked(data, "randomized-response", **asked_for)
    at = bench(request, tmp_path, claim)
    contents = [at.run(point) for point in request.points()]
    assert contents[0]["verdict"] == "fail"
    assert "declared ε" in contents[0]["sentence"]
    # Its audit is kept: what was measured of the release against the ε that it declares.
    audited = contents[0]["result"]
    (check,) = (one for one in audited["checks"] if one["id"] == "claimed-epsilon")
    assert check["limit"] == pytest.approx(contents[0]["epsilon"])
    assert check["observed"] < check["limit"]
    assert contents[1]["verdict"] != "fail", contents[1]["sentence"]


GRID = parse_grid("lambda", "0.1:0.5:5")


def draw(verdict, accuracy=0.8, sentence="", decision="publish"):
    estimate = {"id": "attack.best.accuracy", "kind": "certified", "unit": "proportion"}
    estimate |= {"value": accuracy, "low": accuracy - 0.1, "high": accuracy + 0.1, "level": 0.95}
    test = estimate | {"id": "test_accuracy"}
    return {
        "verdict": verdict,
        "decision": decision if verdict == "pass" else "not yet",
        "sentence": sentence or verdict,
        "epsilon": 1.0,
        "lambda": 0.3,
        "correction": "forward",
        "test": test,
        "result": {"estimates": [estimate]},
    }


def setting(value, *verdicts, failed=(), decision="publish"):
    contents = [draw(v, decision=decision) for v in verdicts]
    return setting_of("randomized-response", "lambda", value, contents, failed, 0.95)


def test_a_setting_is_as_good_as_its_worst_draw():
    assert setting(0.1, "pass", "pass").verdict == "pass"
    assert setting(0.1, "pass", "inconclusive").verdict == "inconclusive"
    assert setting(0.1, "pass", "inconclusive", "fail").verdict == "fail"
    assert setting(0.1, "pass", failed=("It ended.",)).verdict == "failed"
    assert setting(0.1, "pass", failed=("It ended.",)).sentence == "It ended."


def test_averages_hold_at_the_union_bound():
    made = Mean.of([draw("pass", a)["test"] for a in (0.7, 0.8)])
    assert made.value == pytest.approx(0.75)
    assert (made.low, made.high) == (pytest.approx(0.65), pytest.approx(0.85))
    assert made.level == pytest.approx(0.9)
    many = Mean.of([draw("pass")["test"]] * 11)
    assert (many.low, many.high, many.level) == (None, None, None)
    infinite = Mean.of([draw("pass")["test"] | {"value": "inf", "low": None, "high": None}])
    assert infinite.value == float("inf")


def test_the_least_noise_and_its_neighbours():
    verdicts = ("fail", "inconclusive", "pass", "fail", "pass")
    settings = [setting(v, *[w] * 3) for v, w in zip(GRID.values, verdicts, strict=True)]
    found = least_noise("randomized-response", settings, 0.95)
    assert found.value == settings[2].value
    assert (found.less_noise.value, found.more_noise.value) == (0.2, 0.4)
    # Not monotone, and said so.
    assert found.more_noise_that_does_not_pass == [0.4]
    assert "more noise does not always pass: λ = 0.4" in found.sentence
    # Clopper–Pearson of 3 of 3 at 99 % = 95 % over five settings: (0.01/2)^(1/3).
    assert found.pass_share.low == pytest.approx(0.005 ** (1 / 3))


def test_no_setting_passes_and_the_first_does():
    none = least_noise("rr", [setting(0.1, "fail", "fail"), setting(0.2, "pass", "fail")], 0.95)
    assert none.value is None
    assert "λ = 0.2" in none.sentence
    assert "1 of 2" in none.sentence
    first = least_noise("rr", [setting(0.1, "pass"), setting(0.2, "pass")], 0.95)
    assert "less may do" in first.sentence
    # A setting that could not be measured has not passed.
    lost = least_noise("rr", [setting(0.1, failed=("gone",)), setting(0.2, "pass")], 0.95)
    assert (lost.value, lost.less_noise.verdict) == (0.2, "failed")


def test_a_setting_that_may_not_be_published_is_no_answer():
    held, clear = setting(0.1, "pass", decision="not yet"), setting(0.2, "pass")
    found = least_noise("rr", [held, clear, held], 0.95)
    assert (found.value, found.more_noise_that_does_not_pass) == (0.2, [0.1])
    assert ": pass, 1 of 1 draws passed (publish: not yet)" in found.sentence
    none = least_noise("rr", [held], 0.95)
    assert none.value is None
    assert "no setting of the grid passed and may be published in every draw" in none.sentence


def stopped(value, verdict, **checks):
    """Return a setting with one draw, held up by checks: each (level, verdict)."""
    content = draw(verdict)
    content["result"]["checks"] = [
        {"id": name, "question": "?", "limit": None, "observed": None, "level": level,
         "verdict": found, "reason": f"{name} at {value}"}
        for name, (level, found) in checks.items()
    ]  # fmt: skip
    return setting_of("rr", "lambda", value, [content], (), 0.95)


def test_where_nothing_passes_the_check_that_stops_most_is_named():
    bad, open_, warned = ("error", "fail"), ("error", "inconclusive"), ("warn", "fail")
    settings = [
        stopped(0.1, "fail", power=bad, identifiers=bad, loss=warned),
        stopped(0.2, "inconclusive", power=open_, loss=warned),
        stopped(0.3, "fail", identifiers=bad, power=open_),
    ]
    # What is less grave than the gravest stops nothing.
    assert [list(one.stopped_by) for one in settings[1:]] == [["power"], ["identifiers"]]
    found = least_noise("rr", [*settings, stopped(0.4, "fail", identifiers=bad)], 0.95)
    assert found.sentence == (
        "rr: no setting of the grid passed in every draw. The check identifiers stopped 3 of 4 "
        "settings; even at λ = 0.4 (ε = 1): identifiers at 0.4."
    )
    one = least_noise("rr", [settings[1], setting(0.3, "fail")], 0.95)
    assert one.sentence.endswith(
        "The check power stopped 1 of 2 settings; at λ = 0.2 (ε = 1): power at 0.2."
    )


def test_the_share_that_passes_is_covered_although_the_setting_was_chosen():
    """At the chosen setting the lower bound lies above the truth in at most 5 % of sweeps."""
    rng, wrong, answered = np.random.default_rng(9), 0, 0
    truth = dict(zip(GRID.values, (0.55, 0.65, 0.75, 0.85, 0.95), strict=True))
    for _ in range(600):
        settings = [
            setting(v, *np.where(rng.random(6) < p, "pass", "fail")) for v, p in truth.items()
        ]
        found = least_noise("rr", settings, 0.95)
        if found.value is None:
            continue
        answered += 1
        wrong += found.pass_share.low > truth[found.value]
        # Power: all of 6 draws passed, so the bound is (0.005)^(1/6) = 0.41 and not 0.
        assert found.pass_share.low > 0.4
    assert answered > 400
    # More than 48 of 600 at 5 %: probability below 1e-3 of a false alarm, with a fixed seed.
    assert wrong <= 48


def started(request, folder, policy=None):
    with folder.alone():
        folder.open(manifest(request, 7, policy), resume=request.resume)


def test_a_folder_of_something_else_is_refused(data, tmp_path):
    out = tmp_path / "out"
    folder, point = SweepFolder(out), asked(data, "randomized-response").points()[0]
    first = asked(data, "randomized-response", out=out)
    again = asked(data, "randomized-response", out=out, resume=True)
    started(again, folder)  # Nothing is there yet, so it starts.
    folder.keep(point, {"verdict": "pass"})
    with folder.alone(), pytest.raises(InputError, match="Another sweep"):
        started(again, folder)
    with pytest.raises(InputError, match="is not empty"):
        started(first, folder)
    started(again, folder)
    assert folder.kept(point) == {"verdict": "pass"}
    with pytest.raises(InputError, match="another policy"):
        started(again, folder, "f" * 64)
    others = {"repeats": 2, "missing": "drop", "keep": ("x",), "smoothness": 2.0}
    others |= {"seeds_tried": 9, "made_on": date(2026, 1, 31), "attacks": ("mine.py:Mine",)}
    for name, value in others.items():
        other = asked(data, "randomized-response", out=out, resume=True, **{name: value})
        with pytest.raises(InputError, match=f"another {option_name(other, name)};"):
            started(other, folder)
    asked_for = json.loads((out / "manifest.json").read_text())
    old = asked_for["digests"] | {"version": "0"}
    (out / "manifest.json").write_text(json.dumps(asked_for | {"digests": old}))
    with pytest.raises(InputError, match="another version of ldpaudit"):
        started(again, folder)
    (out / "manifest.json").write_text(json.dumps(asked_for))
    content = data.read_bytes()
    data.write_bytes(content[:-1] + b"x")
    with pytest.raises(InputError, match="another data"):
        started(again, folder)
    data.write_bytes(content)
    (out / "manifest.json").unlink()
    with pytest.raises(InputError, match="no sweep"):
        started(again, folder)


def test_a_file_of_another_shape_is_no_point():
    for content in (None, {}, {"a": 1}, {"verdict": "pass", "result": {}}):
        assert not is_finished(content)


def test_half_a_file_is_no_point(data, tmp_path):
    folder, point = SweepFolder(tmp_path / "out"), asked(data, "randomized-response").points()[0]
    request = asked(data, "randomized-response", out=tmp_path / "out", resume=True)
    started(request, folder)
    (tmp_path / "out" / "points" / f"{point.key}.json").write_text('{"verdict": "pa')
    draft = tmp_path / "out" / "points" / f".{point.key}.json.new.tmp"
    draft.write_text("{")
    started(request, folder)
    assert folder.kept(point) is None
    folder.keep(point, {"verdict": "pass"})
    assert not draft.exists()


def test_values_and_ranges_run_from_the_least_noise_to_the_most():
    for parameter, text in (("epsilon", "0,5"), ("lambda", "0,5"), ("epsilon", "0,5:1,5:3")):
        with pytest.raises(InputError, match=r"write a decimal point: 0\.5\.$"):
            parse_grid(parameter, text)
    with pytest.raises(InputError, match=r"above 0 and finite\.$"):
        parse_grid("epsilon", "0,1,2")
    assert parse_grid("lambda", "0.3,0.1,0.1").values == (0.1, 0.3)
    assert parse_grid("lambda", "0.05:0.4:8").values == (0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4)
    assert parse_grid("epsilon", "1:3:3").values == (3.0, 2.0, 1.0)
    assert parse_grid("epsilon", "2:2:1").values == (2.0,)


@pytest.mark.parametrize(
    ("parameter", "text", "word"),
    [
        ("lambda", "", "1 to 1000"),
        ("lambda", " , ", "1 to 1000"),
        ("lambda", "0.1:0.4:0", "1 to 1000"),
        ("lambda", "0.1:0.4", "LO:HI:N"),
        ("lambda", "0.4:0.1:3", "begin with its lowest"),
        ("lambda", "a,b", "LO:HI:N"),
        ("lambda", "0.1:0.4:1001", "different values"),
        ("lambda", "0:1:3", "λ = 0"),
        ("lambda", "1.5", "at most 1"),
        ("lambda", "nan", "at most 1"),
        ("epsilon", "0,1", "above 0"),
        ("epsilon", "inf", "above 0"),
        ("epsilon", "1:inf:3", "LO:HI:N"),
    ],
)
def test_bad_grids(parameter, text, word):
    with pytest.raises(InputError, match=word):
        parse_grid(parameter, text)


def test_a_point_has_the_same_name_in_every_sweep():
    names, grid = ("double-rr", "randomized-response"), parse_grid("lambda", "0.05:0.4:8")
    among = SweepRequest(data="d", mechanisms=names, grid=grid, repeats=2).points()
    alone = SweepRequest(data="d", mechanisms=names[:1], grid=parse_grid("lambda", "0.1")).points()
    assert alone[0].key == "double-rr-lambda-0.1-1"
    assert alone[0] in among
    assert len({point.key for point in among}) == len(among) == 32
    # An unfinished sweep has looked at the whole grid before it repeats anything.
    assert [point.repeat for point in among] == [1] * 16 + [2] * 16
