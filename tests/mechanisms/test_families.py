"""The families one by one: their definition, their bad input, their declaration."""

import itertools
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from ldpaudit import mechanisms
from ldpaudit.datasets.domains import declared_labels
from ldpaudit.errors import InputError, MissingDependencyError
from ldpaudit.mechanisms import ByStratum, MechanismOptions, from_declaration
from ldpaudit.mechanisms.double_rr import DoubleRR
from ldpaudit.mechanisms.gaussian import (
    GaussianResponse,
    GaussianRR,
    classical_sigma,
    gaussian_delta,
    gaussian_epsilon,
    gaussian_sigma,
)
from ldpaudit.mechanisms.joint import IndependentColumns
from ldpaudit.mechanisms.label_proportions import LabelProportions
from ldpaudit.mechanisms.label_range import LabelRange
from ldpaudit.mechanisms.model_based import ModelBasedRR
from ldpaudit.mechanisms.registry import plain_parameters
from ldpaudit.mechanisms.response import DummyFeaturesRR, RandomizedResponse, RandomizedResponseTopK
from ldpaudit.mechanisms.rounded import Rounding
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
    synthetic = mechanism.synthetic(Fixed(list(ABC), [1.0, 0.0, 0.0]), np.zeros((60_000, 1)))
    assert mechanisms.Channel(
        mechanism.channels(synthetic[:1])[0], ABC, ABC
    ).epsilon == pytest.approx(mechanism.epsilon)
    labels = np.full(len(synthetic), 2)
    released = mechanism.sample(labels, synthetic, np.random.default_rng(1))
    shares = np.bincount(released, minlength=3) / len(labels)
    assert shares == pytest.approx([0.4, 0.05, 0.55], abs=0.006)
    (likelihood,) = mechanism.row_likelihood(synthetic[:1], np.array([0]))
    assert likelihood == pytest.approx([0.9, 0.4, 0.4])


def test_model_based_draws_follow_each_row() -> None:
    rng = np.random.default_rng(0)
    mechanism = ModelBasedRR(ABC, 0.5)
    kinds = np.array([[0.7, 0.2, 0.1], [0.0, 0.5, 0.5]])
    labels = np.tile(np.array([0, 1, 2], np.int32), 60_000)
    synthetic = np.repeat(kinds, 90_000, axis=0)
    released = mechanism.sample(labels, synthetic, rng)
    for kind, channel in enumerate(mechanism.channels(kinds)):
        part = slice(90_000 * kind, 90_000 * (kind + 1))
        counts = np.bincount(labels[part] * 3 + released[part], minlength=9).reshape(3, 3)
        expected = 30_000 * channel
        possible = expected > 0
        assert counts[~possible].sum() == 0
        statistic = ((counts - expected)[possible] ** 2 / expected[possible]).sum()
        assert stats.chi2.sf(statistic, possible.sum() - 3) > 1e-7  # Twice.


def test_double_randomized_response() -> None:
    mechanism = DoubleRR(ABC, 0.6)
    rng = np.random.default_rng(1)
    labels = rng.integers(0, 3, 200_000).astype(np.int32)
    synthetic = np.array([0, 0, 1, 2, 2, 2], np.int32)
    draw = mechanism.sample(labels, synthetic, rng)
    kept = draw.synthetic_rows < 0
    # Nine comparisons, each within 6 standard deviations: a false alarm is below 1e-7.
    assert abs(kept.mean() - 0.4) < 6 * math.sqrt(0.24 / 200_000)
    shares = np.bincount(draw.synthetic_rows[~kept], minlength=6) / (~kept).sum()
    expected = np.array([1 / 6, 1 / 6, 1 / 3, 1 / 9, 1 / 9, 1 / 9])
    assert np.abs(shares - expected).max() < 6 * math.sqrt(0.23 / 119_000)
    agree = draw.labels == labels
    assert abs(agree.mean() - (0.4 + 0.2)) < 6 * math.sqrt(0.24 / 200_000)
    # Label and features are replaced independently.
    assert abs(agree[kept].mean() - agree[~kept].mean()) < 6 * math.sqrt(0.24 / 48_000)
    assert mechanism.channel is None
    assert mechanism.conditional_epsilon(0.5) == pytest.approx(2 * mechanism.epsilon + 0.5)


@given(st.floats(0.01, 0.99), st.floats(1.01, 60), st.integers(2, 12))
def test_dummy_features_floor_is_below_the_mechanism(noise: float, alpha: float, k: int) -> None:
    mechanism = DummyFeaturesRR(tuple(range(k)), noise)
    # Theorem 7.2: only the diagonal entry of the divergence's sum is kept.
    p, q = 1 - noise + noise / k, noise / k
    log_term = (alpha * math.log(p) + (1 - alpha) * math.log(q)) / (alpha - 1)
    assert mechanism.conditional_rdp_floor(alpha) == pytest.approx(max(log_term, 0), abs=1e-9)
    assert mechanism.conditional_rdp_floor(alpha) <= mechanism.rdp(alpha) + 1e-9


@given(st.floats(0.05, 20), st.floats(1e-10, 0.3), st.floats(0.01, 100))
def test_calibrations_invert_each_other(epsilon: float, delta: float, width: float) -> None:
    sigma = gaussian_sigma(epsilon, delta, width)
    assert gaussian_delta(sigma, width, epsilon) <= delta * (1 + 1e-12)
    assert gaussian_delta(sigma * (1 - 1e-6), width, epsilon) > delta
    assert gaussian_epsilon(sigma, width, delta) == pytest.approx(epsilon, rel=1e-8)


def test_a_classical_claim_that_does_not_hold_is_reported() -> None:
    low, high = (
        gaussian((0, 1), feature_epsilon=e, radius=1.0, sigma=classical_sigma(e, 1e-5, 2.0))
        for e in (1.0, 16.0)
    )
    assert low.claim_holds()
    assert not high.claim_holds()
    assert "does not hold: exactly 18.8989" in high.description


def test_gaussian_features_are_released_in_simulations_or_by_opendp() -> None:
    mechanism = GaussianRR((0, 1), 0.5, 2.0, 1.5, 1.0, 1e-5)
    features = np.tile([[3.0, 4.0]], (20_000, 1))
    with pytest.raises(InputError, match=r"20,000 row\(s\)"):
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


NO_YES = ("no", "yes")


@pytest.mark.parametrize("noise", ["none", "laplace", "geometric"])
def test_what_is_released_has_the_noise_declared(noise):
    rng = np.random.default_rng(6)
    members, labels = np.repeat(np.arange(5000), 4), rng.integers(0, 2, 20_000).astype(np.int32)
    made = LabelProportions("bag", NO_YES, noise, None if noise == "none" else 1.0)
    released = made.release(labels, members, rng)
    assert (released.reshape(-1, 4) == released[::4, None]).all()
    residual = 4 * released[::4] - labels.reshape(-1, 4).sum(axis=1)
    for x in (-1.5, -0.5, 0.5, 1.5):
        # Five standard errors of a share of 5,000: a flake has a probability below 6e-7.
        share, expected = (residual <= x).mean(), float(made.noise_cdf(np.array(x)))
        assert abs(share - expected) <= 5 * math.sqrt(expected * (1 - expected) / 5000) + 1e-9


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
    for bad in ([1.0], [-1, 2], [0, 0]):
        with pytest.raises(InputError, match="share"):
            mechanism.averaged(bad)


def test_draws_follow_each_rows_stratum() -> None:
    mechanism, n = stratified(NORTH, SOUTH), 20_000
    rng = np.random.default_rng(0)
    labels, strata = rng.integers(0, 2, (2, n)).astype(np.int32)
    drawn = mechanism.sample(labels, strata, rng)
    counts = np.zeros((2, 2, 2))
    np.add.at(counts, (strata, labels, drawn), 1)
    rates = counts / counts.sum(axis=2, keepdims=True)
    # 5,000 rows a cell: 0.04 is 5.6 standard deviations, 2e-8 for each of 8 cells.
    assert np.abs(rates - mechanism.matrices).max() < 0.04
    likelihood = mechanism.row_likelihood(strata[:3], drawn[:3])
    assert likelihood[0] == pytest.approx(mechanism.matrices[strata[0], :, drawn[0]])


def test_columns_with_the_same_strata_add_up_within_each() -> None:
    low = RandomizedResponse.from_epsilon(("q", "r"), 0.5)
    high = RandomizedResponse.from_epsilon(("q", "r"), 2.0)
    columns = (ByStratum(("n", "s"), (low, high)), ByStratum(("s", "n"), (low, high)))
    same, other = IndependentColumns(columns, ("w", "w")), IndependentColumns(columns, ("w", "x"))
    assert same.epsilon == pytest.approx(2.5)
    assert other.epsilon == pytest.approx(4.0)


def test_declared_classes_are_those_of_the_strata() -> None:
    turned = {"name": "channel", "classes": ["r", "q"], "matrix": [[0.9, 0.1], [0.3, 0.7]]}
    stated = Declaration("by-stratum", {"strata": [{"value": 1, "mechanism": turned}]})
    assert declared_labels(stated, "classes") == ("r", "q")
    again = from_declaration(stated, ())
    assert dict(
        from_declaration(Declaration("by-stratum", again.declaration()), ()).declaration()
    ) == dict(again.declaration())


def test_a_result_holds_labels_and_strata_as_text() -> None:
    stated = plain_parameters(stratified(NORTH, SOUTH).declaration())
    assert [one["value"] for one in stated["strata"]] == ["v0", "v1"]
    joint = plain_parameters({"domains": [["q", 1], ["x", True]], "epsilon": 1.0})
    assert joint == {"domains": [["q", "1"], ["x", "True"]], "epsilon": 1.0}


def test_rounding_draws_the_upper_neighbour_with_its_share() -> None:
    labels, points = np.array([0.0, 0.3, 1.0, 2.5, 9.9, 10.0]), np.array([0.0, 1.0, 3.0, 10.0])
    rounding = Rounding(tuple(points))
    lower, up = rounding.neighbours(labels)
    drawn = points[rounding.sample(np.repeat(labels, 50_000), np.random.default_rng(0))]
    spread = np.sqrt(up * (1 - up) / 50_000) * (points[lower + 1] - points[lower])
    # Within 6 standard deviations each: 2e-9.
    assert (np.abs(drawn.reshape(6, -1).mean(axis=1) - labels) <= 6 * spread + 1e-12).all()


def test_double_randomized_response_without_noise_changes_nothing() -> None:
    codes = np.arange(3, dtype=np.int32)
    whole = DoubleRR(ABC, 0.0).sample(codes, codes)
    assert whole.labels.tolist() == [0, 1, 2]
    assert whole.synthetic_rows.tolist() == [-1, -1, -1]


def test_a_gaussian_claim_covers_features_and_label() -> None:
    mechanism = gaussian((-1, 1), feature_epsilon=2.0, radius=3.0)
    assert mechanism.epsilon == pytest.approx(1.0)
    assert mechanism.sigma == pytest.approx(6 * 1.9938, abs=6e-4)
    assert mechanism.example_epsilon == pytest.approx(3.0, abs=1e-8)
    assert mechanism.claim_holds()
    assert mechanism.example_delta(3.0) <= 1e-5
