"""Why a setting is not advised, in the words of its check."""

import pytest

from ldpaudit.extras.choose.advise.work import reason
from ldpaudit.result import Check


def check(**changes):
    stated = {
        "id": "instance-loss-exceedance", "question": "Is it?", "level": "error",
        "verdict": "fail", "observed": 0.4, "limit": 0.2, "side": "lower", "reason": "it is",
    }  # fmt: skip
    return Check.model_construct(**(stated | changes))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({}, "instance-loss-exceedance: at least 0.4"),
        ({"side": "upper"}, "instance-loss-exceedance: at most 0.4"),
        ({"side": None}, "instance-loss-exceedance: 0.4"),
        ({"observed": None}, "instance-loss-exceedance: it is"),
        ({"verdict": "inconclusive"}, "instance-loss-exceedance: it is"),
    ],
)
def test_a_number_has_its_side_and_its_limit(changes, words):
    said = reason(check(**changes))
    assert said.startswith(words)
    assert ("the policy allows 0.2" in said) is ("it is" not in words)
