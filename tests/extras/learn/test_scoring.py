"""Scores by released labels: they prefer what is nearest to the truth."""

import numpy as np
import pytest
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score

from ldpaudit.errors import InputError
from ldpaudit.learners import ReleaseClassifier, released_scorer
from ldpaudit.mechanisms import RandomizedResponse


def world(seed: int) -> tuple[RandomizedResponse, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(3_000, 2))
    noise = RandomizedResponse.from_epsilon(("a", "b", "c"), 1.5)
    truth = np.array(["a", "b", "c"])[(X[:, 0] > 0).astype(int) + (X[:, 1] > 1)]
    return noise, X, noise.release(truth, rng)


def test_a_grid_search_picks_the_corrected_model() -> None:
    for seed in range(3):
        noise, X, released = world(seed)
        grid = {"correction": [None, "forward"]}
        search = GridSearchCV(ReleaseClassifier(noise), grid, scoring=released_scorer(noise), cv=3)
        assert search.fit(X, released).best_params_ == {"correction": "forward"}


def test_it_takes_any_classifier_codes_and_mappings() -> None:
    noise, X, released = world(9)
    scorer = released_scorer({"name": "rr", "epsilon": 1.5})
    assert cross_val_score(LogisticRegression(), X, released, scoring=scorer).mean() < -0.5
    codes = np.searchsorted(["a", "b", "c"], released)
    plain = DummyClassifier(strategy="prior").fit(X, codes)
    score = released_scorer(noise, labels="codes")(plain, X, codes)
    assert score == pytest.approx(np.log(1 / 3), abs=0.1)
    with pytest.raises(InputError, match="must be the channel's"):
        released_scorer(noise)(plain, X, released)
