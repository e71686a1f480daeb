"""ε, δ(ε) and the Rényi curve of families that no library covers, against 30-digit arithmetic.

Every channel here is written down anew from the mechanism's definition, in mpmath numbers, and all
pairs of labels are looked at; nothing of the package but the parameters goes into the oracle.
"""

from itertools import permutations

import numpy as np
import pytest
from mpmath import exp, inf, log, mp, mpf, quad

from ldpaudit.extras.kinds.mechanisms.bins import DebiasedRR, RROnBins
from ldpaudit.extras.kinds.mechanisms.gaussian import GaussianRR
from ldpaudit.extras.kinds.mechanisms.with_features import DoubleRR, ModelBasedRR
from ldpaudit.mechanisms.channel import Channel
from ldpaudit.mechanisms.label_range import LabelRange
from ldpaudit.mechanisms.noise import (
    Exponential,
)
from ldpaudit.mechanisms.response import (
    DummyFeaturesRR,
    ExplicitChannel,
    RandomizedResponse,
    RandomizedResponseTopK,
    lambda_of_epsilon,
)

EPSILONS = (0.1, 1.0, 8.0)
ORDERS = (0.5, 1.0, 1.5, 2.0, 8.0, 32.0)
LABELS = (0, 1, 2, 3, 4)


@pytest.fixture(autouse=True)
def _digits():
    with mp.workdps(30):
        yield


def mp_epsilon(rows):
    return max(log(max(column) / min(column)) for column in zip(*rows, strict=True) if max(column))


def mp_delta(rows, at):
    growth = exp(mpf(at))
    return max(
        sum(max(p - growth * q, 0) for p, q in zip(*pair, strict=True))
        for pair in permutations(rows, 2)
    )


def mp_rdp(rows, alpha):
    a = mpf(alpha)
    if alpha == 1:
        return max(
            sum(p * log(p / q) for p, q in zip(*pair, strict=True) if p)
            for pair in permutations(rows, 2)
        )
    return max(
        log(sum(p**a * q ** (1 - a) for p, q in zip(*pair, strict=True) if p)) / (a - 1)
        for pair in permutations(rows, 2)
    )


def agrees(mechanism, rows, epsilon):
    """Compare ε, δ at four places and the Rényi curve, all to 1e-9."""
    rows = [[mpf(p) for p in row] for row in rows]
    assert mechanism.epsilon == pytest.approx(float(mp_epsilon(rows)), abs=1e-9)
    for at in (0.0, 0.05, 0.7 * epsilon, 1.1 * epsilon):
        assert mechanism.delta(at) == pytest.approx(float(mp_delta(rows, at)), abs=1e-9)
    for alpha in ORDERS:
        assert mechanism.rdp(alpha) == pytest.approx(float(mp_rdp(rows, alpha)), abs=1e-9)
    assert mechanism.rdp(np.inf) == pytest.approx(float(mp_epsilon(rows)), abs=1e-9)


def mp_randomized_response(k, epsilon):
    growth = exp(mpf(epsilon))
    return [[(growth if y == z else 1) / (growth + k - 1) for z in range(k)] for y in range(k)]


def chosen(own, other, at=lambda y, z: y == z):
    """Return P(z | y) of one output that is likelier than all others."""
    return lambda y, z: own if at(y, z) else other


def on(outputs, epsilon):
    """Return P(own output | y) and P(each other | y) of randomized response."""
    growth = exp(mpf(epsilon))
    return growth / (growth + outputs - 1), 1 / (growth + outputs - 1)


def kept_only(kept, epsilon):
    own, other = on(len(kept), epsilon)
    uniform = mpf(1) / len(kept)
    return lambda y, z: uniform if y not in kept else own if kept[z] == y else other


def near(steps, epsilon):
    def weight(y, z):
        return exp(-mpf(epsilon) * abs(y - z) / steps)

    return lambda y, z: weight(y, z) / sum(weight(y, other) for other in range(steps + 1))


FRACTIONS = [[5, 3, 1, 1], [2, 2, 2, 4], [1, 4, 4, 1]]
BINS = (0, 2, 3), (0.5, 2.0, 3.5)
TABLE = {  # A mechanism at ε, and P(z | y) from its definition, in mpmath numbers.
    "randomized-response": lambda e: (
        RandomizedResponse.from_epsilon(LABELS, e),
        chosen(*on(5, e)),
    ),
    "dummy-features-rr": lambda e: (DummyFeaturesRR.from_epsilon(LABELS, e), chosen(*on(5, e))),
    "double-rr": lambda e: (DoubleRR.from_epsilon(LABELS, e), chosen(*on(5, e))),
    "gaussian-rr": lambda e: (
        GaussianRR(LABELS, lambda_of_epsilon(e, 5), 1.0, 2.0),
        chosen(*on(5, e)),
    ),
    "debiased-rr": lambda e: (DebiasedRR(LABELS, e), chosen(*on(5, e))),
    "rr-on-bins": lambda e: (
        RROnBins(LABELS, e, *BINS),
        chosen(*on(3, e), lambda y, z: z == sum(start <= y for start in BINS[0]) - 1),
    ),
    **{
        f"rr-top-k {len(kept)}": lambda e, kept=kept: (
            RandomizedResponseTopK(LABELS, kept, e),
            kept_only(kept, e),
        )
        for kept in ((2,), (0, 4), (0, 2, 4), LABELS)
    },
    **{
        f"exponential {n}": lambda e, n=n: (Exponential(LabelRange(0, n, 1), e), near(n, e))
        for n in (1, 7)
    },
    "channel": lambda e: (
        ExplicitChannel(Channel(np.array(FRACTIONS) / 10, (0, 1, 2), (0.0, 1.0, 2.5, 4.0))),
        lambda y, z: mpf(FRACTIONS[y][z]) / 10,
    ),
}


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("name", TABLE)
def test_everything_follows_from_the_matrix(name, epsilon):
    mechanism, chance = TABLE[name](epsilon)
    channel = mechanism.label_channel
    labels, outputs = channel.classes, channel.outputs
    rows = [[chance(y, z) for z in range(len(outputs))] for y in range(len(labels))]
    agrees(mechanism, rows, epsilon)
    assert channel.matrix == pytest.approx(np.array(rows, dtype=float), abs=1e-12)
    if mechanism.channel is None:
        return
    for y, row in enumerate(rows):
        bias = sum(p * (mpf(z) - labels[y]) for p, z in zip(row, outputs, strict=True))
        square = sum(p * (mpf(z) - labels[y]) ** 2 for p, z in zip(row, outputs, strict=True))
        assert mechanism.bias()[y] == pytest.approx(float(bias), abs=1e-6 / epsilon)
        assert mechanism.variance()[y] == pytest.approx(float(square - bias**2), rel=1e-8)
    n, code = 5_000, len(labels) - 1
    drawn = mechanism.sample(np.full(n, code, dtype=np.int32), np.random.default_rng(3))
    share, row = np.bincount(drawn, minlength=len(outputs)) / n, np.array(rows[code], dtype=float)
    # 6.5 standard deviations: fails by chance less than once in 10⁷ runs.
    assert (np.abs(share - row) <= 6.5 * np.sqrt(row * (1 - row) / n) + 1e-12).all()


@pytest.mark.parametrize("noise", [0.05, 0.5, 0.95])
@pytest.mark.parametrize(("k", "floor"), [(2, 0.1), (3, 0.05), (5, 0.2)])
def test_model_based_rr(noise, k, floor):
    """The worst over the corners of what the floor allows, where each row is a mixture of them."""
    lam, low = mpf(noise), mpf(floor)
    worst = []
    for top in range(k):
        model = [low + (1 - k * low) * (z == top) for z in range(k)]
        worst.append([[(1 - lam) * (y == z) + lam * model[z] for z in range(k)] for y in range(k)])
    mechanism = ModelBasedRR(tuple(range(k)), noise, floor)
    assert mechanism.epsilon == pytest.approx(float(max(map(mp_epsilon, worst))), abs=1e-9)
    for at in (0.0, 0.5, 2.0):
        expected = max(mp_delta(rows, at) for rows in worst)
        assert mechanism.delta(at) == pytest.approx(float(expected), abs=1e-9)
    for alpha in ORDERS:
        expected = max(mp_rdp(rows, alpha) for rows in worst)
        assert mechanism.rdp(alpha) == pytest.approx(float(expected), abs=1e-9)


def test_gaussian_features_with_rr():
    """The whole example: ∫ over the features' worst direction, sum over the released labels."""
    k, radius, label_epsilon, sigma = 3, 1.0, 2.0, 0.8
    rr = mp_randomized_response(k, label_epsilon)
    mechanism = GaussianRR(
        tuple(range(k)), k / (k - 1 + float(exp(mpf(label_epsilon)))), radius, sigma
    )
    width = mpf(2 * radius)

    def density(x, centre):
        return exp(-((x - centre) ** 2) / (2 * mpf(sigma) ** 2)) / (mpf(sigma) * mp.sqrt(2 * mp.pi))

    for at in (0.0, 1.0):
        total = mpf(0)
        for z in range(k):
            # p(x) rr[0][z] > e^ε q(x) rr[1][z] below one crossing: p is centred at 0, q at 2R.
            shift = log(rr[0][z] / rr[1][z]) - mpf(at)
            cross = width / 2 + shift * mpf(sigma) ** 2 / width
            both = quad(
                lambda x, z=z, at=at: (
                    density(x, 0) * rr[0][z] - exp(mpf(at)) * density(x, width) * rr[1][z]
                ),
                [-inf, cross],
            )
            total += both
        assert mechanism.example_delta(at) == pytest.approx(float(total), abs=1e-9)
