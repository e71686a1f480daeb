"""Rows with equal features: a fair matching, of labels that a model finds improbable."""

import numpy as np
import pytest
from estimators.worlds import matched, people

from ldpaudit.extras.kinds.mechanisms.with_features import ModelBasedRR
from ldpaudit.extras.kinds.observational.matched import (
    RATIOS,
    designed_matching,
    match,
)


@pytest.mark.parametrize("k", [2, 4])
@pytest.mark.parametrize("ratio", RATIOS)
def test_every_case_has_its_controls(k: int, ratio: int) -> None:
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


@pytest.mark.parametrize("n", [4000, 30])
def test_designed_cases_are_of_labels_that_the_model_finds_improbable(n: int) -> None:
    rng = np.random.default_rng(0)
    scores = np.array([[0.5, 0.5], [0.95, 0.05], [0.02, 0.98], [0.6, 0.4]])
    groups = rng.integers(0, 4, n)
    labels = (rng.random(n) < scores[groups, 1]).astype(np.int32)
    chosen = designed_matching(groups, labels, scores, 0.5, rng)
    assert (chosen is None) == (n < 100)
    if chosen is not None:
        assert chosen.targets[0] == chosen.targets[3] == -1
        assert (labels[chosen.cases] == chosen.targets[groups[chosen.cases]]).all()
        own, other = (np.bincount(groups[r], minlength=4) for r in (chosen.cases, chosen.controls))
        assert (other == chosen.ratio * own).all()


def test_a_planted_leak_is_found() -> None:
    """λ = 0.05 in place of 0.5 and a floor of 0.05: the claim of ε = 3.04 is refuted."""
    claimed, leak = ModelBasedRR((0, 1), 0.5, 0.05).epsilon, matched(0.05, 0.05)
    assert all(leak.draw(np.random.default_rng(seed))(0.05) > claimed for seed in range(5))
