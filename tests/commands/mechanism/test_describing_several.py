"""``mechanism describe`` of mechanisms that release several columns together."""

import math

import pytest

import ldpaudit
from ldpaudit.commands.mechanism.analysis import Analysis
from ldpaudit.errors import InputError

TWO = ("--domain", "no,yes", "--domain", "a,b,c,d")


def test_each_epsilon_is_said_to_be_whose_it_is(result, command):
    found = result("describe", "rs-fd", "--epsilon", 1, *TWO)
    assert found["epsilon"] == pytest.approx(math.log(2 * math.expm1(1) + 1))
    assert [one["labels"] for one in found["columns"]] == [2, 4]
    within = [one["epsilon_within"] for one in found["columns"]]
    assert within[0] < 1 < within[1] < found["epsilon"]
    assert found["channel"]["labels"][:2] == ["no, a", "no, b"]
    assert dict(map(tuple, found["rdp"]))["inf"] == pytest.approx(found["epsilon"])
    Analysis.model_validate(found)
    status, said, _ = command("describe", "rs-fd", "--epsilon", 1, *TWO)
    assert status == 0
    assert "The published ε = 1 is not that of all columns" in said


def test_the_error_of_a_share_is_that_of_the_published_estimator(result):
    """Arcolezi et al. (2021): Var = σ(1 − σ)d²/(p − q)², σ = (q + (d − 1)/k)/d of a rare one."""
    found = result("describe", "rs-fd", "--epsilon", 1, *TWO)
    d, gain = 2, 2 * math.expm1(1)
    for one in found["columns"]:
        k = one["labels"]
        p, q = (1 + gain) / (k + gain), 1 / (k + gain)
        sigma = (q + (d - 1) / k) / d
        variance = sigma * (1 - sigma) * d**2 / (p - q) ** 2
        assert one["frequency_error"] ** 2 == pytest.approx(variance)


def test_a_domain_too_large_for_curves_says_so(result):
    wide = ",".join(map(str, range(40)))
    found = result("describe", "joint-rr", "--epsilon", 1, "--domain", wide, "--domain", wide)
    assert found["delta"] == found["rdp"] == []
    assert found["channel"] is None
    assert any("1600 vectors" in note for note in found["notes"])
    assert found["columns"][0]["epsilon_within"] == 1


def test_from_python():
    found = ldpaudit.describe("joint-rr", epsilon=2.0, domain=(("a", "b"), ("c", "d")))
    assert found.epsilon == 2.0
    assert len(found.columns) == 2
    for domain in (5, (5, 6), ("a,b", 3)):
        with pytest.raises(InputError):
            ldpaudit.describe("joint-rr", epsilon=2.0, domain=domain)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("joint-rr", "--epsilon", 1), "at least two domains"),
        (("joint-rr", *TWO), "must have --epsilon"),
        (("joint-rr", "--epsilon", 1, "--classes", "a,b"), "takes no --classes"),
        (("rs-fd", "--lambda", 0.1, *TWO), "takes no --lambda"),
        (("rs-fd", "--epsilon", 1, "--set", "a=1", *TWO), "no further parameter"),
        (("rs-f", "--epsilon", 1, *TWO), "did you mean 'rs-fd'"),
        (("rr", "--epsilon", 1, *TWO), "does not release several columns"),
    ],
)
def test_mistakes_are_one_line(words, said, command):
    status, _, err = command("describe", *words)
    assert status == 2
    assert said in err
