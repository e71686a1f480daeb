"""A certified lower bound of ε from the release alone: no true label at all.

Where features predict the label well, rows can be put into groups that represent labels, and the
released labels of a group can only be as unanimous as the channel allows. Valid for every
ε-label-DP channel that is the same for all rows; not for one that depends on the features, where
the released label may follow the features whatever the true label is.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from ldpaudit.arrays import HalfArray
from ldpaudit.errors import InputError, InsufficientDataError
from ldpaudit.estimators.epsilon.bounds import EpsilonBound, accuracy_bound, two_sided_bound
from ldpaudit.estimators.epsilon.release_only.balls import (
    AnchorBalls,
    as_scores,
    find_balls,
    right_counts,
)
from ldpaudit.estimators.epsilon.release_only.score_groups import Ladder, Method, score_groups
from ldpaudit.release import BoolArray, Float32Array, FloatArray, IndexArray, IntArray, label_table

SMALLEST_HALF = 200
"""Rows that a half must have for its groups to be worth testing."""
SCORE_SHARE = 0.85
"""The share of the error probability for score groups where anchors are tested too."""
CHOOSING_SHARE = 0.2
"""The share of a half's rows on which score groups are chosen; they are tested on the others."""
_STEPS_INWARD = ((0, 0.8), (2, 0.2))
"""Steps by which groups are made smaller (half as many rows for two steps), and their shares."""
_MOST_OUTPUTS = 16
_MOST_CUTS = 12


@dataclass(frozen=True, eq=False)
class GroupTest:
    """How often the released labels of groups of rows are the ones that the groups represent.

    Attributes
    ----------
    table : int64 array of shape (g, m)
        Rows of each group by released label.
    means : int32 array of shape (m,)
        The group that each released label stands for.
    share : float
        The share of the error probability.
    source : {"scores", "anchors"}
        How the groups were found.
    method : {"accuracy", "two-sided"}
        How ε is bounded from them; the second is for two groups.
    """

    table: IndexArray
    means: IntArray
    share: float
    source: str
    method: Method = "accuracy"

    @cached_property
    def correct(self) -> int:
        """Rows whose released label stands for their group."""
        return int(self.table[self.means, np.arange(len(self.means))].sum())

    @cached_property
    def sizes(self) -> IndexArray:
        """Rows of each group, int64 of shape (g,)."""
        return np.asarray(self.table.sum(axis=1))

    def bound(self, alpha: float) -> EpsilonBound:
        """Bound ε at this test's share of alpha."""
        level = alpha * self.share
        if self.method == "accuracy":
            return accuracy_bound(self.correct, self.sizes, level, self.source)
        hits = self.table[:, self.means == 1].sum(axis=1)
        bound = two_sided_bound(hits.tolist(), self.sizes.tolist(), level)
        return replace(bound, method=self.source)


@dataclass(frozen=True, eq=False)
class ReleaseOnlyEvidence:
    """The tests of a release, counted: a bound at any level.

    The shares of all tests sum to at most 1.
    """

    tests: tuple[GroupTest, ...]

    def bound(self, alpha: float) -> EpsilonBound:
        """Return the certified lower bound of ε at level 1 − alpha, in nats.

        The largest of all tests, each at its share of alpha. Its n is the rows of the test that
        gave it; the method says where its groups came from.
        """
        bounds = [test.bound(alpha) for test in self.tests]
        return replace(max(bounds, key=lambda bound: bound.epsilon), alpha=alpha)

    def strongest_test(self, alpha: float) -> GroupTest:
        """Return the test that gives the bound at level 1 − alpha."""
        return max(self.tests, key=lambda test: test.bound(alpha).epsilon)


def release_only_evidence(
    points: Float32Array | None,
    released: IntArray,
    n_outputs: int,
    halves: HalfArray,
    *,
    rng: np.random.Generator,
    point_rows: IndexArray | None = None,
    scores: FloatArray | None = None,
    ordered: bool = False,
    threads: int = 1,
) -> ReleaseOnlyEvidence:
    """Find groups on one half of the rows, count them on the other, both ways round.

    Parameters
    ----------
    points : float32 array of shape (p, d) or None
        Features in a space where near rows are alike; a map fitted without labels. None: groups by
        scores only.
    released : int32 array of shape (n,)
        Output codes below ``n_outputs``.
    halves : int8 array of shape (n,)
        0 or 1: a random split of the rows.
    rng : numpy.random.Generator
        Draws the anchors.
    point_rows : int64 array of shape (p,), optional
        The rows that ``points`` belong to, chosen without labels; all by default.
    scores : float64 array of shape (n, m), optional
        P(output | x) for each row from a model fitted without its own half. How good the model is
        matters for the strength of the bound, not for its validity.
    ordered : bool
        Whether outputs are numbers in their order: then low and high ones are told apart too.
    threads : int
        Of the matrix products.

    Raises
    ------
    InsufficientDataError
        If a half has fewer than 200 rows.
    InputError
        If there are neither points nor scores.

    References
    ----------
    Reeve & Kabán (2019), COLT, Theorem 3: a maximum over neighbourhoods bounds the largest
    conditional probability from below without smoothness. Here the neighbourhood is chosen on
    other rows, so no union over neighbourhoods is paid; the count is bounded as in
    :func:`ldpaudit.estimators.epsilon.bounds.accuracy_bound`.
    """
    if points is None and scores is None:
        raise InputError("The release-only bound must have points or scores.")
    smallest = int(min(np.sum(halves == 0), np.sum(halves == 1)))
    if smallest < SMALLEST_HALF:
        raise InsufficientDataError(
            f"The release-only bound must have at least {2 * SMALLEST_HALF} rows, "
            f"got {len(released)}."
        )
    tests: list[GroupTest] = []
    share = 0.5 if points is None else 0.5 * SCORE_SHARE
    for half in (0, 1):
        rows = np.flatnonzero(halves == half)
        if scores is not None:
            tests += _score_tests(scores[rows], released[rows], share, rng, ordered)
    if points is not None:
        left = 0.5 if scores is None else 0.5 * (1 - SCORE_SHARE)
        some = slice(None) if point_rows is None else point_rows
        settings = (n_outputs, ordered, left, threads)
        tests += _anchor_tests(points, released[some], halves[some], settings, rng)
    return ReleaseOnlyEvidence(tuple(tests))


def _score_tests(
    scores: FloatArray,
    released: IntArray,
    share: float,
    rng: np.random.Generator,
    ordered: bool,
) -> list[GroupTest]:
    """Choose groups on some rows of one half, and test them on its others."""
    shuffled = rng.permutation(len(scores))
    cut = int(CHOOSING_SHARE * len(scores))
    chosen, tested = np.sort(shuffled[:cut]), np.sort(shuffled[cut:])
    options = []
    for output in _problems(scores, ordered):
        meant = _meant(released[chosen], output)
        grouped = as_scores(scores[chosen], output)
        groups = score_groups(grouped, meant, len(tested) / len(chosen))
        for method in _methods(groups.ladder):
            options.append((output, groups, method, *groups.ladder.best(method)))
    output, groups, method, step, _ = max(options, key=lambda option: option[4])
    grouped, means = as_scores(scores[tested], output), _meant(_codes(scores.shape[1]), output)
    last = np.maximum((groups.ladder.sizes > 0).sum(axis=1) - 1, 0)
    tests = []
    for inward, part in _STEPS_INWARD:
        # A group that was left out stays out.
        smaller = np.where(step > last, step, np.minimum(step + inward, last))
        assigned = groups.assign(grouped, smaller)
        details = (share * part, "scores", method)
        tests.append(_count(assigned, released[tested], means, len(step), details))
    return tests


def _methods(ladder: Ladder) -> tuple[Method, ...]:
    return ("accuracy", "two-sided") if len(ladder.sizes) == 2 else ("accuracy",)


def _meant(released: IntArray, outputs: BoolArray | None) -> IntArray:
    """Return the group that each released label represents, as in :func:`as_scores`."""
    return released if outputs is None else outputs[released].astype(np.int32)


def _codes(m: int) -> IntArray:
    """Return the codes of all m outputs."""
    return np.arange(m, dtype=np.int32)


def _problems(frequencies: FloatArray, ordered: bool) -> Iterator[BoolArray | None]:
    """Yield None for all outputs at once, then sets of outputs, each against the others.

    The commonest outputs alone and, where they are in an order, the low ones up to some output.
    """
    yield None
    m = frequencies.shape[-1]
    if m <= 2:
        return
    mean = frequencies.reshape(-1, m).mean(axis=0)
    for z in np.argsort(-mean, kind="stable")[:_MOST_OUTPUTS]:
        yield np.arange(m) == z
    if ordered:
        below = np.cumsum(mean) / max(float(mean.sum()), 1e-300)
        cuts = np.searchsorted(below, (np.arange(_MOST_CUTS) + 0.5) / _MOST_CUTS)
        for last in np.unique(np.clip(cuts, 0, m - 2)):
            yield np.arange(m) <= last


def _count(
    assigned: IntArray,
    released: IntArray,
    means: IntArray,
    n_groups: int,
    details: tuple[float, str, Method],
) -> GroupTest:
    """Count the released labels of groups; ``details``: the test's share, source and method."""
    used = assigned >= 0
    table = label_table(assigned[used], released[used], n_groups, len(means))
    return GroupTest(table, means, *details)


def _anchor_tests(
    points: Float32Array,
    released: IntArray,
    halves: HalfArray,
    settings: tuple[int, bool, float, int],
    rng: np.random.Generator,
) -> list[GroupTest]:
    """Find balls on one half and count them on the other.

    ``settings``: the number of outputs, whether they are in an order, the tests' share, threads.
    """
    n_outputs, ordered, share, threads = settings
    rows = [np.flatnonzero(halves == half) for half in (0, 1)]
    tests = []
    for mine, other in (rows, rows[::-1]):
        balls = find_balls(points[mine], released[mine], n_outputs, rng=rng, threads=threads)
        tests.append(_test_balls(balls, points[other], released[other], ordered, share))
    return tests


def _test_balls(
    balls: AnchorBalls, points: Float32Array, released: IntArray, ordered: bool, share: float
) -> GroupTest:
    scale = len(points) / balls.sampled
    options = []
    for output in _problems(balls.counts[:, 0].astype(np.float64), ordered):
        right = right_counts(balls.counts, output)
        ladder, anchor = balls.ladder(right, scale)
        for method in _methods(ladder):
            options.append((output, anchor, method, *ladder.best(method)))
    output, anchor, method, step, _ = max(options, key=lambda option: option[4])
    assigned = np.full(len(points), -1, dtype=np.int32)
    claims = np.zeros(len(points), dtype=np.int32)
    for g in range(len(anchor)):
        if step[g] < anchor.shape[1]:
            inside = balls.inside(points, int(anchor[g, step[g]]), int(step[g]))
            assigned[inside] = g
            claims[inside] += 1
    assigned[claims > 1] = -1
    means = _meant(_codes(balls.counts.shape[-1]), output)
    return _count(assigned, released, means, len(anchor), (share, "anchors", method))
