import pytest

from ldpaudit.errors import PolicyError
from ldpaudit.judging.policy import default_policy, parse_policy
from ldpaudit.options.allowed_excess import AllowedExcess


def allowed(text: str) -> AllowedExcess:
    return parse_policy(
        f"schema = 1\n[checks.claimed-epsilon]\n[audit]\nmax_undetected_excess = {text}"
    ).audit.max_undetected_excess


def test_nats_or_a_share_of_the_claim() -> None:
    assert allowed("0.5").at(8.0) == 0.5
    assert allowed("1").at(0.1) == 1.0
    assert allowed('"50%"').at(8.0) == 4.0
    assert allowed('"50 %"').at(0.1) == pytest.approx(0.05)


def test_the_larger_of_two_and_none_at_all() -> None:
    assert [allowed('[0.25, "25%"]').at(epsilon) for epsilon in (0.1, 1.0, 4.0)] == [0.25, 0.25, 1]
    assert allowed('"any"').at(1.0) == float("inf")
    assert allowed('"any"').or_default() == default_policy().audit.max_undetected_excess


def test_without_it_the_limit_makes_sense_for_small_and_large_claims() -> None:
    usual = default_policy().audit.max_undetected_excess
    assert [usual.at(epsilon) for epsilon in (0.1, 1.0, 2.0, 8.0)] == [0.5, 0.5, 1.0, 4.0]


@pytest.mark.parametrize(
    "text",
    ["0", "-1", '"0%"', '"half"', "true", '"-5%"', "inf", "nan", "[1]", "[1, 2, 3]", '[0, "5%"]'],
)
def test_anything_else_is_one_clear_line(text: str) -> None:
    with pytest.raises(PolicyError, match="nats above 0") as caught:
        allowed(text)
    assert "\n" not in str(caught.value)
