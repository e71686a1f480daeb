"""What the observational audit could have found: planted excesses are found as often as stated."""

import math

import numpy as np
import pandas as pd
import pytest
from levels import check_level
from scipy.stats import binom

import ldpaudit
from ldpaudit.audits.interface import AuditContext, Plan
from ldpaudit.audits.power import AUDIT as POWER
from ldpaudit.audits.power import EXCESS
from ldpaudit.errors import InsufficientDataError
from ldpaudit.extras.kinds.audits import OBSERVATIONAL as AUDIT
from ldpaudit.extras.kinds.mechanisms.with_features import ModelBasedRR
from ldpaudit.extras.kinds.observational.audit import LOWER
from ldpaudit.extras.kinds.observational.evidence import evidence_at_hand
from ldpaudit.release import FeatureTable, Release, ReleasedLabels, TrueLabels

FLOOR = 0.2
CLAIM = ModelBasedRR((0, 1), 0.5, FLOOR)


@pytest.fixture(autouse=True)
def _other_evidence_alone(monkeypatch):
    """Leave out the evidence of the public model, which would find more: test_public_model.py."""
    monkeypatch.setattr(
        "ldpaudit.extras.kinds.observational.evidence.model_evidence", lambda _: None
    )


def people(n, rng, *, cells=True, steep=4.0):
    grid = rng.integers(0, 5, (n, 2)) if cells else 5 * rng.random((n, 2))
    x = grid.astype(np.float32)
    eta = 1 / (1 + np.exp(-steep * (x[:, 0] - 2 + 0.5 * (x[:, 1] - 2))))
    return x, 0.05 + 0.9 * eta


def context(n=4000, *, excess=0.0, seed=0, known=True, canaries=0, stated=None, **shape):
    rng = np.random.default_rng(seed)
    x, eta = people(n, rng, **shape)
    truth = (rng.random(n) < eta).astype(np.int32)
    drawn = None
    if canaries:
        rows = rng.permutation(n)[:canaries]
        drawn = np.full((n, 2), np.nan)
        drawn[rows], truth[rows] = 0.5, rng.random(canaries) < 0.5
    posterior = np.column_stack([1 - eta, eta])
    # The claimed mechanism with less noise: e^ε = 1 + (1 − λ)/(λf).
    noise = 1 / (1 + FLOOR * math.expm1(CLAIM.epsilon + excess))
    released = ModelBasedRR((0, 1), noise, FLOOR).sample(truth, posterior, rng)
    release = Release(
        features=FeatureTable(x, np.zeros((n, 0), np.int32), (), 2),
        released=ReleasedLabels(released),
        outputs=(0, 1),
        classes=(0, 1),
        truth=TrueLabels(truth),
        canaries=drawn,
        public_posterior=(posterior if stated is None else stated(posterior)) if known else None,
    )
    return AuditContext(release, CLAIM, Plan(seed=seed))


def excess_of(audited):
    return POWER.run(audited).estimates[0].value


def bound(audited, alpha=0.05):
    evidence = evidence_at_hand(audited)
    return max(part.bound(alpha / len(evidence)).epsilon for part in evidence)


def refuted(audited):
    return bound(audited) > CLAIM.epsilon


@pytest.mark.parametrize("canaries", [0, 500])
def test_the_audit_hands_this_bound_to_the_check(canaries):
    own = context(2000, canaries=canaries)
    assert AUDIT.run(own).bounds[LOWER](0.05) == bound(own)


SETTINGS = {
    "cells": {},
    "even cells": {"steep": 0.7},
    "canaries": {"n": 2000, "cells": False, "canaries": 2000},
    "both": {"canaries": 1000},
}


def found(runs, **options):
    planted = excess_of(context(**options))
    assert 0 < planted < 3
    return sum(refuted(context(excess=planted, seed=s, **options)) for s in range(1, runs + 1))


RUNS = [("cells", 20), ("canaries", 20)]
RUNS += [pytest.param(name, 300, marks=pytest.mark.validate) for name in SETTINGS]


@pytest.mark.parametrize(("name", "runs"), RUNS)
def test_a_planted_excess_is_found_nine_times_in_ten(name, runs):
    # Fewer than these have p < 1e-5.
    assert found(runs, **SETTINGS[name]) >= binom.ppf(1e-5, runs, 0.9)


@pytest.mark.parametrize(("name", "runs"), RUNS)
def test_honest_releases_are_refuted_no_more_often_than_the_level_says(name, runs):
    # The matched rows are those at the floor, where the bound is tight.
    check_level(lambda seed: refuted(context(seed=seed, **SETTINGS[name])), runs, 0.05)


def test_more_rows_find_less_and_a_smaller_error_probability_more():
    excess = [excess_of(context(n)) for n in (1000, 3000, 6000)]
    assert excess == sorted(excess, reverse=True)
    assert excess[2] < 0.9
    by_level = POWER.run(context()).bounds[EXCESS]
    assert by_level(0.001) > by_level(0.05)


def test_what_the_mechanism_draws_from_is_counted_where_it_is_not_stated():
    stated, counted = (excess_of(context(8000, known=known)) for known in (True, False))
    assert stated < counted < stated + 0.8


def test_probabilities_that_the_counts_contradict_are_not_believed():
    def sharper(posterior):
        return np.where(posterior > 0.5, 1 - 1e-6, 1e-6)

    options = {"steep": 0.2}
    right, wrong = (excess_of(context(16_000, stated=s, **options)) for s in (None, sharper))
    # Believed, the wrong ones would promise to find what no test of these rows can.
    assert wrong > right - 0.1


def test_a_leaky_release_cannot_make_its_audit_look_stronger():
    honest = excess_of(context(8000, known=False))
    leaky = excess_of(context(8000, known=False, excess=0.4))
    assert leaky > honest - 0.2


def audited(data, **options):
    release = data.release
    frame = pd.DataFrame(release.features.numeric, columns=["a", "b"])
    frame["label"] = np.asarray(release.released)
    only = ("mechanism", "observational", "power")
    return ldpaudit.audit(
        frame,
        np.asarray(release.truth),
        CLAIM,
        public_posterior=release.public_posterior,
        only=only,
        **options,
    )


def test_a_strong_audit_of_an_honest_release_passes_and_a_weak_one_says_what_is_missing():
    strong = audited(context(16_000))
    assert strong.verdict == "pass"
    assert "(by estimate)" in strong.sentence
    power = next(e for e in strong.estimates if e.id == EXCESS)
    assert power.kind == "estimated"
    assert any("the same model and the same floor" in text for text in power.assumptions)
    few = audited(context(1000))
    assert few.verdict == "inconclusive"
    assert "could have gone unnoticed" in few.sentence
    assert any("Too few rows" in note.text for note in few.notes)
    assert audited(context(8_000, excess=0.8)).verdict == "fail"
    even = audited(context(16_000, steep=0.1))
    assert even.verdict == "inconclusive"
    # Rows with even chances show an excess of 0.8 at most, less than the 0.9 that may be missed.
    assert any("Too few rows can be compared" in note.text for note in even.notes)


def test_without_rows_that_can_be_compared_there_is_no_power():
    with pytest.raises(InsufficientDataError, match="neither canaries"):
        POWER.run(context(cells=False))


def test_the_public_probabilities_are_the_model_of_the_game():
    result = audited(context(4000))
    estimate = next(e for e in result.estimates if e.id == "observational.epsilon")
    assert estimate.kind == "estimated"
    assert "the public probabilities" in estimate.method
    assert 0.3 < estimate.value < CLAIM.epsilon
    game = next(e for e in result.estimates if e.id == "observational.game.features_only")
    assert abs(game.value - 0.5) < 0.02


def test_public_probabilities_that_rule_the_true_labels_out_are_refused():
    data = context(600)
    truth = np.asarray(data.release.truth)
    never = np.column_stack([truth, 1 - truth]).astype(float)
    data = AuditContext(
        Release(**{**data.release.__dict__, "public_posterior": never}), CLAIM, data.plan
    )
    with pytest.raises(ldpaudit.errors.InputError, match=r"at least 20 rows'.*0 of 600 have"):
        AUDIT.run(data)
