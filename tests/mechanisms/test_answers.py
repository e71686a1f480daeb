"""Every mechanism answers for itself, and nobody else answers for it."""

import ast
import math
import re
from collections.abc import Iterator
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
from ldpaudit.mechanisms.interface import AnalysedMechanism, Mechanism
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
    stated = mechanism.declaration()
    again = from_declaration(Declaration(name, stated), ())
    assert again.description == mechanism.description
    assert dict(again.declaration()) == dict(stated)
    if stated:
        with pytest.raises(InputError, match="unknown"):
            from_declaration(Declaration(name, {**stated, "sigmma": 1}), ())
        with pytest.raises(AttributeError):
            mechanism.surplus = 1  # type: ignore[attr-defined]
    parameters = mechanism.parametrisations()
    assert all(isinstance(value, float) for value in parameters.values())
    assert parameters.get("epsilon") == mechanism.epsilon
    assert all(text.endswith(".") for text in mechanism.remarks())
    assert all(e.kind == "exact" for e in mechanism.exact_estimates())
    share = mechanism.unchanged_share
    assert share is None or 0 <= share <= 1
    assert (share is None) is (traits.features == "unknown")
    assert not traits.label_depends_on_features or mechanism.label_channel is None
    assert (numeric_view(mechanism, 1000) is not None) is traits.numeric
    assert traits.swept <= bool(traits.options)


@pytest.mark.parametrize("name", names())
def test_curves_are_those_of_the_whole_channel(name: str) -> None:
    mechanism = _built(name)
    if not isinstance(mechanism, AnalysedMechanism):
        return
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


@pytest.mark.parametrize("name", [name for name in names() if traits_of(name).numeric])
def test_errors_bins_and_likelihoods_of_numbers(name: str) -> None:
    mechanism: Any = _built(name)
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
    assert binned.epsilon <= mechanism.epsilon + 1e-9
    picked = mechanism.binned(edges.tolist(), some).matrix
    assert picked == pytest.approx(binned.matrix[[0, 3]])
    likelihood = mechanism.likelihood(np.array([0.0, 3.0]), errors.labels)
    assert likelihood.shape == (2, 7)
    assert (likelihood >= 0).all()


@pytest.mark.parametrize("name", names())
def test_a_parameter_of_any_other_type_is_taken_or_refused(name: str) -> None:
    stated = dict(_built(name).declaration())
    odd: tuple[Any, ...] = (5, True, "x", [None], [[1]], [{}], {}, math.inf, 1e-308, 10**400)
    for key in (*stated, "rows", "width", "size", "outputs"):
        for value in odd:
            try:
                made = from_declaration(Declaration(name, {**stated, key: value}), WORDS)
            except InputError:
                continue
            assert made.description
            assert made.declaration() is not None


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
    ("ldpaudit/extras/choose/planes.py", "channel"): "the id of a figure",
    ("datasets/domains.py", "frequency-oracle"): "part of the key of a random stream",
    ("datasets/names.py", "unknown"): "a word for a missing value",
    ("ldpaudit/extras/kinds/synthetic/audit.py", "unknown"): "a trait: of features",
    ("ldpaudit/audits/mechanism/audit.py", "unknown"): "a trait: what is released of labels",
    ("ldpaudit/audits/models.py", "channel"): "the key of a shared computation",
    ("ldpaudit/extras/choose/mechanism/result.py", "channel"): "a key of the JSON result",
    ("ldpaudit/extras/release/privatize/columns.py", "channel"): "the option --channel",
    ("ldpaudit/commands/declare/work.py", "channel"): "the option --channel",
    ("datasets/probabilities.py", "channel"): "the same: the form of a matrix",
    ("datasets/probabilities.py", "by-stratum"): "the same, as it is written",
    ("datasets/formats/dialect.py", "unknown"): "a word for a missing value",
    ("ldpaudit/surfaces.py", "channel"): "the option --channel",
    ("ldpaudit/pipeline/described.py", "unknown"): "columns that are not known to be from before",
    (
        "datasets/declaration.py",
        "by-stratum",
    ): "a form of declarations",
    (
        "ldpaudit/extras/release/privatize/plan.py",
        "channel",
    ): "the key of a plan, an option of a stratum",
    ("ldpaudit/options/labels.py", "channel"): "the key of a column's options",
    ("ldpaudit/extras/learn/iwp.py", "exponential"): "a loss",
    ("ldpaudit/extras/learn/iwp_losses.py", "exponential"): "a loss",
    ("ldpaudit/extras/learn/utility/learner.py", "exponential"): "a loss",
    ("ldpaudit/extras/learn/request.py", "exponential"): "a loss",
    ("ldpaudit/cli/__init__.py", "channel"): "a command",
}


FOLDERS = ("ldpaudit/mechanisms/", "ldpaudit/extras/kinds/mechanisms/")
ATTACKS = ("attacks/", "ldpaudit/extras/kinds/attacks.py")


def outside() -> Iterator[tuple[str, str]]:
    """Yield the files outside of the folder, and their code."""
    for top in ("attacks", "datasets", "reports", "ldpaudit"):
        for path in sorted((ROOT / top).rglob("*.py")):
            place = path.relative_to(ROOT).as_posix()
            linked = (ROOT / top / path.relative_to(ROOT / top).parts[0]).is_symlink()
            if not linked and not place.startswith(FOLDERS):
                yield place, path.read_text(encoding="utf-8")


def test_no_mechanism_is_named_outside_of_its_folder() -> None:
    """But a need of an attack, the declared channel, and what a self-test states."""
    known = {f.traits.name for f in families()} | {"rr"}
    named = {
        (place, node.value)
        for place, code in outside()
        if any(f"{mark}{name}{mark}" in code for name in known for mark in "'\"")
        for node in ast.walk(ast.parse(code))
        if isinstance(node, ast.Constant) and node.value in known
    }
    planted = {
        (place, name)
        for place, name in named
        if place.startswith("ldpaudit/extras/selftest/")
        or (place.startswith(ATTACKS) and name in NEEDS)
    }
    assert named - planted == set(OTHER_MEANINGS)


def test_no_class_of_mechanisms_is_tested_for_outside_of_its_folder() -> None:
    for name in names():
        family(name)
    classes, left = set(), [Mechanism, JointMechanism]
    while left:
        below = left.pop().__subclasses__()
        left += below
        classes |= {cls.__name__ for cls in below}
    assert {"FiniteMechanism", "DoubleResponse", "NumericMechanism", "OnDomains"} <= classes
    names_of = "|".join(classes)
    asked = re.compile(
        rf"is(?:instance|subclass)\([^()]*,[^()]*\b({names_of})\b"
        rf"|(?:==|\bis|\bin|!=) ({names_of})\b|case ({names_of})\("
    )
    assert not {(place, found[0]) for place, code in outside() if (found := asked.search(code))}
