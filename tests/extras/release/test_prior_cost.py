"""A policy's limit holds for all that a release declares: what a private histogram cost, too."""

import json

import numpy as np
import pandas as pd
import pytest

import ldpaudit
from ldpaudit.datasets.declaration import epsilon_of_priors, parse_declaration
from ldpaudit.errors import InputError

ONLY = ("mechanism", "power", "seeds")
PRIOR = 0.25
ONE, TWO = "label", ("label", "other")


@pytest.fixture(scope="module")
def released(tmp_path_factory):
    """Releases of one and of two columns with ε = 1 each, of which the histogram took 0.25."""
    folder, rng = tmp_path_factory.mktemp("prior"), np.random.default_rng(2)
    labels = {name: rng.choice(list("abcd"), 1500, p=[0.5, 0.3, 0.1, 0.1]) for name in TWO}
    table = pd.DataFrame({"id": np.arange(1500), "x": rng.normal(size=1500)} | labels)
    table.to_parquet(folder / "people.parquet")
    for name, columns in (("one", (ONE,)), ("two", TWO)):
        for year in (1, 2):
            place = {"output": folder / f"{name}{year}.parquet"}
            options = {"keep": ("id",)}
            options["drop"] = tuple(set(TWO) - set(columns))
            mechanisms = dict.fromkeys(columns, f"rr-top-k:epsilon=1:private-prior={PRIOR}")
            ldpaudit.privatize(folder / "people.parquet", mechanisms, **place, **options)
    return folder


def policy(folder, limit):
    place = folder / f"{limit}.toml"
    place.write_text(f'schema = 1\nextends = "ldpaudit:default"\n[claim]\n{limit}\n')
    return place


@pytest.mark.parametrize(
    ("name", "years", "key", "total"),
    [
        ("one", 1, "epsilon", 1.0),
        ("two", 1, "epsilon", 2.0),
        ("one", 2, "epsilon", 2.0),
        ("two", 2, "epsilon_total", 4.0),
        ("two", 2, "epsilon_per_release", 2.0),
    ],
)
def test_the_private_histogram_counts_as_declared(released, tmp_path, name, years, key, total):
    files = [released / f"{name}{year}.parquet" for year in range(1, years + 1)]
    truths = [released / "people.parquet"] * years
    known = {"id_column": "id"} if years == 2 else {"drop": ("id",)}

    def audited(limit):
        given = policy(tmp_path, f"{key} = {limit:g}")
        first = (files[0], truths[0]) if years == 1 else (files, truths)
        return ldpaudit.audit(*first, only=ONLY, rng=1, policy=given, **known)

    enough, short = audited(total), audited(total - PRIOR / 2)
    assert enough.verdict != "fail"
    assert short.verdict == "fail"
    assert "with the private histogram" in short.sentence
    if enough.verdict == "pass":
        assert f"together ε = {total:g}." in enough.sentence
    assert (enough.verdict == "pass") == (name == "one" and years == 1)  # Else not all is bounded.


@pytest.mark.parametrize("prior", [-0.2, 1e308])
def test_a_histogram_costs_what_can_be_spent(prior):
    content = {
        "version": 1,
        "label": "label",
        "mechanism": {"name": "rr", "classes": ["a", "b"], "epsilon": 1.0},
        "provenance": {"epsilon": {"prior": prior, "labels": 1.0, "total": 1.0}},
    }
    with pytest.raises(InputError, match="must state epsilon as prior and labels"):
        parse_declaration(json.dumps(content))


def test_without_a_histogram_nothing_is_added():
    assert epsilon_of_priors({}) == 0
    assert epsilon_of_priors({"epsilon": {"prior": 0.5, "labels": 1, "total": 1.5}}) == 0.5
