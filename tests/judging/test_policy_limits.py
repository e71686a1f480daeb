"""A policy's claim limits the declared one, and a policy that nothing answers is no verdict."""

from typing import Any

import pytest
from audits.assumptions.test_assumptions import CLAIM, release

import ldpaudit
from ldpaudit.errors import PolicyError
from ldpaudit.judging.policy import Policy, parse_policy
from ldpaudit.result import AuditResult

BASE = 'schema = 1\nextends = "ldpaudit:default"\n'


def audited(policy: Policy, *, truth: bool = True, **options: Any) -> AuditResult:
    frame, labels = release("none", 1, 1000)
    options = {"only": ("mechanism",), **options}
    frame = frame.drop(columns="home")
    return ldpaudit.audit(
        frame, labels if truth else None, CLAIM, policy=policy, threads=1, **options
    )


def test_a_declared_epsilon_above_the_policys_is_a_violation_whatever_was_measured() -> None:
    result = audited(parse_policy(f"{BASE}[claim]\nepsilon = 0.9\n"))
    assert result.verdict == "fail"
    assert result.sentence.startswith(
        "Violation found: ε = 1 is declared, and the policy allows 0.9."
    )
    assert result.next_steps[0].startswith("Release with ε = 0.9 or less")
    assert not any("refuted" in note.text for note in result.notes)


def test_a_declared_epsilon_below_the_policys_is_held_against_the_release_itself() -> None:
    result = audited(parse_policy(f"{BASE}[claim]\nepsilon = 2.0\n"), only=("mechanism", "power"))
    assert result.mechanism.epsilon == pytest.approx(1)
    assert result.verdict != "fail"


@pytest.mark.parametrize(
    "check",
    ["instance-loss-exceedance]\nat = 6.0\nmax = 0.05", "label-inference-advantage]\nmax = 0.1"],
)
def test_a_policy_of_which_no_check_could_run(check: str) -> None:
    policy = parse_policy(f"schema = 1\n[checks.{check}\n")
    with pytest.raises(PolicyError, match="No check of the policy could run") as raised:
        audited(policy, truth=False)
    assert "left out" in str(raised.value)
    assert "\n" not in str(raised.value)
