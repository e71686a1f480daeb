"""Where a policy asks for its checks."""

from ldpaudit.judging.policy import check_lines, parse_policy

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


def test_each_check_has_its_line() -> None:
    assert parse_policy(POLICY)
    checks = (
        *("min-rows", "claimed-epsilon", "renyi-epsilon", "shared-noise", "composition"),
        "identifiers",
    )
    assert list(check_lines(POLICY, checks).values()) == [5, 7, 9, 12, 13, 2]


def test_what_is_not_named_is_in_the_first_line() -> None:
    assert check_lines("schema = 1\n", ["claimed-epsilon"]) == {"claimed-epsilon": 1}
