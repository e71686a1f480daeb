import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from ldpaudit.audits.interface import AuditContext, Plan
from ldpaudit.audits.mechanism import release_alone
from ldpaudit.audits.mechanism.audit import INSIDER, OUTSIDER, MechanismAudit
from ldpaudit.mechanisms import (
    Channel,
    ExplicitChannel,
    Mechanism,
    RandomizedResponse,
    UnknownMechanism,
)
from ldpaudit.release import FeatureTable, Release, ReleasedLabels, TrueLabels
from ldpaudit.result import Estimate, Finding


def context(
    true: RandomizedResponse | ExplicitChannel,
    claim: Mechanism,
    n: int = 4000,
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
        features=FeatureTable(points, np.zeros((n, 0), np.int32), (), 3),
        released=ReleasedLabels(true.sample(truth, rng)),
        outputs=outputs or true.channel.outputs,
        classes=true.channel.classes,
        truth=TrueLabels(truth) if with_truth else None,
    )
    return AuditContext(release, claim, Plan(seed=1))


def run(audited: AuditContext) -> tuple[Finding, Mapping[str, Estimate]]:
    finding = MechanismAudit().run(audited)
    return finding, {e.id: e for e in finding.estimates}


def binary(epsilon: float) -> RandomizedResponse:
    return RandomizedResponse.from_epsilon(("no", "yes"), epsilon)


def test_an_honest_release_with_truth() -> None:
    finding, found = run(context(binary(1.0), binary(1.0)))
    assert found["mechanism.epsilon"].value == pytest.approx(1.0)
    assert found["mechanism.total_variation"].value == pytest.approx(math.tanh(0.5))
    assert found["mechanism.lambda"].value == pytest.approx(2 / (1 + math.e))
    assert found["mechanism.keep_probability"].value == pytest.approx(math.e / (1 + math.e))
    assert found["mechanism.binary_flip"].value == pytest.approx(1 / (1 + math.e))
    assert found["mechanism.channel_consistency"].value > 0.01
    assert found["mechanism.marginal_consistency"].value > 0.01
    assert found["mechanism.inconsistent_entries"].value == 0
    assert 0.85 < found[INSIDER].value <= 1.0
    assert 0.5 < found[OUTSIDER].value <= 1.0
    assert found["mechanism.epsilon_observed"].value == pytest.approx(1.0, abs=0.15)
    for method in ("accuracy", "two-sided"):
        estimate = found[f"{INSIDER}.{method}"]
        assert (estimate.kind, estimate.side, estimate.level) == ("certified", "lower", 0.95)
        assert 0.8 < estimate.value <= 1.0
    assert not [note for note in finding.notes if note.level == "warning"]


def test_bounds_are_functions_of_the_level() -> None:
    finding, found = run(context(binary(1.0), binary(1.0)))
    for identifier in (INSIDER, OUTSIDER):
        bound = finding.bounds[identifier]
        assert bound(0.05) == pytest.approx(found[identifier].value)
        assert bound(0.001) < bound(0.01) < bound(0.05)


@pytest.mark.parametrize("with_truth", [True, False])
def test_a_dishonest_release_is_refuted(with_truth: bool) -> None:
    finding, _ = run(context(binary(2.0), binary(1.0), 8000, with_truth=with_truth))
    bounds = {identifier: bound(0.01) for identifier, bound in finding.bounds.items()}
    assert bounds[INSIDER if with_truth else OUTSIDER] > 1.0
    assert (INSIDER in bounds) is with_truth
    if with_truth:
        assert any("do not follow" in note.text for note in finding.notes)


def test_more_noise_than_claimed_is_inconsistent_but_no_violation() -> None:
    finding, found = run(context(binary(0.5), binary(1.0)))
    assert found["mechanism.channel_consistency"].value < 1e-6
    assert found["mechanism.inconsistent_entries"].value == 2
    assert finding.bounds[INSIDER](0.05) < 1.0
    assert found["mechanism.channel_consistency.g-test"].kind == "estimated"


def test_the_outsider_compares_the_released_shares() -> None:
    # Nearly all labels are "no" and nearly none is flipped: not what ε = 0.5 would give.
    audited = context(binary(6.0), binary(0.5), prior=[0.95, 0.05], with_truth=False)
    finding, found = run(audited)
    assert found["mechanism.marginal_consistency"].value < 1e-6
    assert any("do not follow" in note.text for note in finding.notes)
    assert "mechanism.channel_consistency" not in found


def test_curves() -> None:
    for claim in (binary(1.0), RandomizedResponse.from_epsilon(tuple("abcde"), 2.0)):
        finding, _ = run(context(claim, claim, 500))
        curves = {curve.id: curve for curve in finding.curves}
        rdp, delta = curves["mechanism.rdp"], curves["mechanism.delta"]
        assert claim.channel is not None
        for x, value in zip(rdp.x, rdp.value, strict=True):
            assert value == pytest.approx(claim.channel.rdp(x), rel=1e-9)
        assert list(rdp.value) == sorted(rdp.value)
        assert rdp.value[-1] < claim.epsilon
        assert delta.value[0] == pytest.approx(claim.channel.total_variation)
        assert delta.value[-1] == pytest.approx(0.0, abs=1e-12)


def test_an_undeclared_mechanism_states_its_assumption() -> None:
    finding, found = run(context(binary(2.0), UnknownMechanism(), 8000))
    assert "mechanism.epsilon" not in found
    assert "mechanism.channel_consistency" not in found
    assert 1.7 < found[INSIDER].value <= 2.0
    assert "features" in found[INSIDER].assumptions[0]
    assert any("No mechanism is declared" in note.text for note in finding.notes)
    assert not finding.curves


def test_outputs_that_are_no_classes() -> None:
    matrix = np.array([[0.5, 0.3, 0.2, 0.0], [0.3, 0.3, 0.4, 0.0]])
    claim = ExplicitChannel(Channel(matrix, ("a", "b"), ("u", "v", "w", "never")))
    finding, found = run(context(claim, claim, 20_000, prior=[0.8, 0.2]))
    assert found["mechanism.epsilon"].value == pytest.approx(math.log(2))
    assert 0.5 < found[INSIDER].value <= math.log(2)
    assert found["mechanism.channel_consistency"].value > 1e-4
    assert OUTSIDER in finding.bounds


def test_a_class_without_rows() -> None:
    claim = RandomizedResponse.from_epsilon(("a", "b", "c"), 1.0)
    _, found = run(context(claim, claim, prior=[0.5, 0.5, 0.0]))
    assert 0.8 < found[INSIDER].value <= 1.0
    assert found["mechanism.channel_consistency"].value > 1e-4


def test_one_class_only_gives_no_insider_bound() -> None:
    finding, found = run(context(binary(1.0), binary(1.0), prior=[1.0, 0.0]))
    assert INSIDER not in found
    assert any("fewer than two classes" in note.text for note in finding.notes)


def test_constant_features_leave_the_insider_bound() -> None:
    finding, found = run(context(binary(1.0), binary(1.0), gap=0.0))
    assert INSIDER in found
    assert OUTSIDER not in found
    assert any("tell rows apart" in note.text for note in finding.notes)


def test_few_rows_leave_the_insider_bound() -> None:
    finding, found = run(context(binary(1.0), binary(1.0), 300))
    assert INSIDER in found
    assert OUTSIDER not in found
    assert any("400 rows" in note.text for note in finding.notes)


def test_a_mechanism_that_uses_the_features_is_refused() -> None:
    class ModelBased(UnknownMechanism):
        traits = replace(UnknownMechanism.traits, label_depends_on_features=True)

    finding, found = run(context(binary(1.0), ModelBased()))
    assert not finding.bounds
    assert not found
    assert any("uses the features" in note.text for note in finding.notes)


def test_the_order_of_the_claims_labels_does_not_matter() -> None:
    turned = RandomizedResponse.from_epsilon(("yes", "no"), 1.0)
    matrix = np.array([[0.9, 0.1], [0.5, 0.5]])
    straight = ExplicitChannel(Channel(matrix, ("no", "yes"), ("no", "yes")))
    reverse = ExplicitChannel(Channel(matrix[::-1, ::-1], ("yes", "no"), ("yes", "no")))
    assert (
        run(context(binary(1.0), turned))[1][INSIDER]
        == run(context(binary(1.0), binary(1.0)))[1][INSIDER]
    )
    assert run(context(straight, reverse))[1]["mechanism.channel_consistency"].value > 0.01


def test_without_truth_a_model_helps(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def scores(audited: AuditContext, target: str) -> np.ndarray:
        asked.append(target)
        return np.full((len(audited.release), 2), 0.5)

    monkeypatch.setattr(release_alone, "cross_fitted_posterior", scores)
    run(context(binary(1.0), binary(1.0)))
    assert asked == []
    run(context(binary(1.0), binary(1.0), with_truth=False))
    assert asked == ["released"]


def test_the_same_seed_gives_the_same_finding() -> None:
    first, second = (run(context(binary(1.0), binary(1.0)))[0] for _ in range(2))
    assert first.estimates == second.estimates
