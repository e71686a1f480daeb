"""ε, δ(ε) and Rényi curves against other libraries, to 1e-9, where they are installed.

What no library covers is in ``test_exact_oracles``.
"""

import math
import warnings

import numpy as np
import pytest

from ldpaudit.mechanisms import RandomizedResponse
from ldpaudit.mechanisms.label_range import LabelRange
from ldpaudit.mechanisms.noise.continuous import Laplace, laplace_delta, laplace_rdp
from ldpaudit.mechanisms.noise.discrete import DiscreteLaplace
from ldpaudit.mechanisms.numeric.bin_design import optimal_bins
from ldpaudit.mechanisms.numeric.debiased_rr import DebiasedRR
from ldpaudit.mechanisms.response.double_rr import DoubleRR
from ldpaudit.mechanisms.response.dummy_features_rr import DummyFeaturesRR
from ldpaudit.mechanisms.response.gaussian import gaussian_delta, gaussian_epsilon, gaussian_sigma
from ldpaudit.mechanisms.response.gaussian_rr import GaussianRR

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    dp = pytest.importorskip("dp_accounting", reason="the extra 'accounting' is not installed")
    plm = pytest.importorskip("dp_accounting.pld.privacy_loss_mechanism")

EPSILONS = (0.1, 0.5, 1.0, 2.0, 4.0, 8.0)
ORDERS = [1.5, 2.0, 3.0, 8.0, 32.0]


def curve(event, orders, relation=dp.NeighboringRelation.ADD_OR_REMOVE_ONE):
    accountant = dp.rdp.RdpAccountant(orders, relation)
    accountant.compose(event)
    return accountant._rdp


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_laplace(epsilon):
    mechanism = Laplace(LabelRange(-3.0, 4.0), epsilon)
    oracle = plm.LaplacePrivacyLoss(mechanism.scale, sensitivity=7.0)
    for at in (0.0, 0.1, 0.7 * epsilon, epsilon):
        delta = oracle.get_delta_for_epsilon(at)
        assert laplace_delta(at, epsilon) == pytest.approx(delta, abs=1e-9)
        assert mechanism.delta(at) == pytest.approx(delta, abs=1e-5)  # Its noise is in steps.
    assert oracle.get_delta_for_epsilon(mechanism.epsilon) == pytest.approx(0, abs=1e-12)
    assert oracle.get_delta_for_epsilon(mechanism.epsilon * (1 - 1e-6)) > 0
    rdp = curve(dp.LaplaceDpEvent(1 / epsilon), ORDERS)
    assert [laplace_rdp(a, epsilon) for a in ORDERS] == pytest.approx(rdp, abs=1e-9)
    assert [mechanism.rdp(a) for a in ORDERS] == pytest.approx(rdp, rel=1e-4)


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("steps", [1, 5, 52])
def test_discrete_laplace(epsilon, steps):
    mechanism = DiscreteLaplace(LabelRange(0, steps, 1), epsilon)
    oracle = plm.DiscreteLaplacePrivacyLoss(epsilon / steps, sensitivity=steps)
    for at in (0.0, 0.1, 0.7 * epsilon, epsilon):
        assert mechanism.delta(at) == pytest.approx(oracle.get_delta_for_epsilon(at), abs=1e-9)
    losses = [oracle.privacy_loss(x) for x in range(-3 * steps, 4 * steps)]
    assert max(losses) == pytest.approx(mechanism.epsilon, abs=1e-9)


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("delta", [1e-3, 1e-5])
def test_gaussian(epsilon, delta):
    sigma = gaussian_sigma(epsilon, delta, 6.0)
    oracle = plm.GaussianPrivacyLoss(sigma, sensitivity=6.0)
    assert oracle.get_delta_for_epsilon(epsilon) == pytest.approx(delta, rel=1e-9)
    for at in (0.0, 0.5 * epsilon, 1.5 * epsilon):
        expected = oracle.get_delta_for_epsilon(at)
        assert gaussian_delta(sigma, 6.0, at) == pytest.approx(expected, abs=1e-12)
    event = dp.GaussianDpEvent(sigma / 6.0)
    exact = dp.get_epsilon_gaussian(sigma / 6.0, delta)
    assert gaussian_epsilon(sigma, 6.0, delta) == pytest.approx(exact, abs=1e-9)
    assert curve(event, ORDERS) == pytest.approx([a * 18 / sigma**2 for a in ORDERS], rel=1e-9)


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("k", [2, 10, 53])
def test_randomized_response(epsilon, k):
    mechanism = RandomizedResponse.from_epsilon(tuple(range(k)), epsilon)
    event = dp.RandomizedResponseDpEvent(mechanism.noise, k)
    expected = curve(event, ORDERS, dp.NeighboringRelation.REPLACE_ONE)
    assert [mechanism.rdp(a) for a in ORDERS] == pytest.approx(expected, abs=1e-9)
    keep = 1 - mechanism.noise + mechanism.noise / k
    pld = dp.pld.privacy_loss_distribution.from_randomized_response(
        mechanism.noise,
        k,
        pessimistic_estimate=True,
        value_discretization_interval=epsilon / 4 * (1 + 1e-11),
    )
    # The losses 0 and ε lie on the oracle's grid, just above ε: it is exact to 1e-11.
    for at in (0.0, 0.5 * epsilon, 0.9 * epsilon):
        assert mechanism.delta(at) == pytest.approx(pld.get_delta_for_epsilon(at), abs=1e-9)
        assert mechanism.delta(at) == pytest.approx(
            keep * -math.expm1(min(at - epsilon, 0)), abs=1e-12
        )
    assert np.isclose(mechanism.epsilon, epsilon, atol=1e-9)


def on_three_labels(epsilon):
    """Return mechanisms that are randomized response on three labels or outputs, ε in nats."""
    classes = (0, 1, 2)
    noise = 3 / (2 + math.exp(epsilon))
    yield DoubleRR(classes, noise)
    yield DummyFeaturesRR(classes, noise)
    yield GaussianRR(classes, noise, 1.0, 2.0)
    yield DebiasedRR(classes, epsilon)
    bins = optimal_bins(classes, (0.4, 0.2, 0.4), epsilon).mechanism
    if len(bins.starts) == 3:
        yield bins


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_what_is_randomized_response_in_other_words(epsilon):
    event = dp.RandomizedResponseDpEvent(3 / (2 + math.exp(epsilon)), 3)
    expected = curve(event, ORDERS, dp.NeighboringRelation.REPLACE_ONE)
    found = list(on_three_labels(epsilon))
    assert len(found) == 5 or epsilon < 3
    for mechanism in found:
        assert mechanism.epsilon == pytest.approx(epsilon, abs=1e-9)
        assert [mechanism.rdp(a) for a in ORDERS] == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_opendp_grants_the_same_epsilon(epsilon):
    """OpenDP rounds up in its last digits; its scale and sensitivity are ours."""
    prelude = pytest.importorskip("opendp.prelude", reason="the extra 'continuous' is missing")
    prelude.enable_features("contrib")
    labels = LabelRange(0, 7, 1)
    continuous = prelude.m.make_laplace(
        prelude.atom_domain(T=float, nan=False),
        prelude.absolute_distance(T=float),
        scale=Laplace(labels, epsilon).scale,
    )
    assert continuous.map(7.0) == pytest.approx(epsilon, abs=1e-9)
    discrete = prelude.m.make_laplace(
        prelude.atom_domain(T=int),
        prelude.absolute_distance(T=int),
        scale=DiscreteLaplace(labels, epsilon).scale,
    )
    assert discrete.map(7) == pytest.approx(epsilon, abs=1e-9)
    keep = RandomizedResponse.from_epsilon((0, 1, 2), epsilon)
    response = prelude.m.make_randomized_response(
        ["a", "b", "c"], prob=1 - keep.noise + keep.noise / 3
    )
    assert response.map(1) == pytest.approx(epsilon, abs=1e-9)
