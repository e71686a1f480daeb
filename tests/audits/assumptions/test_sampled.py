"""Groups of many rows are looked at in a sample: as valid, and as sure to find planted faults."""

from types import SimpleNamespace

import numpy as np
import pytest
from estimators.worlds import allowed
from worlds import feature_table

from ldpaudit.audits.assumptions import noise, rows
from ldpaudit.audits.assumptions.noise import white_noise
from ldpaudit.audits.assumptions.places import every_code, groups
from ldpaudit.audits.assumptions.rows import noise_clusters
from ldpaudit.audits.interface import AuditContext, Plan
from ldpaudit.mechanisms import RandomizedResponse
from ldpaudit.release import BoolArray, FloatArray, IntArray, Release, ReleasedLabels, TrueLabels

N, MOST = 15_000, 6_000
CLAIM = RandomizedResponse.from_epsilon(("a", "b"), 1.0)
LOST = 1 / (1 + np.e)


def context_of(
    seed: int, flips: BoolArray, truth: IntArray, numbers: FloatArray, codes: IntArray
) -> AuditContext:
    released = np.where(flips, 1 - truth, truth).astype(np.int32)
    release = Release(
        feature_table(numbers, codes),
        ReleasedLabels(released),
        ("a", "b"),
        ("a", "b"),
        TrueLabels(truth),
        before=frozenset(range(numbers.shape[1] + codes.shape[1])),
    )
    return AuditContext(release, CLAIM, Plan(seed=seed, effort="small"))


def planted(seed: int, kind: str = "honest") -> AuditContext:
    """Return a release: a number, a site of 20, and people who have two or three rows each."""
    rng = np.random.default_rng(seed)
    truth = (rng.random(N) < 0.4).astype(np.int32)
    numbers = truth[:, None] + rng.standard_normal((N, 1))
    site, person = rng.integers(0, 20, N), rng.permutation(N) // 3
    flips = rng.random(N) < LOST
    if kind == "site":
        flips &= site != 7
    if kind == "range":
        flips &= np.abs(numbers[:, 0] - 2.0) > 0.2
    if kind == "person":
        flips = (rng.random(N) < LOST)[person]
    return context_of(seed, flips, truth, numbers, np.column_stack([site, person]))


@pytest.fixture(autouse=True)
def sampled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(noise, "MOST_GROUPED", MOST)


def test_codes_of_a_sample_are_those_of_all_rows() -> None:
    context = planted(1)
    every = {(one.name, one.columns): one for one in groups(context)}
    for one in groups(context, MOST):
        whole = every[one.name, one.columns]
        assert (every_code(context, one) == whole.codes).all()
        if one.columns == (2,):  # People with few rows each: none is left out.
            assert not one.sampled
            assert (one.codes == whole.codes).all()
            continue
        if one.name not in ("value", "range"):
            continue
        assert one.sampled
        assert len(one.rows) == MOST
        if one.name == "value":
            pairs = np.unique(np.column_stack([one.codes, whole.codes])[one.rows], axis=0)
            assert len(pairs) == len(np.unique(whole.codes))


@pytest.mark.parametrize("kind", ["site", "range", "person"])
def test_planted_faults_are_found(kind: str) -> None:
    found = white_noise(planted(2, kind))
    assert found.p_value(dependence=kind != "person") < 1e-6


def test_rows_that_share_noise_are_those_of_all_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    context = planted(3)
    sites = next(one for one in groups(context, MOST) if (one.name, one.columns) == ("value", (1,)))
    assert sites.sampled
    departure = SimpleNamespace(where=sites, family="groups", opposite=False)
    monkeypatch.setattr(rows, "shared", lambda _: [SimpleNamespace(departure=departure)])
    clusters, site = noise_clusters(context), context.release.features.categorical[:, 0]
    assert clusters is not None
    assert len(np.unique(np.column_stack([clusters, site]), axis=0)) == 20


def too_often(runs: int) -> None:
    found = np.array([white_noise(planted(seed)).p_value() for seed in range(runs)])
    for alpha in (0.01, 0.05, 0.2):  # Each fails by chance once in 1e5.
        assert np.sum(found <= alpha) <= allowed(runs, alpha)


def test_white_noise_is_seldom_accused() -> None:
    too_often(2)


@pytest.mark.validate
def test_p_values_are_valid() -> None:
    too_often(200)
