"""Words and limits of single checks."""

import pytest
from judging.cases import case, evidence
from judging.test_node import node

from ldpaudit.audits.assumptions.stated import COMPOSED_EPSILON
from ldpaudit.judging.checks import composition, features_reveal
from ldpaudit.judging.node import drafts_of
from ldpaudit.judging.policy import default_policy
from ldpaudit.judging.policy.sections import ClaimSection
from ldpaudit.result import Estimate


def share(name: str, value: float, low: float | None = None) -> Estimate:
    return Estimate(id=name, kind="estimated", value=value, low=low, unit="proportion")


@pytest.mark.parametrize(("kind", "words"), [("exact", "people have"), ("estimated", "seem to")])
def test_whether_people_have_several_rows_is_said_as_it_is_known(kind: str, words: str) -> None:
    found = Estimate(id=COMPOSED_EPSILON, kind=kind, value=4.0, unit="nats")
    draft = composition.draft(case(evidence(found)))
    assert draft is not None
    assert draft.test(0.05).verdict == "fail"
    assert words in draft.test(0.05).reason


def test_the_largest_share_that_features_tell_is_observed() -> None:
    found = evidence(share("columns.told", 0.2), share("columns.position", 0.97))
    draft = features_reveal.draft(case(found))
    assert draft is not None
    assert draft.test(0.05).observed == 0.97


def test_a_node_that_declares_more_than_is_allowed() -> None:
    allowed = default_policy().model_copy(update={"claim": ClaimSection(epsilon=2.0)})
    mine = node(3.0, policy=allowed)
    draft = next(d for d in drafts_of(mine) if d.id == "claimed-epsilon")
    answer = draft.test(0.05)
    assert (answer.verdict, answer.observed) == ("fail", 3.0)
    assert "ε = 3 is declared, and the policy allows 2" in answer.reason
