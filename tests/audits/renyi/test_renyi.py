import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from exact_divergence import divergence_of
from scipy.stats import binom
from worlds import feature_table

from ldpaudit.audits.interface import AuditContext, Plan
from ldpaudit.audits.renyi.audit import (
    RELEASE,
    GuessedRows,
    RenyiAudit,
    candidate_pairs,
    worst_pair,
)
from ldpaudit.audits.renyi.curves import at_or_above, dp_epsilon
from ldpaudit.audits.renyi.synthetic import mixture_epsilon, replaced_rows
from ldpaudit.errors import InsufficientDataError
from ldpaudit.judging.checks.interface import Case, Draft, Evidence
from ldpaudit.judging.checks.listing import draft_checks
from ldpaudit.judging.policy import Policy
from ldpaudit.mechanisms import Mechanism, RandomizedResponse, UnknownMechanism
from ldpaudit.mechanisms.double_rr import DoubleRR
from ldpaudit.release import (
    Release,
    ReleasedLabels,
    SyntheticTable,
    TrueLabels,
)
from ldpaudit.result import Curve, Finding


def context(release: Release, claim: Mechanism) -> AuditContext:
    return AuditContext(release, claim, Plan(seed=5))


def randomized(n: int, k: int = 2, shift: float = 1.0, d: int = 2, seed: int = 0) -> AuditContext:
    """Randomized response at ε = 1 with features N(shift · label, I) in their first column."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, k, n).astype(np.int32)
    matrix = rng.standard_normal((n, d))
    if d:
        matrix[:, 0] += shift * truth
    claim = RandomizedResponse.from_epsilon(tuple(range(k)), 1.0)
    released = ReleasedLabels(claim.sample(truth, rng))
    names = tuple(range(k))
    release = Release(feature_table(matrix), released, names, names, TrueLabels(truth))
    return context(release, claim)


def replaced(drawn: Any, original: Any, synthetic: Any, truth: Any) -> Release:
    """Return the release in which drawn rows have synthetic features."""
    kept = (drawn.synthetic_rows < 0)[:, None]
    released = feature_table(np.where(kept, original, synthetic[drawn.synthetic_rows]))
    labels = ReleasedLabels(drawn.labels)
    return Release(
        released, labels, (0, 1), (0, 1), TrueLabels(truth), original=feature_table(original)
    )


def double(n: int = 8_000, noise: float = 0.4, gap: float = 0.5) -> AuditContext:
    """Double RR with synthetic features a distance ``gap`` from the true ones, original known."""
    rng = np.random.default_rng(2)
    truth = rng.integers(0, 2, n).astype(np.int32)
    made = rng.integers(0, 2, n).astype(np.int32)
    original = rng.standard_normal((n, 2)) + truth[:, None]
    synthetic = rng.standard_normal((n, 2)) + made[:, None]
    synthetic[:, 0] += gap
    claim = DoubleRR((0, 1), noise)
    drawn = claim.sample(truth, made, rng)
    release = replaced(drawn, original, synthetic, truth)
    table = SyntheticTable(feature_table(synthetic), made)
    return context(replace(release, synthetic=table), claim)


def curve(finding: Finding, name: str) -> Curve:
    return next(c for c in finding.curves if c.id == name)


def value(found: Curve, order: float) -> float:
    return found.value[found.x.index(order)]


@pytest.fixture(scope="module")
def rr() -> Finding:
    return RenyiAudit().run(randomized(14_000))


@pytest.fixture(scope="module")
def double_rr() -> Finding:
    return RenyiAudit().run(double())


def test_the_certified_curve_lies_below_the_truth_and_near(rr: Finding) -> None:
    # D_α = α/2 + D_α of the channel; each point is too large with probability 5 % at most, and this
    # seed is fixed.
    channel = RandomizedResponse.from_epsilon((0, 1), 1.0).channel
    found = curve(rr, "renyi.release")
    assert found.kind == "certified"
    for order in (1.5, 2.0, 3.0):
        truth = order / 2 + channel.rdp(order)
        assert 0.6 * truth < value(found, order) <= truth


def test_estimate_and_parts(rr: Finding) -> None:
    channel = RandomizedResponse.from_epsilon((0, 1), 1.0).channel
    estimate = curve(rr, "renyi.release.estimate")
    assert estimate.kind == "estimated"
    assert value(estimate, 1.5) == pytest.approx(0.75 + channel.rdp(1.5), rel=0.1)
    own, total = curve(rr, "renyi.release.features"), curve(rr, "renyi.release.if_claim_holds")
    assert (own.kind, total.kind) == ("certified", "estimated")
    assert 0.75 * 0.8 < value(own, 1.5) <= 0.75
    assert value(total, 1.5) - value(own, 1.5) == pytest.approx(channel.rdp(1.5))


def test_an_unbounded_loss_is_said(rr: Finding) -> None:
    assert any("6.1 and 6.4" in note.text for note in rr.notes)
    assert not any(curve.id.startswith("renyi.double_rr") for curve in rr.curves)


def test_without_features_only_the_label_is_left() -> None:
    finding = RenyiAudit().run(randomized(20_000, d=0))
    truth = RandomizedResponse.from_epsilon((0, 1), 1.0).channel.rdp(2.0)
    assert 0.7 * truth < value(curve(finding, "renyi.release"), 2.0) <= truth
    assert not any("6.1" in note.text for note in finding.notes)


def test_many_labels_and_rare_ones() -> None:
    many = randomized(4_000, k=12, shift=0.3)
    truth = many.release.truth
    assert truth is not None
    rare = np.where((truth == 11) & (np.arange(len(truth)) > 150), 10, truth).astype(np.int32)
    release = replace(many.release, truth=TrueLabels(rare))
    finding = RenyiAudit().run(context(release, many.claim))
    assert value(curve(finding, "renyi.release"), 2.0) > 0.3
    assert any("fewer than 100 rows" in note.text for note in finding.notes)


def test_what_cannot_be_audited_is_skipped_with_a_reason() -> None:
    audit, known = RenyiAudit(), randomized(1_000)
    assert audit.unavailable(known) is None
    one = TrueLabels(np.zeros(1_000, dtype=np.int32))
    with pytest.raises(InsufficientDataError, match="two true labels"):
        audit.run(context(replace(known.release, truth=one), known.claim))
    with pytest.raises(InsufficientDataError, match="400 rows"):
        audit.run(randomized(300))
    few = TrueLabels((np.arange(1_000) < 9).astype(np.int32))
    with pytest.raises(InsufficientDataError, match="held-out rows each"):
        audit.run(context(replace(known.release, truth=few), known.claim))


def test_synthetic_features_with_their_labels(double_rr: Finding) -> None:
    # Same labels: D_α = α · 0.5²/2.
    found, estimate = (
        curve(double_rr, "renyi.synthetic"),
        curve(double_rr, "renyi.synthetic.estimate"),
    )
    assert found.kind == "certified"
    assert 0 < value(found, 3.0) <= 3 * 0.5**2 / 2
    # The larger of two estimates, each with a standard error of about 0.04.
    assert value(estimate, 2.0) == pytest.approx(0.25, abs=0.14)
    epsilon = curve(double_rr, "renyi.double_rr_epsilon")
    floor = curve(double_rr, "renyi.double_rr_floor")
    assert (epsilon.kind, floor.kind) == ("estimated", "exact")
    label = math.log(1 + 2 * 0.6 / 0.4)
    assert value(epsilon, 2.0) == pytest.approx(2 * label + value(estimate, 2.0))
    assert value(floor, 2.0) == pytest.approx(2 * label - math.log(2 / 0.4))


def test_synthetic_features_without_their_labels() -> None:
    known = double(5_000, gap=0.0)
    release = replace(known.release, synthetic=None)
    finding = RenyiAudit().run(context(release, known.claim))
    assert any("not released" in note.text for note in finding.notes)
    epsilon = curve(finding, "renyi.double_rr_epsilon")
    released = curve(finding, "renyi.release")
    for order in (1.5, 2.0):
        assert value(epsilon, order) > value(released, order)


def test_where_true_rows_repeat_what_replaced_rows_show_is_no_certificate() -> None:
    """One feature, 1 with probability 0.1, drawn anew: Δ is 0, but rows that differ are even."""
    rng, n = np.random.default_rng(4), 6_000
    truth, claim = rng.integers(0, 2, n).astype(np.int32), DoubleRR((0, 1), 0.9)
    original, table = (rng.random((2, n, 1)) < 0.1).astype(float)
    drawn = claim.sample(truth, rng.integers(0, 2, n).astype(np.int32), rng)
    release = replaced(drawn, original, table, truth)
    found = curve(RenyiAudit().run(context(release, claim)), "renyi.synthetic")
    assert value(found, 2.0) > 0.1
    assert found.kind == "estimated"
    assert any("by chance" in given for given in found.assumptions)


def test_without_original_the_divergence_is_missed() -> None:
    known = double(2_000)
    release = replace(known.release, synthetic=None, original=None)
    finding = RenyiAudit().run(context(release, known.claim))
    assert any("--original" in note.text for note in finding.notes)
    names = {c.id for c in finding.curves}
    assert "renyi.double_rr_floor" in names
    assert not names & {"renyi.synthetic", "renyi.double_rr_epsilon"}


def test_few_synthetic_rows_are_said() -> None:
    known = double(1_000, noise=0.05)
    release = replace(known.release, synthetic=None)
    finding = RenyiAudit().run(context(release, known.claim))
    assert any("were not compared" in note.text for note in finding.notes)


def test_mixture_bound_holds_on_random_finite_examples() -> None:
    rng = np.random.default_rng(0)
    for _ in range(300):
        noise, order = rng.uniform(0.02, 1), rng.uniform(1.05, 12)
        p, other, made = rng.dirichlet(np.full(4, 0.5), size=3) + 1e-6
        p, other, made = (x / x.sum() for x in (p, other, made))
        far = max(divergence_of(x, made, order) for x in (p, other))
        released = [(1 - noise) * x + noise * made for x in (p, other)]
        implied = mixture_epsilon(order, far, noise, 0.0)
        assert divergence_of(*released, order) <= implied + 1e-9
        # Convexity alone says less.
        convex = math.log((1 - noise) * math.exp((order - 1) * far) + noise) / (order - 1)
        assert implied <= math.log(1 / noise) + convex + 1e-9


def test_the_printed_bound_for_labelled_synthetic_rows_holds() -> None:
    """Theorem 7.1 for the features alone: Δ to a label's own synthetic rows, R their mixture.

    The printed proof splits the logarithm of a sum. With R ≥ P̂_y/k Minkowski's inequality gives
    log(1/λ) + log((1 − λ)k e^Δ + λ), and that is at most the printed log(1 + k(1 − λ)/λ) + Δ.
    """
    rng = np.random.default_rng(1)
    for _ in range(300):
        k, noise, order = int(rng.integers(2, 5)), rng.uniform(0.02, 1), rng.uniform(1.05, 12)
        true, made = rng.dirichlet(np.full(4, 0.5), size=(2, k)) + 1e-6
        true, made = (x / x.sum(axis=1, keepdims=True) for x in (true, made))
        far = max(divergence_of(x, r, order) for x, r in zip(true, made, strict=True))
        released = (1 - noise) * true + noise * made.mean(axis=0)
        implied = math.log(1 / noise) + math.log((1 - noise) * k * math.exp(far) + noise)
        assert divergence_of(released[0], released[1], order) <= implied + 1e-9
        assert implied <= math.log(1 + k * (1 - noise) / noise) + far + 1e-9


def test_conversion_to_epsilon_and_delta() -> None:
    # A Gaussian of σ = 5: ε_α = α/50; at δ = 1e-5 the exact ε is 0.93, RDP accounting gives 0.98.
    orders = tuple(np.arange(1.5, 80, 0.25))
    assert dp_epsilon(orders, [a / 50 for a in orders]) == pytest.approx(0.85, abs=0.15)
    assert dp_epsilon((), ()) == math.inf


def test_curves_are_read_upwards() -> None:
    found = Curve(id="renyi.x", kind="estimated", x=(1.5, 2.0), value=(0.1, 0.4))
    assert at_or_above(found, 1.7) == 0.4
    assert at_or_above(found, 3.0) == math.inf


def test_replaced_rows_are_found() -> None:
    before = feature_table(np.array([[1.0, np.nan], [2.0, 3.0], [4.0, 5.0]]))
    after = feature_table(np.array([[1.0, np.nan], [2.0, 3.5], [4.0, np.nan]]))
    assert replaced_rows(before, after).tolist() == [False, True, True]


def test_pairs_are_capped() -> None:
    assert len(candidate_pairs(np.array([0.4, 0.6]))) == 2
    assert len(candidate_pairs(np.full(40, 1 / 40))) == 8 * 7 + 16


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
    labels, values = finite_rows(40_000, 0)
    data = GuessedRows(SHARES * LAW.T[values], labels, SHARES)
    found = worst_pair(data, (2.0,), rng=np.random.default_rng(0))
    exact = [divergence_of(LAW[a], LAW[b], 2.0) for a in range(3) for b in range(3) if a != b]
    assert found.estimated_labels == 3
    assert found.points[0].supported
    # The far pair's 1,400 rows leave a standard error of 4 %.
    assert found.points[0].value == pytest.approx(max(exact), rel=0.2)
    assert found.bounds[0].at(0.05) < max(exact)


def test_labels_too_rare_for_an_estimate_are_an_assumption_of_it() -> None:
    labels, values = finite_rows(900, 1)
    matrix = values[:, None].astype(float)
    claim = RandomizedResponse.from_epsilon((0, 1, 2), 0.5)
    released = ReleasedLabels(claim.sample(labels, np.random.default_rng(1)))
    names = (0, 1, 2)
    release = Release(feature_table(matrix), released, names, names, TrueLabels(labels))
    estimate = curve(RenyiAudit().run(context(release, claim)), "renyi.release.estimate")
    assert any("1 labels with fewer rows" in given for given in estimate.assumptions)
    two = np.where(np.arange(900) < 110, 1, 0).astype(np.int32)
    release = replace(release, truth=TrueLabels(two))
    finding = RenyiAudit().run(context(release, claim))
    assert not any(c.id == "renyi.release.estimate" for c in finding.curves)
    assert any("was not estimated" in note.text for note in finding.notes)


@pytest.mark.validate
@pytest.mark.parametrize("n", [800, 3_000])
def test_whole_audits_of_finite_releases_hold_their_level(n: int) -> None:
    """Each order at 95 %, over 100 releases of known law; the same value as number and as code."""
    claim = RandomizedResponse.from_epsilon((0, 1, 2), 0.5)
    joint = (LAW[:, :, None] * claim.channel.matrix[:, None, :]).reshape(3, -1)
    pairs = [(joint[a], joint[b]) for a in range(3) for b in range(3) if a != b]
    misses, bounds = 0, []
    for seed in range(100):
        labels, values = finite_rows(n, seed)
        # Of a stream of its own: the rows' own seed would draw noise that depends on the labels.
        released = claim.sample(labels, np.random.default_rng([seed, 1]))
        names = (0, 1, 2)
        table = feature_table(values[:, None].astype(float))
        release = Release(table, ReleasedLabels(released), names, names, TrueLabels(labels))
        found = curve(RenyiAudit().run(AuditContext(release, claim, Plan(seed=seed))), RELEASE)
        truths = [max(divergence_of(*pair, order) for pair in pairs) for order in found.x]
        misses += np.greater(found.value, truths)
        bounds.append(value(found, 10.0))
    assert np.all(misses <= binom.isf(1e-6, 100, 0.05))
    if n == 3_000:
        assert np.mean(bounds) > 0.1


def shared_values(share: float, n: int = 16_000) -> Finding:
    """Double RR with the perfect generator; a share of people have one and the same row."""
    rng = np.random.default_rng(0)

    def draw() -> np.ndarray:
        rows = rng.standard_normal((n, 2))
        rows[rng.random(n) < share] = 3.0
        return rows

    truth, made = rng.integers(0, 2, (2, n)).astype(np.int32)
    original, table, claim = draw(), draw(), DoubleRR((0, 1), 0.5)
    drawn = claim.sample(truth, made, rng)
    kept = (drawn.synthetic_rows < 0)[:, None]
    released = feature_table(np.where(kept, original, table[drawn.synthetic_rows]))
    labels, names = ReleasedLabels(drawn.labels), (0, 1)
    release = Release(
        released, labels, names, names, TrueLabels(truth), original=feature_table(original)
    )
    return RenyiAudit().run(context(release, claim))


def test_a_row_that_people_share_does_not_look_like_a_divergence() -> None:
    """Counted once among synthetic rows alone it certified 2 nats where there are none."""
    finding = shared_values(0.008)
    found = curve(finding, "renyi.synthetic")
    assert found.kind == "estimated"
    assert any("count once" in given for given in found.assumptions)
    assert not any(key.startswith("renyi.synthetic") for key in finding.bounds)
    assert max(found.value) < 0.05


@pytest.mark.parametrize("table_known", [True, False])
def test_a_generator_that_copies_the_audited_rows_gets_no_estimate(table_known: bool) -> None:
    """Copies look exactly like the rows that they are copies of: Δ̂ would be 0, in truth it is ∞."""
    known = double(2_500)
    original = known.release.original
    assert original is not None
    made = original.take(np.random.default_rng(0).permutation(len(original)))
    labels = np.random.default_rng(1).integers(0, 2, len(original)).astype(np.int32)
    drawn = known.claim.sample(known.release.truth, labels, np.random.default_rng(2))
    kept = drawn.synthetic_rows < 0
    released = np.where(kept[:, None], original.numeric, made.numeric[drawn.synthetic_rows])
    release = replace(
        known.release,
        features=feature_table(released),
        synthetic=SyntheticTable(made, labels) if table_known else None,
    )
    finding = RenyiAudit().run(context(release, known.claim))
    assert curve(finding, "renyi.synthetic").kind == "estimated"
    names = {c.id for c in finding.curves}
    assert not names & {"renyi.synthetic.estimate", "renyi.double_rr_epsilon"}
    assert any("has seen these rows" in n.text for n in finding.notes if n.level == "warning")


def test_a_generator_that_favours_shared_rows_is_not_said_to_have_seen_them() -> None:
    """One that draws only what half of the people share equals true rows, though it saw none."""
    known = double(2_500)
    original, rng = known.release.original, np.random.default_rng(3)
    assert original is not None
    shared = rng.random(len(original)) < 0.5
    numbers = original.numeric.copy()
    numbers[shared] = rng.integers(0, 3, (int(shared.sum()), 1))
    made = feature_table(np.broadcast_to(rng.integers(0, 3, (2_500, 1)), (2_500, numbers.shape[1])))
    labels = rng.integers(0, 2, 2_500).astype(np.int32)
    release = replace(
        known.release, original=feature_table(numbers), synthetic=SyntheticTable(made, labels)
    )
    finding = RenyiAudit().run(context(release, known.claim))
    assert curve(finding, "renyi.synthetic").kind == "estimated"
    assert any("favours rows that many people share" in note.text for note in finding.notes)


def test_features_that_tell_nothing_apart_are_said_not_to_be_compared() -> None:
    known = double(2_400)
    alike = feature_table(np.ones((2_400, 64)))
    table = SyntheticTable(alike, known.release.truth)
    release = replace(known.release, features=alike, original=alike, synthetic=table)
    finding = RenyiAudit().run(context(release, known.claim))
    assert any("were not compared" in note.text for note in finding.notes)
    assert any(c.id == "renyi.release" for c in finding.curves)


def test_a_label_that_was_not_compared_is_an_assumption() -> None:
    rng, k, n = np.random.default_rng(0), 9, 2_700
    truth = (np.arange(n) % k).astype(np.int32)
    matrix = rng.standard_normal((2, n, 1))
    claim = DoubleRR(tuple(range(k)), 0.5)
    drawn = claim.sample(truth, truth, rng)
    release = Release(
        feature_table(matrix[0]),
        ReleasedLabels(drawn.labels),
        claim.classes,
        claim.classes,
        TrueLabels(truth),
        original=feature_table(matrix[0]),
        synthetic=SyntheticTable(feature_table(matrix[1]), truth),
    )
    finding = RenyiAudit().run(context(release, claim))
    assert any("1 labels were left out" in note.text for note in finding.notes)
    implied = curve(finding, "renyi.double_rr_epsilon")
    assert any("1 labels that were not compared" in given for given in implied.assumptions)
    assert any("never saw those rows" in given for given in implied.assumptions)


def renyi_draft(finding: Finding, alpha: float, limit: float) -> Draft:
    content = {"level": "error", "alpha": alpha, "max": limit}
    policy = Policy.model_validate({"schema": 1, "checks": {"renyi-epsilon": content}})
    drafts = draft_checks(Case(policy, UnknownMechanism(), Evidence.collect([finding]), 20_000))
    return next(draft for draft in drafts if draft.id == "renyi-epsilon")


def test_the_check_reads_the_curve(rr: Finding) -> None:
    low = value(curve(rr, "renyi.release"), 1.25)
    high = value(curve(rr, "renyi.release.estimate"), 1.5)
    between = (value(curve(rr, "renyi.release"), 1.5) + high) / 2
    limits = {low / 2: "fail", high * 1.01: "pass", between: "inconclusive"}
    # The order 1.4 is not on the grid: a bound is taken from below it, an estimate from above.
    for limit, verdict in limits.items():
        draft = renyi_draft(rr, 1.4, limit)
        assert draft.test(0.05).verdict == verdict
        assert draft.evidence == ("renyi.release", "renyi.release.estimate")
    assert renyi_draft(rr, 1.4, 0.0).test(0.05).observed == pytest.approx(low)
    assert "renyi.release@1.25" in rr.bounds


def test_the_check_passes_nothing_that_rows_cannot_support(rr: Finding) -> None:
    outcome = renyi_draft(rr, 10.0, 50.0).test(0.05)
    assert outcome.verdict == "inconclusive"
    assert "cannot support" in outcome.reason
