"""The checks of several columns or releases together, answer by answer."""

import math
from dataclasses import replace
from types import SimpleNamespace

import pytest

from ldpaudit.extras.several.judging import PROOFS, NodeCase, drafts_of
from ldpaudit.extras.several.words import Words, of_strata, sentence_of, steps_of
from ldpaudit.judging.checks.interface import Evidence
from ldpaudit.judging.policy import default_policy
from ldpaudit.judging.policy.sections import ClaimSection
from ldpaudit.result import AuditRecord, Estimate


def estimate(name, value):
    return Estimate(id=name, kind="estimated", value=value)


def node(epsilon=2.0, bound=1.5, excess=0.1, p_value=None, **more):
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


def answer(mine, alpha=0.05):
    draft = next(d for d in drafts_of(mine) if d.id == "claimed-epsilon")
    found = draft.test(alpha)
    assert (draft.failure(alpha) is not None) == (found.verdict == "fail")
    return found.verdict, found.observed


def test_a_bound_above_the_claim_fails():
    used = PROOFS.of(0.05, "bound")
    assert answer(node(2.0, 2.0 + used + 1e-9)) == ("fail", pytest.approx(2.0))
    assert answer(node(2.0, 2.0 + used)) == ("pass", pytest.approx(2.0))


@pytest.mark.parametrize(("p", "status"), [(0.00499, "fail"), (0.00501, "pass")])
def test_draws_that_do_not_go_together_as_declared_refute_a_sum(p, status):
    """The tenth of the error probability that the bound leaves: 0.005."""
    assert answer(node(p_value=p))[0] == status
    assert answer(node(p_value=p, assumes_draws=False))[0] == "pass"


@pytest.mark.parametrize("epsilon", [None, math.inf])
def test_what_promises_nothing_is_open(epsilon):
    assert answer(node(epsilon, 9.0, p_value=1e-9)) == ("inconclusive", None)


def test_without_a_bound_the_parts_count_alone():
    assert answer(node(bound=None, excess=None, boundable=False)) == ("pass", None)
    assert answer(node(bound=None, excess=None)) == ("inconclusive", None)


def test_why_there_is_no_bound_is_said():
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


def test_a_weak_audit_is_open():
    allowed = default_policy().audit.max_undetected_excess.at(2.0)
    used = PROOFS.of(0.05, "bound")
    assert answer(node(excess=allowed - used - 1e-9))[0] == "pass"
    assert answer(node(excess=allowed - used + 1e-9))[0] == "inconclusive"
    assert answer(node(excess=None))[0] == "inconclusive"


def test_the_id_of_the_bound_is_the_insiders_if_there_is_one():
    mine = node()
    assert mine.bound == "person.epsilon_lower"
    outsider = {"person.release_only_epsilon_lower": lambda _: 0.1}
    both = replace(mine.evidence, bounds={**mine.evidence.bounds, **outsider})
    assert replace(mine, evidence=both).bound == "person.epsilon_lower"
    alone = replace(mine, evidence=replace(mine.evidence, bounds=outsider))
    assert (alone.bound, alone.bounded(0.05)) == ("person.release_only_epsilon_lower", 0.1)
    assert replace(mine, evidence=replace(mine.evidence, bounds={})).bounded(0.05) is None


@pytest.mark.parametrize(("p", "status"), [(0.05, "fail"), (0.0501, "pass")])
def test_joint_draws_are_tested_at_the_level_of_the_node(p, status):
    drafts = drafts_of(node(p_value=p))
    found = next(d for d in drafts if d.id == "claimed-channel").test(0.05)
    assert (found.verdict, found.observed) == (status, p)
    assert not any(d.id == "claimed-channel" for d in drafts_of(node()))


def test_a_warning_is_said_once():
    warned = SimpleNamespace(
        id="identifiers", level="warn", verdict="fail", waived=None, reason="dates"
    )
    part = SimpleNamespace(
        verdict="inconclusive",
        checks=(warned,),
        sentence="Inconclusive: too few rows. Warning: dates.",
    )
    words = Words("release", "the 2 releases together", ("a.csv", "b.csv"))
    assert sentence_of("inconclusive", (), (part, part), words, lambda _: None) == (
        "Inconclusive in release 1 (a.csv): too few rows; and in release 2 (b.csv). Warning "
        "in releases 1 and 2: dates."
    )


@pytest.mark.parametrize(
    ("part", "all_parts"),
    [("stratum", "all strata"), ("column", "all columns"), ("release", "all releases")],
)
def test_a_waived_violation_of_parts_names_who_answers_for_it(part, all_parts):
    waiver = SimpleNamespace(expires="2999-12-31", approved_by="A. Smith")
    accepted = SimpleNamespace(
        id="identifiers", level="warn", verdict="fail", waived=True, waiver=waiver, reason="dates"
    )
    parts = (SimpleNamespace(verdict="pass", checks=(accepted,), sentence=""),) * 3
    words = Words(part, all_parts, ("a", "b", "c"))
    met = f"No violation found: every check of the policy is met, in each {part}."
    assert sentence_of("pass", (), parts, words, lambda _: None) == (
        f"{met} A violation is waived until 2999-12-31 by A. Smith in {all_parts}: dates."
    )
    one = SimpleNamespace(verdict="pass", checks=(), sentence="")
    first = sentence_of("pass", (), (parts[0], one, one), words, lambda _: None)
    assert f" in {words.one(0)}: dates." in first
    stated = (
        "Inconclusive: too few rows. A violation is waived until 2999-12-31 by A. Smith: dates."
    )
    weak = SimpleNamespace(verdict="inconclusive", checks=(accepted,), sentence=stated)
    found = sentence_of("inconclusive", (), (weak, weak, weak), words, lambda _: None)
    assert found.count("A. Smith") == 1


def test_a_waived_violation_of_strata_is_said_where_the_column_decides():
    waiver = SimpleNamespace(expires="2999-12-31", approved_by="A. Smith")
    known = {"waived": True, "waiver": waiver, "reason": "they leak"}
    accepted = SimpleNamespace(id="claimed-epsilon", level="error", verdict="fail", **known)
    release = SimpleNamespace(label="north")
    stratum = SimpleNamespace(
        verdict="pass", decision="publish", checks=(accepted,), release=release, next_steps=()
    )
    said = "Inconclusive: too few rows."
    found, _ = of_strata(said, (), "inconclusive", "not yet", (), (stratum,))
    assert found == (
        f"{said} A violation is waived until 2999-12-31 by A. Smith in stratum north: they leak."
    )


def answered_by(check="claimed-epsilon", verdict="fail", **known):
    facts = {"level": "error", "waived": None, "reason": "", "confidence": 0.95, "limit": 1.0}
    return SimpleNamespace(id=check, verdict=verdict, **facts | {"observed": None} | known)


def failing(steps=("Compare the release code.",)):
    release = SimpleNamespace(truth=True)
    return SimpleNamespace(
        verdict="fail",
        decision="do not publish",
        checks=(),
        audits=(),
        release=release,
        next_steps=steps,
    )


def test_after_a_violation_more_rows_are_no_step():
    words = Words("column", "the 2 columns together", ("a", "b"))
    weak = answered_by(verdict="inconclusive", observed=0.4)
    steps = steps_of((weak,), (failing(), failing()), words, None)
    assert steps == ("Compare the release code.",)
    honest = failing()
    honest.verdict, honest.decision, honest.next_steps = "pass", "publish", ()
    (step,) = steps_of((weak,), (honest, honest), words, None)
    assert step.startswith("Release more rows")


@pytest.mark.parametrize("jointly", [True, False])
def test_a_joint_mechanism_is_advised_where_none_is_declared(jointly):
    words = Words("column", "the 2 columns together", ("a", "b"), jointly=jointly)
    steps = steps_of((answered_by("claimed-channel"),), (failing(), failing()), words, None)
    assert ("declared joint mechanism" in steps[0]) == jointly
    assert ("by one joint mechanism, and declare that one" in steps[0]) != jointly


@pytest.mark.parametrize(
    ("verdicts", "end"),
    [
        (("fail", "pass"), "; the audit of column vote fails, too."),
        (("fail", "fail"), "; the audits of columns vote and income fail, too."),
    ],
)
def test_a_column_is_not_said_to_fail_alone(verdicts, end):
    """Noise that goes along with another column's fails there, although the column keeps its ε."""
    check = SimpleNamespace(
        id="claimed-epsilon",
        level="error",
        verdict="fail",
        waived=None,
        reason="they leak more",
        confidence=None,
    )
    parts = tuple(SimpleNamespace(verdict=one, checks=()) for one in verdicts)
    words = Words("column", "the 2 columns together", ("vote", "income"))
    found = sentence_of("fail", (check,), parts, words, lambda _: None)
    assert found == f"Violation found: they leak more{end}"


def test_a_pass_names_the_limit_that_was_judged():
    check = SimpleNamespace(
        id="claimed-epsilon",
        level="error",
        verdict="pass",
        waived=None,
        observed=3.0,
        limit=3.6,
        confidence=0.95,
        reason="they are not shown to leak more",
    )
    words = Words("release", "the 2 releases together", ("a.csv", "b.csv"))
    claim = ClaimSection(epsilon_total=5).of(everything=True, one_release=False)
    found = sentence_of("pass", (check,), (), words, lambda _: None, claim)
    assert "ε = 3.6 of the 2 releases together (the policy allows 5 in total), nor" in found


def test_a_node_that_declares_more_than_is_allowed():
    allowed = default_policy().model_copy(update={"claim": ClaimSection(epsilon=2.0)})
    mine = node(3.0, policy=allowed)
    draft = next(d for d in drafts_of(mine) if d.id == "claimed-epsilon")
    answer = draft.test(0.05)
    assert (answer.verdict, answer.observed) == ("fail", 3.0)
    assert "ε = 3 is declared, and the policy allows 2" in answer.reason


def draft(mine, check):
    return next((one for one in drafts_of(mine) if one.id == check), None)


def test_where_all_noise_is_drawn_again_no_bound_is_asked_for():
    proven = (SimpleNamespace(proven=True),) * 2
    mine = node(2.0, 9.0, p_value=1e-9, replays=proven)
    found = draft(mine, "claimed-epsilon")
    assert (found.no_test, found.test(0.05).verdict) == (True, "pass")
    assert found.test(0.05).reason == "the noise was drawn again, and every label is as drawn"
    assert draft(mine, "claimed-channel") is None
    for other in (node(math.inf, 9.0, replays=proven), node(2.0, 9.0)):
        assert draft(other, "claimed-epsilon").no_test is False
    mixed = (proven[0], SimpleNamespace(proven=False))
    assert draft(node(2.0, 9.0, replays=mixed), "claimed-epsilon").no_test is False


def test_how_draws_go_together_is_said():
    for p_value, verdict, reason in (
        (0.01, "fail", "they do not"),
        (0.9, "pass", "the joint draws agree with what is declared"),
    ):
        found = draft(node(p_value=p_value, odd="they do not"), "claimed-channel").test(0.05)
        assert (found.verdict, found.reason) == (verdict, reason)
