from typing import Any

import numpy as np
import pytest

from ldpaudit.datasets.domains import encode_labels, find_domains
from ldpaudit.datasets.labels import LabelColumn
from ldpaudit.errors import InputError
from ldpaudit.mechanisms.view import DeclaredCoding
from ldpaudit.release import Declaration


def labels(*values: Any, rows: int = 300) -> LabelColumn:
    return LabelColumn(values, (np.arange(rows) % len(values)).astype(np.int32))


def response(**parameters: Any) -> Declaration:
    return Declaration("randomized-response", {"epsilon": 1.0, **parameters})


def test_declared_classes_keep_their_order() -> None:
    encoded = encode_labels(response(classes=["b", "a"]), labels("a", "b"), labels("a", "b"))
    assert encoded.domains.classes == encoded.domains.outputs == ("b", "a")
    assert encoded.released[:2].tolist() == [1, 0]
    assert encoded.truth is not None
    assert encoded.truth[:2].tolist() == [1, 0]


@pytest.mark.parametrize("declared", [[0, 1], ["0", "1"], [0.0, 1.0], [False, True]])
@pytest.mark.parametrize("found", [(1, 0), ("1", "0"), (True, False)])
def test_declared_classes_match_across_types(declared: list[Any], found: tuple[Any, ...]) -> None:
    encoded = encode_labels(response(classes=declared), labels(*found), None)
    assert encoded.released[:2].tolist() == [1, 0]
    assert encoded.domains.classes == tuple(declared)


def test_a_channel_has_outputs_of_its_own() -> None:
    channel = Declaration("channel", {"classes": [1, 2], "outputs": ["low", "high", "none"]})
    encoded = encode_labels(channel, labels("high", "low"), labels(2, 1))
    assert encoded.domains.classes == (1, 2)
    assert encoded.domains.outputs == ("low", "high", "none")
    assert encoded.released[:2].tolist() == [1, 0]
    assert find_domains(Declaration("channel", {"classes": [1, 2]}), labels(1, 2), None) == (
        find_domains(response(classes=[1, 2]), labels(1, 2), None)
    )


@pytest.mark.parametrize("claim", [None, Declaration("unknown"), response()])
def test_undeclared_classes_are_the_union(claim: Declaration | None) -> None:
    domains = find_domains(claim, labels(10, 9), labels(9, 2))
    assert domains.classes == domains.outputs == (2, 9, 10)
    assert find_domains(claim, labels("b", "a"), None).classes == ("a", "b")
    same = find_domains(claim, labels(1, 0), labels("1", "0", "2"))
    assert same.classes == (0, 1, "2")


def test_labels_with_nothing_in_common() -> None:
    domains = find_domains(None, labels("x", "w"), labels(1, 0))
    assert (domains.classes, domains.outputs, domains.apart) == ((0, 1), ("w", "x"), True)
    with pytest.raises(InputError, match="in the same way"):
        find_domains(response(), labels("x", "w"), labels(1, 0))


def test_outputs_of_a_mechanism_that_is_not_a_channel_on_the_classes() -> None:
    binned = Declaration("rr-on-bins", {"classes": [0, 1, 2, 3]})
    coding = DeclaredCoding(binned)
    assert find_domains(binned, labels(1.5, 0.5), None, coding).outputs == (0.5, 1.5)
    assert find_domains(binned, labels(3, 1), None, coding).outputs == (0, 1, 2, 3)


@pytest.mark.parametrize(
    ("claim", "released", "truth", "message"),
    [
        (response(classes=["a", "b"]), labels("a", "zzz"), None, "150 of 300 rows hold another"),
        (response(classes=["a", "b"]), labels("a", "b"), labels("a", "zzz"), "declared classes"),
        (response(classes=["a"]), labels("a", "b"), None, "at least 2 declared classes"),
        (response(classes="ab"), labels("a", "b"), None, "must be a list"),
        (response(classes=["a", None]), labels("a", "b"), None, "Got NoneType"),
        (response(classes=["a", float("nan")]), labels("a", "b"), None, "Got float"),
        (response(classes=["1", 1]), labels("1", "b"), None, "told apart"),
        (response(classes=[*range(31)]), labels(1, 2), None, "31 different values"),
        (response(), labels("a"), None, "one only"),
        (response(), labels("a", "b"), labels("a"), "true label must take at least two"),
        (Declaration("channel", {"matrix": [[1]]}), labels("a", "b"), None, "name its classes"),
        (None, labels(*np.linspace(0.1, 9, 60).tolist(), rows=900), None, "looks continuous"),
        (None, labels("a", "b", rows=900), labels(*np.linspace(0.1, 9, 60).tolist(), rows=900),
         "looks continuous"),
    ],
)  # fmt: skip
def test_labels_that_do_not_fit(
    claim: Declaration | None, released: LabelColumn, truth: LabelColumn | None, message: str
) -> None:
    with pytest.raises(InputError, match=message) as caught:
        encode_labels(claim, released, truth, DeclaredCoding(claim))
    assert "zzz" not in str(caught.value)


def test_declared_numbers_are_not_taken_for_measurements() -> None:
    outputs = np.linspace(0.1, 9, 60).tolist()
    claim = Declaration("channel", {"classes": [0, 1], "outputs": outputs})
    encoded = encode_labels(claim, labels(*outputs, rows=900), labels(0, 1, rows=900))
    assert encoded.released[:60].tolist() == list(range(60))
