"""Rows with equal features: a fair matching, and a bound that holds and finds leaks."""

import numpy as np
import pytest

from ldpaudit.estimators.epsilon.matched.bound import matched_bound
from ldpaudit.estimators.epsilon.matched.rows import RATIOS, MatchedCounts, match
from ldpaudit.mechanisms import Channel
from ldpaudit.mechanisms.response.model_based_rr import ModelBasedRR


def people(rng, n=3000, groups=60, k=2):
    group = rng.integers(0, groups, n)
    eta = rng.dirichlet(np.full(k, 0.5), groups)
    labels = (rng.random(n)[:, None] > np.cumsum(eta[group], axis=1)).sum(axis=1)
    return group, np.minimum(labels, k - 1).astype(np.int32), eta


@pytest.mark.parametrize("k", [2, 4])
@pytest.mark.parametrize("ratio", RATIOS)
def test_every_case_has_its_controls(k, ratio):
    rng = np.random.default_rng(3)
    group, labels, _ = people(rng, k=k)
    found = match(group, labels, k, ratio, rng)
    assert len(set(found.cases) | set(found.controls)) == len(found.cases) * (1 + ratio)
    assert (labels[found.cases] == found.targets[group[found.cases]]).all()
    assert (labels[found.controls] != found.targets[group[found.controls]]).all()
    cases = np.bincount(group[found.cases], minlength=60)
    assert (np.bincount(group[found.controls], minlength=60) == ratio * cases).all()
    best = [
        max(min(int((own == y).sum()), int((own != y).sum()) // ratio) for y in range(k))
        for own in (labels[group == g] for g in range(60))
    ]
    assert cases.tolist() == best


def bound(seed, noise, floor, alpha=0.05, wrong=False, k=2):
    rng = np.random.default_rng(seed)
    group, labels, eta = people(rng, k=k)
    model = rng.dirichlet(np.full(k, 0.5), len(eta)) if wrong else eta
    made = ModelBasedRR(tuple(range(k)), noise, floor)
    released = made.sample(labels, model[group], rng)
    exact = max(Channel(c, made.classes, made.classes).epsilon for c in made.channels(model))
    counts = []
    for ratio in RATIOS:
        found = match(group, labels, k, ratio, rng)
        event = released == found.targets[group]
        counts.append(MatchedCounts.of(found, event))
    return matched_bound(counts, alpha).epsilon, exact


@pytest.mark.parametrize("wrong", [False, True])
def test_a_release_that_follows_the_features_alone_is_not_accused(wrong):
    """At λ = 1 nothing leaks, although labels and released labels agree more than by chance.

    At a level of 50 % more than 78 misses of 100 have a probability below 1e-8; the bound is
    conservative, so far fewer are seen.
    """
    missed = sum(bound(seed, 1.0, 0.0, 0.5, wrong)[0] > 0 for seed in range(100))
    assert missed <= 78
    at_five = sum(bound(seed, 1.0, 0.0, 0.05, wrong)[0] > 0 for seed in range(100, 200))
    assert at_five <= 16  # Of 100 at 5 %: above with probability 1e-5.


def test_channels_alike_in_every_group_are_bounded_at_the_level():
    """With P̂ the same everywhere the average channel is every channel: the bound could be missed.

    Of 200 at 5 % more than 24 have a probability below 1e-4.
    """
    missed, found = 0, []
    for seed in range(200):
        rng = np.random.default_rng(seed)
        group, labels, _ = people(rng, 2000, 40)
        made = ModelBasedRR((0, 1), 0.5, 0.5)
        released = made.sample(labels, np.full((2000, 2), 0.5), rng)
        matchings = [match(group, labels, 2, ratio, rng) for ratio in RATIOS]
        counts = [MatchedCounts.of(m, released == m.targets[group]) for m in matchings]
        lower = matched_bound(counts, 0.05).epsilon
        missed += lower > made.epsilon
        found.append(lower)
    assert missed <= 24
    assert np.median(found) > 0.75 * made.epsilon


def test_a_planted_leak_is_found():
    """λ = 0.05 in place of 0.5 and a floor of 0.05: the claim of ε = 3.04 is refuted."""
    claimed = ModelBasedRR((0, 1), 0.5, 0.05).epsilon
    assert all(bound(seed, 0.05, 0.05)[0] > claimed for seed in range(5))
    lower, exact = bound(0, 0.5, 0.05, k=4)
    assert 1.0 < lower <= exact


@pytest.mark.validate
@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("wrong", [False, True])
def test_the_bound_holds_over_many_releases(k, wrong):
    """Of 1,000 at 5 % more than 80 have a probability below 1e-4."""
    pairs = [bound(seed, 0.6, 0.1, 0.05, wrong, k) for seed in range(1000)]
    assert sum(lower > exact for lower, exact in pairs) <= 80
    nothing = [bound(seed, 1.0, 0.0, 0.05, wrong, k)[0] for seed in range(1000)]
    assert sum(lower > 0 for lower in nothing) <= 80


def test_nothing_to_match_gives_zero():
    groups, labels = np.arange(10), np.arange(10, dtype=np.int32) % 2
    found = match(groups, labels, 2, 1, np.random.default_rng(0))
    assert len(found.cases) == 0
    assert (found.targets == -1).all()
    assert matched_bound([MatchedCounts.of(found, labels == 1)], 0.05).epsilon == 0
