import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from audits.found import check
from worlds import feature_table

from ldpaudit.audits.assumptions import without_truth
from ldpaudit.audits.interface import AuditContext, Plan
from ldpaudit.audits.mechanism.audit import AUDIT
from ldpaudit.estimators.epsilon.consistency import channel_consistency
from ldpaudit.mechanisms import (
    Channel,
    ExplicitChannel,
    Mechanism,
    RandomizedResponse,
    UnknownMechanism,
)
from ldpaudit.mechanisms.finite import FiniteMechanism
from ldpaudit.release import Release, ReleasedLabels, TrueLabels
from ldpaudit.result import Estimate, Finding
from ldpaudit.result.stated import INSIDER, OUTSIDER, SUBGROUPS


def context(
    true: FiniteMechanism,
    claim: Mechanism,
    n: int = 3000,
    *,
    prior: list[float] | None = None,
    with_truth: bool = True,
    gap: float = 6.0,
    outputs: tuple[Any, ...] | None = None,
) -> AuditContext:
    rng = np.random.default_rng(0)
    assert true.channel is not None
    k = len(true.channel.classes)
    truth = rng.choice(k, n, p=prior or np.full(k, 1 / k)).astype(np.int32)
    points = rng.normal(size=(n, 3)).astype(np.float32)
    points[:, 0] += gap * truth
    if gap == 0:
        points[:] = 1.0
    release = Release(
        features=feature_table(points),
        released=ReleasedLabels(true.sample(truth, rng)),
        outputs=outputs or true.channel.outputs,
        classes=true.channel.classes,
        truth=TrueLabels(truth) if with_truth else None,
    )
    return AuditContext(release, claim, Plan(seed=1))


def run(audited: AuditContext) -> tuple[Finding, Mapping[str, Estimate]]:
    finding = AUDIT.run(audited)
    return finding, {e.id: e for e in finding.estimates}


def binary(epsilon: float) -> RandomizedResponse:
    return RandomizedResponse.from_epsilon(("no", "yes"), epsilon)


RR1 = binary(1.0)
THREE = RandomizedResponse.from_epsilon(("a", "b", "c"), 1.0)
OTHER = np.array([[0.5, 0.3, 0.2, 0.0], [0.3, 0.3, 0.4, 0.0]])
MORE_OUTPUTS = ExplicitChannel(Channel(OTHER, ("a", "b"), ("u", "v", "w", "never")))
NO_YES = np.array([[0.9, 0.1], [0.5, 0.5]])
STRAIGHT = ExplicitChannel(Channel(NO_YES, ("no", "yes"), ("no", "yes")))
REVERSE = ExplicitChannel(Channel(NO_YES[::-1, ::-1], ("yes", "no"), ("yes", "no")))
CELLS, SHARES = "mechanism.channel_consistency", "mechanism.marginal_consistency"
ENTRIES, OBSERVED = "mechanism.inconsistent_entries", "mechanism.epsilon_observed"
EPSILON, VARIATION = "mechanism.epsilon", "mechanism.total_variation"
E = math.e


class ModelBased(UnknownMechanism):
    traits = replace(UnknownMechanism.traits, label_depends_on_features=True)


Case = tuple[Any, Any, dict[str, Any], dict[str, Any], str]
CASES: dict[str, Case] = {
    "honest": (
        RR1,
        RR1,
        {},
        {
            EPSILON: pytest.approx(1.0),
            VARIATION: pytest.approx(math.tanh(0.5)),
            "mechanism.lambda": pytest.approx(2 / (1 + E)),
            "mechanism.keep_probability": pytest.approx(E / (1 + E)),
            "mechanism.binary_flip": pytest.approx(1 / (1 + E)),
            CELLS: (0.01, 1),
            SHARES: (0.01, 1),
            ENTRIES: (0, 0),
            INSIDER: (0.8, 1.0),
            OUTSIDER: (0.5, 1.0),
            OBSERVED: (0.8, 1.2),
            f"{INSIDER}.accuracy": (0.75, 1.0),
            f"{INSIDER}.two-sided": (0.75, 1.0),
        },
        "",
    ),
    "more noise than claimed is inconsistent but no violation": (
        binary(0.5),
        RR1,
        {},
        {CELLS: (0, 1e-6), f"{CELLS}.g-test": (0, 1e-6), ENTRIES: (2, 2), INSIDER: (0, 1)},
        "do not follow",
    ),
    # Nearly all labels are "no" and nearly none is flipped: not what ε = 0.5 would give.
    "the outsider compares the released shares": (
        binary(6.0),
        binary(0.5),
        {"prior": [0.95, 0.05], "with_truth": False},
        {SHARES: (0, 1e-6), CELLS: None, INSIDER: None},
        "do not follow",
    ),
    "an undeclared mechanism states its assumption": (
        binary(2.0),
        UnknownMechanism(),
        {"n": 4000},
        {EPSILON: None, CELLS: None, INSIDER: (1.6, 2.0)},
        "No mechanism is declared",
    ),
    "outputs that are no classes": (
        MORE_OUTPUTS,
        MORE_OUTPUTS,
        {"n": 12_000, "prior": [0.8, 0.2]},
        {
            EPSILON: pytest.approx(math.log(2)),
            INSIDER: (0.4, math.log(2)),
            CELLS: (1e-4, 1),
            OUTSIDER: (0, 1),
        },
        "",
    ),
    "a class without rows": (
        THREE,
        THREE,
        {"prior": [0.5, 0.5, 0.0]},
        {INSIDER: (0.75, 1.0), CELLS: (1e-4, 1)},
        "",
    ),
    "one class only": (RR1, RR1, {"prior": [1.0, 0.0]}, {INSIDER: None}, "fewer than two classes"),
    "constant features": (
        RR1,
        RR1,
        {"gap": 0.0},
        {INSIDER: (0.75, 1.0), OUTSIDER: None},
        "no features distinguish the rows",
    ),
    "few rows": (RR1, RR1, {"n": 300}, {INSIDER: (0.0, 1.0), OUTSIDER: None}, "400 rows"),
    "a mechanism that uses the features": (
        RR1,
        ModelBased(),
        {},
        {INSIDER: None, OUTSIDER: None, EPSILON: None},
        "uses the features",
    ),
    "the order of the claim's labels": (STRAIGHT, REVERSE, {}, {CELLS: (0.01, 1)}, ""),
}
"""What made the release, the claim, the release; what is found (None: nothing), and a note."""


@pytest.mark.parametrize("name", CASES)
def test_what_is_found(name: str) -> None:
    true, claim, made, expected, words = CASES[name]
    finding, found = run(context(true, claim, **made))
    check(finding, expected, words)
    assert not {name for name, value in expected.items() if value is None} & finding.bounds.keys()
    warned = [note for note in finding.notes if note.level == "warning"]
    assert name != "honest" or not warned
    certified = [e for e in finding.estimates if e.kind == "certified" and e.unit == "nats"]
    assert {(e.side, e.level) for e in certified if e.id != SUBGROUPS} <= {("lower", 0.95)}
    assert (found[INSIDER].assumptions[0].count("features") if INSIDER in found else 1) == 1


def test_bounds_are_functions_of_the_level() -> None:
    finding, found = run(context(RR1, RR1))
    for identifier in (INSIDER, OUTSIDER):
        bound = finding.bounds[identifier]
        assert bound(0.05) == pytest.approx(found[identifier].value)
        assert bound(0.001) < bound(0.01) < bound(0.05)
    turned = RandomizedResponse.from_epsilon(("yes", "no"), 1.0)
    again, reverse = run(context(RR1, RR1))[0], run(context(RR1, turned))[1]
    assert again.estimates == finding.estimates
    assert reverse[INSIDER] == found[INSIDER]


@pytest.mark.parametrize("with_truth", [True, False])
def test_a_dishonest_release_is_refuted(with_truth: bool) -> None:
    finding, _ = run(context(binary(2.0), RR1, 4000, with_truth=with_truth))
    bounds = {identifier: bound(0.01) for identifier, bound in finding.bounds.items()}
    assert bounds[INSIDER if with_truth else OUTSIDER] > 1.0
    assert (INSIDER in bounds) is with_truth
    told = any("do not follow" in note.text for note in finding.notes)
    assert told or not with_truth


@pytest.mark.parametrize("claim", [RR1, RandomizedResponse.from_epsilon(tuple("abcde"), 2.0)])
def test_curves(claim: RandomizedResponse) -> None:
    curves = {curve.id: curve for curve in run(context(claim, claim, 500))[0].curves}
    rdp, delta = curves["mechanism.rdp"], curves["mechanism.delta"]
    assert rdp.value == pytest.approx([claim.channel.rdp(x) for x in rdp.x], rel=1e-9)
    assert sorted(rdp.value) == list(rdp.value)
    assert rdp.value[-1] < claim.epsilon
    ends = claim.channel.total_variation, 0.0
    assert (delta.value[0], delta.value[-1]) == pytest.approx(ends, abs=1e-12)


def test_without_truth_a_model_helps(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def scores(audited: AuditContext, target: str) -> np.ndarray:
        asked.append(target)
        return np.full((len(audited.release), 2), 0.5)

    monkeypatch.setattr(without_truth, "cross_fitted_posterior", scores)
    run(context(RR1, RR1))
    assert asked == []
    run(context(RR1, RR1, with_truth=False))
    assert asked == ["released"]


@pytest.mark.parametrize(("least", "warned"), [(0.026, False), (0.001, True)])
def test_of_two_comparisons_each_has_half_of_the_error(least: float, warned: bool) -> None:
    """The smaller p-value lies between 2.6 and 5 %, or between .1 and 2.4 %."""
    made = context(RR1, RR1, 2000, gap=0.0)
    sizes = np.bincount(made.truth)
    keep = RR1.channel.matrix[0, 0]

    def counts(moved: int) -> np.ndarray:
        kept = np.rint(sizes * keep).astype(np.int64) + moved
        return np.array([[kept[0], sizes[0] - kept[0]], [sizes[1] - kept[1], kept[1]]])

    most = 0.05 if least > 0.025 else 0.024
    table = next(
        counts(moved)
        for moved in range(200)
        if least < channel_consistency(counts(moved), RR1.channel.matrix, 0.05).p_value < most
    )
    released, rng = np.zeros(2000, np.int32), np.random.default_rng(1)
    for label in (0, 1):
        released[rng.permutation(np.flatnonzero(made.truth == label))[: table[label, 1]]] = 1
    seen = replace(made.release, released=ReleasedLabels(released))
    finding, found = run(replace(made, release=seen))
    assert found[SHARES].value > 0.05
    assert least < found[CELLS].value < most
    assert any("do not follow" in note.text for note in finding.notes) is warned
