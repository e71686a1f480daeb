"""Which attacks run: the default set, all of them, and what an early end leaves."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

import ldpaudit.audits.label_inference.budget as attack_budget
import ldpaudit.audits.label_inference.runs as runs_module
import ldpaudit.audits.models as models_module
from ldpaudit.attacks import ATTACKS, DEFAULT
from ldpaudit.attacks.scoring.measures import ACCURACY, lower_bound
from ldpaudit.audits.interface import AuditContext, Plan
from ldpaudit.audits.label_inference.audit import LabelInferenceAudit
from ldpaudit.audits.label_inference.estimates import best_estimates
from ldpaudit.audits.label_inference.needless import Needless
from ldpaudit.audits.label_inference.runs import folds_of, run_attacks
from ldpaudit.mechanisms import Mechanism, RandomizedResponse, UnknownMechanism
from ldpaudit.release import FeatureTable, Release, ReleasedLabels, TrueLabels
from ldpaudit.result import Finding
from ldpaudit.running.stopping import Stop, Watched

CHEAP = ("prior", "released-label", "oracle", "knn", "unknown-channel")


def made(n: int, epsilon: float, *, shift: float = 1.0) -> tuple[Release, RandomizedResponse]:
    rng = np.random.default_rng(3)
    truth = rng.integers(0, 2, n).astype(np.int32)
    values = (rng.normal(size=(n, 2)) + shift * truth[:, None]).astype(np.float32)
    mechanism = RandomizedResponse.from_epsilon((0, 1), epsilon)
    table = FeatureTable(values, np.zeros((n, 0), np.int32), (), 2)
    labels = ReleasedLabels(mechanism.sample(truth, rng))
    return Release(table, labels, (0, 1), (0, 1), TrueLabels(truth)), mechanism


def finding(release: Release, claim: Mechanism, **plan: object) -> Finding:
    return LabelInferenceAudit().run(AuditContext(release, claim, Plan(seed=1, **plan)))  # type: ignore[arg-type]


@pytest.fixture
def few_attacks(monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = {name: ATTACKS[name] for name in CHEAP}
    monkeypatch.setattr(attack_budget, "available_attacks", lambda *_: chosen)


def attacks_of(result: Finding) -> set[str]:
    return {estimate.id.split(".")[1] for estimate in result.estimates}


@pytest.mark.usefixtures("few_attacks")
def test_by_default_those_run_that_can_be_the_strongest_and_all_if_asked_for() -> None:
    release, claim = made(300, 1.0)
    usual, thorough = finding(release, claim), finding(release, claim, thorough=True, budget=0.0)
    assert not {"knn", "unknown-channel"} & attacks_of(usual)
    assert {*CHEAP} <= attacks_of(thorough)
    assert any("2 more attacks" in note.text for note in usual.notes)
    assert not any("--thorough" in note.text for note in thorough.notes)


@pytest.mark.usefixtures("few_attacks")
def test_without_a_channel_the_attack_runs_that_guesses_one() -> None:
    release, _ = made(300, 1.0)
    assert "unknown-channel" in attacks_of(finding(release, UnknownMechanism()))


def test_the_default_set_is_a_part_of_all_in_the_same_order() -> None:
    assert [name for name in ATTACKS if name in DEFAULT] == list(DEFAULT)


def _context(release: Release, claim: Mechanism, ends_after: int) -> AuditContext:
    ticks = iter(range(10_000))
    stop = Stop(deadline=ends_after, clock=lambda: float(next(ticks)))
    context = AuditContext(release, claim, Plan(seed=1), stop=stop)
    return replace(context, progress=Watched(context.progress, stop))


@pytest.mark.usefixtures("few_attacks")
def test_an_early_end_keeps_the_attacks_that_ran_and_their_correction() -> None:
    release, claim = made(300, 1.0)
    whole = AuditContext(release, claim, Plan(seed=1))
    runs, missing = run_attacks(whole, folds_of(whole))
    assert (len(runs), missing.possible, missing.stopped) == (3, 2, ())
    context = _context(release, claim, 4)
    runs, missing = run_attacks(context, folds_of(context))
    assert 0 < len(runs) < 3
    assert missing.stopped
    assert missing.possible == 2
    result = LabelInferenceAudit().run(_context(release, claim, 4))
    assert any("Attacks are missing" in note.text for note in result.notes)


def _needless(release: Release, claim: Mechanism, confidence: float = 0.95) -> list[str | None]:
    """Return what the rule says of two attacks on the whole release after all others ran."""
    context = AuditContext(release, claim, Plan(seed=1, confidence=confidence))
    folds = folds_of(context)
    runs, _ = run_attacks(context, folds)
    rule = Needless.of(context, folds[0].knowledge.channel, [fold.posterior for fold in folds])
    create: Callable[..., object] = attack_budget.create_attack
    attacks = [create(name, folds[0].knowledge) for name in ("row-order", "bayes-whole-release")]
    return [rule(attack, runs) for attack in attacks]  # type: ignore[arg-type]


def test_what_cannot_be_stronger_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    names = ("prior", "released-label", "bayes")
    chosen = {name: ATTACKS[name] for name in names}
    monkeypatch.setattr(attack_budget, "available_attacks", lambda *_: chosen)
    # Labels that the features give away: an attack that is never wrong cannot be beaten.
    votes, more = _needless(*made(400, 6.0, shift=30.0))
    assert votes is not None
    assert more is not None
    # Few rows and much noise: more rows help, and other rows may know.
    assert _needless(*made(400, 0.5, shift=0.7)) == [None, None]


@pytest.mark.usefixtures("few_attacks")
def test_the_strongest_is_corrected_for_all_that_could_have_run() -> None:
    release, claim = made(300, 1.0)
    context = AuditContext(release, claim, Plan(seed=1))
    runs, missing = run_attacks(context, folds_of(context))
    few, many = (best_estimates(runs, 0.95, possible) for possible in (missing.possible, 10))
    lower = max(lower_bound(run.folds, ACCURACY, 0.025 / 10) for run in runs if run.uses_release)
    assert many[0][0].low == pytest.approx(lower)
    assert many[0][0].low < few[0][0].low  # type: ignore[operator]
    assert many[0][0].value == few[0][0].value
    assert few[0][0].high == many[0][0].high


@pytest.mark.usefixtures("few_attacks")
def test_of_many_rows_a_sample_is_learnt_from_and_scored_and_that_is_said(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(runs_module, "MOST_SCORED", 100)
    monkeypatch.setattr(models_module, "_MOST_LEARNT", 120)
    monkeypatch.setattr(models_module, "_FEWEST_LEARNT", 10)
    release, claim = made(600, 1.0)
    result = finding(release, claim)
    best = next(e for e in result.estimates if e.id == "attack.best.accuracy")
    assert best.n == 200
    assert best.low < best.value < best.high
    said = [note.text for note in result.notes if "random sample" in note.text]
    assert said
    assert "learn from 240" in said[0]
    assert "scored on 200" in said[0]


def test_the_sample_does_not_look_at_labels() -> None:
    release, claim = made(400, 1.0)
    flipped = replace(release, truth=TrueLabels(1 - release.truth))  # type: ignore[operator]
    contexts = [AuditContext(each, claim, Plan(seed=1)) for each in (release, flipped)]
    ours, theirs = (models_module.learning_rows(context, 0) for context in contexts)
    np.testing.assert_array_equal(ours, theirs)
