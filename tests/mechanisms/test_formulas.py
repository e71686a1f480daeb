"""Single numbers of mechanisms against their definitions: what is found, and what it must be."""

import math
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import mpmath
import numpy as np
import pytest
from scipy import integrate, stats

from ldpaudit.errors import InputError
from ldpaudit.extras.kinds.mechanisms.bins import RROnBins, debiased_outputs
from ldpaudit.extras.kinds.mechanisms.frequency_oracles import (
    ORACLES,
    FrequencyOracle,
    best_threshold,
    xxh32,
)
from ldpaudit.extras.kinds.mechanisms.gaussian import (
    gaussian_delta,
    gaussian_epsilon,
    gaussian_sigma,
)
from ldpaudit.extras.kinds.mechanisms.label_proportions import LabelProportions
from ldpaudit.extras.kinds.mechanisms.with_features import DoubleRR
from ldpaudit.extras.several.joint import JointRR, RandomSampling
from ldpaudit.mechanisms import (
    Channel,
    ExplicitChannel,
    RandomizedResponse,
    RandomizedResponseTopK,
    UnknownMechanism,
    from_declaration,
)
from ldpaudit.mechanisms.analysis import delta_curve, privacy_of
from ldpaudit.mechanisms.channel import largest_log_ratios
from ldpaudit.mechanisms.exact_sampling import TOTAL
from ldpaudit.mechanisms.finite import codes_of
from ldpaudit.mechanisms.joint import IndependentColumns
from ldpaudit.mechanisms.label_range import LabelRange, between, loss, nearest, plain_numbers
from ldpaudit.mechanisms.noise import DiscreteLaplace, Exponential, Laplace
from ldpaudit.mechanisms.prior_budget import check_prior_budget, prior_budget
from ldpaudit.mechanisms.response import conditional_rdp_floor
from ldpaudit.mechanisms.rounding import Rounding
from ldpaudit.mechanisms.view import numeric_view, point_channel
from ldpaudit.release import Declaration

Row = tuple[str, Callable[[], Any], Any]
AB, ABC, E = ("a", "b"), ("a", "b", "c"), math.exp(1.2)
GAPPED = np.array([[0.5, 0.5, 0.0], [0.2, 0.7, 0.1], [0.3, 0.0, 0.7]])
RATIOS = [[0, math.log(2.5), math.inf], [math.inf, 0, math.inf], [math.inf, math.log(7), 0]]
BLIND = ExplicitChannel(Channel(np.full((3, 2), 0.5), (0, 1, 2), (0, 1)))
SURE = ExplicitChannel(Channel(np.eye(2), AB, (10, 20.5)))
IMPOSSIBLE = Channel(np.array([[1.0, 0.0], [0.5, 0.5]]), AB, (0, 1))
HALVES = Channel(np.array([[0.5, 0.5, 0.0], [0.25, 0.25, 0.5]]), (0, 1), (0, 1, 2))
NEVER = Channel(np.array([[0.75, 0.25, 0.0], [0.25, 0.75, 0.0]]), (0, 1), (0, 1, 2))
TENTH = LabelRange.parse("0:0.3:0.1")
HALF = LabelRange(0.0, 10.0, 0.5)
POINTS = np.array([0.0, 1.0, 4.0])
FEW, MANY = (DiscreteLaplace(LabelRange(0.0, top, 1.0), 1.0, True) for top in (9.0, 999.0))
DOMAINS = ((0, 1), (0, 1, 2, 3, 4))
UNLIKE = np.array([[1.0, 0.0], [0.5, 0.5]])
FEATURES = {"radius": 1.0, "feature_epsilon": 1.0, "feature_delta": 1e-5}
NEGATIVE = ExplicitChannel(Channel(UNLIKE, (1, 2), (1.0, -1.0)))


def oracle(protocol: str, classes: Iterable[Any], epsilon: float, **more: float) -> FrequencyOracle:
    stated = {"protocol": protocol, "classes": list(classes), "epsilon": epsilon, **more}
    return ORACLES.from_parameters(stated, ())


def built(name: str, **parameters: Any) -> Any:
    return from_declaration(Declaration(name, parameters), AB)


def largest_entry(epsilon: float, k: int) -> float:
    """∫ f(x − 1) F(x)^{k−1} dx of Laplace noise of scale 2/ε, by mpmath."""
    b = 2 / epsilon

    def density(x: mpmath.mpf) -> mpmath.mpf:
        below = mpmath.exp(x / b) / 2 if x < 0 else 1 - mpmath.exp(-x / b) / 2
        return mpmath.exp(-abs(x - 1) / b) / (2 * b) * below ** (k - 1)

    with mpmath.workdps(20):
        return float(mpmath.quad(density, [-mpmath.inf, 0, 1, mpmath.inf]))


def least_variance(epsilon: float) -> float:
    grid = np.linspace(0.5001, 1, 50_000)
    p, q = 1 - np.exp(epsilon * (grid - 1) / 2) / 2, np.exp(-epsilon * grid / 2) / 2
    return float(grid[np.argmin(q * (1 - q) / (p - q) ** 2)])


def gaussian_tail(sigma: float, epsilon: float) -> float:
    """∫ (p − e^ε q)₊ of two normal densities a distance of 1 apart."""
    p, q = stats.norm(1, sigma).pdf, stats.norm(0, sigma).pdf
    cross = sigma**2 * epsilon + 0.5
    return float(integrate.quad(lambda x: p(x) - math.exp(epsilon) * q(x), cross, 40)[0])


def geometric_cdf(epsilon: float, places: np.ndarray[Any, Any]) -> list[float]:
    q, whole = math.exp(-epsilon), np.arange(-80, 81)
    pmf = (1 - q) / (1 + q) * q ** np.abs(whole)
    return [float(pmf[whole <= at].sum()) for at in places]


def xxh32_of(text: str, seed: int) -> int:
    """Return XXH32 of at most 15 bytes by its specification, one step after the other."""
    primes = (2654435761, 2246822519, 3266489917, 668265263, 374761393)
    data, word = text.encode(), (1 << 32) - 1

    def turned(value: int, bits: int) -> int:
        return ((value << bits) | (value >> (32 - bits))) & word

    state = (seed + primes[4] + len(data)) & word
    while len(data) >= 4:
        lane = data[0] | data[1] << 8 | data[2] << 16 | data[3] << 24
        state = turned((state + lane * primes[2]) & word, 17) * primes[3] & word
        data = data[4:]
    for byte in data:
        state = turned((state + byte * primes[4]) & word, 11) * primes[0] & word
    state = (state ^ state >> 15) * primes[1] & word
    state = (state ^ state >> 13) * primes[2] & word
    return state ^ state >> 16


def rows() -> Iterator[Row]:
    yield (
        "log ratios",
        lambda: largest_log_ratios(GAPPED),
        pytest.approx(np.array(RATIOS)),
    )
    stretched = ((math.exp(0.8) + 2) * POINTS - 5) / math.expm1(0.8)
    yield "debiased", lambda: debiased_outputs(POINTS, math.expm1(0.8)), pytest.approx(stretched)
    for epsilon in (0.5, 3.0):
        summed = oracle("SHE", "abcde", epsilon)
        expected = pytest.approx(largest_entry(epsilon, 5), rel=1e-9)
        yield "SHE", lambda m=summed: m.law.keep(), expected
    for epsilon in (0.5, 1.0, 4.0):
        found = pytest.approx(least_variance(epsilon), abs=1e-4)
        yield "threshold", lambda e=epsilon: best_threshold(e), found
    for text in ("abcd", "abcdefg", "no answer", "straße, 12345"):
        for seed in (0, 1, 0xFFFFFFFF):
            seeds = np.array([seed], np.uint32)
            yield "xxh32", lambda t=text, s=seeds: int(xxh32(t, s)[0]), xxh32_of(text, seed)
    for text, digest in (("", 0x02CC5D05), ("a", 0x550D7456), ("abc", 0x32D153FF)):
        yield "xxh32", lambda t=text: int(xxh32(t, np.zeros(1, np.uint32))[0]), digest
    yield "codes", lambda: HALF.codes([0.0, 1.0 + 0.4e-6, 10.0]).tolist(), [0, 2, 20]
    yield "tenths", lambda: TENTH.codes([0.1, 0.2, 0.3]).tolist(), [1, 2, 3]
    yield "steps", lambda: LabelRange(0.0, 10.0 + 0.4e-6, 0.5).steps, 20
    yield "most steps", lambda: LabelRange(0.0, float(1 << 22), 1.0).steps, 1 << 22
    yield "whole", lambda: repr(LabelRange(-1.0, 1.0, 1.0).classes), "(-1, 0, 1)"
    yield "real", lambda: repr(LabelRange.parse("0:1:0.5").classes), "(0.0, 0.5, 1.0)"
    yield "beyond", lambda: LabelRange(0, 1, 0.5).at(np.array([-1, 3])).tolist(), [-0.5, 1.5]
    edges = np.array([-9.0, 0.2, 0.9, 1.0, 3.0, 99.0])
    yield "between", lambda: between(POINTS, edges).tolist(), [0.5, 2.5]
    numbers = np.array([-5, 0.4, 0.5, 2.4, 2.5, 9])
    yield "nearest", lambda: nearest(POINTS, numbers).tolist(), [0, 0, 1, 1, 2, 2]
    rounded = np.array([0.0, 0.3, 1.0, 2.5, 9.9, 10.0])
    grid = Rounding((0, 1, 3, 10))
    yield "mean", lambda: grid.mean(grid.points, rounded), pytest.approx(rounded, abs=1e-14)
    near = Rounding((0, 1, 3, 10), "nearest")
    yield "near", lambda: near.sample(rounded).tolist(), [0, 0, 1, 2, 3, 3]
    epsilon = math.log(1 + 0.7 * 4 / 0.3)
    floor = 2.5 / 1.5 * epsilon - math.log(4 / 0.3) / 1.5
    yield "floor", lambda: conditional_rdp_floor(2.5, 0.3, 4), pytest.approx(floor)
    yield "floor at ∞", lambda: conditional_rdp_floor(math.inf, 0.3, 4), pytest.approx(epsilon)
    yield "floor at 0", lambda: conditional_rdp_floor(2.5, 0.0, 4), math.inf
    yield "no floor", lambda: conditional_rdp_floor(1.01, 0.99, 4) >= 0, True
    for noise, public in ((0.01, math.log(199)), (0.001, 7.600402), (0.3, 1.734601)):
        expected = pytest.approx(public, abs=1e-6)
        yield "published", lambda n=noise: RandomizedResponse(AB, n).epsilon, expected
    for noise, epsilon in ((0.0, math.inf), (1.0, 0.0)):
        response = RandomizedResponse(AB, noise)
        yield "end", lambda m=response: (m.epsilon, m.channel.epsilon), (epsilon, epsilon)
    double = DoubleRR(ABC, 0.6)
    expected = pytest.approx(2 * double.epsilon + 0.5)
    yield "with features", lambda: double.conditional_epsilon(0.5), expected
    yield "∞", lambda: (IMPOSSIBLE.epsilon, IMPOSSIBLE.rdp(2)), (math.inf, math.inf)
    yield "below 1", lambda: IMPOSSIBLE.rdp(0.5) < math.inf, True
    yield "never", lambda: NEVER.epsilon, pytest.approx(math.log(3))
    prior = np.array([0.2, 0.8])
    posterior = HALVES.posterior(prior)
    yield "posterior", lambda: posterior[0], pytest.approx(np.array([0.1, 0.2]) / 0.3)
    impossible = Channel(np.array([[0.5, 0.5, 0.0], [0.25, 0.75, 0.0]]), (0, 1), (0, 1, 2))
    yield "prior", lambda: impossible.posterior(prior)[2].tolist(), prior.tolist()
    best = sum(max(0.2 * a, 0.8 * b) for a, b in impossible.matrix.T)
    yield "guess", lambda: impossible.informed_accuracy(prior[None]), pytest.approx([best])
    yield "two rows", lambda: BLIND.compared.matrix.tolist(), [[0.5, 0.5], [0.5, 0.5]]
    yield "blind", lambda: delta_curve(privacy_of(BLIND))[-1], (1.0, 0.0)
    curve = delta_curve(privacy_of(Laplace(LabelRange(0.0, 1.0), 3.0)))
    yield "curve", lambda: (curve[0][0], curve[-1][0]), (0.0, pytest.approx(3.0))
    yield "values", lambda: SURE.release(["b", "a"]).tolist(), [20.5, 10.0]
    mixed = ExplicitChannel(Channel(np.eye(2), (0, 1), ("low", 7)))
    yield "mixed", lambda: mixed.release(np.array([1, 0])).tolist(), [7, "low"]
    half = ExplicitChannel(Channel(np.array([[0.75, 0.25], [0.5, 0.5]]), AB, ("b", "c")))
    yield "accuracy", lambda: half.accuracy([0.4, 0.6]), pytest.approx(0.3)
    at = np.array([-1.0, 0.0, 0.0, 2.0]), np.array([1.0, 1.0, 0.0, 0.0])
    yield "poisson", lambda: loss("poisson", *at).tolist(), [math.inf, math.inf, 0.0, 2.0]
    yield "possible", lambda: NEGATIVE.expected_loss([1, 0], "poisson"), pytest.approx(1.0)
    yield "infinite", lambda: NEGATIVE.expected_loss([0.5, 0.5], "poisson"), math.inf
    for labels, classes, codes in (
        ([1, 0, 1], (0, 1), [1, 0, 1]),
        ([1.0, 0.0], (0, 1), [1, 0]),
        ([True, False], (False, True), [1, 0]),
        (np.array(["x", "y"], dtype=object), ("y", "x"), [1, 0]),
        (np.array(["x", 3], dtype=object), (3, "x"), [1, 0]),
        ([], (0, 1), []),
    ):
        yield "codes", lambda v=labels, c=classes: codes_of(v, c).tolist(), codes
    outputs = (0.0, 1.0, 2.0, 10.0, 11.0, 30.0)
    spread = ExplicitChannel(Channel(np.full((2, 6), 1 / 6), (0, 1), outputs))
    for bins, expected in {1: [], 2: [6.0], 3: [1.5, 10.5], 6: [0.5, 1.5, 6.0, 10.5, 20.5]}.items():
        yield "edges", lambda b=bins: spread.bin_edges(b).tolist(), expected
    point = point_channel(FEW, numeric_view(FEW, 10_000))
    yield "points", lambda: point.matrix, pytest.approx(FEW.channel.matrix)
    wide = point_channel(MANY, numeric_view(MANY, 10_000))
    yield "few points", lambda: wide.matrix.sum(axis=1), pytest.approx([1] * 65)
    x = np.array([-3.0, -1.5, -1.0, -0.5, 0.0, 0.7, 1.0, 4.2])
    for epsilon in (0.5, 2.0):
        bag = LabelProportions("bag", AB, "geometric", epsilon)
        expected = pytest.approx(geometric_cdf(epsilon, x))
        yield "geometric", lambda m=bag: m.noise_cdf(x), expected
    plain = LabelProportions("bag", AB)
    yield "no noise", lambda: (plain.epsilon, plain.delta(5.0)), (math.inf, 1)
    yield "no noise", lambda: (plain.rdp(2.0), plain.channel), (math.inf, None)
    for epsilon, (classical, exact, true) in {  # δ = 1e-5, sensitivity 1.
        0.5: (9.6896, 7.0318, 0.353),
        1: (4.8448, 3.7306, 0.751),
        2: (2.4224, 1.9938, 1.610),
        4: (1.2112, 1.0812, 3.511),
        8: (0.6056, 0.6002, 7.914),
        16: (0.3028, 0.3442, 18.899),
    }.items():
        least = pytest.approx(exact, abs=6e-5)
        yield "exact σ", lambda e=epsilon: gaussian_sigma(e, 1e-5, 1), least
        yield (
            "its ε",
            lambda s=classical: gaussian_epsilon(s, 1, 1e-5),
            pytest.approx(true, abs=2e-3),
        )
    for sigma, epsilon in ((0.6, 2.0), (3.0, 0.2), (1.0, -0.7)):
        tail = pytest.approx(gaussian_tail(sigma, epsilon), abs=1e-9)
        yield "gaussian δ", lambda s=sigma, e=epsilon: gaussian_delta(s, 1, e), tail
    yield "budget", lambda: prior_budget(1.0, 400, 1_000_000), pytest.approx(0.02)
    yield "enough", lambda: check_prior_budget(0.2, 100, 1000), None
    for epsilon in (1e-6, 1.0, 30.0):
        gain, pair = (
            math.expm1(epsilon),
            (JointRR(DOMAINS, epsilon), RandomSampling(DOMAINS, epsilon)),
        )
        for j, k in enumerate((2, 5)):
            alone = math.log1p(k / 10 * gain), math.log1p(k * gain / (k + gain))
            expected = pytest.approx(alone, rel=1e-9)
            yield "alone", lambda p=pair, j=j: [m.columns[j].epsilon for m in p], expected
    words, laplace = (
        RandomizedResponse.from_epsilon(AB, 1.0),
        DiscreteLaplace(LabelRange(0, 9, 1), 0.5),
    )
    both = IndependentColumns((words, laplace))
    yield "sum", lambda: (both.epsilon, both.channel()), (pytest.approx(1.5), None)
    yield "unknown", lambda: IndependentColumns((words, UnknownMechanism())).epsilon, None


@pytest.mark.parametrize(("name", "found", "expected"), list(rows()))
def test_a_number_is_that_of_its_definition(
    name: str, found: Callable[[], Any], expected: Any
) -> None:
    assert found() == expected, name


@pytest.mark.parametrize(("k", "n"), [(3, 40), (7, 11), (2, 100_000)])
def test_the_least_budget_of_a_prior_is_named_and_enough(k: int, n: int) -> None:
    with pytest.raises(ValueError, match="need at least") as refused:
        check_prior_budget(1.999 * k / n, k, n)
    named = float(re.search(r"at least ([\d.e-]+);", str(refused.value)).group(1))  # type: ignore[union-attr]
    assert 2 * k / n <= named < 2 * k / n * 1.01
    check_prior_budget(named, k, n)


@pytest.mark.parametrize("epsilon", [1e-6, 0.1, 1.0, math.log(3), 7.3, 20.0])
@pytest.mark.parametrize("d", [2, 3, 7, 1500])
def test_integer_weights_never_exceed_the_stated_epsilon(epsilon: float, d: int) -> None:
    """Exactly: the ratio of two whole numbers against e^ε with 60 digits."""
    mechanism = RROnBins(tuple(range(d)), epsilon, tuple(range(d)), tuple(map(float, range(d))))
    row = [int(w) for w in np.atleast_2d(mechanism.weights.weights)[0]]
    with mpmath.workdps(60):
        ratio, limit = mpmath.mpf(max(row)) / min(row), mpmath.exp(mpmath.mpf(epsilon))
        assert limit * (1 - mpmath.mpf("1e-10")) <= ratio <= limit


@pytest.mark.parametrize("epsilon", [20.0, 36.0, 40.0, 50.0])
def test_draws_keep_epsilon_where_it_is_so_large_that_integers_are_few(epsilon: float) -> None:
    exponential = Exponential(LabelRange(0, 10, 1), epsilon)
    kept = RandomizedResponseTopK((0, 1, 2), (0, 1), epsilon)
    for table in (exponential.weights.weights, kept.weights.weights):
        assert all(sum(map(int, row)) == TOTAL for row in table)
        assert math.log(max(int(z.max()) / int(z.min()) for z in table.T)) <= epsilon + 1e-11
    assert all(
        table.weights.min() > 0
        for table in DiscreteLaplace(LabelRange(0, 10, 1), epsilon).law._tables
    )


def test_features_with_next_to_no_noise_have_an_infinite_epsilon() -> None:
    mechanism = built("gaussian-rr", **{"lambda": 0.5}, **FEATURES, sigma=1e-7)
    assert mechanism.exact_feature_epsilon == math.inf
    assert not mechanism.claim_holds()
    assert "ε = inf by adding the two, and δ = 0 exactly" in mechanism.remarks()[1]
    assert gaussian_delta(1e300, 1e-300, 1.0) == 0
    assert gaussian_delta(1e300, 1e-300, -1.0) == 1
    assert RandomizedResponse(np.array(AB), 0.5) == RandomizedResponse(AB, 0.5)


@pytest.mark.parametrize("bounds", ["-1:0.9:0.1", "-2.1:1.7:0.1", "-0.5:11.1:0.1", "3.1:78:0.7"])
def test_every_label_of_a_declared_range_is_taken_the_highest_too(bounds: str) -> None:
    grid = LabelRange.parse(bounds)
    labels = np.array([round(grid.low + i * grid.spacing, 1) for i in range(grid.steps + 1)])
    assert grid.values.tolist() == labels.tolist()
    real, rng = LabelRange(grid.low, grid.high), np.random.default_rng(0)
    for mechanism in (Laplace(real, 1.0, True), Exponential(real, 1.0), Exponential(grid, 1.0)):
        released = mechanism.release(labels, rng)
        assert ((released >= grid.low) & (released <= grid.high)).all()
        assert mechanism.likelihood(released, labels).min() > 0


def test_numbers_beyond_all_whole_ones_stay_as_they_are() -> None:
    assert plain_numbers(np.array([-2.0, 3e20])) == (-2.0, 3e20)
    assert plain_numbers(np.array([-2.0, 3e15])) == (-2, 3_000_000_000_000_000)


def test_a_channel_of_more_probabilities_than_the_limit_is_refused() -> None:
    with pytest.raises(InputError, match="at most 1,000,000 probabilities"):
        built("channel", matrix=np.full((2, 500_001), 0.5), outputs=list(range(500_001)))
