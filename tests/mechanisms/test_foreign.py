"""A mechanism of another package that contradicts itself, or changes, is refused by name."""

import sys
from importlib.metadata import EntryPoint
from pathlib import Path
from types import MappingProxyType

import numpy as np
import pytest

from ldpaudit.errors import InputError
from ldpaudit.mechanisms import from_declaration, registry
from ldpaudit.mechanisms.channel import Channel
from ldpaudit.mechanisms.foreign import checked_reports
from ldpaudit.plugins import load_object
from ldpaudit.release import Declaration

FILE = Path(__file__).parents[1] / "stranger" / "hadamard_reports.py"
CLASSES = ("a", "b", "c")
REPORTS = np.arange(4)[:, None]
FIRST, SECOND = np.array([0, 1, 2, 0], dtype=np.int32), np.array([1, 2, 0, 2], dtype=np.int32)


def channel(epsilon):
    kept = np.exp(epsilon) / (np.exp(epsilon) + 2)
    return Channel(np.where(np.eye(3), kept, (1 - kept) / 2), CLASSES, CLASSES)


@pytest.fixture
def built(monkeypatch):
    """Return a function that builds the mechanism of another package with other members."""
    hadamard = load_object(f"{FILE}:HadamardReports", (), "mechanism", "CLASS")

    def build(**members):
        members = {
            name: property(one) if name in ("compared", "label_channel", "channel") else one
            for name, one in members.items()
        }
        made = type("Other", (hadamard,), members)
        monkeypatch.setattr(sys.modules[hadamard.__module__], "Other", made, raising=False)
        place = EntryPoint(
            "hadamard-reports", f"{hadamard.__module__}:Other", "ldpaudit.mechanisms"
        )
        points = MappingProxyType({**registry._entry_points(), place.name: place})
        monkeypatch.setattr(registry, "_entry_points", lambda: points)
        registry.family.cache_clear()
        stated = {"classes": CLASSES, "epsilon": 1.0}
        return from_declaration(Declaration("hadamard-reports", stated), CLASSES)

    yield build
    registry.family.cache_clear()


def test_one_that_agrees_with_itself_is_taken(built):
    honest = checked_reports(built())
    assert honest.check(REPORTS).shape == (4, 1)
    assert honest.labels(REPORTS, np.random.default_rng(1)).dtype == np.int32
    assert np.abs(honest.log_ratio(REPORTS, FIRST, SECOND)).max() == 1.0


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ({"compared": lambda _: channel(2.0)}, "states ε = 1, and its compared has ε = 2"),
        ({"compared": lambda _: channel(0.5)}, "its compared has ε = 0.5; they must agree"),
        ({"label_channel": lambda _: channel(2.0)}, "its label_channel has ε = 2; it has more"),
        (
            {"compared": lambda _: 3},
            "The compared of .* must be a ldpaudit.doors.Channel or None. Got int",
        ),
        (
            {"compared": lambda _: channel(np.random.default_rng().random())},
            "The compared of .* is another one each time it is built",
        ),
        ({"description": None}, "The description of .* must be a text. Got NoneType instead."),
    ],
)
def test_a_channel_of_another_epsilon_is_refused(built, members, message):
    with pytest.raises(InputError, match=message) as refused:
        built(**members)
    assert "'hadamard-reports' (mechanism)" in str(refused.value)


@pytest.mark.parametrize(
    ("method", "answer", "message"),
    [
        ("log_ratio", lambda *_: np.full(4, 1.0), "does not turn with the two labels for 4 of 4"),
        ("log_ratio", lambda *_: np.full(4, np.nan), "is not a number for 4 of 4 reports"),
        ("log_ratio", lambda _, __, a, b: 9.0 * (a - b), "exceeds its ε = 1 for 4 of 4 reports"),
        ("log_ratio", lambda *_: np.zeros(3), r"of shape \(4,\). Got shape \(3,\) instead"),
        ("log_ratio", lambda *_: None, "Got NoneType instead"),
        ("labels", lambda *_: np.full(4, 3), "must be positions of labels"),
        ("labels", lambda *_: np.full(4, 0.5), "must be positions of labels"),
        ("labels", lambda *_: np.array(["a"] * 4), "Got ndarray instead"),
        ("check", lambda *_: np.zeros((3, 1)), r"of shape \(4, 1\). Got shape \(3, 1\) instead"),
    ],
)
def test_an_answer_that_cannot_be_is_refused(built, method, answer, message):
    reports = checked_reports(built(**{method: answer}))
    asked = {
        "log_ratio": (REPORTS, FIRST, SECOND),
        "labels": (REPORTS, np.random.default_rng(1)),
        "check": (REPORTS,),
    }[method]
    with pytest.raises(InputError, match=message) as refused:
        getattr(reports, method)(*asked)
    assert "'hadamard-reports' (mechanism)" in str(refused.value)
