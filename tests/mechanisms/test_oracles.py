"""Every ε, δ(ε) and Rényi curve against another library, to 1e-9, where it is installed."""

import math
import warnings

import numpy as np
import pytest

from ldpaudit.mechanisms import RandomizedResponse
from ldpaudit.mechanisms.discrete_laplace import DiscreteLaplace
from ldpaudit.mechanisms.gaussian import gaussian_delta, gaussian_epsilon, gaussian_sigma
from ldpaudit.mechanisms.label_range import LabelRange
from ldpaudit.mechanisms.laplace import Laplace

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
        assert mechanism.delta(at) == pytest.approx(oracle.get_delta_for_epsilon(at), abs=1e-9)
    assert oracle.get_delta_for_epsilon(mechanism.epsilon) == pytest.approx(0, abs=1e-12)
    assert oracle.get_delta_for_epsilon(mechanism.epsilon * (1 - 1e-6)) > 0
    rdp = curve(dp.LaplaceDpEvent(1 / epsilon), ORDERS)
    assert [mechanism.rdp(a) for a in ORDERS] == pytest.approx(rdp, abs=1e-9)


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
