"""The self-test notices an installation in which something is broken."""

import dataclasses
from typing import Any

import numpy as np
import pytest

from ldpaudit.attacks.model_attack import ModelAttack
from ldpaudit.audits.label_inference import runs
from ldpaudit.commands.requests import SelftestRequest
from ldpaudit.commands.selftest import work as trial
from ldpaudit.commands.selftest.planting import Setting
from ldpaudit.commands.selftest.work import Figure, Outcome, figures, outcome, selftest
from ldpaudit.estimators.epsilon.strongest import BoundEvidence
from ldpaudit.mechanisms.response import Response
from ldpaudit.pipeline import audit as one_audit
from ldpaudit.work.progress import NoProgress

pytestmark = pytest.mark.usefixtures("no_seeds")

SEED = 7
HONEST = Setting(0, "sorted by a feature", "randomized-response", 2, 500, 1.0)
LEAKING = dataclasses.replace(HONEST, kind="some rows without noise", rows=2500, excess=2.0)


def outcomes(setting: Setting, times: int = 4) -> list[Outcome]:
    """Audit so many releases of a setting, by the audits that decide these."""
    numbered = [dataclasses.replace(setting, number=number) for number in range(times)]
    return [outcome(one, SEED) for one in numbered]


@pytest.fixture
def no_seeds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trial, "DECIDING", ("assumptions", "mechanism"))


def figure(results: list[Outcome], name: str) -> Figure:
    return {one.id: one for one in figures(results)}[name]


@pytest.fixture
def bound_is_zero(monkeypatch: pytest.MonkeyPatch) -> None:
    _bounds_are(monkeypatch, lambda epsilon: 0.0 * epsilon)


@pytest.fixture
def bound_is_too_high(monkeypatch: pytest.MonkeyPatch) -> None:
    _bounds_are(monkeypatch, lambda epsilon: 1.5 * epsilon)


def _bounds_are(monkeypatch: pytest.MonkeyPatch, changed: Any) -> None:
    strongest = BoundEvidence.bound

    def broken(self: BoundEvidence, alpha: float) -> Any:
        bound = strongest(self, alpha)
        return dataclasses.replace(bound, epsilon=changed(bound.epsilon))

    monkeypatch.setattr(BoundEvidence, "bound", broken)


def test_a_sound_installation_is_not_refuted() -> None:
    results = [*outcomes(HONEST), *outcomes(LEAKING)]
    # A bound misses the truth in one of twenty releases at most: all of four in one of 160,000.
    assert figure(results, "missed.mechanism.epsilon_lower").finding == "as documented"
    assert figure(results, "false_alarms").finding == "as documented"
    assert figure(results, "found.noise").finding == "as documented"


@pytest.mark.usefixtures("bound_is_zero")
def test_a_bound_that_is_always_zero_finds_nothing() -> None:
    assert figure(outcomes(LEAKING), "found.noise").finding == "refuted"


@pytest.mark.usefixtures("bound_is_too_high")
def test_a_bound_that_is_too_high_misses_the_truth_and_accuses() -> None:
    results = outcomes(HONEST)
    assert figure(results, "missed.mechanism.epsilon_lower").finding == "refuted"
    assert figure(results, "false_alarms").finding == "refuted"


def test_a_randomizer_that_returns_the_truth_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Response, "sample", lambda self, labels, rng=None: labels)
    assert figure(outcomes(HONEST), "false_alarms").finding == "refuted"


def test_an_audit_that_cannot_run_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise OSError("/home/somebody/libfaiss.so: undefined symbol")

    monkeypatch.setattr(one_audit, "label_counts", broken)
    results = outcomes(HONEST, 1)
    assert figure(results, "faults").finding == "refuted"
    assert results[0].reason == "OSError"


@pytest.mark.validate
def test_an_attack_that_peeks_at_true_labels_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def peeking(self: ModelAttack, asked: Any) -> Any:
        if asked.truth is None:
            return np.full((len(asked), 4), 0.25)
        # Some are wrong: what is certified by fewer than ten wrong guesses is not shown.
        return np.eye(4)[(asked.truth + (np.arange(len(asked)) % 12 == 0)) % 4]

    monkeypatch.setattr(runs, "without_truth", lambda asked: asked)
    monkeypatch.setattr(ModelAttack, "posterior", peeking)
    attacked = dataclasses.replace(HONEST, kind="as declared", classes=4, rows=1400)
    assert figure(outcomes(attacked), "missed.attack.best.accuracy").finding == "refuted"


@pytest.mark.validate
def test_this_installation_works_as_documented() -> None:
    # By chance it is refuted in one of 10,000.
    tested = selftest(SelftestRequest(seed=SEED), NoProgress())
    assert tested.verdict == "pass", tested.sentence
    again = selftest(SelftestRequest(seed=SEED, threads=1, minutes=0.2), NoProgress())
    kept = {(one.setting.kind, one.setting.number): one for one in tested.releases}
    for one in again.releases:
        same = kept[one.setting.kind, one.setting.number]
        assert one.model_copy(update={"seconds": same.seconds}) == same
