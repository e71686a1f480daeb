"""A private prior comes from the key, too: its design is made again."""

import json
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from extras.release.privatize.conftest import frame, ran
from processes import called

from ldpaudit.extras.receipt import replay as replaying
from ldpaudit.extras.receipt.replay import replay
from ldpaudit.extras.receipt.secrets import read_secret
from ldpaudit.extras.release.privatize import columns

WEEKS = ("--label", "weeks", "--labels", "0:10:1")
SPENT = ("--epsilon", "1.5", "--private-prior", "0.5")
KINDS = {
    "rr-top-k": (*WEEKS, "--mechanism", "rr-top-k", *SPENT),
    "classes": ("--label", "town", "--mechanism", "rr-top-k", *SPENT),
    "rr-on-bins": (*WEEKS, "--mechanism", "rr-on-bins", *SPENT, "--loss", "absolute"),
    "optimal-unbiased": (*WEEKS, "--mechanism", "optimal-unbiased", *SPENT),
    "rounded": ("--label", "x", "--labels", "-9:9:1", "--mechanism", "rr-on-bins", "--epsilon", "2",
                "--private-prior", "auto", "--round", "unbiased"),
    "two": ("--label", "town:rr-top-k:epsilon=1.5:private-prior=0.5", "--label",
            "weeks:rr-on-bins:epsilon=1:labels=0:10:1:private-prior=auto"),
}  # fmt: skip


@pytest.fixture
def data(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = frame(600)
    rows["weeks"] = np.minimum(np.random.default_rng(0).geometric(0.3, 600), 10)
    rows.to_parquet("data.parquet")
    return tmp_path


def made(kind):
    status, printed = ran(
        "data.parquet", "-o", "r.parquet", "--secret", "t.parquet", "--overwrite", *KINDS[kind]
    )
    assert status == 0, printed
    return "r.parquet", "t.parquet"


@pytest.mark.parametrize("kind", KINDS)
def test_the_design_for_a_private_prior_is_made_again(kind, data, monkeypatch):
    asked = []
    original = replaying.check_priors

    def watched(*given):
        asked.append(original(*given))
        return asked[-1]

    monkeypatch.setattr(replaying, "check_priors", watched)
    found = replay(*made(kind))
    assert (found.proven, found.not_compared, asked) == (True, "", [""]), found
    secret = read_secret(pq.read_schema("t.parquet").metadata[b"ldpaudit"])
    assert len(secret.priors) == (2 if kind == "two" else 1)


@pytest.mark.parametrize("kind", ["rr-top-k", "rr-on-bins", "optimal-unbiased"])
def test_a_design_for_the_true_histogram_is_not_proven(kind, data, monkeypatch):
    """Who spends nothing on the prior, and says that it was spent, gets no proof."""
    peaked = np.array([0, 0.7, 0.3, *[0.0] * 8]) + 1e-4
    monkeypatch.setattr(columns, "private_prior", lambda *_: peaked / peaked.sum())
    found = replay(*made(kind))
    assert (found.status, found.columns) == ("impossible", ())
    assert "is not the declared one" in found.reason
    status, printed = called("verify", "r.parquet", "--truth", "t.parquet", "--quiet")
    assert (status, printed.startswith("Not proven: ")) == (3, True), printed


def edited(change):
    """Change what the file of true labels says of the priors."""
    table = pq.read_table("t.parquet")
    content = json.loads(table.schema.metadata[b"ldpaudit"])
    change(content["secret"])
    pq.write_table(table.replace_schema_metadata({"ldpaudit": json.dumps(content)}), "t.parquet")


def test_what_a_prior_cost_is_what_is_declared(data):
    made("rr-top-k")
    edited(lambda kept: kept["priors"]["weeks"].update(epsilon=1.0))
    found = replay("r.parquet", "t.parquet")
    assert (found.status, "another ε" in found.reason) == ("impossible", True)


def test_a_prior_of_which_nothing_is_kept_is_named(data):
    made("rr-top-k")
    edited(lambda kept: kept.pop("priors"))
    status, printed = called("verify", "r.parquet", "--truth", "t.parquet", "--quiet")
    assert (status, "; not compared: the private prior" in printed) == (0, True), printed


@pytest.mark.parametrize("value", [None, [], {"weeks": 1}, {"weeks": {"epsilon": "x"}}])
def test_a_prior_that_cannot_be_read_is_one_line(value, data):
    made("rr-top-k")
    edited(lambda kept: kept.update(priors=value))
    status, printed = called("verify", "r.parquet", "--truth", "t.parquet", "--quiet")
    assert (status, len(printed.strip().splitlines())) == (3, 1), printed
    assert Path("r.parquet").exists()
