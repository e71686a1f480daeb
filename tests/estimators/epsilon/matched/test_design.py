import numpy as np

from ldpaudit.estimators.epsilon.matched.bound import matched_tests
from ldpaudit.estimators.epsilon.matched.design import designed_matching
from ldpaudit.estimators.epsilon.matched.power import canary_power, guessed_chance, target_chance
from ldpaudit.estimators.epsilon.matched.rows import MatchedCounts


def crowd(rng, n=4000):
    scores = np.array([[0.5, 0.5], [0.95, 0.05], [0.02, 0.98], [0.6, 0.4]])
    groups = rng.integers(0, 4, n)
    labels = (rng.random(n) < scores[groups, 1]).astype(np.int32)
    return groups, labels, scores


def test_cases_are_of_labels_that_the_model_finds_improbable():
    rng = np.random.default_rng(0)
    groups, labels, scores = crowd(rng)
    chosen = designed_matching(groups, labels, scores, 0.5, rng)
    assert set(chosen.targets.tolist()) <= {-1, 0, 1}
    assert chosen.targets[0] == chosen.targets[3] == -1
    assert (labels[chosen.cases] == chosen.targets[groups[chosen.cases]]).all()
    assert (labels[chosen.controls] != chosen.targets[groups[chosen.controls]]).all()
    own, others = (
        np.bincount(groups[rows], minlength=4) for rows in (chosen.cases, chosen.controls)
    )
    assert (others == chosen.ratio * own).all()
    assert len(np.unique(np.concatenate([chosen.cases, chosen.controls]))) == own.sum() * (
        1 + chosen.ratio
    )


def test_too_few_rows_give_no_design():
    rng = np.random.default_rng(0)
    groups, labels, scores = crowd(rng, 30)
    assert designed_matching(groups, labels, scores, 0.5, rng) is None


def test_the_shares_of_the_bounds_are_the_whole_error_probability():
    counts = [MatchedCounts(r, 50, 30, 50 * r, 5 * r) for r in (1, 4, 16)]
    for designed in (None, counts[2]):
        assert np.isclose(sum(t.share for t in matched_tests(counts, designed)), 1)


def test_the_models_probability_is_read_from_the_counts_without_the_claim():
    rng = np.random.default_rng(1)
    for noise, chance in ((0.5, 0.1), (0.2, 0.1), (0.6, 0.4)):
        hits = rng.binomial(10**6, 1 - noise + noise * chance)
        false = rng.binomial(4 * 10**6, noise * chance)
        found = target_chance(MatchedCounts(4, 10**6, hits, 4 * 10**6, false), 0.05)
        assert chance - 0.002 < found < chance + 0.01
    few = MatchedCounts(1, 20, 11, 20, 1, chance=0.1)
    assert target_chance(few, 0.05) == 0.1
    assert target_chance(MatchedCounts(1, 500, 500, 500, 500, chance=0.1), 0.05) > 0.5


def test_the_power_of_canaries_is_that_of_simulated_ones():
    from ldpaudit.estimators.intervals.poisson_binomial import shift_lower

    rng = np.random.default_rng(2)
    priors = rng.choice([0.2, 0.5, 0.7], 300)
    power = canary_power(priors, 1.6, 1.0, 0.05)
    right = priors * np.exp(1.6) / (1 + priors * np.expm1(1.6))
    runs = 150
    hits = sum(
        shift_lower(priors, int((rng.random(300) < right).sum()), 0.05) > 1.0 for _ in range(runs)
    )
    # Four standard deviations: 6e-5.
    assert abs(hits / runs - power) < 4 * np.sqrt(power * (1 - power) / runs) + 0.01
    assert canary_power(np.empty(0), 1.6, 1.0, 0.05) == 0.0


def test_what_the_model_gives_guessed_labels_is_bounded():
    rng = np.random.default_rng(3)
    priors, noise, chance = np.full(20_000, 0.5), 0.5, 0.1
    ratio = 1 + (1 - noise) / (noise * chance)
    correct = int((rng.random(20_000) < ratio / (1 + ratio)).sum())
    low, high = guessed_chance(priors, correct, (0.49, 0.51), 0.05, 0.01)
    assert low < chance < high < 0.13
    assert guessed_chance(priors, 10_000, (1.0, 1.0), 0.05, 0.01) == (0.05, 1.0)
