"""A release whose own declaration says that it breaks its promise is not to be published."""

import hashlib
import warnings

import numpy as np
import pandas as pd
import pytest

import ldpaudit
from ldpaudit.datasets.declaration import faults_of_making

CHECK = "made-as-assumed"
N = 2000
ONLY = ("mechanism", "power")


@pytest.fixture(scope="module")
def people(tmp_path_factory):
    """A private table, and a public one of the same columns."""
    folder, rng = tmp_path_factory.mktemp("made"), np.random.default_rng(1)
    for name in ("people", "public"):
        sick = rng.integers(0, 2, N)
        table = pd.DataFrame({"x": rng.normal(size=N) + sick, "label": sick, "other": sick[::-1]})
        table.to_parquet(folder / f"{name}.parquet")
    return folder


def checks_of(result):
    return {check.id: check for check in result.checks}


def released(people, options, folder, mechanism="rr"):
    """Release, and audit against the true labels."""
    out, secret = folder / "r.parquet", folder / "t.parquet"
    given = {"label": "label", "epsilon": 1.0, "drop": ("other",)} | options
    ldpaudit.privatize(people / "people.parquet", mechanism, output=out, secret=secret, **given)
    return ldpaudit.audit(out, secret, only=ONLY, rng=1)


def test_an_experiment_is_not_published(people, tmp_path):
    seeded = released(people, {"experimental": True, "seed": 3}, tmp_path)
    check = checks_of(seeded)[CHECK]
    assert (seeded.verdict, seeded.decision) == ("pass", "not yet")
    assert (check.level, check.verdict) == ("warn", "fail")
    assert "anybody who knows the seed can undo" in check.reason
    assert "not as an experiment" in seeded.next_steps[0]


def test_noise_of_the_operating_system_is_no_experiment(people, tmp_path):
    drawn = released(people, {}, tmp_path)
    assert CHECK not in checks_of(drawn)
    assert drawn.decision == "publish"


@pytest.mark.parametrize("trained_on", ["private", "public"])
def test_a_generator_is_trained_on_public_rows(people, tmp_path, trained_on):
    options = {"generator": "mixture"}
    if trained_on == "public":
        public = pd.read_parquet(people / "public.parquet").drop(columns="other")
        public.to_parquet(tmp_path / "public.parquet")
        options["generator_data"] = str(tmp_path / "public.parquet")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        generated = released(people, options, tmp_path, "double-rr")
    check = checks_of(generated).get(CHECK)
    assert (check is None) == (trained_on == "public")
    if check is not None:
        assert generated.decision == "not yet"
        assert "--generator-data" in generated.next_steps[0]


def test_each_of_several_columns_was_made_in_that_way(people, tmp_path):
    columns = {"label": "rr:epsilon=1", "other": "rr:epsilon=1"}
    out, secret = tmp_path / "r.parquet", tmp_path / "t.parquet"
    options = {"experimental": True, "seed": 3, "output": out, "secret": secret}
    ldpaudit.privatize(people / "people.parquet", columns, **options)
    assert ldpaudit.audit(out, secret, only=ONLY, rng=1).decision == "not yet"


def test_somebody_may_answer_for_it(people, tmp_path):
    released(people, {"experimental": True, "seed": 3}, tmp_path)
    out, given = tmp_path / "r.parquet", tmp_path / "policy.toml"
    waiver = f"""schema = 1
    extends = "ldpaudit:default"
    [[waivers]]
    check = "{CHECK}"
    reason = "published as an example of the format"
    approved_by = "a reviewer"
    expires = 2099-01-01
    release_sha256 = "{hashlib.sha256(out.read_bytes()).hexdigest()}"
    """
    given.write_text(waiver)
    result = ldpaudit.audit(out, tmp_path / "t.parquet", only=(*ONLY, "seeds"), rng=1, policy=given)
    assert checks_of(result)[CHECK].waived
    assert result.decision == "publish"


@pytest.mark.parametrize(
    ("provenance", "faults"),
    [
        ({}, ()),
        ({"randomness": "operating system", "generator": {"trained_on": "public"}}, ()),
        ({"randomness": "experimental, seed 1"}, ("experiment",)),
        ({"generator": {"name": "mixture"}}, ("generator",)),
        (
            {"randomness": "experimental generator", "generator": {"trained_on": "private"}},
            ("experiment", "generator"),
        ),
    ],
)
def test_faults_that_are_declared(provenance, faults):
    assert faults_of_making(provenance) == faults
