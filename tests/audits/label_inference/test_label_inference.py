from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import binom, binomtest
from worlds import gaussian_release

from ldpaudit.attacks.scoring import ACCURACY, ADVANTAGE, score_fold
from ldpaudit.audits.interface import AuditContext, Plan, collected
from ldpaudit.audits.label_inference.audit import AUDIT
from ldpaudit.audits.label_inference.estimates import (
    best_parts,
    class_parts,
    confidence_curve,
    strongest,
)
from ldpaudit.audits.label_inference.runs import AttackRun
from ldpaudit.audits.models import aligned_channel, cross_fitted_posterior
from ldpaudit.datasets.groups import merged
from ldpaudit.errors import InputError, InsufficientDataError
from ldpaudit.mechanisms import ExplicitChannel, RandomizedResponse, UnknownMechanism
from ldpaudit.mechanisms.channel import Channel
from ldpaudit.release import FeatureTable, Release, ReleasedLabels, TrueLabels

FALSE_ALARM = 1e-5
"""The chance that a validity test fails; one of three times as many misses fails in 96 %."""


def audited(release, claim, **plan):
    context = AuditContext(release, claim, Plan(seed=1, **plan))
    assert AUDIT.unavailable(context) is None
    return AUDIT.run(context)


def by_id(finding):
    return {estimate.id: estimate for estimate in finding.estimates}


def test_every_attack_is_scored_and_the_best_beats_its_references():
    finding = audited(*gaussian_release(2000, 2.0, 0))
    found, bounds = by_id(finding), finding.bounds
    for name in ("released-label", "oracle", "classifier", "bayes"):
        for measure in ("accuracy", "balanced_accuracy", "auc", "tpr_at_fpr_1pct", "advantage"):
            estimate = found[f"attack.{name}.{measure}"]
            assert estimate.kind == "certified"
            assert estimate.low <= estimate.value <= estimate.high
        assert found[f"attack.{name}.in_sample.accuracy"].kind == "estimated"
    for name in ("prior", "features-only"):
        assert f"attack.{name}.accuracy" in found
        assert f"attack.{name}.advantage" not in found
    ceiling, best = found["attack.ceiling.advantage"], found["attack.best.accuracy"]
    assert (ceiling.kind, found["attack.utility_bound"].value) == ("exact", 1.0)
    assert best.low > found["attack.features-only.accuracy"].value
    assert 0.05 < found["attack.best.advantage"].low <= ceiling.value
    estimated = found["attack.ceiling-estimate.accuracy"]
    assert estimated.kind == "estimated"
    assert best.value <= estimated.value
    assert best.value == pytest.approx(found["attack.optimum.accuracy"].value, abs=0.045)
    for name in ("attack.best.accuracy", "attack.best.advantage"):
        assert bounds[name](0.025) == pytest.approx(found[name].low)
        assert bounds[name](0.001) < bounds[name](0.2)


def test_groups_make_up_the_whole_and_the_curve_falls():
    release, mechanism = gaussian_release(1600, 1.0, 24, shift=1.2)
    codes = np.repeat(np.arange(3, dtype=np.int32), (700, 500, 400))
    slices = merged("region", codes, ["r0", "r1", "r2"])
    finding = audited(release, mechanism, slices=(slices,))
    found, (curve,) = by_id(finding), finding.curves
    best = found["attack.best.accuracy"].value
    for keys in (("class-1", "class-2"), ("slice-1-1", "slice-1-2", "slice-1-3")):
        parts = [found[f"attack.best.{key}.accuracy"] for key in keys]
        assert sum(part.n for part in parts) == len(release)
        assert sum(part.n * part.value for part in parts) == pytest.approx(
            best * len(release), rel=0.01
        )
        assert all(part.low < part.value < part.high for part in parts)
    assert found["attack.best.slice-1-1.advantage"].kind == "certified"
    assert any("region: 1 has the most rows" in note.text for note in finding.notes)
    assert curve.id == "attack.best.accuracy_by_confidence"
    assert (curve.kind, curve.simultaneous, curve.x[-1]) == ("certified", True, 1.0)
    half = int(np.searchsorted(curve.x, 0.5))
    assert curve.value[half] > curve.value[-1] + 0.05
    assert curve.low[half] > best
    assert curve.value[-1] == pytest.approx(best, abs=1e-9)


def test_features_that_say_nothing_leave_no_advantage_at_small_epsilon():
    release, mechanism = gaussian_release(1000, 0.3, 2, shift=0.0)
    release = replace(release, truth=TrueLabels((np.arange(1000) % 5 == 0).astype(np.int32)))
    released = mechanism.sample(release.truth, np.random.default_rng(5))
    found = by_id(audited(replace(release, released=ReleasedLabels(released)), mechanism))
    assert found["attack.best.advantage"].low <= 0
    assert found["attack.oracle.advantage"].value == pytest.approx(0.0, abs=0.03)


def test_a_leak_beyond_the_claim_is_found():
    release, _ = gaussian_release(1200, 6.0, 3)
    claim = RandomizedResponse.from_epsilon(release.classes, 0.5)
    found = by_id(audited(release, claim))
    assert found["attack.best.accuracy"].value <= found["attack.ceiling-estimate.accuracy"].value
    assert found["attack.best.advantage"].low > found["attack.ceiling.advantage"].value


def test_many_classes_and_an_undeclared_mechanism():
    release, _ = gaussian_release(1000, 3.0, 4, k=5, shift=1.0)
    finding = audited(release, UnknownMechanism())
    found = by_id(finding)
    assert "attack.bayes.accuracy" not in found
    assert "attack.ceiling.advantage" not in found
    assert any("bayes" in note.text and "declared" in note.text for note in finding.notes)
    assert found["attack.oracle.accuracy"].low > found["attack.features-only.accuracy"].value


def test_without_features_only_labels_are_attacked():
    release, mechanism = gaussian_release(1000, 1.0, 5)
    nothing = FeatureTable(np.zeros((1000, 0), np.float32), np.zeros((1000, 0), np.int32), (), 0)
    found = by_id(audited(replace(release, features=nothing), mechanism))
    assert {"attack.released-label.accuracy", "attack.oracle.accuracy"} <= set(found)
    assert "attack.bayes.accuracy" not in found
    bound = found["attack.utility_bound"]
    assert bound.kind == "certified"
    assert found["attack.released-label.accuracy"].low <= bound.value < 1


def test_too_few_rows_are_refused():
    release, mechanism = gaussian_release(39, 1.0, 6)
    with pytest.raises(InsufficientDataError, match="at least 40 rows"):
        audited(release, mechanism)
    release, mechanism = gaussian_release(40, 1.0, 6)
    assert "attack.best.accuracy" in by_id(audited(release, mechanism))


def test_a_claim_in_another_order_is_aligned():
    release, _ = gaussian_release(200, 1.0, 7)
    matrix = np.array([[0.6, 0.4], [0.1, 0.9]])
    turned = Channel(matrix[::-1, ::-1], release.classes[::-1], release.outputs[::-1])
    context = AuditContext(release, ExplicitChannel(turned), Plan(seed=1))
    np.testing.assert_array_equal(aligned_channel(context).matrix, matrix)
    stranger = RandomizedResponse(("x", "y"), 0.5)
    with pytest.raises(InputError, match="those of the release"):
        aligned_channel(AuditContext(release, stranger, Plan(seed=1)))


def test_posteriors_come_from_the_other_half():
    # Every row has a label of its own kind of feature: a model of the same half would know it.
    rng = np.random.default_rng(8)
    n = 600
    codes = np.arange(n, dtype=np.int32)[:, None]
    table = FeatureTable(np.zeros((n, 0), np.float32), codes, (n,), 1)
    truth = rng.integers(0, 2, n).astype(np.int32)
    release = Release(table, ReleasedLabels(truth), (0, 1), (0, 1), TrueLabels(truth))
    context = AuditContext(release, UnknownMechanism(), Plan(seed=1))
    posterior = cross_fitted_posterior(context, "truth")
    right = (posterior.argmax(axis=1) == truth).sum()
    assert binom.ppf(FALSE_ALARM, n, 0.5) <= right <= binom.isf(FALSE_ALARM, n, 0.5)
    assert cross_fitted_posterior(context, "truth") is posterior
    assert not posterior.flags.writeable


CONFIDENCE = 0.7
End = tuple[float, float, float]
"""An interval's low end, the truth, and its high end."""


def of_groups(rng: np.random.Generator) -> list[list[End]]:
    """Guesses with known chances of being right in three classes; the strongest of three."""
    chances = np.array([[0.5, 0.7, 0.9], [0.6, 0.6, 0.8], [0.55, 0.7, 0.8]])
    context = AuditContext(*gaussian_release(120, 1.0, 26, k=3), Plan(1, confidence=CONFIDENCE))
    runs = []
    for i, chance in enumerate(chances):
        folds = []
        for _ in (0, 1):
            truth = rng.integers(0, 3, 150).astype(np.int32)
            guess = np.where(rng.random(150) < chance[truth], truth, (truth + 1) % 3)
            folds.append(score_fold(truth, np.eye(3)[guess], None, rate_alpha=0.05, rng=rng))
        runs.append(AttackRun(f"a{i}", f"A{i}", tuple(folds)))
    best = strongest(runs)
    parts = list(class_parts(context, best, len(runs)))
    true = chances[int(best.name[1:])]
    level = (1 - CONFIDENCE) / 2 / (2 * 3 * len(runs))  # Of each end, in each of two folds.
    counts = zip(
        *(zip(f.class_correct, f.class_rows, strict=True) for f in best.folds), strict=True
    )
    for part, both in zip(parts, counts, strict=True):
        ends = [binomtest(int(c), int(n)).proportion_ci(1 - 2 * level, "exact") for c, n in both]
        weights = [n for _, n in both]
        expected = np.average([(end.low, end.high) for end in ends], axis=0, weights=weights)
        assert (part.low, part.high) == pytest.approx(tuple(expected))
    return [[(e.low, p, e.high) for e, p in zip(parts, true, strict=True)]]


def at_every_cut(rng: np.random.Generator) -> list[list[End]]:
    """Confidences that say nothing of the chance of being right, which differs from row to row."""
    folds, means = [], []
    for _ in (0, 1):
        chance = rng.beta(2, 1, 150)
        sure = np.clip(chance + rng.normal(scale=0.2, size=150), 0.51, 0.99)
        posterior = np.stack([sure, 1 - sure], axis=1)
        wrong = rng.random(150) >= chance
        posterior[wrong] = posterior[wrong, ::-1]
        truth = np.zeros(150, np.int32)
        folds.append(score_fold(truth, posterior, None, rate_alpha=0.05, rng=rng))
        means.append(np.cumsum(chance[np.argsort(-sure, kind="stable")]))
    curve = confidence_curve(AttackRun("a", "A", tuple(folds)), CONFIDENCE)
    rows = [round(share * 150) for share in curve.x]
    true = [sum(m[n - 1] for m in means) / (2 * n) for n in rows]
    return [list(zip(curve.low, true, curve.high, strict=True))]


ETA, FLIP, N = np.array([0.15, 0.5, 0.7]), 0.3, 240


def population(table: np.ndarray) -> float:
    """Return P(table[cell, released] is the true label), in cells of P(label | cell) = ETA."""
    right = 0.0
    for cell, y, z in np.ndindex(3, 2, 2):
        share = ETA[cell] if y else 1 - ETA[cell]
        right += share * (FLIP if z != y else 1 - FLIP) * (table[cell, z] == y) / 3
    return right


def attacked(rng: np.random.Generator) -> tuple[list[AttackRun], np.ndarray, np.ndarray]:
    """Return attacks by cell and release, by release, and two at random; what each is worth."""
    cells = rng.integers(0, 3, N)
    truth = (rng.random(N) < ETA[cells]).astype(np.int32)
    released = np.where(rng.random(N) < FLIP, 1 - truth, truth)
    halves, folds = rng.permutation(N) % 2, [[] for _ in range(4)]  # type: ignore[var-annotated]
    accuracy, advantage = np.zeros(4), np.zeros(4)
    for half in (0, 1):
        c, y, z = (part[halves == half] for part in (cells, truth, released))
        both = np.stack([np.bincount(c * 2 + z, y == label, 6) for label in (0, 1)])
        alone = both.reshape(2, 3, 2).sum(axis=2).argmax(axis=0)
        baseline, noise = np.repeat(alone[:, None], 2, axis=1), rng.integers(0, 2, (2, 3, 2))
        c, y, z = (part[halves != half] for part in (cells, truth, released))
        tables = [both.argmax(axis=0).reshape(3, 2), np.tile([0, 1], (3, 1)), *noise]
        for i, table in enumerate(tables):
            guess, posterior = baseline[c, z].astype(np.int32), np.eye(2)[table[c, z]]
            folds[i].append(score_fold(y, posterior, guess, rate_alpha=0.05, rng=rng))
            accuracy[i] += population(table) / 2
            advantage[i] += (population(table) - population(baseline)) / 2
    return [AttackRun(f"a{i}", "A", tuple(two)) for i, two in enumerate(folds)], accuracy, advantage


def of_the_strongest_and_the_first(rng: np.random.Generator) -> list[list[End]]:
    runs, accuracy, advantage = attacked(rng)
    best, gain = collected(best_parts(runs, CONFIDENCE)).estimates
    found = [(best.low, accuracy.max(), best.high), (gain.low, advantage.max(), gain.high)]
    for measure, true in ((ACCURACY, accuracy), (ADVANTAGE, advantage)):
        low, high = (
            sum(end(fold, 0.075) for fold in runs[0].folds) / 2
            for end in (measure.lower, measure.upper)
        )
        found.append((low, true[0], high))
    return [[one] for one in found]


@pytest.mark.parametrize("draw", [of_groups, at_every_cut, of_the_strongest_and_the_first])
def test_intervals_hold(draw):
    """All of a list at once; more than 15 of 20 misses at 70 % have a chance of 1e-5."""
    rng, missed = np.random.default_rng(25), np.zeros(4)
    for _ in range(20):
        for i, claims in enumerate(draw(rng)):
            missed[i] += any(not low <= true <= high for low, true, high in claims)
    assert missed.max() <= binom.isf(FALSE_ALARM, 20, 1 - CONFIDENCE)


def test_the_strongest_is_found():
    rng = np.random.default_rng(12)
    lows = [next(best_parts(attacked(rng)[0], 0.8)).shown.low for _ in range(8)]
    assert np.mean(lows) > 0.6


def test_columns_that_models_cannot_learn_from_are_counted_in_a_note():
    release, mechanism = gaussian_release(500, 1.0, 41)
    rng = np.random.default_rng(0)
    codes = np.stack([rng.permutation(500), rng.integers(0, 3, 500)], axis=1).astype(np.int32)
    codes[:4, 1] = 3
    values = release.features.numeric
    table = FeatureTable(values, codes, (500, 4), 5)
    texts = [n.text for n in audited(replace(release, features=table), mechanism).notes]
    assert any("another value in nearly every row: 1." in text for text in texts)
    assert any("values on fewer than 10 rows: 1." in text for text in texts)
    plain = [note.text for note in audited(release, mechanism).notes]
    assert not any("nearly every row" in text or "fewer than 10 rows" in text for text in plain)
