import math
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest
from audits.found import check
from audits.found import value as named
from levels import check_level
from scipy.stats import binom
from worlds import feature_table

from ldpaudit.audits.interface import AuditContext, Plan
from ldpaudit.audits.mechanism.audit import AUDIT
from ldpaudit.audits.power import AUDIT as POWER
from ldpaudit.audits.power import excess_by_released_labels
from ldpaudit.doors import Declaration, read_release
from ldpaudit.error_budget import PROOFS
from ldpaudit.errors import InsufficientDataError
from ldpaudit.extras.kinds.mechanisms.with_features import DoubleRR
from ldpaudit.mechanisms import Channel, ExplicitChannel, Mechanism, UnknownMechanism
from ldpaudit.mechanisms.label_range import LabelRange
from ldpaudit.mechanisms.noise import DiscreteLaplace, Laplace
from ldpaudit.mechanisms.registry import from_declaration
from ldpaudit.mechanisms.response import RandomizedResponse
from ldpaudit.mechanisms.view import DeclaredCoding
from ldpaudit.options.allowed_excess import AllowedExcess
from ldpaudit.release import FeatureTable, Release, ReleasedLabels, TrueLabels
from ldpaudit.result import Finding
from ldpaudit.result.stated import EXCESS, INSIDER

SKEWED = [(500, 0.08), (2000, 0.03), (10_000, 0.02)]


def binary(epsilon: float) -> RandomizedResponse:
    return RandomizedResponse.from_epsilon((0, 1), epsilon)


def context(
    claim: Mechanism,
    n: int,
    *,
    epsilon: float = 1.0,
    seed: int = 0,
    with_truth: bool = True,
    features: bool = True,
    share: float = 0.3,
) -> AuditContext:
    rng = np.random.default_rng(seed)
    truth = np.zeros(n, dtype=np.int32)
    truth[: int(share * n)] = 1
    points = rng.normal(size=(n, 2 if features else 0)).astype(np.float32)
    if features:
        points[:, 0] += 6 * truth
    release = Release(
        features=feature_table(points),
        released=ReleasedLabels(binary(epsilon).sample(truth, rng)),
        outputs=(0, 1),
        classes=(0, 1),
        truth=TrueLabels(truth) if with_truth else None,
    )
    return AuditContext(release, claim, Plan(seed=seed))


@cache
def found(n: int, **options: Any) -> Finding:
    return POWER.run(context(options.pop("claim", binary(1.0)), n, **options))


def value(finding: Finding, name: str = EXCESS) -> float:
    return named(finding, name)


def test_more_rows_find_less() -> None:
    excess = [value(found(n)) for n in (1000, 4_000, 16_000)]
    assert excess == sorted(excess, reverse=True)
    assert excess[0] / excess[2] == pytest.approx(4, rel=0.3)


def test_a_release_at_the_stated_excess_is_found_nine_times_in_ten() -> None:
    runs, hits, level = 40, 0, PROOFS.of(0.05, "insider")
    excess = value(found(1000))
    for seed in range(runs):
        audited = context(binary(1.0), 1000, epsilon=1.0 + excess, seed=seed, features=False)
        hits += AUDIT.run(audited).bounds[INSIDER](level) > 1.0
    # Binomial(40, 0.9) is below with probability 1e-4; the seeds are fixed.
    assert hits >= 28


def test_the_level_is_the_insiders_share() -> None:
    finding = found(5000)
    bound, excess = finding.bounds[EXCESS], finding.estimates[0]
    assert bound(0.05) == pytest.approx(excess.value, abs=1e-3)
    assert f"at level {1 - PROOFS.of(0.05, 'insider'):.4g}" in excess.method
    assert bound(0.01) > bound(0.05)


def test_rows_needed_for_the_target_of_the_plan() -> None:
    more = value(found(100), "power.rows_needed")
    assert more > 0
    assert value(found(100)) > 0.5
    assert value(found(int(100 + 1.03 * more))) <= 1.02 * 0.5
    assert value(found(16_000), "power.rows_needed") == 0
    audited = context(binary(1.0), 1000)
    plan = replace(audited.plan, max_undetected_excess=AllowedExcess(0.01, 0.0))
    assert value(POWER.run(replace(audited, plan=plan)), "power.rows_needed") > 100_000


def test_no_excess_can_be_found_in_few_rows() -> None:
    finding = found(100, claim=binary(6.0))
    check(finding, {EXCESS: math.inf}, "no excess")


def test_without_truth_the_power_is_estimated() -> None:
    finding = found(5000, with_truth=False)
    estimate, rows, with_truth, _ = finding.estimates
    insider = value(found(5000))
    check(finding, {EXCESS: "estimated", "power.rows_needed": "estimated"})
    assert (estimate.id, rows.id) == (EXCESS, "power.rows_needed")
    assert estimate.assumptions
    assert insider < estimate.value < 0.6
    assert with_truth.value == pytest.approx(insider, rel=0.1)


def test_the_outsiders_estimate_is_about_right() -> None:
    n = 2000
    excess = value(found(n, with_truth=False))
    hits = 0
    for seed in range(1, 5):
        audited = context(binary(1.0), n, epsilon=1.0 + excess, seed=seed, with_truth=False)
        # Balls alone are quick; the model's groups would only add to it.
        hits += AUDIT.run(audited).bounds["release_only.epsilon_lower"](0.05) > 1.0
    assert hits >= 3


def test_other_claims_have_a_power_of_their_own() -> None:
    claim = ExplicitChannel(Channel(np.array([[0.9, 0.1], [0.5, 0.5]]), (0, 1), (0, 1)))
    assert 0.0 < value(found(4_000, claim=claim)) < 0.5
    outsider = found(4_000, claim=claim, with_truth=False)
    # Half of one label's outputs are always wrong: no such channel lets the release alone show it.
    check(outsider, {EXCESS: math.inf}, "no excess")
    undeclared = value(found(10_000, claim=UnknownMechanism()), "power.detectable_epsilon")
    assert 0.03 < undeclared < 0.12
    assert 0 < value(found(4000, claim=RandomizedResponse((0, 1), 1.0))) < 0.5


def test_when_nothing_can_be_said() -> None:
    for audited, why in (
        (context(binary(1.0), 1000), None),
        (context(UnknownMechanism(), 1000, with_truth=False), "no true labels"),
        (context(RandomizedResponse((0, 1), 0.0), 1000), "infinite"),
    ):
        reason = POWER.unavailable(audited)
        assert reason is None if why is None else why in reason
    for audited, why in (
        (context(binary(1.0), 1000, share=0.0), "two classes"),
        (context(binary(1.0), 200, with_truth=False), "400 rows"),
    ):
        with pytest.raises(InsufficientDataError, match=why):
            POWER.run(audited)


def test_numbers_in_the_clear() -> None:
    """What is stated to be found is found: a share of all rows, and a group told apart."""
    finding = found(5000)
    share, group = (
        next(e for e in finding.estimates if e.id == f"power.smallest_clear_{what}")
        for what in ("share", "group")
    )
    assert (share.kind, group.kind) == ("estimated", "estimated")
    assert 0.005 < share.value < 0.1
    assert 50 < group.value < 500
    assert finding.bounds[group.id](1e-9) > group.value
    assert finding.bounds[share.id](0.001) > share.value


NUMERIC = {
    "laplace": Laplace(LabelRange(0.0, 10.0), 3.0),
    "staircase": from_declaration(
        Declaration("staircase", {"low": 0, "high": 10, "epsilon": 1.0}), ()
    ),
    "discrete-laplace": DiscreteLaplace(LabelRange(0, 20, 1), 3.0),
}


def numbers_released(claim: Any, made_by: Any, seed: int, n: int = 3000) -> AuditContext:
    rng, (low, high) = np.random.default_rng(seed), claim.label_bounds
    truth = low + (high - low) * rng.beta(2.0, 3.0, n)
    truth = truth if claim.output_step is None else np.rint(truth).astype(int)
    frame = pd.DataFrame({"a": np.zeros(n), "label": made_by.release(truth, rng)})
    stated = Declaration(claim.traits.name, claim.declaration())
    release = read_release(frame, truth=truth, declaration=stated, coding=DeclaredCoding).release
    return AuditContext(release, claim, Plan(seed=seed))


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.validate) for name in NUMERIC]
)
def test_numbers_of_the_same_mechanism_are_found_as_often_as_is_stated(name) -> None:
    """In bins, a mechanism at a larger ε is not its own channel with sharper entries."""
    claim = NUMERIC[name]
    level = PROOFS.of(0.05, "insider")
    excess = value(POWER.run(numbers_released(claim, claim, 0)))
    stated = {**claim.declaration(), "epsilon": claim.epsilon + excess}
    worse = from_declaration(Declaration(claim.traits.name, stated), ())

    def missed(seed: int) -> bool:
        audited = numbers_released(claim, worse, 1 + seed)
        return AUDIT.run(audited).bounds[INSIDER](level) <= claim.epsilon

    check_level(missed, 200, 0.13)
    assert excess < 5


def test_double_randomized_response_has_a_power_without_truth() -> None:
    claim = DoubleRR((0, 1), binary(2.0).noise)
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, 10_000).astype(np.int32)
    shown = np.where(rng.random(10_000) < claim.noise, rng.integers(0, 2, 10_000), truth)
    points = (rng.normal(size=(10_000, 2)) + 6 * shown[:, None]).astype(np.float32)
    release = Release(
        features=feature_table(points),
        released=ReleasedLabels(binary(2.0).sample(truth, rng)),
        outputs=(0, 1),
        classes=(0, 1),
    )
    excess = value(POWER.run(AuditContext(release, claim, Plan(seed=0))))
    # Features keep less of the label than the label itself: far from what plain RR would show.
    assert 0.6 < excess < 1.3


@pytest.mark.validate
@pytest.mark.parametrize(
    ("rows", "share", "draws"),
    [(rows, share, 200) for rows, share in SKEWED],
)
def test_power_by_released_labels_is_no_larger_than_by_true_ones(
    rows: int, share: float, draws: int
) -> None:
    """Classes are taken for as small as the released labels allow at 95 %."""
    exact = value(found(rows, share=share))

    def smaller(seed: int) -> bool:
        one = context(binary(1.0), rows, share=share, seed=seed, with_truth=False)
        excess = excess_by_released_labels(one, 0.05)
        return excess is not None and excess < exact

    check_level(smaller, draws, 0.05)


@pytest.mark.parametrize("draws", [12, pytest.param(600, marks=pytest.mark.validate)])
def test_released_labels_of_one_of_many_classes_show_no_power(draws: int) -> None:
    """A bound for each class alone shows some in every sixth table."""
    claim = RandomizedResponse.from_epsilon(tuple(range(10)), 2.0)
    truth = np.zeros(2000, dtype=np.int32)

    def shown(seed: int) -> bool:
        release = Release(
            features=FeatureTable(np.zeros((2000, 0), np.float32), np.zeros((2000, 0), int), (), 0),
            released=ReleasedLabels(claim.sample(truth, np.random.default_rng([5, seed]))),
            outputs=claim.classes,
            classes=claim.classes,
        )
        alone = AuditContext(release, claim, Plan(seed=0))
        return excess_by_released_labels(alone, 0.05) is not None

    if draws > 100:
        check_level(shown, draws, 0.05)
    else:
        assert sum(map(shown, range(draws))) <= binom.isf(0.05, draws, 0.05)


def test_power_by_released_labels_is_near_that_by_true_ones() -> None:
    rows = 2000
    exact = value(found(rows, share=0.4))
    outside = context(binary(1.0), rows, share=0.4, with_truth=False)
    assert excess_by_released_labels(outside, 0.05) == pytest.approx(exact, rel=0.3)
    one_class = context(binary(1.0), 60, share=0.0, with_truth=False)
    assert excess_by_released_labels(one_class, 0.05) is None
