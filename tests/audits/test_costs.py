"""The plan before long work: what is going to be done, about how long it takes, and the memory."""

import time
from dataclasses import replace

import numpy as np
import pytest
from releases import written

from ldpaudit.audits.costs import cost_of, plan_line
from ldpaudit.audits.interface import AuditContext, Cost, Plan
from ldpaudit.audits.label_inference.audit import LabelInferenceAudit
from ldpaudit.audits.running import load
from ldpaudit.datasets import read_release
from ldpaudit.mechanisms import from_declaration
from ldpaudit.mechanisms.coding import DeclaredCoding
from ldpaudit.pipeline import AUDITS


@pytest.fixture(scope="module")
def context(tmp_path_factory: pytest.TempPathFactory) -> AuditContext:
    path, truth = written(tmp_path_factory.mktemp("release"), rows=400)
    release = read_release(str(path), truth=str(truth), coding=DeclaredCoding).release
    claim = from_declaration(release.declaration, release.classes)
    return AuditContext(release, claim, Plan(seed=1))


def test_long_work_is_announced_in_one_line(context: AuditContext) -> None:
    costs = [Cost(170.0, memory=2**30, words="12 attacks"), Cost(20.0)]
    said = "400 rows × 4 columns: 12 attacks, about 3 min, about 1.6 of at most "
    assert plan_line(context, costs).startswith(said)
    limited = replace(context, plan=replace(context.plan, memory=2**30))
    assert plan_line(limited, costs).endswith("about 1.0 of at most 1.0 GiB")
    assert plan_line(context, [Cost(9.0)]) == ""
    assert plan_line(context, []) == ""


def test_every_audit_has_a_prediction_that_grows_with_the_rows(context: AuditContext) -> None:
    release = context.release
    rows = np.tile(np.arange(len(release)), 1000)
    larger = replace(context, release=release.take(rows))
    for name, place in AUDITS.items():
        audit = load(place)
        small, large = (cost_of(name, audit, c).seconds for c in (context, larger))
        assert 0.1 < small <= large < 200, name
        assert large > small or name == "seeds"


def test_the_attacks_of_the_plan_are_those_that_run(context: AuditContext) -> None:
    audit = LabelInferenceAudit()
    context = replace(context, plan=replace(context.plan, budget=1.0))
    start = time.process_time()
    cost = audit.cost(context)
    assert time.process_time() - start < 1
    ran = {e.score.subject for e in audit.run(context).estimates if e.score is not None}
    attacks = ran - {"best", "prior", "features-only", "optimum", "ceiling", "ceiling-estimate"}
    assert cost.words == f"{len(attacks)} attacks"


def test_the_search_is_announced(context: AuditContext) -> None:
    rows = np.tile(np.arange(len(context.release)), 1000)
    large = replace(context, release=context.release.take(rows))
    audit = load(AUDITS["instance-loss"])
    usual = cost_of("instance-loss", audit, large)
    assert usual.words == "neighbours of 20,000 rows"
    every = replace(large, plan=replace(large.plan, queries="all"))
    assert cost_of("instance-loss", audit, every).words == "neighbours of 200,000 rows"
    assert cost_of("instance-loss", audit, every).memory > usual.memory
    exact = replace(every, plan=replace(every.plan, exact=True))
    assert cost_of("instance-loss", audit, exact).seconds > 100
    assert cost_of("instance-loss", audit, context).words == "neighbours of 200 rows"
