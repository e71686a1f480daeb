"""Without the part that audits trees: one line for what is more than a column of a release."""

import numpy as np
import pandas as pd
import pytest

import ldpaudit
from ldpaudit.errors import InputError
from ldpaudit.mechanisms.joint import joint_family

ROWS = 60
COLUMNS = ("income:rr:epsilon=1", "illness:rr:epsilon=1")


@pytest.fixture(autouse=True)
def alone(monkeypatch):
    monkeypatch.setattr("ldpaudit.pipeline.trees.ours", lambda kind: {})


def table():
    rng = np.random.default_rng(1)
    return pd.DataFrame(
        {
            "age": rng.integers(18, 90, ROWS),
            "region": rng.permutation(["north", "south"] * (ROWS // 2)),
            "income": rng.permutation(["low", "high"] * (ROWS // 2)),
            "illness": rng.permutation(["no", "yes"] * (ROWS // 2)),
        }
    )


def line(*args, **options):
    with pytest.raises(InputError, match="audits one private column of one release") as told:
        ldpaudit.audit(*args, **options)
    assert "\n" not in str(told.value)
    return str(told.value)


def test_columns_are_counted_and_one_is_to_be_named():
    released = table()
    assert "Got 2 private columns: name one of them (label=)." in line(released, label=COLUMNS)
    one = ldpaudit.audit(released, label=COLUMNS[:1], only=["mechanism", "power"])
    assert one.release.label == "income"
    assert not one.labels


def test_releases_are_counted():
    assert "Got 3 releases." in line([table(), table(), table()], label=COLUMNS[:1])


def test_strata_are_named(tmp_path):
    channels = tmp_path / "c.csv"
    channels.write_text(
        "region,label,low,high\nnorth,low,.8,.2\nnorth,high,.2,.8\nsouth,low,.7,.3\nsouth,high,.3,.7\n"
    )
    stratified = f"income:channel={channels}:by=region"
    assert "a channel for each stratum" in line(table(), label=[stratified])


def test_a_mechanism_on_several_columns_gets_a_line(monkeypatch):
    monkeypatch.setattr("ldpaudit.mechanisms.joint.ours", lambda kind: {})
    with pytest.raises(InputError, match="This installation lacks the mechanism 'joint-rr'"):
        joint_family("joint-rr")
