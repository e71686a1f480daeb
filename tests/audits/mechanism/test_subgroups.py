"""Groups of rows that a model finds: planted leaks that averages do not show."""

import numpy as np
import pytest
from releases import table

import ldpaudit
from ldpaudit.audits.interface import AuditContext, Plan
from ldpaudit.audits.mechanism.audit import AUDIT
from ldpaudit.audits.mechanism.evidence import subgroup_evidence
from ldpaudit.error_budget import PROOFS
from ldpaudit.mechanisms import RandomizedResponse
from ldpaudit.release import FeatureTable, FloatArray, Release, ReleasedLabels, TrueLabels
from ldpaudit.result.stated import SUBGROUPS

KEEP = float(np.e / (1 + np.e))
N = 6_000


def audited(keep: FloatArray, ages: FloatArray, seed: int, *, truth: bool = True) -> AuditContext:
    """Return a release at a claimed ε = 1 that keeps each row's label with its own chance."""
    rng = np.random.default_rng(seed)
    n = len(ages)
    noise = rng.normal(size=(n, 4))
    labels = (noise[:, 0] + 0.03 * (ages - 50) + rng.normal(size=n) > 0).astype(np.int32)
    released = np.where(rng.random(n) < keep, labels, 1 - labels).astype(np.int32)
    numbers = np.column_stack([ages, noise]).astype(np.float32)
    towns = rng.integers(0, 12, (n, 1)).astype(np.int32)
    release = Release(
        features=FeatureTable(numbers, towns, (12,), 6),
        released=ReleasedLabels(released),
        outputs=(0, 1),
        classes=(0, 1),
        truth=TrueLabels(labels) if truth else None,
        before=frozenset(range(6)),
    )
    return AuditContext(release, RandomizedResponse.from_epsilon((0, 1), 1.0), Plan(seed=seed))


def bound(context: AuditContext) -> float:
    groups = subgroup_evidence(context)
    assert not isinstance(groups, str)
    return groups.bound(PROOFS.of(0.05, "subgroups")).epsilon


def people(seed: int, n: int = N) -> FloatArray:
    return np.random.default_rng(100 + seed).uniform(18, 98, n)


def compensated(inside: FloatArray, chance: float) -> FloatArray:
    """Return chances that are ``chance`` inside, and as claimed on average."""
    share = inside.mean()
    return np.where(inside, chance, (KEEP - chance * share) / (1 - share))


@pytest.mark.parametrize(("share", "least"), [(0.07, 1.5), (0.15, 2.5)])
def test_old_people_in_the_clear_are_found_though_averages_are_right(
    share: float, least: float
) -> None:
    ages = people(0)
    keep = compensated(ages > np.quantile(ages, 1 - share), 1.0)
    assert bound(audited(keep, ages, 0)) > least


def test_noise_that_depends_on_a_feature_is_found() -> None:
    ages = people(0)
    keep = np.where(ages > np.median(ages), 0.96, 2 * KEEP - 0.96)
    assert bound(audited(keep, ages, 0)) > 2.0


def test_an_honest_release_is_not_accused() -> None:
    """At the whole level of 5 %: three misses of four have probability below 5e-4."""
    wrong = 0
    for seed in range(4):
        ages = people(seed, 1500)
        groups = subgroup_evidence(audited(np.full(1500, KEEP), ages, seed))
        assert not isinstance(groups, str)
        wrong += groups.bound(0.05).epsilon > 1.0
    assert wrong < 3


@pytest.mark.parametrize(("oldest", "kind"), [(200, "certified"), (90, "estimated")])
def test_the_audit_has_it_as_a_function_of_the_level(oldest: float, kind: str) -> None:
    """Where features decide the noise it is no certified bound of one channel any more."""
    ages, share = people(1), PROOFS["subgroups"]
    finding = AUDIT.run(audited(compensated(ages > oldest, 1.0), ages, 1))
    estimate = next(e for e in finding.estimates if e.id == SUBGROUPS)
    assert estimate.kind == kind
    assert estimate.value == pytest.approx(finding.bounds[SUBGROUPS](0.05 * share))
    assert finding.bounds[SUBGROUPS](0.001) < finding.bounds[SUBGROUPS](0.05)


def test_it_says_why_there_are_no_groups() -> None:
    ages = people(2, 3000)
    assert subgroup_evidence(audited(np.full(3000, KEEP), ages, 0, truth=False)) == (
        "there are no true labels"
    )
    few = subgroup_evidence(audited(np.full(300, KEEP), ages[:300], 0))
    assert isinstance(few, str)
    assert "400" in few


def test_unknown_columns_are_not_in_doubt_where_all_rows_prove_as_much():
    released, truth = table(rows=3000, made=3.0, claimed=1.0)
    result = ldpaudit.audit(released, truth, only=["assumptions", "mechanism", "power"])
    assert result.verdict == "fail"
    assert result.next_steps[0].startswith("Check which ε the release code was given")
    said = " ".join([*result.next_steps, *(note.text for note in result.notes)])
    assert "there before the noise" not in said
