"""What the presets ask for, on evidence made up."""

import datetime
import re

import pytest
from judging.cases import evidence, judged, p_value, power

from ldpaudit.errors import PolicyError
from ldpaudit.estimators.renyi import AUDITED_ORDERS
from ldpaudit.judging.checks.interface import Evidence
from ldpaudit.judging.checks.listing import CHECKS as ROWS
from ldpaudit.judging.policy import (
    PRESETS,
    STARTER,
    check_lines,
    check_names,
    default_policy,
    explain,
    line_of,
    load_policy,
    parse_policy,
    preset_text,
)
from ldpaudit.judging.policy.explaining import ALWAYS, CHECKS, RULES, SECTIONS, check_keys, keys
from ldpaudit.judging.policy.sections import ALWAYS_WAIVABLE, keys_of
from ldpaudit.result import Curve, Estimate, decision_of

CHECK = "[checks.claimed-epsilon]\n"


def waiver(**changed):
    stated = {
        "check": '"claimed-epsilon"',
        "release_sha256": f'"{"0" * 64}"',
        "reason": '"r"',
        "approved_by": '"a"',
        "expires": "2030-01-01",
    } | changed
    keys = "\n".join(f"{key} = {value}" for key, value in stated.items() if value)
    return f"schema = 1\n{CHECK}[[waivers]]\n{keys}\n"


def test_the_starter_is_a_valid_policy():
    policy = parse_policy(STARTER)
    assert policy.audit.seed == 20260101
    assert policy.checks.claimed_channel is not None
    assert policy.sha256 is not None


def test_the_starter_with_all_that_is_commented_out_is_valid_but_for_the_digest():
    text = re.sub(r"^# (?=\[\[?\w+\]\]?|\w+ = )", "", STARTER, flags=re.MULTILINE)
    policy = parse_policy(text.replace('"…"', f'"{"a" * 64}"'))
    assert policy.claim is not None
    assert policy.waivers[0].expires == datetime.date(2026, 12, 31)


def test_the_default_checks_only_the_claim():
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
            "audit.min_rows.* must be greater than or equal to 1, not 0",
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
        (
            "schema = 1\n[checks.renyi-epsilon]\nalpha = 1.05\nmax = 1",
            f"line 3: .*alpha' must be at least {AUDITED_ORDERS[0]:g}.*, not 1.05",
        ),
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
def test_a_bad_policy_is_refused_in_one_line(text, message):
    with pytest.raises(PolicyError, match=message) as caught:
        parse_policy(text)
    assert "\n" not in str(caught.value)
    assert "Value error" not in str(caught.value)


@pytest.mark.parametrize("order", [AUDITED_ORDERS[0], 20])
def test_a_renyi_order_within_or_above_the_grid_is_accepted(order):
    policy = parse_policy(f"schema = 1\n[checks.renyi-epsilon]\nalpha = {order}\nmax = 1.0")
    assert policy.checks.renyi_epsilon.alpha == order


def test_dates_may_be_texts_and_digests_in_capitals():
    policy = parse_policy(waiver(expires='"2030-01-01"', release_sha256=f'"{"A" * 64}"'))
    assert policy.waivers[0].expires == datetime.date(2030, 1, 1)
    assert policy.waivers[0].release_sha256 == "a" * 64


def test_a_claim_may_name_a_mechanism_in_short():
    claim = parse_policy(f"schema = 1\n{CHECK}[claim]\nmechanism = 'rr'\nepsilon = 1").claim
    assert claim.declaration().name == "randomized-response"


def test_an_unreadable_policy_says_why(tmp_path):
    with pytest.raises(PolicyError, match=r"none\.toml.*no such file"):
        load_policy(tmp_path / "none.toml")
    bad = tmp_path / "bad.toml"
    bad.write_bytes(b"\xff\xfe")
    with pytest.raises(PolicyError, match="cannot be read: it is not a text file in UTF-8"):
        load_policy(bad)
    with pytest.raises(PolicyError, match="it is a folder"):
        load_policy(tmp_path)


def test_mistakes_name_the_file_and_the_line(tmp_path):
    file = tmp_path / "release.toml"
    file.write_text("schema = 1\n\n[audit]\nseeed = 1\n")
    with pytest.raises(PolicyError, match=r"^release\.toml, line 4: Unknown key 'audit.seeed'"):
        load_policy(file)
    file.write_text('schema = 1\n"\n')
    with pytest.raises(PolicyError, match=r"^release\.toml, line 2: The policy is not valid TOML"):
        load_policy(file)


MEANT = {
    "a comma": ("[claim]\nepsilon = 1,0  # nats", "after a statement; write a decimal point: 1.0."),
    "a text": ('[claim]\nepsilon = "0,5"', "must be a valid number; write a decimal point: 0.5."),
    "a word": ('[claim]\nepsilon = "one"', "must be a valid number."),
    "a list": ("[claim]\nepsilon = [1,2 3]", "Unclosed array."),
    "thousands": ('[audit]\nmin_rows = "1,000"', "must be a valid integer."),
    "a level": ('[checks.claimed-epsilon]\nlevel = "eror"', "\"off\"; did you mean 'error'?"),
    "no level": ('[checks.claimed-epsilon]\nlevel = "zz"', 'one of "error", "warn", "off".'),
}


@pytest.mark.parametrize("case", MEANT)
def test_what_was_meant_ends_the_sentence(case, tmp_path):
    text, expected = MEANT[case]
    file = tmp_path / "release.toml"
    file.write_text(f"schema = 1\n{text}\n")
    with pytest.raises(PolicyError) as error:
        load_policy(file)
    assert str(error.value).endswith(expected)


DEFAULT, STRICT, RESEARCH = (load_policy(name) for name in PRESETS)


def decided(found, policy):
    result = judged(found, policy)
    return result.verdict, decision_of(result.verdict, result.checks)


def by_preset(*found, epsilon=0.9):
    safe = Estimate.estimated("columns.indices", "", 0)
    told = Estimate.estimated("columns.told", "", 0.5)
    follows = p_value("mechanism.channel_consistency", 0.5)
    every = {e.id: e for e in (safe, told, follows, *found)}
    case = evidence(*every.values(), epsilon=epsilon)
    return [decided(case, policy) for policy in (DEFAULT, STRICT, RESEARCH)]


PASS, LOOK, FAIL = ("pass", "publish"), ("pass", "not yet"), ("fail", "do not publish")
OPEN = ("inconclusive", "not yet")


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        ((power(0.1),), [PASS, PASS, PASS]),
        ((power(0.4),), [PASS, OPEN, PASS]),
        ((power(2.0),), [OPEN, OPEN, LOOK]),
        ((power(float("inf")),), [OPEN, OPEN, LOOK]),
        ((), [OPEN, OPEN, LOOK]),
        ((power(0.1), Estimate.estimated("columns.indices", "", 1)), [LOOK, FAIL, LOOK]),
        ((power(0.1), Estimate.estimated("columns.told", "", 0.96)), [PASS, FAIL, PASS]),
        ((power(0.1), Estimate.estimated("columns.told", "", 0.99)), [LOOK, FAIL, LOOK]),
        ((power(0.1), p_value("seeds.p_value", 1e-30)), [FAIL, FAIL, LOOK]),
        ((power(0.1), p_value("mechanism.rare_classes", 1e-9)), [FAIL, FAIL, LOOK]),
        ((power(0.1), p_value("mechanism.rare_classes", 0.004)), [FAIL, OPEN, LOOK]),
        ((power(0.1), p_value("mechanism.rare_classes", 0.012)), [OPEN, OPEN, PASS]),
        ((power(0.1), p_value("mechanism.rare_classes", 0.04)), [OPEN, OPEN, PASS]),
        ((power(0.1), p_value("mechanism.rare_classes", 0.06)), [PASS, PASS, PASS]),
        ((power(0.1), Estimate.estimated("mechanism.rare_classes", "", 1e-9)), [OPEN, OPEN, PASS]),
        ((power(0.1), p_value("assumptions.shared_noise", 1e-9)), [LOOK, FAIL, LOOK]),
        ((power(0.1), p_value("mechanism.channel_consistency", 1e-9)), [LOOK, FAIL, LOOK]),
    ],
)
def test_what_each_preset_says(found, expected):
    assert by_preset(*found) == expected


def test_a_refuted_claim_fails_under_each():
    assert by_preset(power(0.1), epsilon=3.0) == [FAIL] * 3


def test_what_a_weak_audit_missed_is_said_where_it_passes():
    weak = judged(evidence(power(2.0), epsilon=0.9), RESEARCH)
    assert "an excess of up to 2 over the claimed ε may be there" in weak.sentence
    blind = judged(evidence(power(float("inf")), epsilon=0.9), RESEARCH)
    assert "this audit would have noticed no excess, however large" in blind.sentence


def losses(at, share):
    x, shares = (0.0, at), (1.0, share)
    return Curve(
        id="instance_loss.exceedance", kind="estimated", x=x, value=shares, low=shares, level=0.999
    )


def asked(check, keys, *, curve=None, **scores):
    policy = parse_policy(f"schema = 1\n[checks.{check}]\n{keys}")
    best = [
        Estimate.interval(f"attack.best.{name}", "", low + 0.01, (low, low + 0.02), 0.99)
        for name, low in scores.items()
    ]
    ceiling = Estimate.exact("attack.ceiling.advantage", "", 0.231)
    estimates = {e.id: e for e in (*best, ceiling)}
    bounds = {f"attack.best.{name}": lambda _, low=low: low for name, low in scores.items()}
    curves = {} if curve is None else {curve.id: curve}
    return judged(Evidence(estimates, curves, bounds), policy)


@pytest.mark.parametrize(("low", "verdict"), [(0.1, "pass"), (0.22, "inconclusive"), (0.3, "fail")])
def test_an_advantage_may_be_what_the_claim_allows(low, verdict):
    result = asked("label-inference-advantage", 'max = "claim"', advantage=low)
    assert (result.verdict, result.checks[0].limit) == (verdict, pytest.approx(0.231))


def test_a_loss_may_follow_the_claim():
    section, keys = "instance-loss-exceedance", 'at = "claim + 5"\nmax = 0.05'
    result = asked(section, keys, curve=losses(6.0, 0.2))
    assert result.verdict == "fail"
    assert "at least 6 nats" in result.checks[0].question
    assert asked(section, keys, curve=losses(6.0, 0.01)).verdict == "pass"
    assert asked(section, keys, curve=losses(5.9, 0.2)).verdict == "inconclusive"


def test_own_keys_win_one_by_one():
    policy = parse_policy(
        'schema = 1\nextends = "ldpaudit:strict"\n[audit]\nmin_rows = 50\n'
        '[checks.features-reveal-label]\nmax = 0.9\n[checks.composition]\nlevel = "off"\n'
    )
    assert (policy.audit.confidence, policy.audit.min_rows) == (0.99, 50)
    section = policy.checks.features_reveal_label
    assert (section.level, section.max) == ("error", 0.9)
    assert "composition" not in policy.checks.asked()


def test_a_preset_is_named_and_has_a_digest():
    assert [policy.name for policy in (DEFAULT, STRICT, RESEARCH)] == list(PRESETS)
    assert len({policy.sha256 for policy in (DEFAULT, STRICT, RESEARCH)}) == 3
    assert preset_text("strict") == preset_text("ldpaudit:strict")
    short = parse_policy('schema = 1\nextends = "strict"')
    assert (short.extends, short.checks) == ("ldpaudit:strict", STRICT.checks)
    with pytest.raises(PolicyError, match="did you mean 'ldpaudit:strict'"):
        load_policy("ldpaudit:strickt")


def test_checks_that_every_audit_asks():
    """What can fail without being a fault of the noise, and is no matter of the policy."""
    fixed = {name: row for name, row in ROWS.items() if row.level is not None}
    assert set(ALWAYS) == set(fixed) - {"min-rows"} == set(ROWS) - {*check_names(), "min-rows"}
    warned = {name for name, row in fixed.items() if row.level == "warn"}
    assert set(ALWAYS_WAIVABLE) == warned - {"private-columns"}
    for name, words in ALWAYS.items():
        assert f"Level: {fixed[name].level}." in words
        assert ("It can be waived." in words) == (name in ALWAYS_WAIVABLE)


def test_every_key_and_every_check_has_words():
    assert set(CHECKS) == set(check_names())
    stated = {f"{name}.{key}" for name, section in SECTIONS.items() for key in keys_of(section)}
    assert set(keys()) == {"schema", "extends"} | stated
    every = {**CHECKS, **ALWAYS, **keys(), **check_keys(), **RULES}
    assert all(len(words or "") > 10 and words.endswith((".", "?")) for words in every.values())


@pytest.mark.parametrize(
    "name",
    [
        *check_names(),
        *ALWAYS,
        *PRESETS,
        *SECTIONS,
        *RULES,
        "audit.confidence",
        "checks.identifiers.max",
    ],
)
def test_everything_is_explained_by_its_name(name):
    assert explain(name).startswith(name.removeprefix("checks."))


def test_a_key_is_found_without_its_section():
    assert explain("confidence").startswith("audit.confidence: ")
    assert len(explain("level").splitlines()) == len(check_names())


def test_without_a_name_everything_is_listed():
    text = explain()
    for name in (*check_names(), *keys(), *PRESETS, *RULES):
        assert f"  {name}: " in text


def test_another_word_is_refused_with_the_nearest():
    with pytest.raises(PolicyError, match="did you mean 'claimed-epsilon'"):
        explain("claimed-epsilom")
    with pytest.raises(PolicyError, match="lists all there is"):
        explain("zzzz")


TEXT = '''\
# [checks.claimed-epsilon] in a comment
schema = 1
note = """
[checks.claimed-epsilon]
"""
[checks]
identifiers = { level = "warn", max = 3 }

  [checks."claimed-epsilon"]   # here
level = "error"
[checks.renyi-epsilon]
alpha = 2.0
[[waivers]]
check = "a"
[[waivers]]
check = "b"
max = [
  1,
  2,
]
expires = 2030-01-01
'''


@pytest.mark.parametrize(
    ("place", "line"),
    [
        ("schema", 2),
        ("note", 3),
        ("checks", 6),
        ("checks.identifiers.max", 7),
        ("checks.claimed-epsilon", 9),
        ("checks.claimed-epsilon.level", 10),
        ("checks.claimed-epsilon.max", 9),
        ("checks.renyi-epsilon.alpha", 12),
        (("waivers", 0, "check"), 14),
        (("waivers", 1, "check"), 16),
        (("waivers", 1, "expires"), 21),
        (("waivers", 1, "reason"), 15),
        ("audit.seed", None),
    ],
)
def test_every_table_and_key_is_found(place, line):
    assert line_of(TEXT, place) == line


def test_text_that_is_no_toml_is_read_as_far_as_it_goes():
    assert line_of("schema = 1\n=== \n[audit]\nseed = 1\n", "audit.seed") == 4
    assert line_of("", "audit") is None


def test_the_starter():
    line = line_of(STARTER, "checks.label-inference-advantage.max")
    assert line is not None
    assert STARTER.splitlines()[line - 1].startswith("max")


POLICY = """\
schema = 1  # [checks.identifiers]
extends = "ldpaudit:default"

[audit]
min_rows = 100

[checks.claimed-epsilon]   # the claim
level = "error"
[ checks . "renyi-epsilon" ]
max = 1.0
[checks]
shared-noise.level = "off"
composition = { level = "warn" }

[[waivers]]
check = "identifiers"
release_sha256 = "{sha}"
reason = "r"
approved_by = "a"
expires = 2030-01-01
""".replace("{sha}", "0" * 64)


def test_each_check_has_its_line():
    assert parse_policy(POLICY)
    checks = (
        *("min-rows", "claimed-epsilon", "renyi-epsilon", "shared-noise", "composition"),
        "identifiers",
    )
    assert list(check_lines(POLICY, checks).values()) == [5, 7, 9, 12, 13, 2]


def test_what_is_not_named_is_in_the_first_line():
    assert check_lines("schema = 1\n", ["claimed-epsilon"]) == {"claimed-epsilon": 1}
