import json
import math
from typing import Any

import numpy as np
import pytest

from ldpaudit.errors import InputError
from ldpaudit.mechanisms import from_declaration
from ldpaudit.mechanisms.frequency_oracles import PROTOCOLS, FrequencyOracle
from ldpaudit.mechanisms.frequency_oracles.hashing import xxh32
from ldpaudit.mechanisms.interface import AnalysedMechanism, Mechanism
from ldpaudit.mechanisms.response.randomized_response import RandomizedResponse
from ldpaudit.release import Declaration

CLASSES = ("a", "b", "c", "d", "e", "f")
ROWS = 60_000


def oracle(protocol: str, epsilon: float = 1.0, **more: Any) -> FrequencyOracle:
    parameters = {"protocol": protocol, "epsilon": epsilon, "classes": list(CLASSES), **more}
    built = from_declaration(Declaration("frequency-oracle", parameters), ())
    assert isinstance(built, FrequencyOracle)
    return built


@pytest.fixture(params=PROTOCOLS)
def protocol(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_declarations_go_round(protocol: str) -> None:
    made = oracle(protocol)
    assert isinstance(made, Mechanism)
    assert isinstance(made, AnalysedMechanism)
    stored = json.loads(json.dumps(made.declaration()))
    assert from_declaration(Declaration(made.name, stored), ()) == made
    assert made.protocol == protocol
    assert "'a'" not in made.description
    assert made.channel is None


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 4.0])
def test_epsilon_is_that_of_the_law(protocol: str, epsilon: float) -> None:
    made = oracle(protocol, epsilon)
    assert made.pair_channel.epsilon == pytest.approx(made.epsilon, rel=1e-9)
    if protocol == "THE":
        assert made.epsilon < epsilon
    else:
        assert made.epsilon == epsilon
    assert made.rdp(math.inf) == pytest.approx(made.epsilon, rel=1e-9)
    assert made.delta(made.epsilon) == pytest.approx(0.0, abs=1e-9)
    assert made.delta(made.epsilon - 0.1) > 0
    assert made.rdp(2) < made.epsilon


def test_reports_follow_the_law(protocol: str) -> None:
    # Every tolerance is five standard errors: a false alarm has probability below 1e-6.
    made, rng = oracle(protocol), np.random.default_rng(2)
    true, other = np.full(ROWS, 2, dtype=np.int32), np.full(ROWS, 4, dtype=np.int32)
    reports = made.check(made.sample(true, rng))
    assert reports.shape == (ROWS, made.width)
    ratios = made.log_ratio(reports, true, other)
    assert np.abs(ratios).max() <= made.epsilon * (1 + 1e-9)
    np.testing.assert_allclose(made.log_ratio(reports, other, true), -ratios)
    # E[P(o | other)/P(o | true)] = 1 for the true law.
    odds = np.exp(-ratios)
    assert odds.mean() == pytest.approx(1.0, abs=5 * odds.std() / math.sqrt(ROWS))
    if protocol in ("BLH", "OLH"):
        reports, ratios = reports[ratios != 0], ratios[ratios != 0]
    share = (ratios > made.epsilon * (1 - 1e-9)).mean()
    expected = made.pair_channel.matrix[0, 0]
    if protocol == "OLH":  # Seeds that tell the labels apart, values of one of them.
        expected /= made.pair_channel.matrix[0, :2].sum()
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
    if made.keep_probability is not None:
        assert kept.mean() == pytest.approx(made.keep_probability, abs=2.5 / math.sqrt(ROWS))
        assert made.label_channel is not None
        assert made.label_channel.epsilon <= made.epsilon + 1e-9
    else:
        assert made.label_channel is None
        assert kept.mean() > 1 / len(CLASSES) + 0.02


def test_real_draws_take_the_systems_generator(protocol: str) -> None:
    made = oracle(protocol)
    reports = made.sample(np.arange(6, dtype=np.int32))
    assert made.check(reports).shape == (6, made.width)


def test_generalized_rr_is_randomized_response() -> None:
    made = oracle("GRR")
    assert made.label_channel is not None
    channel = RandomizedResponse.from_epsilon(CLASSES, 1.0).channel
    np.testing.assert_allclose(made.label_channel.matrix, channel.matrix)
    assert made.rdp(3) == pytest.approx(channel.rdp(3))
    assert made.delta(0.2) == pytest.approx(channel.delta(0.2))


def test_delta_of_summed_histograms_against_samples() -> None:
    made, rng = oracle("SHE"), np.random.default_rng(4)
    n = 400_000
    first, second = np.zeros(n, dtype=np.int32), np.ones(n, dtype=np.int32)
    losses = made.log_ratio(made.sample(first, rng), first, second)
    for epsilon in (0.0, 0.3, 0.6, 0.9):
        parts = np.maximum(-np.expm1(epsilon - losses), 0)
        error = 5 * parts.std() / math.sqrt(n)
        assert made.delta(epsilon) == pytest.approx(parts.mean(), abs=error)


@pytest.mark.parametrize(
    ("text", "seed", "digest"),
    [
        ("", 0, 0x02CC5D05),
        ("a", 0, 0x550D7456),
        ("abc", 0, 0x32D153FF),
    ],
)
def test_xxh32_against_its_published_values(text: str, seed: int, digest: int) -> None:
    assert int(xxh32(text, np.array([seed], dtype=np.uint32))[0]) == digest


def test_long_texts_are_not_hashed() -> None:
    with pytest.raises(InputError, match="at most 15 bytes"):
        xxh32("x" * 16, np.zeros(1, dtype=np.uint32))


@pytest.mark.parametrize(
    ("protocol_name", "bad"),
    [
        ("GRR", [[6]]),
        ("GRR", [[0, 1]]),
        ("SS", [[0, 0]]),
        ("SS", [[-1, 2]]),
        ("SUE", [[0, 1, 2, 0, 0, 0]]),
        ("SUE", [[0, 1]]),
        ("SHE", [[0, 0, 0, 0, 0, math.nan]]),
        ("BLH", [[5, 2]]),
        ("BLH", [[5.5, 1.0]]),
    ],
)
def test_reports_of_another_protocol_are_refused(protocol_name: str, bad: Any) -> None:
    with pytest.raises(InputError):
        oracle(protocol_name).check(np.array(bad))


@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"protocol": "XYZ", "epsilon": 1},
        {"protocol": "SUE"},
        {"protocol": "SUE", "epsilon": -1},
        {"protocol": "SUE", "epsilon": 1, "size": 3},
        {"protocol": "SS", "epsilon": 1, "size": 6},
        {"protocol": "SS", "epsilon": 1, "size": 0},
        {"protocol": "OLH", "epsilon": 1, "buckets": 1},
        {"protocol": "BLH", "epsilon": 1, "hash": "md5"},
        {"protocol": "THE", "epsilon": 1, "threshold": 0.4},
    ],
)
def test_bad_declarations(parameters: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        from_declaration(Declaration("frequency-oracle", parameters), CLASSES)
