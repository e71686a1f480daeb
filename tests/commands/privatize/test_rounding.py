"""Real-valued labels: rounded, released, declared and audited; and the prior's own budget."""

import json
import math
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from commands.privatize.conftest import audit, declared_json

HIGH = 40
ROWS = 700


@pytest.fixture
def revenue(tmp_path: Path) -> Path:
    """Skewed amounts in [0, 40], most of them no whole number, and a prior of whole ones."""
    rng = np.random.default_rng(5)
    x = rng.standard_normal(ROWS)
    amounts = np.clip(np.exp(1.5 + 0.7 * x + rng.standard_normal(ROWS)), 0, HIGH)
    pd.DataFrame({"x": x, "rev": amounts}).to_csv(tmp_path / "rev.csv", index=False)
    prior = np.bincount(np.rint(amounts).astype(int), minlength=HIGH + 1) + 1.0
    pd.DataFrame({"label": np.arange(HIGH + 1), "probability": prior / prior.sum()}).to_csv(
        tmp_path / "prior.csv", index=False
    )
    return tmp_path / "rev.csv"


def words(path: Path, name: str, *more):
    prior = (
        ("--prior", path.with_name("prior.csv"))
        if name in ("optimal-unbiased", "rr-on-bins")
        else ()
    )
    out = path.with_name(f"{name}.parquet")
    return (
        path,
        "-o",
        out,
        "--label",
        "rev",
        "--mechanism",
        name,
        "--labels",
        f"0:{HIGH}",
        *prior,
        *more,
    )


NAMES = [
    "optimal-unbiased",
    "rr-on-bins",
    "debiased-rr",
    "discrete-laplace",
    "discrete-staircase",
    "exponential",
]


# A true claim is refuted with probability below 5 %, here with fixed draws.
@pytest.mark.parametrize(
    "name",
    [pytest.param(one, marks=pytest.mark.validate if one in NAMES[3:] else ()) for one in NAMES],
)
def test_amounts_are_rounded_released_and_audited(name, revenue, command, monkeypatch):
    secret, draws = revenue.with_name("secret.parquet"), ("--experimental", "--seed", "3")
    options = ("--epsilon", "2", "--round", "unbiased", "--secret", secret, *draws)
    status, said = command(*words(revenue, name, *options))
    assert status == 0, said
    assert "rounded at random without bias" in said
    release = revenue.with_name(f"{name}.parquet")
    mechanism = declared_json(release)["mechanism"]
    assert mechanism["round"] == "unbiased"
    truth = pd.read_parquet(secret)["rev"].to_numpy()
    assert (truth % 1 != 0).mean() > 0.9
    assert audit(monkeypatch, release, "--truth", secret) in (0, 3)
    if name in ("optimal-unbiased", "debiased-rr", "discrete-laplace"):
        released = pd.read_parquet(release)["rev"].to_numpy()
        error = released - truth
        # Unbiased: the mean error is within 5 standard errors of 0 (6e-7 by chance).
        assert abs(error.mean()) < 5 * error.std() / math.sqrt(len(error))


def test_a_claim_below_what_was_released_is_found(revenue, command, monkeypatch, tmp_path):
    secret, draws = revenue.with_name("secret.parquet"), ("--experimental", "--seed", "3")
    options = ("--epsilon", "4", "--round", "unbiased", "--secret", secret, *draws)
    assert command(*words(revenue, "rr-on-bins", *options))[0] == 0
    path = revenue.with_name("rr-on-bins.parquet")
    table = pq.read_table(path)
    stated = json.loads(table.schema.metadata[b"ldpaudit"])
    stated["mechanism"]["epsilon"] = 1.0
    wrong = table.replace_schema_metadata({b"ldpaudit": json.dumps(stated).encode()})
    pq.write_table(wrong, tmp_path / "wrong.parquet")
    assert audit(monkeypatch, tmp_path / "wrong.parquet", "--truth", secret) == 1


def test_nearest_and_the_priors_own_points(revenue, command):
    points = [0, 1, 2, 5, 10, 20, HIGH]
    pd.DataFrame({"label": points, "probability": [1 / 7] * 7}).to_csv(
        revenue.with_name("prior.csv"), index=False
    )
    options = ("--epsilon", "1", "--round", "nearest")
    assert command(*words(revenue, "rr-on-bins", *options))[0] == 0
    mechanism = declared_json(revenue.with_name("rr-on-bins.parquet"))["mechanism"]
    assert mechanism["classes"] == points
    assert mechanism["round"] == "nearest"


def test_the_private_priors_budget_by_the_theorem(revenue, command):
    out = revenue.with_name("auto.parquet")
    start = (revenue, "-o", out, "--label", "rev", "--mechanism", "optimal-unbiased")
    options = ("--labels", f"0:{HIGH}", "--round", "unbiased", "--private-prior", "auto")
    status, said = command(*start, *options, "--epsilon", "1")
    assert status == 0, said
    first = math.sqrt((HIGH + 1) / ROWS)
    assert f"private prior's ε = {first:.6g} the whole release comes to ε = 1 nats" in said
    parts = declared_json(out)["provenance"]["epsilon"]
    assert parts["prior"] == pytest.approx(first)
    assert parts["total"] == pytest.approx(1.0)
    status, said = command(*start, *options, "--epsilon", "0.1", "--overwrite")
    assert status == 2
    assert "leaves nothing of 0.1" in said
