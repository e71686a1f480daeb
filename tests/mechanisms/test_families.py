"""The families one by one: their definition, their bad input, their declaration."""

import itertools
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy import stats

from ldpaudit import mechanisms
from ldpaudit.errors import InputError, MissingDependencyError
from ldpaudit.extras.kinds.mechanisms.by_stratum import ByStratum
from ldpaudit.extras.kinds.mechanisms.gaussian import (
    GaussianResponse,
    GaussianRR,
    gaussian_delta,
    gaussian_epsilon,
    gaussian_sigma,
)
from ldpaudit.extras.kinds.mechanisms.with_features import ModelBasedRR
from ldpaudit.mechanisms import MechanismOptions, from_declaration
from ldpaudit.mechanisms.joint import IndependentColumns
from ldpaudit.mechanisms.label_range import LabelRange
from ldpaudit.mechanisms.response import DummyFeaturesRR, RandomizedResponse, RandomizedResponseTopK
from ldpaudit.release import Declaration

RANGE, GRID = LabelRange(0.0, 5.5), LabelRange(0, 5, 1)
ABC = ("a", "b", "c")


def gaussian(classes: tuple[Any, ...], **features: float) -> GaussianResponse:
    """Build it from ε = 1 of the label and, without sigma, the least σ for the features."""
    options = MechanismOptions(
        epsilon=1.0, classes=classes, settings={"feature_delta": 1e-5, **features}
    )
    mechanism = GaussianRR.from_options(options)
    assert isinstance(mechanism, GaussianResponse)
    return mechanism


@given(st.integers(2, 6), st.floats(0.1, 6), st.integers(0, 1000))
def test_the_number_of_kept_labels_is_the_best(k: int, epsilon: float, seed: int) -> None:
    prior = np.random.default_rng(seed).dirichlet(np.ones(k))
    classes = tuple(range(k))
    best = RandomizedResponseTopK.from_prior(classes, prior, epsilon)
    every = [
        RandomizedResponseTopK(classes, kept, epsilon).accuracy(prior)
        for m in range(1, k + 1)
        for kept in itertools.combinations(classes, m)
    ]
    assert best.accuracy(prior) == pytest.approx(max(every), rel=1e-12)
    exact = best.channel.epsilon
    assert best.epsilon == pytest.approx(exact, rel=1e-9, abs=1e-12)


class Fixed:
    """A classifier that always returns the same row."""

    def __init__(self, classes: list[Any], row: list[float]) -> None:
        self.classes_, self.row = np.array(classes), row

    def predict_proba(self, X: Any, /) -> np.ndarray[Any, Any]:
        return np.tile(self.row, (len(X), 1))


def test_model_based_channels_and_their_epsilon() -> None:
    mechanism = ModelBasedRR(ABC, 0.4)
    synthetic = mechanism.synthetic(Fixed(["c", "a", "b"], [0.5, 0.2, 0.3]), np.zeros((2, 1)))
    assert synthetic[0] == pytest.approx([0.2, 0.3, 0.5])
    rows = mechanism.channels(np.vstack([synthetic, [[0, 0.5, 0.5]]]))
    assert rows[0] == pytest.approx(0.6 * np.eye(3) + 0.4 * np.array([0.2, 0.3, 0.5]))
    # ε of a row: log(1 + (1 − λ)/(λ min_z P̂(z | x))).
    assert mechanisms.Channel(rows[0], ABC, ABC).epsilon == pytest.approx(np.log1p(0.6 / 0.08))
    assert mechanisms.Channel(rows[2], ABC, ABC).epsilon == math.inf
    assert mechanism.epsilon == math.inf
    uniform = mechanism.channels(np.full((1, 3), 1 / 3))[0]
    plain = RandomizedResponse(ABC, 0.4)
    assert mechanisms.Channel(uniform, ABC, ABC).epsilon == pytest.approx(plain.epsilon)


def test_a_floor_is_applied_once() -> None:
    mechanism = ModelBasedRR(ABC, 0.5, 0.1)
    synthetic = mechanism.synthetic(Fixed(list(ABC), [1.0, 0.0, 0.0]), np.zeros((20_000, 1)))
    assert mechanisms.Channel(
        mechanism.channels(synthetic[:1])[0], ABC, ABC
    ).epsilon == pytest.approx(mechanism.epsilon)
    labels = np.full(len(synthetic), 2)
    released = mechanism.sample(labels, synthetic, np.random.default_rng(1))
    shares = np.bincount(released, minlength=3) / len(labels)
    assert shares == pytest.approx([0.4, 0.05, 0.55], abs=0.018)
    (likelihood,) = mechanism.row_likelihood(synthetic[:1], np.array([0]))
    assert likelihood == pytest.approx([0.9, 0.4, 0.4])


@given(st.floats(0.01, 0.99), st.floats(1.01, 60), st.integers(2, 12))
def test_dummy_features_floor_is_below_the_mechanism(noise: float, alpha: float, k: int) -> None:
    mechanism = DummyFeaturesRR(tuple(range(k)), noise)
    # Theorem 7.2: only the diagonal entry of the divergence's sum is kept.
    p, q = 1 - noise + noise / k, noise / k
    log_term = (alpha * math.log(p) + (1 - alpha) * math.log(q)) / (alpha - 1)
    assert mechanism.conditional_rdp_floor(alpha) == pytest.approx(max(log_term, 0), abs=1e-9)
    assert mechanism.conditional_rdp_floor(alpha) <= mechanism.rdp(alpha) + 1e-9


@given(st.floats(0.05, 20), st.floats(1e-10, 0.3), st.floats(0.01, 100))
@example(0.09765374349706768, 1e-10, 3.0)
def test_calibrations_invert_each_other(epsilon: float, delta: float, width: float) -> None:
    sigma = gaussian_sigma(epsilon, delta, width)
    assert gaussian_delta(sigma, width, epsilon) <= delta
    assert gaussian_delta(sigma * (1 - 1e-6), width, epsilon) > delta
    assert gaussian_epsilon(sigma, width, delta) == pytest.approx(epsilon, rel=1e-8)


def test_a_classical_claim_that_does_not_hold_is_reported() -> None:
    # Dwork and Roth (2014), Theorem A.1, is proved for ε ≤ 1 only.
    low, high = (
        gaussian((0, 1), feature_epsilon=e, radius=1.0, sigma=2 * np.sqrt(2 * np.log(1.25e5)) / e)
        for e in (1.0, 16.0)
    )
    assert low.claim_holds()
    assert not high.claim_holds()
    assert "does not hold: exactly 18.8989" in high.description


def test_gaussian_features_are_released_in_simulations_or_by_opendp() -> None:
    mechanism = GaussianRR((0, 1), 0.5, 2.0, 1.5, 1.0, 1e-5)
    features = np.tile([[3.0, 4.0]], (20_000, 1))
    with pytest.raises(InputError, match=r"longer ones: 20,000"):
        mechanism.release_features(features)
    short = mechanism.project(features)
    assert short[0] == pytest.approx([1.2, 1.6])
    noisy = mechanism.release_features(short, np.random.default_rng(0), simulation=True)
    # Kolmogorov–Smirnov at 1e-7.
    assert stats.kstest(noisy[:, 0], stats.norm(1.2, 1.5).cdf).pvalue > 1e-7
    try:
        import opendp  # noqa: F401
    except ImportError:
        with pytest.raises(MissingDependencyError, match="continuous"):
            mechanism.release_features(short)
        return
    noisy = mechanism.release_features(short[:2000])
    assert stats.kstest(noisy[:, 1], stats.norm(1.6, 1.5).cdf).pvalue > 1e-7


NORTH = {"name": "randomized-response", "classes": ["q", "r"], "epsilon": 1.0}
SOUTH = {"name": "channel", "classes": ["q", "r"], "matrix": [[0.9, 0.1], [0.3, 0.7]]}


def stratified(*mechanisms: dict[str, Any], **more: Any) -> Any:
    strata = [{"value": f"v{i}", "mechanism": m} for i, m in enumerate(mechanisms)]
    return from_declaration(Declaration("by-stratum", {"strata": strata, **more}), ("q", "r"))


def test_the_largest_stratum_counts() -> None:
    mechanism = stratified(NORTH, SOUTH)
    assert mechanism.epsilon == pytest.approx(np.log(7))
    assert mechanism.epsilon == mechanism.by_stratum[1].epsilon
    assert mechanism.delta(1.0) == mechanism.by_stratum[1].delta(1.0) > 0
    assert mechanism.channel is mechanism.label_channel is None


def test_pooled_strata_are_an_average() -> None:
    mechanism = stratified(NORTH, SOUTH)
    first, second = mechanism.matrices
    assert mechanism.averaged([3, 1]).matrix == pytest.approx(0.75 * first + 0.25 * second)
    by_label = mechanism.averaged(np.array([[1.0, 0.0], [0.0, 1.0]])).matrix
    assert by_label == pytest.approx(np.array([first[0], second[1]]))
    assert mechanism.averaged([1, 1]).epsilon <= mechanism.epsilon
    rows = np.array([1, 0]), np.array([0, 1])
    assert mechanism.row_likelihood(*rows).tolist() == [second[:, 0].tolist(), first[:, 1].tolist()]
    for bad in ([1.0], [-1, 2], [0, 0]):
        with pytest.raises(InputError, match="share"):
            mechanism.averaged(bad)


def test_columns_with_the_same_strata_add_up_within_each() -> None:
    low = RandomizedResponse.from_epsilon(("q", "r"), 0.5)
    high = RandomizedResponse.from_epsilon(("q", "r"), 2.0)
    columns = (ByStratum(("n", "s"), (low, high)), ByStratum(("s", "n"), (low, high)))
    same, other = IndependentColumns(columns, ("w", "w")), IndependentColumns(columns, ("w", "x"))
    assert same.epsilon == pytest.approx(2.5)
    assert other.epsilon == pytest.approx(4.0)
