from pathlib import Path

import pytest

from ldpaudit.errors import PolicyError
from ldpaudit.judging.policy import (
    EXPLANATIONS,
    STARTER,
    check_names,
    default_policy,
    explain,
    load_policy,
    parse_policy,
)


def test_the_starter_is_a_valid_policy() -> None:
    policy = parse_policy(STARTER)
    assert policy.audit.seed == 20260101
    assert policy.checks.claimed_channel is not None
    assert policy.sha256 is not None


def test_the_default_checks_only_the_claim() -> None:
    checks = default_policy().checks
    assert checks.claimed_epsilon is not None
    assert checks.instance_loss_exceedance is None
    assert checks.label_inference_advantage is None


def test_every_check_is_explained() -> None:
    assert set(EXPLANATIONS) == set(check_names())
    for name in check_names():
        assert explain(name).startswith(name)
    with pytest.raises(PolicyError, match="did you mean 'claimed-epsilon'"):
        explain("claimed-epsilom")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "schema = 1"),
        ("schema = 2", "schema"),
        ("schema = [", "valid TOML"),
        ("schema = 1\n[check]", "did you mean 'checks'"),
        ("schema = 1\n[audit]\nseeed = 1", "did you mean 'seed'"),
        ("schema = 1\n[audit]\nseed = -1", "audit.seed"),
        ("schema = 1\n[audit]\nconfidence = 95", "audit.confidence"),
        ("schema = 1\n[claim]\nepsilom = 1", "did you mean 'epsilon'"),
        ("schema = 1\n[checks.claimed-epsilom]", "did you mean 'claimed-epsilon'"),
        ("schema = 1\n[checks.claimed-epsilon]\nlevel = 'fatal'", "level"),
        ("schema = 1\n[checks.instance-loss-exceedance]\nat = 6.0", "max"),
        ("schema = 1\n[checks.instance-loss-exceedance]\nat = 6.0\nmaxx = 1", "did you mean 'max'"),
        ("schema = 1\n[[waivers]]\ncheck = 'x'", "waivers"),
        ("schema = 1\nsha256 = 'x'", "sha256"),
        ("schema = 1\nextends = 'mine'", "extends"),
    ],
)
def test_a_bad_policy_is_refused_in_one_line(text: str, message: str) -> None:
    with pytest.raises(PolicyError, match=message) as caught:
        parse_policy(text)
    assert "\n" not in str(caught.value)


def test_a_waiver_must_name_a_check() -> None:
    text = """schema = 1
[[waivers]]
check = "claimed-epsilom"
release_sha256 = "%s"
reason = "r"
approved_by = "a"
expires = 2030-01-01
""" % ("0" * 64)
    with pytest.raises(PolicyError, match="did you mean 'claimed-epsilon'"):
        parse_policy(text)


def test_an_unreadable_policy(tmp_path: Path) -> None:
    with pytest.raises(PolicyError, match=r"none\.toml"):
        load_policy(tmp_path / "none.toml")
    bad = tmp_path / "bad.toml"
    bad.write_bytes(b"\xff\xfe")
    with pytest.raises(PolicyError, match="cannot be read"):
        load_policy(bad)
