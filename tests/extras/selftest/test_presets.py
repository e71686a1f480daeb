"""What the presets of policies decide on simulated releases."""

import numpy as np
import pytest
from scipy.stats import binom

import ldpaudit
from ldpaudit.extras.selftest.planting import Setting, plant
from ldpaudit.judging.policy import PRESETS, load_policy


def outcomes(kind, preset):
    """Return the verdicts of 60 releases by the planter, of 2 or 4 labels in turn."""
    found, policy = [], load_policy(preset)
    only = ("assumptions", "mechanism", "power", "seeds")
    for seed in range(60):
        setting = Setting(seed, kind, "randomized-response", 2 + 2 * (seed % 2), 4000, 1.0, 0.7)
        made = plant(setting, np.random.default_rng([seed, *kind.encode()]))
        given = {"policy": policy, "only": only, "threads": 1, "rng": seed}
        found.append(ldpaudit.audit(made.table, truth=made.truth, **given).verdict)
    return found


@pytest.mark.validate
@pytest.mark.parametrize("preset", PRESETS)
def test_honest_releases_pass_and_a_planted_leak_is_found(preset):
    honest = outcomes("as declared", preset)
    error = 1 - load_policy(preset).audit.confidence
    assert honest.count("fail") <= binom.isf(1e-6, 60, error)
    assert not any(outcome == "inconclusive" for outcome in honest)
    assert set(outcomes("noise of a larger ε", preset)) == {"fail"}
