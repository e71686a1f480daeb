"""Which attacks run: the default set, all of them, and what an early end leaves."""

from dataclasses import replace

import pytest
from worlds import gaussian_release

import ldpaudit.audits.label_inference.runs as runs_module
import ldpaudit.audits.models as models_module
from ldpaudit.attacks import ATTACKS
from ldpaudit.attacks.scoring import ACCURACY, lower_bound
from ldpaudit.audits.interface import AuditContext, Execution, Plan
from ldpaudit.audits.label_inference.audit import AUDIT
from ldpaudit.audits.label_inference.estimates import best_parts
from ldpaudit.audits.label_inference.runs import folds_of, run_attacks
from ldpaudit.mechanisms import Mechanism
from ldpaudit.release import Release
from ldpaudit.work.progress import Stop, Watched

CHEAP = ("prior", "released-label", "oracle")


@pytest.fixture
def few_attacks(monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = {name: ATTACKS[name] for name in CHEAP}
    monkeypatch.setattr(runs_module, "available_attacks", lambda *_: chosen)


def _context(release: Release, claim: Mechanism, ends_after: int) -> AuditContext:
    ticks = iter(range(10_000))
    stop = Stop(deadline=ends_after, clock=lambda: float(next(ticks)))
    context = AuditContext(release, claim, Plan(seed=1), run=Execution(stop=stop))
    return replace(context, run=Execution(Watched(context.progress, stop), stop))


@pytest.mark.usefixtures("few_attacks")
def test_an_early_end_keeps_the_attacks_that_ran_and_their_correction() -> None:
    release, claim = gaussian_release(300, 1.0, 3, shift=1.0)
    whole = AuditContext(release, claim, Plan(seed=1))
    runs, missing = run_attacks(whole, folds_of(whole))
    assert (len(runs), missing.possible, missing.stopped) == (3, 2, ())
    context = _context(release, claim, 4)
    runs, missing = run_attacks(context, folds_of(context))
    assert 0 < len(runs) < 3
    assert missing.stopped
    assert missing.possible == 2
    result = AUDIT.run(_context(release, claim, 4))
    assert any("Attacks are missing" in note.text for note in result.notes)


@pytest.mark.usefixtures("few_attacks")
def test_the_strongest_is_corrected_for_all_that_could_have_run() -> None:
    release, claim = gaussian_release(300, 1.0, 3, shift=1.0)
    context = AuditContext(release, claim, Plan(seed=1))
    runs, missing = run_attacks(context, folds_of(context))
    few, many = (next(iter(best_parts(runs, 0.95, n))).shown for n in (missing.possible, 10))
    lower = max(lower_bound(run.folds, ACCURACY, 0.025 / 10) for run in runs if run.uses_release)
    assert many.low == pytest.approx(lower)
    assert many.low < few.low  # type: ignore[operator]
    assert many.value == few.value
    assert few.high == many.high


@pytest.mark.usefixtures("few_attacks")
def test_of_many_rows_a_sample_is_learnt_from_and_scored_and_that_is_said(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(runs_module, "MOST_SCORED", 100)
    monkeypatch.setattr(models_module, "_MOST_LEARNT", 120)
    monkeypatch.setattr(models_module, "_FEWEST_LEARNT", 10)
    release, claim = gaussian_release(600, 1.0, 3, shift=1.0)
    result = AUDIT.run(AuditContext(release, claim, Plan(seed=1)))
    best = next(e for e in result.estimates if e.id == "attack.best.accuracy")
    assert best.n == 200
    assert best.low < best.value < best.high
    said = [note.text for note in result.notes if "random sample" in note.text]
    assert said
    assert "learn from 240" in said[0]
    assert "scored on 200" in said[0]
