import datetime
import re
from pathlib import Path

import pytest

from ldpaudit.errors import PolicyError
from ldpaudit.judging.policy import STARTER, default_policy, load_policy, parse_policy

CHECK = "[checks.claimed-epsilon]\n"


def waiver(**changed: str) -> str:
    stated = {
        "check": '"claimed-epsilon"',
        "release_sha256": f'"{"0" * 64}"',
        "reason": '"r"',
        "approved_by": '"a"',
        "expires": "2030-01-01",
    } | changed
    keys = "\n".join(f"{key} = {value}" for key, value in stated.items() if value)
    return f"schema = 1\n{CHECK}[[waivers]]\n{keys}\n"


def test_the_starter_is_a_valid_policy() -> None:
    policy = parse_policy(STARTER)
    assert policy.audit.seed == 20260101
    assert policy.checks.claimed_channel is not None
    assert policy.sha256 is not None


def test_the_starter_with_all_that_is_commented_out_is_valid_but_for_the_digest() -> None:
    text = re.sub(r"^# (?=\[\[?\w+\]\]?|\w+ = )", "", STARTER, flags=re.MULTILINE)
    policy = parse_policy(text.replace('"…"', f'"{"a" * 64}"'))
    assert policy.claim is not None
    assert policy.waivers[0].expires == datetime.date(2026, 12, 31)


def test_the_default_checks_only_the_claim() -> None:
    checks = default_policy().checks
    assert checks.claimed_epsilon is not None
    assert checks.instance_loss_exceedance is None
    assert checks.label_inference_advantage is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty"),
        ("  \n\n", "is empty"),
        ("seed = 1", "schema = 1"),
        ("schema = 2", "'schema' must be 1"),
        ("schema = [", "valid TOML"),
        (f"schema = {'1' * 5000}", "no number of more than 300 digits"),
        (f"schema = {'[' * 9000}", "at most 64 lists"),
        (f"schema = 1\n{'a.' * 20000}b = 1", "at most 64 lists"),
        ("schema = 1\n" + "# \n" * 50_000, "at most 128 KiB"),
        ("schema = 1\n[check]", "line 2.*did you mean 'checks'"),
        ("schema = 1\n[audit]\nseeed = 1", "line 3.*did you mean 'seed'"),
        ("schema = 1\n[audit]\nseed = -1", "line 3.*audit.seed"),
        ("schema = 1\n[audit]\nseed = true", "line 3.*audit.seed"),
        ("schema = 1\n[audit]\nseed = 1.5", "line 3.*audit.seed"),
        ("schema = 1\n[audit]\nconfidence = 95", "line 3: .*less than 1: 0.95, not 95"),
        ("schema = 1\n[audit]\nconfidence = nan", "audit.confidence"),
        (
            "schema = 1\n[audit]\nmin_rows = 0",
            "audit.min_rows.* must be greater than 0, not 0|at least",
        ),
        ("schema = 1\n[audit]\nmax_undetected_excess = 'all'", '"any"'),
        ("schema = 1\n[audit]\ncorrection = 'hol'", "one of \"holm\".*did you mean 'holm'"),
        ("schema = 1\n[claim]\nepsilom = 1", "did you mean 'epsilon'"),
        ("schema = 1\n[claim]\nepsilon = nan", "line 3.*must be a number. Got NaN|epsilon"),
        ("schema = 1\n[claim]\nepsilon = -1", "line 3: The 'epsilon' parameter must be above 0"),
        ("schema = 1\n[claim]\nepsilon = 0", "line 3"),
        ("schema = 1\n[claim]\nepsilon = inf", "line 3"),
        ("schema = 1\n[claim]\nepsilon = '1'", "line 3"),
        ("schema = 1\n[claim]\nlambda = 1.5", r"line 3: .*\(0, 1\]"),
        ("schema = 1\n[claim]\nlambda = nan", "line 3"),
        ("schema = 1\n[claim]\nlambda = 0.3\nepsilon = 1", "not both"),
        ("schema = 1\n[claim]\nmechanism = 'nonsense'", "line 3: The mechanism 'nonsense'"),
        ("schema = 1\n[claim]\nmechanism = 'laplace'\nlambda = 0.3", "stated by its epsilon"),
        ("schema = 1\n[claim]\nmechanism = 'unknown'\nepsilon = 1", "claims nothing"),
        ("schema = 1\n[claim]", r"\[claim\] must state"),
        ("schema = 1\n[checks.claimed-epsilom]", "did you mean 'claimed-epsilon'"),
        (
            "schema = 1\n[checks.claimed-epsilon]\nlevel = 'eror'",
            "line 3.*\"error\".*did you mean 'error'",
        ),
        ("schema = 1\n[checks.instance-loss-exceedance]\nat = 6.0", "line 2: .*must state.*max"),
        ("schema = 1\n[checks.instance-loss-exceedance]\nat = 6.0\nmaxx = 1", "did you mean 'max'"),
        ("schema = 1\n[checks.instance-loss-exceedance]\nat = -6\nmax = 0.1", "line 3: .*nats"),
        ("schema = 1\n[checks.instance-loss-exceedance]\nat = inf\nmax = 0.1", "line 3: .*nats"),
        ("schema = 1\n[checks.instance-loss-exceedance]\nat = 'x'\nmax = 0.1", "line 3: .*nats"),
        ("schema = 1\n[checks.instance-loss-exceedance]\nat = 6\nmax = 5", "line 4"),
        ("schema = 1\n[checks.label-inference-advantage]\nmax = 2", "line 3: .*share from 0 to 1"),
        ("schema = 1\n[checks.label-inference-advantage]\nmax = nan", "line 3: .*share from 0"),
        ("schema = 1\n[checks.renyi-epsilon]\nalpha = 1\nmax = 1", "line 3: .*alpha"),
        ("schema = 1\n[checks.renyi-epsilon]\nalpha = nan\nmax = 1", "line 3: .*alpha"),
        ("schema = 1\n[[waivers]]\ncheck = 'x'", "waivers"),
        ("schema = 1\nsha256 = 'x'", "line 2.*sha256"),
        ("schema = 1\nextends = 'ldpaudit:stritc'", "line 2.*did you mean 'ldpaudit:strict'"),
        ("schema = 1\nextends = 5", "line 2.*extends"),
        (
            "schema = 1\nextends = 'mine'",
            r"line 2: There is no preset 'ldpaudit:mine'; did you mean 'ldpaudit:\w+'\?$",
        ),
        ("schema = 1", "asks for no check"),
        ("schema = 1\n[checks.claimed-epsilon]\nlevel = 'off'", "asks for no check"),
        ("schema = 1\nchecks = 5", "line 2"),
        (waiver(check='"claimed-epsilom"'), "line 4.*did you mean 'claimed-epsilon'"),
        (waiver(check='"identifiers"'), "line 4.*does not ask for"),
        (waiver(release_sha256='"abc"'), "line 5.*64 hexadecimal"),
        (waiver(release_sha256=f'"{"g" * 64}"'), "line 5.*64 hexadecimal"),
        (waiver(expires='"soon"'), "line 8.*must be a date"),
        (waiver(expires="0"), "line 8.*must be a date"),
        (waiver(expires="2030-01-01T10:00:00Z"), "line 8.*must be a date"),
        (waiver(reason='""'), "line 6.*one line"),
        (waiver(approved_by='"a\\nb"'), "line 7.*one line"),
        (waiver(approved_by=""), "line 3.*must state 'waivers.0.approved_by'"),
    ],
)
def test_a_bad_policy_is_refused_in_one_line(text: str, message: str) -> None:
    with pytest.raises(PolicyError, match=message) as caught:
        parse_policy(text)
    assert "\n" not in str(caught.value)
    assert "Value error" not in str(caught.value)


def test_dates_may_be_texts_and_digests_in_capitals() -> None:
    policy = parse_policy(waiver(expires='"2030-01-01"', release_sha256=f'"{"A" * 64}"'))
    assert policy.waivers[0].expires == datetime.date(2030, 1, 1)
    assert policy.waivers[0].release_sha256 == "a" * 64


def test_a_claim_may_name_a_mechanism_in_short() -> None:
    claim = parse_policy(f"schema = 1\n{CHECK}[claim]\nmechanism = 'rr'\nepsilon = 1").claim
    assert claim is not None
    assert claim.declaration().name == "randomized-response"


def test_an_unreadable_policy_says_why(tmp_path: Path) -> None:
    with pytest.raises(PolicyError, match=r"none\.toml.*no such file"):
        load_policy(tmp_path / "none.toml")
    bad = tmp_path / "bad.toml"
    bad.write_bytes(b"\xff\xfe")
    with pytest.raises(PolicyError, match="cannot be read: it is no text"):
        load_policy(bad)
    with pytest.raises(PolicyError, match="it is a folder"):
        load_policy(tmp_path)


def test_mistakes_name_the_file_and_the_line(tmp_path: Path) -> None:
    file = tmp_path / "release.toml"
    file.write_text("schema = 1\n\n[audit]\nseeed = 1\n")
    with pytest.raises(PolicyError, match=r"^release\.toml, line 4: Unknown key 'audit.seeed'"):
        load_policy(file)
    file.write_text('schema = 1\n"\n')
    with pytest.raises(PolicyError, match=r"^release\.toml, line 2: The policy is not valid TOML"):
        load_policy(file)
