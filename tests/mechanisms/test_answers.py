"""Every mechanism answers for itself, and nobody else answers for it."""

import ast
import re
from collections.abc import Collection, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ldpaudit.attacks.interface import NEEDS
from ldpaudit.errors import InputError
from ldpaudit.mechanisms import MechanismOptions, from_declaration, names, traits_of
from ldpaudit.mechanisms.analysis import delta_curve, label_errors, privacy_of, rdp_curve
from ldpaudit.mechanisms.finite import FiniteMechanism
from ldpaudit.mechanisms.interface import AnalysedMechanism, Mechanism, NumericMechanism
from ldpaudit.mechanisms.joint import JointMechanism
from ldpaudit.mechanisms.label_range import LabelRange
from ldpaudit.mechanisms.registry import families, family
from ldpaudit.mechanisms.view import numeric_view
from ldpaudit.release import Declaration

ROOT = Path(__file__).parents[2]
WORDS, GRID = ("xu", "yv", "zw"), LabelRange(0, 6, 1)
PRIOR = np.array([0.1, 0.3, 0.2, 0.1, 0.1, 0.1, 0.1])
SETTINGS: dict[str, dict[str, Any]] = {
    "gaussian-rr": {"radius": 1.0, "feature_epsilon": 1.0, "feature_delta": 1e-5},
    "frequency-oracle": {"protocol": "SS"},
    "multi-stage-rr": {"stages": 3},
    "label-proportions": {"bag": "town", "noise": "geometric"},
    "by-stratum": {
        "strata": [
            {"value": value, "mechanism": {"name": "randomized-response", "epsilon": value / 2}}
            for value in (1, 2)
        ]
    },
    "channel": {"matrix": [[0.6, 0.3, 0.1], [0.5, 0.3, 0.2], [0.4, 0.4, 0.2]]},
}


def _classes(name: str) -> tuple[Any, ...]:
    if traits_of(name).numeric:
        return GRID.classes
    return WORDS[:2] if name == "label-proportions" else WORDS


def _built(name: str) -> Mechanism:
    traits, classes = traits_of(name), _classes(name)
    weights = PRIOR if traits.numeric else np.array([0.5, 0.3, 0.2])
    return family(name).from_options(
        MechanismOptions(
            epsilon=1.0 if traits.stated_by else None,
            classes=None if "range" in traits.needs else classes,
            labels=GRID if traits.numeric else None,
            prior=weights if "prior" in traits.needs else None,
            settings=SETTINGS.get(name, {}),
        )
    )


@pytest.mark.parametrize("name", names())
def test_every_name_answers_every_method(name: str) -> None:
    traits, mechanism = traits_of(name), _built(name)
    assert (mechanism.name, traits.name) == (name, name)
    assert traits.title != name or "-" not in name
    assert traits.title not in {f.traits.title for f in families() if f.traits.name != name}
    assert not any(label in mechanism.description.split() for label in WORDS)
    _check_declaration(mechanism)
    _check_words_and_numbers(mechanism)
    if isinstance(mechanism, AnalysedMechanism):
        _check_curves(mechanism)
    if isinstance(mechanism, NumericMechanism) and traits.numeric:
        _check_numbers(mechanism)
    assert (numeric_view(mechanism, 1000) is not None) is traits.numeric
    assert traits.swept <= bool(traits.options)


def _check_declaration(mechanism: Mechanism) -> None:
    stated = mechanism.declaration()
    again = from_declaration(Declaration(mechanism.name, stated), ())
    assert again.description == mechanism.description
    assert dict(again.declaration()) == dict(stated)
    if stated:
        with pytest.raises(InputError, match="unknown"):
            from_declaration(Declaration(mechanism.name, {**stated, "sigmma": 1}), ())
        with pytest.raises(AttributeError):
            mechanism.surplus = 1  # type: ignore[attr-defined]


def _check_words_and_numbers(mechanism: Mechanism) -> None:
    parameters = mechanism.parametrisations()
    assert all(isinstance(value, float) for value in parameters.values())
    assert parameters.get("epsilon") == mechanism.epsilon
    assert all(text.endswith(".") for text in mechanism.remarks())
    assert all(e.kind == "exact" for e in mechanism.exact_estimates())
    share = mechanism.unchanged_share
    assert share is None or 0 <= share <= 1
    assert (share is None) is (mechanism.traits.features == "unknown")
    depends = mechanism.traits.label_depends_on_features
    assert not depends or mechanism.label_channel is None


def _check_curves(mechanism: AnalysedMechanism) -> None:
    privacy = privacy_of(mechanism)
    delta, rdp = delta_curve(privacy), rdp_curve(privacy)
    assert delta[-1][1] == pytest.approx(0, abs=1e-9)
    assert all(a >= b - 1e-12 for (_, a), (_, b) in pairwise(delta))
    assert rdp[-1][1] == pytest.approx(privacy.epsilon)
    assert all(a <= b + 1e-9 for (_, a), (_, b) in pairwise(rdp))
    if isinstance(mechanism, FiniteMechanism):
        # The rows said to be the worst are: the whole channel has no larger δ or divergence.
        whole = mechanism.channel
        assert privacy.curves.delta(0.4) == pytest.approx(whole.delta(0.4))
        assert privacy.curves.rdp(3.0) == pytest.approx(whole.rdp(3.0))


def _check_numbers(mechanism: NumericMechanism) -> None:
    errors = label_errors(mechanism)
    assert errors is not None
    some = errors.labels[[0, 3]]
    assert mechanism.bias(some) == pytest.approx(errors.bias[[0, 3]])
    assert mechanism.variance(some) == pytest.approx(errors.variance[[0, 3]])
    assert mechanism.label_bounds == (0, 6)
    assert mechanism.expected_loss(PRIOR) > 0
    edges = mechanism.bin_edges(4)
    assert (np.diff(edges) > 0).all()
    binned = mechanism.binned(edges.tolist())
    assert binned.matrix.shape == (7, len(edges) + 1)
    assert binned.epsilon <= (mechanism.epsilon or 0) + 1e-9
    picked = mechanism.binned(edges.tolist(), some).matrix
    assert picked == pytest.approx(binned.matrix[[0, 3]])
    likelihood = mechanism.likelihood(np.array([0.0, 3.0]), errors.labels)
    assert likelihood.shape == (2, 7)
    assert (likelihood >= 0).all()


def test_an_epsilon_outside_of_the_limits_is_refused() -> None:
    for name in names():
        if "lambda" in traits_of(name).stated_by:
            for epsilon in (1e-308, 800.0):
                options = MechanismOptions(
                    epsilon=epsilon, classes=WORDS, settings=SETTINGS.get(name, {})
                )
                with pytest.raises(InputError, match="from 1e-06 to 50 nats"):
                    family(name).from_options(options)


# What may stand outside of mechanisms/ although it reads like a mechanism's name, and why.
OTHER_MEANINGS = {
    ("reports/charts/planes.py", "channel"): "the id of a figure",
    ("datasets/domains.py", "frequency-oracle"): "part of the key of a random stream",
    ("ldpaudit/audits/synthetic.py", "unknown"): "a trait: what is released of features",
    ("ldpaudit/audits/mechanism/audit.py", "unknown"): "a trait: what is released of labels",
    ("ldpaudit/audits/models.py", "channel"): "the key of a shared computation",
    ("ldpaudit/commands/mechanism/analysis.py", "channel"): "a key of the JSON result",
    ("ldpaudit/commands/privatize/columns.py", "channel"): "the option --channel",
    ("ldpaudit/commands/declare/work.py", "channel"): "the option --channel",
    ("datasets/probabilities.py", "channel"): "the same: the form of a matrix",
    ("datasets/probabilities.py", "by-stratum"): "the same, as it is written",
    (
        "datasets/declaration.py",
        "by-stratum",
    ): "a form of declarations",
    ("ldpaudit/commands/privatize/plan.py", "channel"): "the key of a plan, an option of a stratum",
    ("ldpaudit/options/labels.py", "channel"): "the key of a column's options",
    ("ldpaudit/models/iwp.py", "exponential"): "a loss",
    ("ldpaudit/models/iwp_losses.py", "exponential"): "a loss",
    ("ldpaudit/commands/utility/learner.py", "exponential"): "a loss",
    ("ldpaudit/commands/learn/request.py", "exponential"): "a loss",
}


def _sources(words: Collection[str]) -> Iterator[tuple[str, ast.Module]]:
    """Yield the files outside that hold one of the words somewhere."""
    held = re.compile("|".join(map(re.escape, words)))
    for top in ("attacks", "datasets", "reports", "ldpaudit"):
        for path in sorted((ROOT / top).rglob("*.py")):
            place = path.relative_to(ROOT)
            linked = top == "ldpaudit" and (ROOT / top / place.parts[1]).is_symlink()
            if linked or path.is_relative_to(ROOT / "ldpaudit" / "mechanisms"):
                continue
            text = path.read_text(encoding="utf-8")
            if held.search(text):
                yield place.as_posix(), ast.parse(text)


def _literals(tree: ast.Module) -> Iterator[str]:
    docs = {
        id(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docs:
            yield node.value


def _is_need(place: str, word: str) -> bool:
    """Return whether an attack needs it, the declared channel, or a self-test states it."""
    planted = place.startswith("ldpaudit/commands/selftest/")
    return planted or (place.startswith("attacks/") and word in NEEDS)


def test_no_mechanism_is_named_outside_of_its_folder() -> None:
    known = {f.traits.name for f in families()} | {"rr"}
    named = {
        (place, word)
        for place, tree in _sources([f"{mark}{word}{mark}" for word in known for mark in "'\""])
        for word in _literals(tree)
        if word in known and not _is_need(place, word)
    }
    assert named == set(OTHER_MEANINGS)


def _classes_of_mechanisms() -> set[str]:
    def below(cls: type) -> Iterator[type]:
        for sub in cls.__subclasses__():
            yield sub
            yield from below(sub)

    for name in names():
        family(name)
    return {cls.__name__ for base in (Mechanism, JointMechanism) for cls in below(base)}


def _tested(tree: ast.Module) -> Iterator[str]:
    """Yield the names of classes that isinstance, issubclass, a comparison or a match asks for."""
    for node in ast.walk(tree):
        asked: list[ast.AST] = []
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") in (
            "isinstance",
            "issubclass",
        ):
            asked = [node.args[1]]
        if isinstance(node, ast.Compare):
            asked = list(node.comparators)
        if isinstance(node, ast.MatchClass):
            asked = [node.cls]
        yield from (n.id for part in asked for n in ast.walk(part) if isinstance(n, ast.Name))


def test_no_class_of_mechanisms_is_tested_for_outside_of_its_folder() -> None:
    classes = _classes_of_mechanisms()
    assert {"FiniteMechanism", "DoubleResponse", "NumericMechanism", "OnDomains"} <= classes
    tested = {(place, cls) for place, tree in _sources(classes) for cls in _tested(tree)}
    assert not {(place, cls) for place, cls in tested if cls in classes}
