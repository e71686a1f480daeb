"""The checks of several columns or releases together, answer by answer."""

import math
from dataclasses import replace

import pytest

from ldpaudit.judging.checks.interface import Evidence
from ldpaudit.judging.node import BOUND_SHARE, NodeCase, drafts_of
from ldpaudit.judging.node_words import Words
from ldpaudit.judging.policy import default_policy
from ldpaudit.result import AuditRecord, Estimate


def estimate(name: str, value: float) -> Estimate:
    return Estimate(id=name, kind="estimated", value=value)


def node(
    epsilon: float | None = 2.0,
    bound: float | None = 1.5,
    excess: float | None = 0.1,
    p_value: float | None = None,
    **more: object,
) -> NodeCase:
    """A node whose bound is ``bound`` minus the error probability it is asked at."""
    estimates, bounds = [], {}
    if bound is not None:
        estimates.append(estimate("person.epsilon_lower", bound))
        bounds["person.epsilon_lower"] = lambda alpha: bound - alpha
    if excess is not None:
        estimates.append(estimate("person.min_detectable_excess", excess))
        bounds["person.min_detectable_excess"] = lambda alpha: excess + alpha
    if p_value is not None:
        estimates.append(estimate("person.independence", p_value))
    found = Evidence({e.id: e for e in estimates}, {}, bounds)
    words = Words("column", "the 2 columns together")
    mine = NodeCase(default_policy(), words, epsilon, found)
    return replace(mine, **more)


def answer(mine: NodeCase, alpha: float = 0.05) -> tuple[str, object]:
    draft = next(d for d in drafts_of(mine) if d.id == "claimed-epsilon")
    found = draft.test(alpha)
    assert (draft.failure(alpha) is not None) == (found.verdict == "fail")
    return found.verdict, found.observed


def test_a_bound_above_the_claim_fails() -> None:
    used = 0.05 * BOUND_SHARE
    assert answer(node(2.0, 2.0 + used + 1e-9)) == ("fail", pytest.approx(2.0))
    assert answer(node(2.0, 2.0 + used)) == ("pass", pytest.approx(2.0))


@pytest.mark.parametrize(("p", "status"), [(0.00499, "fail"), (0.00501, "pass")])
def test_draws_that_do_not_go_together_as_declared_refute_a_sum(p: float, status: str) -> None:
    """The tenth of the error probability that the bound leaves: 0.005."""
    assert answer(node(p_value=p))[0] == status
    assert answer(node(p_value=p, assumes_draws=False))[0] == "pass"


@pytest.mark.parametrize("epsilon", [None, math.inf])
def test_what_promises_nothing_is_open(epsilon: float | None) -> None:
    assert answer(node(epsilon, 9.0, p_value=1e-9)) == ("inconclusive", None)


def test_without_a_bound_the_parts_count_alone() -> None:
    assert answer(node(bound=None, excess=None, boundable=False)) == ("pass", None)
    assert answer(node(bound=None, excess=None)) == ("inconclusive", None)


def test_why_there_is_no_bound_is_said() -> None:
    records = (
        AuditRecord(id="a", status="ran", reason="it ran."),
        AuditRecord(id="b", status="skipped", reason=""),
        AuditRecord(id="c", status="skipped", reason="too few rows."),
    )
    mine = node(bound=None, excess=None)
    draft = next(d for d in drafts_of(replace(mine, records=records)) if d.id == "claimed-epsilon")
    assert draft.test(0.05).reason.endswith("was not bounded: too few rows")
    silent = next(d for d in drafts_of(mine) if d.id == "claimed-epsilon")
    assert silent.test(0.05).reason.endswith("was not bounded")


def test_a_weak_audit_is_open() -> None:
    allowed = default_policy().audit.max_undetected_excess.at(2.0)
    used = 0.05 * BOUND_SHARE
    assert answer(node(excess=allowed - used - 1e-9))[0] == "pass"
    assert answer(node(excess=allowed - used + 1e-9))[0] == "inconclusive"
    assert answer(node(excess=None))[0] == "pass"


def test_the_id_of_the_bound_is_the_insiders_if_there_is_one() -> None:
    mine = node()
    assert mine.bound == "person.epsilon_lower"
    outsider = {"person.release_only_epsilon_lower": lambda _: 0.1}
    both = replace(mine.evidence, bounds={**mine.evidence.bounds, **outsider})
    assert replace(mine, evidence=both).bound == "person.epsilon_lower"
    alone = replace(mine, evidence=replace(mine.evidence, bounds=outsider))
    assert alone.bound == "person.release_only_epsilon_lower"
    assert alone.bounded(0.05) == 0.1
    assert replace(mine, evidence=replace(mine.evidence, bounds={})).bounded(0.05) is None


@pytest.mark.parametrize(("p", "status"), [(0.05, "fail"), (0.0501, "pass")])
def test_joint_draws_are_tested_at_the_level_of_the_node(p: float, status: str) -> None:
    drafts = drafts_of(node(p_value=p))
    found = next(d for d in drafts if d.id == "claimed-channel").test(0.05)
    assert (found.verdict, found.observed) == (status, p)
    assert not any(d.id == "claimed-channel" for d in drafts_of(node()))
