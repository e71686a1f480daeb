"""True against re-drawn labels: whole audits of mechanisms that use the features."""

import math
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from audits.found import check

import ldpaudit
from ldpaudit.errors import InputError
from ldpaudit.extras.kinds.mechanisms.with_features import ModelBasedRR
from ldpaudit.extras.kinds.observational import evidence
from ldpaudit.extras.kinds.observational.audit import check_overlap
from ldpaudit.release import FeatureTable

ONLY = ("mechanism", "observational", "power")
LOWER = "observational.epsilon_lower"


def release(noise=0.5, floor=0.05, *, n=2000, seed=0, cells=True, hidden=0.0, canaries=0):
    """Return features with released labels, true labels, and the canaries' probabilities."""
    rng = np.random.default_rng(seed)
    x = rng.integers(0, 5, (n, 2)).astype(float) if cells else 5 * rng.random((n, 2))
    logit = x[:, 0] - 2 + 0.5 * (x[:, 1] - 2)
    secret = hidden * rng.standard_normal(n)
    eta = 1 / (1 + np.exp(-logit - secret))
    truth = (rng.random(n) < eta).astype(np.int32)
    drawn = np.full((n, 2), np.nan)
    rows = rng.permutation(n)[:canaries]
    truth[rows] = rng.random(canaries) < 0.5
    drawn[rows] = 0.5
    made = ModelBasedRR((0, 1), noise, floor)
    released = made.sample(truth, np.column_stack([1 - eta, eta]), rng)
    return pd.DataFrame({"a": x[:, 0], "b": x[:, 1], "label": released}), truth, drawn


def audited(data, claim=(0.5, 0.05), **options):
    frame, truth, _ = data
    claim = ModelBasedRR((0, 1), *claim)
    return ldpaudit.audit(frame, truth, claim, only=ONLY, **options)


CASES = {  # The release, the claim, what is found, and the verdict.
    "honest": (
        {},
        (0.5, 0.05),
        {LOWER: (0.4, ModelBasedRR((0, 1), 0.5, 0.05).epsilon), "mechanism.epsilon_lower": None},
        "inconclusive",
    ),
    "a leak": ({"noise": 0.05}, (0.5, 0.05), {LOWER: (3.1, 9)}, "fail"),
    # Nothing leaks at λ = 1, but the released label knows what the audited features do not.
    "a model that misses a feature": (
        {"noise": 1.0, "floor": 0.0, "cells": False, "hidden": 3.0, "n": 3000},
        (0.5, 0.05),
        {LOWER: None, "observational.epsilon": (0.3, 9)},
        None,
    ),
    "nothing leaks": (
        {"noise": 1.0, "floor": 0.0, "n": 3000},
        (0.5, 0.05),
        {LOWER: 0, "observational.epsilon": (0, 0.1), "observational.game.accuracy@low": (0, 0.51)},
        None,
    ),
    "canaries": (
        {"noise": 0.05, "cells": False, "hidden": 3.0, "canaries": 1500},
        (0.5, 0.1),
        {f"{LOWER}.cells": None, f"{LOWER}.canaries": (2.4, 9)},
        "fail",
    ),
    "canaries and nothing": (
        {"noise": 1.0, "floor": 0.0, "cells": False, "hidden": 3.0, "canaries": 1500},
        (0.5, 0.05),
        {f"{LOWER}.canaries": (0, 0.05)},
        None,
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_what_is_found(case):
    made, claim, numbers, verdict = CASES[case]
    data = release(**made)
    result = audited(data, claim, **({"canaries": data[2]} if "canaries" in made else {}))
    check(result, numbers)
    assert verdict in (None, result.verdict)
    if case == "a leak":
        found = result.check("claimed-epsilon")
        assert found.evidence[0] == LOWER
        assert found.observed > found.limit
    if "misses" in case:
        estimate = result["observational.epsilon"]
        assert estimate.kind == "estimated"
        assert any("knows no more of the label" in text for text in estimate.assumptions)


def test_canaries_with_a_wrong_proxy_are_refused():
    _, truth, drawn = data = release(n=600, canaries=200)
    none = np.isnan(drawn)
    few = pd.DataFrame(np.where(np.arange(600) < 5, 0.5, np.nan)[:, None].repeat(2, 1))
    few.columns = ["0", "1"]
    for canaries, why in (
        (
            np.where(none, np.nan, np.column_stack([truth, 1 - truth])),
            r"overlap the release\); 200 of 200",
        ),
        (np.where(none, np.nan, [0.05, 0.95]), "cannot have been"),
        (drawn[:20], "600 rows"),
        (drawn * 1.5, "sum to 1; in 200 of 200"),
        (few, "at least 20 canaries"),
        (few.rename(columns={"0": "x"}), "column named after each"),
    ):
        with pytest.raises(InputError, match=why):
            audited(data, canaries=canaries)


def test_a_public_table_is_the_model():
    data = release(n=1500)
    other, labels, _ = release(n=1500, seed=9)
    public = other.assign(label=labels)
    result = audited(data, public=public)
    check(result, {"observational.epsilon": (0.3, 3.1)})
    assert "the public table" in result["observational.epsilon"].method
    with pytest.raises(InputError, match="of 1,500 rows 0 do"):
        audited(data, public=public.assign(a=public["a"] + 100))


def test_other_mechanisms_keep_their_own_bounds():
    frame, truth, _ = release(n=1000)
    claim = {"name": "randomized-response", "classes": [0, 1], "epsilon": 5.0}
    result = ldpaudit.audit(frame, truth, claim, only=ONLY)
    assert LOWER not in result.check("claimed-epsilon").evidence
    check(result, {LOWER: (0, 5.0)})


def test_canaries_of_unfair_coins_are_chosen_for_the_largest_bound_they_promise(monkeypatch):
    rng, noise = np.random.default_rng(8), 0.5
    chance, priors = rng.uniform(0.02, 0.9, 400), rng.uniform(0.02, 0.5, 400)
    monkeypatch.setattr(evidence, "model_claim", lambda _: SimpleNamespace(noise=noise))
    best, promised = [], -np.inf
    order = np.argsort(chance)
    for count in range(evidence._FEWEST_CANARIES, 401):
        some = order[:count]
        ratio = 1 + (1 - noise) / (noise * chance[some].mean())
        odds = priors[some].mean() / (1 - priors[some].mean()) * ratio
        right = odds / (1 + odds)
        error = 1 / math.sqrt(count * right * (1 - right))
        bound = math.log(ratio) - evidence._QUANTILE * error
        if count * (1 - right) >= evidence._FEWEST_WRONG and bound > promised:
            best, promised = some, bound
    assert evidence._FEWEST_CANARIES < len(best) < 400
    assert evidence._promising(None, priors, chance).tolist() == list(best)


def test_rows_at_the_ends_of_the_public_ranges_lie_within():
    def table(values):
        numbers = np.asarray(values, dtype=np.float32)[:, None]
        return FeatureTable(numbers, np.zeros((len(numbers), 0), np.int32), (), 1)

    check_overlap(table([1.0, 5.0]), table([1.0] * 10 + [5.0] * 10 + [6.0] * 30))
    with pytest.raises(InputError, match=r"of 49 rows 19 do"):
        check_overlap(table([1.0, 5.0]), table([1.0] * 10 + [5.0] * 9 + [6.0] * 30))
