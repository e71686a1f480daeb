"""ε, δ(ε) and Rényi curves against other libraries, to 1e-9, where they are installed.

What no library covers is in ``test_exact_oracles``.
"""

import warnings

import pytest

from ldpaudit.extras.kinds.mechanisms.gaussian import (
    gaussian_delta,
    gaussian_epsilon,
    gaussian_sigma,
)
from ldpaudit.mechanisms.label_range import LabelRange
from ldpaudit.mechanisms.noise import Laplace

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
        assert mechanism.delta(at) == pytest.approx(delta, abs=1e-5)  # Its noise is in steps.
    assert oracle.get_delta_for_epsilon(mechanism.epsilon) == pytest.approx(0, abs=1e-12)
    assert oracle.get_delta_for_epsilon(mechanism.epsilon * (1 - 1e-6)) > 0
    rdp = curve(dp.LaplaceDpEvent(1 / epsilon), ORDERS)
    assert [mechanism.rdp(a) for a in ORDERS] == pytest.approx(rdp, rel=1e-4)


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
