"""Channels by stratum: the largest ε, and what pooling the strata makes of them."""

from typing import Any

import numpy as np
import pytest

from ldpaudit.datasets.domains import declared_labels
from ldpaudit.errors import InputError
from ldpaudit.mechanisms import ByStratum, RandomizedResponse, from_declaration
from ldpaudit.mechanisms.joint import IndependentColumns
from ldpaudit.mechanisms.shown import plain_parameters
from ldpaudit.release import Declaration

NORTH = {"name": "randomized-response", "classes": ["q", "r"], "epsilon": 1.0}
SOUTH = {"name": "channel", "classes": ["q", "r"], "matrix": [[0.9, 0.1], [0.3, 0.7]]}


def _built(*mechanisms: dict[str, Any], **more: Any) -> Any:
    strata = [{"value": f"v{i}", "mechanism": m} for i, m in enumerate(mechanisms)]
    return from_declaration(Declaration("by-stratum", {"strata": strata, **more}), ("q", "r"))


def test_the_largest_stratum_counts() -> None:
    mechanism = _built(NORTH, SOUTH)
    assert mechanism.epsilon == pytest.approx(np.log(7))
    assert mechanism.epsilon == mechanism.by_stratum[1].epsilon
    assert mechanism.delta(1.0) == mechanism.by_stratum[1].delta(1.0) > 0
    assert mechanism.channel is mechanism.label_channel is None


def test_pooled_strata_are_an_average() -> None:
    mechanism = _built(NORTH, SOUTH)
    first, second = mechanism.matrices
    assert mechanism.averaged([3, 1]).matrix == pytest.approx(0.75 * first + 0.25 * second)
    by_label = mechanism.averaged(np.array([[1.0, 0.0], [0.0, 1.0]])).matrix
    assert by_label == pytest.approx(np.array([first[0], second[1]]))
    assert mechanism.averaged([1, 1]).epsilon <= mechanism.epsilon
    for bad in ([1.0], [-1, 2], [0, 0]):
        with pytest.raises(InputError, match="share"):
            mechanism.averaged(bad)


def test_draws_follow_each_rows_stratum() -> None:
    mechanism, n = _built(NORTH, SOUTH), 20_000
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


@pytest.mark.parametrize(
    ("mechanisms", "words"),
    [
        (({"name": "channel", "matrix": [[1, 0], [0, 1]]},), "name its classes"),
        ((NORTH, NORTH | {"classes": ["r", "q"]}), "same labels"),
        (({"name": "unknown"},), "finite channel"),
        (({"epsilon": 1},), "state its 'name'"),
        ((), "at least one stratum"),
    ],
)
def test_bad_strata_are_one_line(mechanisms: tuple[dict[str, Any], ...], words: str) -> None:
    with pytest.raises(InputError, match=words):
        _built(*mechanisms)


def test_a_result_holds_labels_and_strata_as_text() -> None:
    stated = plain_parameters(_built(NORTH, SOUTH).declaration())
    assert [one["value"] for one in stated["strata"]] == ["v0", "v1"]
    joint = plain_parameters({"domains": [["q", 1], ["x", True]], "epsilon": 1.0})
    assert joint == {"domains": [["q", "1"], ["x", "True"]], "epsilon": 1.0}
