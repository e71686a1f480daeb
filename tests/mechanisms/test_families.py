"""The families one by one: their definition, their bad input, their declaration."""

import itertools
import json
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, stats

from ldpaudit import mechanisms
from ldpaudit.errors import InputError, MissingDependencyError
from ldpaudit.mechanisms import MechanismOptions, from_declaration, names
from ldpaudit.mechanisms.interface import AnalysedMechanism, Mechanism, NumericMechanism
from ldpaudit.mechanisms.label_range import LabelRange
from ldpaudit.mechanisms.noise.continuous import Laplace, Staircase
from ldpaudit.mechanisms.noise.discrete import DiscreteLaplace, DiscreteStaircase
from ldpaudit.mechanisms.noise.exponential import DiscreteExponential, Exponential
from ldpaudit.mechanisms.numeric.rounded_labels import Rounding
from ldpaudit.mechanisms.response.double_rr import DoubleRR
from ldpaudit.mechanisms.response.dummy_features_rr import DummyFeaturesRR
from ldpaudit.mechanisms.response.gaussian import (
    classical_sigma,
    gaussian_delta,
    gaussian_epsilon,
    gaussian_sigma,
)
from ldpaudit.mechanisms.response.gaussian_rr import GaussianRR
from ldpaudit.mechanisms.response.model_based_rr import ModelBasedRR
from ldpaudit.mechanisms.response.randomized_response import RandomizedResponse
from ldpaudit.mechanisms.response.rr_top_k import RandomizedResponseTopK
from ldpaudit.release import Declaration

RANGE, GRID = LabelRange(0.0, 5.5), LabelRange(0, 5, 1)
ABC = ("a", "b", "c")


def gaussian(classes: tuple[Any, ...], **features: float) -> GaussianRR:
    """Build it from ε = 1 of the label and, without sigma, the least σ for the features."""
    options = MechanismOptions(
        epsilon=1.0, classes=classes, settings={"feature_delta": 1e-5, **features}
    )
    mechanism = GaussianRR.from_options(options)
    assert isinstance(mechanism, GaussianRR)
    return mechanism


EXAMPLES = [
    RandomizedResponse(ABC, 0.3),
    RandomizedResponseTopK(ABC, ("a", "c"), 1.5),
    ModelBasedRR(ABC, 0.4, 0.1),
    DoubleRR(ABC, 0.2),
    DummyFeaturesRR(ABC, 0.2),
    Laplace(RANGE, 1.0, clipped=True),
    DiscreteLaplace(GRID, 0.7),
    Staircase(RANGE, 2.0, False, 0.25),
    DiscreteStaircase(GRID, 2.0, True, 2),
    Exponential(RANGE, 1.0),
    DiscreteExponential(GRID, 1.0),
    gaussian((-1, 1), feature_epsilon=2.0, radius=3.0),
]


@pytest.mark.parametrize("mechanism", EXAMPLES, ids=lambda m: type(m).__name__)
def test_a_declaration_survives_json(mechanism: Any) -> None:
    parameters = json.loads(json.dumps(dict(mechanism.declaration())))
    assert from_declaration(Declaration(mechanism.name, parameters), ()) == mechanism
    assert isinstance(mechanism, Mechanism)
    assert isinstance(mechanism, AnalysedMechanism)
    if "noise" not in mechanism.declaration() and hasattr(mechanism, "bias"):
        assert isinstance(mechanism, NumericMechanism)
    assert f"{mechanism.epsilon:.6g}" in mechanism.description
    with pytest.raises(InputError, match="unknown"):
        from_declaration(Declaration(mechanism.name, {**parameters, "sigmma": 1}), ())
    with pytest.raises(AttributeError):
        mechanism.surplus = 1


def test_every_name_of_these_families_is_registered() -> None:
    assert {mechanism.name for mechanism in EXAMPLES} <= set(names())


@pytest.mark.parametrize(
    ("name", "parameters", "message"),
    [
        ("laplace", {"low": 0, "high": 1}, "'epsilon' or 'scale'"),
        ("laplace", {"low": 0, "epsilon": 1}, "high"),
        ("laplace", {"low": 0, "high": 1, "epsilon": 1, "scale": 2}, "must agree"),
        ("laplace", {"low": 0, "high": 1, "epsilon": 0}, "above 0"),
        ("laplace", {"low": 1, "high": 0, "epsilon": 1}, "below"),
        ("laplace", {"low": 0, "high": 1, "epsilon": "1"}, "must be a number"),
        ("laplace", {"low": 0, "high": 1, "epsilon": 1, "clipped": "no"}, "true or false"),
        ("discrete-laplace", {"low": 0, "high": 1.5, "epsilon": 1}, "whole number of steps"),
        ("staircase", {"low": 0, "high": 1, "epsilon": 1, "gamma": 1.5}, "gamma"),
        ("discrete-staircase", {"low": 0, "high": 4, "epsilon": 1, "width": 1.5}, "whole number"),
        ("discrete-staircase", {"low": 0, "high": 4, "epsilon": 1, "width": 0}, "whole number"),
        ("exponential", {"low": 0, "high": math.inf, "epsilon": 1}, "finite"),
        ("rr-top-k", {"classes": ["a", "b"], "kept": ["z"], "epsilon": 1}, "among"),
        ("rr-top-k", {"classes": ["a", "b"], "kept": [], "epsilon": 1}, "at least one"),
        ("rr-top-k", {"classes": ["a", "b"], "kept": "a", "epsilon": 1}, "list"),
        ("rr-top-k", {"classes": ["a", "b"], "kept": ["a"]}, "must state 'epsilon'"),
        ("model-based-rr", {"classes": ["a", "b"]}, "must state 'lambda'"),
        ("model-based-rr", {"classes": ["a", "b"], "lambda": 1.2}, r"\[0, 1\]"),
        ("model-based-rr", {"classes": ["a", "b"], "lambda": 0.5, "floor": 0.6}, "floor"),
        ("double-rr", {"classes": ["a"], "lambda": 0.5}, "two classes"),
        ("dummy-features-rr", {"classes": ["a", "b"]}, "'epsilon' or 'lambda'"),
        ("gaussian-rr", {"classes": [0, 1], "lambda": 0.5}, "must state 'radius'"),
    ],
)
def test_a_bad_declaration_is_refused(name: str, parameters: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        from_declaration(Declaration(name, parameters), ())


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


def test_a_single_kept_label_gives_nothing_away() -> None:
    mechanism = RandomizedResponseTopK(ABC, ("b",), 3.0)
    assert mechanism.epsilon == mechanism.channel.epsilon == 0
    assert mechanism.release(["a", "c"], np.random.default_rng(0)).tolist() == ["b", "b"]


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


@given(st.floats(0.05, 1), st.floats(0.001, 1 / 3), st.integers(0, 1000))
@settings(max_examples=40)
def test_a_floor_bounds_every_row(noise: float, floor: float, seed: int) -> None:
    mechanism = ModelBasedRR(ABC, noise, floor)
    rng = np.random.default_rng(seed)
    synthetic = np.vstack([rng.dirichlet(np.full(3, 0.2), size=4), np.eye(3)])
    channels = [mechanisms.Channel(c, ABC, ABC) for c in mechanism.channels(synthetic)]
    worst = max(channel.epsilon for channel in channels)
    assert worst == pytest.approx(mechanism.epsilon, abs=1e-9)
    for at in (0.0, mechanism.epsilon / 2):
        worst = max(channel.delta(at) for channel in channels)
        assert mechanism.delta(at) == pytest.approx(worst, abs=1e-12)
    for alpha in (0.5, 1, 2, 10):
        # The worst row: two labels at the floor, the third has the rest; it is attained.
        extremes = np.vstack([synthetic, [[0, 0, 1.0]]])
        worst = max(
            mechanisms.Channel(c, ABC, ABC).rdp(alpha) for c in mechanism.channels(extremes)
        )
        assert mechanism.rdp(alpha) == pytest.approx(worst, rel=1e-7, abs=1e-10)


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


@pytest.mark.parametrize(
    ("classifier", "message"),
    [
        (Fixed(["a", "b"], [0.5, 0.5]), "It knows 2, 2 of them among these"),
        (Fixed(["a", "b", "d"], [0.2, 0.3, 0.5]), "It knows 3, 2 of them among these"),
        (Fixed(["a", "b", "c"], [0.2, 0.3, 0.6]), "sum to 1; 4 do not"),
        (Fixed(["a", "b", "c"], [0.2, -0.2, 1.0]), "sum to 1; 4 do not"),
        (Fixed(["a", "b", "c"], [0.5, 0.5]), "one probability per row and label"),
    ],
)
def test_a_wrong_classifier_is_refused(classifier: Fixed, message: str) -> None:
    with pytest.raises(InputError, match=message):
        ModelBasedRR(ABC, 0.4).synthetic(classifier, np.zeros((4, 1)))


def test_a_scikit_learn_classifier_fits_in() -> None:
    from sklearn.linear_model import LogisticRegression

    rng = np.random.default_rng(0)
    features = rng.normal(size=(200, 2))
    model = LogisticRegression().fit(features, np.array(ABC)[rng.integers(0, 3, 200)])
    mechanism = ModelBasedRR(ABC, 0.4, 0.01)
    released = mechanism.sample(np.zeros(200, np.int32), mechanism.synthetic(model, features), rng)
    assert released.shape == (200,)


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


def test_double_randomized_response_needs_every_label() -> None:
    with pytest.raises(InputError, match="1 label"):
        DoubleRR(ABC, 0.5).sample(np.zeros(3, np.int32), np.array([0, 1], np.int32))
    whole = DoubleRR(ABC, 0.0).sample(np.arange(3, dtype=np.int32), np.arange(3, dtype=np.int32))
    assert whole.labels.tolist() == [0, 1, 2]
    assert whole.synthetic_rows.tolist() == [-1, -1, -1]


@given(st.floats(0.01, 0.99), st.floats(1.01, 60), st.integers(2, 12))
def test_dummy_features_floor_is_below_the_mechanism(noise: float, alpha: float, k: int) -> None:
    mechanism = DummyFeaturesRR(tuple(range(k)), noise)
    # Theorem 7.2: only the diagonal entry of the divergence's sum is kept.
    p, q = 1 - noise + noise / k, noise / k
    log_term = (alpha * math.log(p) + (1 - alpha) * math.log(q)) / (alpha - 1)
    assert mechanism.conditional_rdp_floor(alpha) == pytest.approx(max(log_term, 0), abs=1e-9)
    assert mechanism.conditional_rdp_floor(alpha) <= mechanism.rdp(alpha) + 1e-9


TABLE = {  # δ = 1e-5, sensitivity 1: σ classical, σ exact, true ε of the classical σ.
    0.5: (9.6896, 7.0318, 0.353),
    1: (4.8448, 3.7306, 0.751),
    2: (2.4224, 1.9938, 1.610),
    4: (1.2112, 1.0812, 3.511),
    8: (0.6056, 0.6002, 7.914),
    10: (0.4845, 0.4999, 10.394),
    16: (0.3028, 0.3442, 18.899),
}


@pytest.mark.parametrize("epsilon", TABLE)
def test_gaussian_calibration_table(epsilon: float) -> None:
    classical, exact, true = TABLE[epsilon]
    assert classical_sigma(epsilon, 1e-5, 1) == pytest.approx(classical, abs=6e-5)
    assert gaussian_sigma(epsilon, 1e-5, 1) == pytest.approx(exact, abs=6e-5)
    sigma = classical_sigma(epsilon, 1e-5, 1)
    assert gaussian_epsilon(sigma, 1, 1e-5) == pytest.approx(true, abs=6e-4)


@pytest.mark.parametrize(
    ("delta", "first"), [(1e-2, 6.77), (1e-4, 7.99), (1e-5, 8.42), (1e-6, 8.78)]
)
def test_where_the_classical_calibration_first_fails(delta: float, first: float) -> None:
    for epsilon, holds in ((first - 0.01, True), (first + 0.01, False)):
        sigma = classical_sigma(epsilon, delta, 2.0)
        assert (gaussian_delta(sigma, 2.0, epsilon) <= delta) == holds


@given(st.floats(0.05, 20), st.floats(1e-10, 0.3), st.floats(0.01, 100))
def test_calibrations_invert_each_other(epsilon: float, delta: float, width: float) -> None:
    sigma = gaussian_sigma(epsilon, delta, width)
    assert gaussian_delta(sigma, width, epsilon) <= delta * (1 + 1e-12)
    assert gaussian_delta(sigma * (1 - 1e-6), width, epsilon) > delta
    assert gaussian_epsilon(sigma, width, delta) == pytest.approx(epsilon, rel=1e-8)


def test_gaussian_delta_is_the_integral() -> None:
    for sigma, epsilon in ((0.6, 2.0), (3.0, 0.2), (1.0, -0.7)):

        def density(x: float, sigma: float = sigma) -> float:
            return float(stats.norm.pdf(x, 1, sigma))

        cross = sigma**2 * epsilon + 0.5
        first = stats.norm.sf(cross, 1, sigma) - math.exp(epsilon) * stats.norm.sf(cross, 0, sigma)
        assert gaussian_delta(sigma, 1, epsilon) == pytest.approx(first, abs=1e-14)
        total, _ = integrate.quad(
            lambda x, s=sigma, e=epsilon, p=density: p(x) - math.exp(e) * stats.norm.pdf(x, 0, s),
            cross,
            40,
            epsabs=1e-12,
        )
        assert total == pytest.approx(first, abs=1e-9)


def test_the_whole_example_of_gaussian_features() -> None:
    mechanism = gaussian((-1, 1), feature_epsilon=2.0, radius=3.0)
    assert mechanism.epsilon == pytest.approx(1.0)
    assert mechanism.sigma == pytest.approx(6 * 1.9938, abs=6e-4)
    assert mechanism.example_epsilon == pytest.approx(3.0, abs=1e-8)
    assert mechanism.claim_holds()
    # δ of the pair on a grid: losses of the label, then of the features.
    edges = np.linspace(-120, 126, 60_001)
    p = np.diff(stats.norm.cdf(edges, 6, mechanism.sigma))
    q = np.diff(stats.norm.cdf(edges, 0, mechanism.sigma))
    keep = 1 / (1 + math.exp(-1))
    for at in (0.0, 1.0, 2.5):
        pair = np.clip(keep * p - math.exp(at) * (1 - keep) * q, 0, None).sum()
        pair += np.clip((1 - keep) * p - math.exp(at) * keep * q, 0, None).sum()
        assert mechanism.example_delta(at) == pytest.approx(pair, abs=1e-6)
    assert mechanism.example_delta(3.0) <= 1e-5


def test_a_classical_claim_that_does_not_hold_is_reported() -> None:
    low, high = (
        gaussian((0, 1), feature_epsilon=e, radius=1.0, sigma=classical_sigma(e, 1e-5, 2.0))
        for e in (1.0, 16.0)
    )
    assert low.claim_holds()
    assert not high.claim_holds()
    assert "does not hold: exactly 18.8989" in high.description


@pytest.mark.parametrize(
    ("radius", "sigma", "delta", "message"),
    [
        (0, 1, 1e-5, "radius"),
        (1, 0, 1e-5, "sigma"),
        (1, -1, 1e-5, "sigma"),
        (1, math.inf, 1e-5, "sigma"),
        (1, 1, 0, "delta"),
        (1, 1, 1, "delta"),
    ],
)
def test_bad_gaussian_parameters(radius: float, sigma: float, delta: float, message: str) -> None:
    with pytest.raises(InputError, match=message):
        GaussianRR((0, 1), 0.5, radius, sigma, 1.0, delta)


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


def test_rounding_is_unbiased_and_keeps_the_epsilon_of_what_follows() -> None:
    grid = (0, 1, 3, 10)
    rounding = Rounding(grid)
    labels = np.array([0.0, 0.3, 1.0, 2.5, 9.9, 10.0])
    lower, up = rounding.neighbours(labels)
    points = np.array(grid, dtype=float)
    mean = (1 - up) * points[lower] + up * points[lower + 1]
    assert mean == pytest.approx(labels, abs=1e-14)
    assert rounding.mean(points, labels) == pytest.approx(labels, abs=1e-14)
    variance = up * (1 - up) * (points[lower + 1] - points[lower]) ** 2
    drawn = points[rounding.sample(np.repeat(labels, 50_000), np.random.default_rng(0))]
    spread = np.sqrt(variance / 50_000)
    # Within 6 standard deviations each.
    gap = np.abs(drawn.reshape(6, -1).mean(axis=1) - labels)
    assert (gap <= 6 * spread + 1e-12).all()
    mechanism = RandomizedResponse.from_epsilon(grid, 1.0)
    rows = rounding.mean(mechanism.channel.matrix, np.linspace(0, 10, 41))
    channel = mechanisms.Channel(rows, tuple(range(41)), grid)
    assert channel.epsilon <= 1.0 + 1e-12
    near = Rounding(grid, "nearest").sample(labels)
    assert points[near].tolist() == [0, 0, 1, 3, 10, 10]


@pytest.mark.parametrize("labels", [[-0.1], [10.1], [math.nan]])
def test_rounding_refuses_labels_outside(labels: list[float]) -> None:
    with pytest.raises(InputError, match=r"\d row"):
        Rounding((0, 10)).sample(labels)


def test_rounding_refuses_what_is_no_grid_and_no_method() -> None:
    with pytest.raises(InputError, match="increasing"):
        Rounding((1, 0))
    with pytest.raises(InputError, match="nearest"):
        Rounding((0, 1), "up")  # type: ignore[arg-type]
