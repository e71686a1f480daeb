"""Claims with a channel for each row, by a public model: counts are held against them."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom

import ldpaudit
from ldpaudit.audits.interface import AuditContext, Plan
from ldpaudit.audits.mechanism.row_channels import row_channels_p_value
from ldpaudit.mechanisms import from_declaration
from ldpaudit.models.label_model import floored
from ldpaudit.release import Declaration, FeatureTable, Release, ReleasedLabels, TrueLabels

CLASSES = ("a", "b", "c")
FLOOR = 0.05


def declared(noise: float) -> Declaration:
    parameters = {"classes": list(CLASSES), "lambda": noise, "floor": FLOOR}
    return Declaration("model-based-rr", parameters, "api")


def world(seed: int, n: int, made_with: float = 0.5) -> tuple[Any, Any, Any, Any]:
    """Return a feature, the public model of it, true labels, and released ones."""
    rng = np.random.default_rng([seed, 11])
    feature = rng.normal(size=n)
    model = np.stack([np.exp(-0.5 * (feature - 0.8 * code) ** 2) for code in range(3)], axis=1)
    model /= model.sum(axis=1, keepdims=True)
    cumulative = model.cumsum(axis=1)[:, :2]
    truth = (rng.random(n)[:, None] >= cumulative).sum(axis=1).astype(np.int32)
    mechanism: Any = from_declaration(declared(made_with), CLASSES)
    return feature, model, truth, mechanism.sample(truth, model, rng)


def p_value(seed: int, n: int = 600, *, with_floor: bool = False, **options: Any) -> float:
    _, model, truth, released = world(seed, n, **options)
    empty = FeatureTable(np.zeros((n, 0), np.float32), np.zeros((n, 0), np.int32), (), 0)
    made = Release(
        features=empty,
        released=ReleasedLabels(released),
        outputs=CLASSES,
        classes=CLASSES,
        truth=TrueLabels(truth),
        public_posterior=floored(model, FLOOR) if with_floor else model,
    )
    claim = from_declaration(declared(0.5), CLASSES)
    found = row_channels_p_value(AuditContext(made, claim, Plan(seed=seed)))
    assert found is not None
    return found


@pytest.mark.parametrize("with_floor", [False, True])
def test_honest_releases_are_refuted_as_seldom_as_stated(with_floor: bool) -> None:
    """Whether the model's probabilities are given before the floor, or with it."""
    draws, level = 150, 0.2
    wrong = sum(p_value(seed, with_floor=with_floor) <= level for seed in range(draws))
    assert wrong <= binom.isf(1e-5, draws, level)


def test_less_noise_than_claimed_is_found() -> None:
    assert max(p_value(seed, 6000, made_with=0.4) for seed in range(3)) < 1e-6


def test_a_class_in_the_clear_is_a_violation_of_the_channel() -> None:
    feature, model, truth, released = world(3, 6000)
    clear = (truth == 2) & (np.random.default_rng(1).random(6000) < 0.3)
    names = np.array(CLASSES)
    found = ldpaudit.audit(
        pd.DataFrame({"x": feature, "label": names[np.where(clear, truth, released)]}),
        pd.Series(names[truth]),
        declared(0.5),
        public_posterior=pd.DataFrame(model, columns=list(CLASSES)),
        only=("mechanism", "observational"),
    )
    channel = next(one for one in found.checks if one.id == "claimed-channel")
    assert (channel.verdict, found.decision) == ("fail", "do not publish")
    assert any("by the public model" in note.text for note in found.notes)
