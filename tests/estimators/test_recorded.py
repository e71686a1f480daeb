"""Every estimator on small fixed tables: the digits that were recorded.

Formulas and levels are tested elsewhere; here no digit moves unseen. After a change that is meant,
and was held against known truth: ``PYTHONPATH=tests:$PWD python -m estimators.test_recorded``.
"""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from estimators.worlds import ASYMMETRIC_THREE, RARE, clusters, people, randomized_response
from worlds import feature_table

from ldpaudit.estimators import (
    departures,
    mean_loss,
    renyi,
    row_noise,
    row_order,
    telling,
    whiteness,
)
from ldpaudit.estimators.advantage import utility_bound
from ldpaudit.estimators.assumptions.agreement import sharpness_test
from ldpaudit.estimators.assumptions.clusters import next_column, partly_equal_rows
from ldpaudit.estimators.assumptions.spacing import spacing_of
from ldpaudit.estimators.epsilon import guesses, strongest
from ldpaudit.estimators.epsilon.bounds import GroupTest
from ldpaudit.estimators.epsilon.release_only import SplitRows, release_only_evidence
from ldpaudit.estimators.intervals import bounded_mean, ranking
from ldpaudit.estimators.intervals.binomial import log_odds_ratio_lower, shift_lower, shift_upper
from ldpaudit.estimators.whiteness import autocorrelations
from ldpaudit.extras.kinds.noisy_features.one_run import (
    detectable_in_one_run,
    one_run_epsilon,
    one_run_p_value,
)
from ldpaudit.extras.kinds.observational import matched
from ldpaudit.extras.probe.black_box.work import delta_lower
from ldpaudit.extras.several.person import estimators as person
from ldpaudit.extras.several.person import noise_tests as person_noise

FILE = Path(__file__).with_suffix(".json")
Rng = np.random.Generator


def renyi_bounds(rng: Rng) -> Any:
    p, q = rng.normal(0.5, 0.8, 700), np.tanh(rng.normal(-0.5, 0.8, 900))
    scores = renyi.Scores(p, q)
    found = renyi.bounds_on(*renyi.split_scores(scores, rng=rng), (1.5, 2.0, 12.0))
    settings = [(1.0, 0.5), (0.8, 2.0)]
    yield [[bound.at(0.05), bound.critic.foreseen, bound.critic.shift] for bound in found]
    yield renyi.promises(scores, 1_000, 2_000, np.array([2.0, 4.0]), settings)
    yield [[x.value, x.effective_rows] for x in renyi.renyi_points(scores, (1.2, 2.0, 6.0))]
    yield [renyi.calibration_error(scores, 5), renyi.screened_promise(scores, 500, 600, 2.0)]


def mean_losses(rng: Rng) -> Any:
    for k in (2, 3, 12):
        prior, channel = rng.dirichlet(np.full(k, 3.0)), randomized_response(k, 1.5)
        labels = rng.choice(k, 1_500, p=prior).astype(np.int32)
        released = (rng.random((1_500, 1)) > channel.cumsum(axis=1)[labels]).sum(axis=1)
        x, released = labels + rng.standard_normal(1_500), released.clip(0, k - 1).astype(np.int32)
        eta = prior * np.exp(-0.5 * (x[:, None] - np.arange(k)) ** 2) + 1e-9
        eta /= eta.sum(axis=1, keepdims=True)
        data = mean_loss.HeldOut(eta, labels, released, prior, channel)
        own = mean_loss.certified_mean_loss(data, rng=rng)
        other = mean_loss.claimed_mean_loss(eta @ channel, released, channel, prior, rng=rng)
        yield [[b.at(0.2), b.centre, *b.ends, *b.values[:5]] for b in (own, other)]
    impossible = np.array([[0.8, 0.2, 0.0], [0.1, 0.8, 0.1], [0.1, 0.1, 0.8]])
    yield mean_loss.AveragedPayoff.of(impossible, np.array([0.4, 0.3, 0.3]), 2_000).range(0.05)


def designs(rng: Rng) -> Any:
    for channel, sizes in ((RARE, [900, 600]), (ASYMMETRIC_THREE, [500, 300, 200])):
        rows = np.array(sizes)
        design = strongest.design_bounds(rows, channel)
        assert design is not None
        yield [*design.plan.keep, *design.plan.guess, *design.pair.groups, *design.pair.guess]
        yield [*design.weights.values(), design.pair.share]
        yield design.exceeding(rows, channel, 0.3, 0.2, 50, rng).mean()
        counts = np.array([rng.multinomial(n, p) for n, p in zip(rows, channel, strict=True)])
        for claim in (channel, None):
            evidence = strongest.epsilon_evidence(counts, claim, rng)
            assert evidence is not None
            yield [evidence.by_method(name, 0.05).epsilon for name in evidence.design.weights]
    many, rest = np.eye(13, dtype=np.int64) * 13 + 1, np.zeros(600, np.int32)
    many[1] += 9
    ranked = strongest.RankedRows(rng.normal(size=600), rest + rng.integers(0, 2, 600), rest)
    tests = strongest.subgroup_tests(ranked, ranked, (2, 2), 0.5, rng)
    yield [strongest._promise(many, 2.0), *(test.share for test in tests)]


def guessed(rng: Rng) -> Any:
    for right, wrong, delta in ((90, 20, 0.0), (90, 20, 1e-3), (300, 2, 1e-5)):
        counts = guesses.GuessCounts(1000, right, wrong)
        yield [
            guesses.epsilon_lower(counts, 0.05, delta).epsilon,
            delta_lower(counts, 0.5, 0.05),
            guesses.detectable_epsilon(counts, 1.0, 0.05, delta),
            one_run_p_value(counts, 1.0, delta),
            one_run_epsilon(counts, 0.05, delta),
            detectable_in_one_run(counts, 0.5, 0.05, delta),
        ]
    priors = rng.choice([0.2, 0.5, 0.7], 200)
    yield [bound(priors, 130, 0.05) for bound in (shift_lower, shift_upper)]
    yield matched.guessed_chance(priors, 130, (0.3, 0.6), 0.05, 0.1)
    yield log_odds_ratio_lower(np.array([[[40, 10], [20, 30]], [[900, 500], [450, 800]]]), 0.05)


def rows_alike(rng: Rng) -> Any:
    group, labels, eta = people(rng, 600, 20, 3)
    event = rng.random(600) < 0.4
    designed = matched.designed_matching(group, labels, eta, 0.5, rng)
    assert designed is not None
    parts = [(matched.match(group, labels, 3, r, rng).table(event), None) for r in (1, 4)]
    tests = matched.matched_tests(parts, (designed.table(event), 0.1))
    yield [[*test.table.ravel(), test.share, test.bound(0.05).epsilon] for test in tests]
    yield [matched.target_chance(test, 0.05) for test in tests]
    cases, chance = np.array([19, 20, 400]), np.array([0.5, 0.5, 0.1])
    yield matched.expected_two_sided(cases, chance, 4, 0.5)[1:]
    family = matched.ModelBasedFamily(0.05)
    yield [family.noise(2.0), family.shift(2.0, 0.3), family.blind_up_to(1.0, 0.3)]
    yield family.outputs(2.0, 0.3)


def release_only(rng: Rng) -> Any:
    points, released, halves, scores = clusters(1_200, 3, 2.0, rng)
    found = release_only_evidence(
        points, SplitRows(released, 3, halves, ordered=True), rng=rng, scores=scores
    )
    yield [[*test.table.ravel(), test.bound(0.2).epsilon] for test in found.tests]
    test = GroupTest(
        np.array([[70, 30], [5, 70]]), np.arange(2, dtype=np.int32), 1.0, "", "accuracy"
    )
    yield test.simulated(np.array([[0.8, 0.2], [0.3, 0.7]]), 0.05, 4, rng, 3.0)


def told(rng: Rng) -> Any:
    labels = rng.integers(0, 3, 3_000).astype(np.int32)
    released = np.where(rng.random(3_000) < 0.3, rng.integers(0, 3, 3_000), labels)
    noisy = np.linalg.inv(randomized_response(3, 1.5))[released]
    some = [labels + 0.3 * rng.normal(size=3_000), np.where(labels == 1, 1, labels // 9), released]
    for weights in (telling.label_weights(labels, 3), noisy):
        for values in some:
            one = telling.told(values, weights, 64)
            yield [one.share, one.error, one.wrong]
    for values in some:
        found = telling.decided(values.round(1), labels, released)
        yield [found.share, found.values]
    one = row_order.agreement_beyond(labels, released % 3, 2)
    yield [one.pairs, one.chance, one.z, one.excess]


def white_noise(rng: Rng) -> Any:
    ones, strata = np.repeat((rng.random(300) < 0.3).astype(float), 2), rng.integers(0, 3, 600)
    ones[200:280] = 0
    file = departures.Order("the file", np.arange(600))
    codes = np.repeat(np.arange(150), 4)
    groups = departures.Groups("value", codes, (0,), rng.permutation(600))
    outcomes = row_noise.RowNoise(ones, strata, claimed=np.full(600, 0.3))
    for one in whiteness.white(outcomes, [file], [groups]):
        yield [one.first, one.last, one.opposite, one.tried, one.log_wealth]
    guesses = rng.normal(size=600)
    yield [outcomes.bet(guesses), outcomes.entropy, *outcomes.residual[:6], *outcomes.offset[:2]]
    for family, where, last in (
        ("distances", file, 4),
        ("blocks", file, 8),
        ("equal groups", groups, 0),
    ):
        one = departures.Departure(family, where, max(last // 2, 1), last)
        labelled = replace(outcomes, labels=strata)
        yield [one.bet(outcomes), one.bet(outcomes, both_signs=True), one.bet(labelled)]
    yield autocorrelations(outcomes.residual)[:5]
    found = spacing_of(autocorrelations(outcomes.residual), 1)
    yield [found.period, found.run]


def shared_draws(rng: Rng) -> Any:
    expected = 0.3 + 0.4 * rng.random(3_000)
    side = rng.random(3_000) < np.where(np.arange(3_000) < 600, expected > 0.5, expected)
    yield list(vars(sharpness_test(side.astype(np.int32), expected, (0.2, 0.8))).values())
    group = np.repeat(np.arange(100), 4)
    table = [c.astype(np.int32) for c in (group, rng.integers(0, 2, 400), group // 3)]
    share = np.array([0.01, 0.5, 0.03])
    yield next_column(table, share, np.bincount(group), np.arange(400), [0], rng)
    features = feature_table(np.stack([group % 9, group // 9, rng.normal(size=400)], 1) * 1.0)
    yield sorted(len(np.unique(codes)) for _, codes in partly_equal_rows(features, rng))


def persons(rng: Rng) -> Any:
    channels = [randomized_response(3, 1.0), randomized_response(3, 2.0)]
    labels, sizes = rng.integers(0, 3, 500).astype(np.int32), np.array([200, 180, 120])
    released = np.stack([np.where(rng.random(500) < 0.5, labels, 2) for _ in channels], axis=1)
    for way in ("rates", "accuracy"):
        events = tuple(c[1] > c.mean(axis=0) for c in channels)
        plan = person.AddedPlan(way, 1, events, np.array([0, 1]))
        tally = plan.tally(labels, released, rng)
        yield [plan.bound(tally, 0.05).epsilon, plan.expected(channels, sizes, 0.05)]
        yield [*tally.inside, *tally.outside, *tally.rows]
    found = person.releases_evidence(labels, released, channels, None, rng)
    assert found is not None
    yield [found.epsilon(0.05), found.as_one(0.05).epsilon, found.added_up(0.05).epsilon]
    yield person.detectable_excess(found.epsilon, 1.0, 0.9)(0.05)
    kind = person_noise.kinds_of(labels[:, None], np.zeros(500, np.int64))
    high = person_noise.high_outputs(kind, released[:, 0])
    changed = person_noise.changed_by_noise(labels, released[:, 1])
    yield [high.sum(), changed.sum(), person_noise.paired_p_value(high, changed, kind)]
    counts = np.array([[60, 30, 12], [25, 70, 11], [14, 9, 50]])
    yield person_noise.fresh_p_value(counts, *channels)
    yield person_noise.least_changed(counts, person_noise.remembered_mixture(*channels), 0.05)


def intervals(rng: Rng) -> Any:
    values, scores = rng.beta(2, 5, 400), rng.normal(size=300)
    yield [
        end(values, 0.05, 0.0, 1.0) for end in (bounded_mean.mean_lower, bounded_mean.mean_upper)
    ]
    folds = bounded_mean.Folds((np.sign(scores[:120]), np.sign(scores[120:])))
    yield [folds.lower(0.05), folds.upper(0.05)]
    yield ranking._block_aucs(scores[:100] + 0.5, scores[100:])[:5]
    yield list(vars(ranking.tpr_at_fpr(scores[:100] + 0.5, scores[100:], 0.05, 0.1)).values())
    yield [
        [find(n, 0.05, 0.1) for n in (20, 300)]
        for find in (ranking._strict_rank, ranking._loose_rank)
    ]
    yield [utility_bound(lambda alpha: min(0.1 * alpha, 1.5), p, 3) for p in (0.4, 0.9)]


WORLDS: tuple[Callable[[Rng], Any], ...] = (
    *(renyi_bounds, mean_losses, designs, guessed, rows_alike, release_only),
    *(told, white_noise, shared_draws, persons, intervals),
)


def flat(part: Any) -> list[float]:
    return [x for one in part for x in flat(one)] if np.iterable(part) else [float(part)]


def digits(world: Callable[[Rng], Any]) -> list[list[float]]:
    return [flat(part) for part in world(np.random.default_rng(0))]


@pytest.mark.parametrize("world", WORLDS, ids=lambda world: world.__name__)
def test_as_recorded(world: Callable[[Rng], Any]) -> None:
    expected = json.loads(FILE.read_text())[world.__name__]
    for found, known in zip(digits(world), expected, strict=True):
        assert found == pytest.approx(known, rel=1e-6, abs=1e-9)


if __name__ == "__main__":
    FILE.write_text(json.dumps({world.__name__: digits(world) for world in WORLDS}, indent=0))
