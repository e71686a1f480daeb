"""Waivers: of one check, in one file, until a day; the violation stays one."""

from typing import Any

import pytest
from judging.cases import CLAIM, TODAY, evidence, p_value, power

from ldpaudit.judging.checks.interface import Evidence
from ldpaudit.judging.policy import Policy, parse_policy
from ldpaudit.judging.verdict import Judgement, judge
from ldpaudit.result import decision_of

FILE = "0" * 64
LEAKING = evidence(power(0.1), epsilon=3.0)
HONEST = evidence(power(0.1), p_value("mechanism.channel_consistency", 0.4), epsilon=1.0)


def waiver(expires: str = "2026-06-01", check: str = "claimed-epsilon", file: str = FILE) -> str:
    return f"""
[[waivers]]
check = "{check}"
release_sha256 = "{file}"
reason = "accepted by the board"
approved_by = "A. Smith"
expires = {expires}
"""


def policy(*waivers: str, more: str = "") -> Policy:
    return parse_policy(f'schema = 1\nextends = "ldpaudit:default"\n{more}{"".join(waivers)}')


def judged(found: Evidence, asked: Policy, file: str | None = FILE, **known: Any) -> Judgement:
    return judge(asked, CLAIM, found, rows=5000, sha256=file, today=TODAY, **known)


def warnings(judgement: Judgement) -> list[str]:
    return [n.text for n in judgement.notes if n.level == "warning" and "waiver" in n.text]


def test_a_waived_violation_stays_one_in_every_form() -> None:
    result = judged(LEAKING, policy(waiver()))
    (check,) = (check for check in result.checks if check.id == "claimed-epsilon")
    assert check.verdict == "fail"
    assert check.waived
    assert check.waiver is not None
    assert check.waiver.model_dump() == {
        "approved_by": "A. Smith",
        "reason": "accepted by the board",
        "expires": "2026-06-01",
    }
    assert result.verdict == "pass"
    assert decision_of(result.verdict, result.checks) == "publish"
    start = "Violation found, waived until 2026-06-01 by A. Smith: the release claims ε = 1, but"
    assert result.sentence.startswith(start)
    assert "No violation" not in result.sentence


def test_a_waiver_makes_no_claim_true() -> None:
    result = judged(LEAKING, policy(waiver()))
    assert "claim is refuted" in result.next_steps[0]
    assert "with its declaration" not in " ".join(result.next_steps)
    assert any("refuted" in note.text for note in result.notes)


def test_it_counts_on_its_last_day_and_no_longer() -> None:
    assert judged(LEAKING, policy(waiver("2026-06-01"))).verdict == "pass"
    late = judged(LEAKING, policy(waiver("2026-05-31")))
    assert late.verdict == "fail"
    assert warnings(late) == [
        "The waiver of claimed-epsilon expired on 2026-05-31 and counts no more."
    ]


@pytest.mark.parametrize(
    ("found", "asked", "file", "why"),
    [
        (LEAKING, policy(waiver(file="1" * 64)), FILE, "another file"),
        (LEAKING, policy(waiver()), None, "table in memory"),
        (HONEST, policy(waiver()), FILE, "the check passes"),
        (evidence(power(2.0), epsilon=1.0), policy(waiver()), FILE, "is inconclusive"),
        (HONEST, policy(waiver(check="shared-noise")), FILE, "nothing to answer"),
    ],
)
def test_an_unused_waiver_says_why(
    found: Evidence, asked: Policy, file: str | None, why: str
) -> None:
    result = judged(found, asked, file)
    (warning,) = warnings(result)
    assert why in warning
    assert not any(check.waived for check in result.checks)


def test_only_the_named_check_is_waived() -> None:
    leaking = evidence(power(0.1), p_value("seeds.p_value", 1e-30), epsilon=3.0)
    result = judged(leaking, policy(waiver()))
    assert result.verdict == "fail"
    assert "anybody can compute the noise" in result.sentence
    assert "A violation is waived until 2026-06-01 by A. Smith" in result.sentence


def test_a_waiver_never_answers_what_is_inconclusive() -> None:
    found = evidence(power(0.1), epsilon=3.0)
    result = judged(found, policy(waiver(), more="[audit]\nmin_rows = 9000\n"))
    assert result.verdict == "inconclusive"
    assert decision_of(result.verdict, result.checks) == "not yet"
    assert "waived until" in result.sentence


def test_a_waived_warning_is_published_by_waiver() -> None:
    found = evidence(power(0.1), p_value("mechanism.channel_consistency", 1e-9), epsilon=1.0)
    without = judged(found, policy())
    assert decision_of(without.verdict, without.checks) == "not yet"
    result = judged(found, policy(waiver(check="claimed-channel")))
    assert decision_of(result.verdict, result.checks) == "publish"
    assert result.sentence.startswith("No violation found: nothing contradicts the claimed ε")
    assert "A violation is waived until 2026-06-01 by A. Smith: the released" in result.sentence


def test_of_two_waivers_the_longer_one_is_shown() -> None:
    result = judged(LEAKING, policy(waiver("2026-07-01"), waiver("2026-06-02")))
    assert "waived until 2026-07-01" in result.sentence
    assert not warnings(result)
