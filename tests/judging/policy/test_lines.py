import pytest

from ldpaudit.judging.policy import STARTER, check_lines, line_of, parse_policy

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
def test_every_table_and_key_is_found(place: str, line: int | None) -> None:
    assert line_of(TEXT, place) == line


def test_text_that_is_no_toml_is_read_as_far_as_it_goes() -> None:
    assert line_of("schema = 1\n=== \n[audit]\nseed = 1\n", "audit.seed") == 4
    assert line_of("", "audit") is None


def test_the_starter() -> None:
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


def test_each_check_has_its_line() -> None:
    assert parse_policy(POLICY)
    checks = (
        *("min-rows", "claimed-epsilon", "renyi-epsilon", "shared-noise", "composition"),
        "identifiers",
    )
    assert list(check_lines(POLICY, checks).values()) == [5, 7, 9, 12, 13, 2]


def test_what_is_not_named_is_in_the_first_line() -> None:
    assert check_lines("schema = 1\n", ["claimed-epsilon"]) == {"claimed-epsilon": 1}
