"""A point: what is simulated is the mechanism, and its audit and its learner know the truth."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from commands.sweep.conftest import asked, bench, frame, numbers

from ldpaudit.commands.sweep.points import point_seed, read_tables, simulate
from ldpaudit.commands.sweep.result import setting_of
from ldpaudit.commands.utility.scores import ACCURACY, SQUARED_ERROR
from ldpaudit.judging.policy import parse_policy

REST = ("laplace", "debiased-rr", "rr-on-bins", "optimal-unbiased", "discrete-staircase")
ATTACKS = ("label-inference",)


def estimates(content: dict[str, Any]) -> dict[str, float]:
    return {e["id"]: float(e["value"]) for e in content["result"]["estimates"]}


def test_rows_are_split_and_the_draws_are_the_mechanism(data: Path) -> None:
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
def test_rows_without_a_label_are_left_out_or_a_class(how: str, tmp_path: Path) -> None:
    table = frame()
    table.loc[::10, "label"] = None
    table.to_parquet(tmp_path / "some.parquet", index=False)
    request = asked(tmp_path / "some.parquet", "randomized-response", missing=how)
    tables = read_tables(request)
    labels = [*tables.training["label"].to_pylist(), *tables.test["label"].to_pylist()]
    left = table["label"].dropna() if how == "drop" else table["label"].fillna("missing")
    assert sorted(labels) == sorted(left)


def test_a_point_is_the_same_whatever_else_is_swept(data: Path) -> None:
    alone = asked(data, "randomized-response", grid=("lambda", "0.3"))
    among = asked(data, "randomized-response", grid=("lambda", "0.1:0.5:5"), repeats=2)
    point = alone.points()[0]
    one, other = (simulate(read_tables(r), point).table for r in (alone, among))
    assert one.equals(other)
    assert len({point_seed(7, p) for p in among.points()}) == 10
    again = next(p for p in among.points() if p.value == point.value and p.repeat == 2)
    assert not simulate(read_tables(among), again).table.equals(one)


def test_classification(data: Path, tmp_path: Path) -> None:
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
def test_numbers(mechanism: str, tmp_path: Path) -> None:
    path = tmp_path / "weeks.parquet"
    numbers(600).to_parquet(path)
    own: dict[str, Any] = {"label": "weeks", "labels": "0:20", "only": ("numeric-inference",)}
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


def test_a_claim_limits_the_declared_epsilon(data: Path, tmp_path: Path) -> None:
    claim = parse_policy('schema = 1\nextends = "ldpaudit:default"\n[claim]\nepsilon = 1.0\n')
    asked_for: dict[str, Any] = {"grid": ("lambda", "0.1,0.85"), "only": ("mechanism", "power")}
    request = asked(data, "randomized-response", **asked_for)
    at = bench(request, tmp_path, claim)
    contents = [at.run(point) for point in request.points()]
    assert contents[0]["verdict"] == "fail"
    assert "declared ε" in contents[0]["sentence"]
    assert contents[1]["verdict"] != "fail", contents[1]["sentence"]
