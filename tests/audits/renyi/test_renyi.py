import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from audits.found import curve, words
from exact_divergence import divergence_of
from levels import check_level
from worlds import feature_table

from ldpaudit.audits.interface import AuditContext, Plan
from ldpaudit.audits.renyi.audit import AUDIT, GuessedRows, candidate_pairs, worst_pair
from ldpaudit.audits.renyi.curves import at_or_above, dp_epsilon
from ldpaudit.audits.renyi.features import mixture_epsilon, replaced_rows
from ldpaudit.errors import InsufficientDataError
from ldpaudit.extras.kinds.mechanisms.with_features import DoubleRR
from ldpaudit.judging.checks.interface import Case, Draft, Evidence
from ldpaudit.judging.checks.listing import draft_checks
from ldpaudit.judging.policy import Policy
from ldpaudit.mechanisms import Mechanism, RandomizedResponse, UnknownMechanism
from ldpaudit.release import Release, ReleasedLabels, SyntheticTable, TrueLabels
from ldpaudit.result import Curve, Finding
from ldpaudit.result.stated import RELEASE_CURVE

CHANNEL = RandomizedResponse.from_epsilon((0, 1), 1.0).channel


def run(release: Release, claim: Mechanism) -> Finding:
    return AUDIT.run(AuditContext(release, claim, Plan(seed=5)))


def labelled(features: Any, released: Any, truth: Any, k: int = 2, **known: Any) -> Release:
    names = tuple(range(k))
    labels = ReleasedLabels(released), names, names, TrueLabels(truth)
    return Release(feature_table(features), *labels, **known)


def randomized(n: int, k: int = 2, shift: float = 1.0, d: int = 2) -> tuple[Release, Mechanism]:
    """Randomized response at ε = 1 with features N(shift · label, I) in their first column."""
    rng = np.random.default_rng(0)
    truth = rng.integers(0, k, n).astype(np.int32)
    matrix = rng.standard_normal((n, d))
    matrix[:, :1] += shift * truth[:, None]
    claim = RandomizedResponse.from_epsilon(tuple(range(k)), 1.0)
    return labelled(matrix, claim.sample(truth, rng), truth, k), claim


def replaced(
    claim: DoubleRR, original: Any, synthetic: Any, truth: Any, made: Any, rng: Any
) -> Release:
    """Return double randomized response: drawn rows have the features of synthetic rows."""
    drawn = claim.sample(truth, made, rng)
    kept = (drawn.synthetic_rows < 0)[:, None]
    features = np.where(kept, original, synthetic[drawn.synthetic_rows])
    return labelled(features, drawn.labels, truth, original=feature_table(original))


def double(
    n: int = 8_000, noise: float = 0.4, gap: float = 0.5, **known: Any
) -> tuple[Release, DoubleRR]:
    """Double RR with synthetic features a distance ``gap`` from the true ones, original known."""
    rng = np.random.default_rng(2)
    truth, made = (rng.integers(0, 2, n).astype(np.int32) for _ in "ab")
    original = rng.standard_normal((n, 2)) + truth[:, None]
    synthetic = rng.standard_normal((n, 2)) + made[:, None]
    synthetic[:, 0] += gap
    claim, table = DoubleRR((0, 1), noise), SyntheticTable(feature_table(synthetic), made)
    release = replaced(claim, original, synthetic, truth, made, rng)
    return replace(release, **({"synthetic": table} | known)), claim


def names_of(finding: Finding) -> set[str]:
    return {c.id for c in finding.curves}


def value(found: Curve, order: float) -> float:
    return found.value[found.x.index(order)]


@pytest.fixture(scope="module")
def rr() -> Finding:
    return run(*randomized(8_000))


def test_randomized_response(rr: Finding) -> None:
    # D_α = α/2 + D_α of the channel; each point is too large with probability 5 % at most, and this
    # seed is fixed.
    found = curve(rr, RELEASE_CURVE)
    assert found.kind == "certified"
    for order in (1.5, 2.0, 3.0):
        truth = order / 2 + CHANNEL.rdp(order)
        assert 0.45 * truth < value(found, order) <= truth
    estimate = curve(rr, "renyi.release.estimate")
    assert estimate.kind == "estimated"
    assert value(estimate, 1.5) == pytest.approx(0.75 + CHANNEL.rdp(1.5), rel=0.15)
    own, total = curve(rr, "renyi.release.features"), curve(rr, "renyi.release.if_claim_holds")
    assert (own.kind, total.kind) == ("certified", "estimated")
    assert 0.75 * 0.7 < value(own, 1.5) <= 0.75
    assert value(total, 1.5) - value(own, 1.5) == pytest.approx(CHANNEL.rdp(1.5))
    assert "6.1 and 6.4" in words(rr)
    assert not any(name.startswith("renyi.double_rr") for name in names_of(rr))


def test_without_features_only_the_label_is_left() -> None:
    finding, truth = run(*randomized(5_000, d=0)), CHANNEL.rdp(2.0)
    assert 0.5 * truth < value(curve(finding, RELEASE_CURVE), 2.0) <= truth
    assert "6.1" not in words(finding)


def test_many_labels_and_rare_ones() -> None:
    release, claim = randomized(4_000, k=12, shift=0.3)
    rare = np.where((release.truth == 11) & (np.arange(4_000) > 150), 10, release.truth)
    finding = run(replace(release, truth=TrueLabels(rare.astype(np.int32))), claim)
    assert value(curve(finding, RELEASE_CURVE), 2.0) > 0.3
    assert "fewer than 100 rows" in words(finding)


def test_what_cannot_be_audited_is_skipped_with_a_reason() -> None:
    release, claim = randomized(1_000)
    with pytest.raises(InsufficientDataError, match="400 rows"):
        run(*randomized(300))
    for few, reason in ((0, "two true labels"), (9, "held-out rows each")):
        truth = TrueLabels((np.arange(1_000) < few).astype(np.int32))
        with pytest.raises(InsufficientDataError, match=reason):
            run(replace(release, truth=truth), claim)


def test_synthetic_features_with_and_without_their_labels() -> None:
    finding = run(*double(2_500))
    found, estimate, epsilon, floor = (
        curve(finding, f"renyi.{name}")
        for name in ("synthetic", "synthetic.estimate", "double_rr_epsilon", "double_rr_floor")
    )
    assert (found.kind, epsilon.kind, floor.kind) == ("certified", "estimated", "exact")
    # Same labels: D_α = α · 0.5²/2.
    assert 0 < value(found, 3.0) <= 3 * 0.5**2 / 2
    # The larger of two estimates, each with a standard error of about 0.05.
    assert value(estimate, 2.0) == pytest.approx(0.25, abs=0.16)
    label = math.log(1 + 2 * 0.6 / 0.4)
    assert value(epsilon, 2.0) == pytest.approx(2 * label + value(estimate, 2.0))
    assert value(floor, 2.0) == pytest.approx(2 * label - math.log(2 / 0.4))
    finding = run(*double(1_500, gap=0.0, synthetic=None))
    assert "not released" in words(finding)
    epsilon, released = curve(finding, "renyi.double_rr_epsilon"), curve(finding, RELEASE_CURVE)
    assert all(value(epsilon, order) > value(released, order) for order in (1.5, 2.0))


def test_where_true_rows_repeat_what_replaced_rows_show_is_no_certificate() -> None:
    """One feature, 1 with probability 0.1, drawn anew: Δ is 0, but rows that differ are even."""
    rng, n, claim = np.random.default_rng(4), 6_000, DoubleRR((0, 1), 0.9)
    truth = rng.integers(0, 2, n).astype(np.int32)
    original, table = (rng.random((2, n, 1)) < 0.1).astype(float)
    made = rng.integers(0, 2, n).astype(np.int32)
    finding = run(replaced(claim, original, table, truth, made, rng), claim)
    found = curve(finding, "renyi.synthetic")
    assert value(found, 2.0) > 0.1
    assert found.kind == "estimated"
    assert any("by chance" in given for given in found.assumptions)


def test_what_is_missing_is_said() -> None:
    finding = run(*double(1_500, synthetic=None, original=None))
    assert "--original" in words(finding)
    missing = {"renyi.synthetic", "renyi.double_rr_epsilon"}
    assert names_of(finding) & ({"renyi.double_rr_floor"} | missing) == {"renyi.double_rr_floor"}
    assert "were not compared" in words(run(*double(1_000, noise=0.05, synthetic=None)))
    alike = feature_table(np.ones((2_400, 64)))
    release, claim = double(2_400)
    table = SyntheticTable(alike, release.truth)
    finding = run(replace(release, features=alike, original=alike, synthetic=table), claim)
    assert "were not compared" in words(finding)
    assert RELEASE_CURVE in names_of(finding)


def test_bounds_of_double_randomized_response_hold_on_random_finite_examples() -> None:
    rng = np.random.default_rng(0)
    for _ in range(60):
        k, noise, order = int(rng.integers(2, 5)), rng.uniform(0.02, 1), rng.uniform(1.05, 12)
        true, made = rng.dirichlet(np.full(4, 0.5), size=(2, k)) + 1e-6
        true, made = (x / x.sum(axis=1, keepdims=True) for x in (true, made))
        far = max(divergence_of(x, made[0], order) for x in true[:2])
        released = (1 - noise) * true + noise * made[0]
        implied = mixture_epsilon(order, far, noise, 0.0)
        assert divergence_of(released[0], released[1], order) <= implied + 1e-9
        # Convexity alone says less.
        convex = math.log((1 - noise) * math.exp((order - 1) * far) + noise) / (order - 1)
        assert implied <= math.log(1 / noise) + convex + 1e-9


def test_small_parts() -> None:
    # A Gaussian of σ = 5: ε_α = α/50; at δ = 1e-5 the exact ε is 0.93, RDP accounting gives 0.98.
    orders = tuple(np.arange(1.5, 80, 0.25))
    assert dp_epsilon(orders, [a / 50 for a in orders]) == pytest.approx(0.85, abs=0.15)
    assert dp_epsilon((), ()) == math.inf
    found = Curve(id="renyi.x", kind="estimated", x=(1.5, 2.0), value=(0.1, 0.4))
    assert (at_or_above(found, 1.7), at_or_above(found, 3.0)) == (0.4, math.inf)
    before = feature_table(np.array([[1.0, np.nan], [2.0, 3.0], [4.0, 5.0]]))
    after = feature_table(np.array([[1.0, np.nan], [2.0, 3.5], [4.0, np.nan]]))
    assert replaced_rows(before, after).tolist() == [False, True, True]
    pairs = [len(candidate_pairs(np.array(shares))) for shares in ([0.4, 0.6], [1 / 40] * 40)]
    assert pairs == [2, 8 * 7 + 16]


LAW = np.array([[0.5, 0.3, 0.15, 0.05], [0.45, 0.3, 0.2, 0.05], [0.05, 0.05, 0.3, 0.6]])
SHARES = np.array([0.6, 0.36, 0.04])


def finite_rows(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Labels and one feature of four values; the third label is rare and far from the others."""
    rng = np.random.default_rng(seed)
    labels = rng.choice(3, n, p=SHARES).astype(np.int32)
    values = (rng.random(n)[:, None] > LAW.cumsum(axis=1)[labels]).sum(axis=1)
    return labels, np.minimum(values, 3)


def test_the_estimate_is_that_of_the_worst_pair_of_labels() -> None:
    """The pair that certifies most is one of frequent labels; it says little of the worst."""
    labels, values = finite_rows(15_000, 0)
    data = GuessedRows(SHARES * LAW.T[values], labels, SHARES)
    found = worst_pair(data, (2.0,), rng=np.random.default_rng(0))
    exact = [divergence_of(LAW[a], LAW[b], 2.0) for a in range(3) for b in range(3) if a != b]
    assert found.estimated_labels == 3
    assert found.points[0].supported
    # The far pair's 600 rows leave a standard error of 7 %.
    assert found.points[0].value == pytest.approx(max(exact), rel=0.3)
    assert found.bounds[0].at(0.05) < max(exact)


def finite(n: int, seed: int, noise: Any = 1) -> tuple[Release, RandomizedResponse]:
    """Return a release of such rows at ε = ½."""
    labels, values = finite_rows(n, seed)
    claim = RandomizedResponse.from_epsilon((0, 1, 2), 0.5)
    released = claim.sample(labels, np.random.default_rng(noise))
    return labelled(values[:, None].astype(float), released, labels, 3), claim


def test_labels_too_rare_for_an_estimate_are_an_assumption_of_it() -> None:
    release, claim = finite(900, 1)
    estimate = curve(run(release, claim), "renyi.release.estimate")
    assert any("1 labels with fewer rows" in given for given in estimate.assumptions)
    two = np.where(np.arange(900) < 110, 1, 0).astype(np.int32)
    finding = run(replace(release, truth=TrueLabels(two)), claim)
    assert "renyi.release.estimate" not in names_of(finding)
    assert "was not estimated" in words(finding)


@pytest.mark.validate
@pytest.mark.parametrize("n", [800, 3_000])
def test_whole_audits_of_finite_releases_hold_their_level(n: int) -> None:
    """Each order at 95 %, over 100 releases of known law; the same value as number and as code."""
    claim = RandomizedResponse.from_epsilon((0, 1, 2), 0.5)
    joint = (LAW[:, :, None] * claim.channel.matrix[:, None, :]).reshape(3, -1)
    pairs = [(joint[a], joint[b]) for a in range(3) for b in range(3) if a != b]
    bounds = []

    def missed(seed: int) -> Any:
        # Noise of a stream of its own: the rows' seed would draw what depends on the labels.
        context = AuditContext(*finite(n, seed, [seed, 1]), Plan(seed=seed))
        found = curve(AUDIT.run(context), RELEASE_CURVE)
        truths = [max(divergence_of(*pair, order) for pair in pairs) for order in found.x]
        bounds.append(value(found, 10.0))
        return np.greater(found.value, truths)

    check_level(missed, 100, 0.05)
    if n == 3_000:
        assert np.mean(bounds) > 0.1


def test_a_row_that_people_share_does_not_look_like_a_divergence() -> None:
    """Counted once among synthetic rows alone it certified 2 nats where there are none.

    The generator is perfect, and 0.8 % of the people have one and the same row.
    """
    rng, n, claim = np.random.default_rng(0), 6_000, DoubleRR((0, 1), 0.5)

    def draw() -> np.ndarray:
        rows = rng.standard_normal((n, 2))
        rows[rng.random(n) < 0.008] = 3.0
        return rows

    truth, made = rng.integers(0, 2, (2, n)).astype(np.int32)
    original, table = draw(), draw()
    finding = run(replaced(claim, original, table, truth, made, rng), claim)
    found = curve(finding, "renyi.synthetic")
    assert found.kind == "estimated"
    assert any("count once" in given for given in found.assumptions)
    assert not any(key.startswith("renyi.synthetic") for key in finding.bounds)
    assert max(found.value) < 0.05


def test_a_generator_that_copies_the_audited_rows_gets_no_estimate() -> None:
    """Copies look exactly like the rows that they are copies of: Δ̂ would be 0, in truth it is ∞."""
    known, claim = double(1_500)
    assert known.original is not None
    original, rng = known.original.numeric, np.random.default_rng(0)
    made, labels = rng.permutation(original), rng.integers(0, 2, 1_500).astype(np.int32)
    release = replaced(claim, original, made, known.truth, labels, np.random.default_rng(2))
    table = SyntheticTable(feature_table(made), labels)
    finding = run(replace(release, synthetic=table), claim)
    assert curve(finding, "renyi.synthetic").kind == "estimated"
    assert not names_of(finding) & {"renyi.synthetic.estimate", "renyi.double_rr_epsilon"}
    assert any("has seen these rows" in n.text for n in finding.notes if n.level == "warning")


def test_a_generator_that_favours_shared_rows_is_not_said_to_have_seen_them() -> None:
    """One that draws only what half of the people share equals true rows, though it saw none."""
    known, claim = double(1_500)
    rng = np.random.default_rng(3)
    assert known.original is not None
    numbers, shared = known.original.numeric.copy(), rng.random(1_500) < 0.5
    numbers[shared] = rng.integers(0, 3, (int(shared.sum()), 1))
    made = feature_table(np.broadcast_to(rng.integers(0, 3, (1_500, 1)), numbers.shape))
    table = SyntheticTable(made, rng.integers(0, 2, 1_500).astype(np.int32))
    finding = run(replace(known, original=feature_table(numbers), synthetic=table), claim)
    assert curve(finding, "renyi.synthetic").kind == "estimated"
    assert "favours rows that many people share" in words(finding)


def test_a_label_that_was_not_compared_is_an_assumption() -> None:
    rng, k, n = np.random.default_rng(0), 9, 2_700
    truth, claim = (np.arange(n) % k).astype(np.int32), DoubleRR(tuple(range(k)), 0.5)
    original, made = (feature_table(rng.standard_normal((n, 1))) for _ in "ab")
    released, table = claim.sample(truth, truth, rng).labels, SyntheticTable(made, truth)
    release = labelled(original.numeric, released, truth, k, original=original, synthetic=table)
    finding = run(release, claim)
    assert "1 labels were left out" in words(finding)
    implied = curve(finding, "renyi.double_rr_epsilon")
    assert any("1 labels that were not compared" in given for given in implied.assumptions)
    assert any("never saw those rows" in given for given in implied.assumptions)


def test_the_check_reads_the_curve(rr: Finding) -> None:
    def asked(order: float, limit: float) -> Draft:
        content = {"level": "error", "alpha": order, "max": limit}
        policy = Policy.model_validate({"schema": 1, "checks": {"renyi-epsilon": content}})
        case = Case(policy, UnknownMechanism(), Evidence.collect([rr]), 20_000)
        return next(draft for draft in draft_checks(case) if draft.id == "renyi-epsilon")

    low = value(curve(rr, "renyi.release"), 1.25)
    high = value(curve(rr, "renyi.release.estimate"), 1.5)
    between = (value(curve(rr, "renyi.release"), 1.5) + high) / 2
    # The order 1.4 is not on the grid: a bound is taken from below it, an estimate from above.
    for limit, verdict in {low / 2: "fail", high * 1.01: "pass", between: "inconclusive"}.items():
        draft = asked(1.4, limit)
        assert draft.test(0.05).verdict == verdict
        assert draft.evidence == ("renyi.release", "renyi.release.estimate")
    assert asked(1.4, 0.0).test(0.05).observed == pytest.approx(low)
    assert "renyi.release@1.25" in rr.bounds
    # It passes nothing that rows cannot support.
    outcome = asked(10.0, 50.0).test(0.05)
    assert outcome.verdict == "inconclusive"
    assert "cannot support" in outcome.reason
