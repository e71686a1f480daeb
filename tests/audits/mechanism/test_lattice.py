"""Noise in steps of this package is not taken for a poor generator's."""

import numpy as np
import pandas as pd
import pytest
from estimators.epsilon.test_lattice import off_the_grid

import ldpaudit
from ldpaudit.estimators.epsilon.lattice import lattice_evidence
from ldpaudit.mechanisms import LabelRange, Mechanism
from ldpaudit.mechanisms.noise import DiscreteLaplace, Laplace, RangeFamily, Staircase
from ldpaudit.result import AuditResult

RANGE = LabelRange(0.0, 10.0)


def audited(claim: Mechanism, released: np.ndarray, truth: np.ndarray) -> AuditResult:
    frame = pd.DataFrame({"x": np.arange(len(truth)) % 7, "label": released})
    return ldpaudit.audit(frame, truth, claim, only=("mechanism",), rng=1, threads=1)


@pytest.mark.parametrize(("family", "whole"), [(Laplace, False), (Staircase, True)])
def test_noise_in_1024_steps_is_honest(family: RangeFamily, whole: bool) -> None:
    rng, claim = np.random.default_rng(3), family(RANGE, 1.0)
    truth = rng.uniform(0, 10, 2000)
    truth = np.rint(truth) if whole else truth
    result = audited(claim, claim.release(truth, rng), truth)
    assert result.verdict != "fail"
    assert not [note for note in result.notes if "few values" in note.text]


def test_noise_with_few_values_is_warned_of() -> None:
    rng, claim = np.random.default_rng(3), Laplace(RANGE, 1.0)
    truth = rng.integers(0, 11, 4000).astype(float)
    result = audited(claim, truth + rng.choice(rng.laplace(0, 10, 1024), 4000), truth)
    assert [note for note in result.notes if "few values" in note.text]


def test_the_bound_from_digits_is_at_its_share_of_the_error() -> None:
    """Cents to which whole noise was added: the digits tell labels apart."""
    rng, claim = np.random.default_rng(3), Laplace(RANGE, 1.0)
    truth = np.round(rng.uniform(0, 10, 1_000), 2)
    released = truth + np.rint(rng.laplace(0, 10, 1_000))
    result = audited(claim, released, truth)
    found = result.estimate("mechanism.lattice_epsilon_lower")
    evidence = lattice_evidence(truth, released, np.random.default_rng(0))
    assert evidence is not None
    # Which digits and which half are chosen at random, so the bound is only near another draw's.
    bounds = [evidence.bound(0.05 * share).epsilon for share in (0.02, 1.0)]
    assert found.value == pytest.approx(bounds[0], abs=0.3)
    assert bounds[1] - bounds[0] > 0.6


@pytest.mark.parametrize(
    ("kind", "text"),
    [("in the clear", "look for a branch"), ("in 1,024 steps", "The finer digits of the released")],
)
def test_true_numbers_in_released_ones_are_a_violation(kind: str, text: str) -> None:
    rng, claim = np.random.default_rng(4), Laplace(RANGE, 3.0)
    truth, released = off_the_grid(kind, 3.0, 3_000, rng)
    result = audited(claim, released, truth)
    assert result.verdict == "fail"
    assert "claimed-epsilon" in [one.id for one in result.checks if one.verdict == "fail"]
    assert any(text in note.text for note in result.notes)
    assert any("some numbers are released as they are" in step for step in result.next_steps)


def test_of_a_larger_epsilon_it_is_not_said_that_numbers_are_kept() -> None:
    """Noise in steps leaves some numbers as they were: the more, the larger ε is."""
    rng, weeks = np.random.default_rng(3), LabelRange(0, 100, 1)
    truth = rng.integers(0, 101, 10_000)
    released = DiscreteLaplace(weeks, 10.0).release(truth, rng)
    result = audited(DiscreteLaplace(weeks, 1.0), released, truth)
    assert result.verdict == "fail"
    assert "the counts fit ε = " in result.next_steps[0]
    texts = " ".join(note.text for note in result.notes)
    assert "true numbers of some rows" not in texts
