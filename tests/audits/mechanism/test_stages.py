"""Bounds of a release in stages count its first stage, whose rows have one channel."""

from dataclasses import replace

import numpy as np
import pytest
from levels import check_level
from worlds import feature_table

from ldpaudit.audits.interface import AuditContext, Plan
from ldpaudit.audits.mechanism.audit import AUDIT
from ldpaudit.audits.models import one_channel
from ldpaudit.audits.power import AUDIT as POWER
from ldpaudit.extras.kinds.mechanisms.with_features import STAGED
from ldpaudit.extras.receipt.stages import StagedRelease
from ldpaudit.judging.policy import parse_policy
from ldpaudit.pipeline.audit import audit
from ldpaudit.pipeline.terms import Terms
from ldpaudit.release import Declaration, Release, ReleasedLabels, TrueLabels
from ldpaudit.result.stated import EXCESS, FIRST_STAGE, INSIDER, OUTSIDER, SUBGROUPS

ALPHA = 0.05


def staged(n: int, k: int, made: float, claimed: float, stages: int, seed: int) -> AuditContext:
    """Return the context of a release made at one ε and claimed at another."""
    rng, names = np.random.default_rng(seed), tuple("abcde"[:k])
    truth = rng.choice(k, n, p=rng.dirichlet(np.full(k, 5.0))).astype(np.int32)
    turn = 2 * np.pi * truth / k
    values = 1.5 * np.stack([np.cos(turn), np.sin(turn)], axis=1) + rng.normal(size=(n, 2))
    drawn = StagedRelease(STAGED(names, made, stages), n).draw(values, truth, rng)
    labels, known = ReleasedLabels(drawn), TrueLabels(truth)
    release = Release(feature_table(values), labels, names, names, known)
    return AuditContext(release, STAGED(names, claimed, stages, n), Plan(seed))


def test_the_first_stage_bounds_epsilon() -> None:
    honest = staged(1500, 3, 1.0, 1.0, 3, seed=1)
    found = AUDIT.run(honest)
    estimates = {one.id: one for one in found.estimates}
    bound = estimates[INSIDER]
    assert 0.5 < bound.value <= 1.0
    assert bound.kind == "certified"
    assert 450 < (bound.n or 0) <= 500
    assert FIRST_STAGE in bound.assumptions
    assert "500 rows of the first stage" in " ".join(note.text for note in found.notes)
    # Nothing is said of rows that were not looked at.
    assert {one.id for one in POWER.run(honest).estimates} == {EXCESS}
    leak = AUDIT.run(staged(1500, 3, 4.0, 1.0, 3, seed=2))
    assert leak.bounds[INSIDER](ALPHA) > 1.0
    alone = replace(honest, release=replace(honest.release, truth=None), memo={})
    assert 0 < AUDIT.run(alone).bounds[OUTSIDER](ALPHA) <= 1.0


def test_no_violation_in_the_first_stage_decides_alone_only_where_the_policy_says_so() -> None:
    text = "schema = 1\n[checks.claimed-epsilon]\n[audit]\nmax_undetected_excess = {}"
    found = {}
    for most, made in (("2.0", 1.0), ("'any'", 1.0), ("2.0", 4.0)):
        context = staged(1500, 2, made, 1.0, 2, seed=5)
        declaration = Declaration(context.claim.name, context.claim.declaration())
        result = audit(
            replace(context.release, declaration=declaration),
            Terms(Plan(5, threads=1), parse_policy(text.format(most)), only=("mechanism", "power")),
        )
        found[most, made] = result.decision, result.sentence, result.next_steps[0]
    decision, sentence, step = found["2.0", 1.0]
    assert decision == "not yet"
    assert "in the first of 2 stages, but the channels of later rows" in sentence
    assert "--public" in step
    assert found["'any'", 1.0][0] == "publish"
    assert "in the first of 2 stages, the only one bounded" in found["'any'", 1.0][1]
    assert found["2.0", 4.0][0] == "do not publish"


def test_without_the_rows_that_were_released_no_stage_is_known() -> None:
    context = staged(900, 2, 4.0, 1.0, 2, seed=3)
    for release in (
        context.release.take(np.arange(100, 900)),
        context.release.take(np.arange(850)),
    ):
        fewer = replace(context, release=release, memo={})
        found = AUDIT.run(fewer)
        assert not found.bounds
        assert "how many rows were released" in " ".join(note.text for note in found.notes)
        assert "how many rows" in str(POWER.unavailable(fewer))


def test_a_part_of_the_rows_keeps_its_stages() -> None:
    context = staged(900, 2, 1.0, 1.0, 3, seed=4)
    rows = np.arange(5, 900, 10)
    part = one_channel(context.on_rows(rows, whole=context))
    assert part.release.places is not None
    assert part.release.places.tolist() == list(range(5, 300, 10))
    assert part.whole is not None
    assert len(part.whole.release) == 300


@pytest.mark.validate
def test_honest_stages_are_not_accused_and_leaks_are() -> None:
    def wrong(seed: int) -> bool:
        epsilon = (0.5, 1.0, 2.0, 3.0)[seed // 8 % 4]
        audited = staged(1200, 2 + seed % 4, epsilon, epsilon, 2 + seed // 4 % 2, seed)
        bounds = AUDIT.run(audited).bounds
        return any(bounds[name](ALPHA / 2) > epsilon for name in (INSIDER, SUBGROUPS))

    check_level(wrong, 256, ALPHA, 1e-4)
    for seed in range(8):
        leak = AUDIT.run(staged(5000, 2 + seed % 4, 4.0, 1.0, 2 + seed // 4 % 2, seed))
        assert leak.bounds[INSIDER](0.8 * ALPHA) > 1.0
