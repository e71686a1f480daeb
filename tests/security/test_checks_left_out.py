"""A check that a policy asks for is open where its audit was left out; it does not disappear."""

import pytest
from releases import written

import ldpaudit

ASKED = "[checks.claimed-epsilon]\n[checks.guessable-seed]\n[checks.shared-noise]\n"
COMPOSED = "[checks.composition]\n"


@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    return written(tmp_path_factory.mktemp("pair"), rows=600)


def judged(tmp_path, files, checks, *only):
    policy = tmp_path / "policy.toml"
    policy.write_text(f"schema = 1\n[audit]\nmax_undetected_excess = 'any'\n{checks}")
    result = ldpaudit.audit(*files, policy=policy, only=only)
    return {"": result.verdict} | {check.id: check.reason for check in result.checks}


def test_what_is_asked_for_and_left_out_is_open(tmp_path, pair):
    said = judged(tmp_path, pair, ASKED + COMPOSED, "mechanism", "power")
    assert said[""] == "inconclusive"
    assert "the audit seeds was left out (--only)" in said["guessable-seed"]
    for name in ("shared-noise", "composition"):
        assert "the audit assumptions was left out (--only)" in said[name]


def test_what_was_looked_for_and_not_found_is_no_check(tmp_path, pair):
    every = ("assumptions", "mechanism", "seeds", "power")
    said = judged(tmp_path, pair, ASKED + COMPOSED, *every)
    assert said[""] == "pass"
    assert "composition" not in said


def test_nobody_can_look_without_true_labels(tmp_path, pair):
    said = judged(tmp_path, pair[:1], ASKED, "mechanism", "power")
    assert "shared-noise" not in said


def test_without_a_policy_nothing_is_asked(pair):
    result = ldpaudit.audit(*pair, only=["mechanism", "power"])
    assert {check.id for check in result.checks}.isdisjoint({"guessable-seed", "composition"})
