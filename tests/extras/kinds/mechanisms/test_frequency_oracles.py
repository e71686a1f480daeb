import math
from typing import Any

import numpy as np
import pytest

from ldpaudit.extras.kinds.mechanisms.frequency_oracles import PROTOCOLS, FrequencyOracle
from ldpaudit.mechanisms import from_declaration
from ldpaudit.release import Declaration

CLASSES = ("a", "b", "c", "d", "e", "f")
ROWS = 20_000


def oracle(protocol: str, epsilon: float = 1.0, **more: Any) -> FrequencyOracle:
    parameters = {"protocol": protocol, "epsilon": epsilon, "classes": list(CLASSES), **more}
    built = from_declaration(Declaration("frequency-oracle", parameters), ())
    assert isinstance(built, FrequencyOracle)
    return built


@pytest.fixture(params=PROTOCOLS)
def protocol(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 4.0])
def test_epsilon_is_that_of_the_law(protocol: str, epsilon: float) -> None:
    made = oracle(protocol, epsilon)
    assert made.compared.epsilon == pytest.approx(made.epsilon, rel=1e-9)
    if protocol == "THE":
        assert made.epsilon < epsilon
    else:
        assert made.epsilon == epsilon
    assert made.rdp(math.inf) == pytest.approx(made.epsilon, rel=1e-9)
    assert made.delta(made.epsilon) == pytest.approx(0.0, abs=1e-9)
    assert made.delta(made.epsilon - 0.1) > 0
    assert made.rdp(2) < made.epsilon


@pytest.mark.parametrize("epsilon", [22.0, 36.0, 50.0])
def test_epsilon_is_that_of_the_law_and_of_the_draws_where_it_is_large(
    protocol: str, epsilon: float
) -> None:
    made = oracle(protocol, epsilon)
    assert made.compared.epsilon == pytest.approx(made.epsilon, rel=1e-12)
    assert made.law.width < 10  # Not one entry for each of e^ε hash values.

    class Lowest:
        """The words that are the least likely: who draws 0 has drawn what is possible at all."""

        def words(self, n: int) -> Any:
            return np.zeros(n, dtype=np.uint64)

    reports = made.check(made.sample(np.zeros(1, np.int32), Lowest()))
    if protocol in ("SUE", "OUE", "THE"):
        assert reports.all()  # A bit of another label is never impossible.


def test_reports_follow_the_law(protocol: str) -> None:
    # Every tolerance is five standard errors: a false alarm has probability below 1e-6.
    made, rng = oracle(protocol), np.random.default_rng(2)
    true, other = np.full(ROWS, 2, dtype=np.int32), np.full(ROWS, 4, dtype=np.int32)
    reports = made.check(made.sample(true, rng))
    assert reports.shape == (ROWS, made.law.width)
    ratios = made.log_ratio(reports, true, other)
    assert np.abs(ratios).max() <= made.epsilon * (1 + 1e-9)
    np.testing.assert_allclose(made.log_ratio(reports, other, true), -ratios)
    # E[P(o | other)/P(o | true)] = 1 for the true law.
    odds = np.exp(-ratios)
    assert odds.mean() == pytest.approx(1.0, abs=5 * odds.std() / math.sqrt(ROWS))
    if protocol in ("BLH", "OLH"):
        reports, ratios = reports[ratios != 0], ratios[ratios != 0]
    share = (ratios > made.epsilon * (1 - 1e-9)).mean()
    expected = made.compared.matrix[0, 0]
    if protocol == "OLH":  # Seeds that tell the labels apart, values of one of them.
        expected /= made.compared.matrix[0, :2].sum()
    assert share == pytest.approx(expected, abs=2.5 / math.sqrt(len(ratios)))


def test_the_most_likely_label(protocol: str) -> None:
    made, rng = oracle(protocol), np.random.default_rng(3)
    true = rng.integers(0, len(CLASSES), ROWS).astype(np.int32)
    reports = made.check(made.sample(true, rng))
    likely = made.most_likely(reports)
    assert likely.any(axis=1).all()
    # No label is likelier than one of the most likely.
    best = likely.argmax(axis=1).astype(np.int32)
    for code in range(len(CLASSES)):
        codes = np.full(ROWS, code, dtype=np.int32)
        assert made.log_ratio(reports, codes, best).max() <= 1e-9
    kept = made.labels(reports, rng) == true
    if (keep := made.law.keep()) is not None:
        assert kept.mean() == pytest.approx(keep, abs=2.5 / math.sqrt(ROWS))
        assert made.label_channel is not None
        assert made.label_channel.epsilon <= made.epsilon + 1e-9
    else:
        assert made.label_channel is None
        assert kept.mean() > 1 / len(CLASSES) + 0.02


def test_delta_of_summed_histograms_against_samples() -> None:
    made, rng = oracle("SHE"), np.random.default_rng(4)
    n = 100_000
    first, second = np.zeros(n, dtype=np.int32), np.ones(n, dtype=np.int32)
    losses = made.log_ratio(made.sample(first, rng), first, second)
    for epsilon in (0.0, 0.3, 0.6, 0.9):
        parts = np.maximum(-np.expm1(epsilon - losses), 0)
        error = 5 * parts.std() / math.sqrt(n)
        assert made.delta(epsilon) == pytest.approx(parts.mean(), abs=error)
