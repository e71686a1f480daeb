"""The public profile: apart from the decision nothing in it depends on a true label."""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest
from small_tables import small_table

import ldpaudit
from ldpaudit.extras.compare.comparison import Comparison
from ldpaudit.reports import FORMATS, Surroundings, render
from ldpaudit.reports.public_forms import render_public, summary_lines
from ldpaudit.result import AuditResult
from ldpaudit.result.public import one_digit_up, public, public_comparison

PUBLIC = Surroundings(profile="public")
CHEAP = ("mechanism", "power", "assumptions")
ALL = (*CHEAP, "label-inference", "renyi", "instance-loss", "seeds")
Audit = Callable[[Any], AuditResult | Comparison]
Case = tuple[Audit, Any, Any]
"""An audit, true labels, and the same with one of them changed."""


def changed(rng, truth, labels="abc"):
    """Return true labels of which one is another, sometimes of a class that occurs nowhere else."""
    row = rng.integers(len(truth))
    others = [label for label in f"{labels}z" if label != truth[row]]
    return truth.where(truth.index != row, rng.choice(others))


def again(rng, table, truth):
    """Return the table with labels of the same people that are released once more."""
    drawn = rng.random(len(truth)) < 0.4
    return table.assign(label=np.where(drawn, rng.choice(list("abc"), len(truth)), truth))


def one_release(rng, only):
    released, truth = small_table(rng, rows=int(rng.integers(40, 90)), labels="abc")
    if rng.random() < 0.1:
        released["label"] = "out-" + released["label"]  # Labels of their own, nothing claimed.
        return (
            (lambda t: ldpaudit.audit(released, t, only=only, seed=1)),
            truth,
            changed(rng, truth),
        )
    claim = [{"epsilon": 1.0}, {"noise": 0.4}, {"epsilon": 3.0}][rng.integers(3)]
    named = rng.random() < 0.3
    mechanism = {"name": "rr", "classes": list("abcz")} if named else "rr"
    claim = {k: v for k, v in claim.items() if not named}
    if named:
        mechanism |= {"epsilon": 1.0}
    options = {"policy": "ldpaudit:strict"} if rng.random() < 0.3 else {}
    if rng.random() < 0.3:
        released["home"] = np.arange(len(released)) // 2
        options["group"] = "home"
    if rng.random() < 0.3:
        released["id"] = rng.permutation(len(released))

    def audit(truth):
        given = truth
        if "id" in released:
            given = pd.DataFrame({"id": released["id"], "label": truth})
            given = given.sample(frac=1, random_state=1)
        joined = {"id_column": "id"} if "id" in released else {}
        return ldpaudit.audit(
            *(released, given, mechanism), only=only, seed=1, **claim, **options, **joined
        )

    return audit, truth, changed(rng, truth)


def several_columns(rng, only):
    (first, one), (second, two) = (small_table(rng) for _ in range(2))
    released = pd.DataFrame({"x": first["x"], "vote": first["label"], "illness": second["label"]})
    names = ("vote:rr:epsilon=1", "illness:rr:lambda=0.5")

    def audit(truth):
        return ldpaudit.audit(released, truth, label=names, only=(*only, "person"), seed=1)

    return audit, *(pd.DataFrame({"vote": t, "illness": two}) for t in (one, changed(rng, one)))


def two_releases(rng, only):
    first, one = small_table(rng, rows=60)
    releases = [table.assign(id=np.arange(60)) for table in (first, again(rng, first, one))]

    def audit(truth):
        known = pd.DataFrame({"id": np.arange(len(truth)), "label": truth})
        options = {"id_column": "id", "epsilon": 1.0, "only": (*only, "person"), "seed": 1}
        return ldpaudit.audit(releases, known, "rr", **options)

    return audit, one, changed(rng, one, "abc")


def columns_in_two_releases(rng, only):
    (first, one), (second, two) = (small_table(rng, rows=60) for _ in range(2))
    people = {"id": np.arange(60), "x": first["x"]}
    years = [pd.DataFrame(people | {"vote": first["label"], "illness": second["label"]})] * 2
    years[1] = years[1].assign(vote=again(rng, first, one)["label"])
    names = ("vote:rr:epsilon=1", "illness:rr:lambda=0.5")

    def audit(truth):
        known = pd.DataFrame({"id": np.arange(60), "vote": truth, "illness": two})
        options = {"id_column": "id", "label": names, "only": (*only, "person"), "seed": 1}
        return ldpaudit.audit(years, known, **options)

    return audit, one, changed(rng, one)


def compared(rng, only):
    first, one = small_table(rng)
    second = again(rng, first, one)

    def audit(truth):
        options = {"epsilon": 1.0, "only": (*only, "label-inference"), "seed": 1}
        return Comparison.model_construct(
            releases=tuple(ldpaudit.audit(r, truth, "rr", **options) for r in (first, second))
        )

    return audit, one, changed(rng, one)


def forms(result):
    """Yield everything that the public profile writes or prints."""
    if isinstance(result, AuditResult):
        yield from (render(result, name, PUBLIC) for name in FORMATS)
        yield str([*summary_lines(public(result))])
    else:
        shared = public_comparison(result.releases)
        yield from (render_public(shared, name) for name in ("html", "json"))
        yield str([*summary_lines(shared)])


def decisions(result):
    every = result.releases if isinstance(result, Comparison) else [result]
    return [one.decision for one in every]


@cache
def pairs(make, tables, only):
    """Return the audits of tables, each with one of one true label changed."""
    cases = [make(np.random.default_rng([7, seed]), only) for seed in range(tables)]
    return [(audit(truth), audit(other)) for audit, truth, other in cases]


def looked_at(make, tables, only):
    """Return in how many tables the decision stayed, and in how many of these a form changed."""
    stayed = differ = 0
    for one, two in pairs(make, tables, only):
        if decisions(one) == decisions(two):
            stayed += 1
            differ += list(forms(one)) != list(forms(two))
    return stayed, differ


@pytest.mark.parametrize(
    ("make", "tables", "only"),
    [
        (one_release, 4, CHEAP),
        (several_columns, 2, CHEAP),
        (two_releases, 1, CHEAP),
        (columns_in_two_releases, 1, CHEAP),
        (compared, 3, CHEAP),
        pytest.param(one_release, 200, CHEAP, marks=pytest.mark.validate),
        pytest.param(one_release, 20, ALL, marks=pytest.mark.validate),
        pytest.param(several_columns, 20, CHEAP, marks=pytest.mark.validate),
        pytest.param(two_releases, 20, CHEAP, marks=pytest.mark.validate),
        pytest.param(columns_in_two_releases, 10, CHEAP, marks=pytest.mark.validate),
        pytest.param(compared, 10, CHEAP, marks=pytest.mark.validate),
    ],
)
def test_one_true_label_changes_the_decision_or_nothing(make, tables, only):
    stayed, differ = looked_at(make, tables, only)
    assert differ == 0
    assert stayed >= 0.5 * tables


def test_a_table_whose_rows_all_seem_to_belong_together_is_audited():
    audit, truth, _ = one_release(np.random.default_rng([7, 15]), CHEAP)
    assert isinstance(audit(truth), AuditResult)


def leaking(result):
    """Return fields that depend on true labels, each in the place of one that does not."""
    power = result.estimate("power.min_detectable_excess")
    return {
        "sentence": lambda: {"sentence": result.sentence},
        "checks": lambda: {"left_out": tuple(f"{c.id}-{c.observed}" for c in result.checks)},
        "power": lambda: {"policy": str(power and power.value)},
        "classes": lambda: {"policy": str(result.release.classes)},
        "claim": lambda: {"policy": str(result.mechanism.parameters)},
    }


@pytest.mark.parametrize("field", ["sentence", "checks", "power", "classes", "claim"])
def test_the_test_finds_a_field_that_depends_on_true_labels(field, monkeypatch):
    monkeypatch.setattr(
        "ldpaudit.reports.public",
        lambda result: public(result).model_copy(update=leaking(result)[field]()),
    )
    assert looked_at(one_release, 4, CHEAP)[1] > 0


POLICY = """schema = 1
[checks.label-inference-advantage]
max = 0.99
level = "error"
"""


@pytest.mark.parametrize("options", [{"policy": True}, {"skip": ("mechanism",)}])
def test_no_excess_is_known_where_no_bound_is_held_against_the_claim(options, tmp_path):
    """A release that keeps every label: with the claim unchecked nothing else may find that."""
    rng = np.random.default_rng(1)
    truth = pd.Series(rng.choice(list("abc"), 600))
    released = pd.DataFrame({"label": truth, "x": rng.normal(size=600)})
    (tmp_path / "policy.toml").write_text(POLICY)
    if "policy" in options:
        options = {"policy": tmp_path / "policy.toml", "only": ("power", "label-inference")}
    result = ldpaudit.audit(released, truth, "rr", epsilon=1.0, seed=1, **options)
    assert public(result).released.excess is None
    assert "would notice" not in render(result, "markdown", PUBLIC)
    assert result.release.truth


def test_rows_that_share_noise_do_not_add_to_the_power(tmp_path):
    """Each person's row is there four times, with one answer, and the policy does not mind."""
    rng = np.random.default_rng(5)
    released, truth = small_table(rng, rows=700)
    released["y"] = rng.normal(size=700)
    rows = rng.permutation(np.repeat(np.arange(700), 4))
    released, truth = (one.iloc[rows].reset_index(drop=True) for one in (released, truth))
    (tmp_path / "policy.toml").write_text(
        "schema = 1\n[audit]\nmax_undetected_excess = 5\n[checks.claimed-epsilon]\n"
    )
    options = {"policy": tmp_path / "policy.toml", "only": CHEAP, "seed": 1, "before": ["*"]}
    result = ldpaudit.audit(released, truth, "rr", noise=0.4, **options)
    power, shown = result.estimate("power.min_detectable_excess"), public(result).released.excess
    assert result.decision == "publish"
    assert shown >= power.value


@pytest.mark.parametrize(
    ("value", "shown"), [(0.628, 0.7), (0.7, 0.7), (1.06, 2.0), (0.0301, 0.04), (0.0, 0.0)]
)
def test_power_is_rounded_up_to_one_digit(value, shown):
    assert (one_digit_up(value), one_digit_up(float("inf"))) == (shown, float("inf"))
