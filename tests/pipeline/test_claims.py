"""What a policy pins: the claim that a release is held against, and the confidence."""

import numpy as np
import pandas as pd
import pytest

import ldpaudit
from ldpaudit.errors import PolicyError

POLICY = 'schema = 1\n[audit]\nconfidence = 0.8\n[claim]\nmechanism = "randomized-response"\n'


@pytest.fixture
def released() -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(1)
    truth = rng.integers(0, 2, 400)
    return pd.DataFrame({"label": np.where(rng.random(400) < 0.25, 1 - truth, truth)}), truth


@pytest.mark.parametrize(("limit", "allowed"), [(1.0, True), (0.999, False), (0.95, False)])
def test_more_than_the_policy_allows_is_refused_where_no_check_says_it(
    released: tuple[pd.DataFrame, np.ndarray], limit: float, allowed: bool, tmp_path
) -> None:
    frame, _ = released
    path = tmp_path / "policy.toml"
    path.write_text(f"{POLICY}epsilon = {limit}\n[checks.claimed-channel]\n")
    made = ldpaudit.privatize(frame, label="label", mechanism="rr", epsilon=1.0)
    asked = {"policy": str(path), "only": ("mechanism",)}
    if allowed:
        assert ldpaudit.audit(made, **asked).mechanism.epsilon == pytest.approx(1.0)
    else:
        with pytest.raises(PolicyError, match="allows ε"):
            ldpaudit.audit(made, **asked)


def test_intervals_have_the_confidence_of_the_policy(
    released: tuple[pd.DataFrame, np.ndarray], tmp_path
) -> None:
    frame, truth = released
    path = tmp_path / "policy.toml"
    path.write_text(f"{POLICY}epsilon = 1.5\n[checks.claimed-epsilon]\n")
    result = ldpaudit.audit(frame, truth=truth, policy=str(path), only=("mechanism",))
    assert result.estimate("mechanism.epsilon_lower").level == pytest.approx(0.8)
