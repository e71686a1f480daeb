from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import binom
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
    assert any("region" in note.text and "1: r0" in note.text for note in finding.notes)
    assert curve.id == "attack.best.accuracy_by_confidence"
    assert (curve.kind, curve.simultaneous, curve.x[-1]) == ("certified", True, 1.0)
    half = int(np.searchsorted(curve.x, 0.5))
    assert curve.value[half] > curve.value[-1] + 0.05
    assert curve.low[half] > best
    assert curve.value[-1] == pytest.approx(best, abs=1e-9)


def test_intervals_hold_for_all_groups_at_once():
    """Guesses with known chances of being right in three classes; the strongest of three."""
    rng, audits, confidence = np.random.default_rng(25), 20, 0.7
    chances = np.array([[0.5, 0.7, 0.9], [0.6, 0.6, 0.8], [0.55, 0.7, 0.8]])
    release, mechanism = gaussian_release(120, 1.0, 26, k=3)
    context = AuditContext(release, mechanism, Plan(seed=1, confidence=confidence))
    missed = 0
    for _ in range(audits):
        runs = []
        for i, chance in enumerate(chances):
            folds = []
            for _ in (0, 1):
                truth = rng.integers(0, 3, 150).astype(np.int32)
                right = rng.random(150) < chance[truth]
                guess = np.where(right, truth, (truth + 1) % 3)
                posterior = np.eye(3)[guess]
                folds.append(score_fold(truth, posterior, None, rate_alpha=0.05, rng=rng))
            runs.append(AttackRun(f"a{i}", f"A{i}", tuple(folds)))
        best = strongest(runs)
        estimates = list(class_parts(context, best, len(runs)))
        true = chances[int(best.name[1:])]
        missed += any(not e.low <= p <= e.high for e, p in zip(estimates, true, strict=True))
    assert missed <= binom.isf(FALSE_ALARM, audits, 1 - confidence)


def test_the_curve_holds_at_every_cut():
    """Confidences that say nothing of the chance of being right, which differs from row to row."""
    rng, audits, confidence = np.random.default_rng(28), 20, 0.7
    missed = 0
    for _ in range(audits):
        chance = rng.beta(2, 1, 300)
        sure = np.clip(chance + rng.normal(scale=0.2, size=300), 0.51, 0.99)
        folds, means = [], []
        for rows in (np.arange(150), np.arange(150, 300)):
            truth = np.zeros(150, np.int32)
            right = rng.random(150) < chance[rows]
            posterior = np.stack([sure[rows], 1 - sure[rows]], axis=1)
            posterior[~right] = posterior[~right, ::-1]
            folds.append(score_fold(truth, posterior, None, rate_alpha=0.05, rng=rng))
            order = np.argsort(-sure[rows], kind="stable")
            means.append(np.cumsum(chance[rows][order]))
        curve = confidence_curve(AttackRun("a", "A", tuple(folds)), confidence)
        for share, low, high in zip(curve.x, curve.low, curve.high, strict=True):
            n = round(share * 150)
            true = sum(m[n - 1] for m in means) / (2 * n)
            if not low <= true <= high:
                missed += 1
                break
    assert missed <= binom.isf(FALSE_ALARM, audits, 1 - confidence)


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


class TestTheStrongest:
    """Attacks on cells (x, z) whose accuracy in the population is known exactly."""

    eta = np.array([0.15, 0.5, 0.7])
    flip = 0.3
    n = 240

    def draw(self, rng):
        cells = rng.integers(0, 3, self.n)
        truth = (rng.random(self.n) < self.eta[cells]).astype(np.int32)
        released = np.where(rng.random(self.n) < self.flip, 1 - truth, truth)
        return cells, truth, released

    def population(self, table):
        """Return P(table[cell, released] is the true label)."""
        right = 0.0
        for cell, eta in enumerate(self.eta):
            for y, share in enumerate((1 - eta, eta)):
                for z in (0, 1):
                    chance = self.flip if z != y else 1 - self.flip
                    right += share * chance * (table[cell, z] == y) / 3
        return right

    def tables(self, cells, truth, released, rng):
        """Five fitted attacks: by cell, by cell and release, by release, and two at random."""
        both = np.stack([np.bincount(cells * 2 + released, truth == y, 6) for y in (0, 1)])
        full = both.argmax(axis=0).reshape(3, 2)
        alone = both.reshape(2, 3, 2).sum(axis=2).argmax(axis=0)
        believing = np.tile([0, 1], (3, 1))
        noise = [rng.integers(0, 2, (3, 2)) for _ in range(2)]
        return np.repeat(alone[:, None], 2, axis=1), [full, believing, *noise]

    def one_audit(self, rng):
        data = self.draw(rng)
        halves = rng.permutation(self.n) % 2
        runs: dict[int, list] = {}
        accuracy, advantage = np.zeros(4), np.zeros(4)
        for half in (0, 1):
            baseline, attacks = self.tables(*(part[halves == half] for part in data), rng)
            cells, truth, released = (part[halves != half] for part in data)
            for i, table in enumerate(attacks):
                posterior = np.eye(2)[table[cells, released]]
                guess = baseline[cells, released].astype(np.int32)
                fold = score_fold(truth, posterior, guess, rate_alpha=0.05, rng=rng)
                runs.setdefault(i, []).append(fold)
                accuracy[i] += self.population(table) / 2
                advantage[i] += (self.population(table) - self.population(baseline)) / 2
        made = [AttackRun(f"a{i}", f"A{i}", tuple(f)) for i, f in runs.items()]
        return made, accuracy, advantage

    def test_intervals_hold_for_the_strongest_and_for_each(self):
        rng, audits, confidence = np.random.default_rng(11), 20, 0.7
        missed = np.zeros(4)
        for _ in range(audits):
            runs, accuracy, advantage = self.one_audit(rng)
            best, gain = collected(best_parts(runs, confidence)).estimates
            missed[0] += not best.low <= accuracy.max() <= best.high
            missed[1] += not gain.low <= advantage.max() <= gain.high
            fold = runs[0].folds
            for column, measure, true in ((2, ACCURACY, accuracy), (3, ADVANTAGE, advantage)):
                low = sum(measure.lower(f, 0.075) for f in fold) / 2
                high = sum(measure.upper(f, 0.075) for f in fold) / 2
                missed[column] += not low <= true[0] <= high
        assert missed.max() <= binom.isf(FALSE_ALARM, audits, 1 - confidence)

    def test_the_strongest_is_found(self):
        rng = np.random.default_rng(12)
        lows = [next(best_parts(self.one_audit(rng)[0], 0.8)).low for _ in range(8)]
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
