"""A certified lower bound of ε from the release alone: no true label at all.

Where features predict the label well, rows can be put into groups that represent labels, and the
released labels of a group can only be as unanimous as the channel allows. Groups are rows that a
model is surest about, or balls of feature space in which an output is unusually frequent. They are
chosen without the released labels of the rows tested, so every bound for true labels holds for them
too: whatever rows are put together, each of them was released by one of the channel's rows. Valid
for every ε-label-DP channel that is the same for all rows; not for one that depends on the
features, where the released label may follow the features whatever the true label is.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
from threadpoolctl import threadpool_limits

from ldpaudit.arrays import HalfArray
from ldpaudit.errors import InputError, InsufficientDataError
from ldpaudit.estimators.epsilon.bounds import GroupTest, Method, Strongest, two_sided_epsilon
from ldpaudit.estimators.epsilon.strongest import expected_bound
from ldpaudit.estimators.intervals.binomial import clopper_pearson_lower
from ldpaudit.release import BoolArray, Float32Array, FloatArray, IndexArray, IntArray, label_table

SMALLEST_HALF = 200
"""Rows that a half must have for its groups to be worth testing."""
SCORE_SHARE = 0.85
"""The share of the error probability for score groups where anchors are tested too."""
CHOOSING_SHARE = 0.2
"""The share of a half's rows on which score groups are chosen; they are tested on the others."""
SMALLEST_GROUP = 32
ANCHORS = 256
SAMPLE_ROWS = 100_000
_STEPS_INWARD = ((0, 0.8), (2, 0.2))
"""Steps by which groups are made smaller (half as many rows for two steps), and their shares."""
_MOST_OUTPUTS = 16
_MOST_CUTS = 12
_DESIGN_ALPHA = 0.01
_SWEEPS = 3
_LARGEST_BALL = 32_768
_AT_ONCE = 32


class ReleaseOnlyEvidence(Strongest[GroupTest]):
    """The tests of a release without true labels."""


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
    :func:`ldpaudit.estimators.epsilon.bounds.accuracy_epsilon`.
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
    rows = [np.flatnonzero(halves == half) for half in (0, 1)]
    share = 0.5 if points is None else 0.5 * SCORE_SHARE
    if scores is not None:
        for mine in rows:
            tests += _score_tests(scores[mine], released[mine], share, rng, ordered)
    if points is not None:
        share = 0.5 if scores is None else 0.5 * (1 - SCORE_SHARE)
        some = np.arange(len(released)) if point_rows is None else point_rows
        rows = [np.flatnonzero(halves[some] == half) for half in (0, 1)]
        codes = released[some]
        for mine, other in (rows, rows[::-1]):
            balls = find_balls(points[mine], codes[mine], n_outputs, rng=rng, threads=threads)
            tests.append(_ball_test(balls, points[other], codes[other], ordered, share))
    return ReleaseOnlyEvidence(tuple(tests))


def _score_tests(
    scores: FloatArray,
    released: IntArray,
    share: float,
    rng: np.random.Generator,
    ordered: bool,
) -> Iterator[GroupTest]:
    """Choose groups on some rows of one half, and test them on its others."""
    shuffled = rng.permutation(len(scores))
    cut = int(CHOOSING_SHARE * len(scores))
    chosen, tested = np.sort(shuffled[:cut]), np.sort(shuffled[cut:])
    options = []
    for outputs in _problems(scores, ordered):
        meant = _meant(released[chosen], outputs)
        groups = score_groups(_merged(scores[chosen], outputs), meant, len(tested) / len(chosen))
        options += [(outputs, groups, *best) for best in groups.ladder.best()]
    outputs, groups, method, step, _ = max(options, key=lambda option: option[-1])
    means = _meant(np.arange(scores.shape[1], dtype=np.int32), outputs)
    last = np.maximum((groups.ladder.sizes > 0).sum(axis=1) - 1, 0)
    for inward, part in _STEPS_INWARD:
        # A group that was left out stays out.
        smaller = np.where(step > last, step, np.minimum(step + inward, last))
        assigned = groups.assign(_merged(scores[tested], outputs), smaller)
        table = _table(assigned, released[tested], len(step), len(means))
        yield GroupTest(table, means, share * part, "scores", method)


def _ball_test(
    balls: "AnchorBalls", points: Float32Array, released: IntArray, ordered: bool, share: float
) -> GroupTest:
    """Count the balls that were best where they were found on other rows."""
    options = []
    for outputs in _problems(balls.counts[:, 0].astype(np.float64), ordered):
        if outputs is None:
            right = balls.counts
        else:
            one = balls.counts[..., outputs].sum(axis=-1)
            right = np.stack([balls.counts.sum(axis=-1) - one, one], axis=-1)
        ladder, anchor = balls.ladder(right, len(points) / balls.sampled)
        options += [(outputs, anchor, *best) for best in ladder.best()]
    outputs, anchor, method, step, _ = max(options, key=lambda option: option[-1])
    assigned, claims = np.full(len(points), -1, dtype=np.int32), np.zeros(len(points), np.int32)
    for g in range(len(anchor)):
        if step[g] < anchor.shape[1]:
            inside = balls.inside(points, int(anchor[g, step[g]]), int(step[g]))
            assigned[inside] = g
            claims[inside] += 1
    assigned[claims > 1] = -1
    m = balls.counts.shape[-1]
    means = _meant(np.arange(m, dtype=np.int32), outputs)
    return GroupTest(_table(assigned, released, len(anchor), m), means, share, "anchors", method)


def _table(assigned: IntArray, released: IntArray, groups: int, outputs: int) -> IndexArray:
    used = assigned >= 0
    return label_table(assigned[used], released[used], groups, outputs)


def _problems(frequencies: FloatArray, ordered: bool) -> Iterator[BoolArray | None]:
    """Yield which outputs the second of two groups stands for; None: a group for each output.

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


def _meant(released: IntArray, outputs: BoolArray | None) -> IntArray:
    """Return the group that each released label stands for, of :func:`_problems`."""
    return released if outputs is None else outputs[released].astype(np.int32)


def _merged(scores: FloatArray, outputs: BoolArray | None) -> FloatArray:
    """Return the probability of each group's outputs, groups of :func:`_problems`."""
    if outputs is None:
        return scores
    one = scores[:, outputs].sum(axis=1)
    return np.stack([np.maximum(1 - one, 0.0), one], axis=1)


@dataclass(frozen=True, eq=False)
class Ladder:
    """For each group, nested candidate sizes and how many rows of them to expect right.

    ``sizes`` and ``right`` have shape (g, s): rows, from the most to the fewest, and the expected
    number of them whose released label is the one that the group stands for. A last step of 0 rows
    leaves a group out.
    """

    sizes: FloatArray
    right: FloatArray

    def best(self) -> Iterator[tuple[Method, IndexArray, float]]:
        """Yield for each method the step of each group, int64 (g,), and its expected bound.

        The best common step first, then group by group.
        """
        groups, steps = self.sizes.shape
        for method, expected in _EXPECTED.items():
            if method == "two-sided" and groups != 2:
                continue
            values = expected(self.right.T, self.sizes.T)
            step, best = np.full(groups, int(values.argmax()), dtype=np.int64), float(values.max())
            for _ in range(_SWEEPS):
                before = best
                for g in range(groups):
                    index = np.repeat(step[None, :], steps, axis=0)
                    index[:, g] = np.arange(steps)
                    every = np.arange(groups)
                    values = expected(self.right[every, index], self.sizes[every, index])
                    if values.max() > best:
                        step[g], best = int(values.argmax()), float(values.max())
                if best <= before + 1e-6:
                    break
            yield method, step, best


def _expected_accuracy(right: FloatArray, sizes: FloatArray) -> FloatArray:
    """Return the expected bound of each row of right and sizes, shape (c, g) → (c,)."""
    usable = (sizes > 0).sum(axis=1) >= 2
    values = np.zeros(len(sizes))
    if usable.any():
        values[usable] = expected_bound(right[usable].sum(axis=1), sizes[usable], _DESIGN_ALPHA)
    return values


def _expected_two_sided(right: FloatArray, sizes: FloatArray) -> FloatArray:
    """Return the two-sided bound of each row of expected counts in two groups, (c, 2) → (c,)."""
    usable = (sizes > 0).all(axis=1)
    some, rows, values = right[usable], sizes[usable], np.zeros(len(sizes))
    hits = np.stack([np.ceil(rows[:, 0] - some[:, 0]), np.floor(some[:, 1])], axis=1)
    values[usable] = two_sided_epsilon(hits, rows, _DESIGN_ALPHA)
    return values


_EXPECTED: Final[Mapping[Method, Callable[[FloatArray, FloatArray], FloatArray]]] = {
    "accuracy": _expected_accuracy,
    "two-sided": _expected_two_sided,
}


def group_sizes(largest: int) -> FloatArray:
    """Return a geometric grid from ``largest`` down to the smallest group, and 0 at its end."""
    if largest == 0:
        return np.zeros(1)
    steps = max(int(2 * np.log2(largest / SMALLEST_GROUP)), 0)
    return np.append(np.ceil(largest * 2.0 ** (-np.arange(steps + 1) / 2)), 0.0)


@dataclass(frozen=True, eq=False)
class ScoreGroups:
    """Groups whose members a model is sure enough about.

    Attributes
    ----------
    thresholds : float64 array of shape (g, s)
        The least score of a group's members at each step of the ladder, ∞ where it is left out.
    usual : float64 array of shape (g,)
        The mean scores: a row belongs where its score exceeds the usual by the largest factor.
    ladder : Ladder
        What to expect of them.
    """

    thresholds: FloatArray
    usual: FloatArray
    ladder: Ladder

    def assign(self, scores: FloatArray, step: IndexArray) -> IntArray:
        """Return the group of each row at the given steps, int32 (n,), −1 for none."""
        group = _likeliest(scores, self.usual)
        rows = np.arange(len(scores))
        least = self.thresholds[np.arange(len(step)), step]
        return np.where(scores[rows, group] >= least[group], group, -1).astype(np.int32)


def score_groups(scores: FloatArray, meant: IntArray, scale: float) -> ScoreGroups:
    """Group rows by which output is likelier than usual, ordered by how likely it is.

    Parameters
    ----------
    scores : float64 array of shape (n, g)
        P(output = g | x) from a model that never saw these rows' released labels.
    meant : int32 array of shape (n,)
        The group whose output each row was released with: these rows' outcomes decide which
        groups are tested, on other rows.
    scale : float
        How many times as many rows will be tested.
    """
    usual = np.maximum(scores.mean(axis=0), 1e-12)
    group = _likeliest(scores, usual)
    thresholds, sizes, right = [], [], []
    for g in range(scores.shape[1]):
        rows = np.flatnonzero(group == g)
        rows = rows[np.argsort(-scores[rows, g], kind="stable")]
        grid = group_sizes(len(rows))
        steps = grid.astype(np.int64)
        hits = np.concatenate([[0], np.cumsum(meant[rows] == g)])[steps]
        # One standard error below what was seen, nothing for one hit: a small lucky group is no
        # good plan.
        purity = np.where(hits > 1, clopper_pearson_lower(hits, np.maximum(grid, 1), 0.16), 0.0)
        thresholds.append(np.append(scores[rows[steps[:-1] - 1], g], np.inf))
        sizes.append(grid * scale)
        right.append(purity * grid * scale)
    ladder = Ladder(_rectangle(sizes, 0.0), _rectangle(right, 0.0))
    return ScoreGroups(_rectangle(thresholds, np.inf), usual, ladder)


def _likeliest(scores: FloatArray, usual: FloatArray) -> IndexArray:
    return np.asarray((scores / usual).argmax(axis=1))


def _rectangle(rows: list[FloatArray], fill: float) -> FloatArray:
    width = max(len(row) for row in rows)
    return np.stack([np.append(row, np.full(width - len(row), fill)) for row in rows])


@dataclass(frozen=True, eq=False)
class AnchorBalls:
    """Counts of outputs in nested balls around random rows.

    Attributes
    ----------
    anchors : float32 array of shape (a, d)
        The centres, in coordinates centred at ``origin``.
    origin : float32 array of shape (d,)
    sizes : int64 array of shape (s,)
        Rows of the sample in the balls, from the most to the fewest.
    radii : float32 array of shape (a, s)
        Squared radii (less the anchor's own squared norm) of the balls.
    counts : int32 array of shape (a, s, m)
        Rows of each output in them.
    sampled : int
        Rows of the sample.
    """

    anchors: Float32Array
    origin: Float32Array
    sizes: IndexArray
    radii: Float32Array
    counts: IntArray
    sampled: int

    def ladder(self, counts: IntArray, scale: float) -> tuple[Ladder, IndexArray]:
        """Return, for each group and ball size, the best anchor, int64 of shape (g, s), and what
        to expect of it on ``scale`` times as many rows.

        ``counts``: rows that are right for each group, int32 of shape (a, s, g). What to expect is
        a lower bound that holds for all anchors at once, and 0 for a single right row, so that a
        lucky ball is not preferred.
        """
        tail = 0.05 / (counts.shape[0] * counts.shape[1])
        most = counts.max(axis=0)  # Of balls of one size, the one with the most right rows.
        low = clopper_pearson_lower(most, self.sizes[:, None], tail)
        purity, best = np.where(most > 1, low, 0.0), counts.argmax(axis=0)
        sizes = np.append(np.floor(self.sizes * scale), 0.0)
        right = np.concatenate([purity, np.zeros((1, purity.shape[1]))]) * sizes[:, None]
        return Ladder(np.tile(sizes, (purity.shape[1], 1)), right.T), best.T

    def inside(self, points: Float32Array, anchor: int, step: int) -> IndexArray:
        """Return which of other points lie in a ball, int64."""
        distance = _distances(points - self.origin, self.anchors[anchor][None, :])[0]
        return np.flatnonzero(distance <= self.radii[anchor, step])


def find_balls(
    points: Float32Array,
    released: IntArray,
    n_outputs: int,
    *,
    rng: np.random.Generator,
    threads: int = 1,
) -> AnchorBalls:
    """Count the outputs in nested balls around random rows; exact neighbours.

    Parameters
    ----------
    points : float32 array of shape (n, d)
    released : int32 array of shape (n,)
        Output codes below ``n_outputs``.
    rng : numpy.random.Generator
        Draws at most 100,000 rows to count and 256 anchors among them.
    threads : int
        Of the matrix products.
    """
    rows = rng.permutation(len(points))[:SAMPLE_ROWS]
    origin = points[rows].mean(axis=0, dtype=np.float64).astype(np.float32)
    sample, labels = points[rows] - origin, released[rows]
    anchors = sample[:ANCHORS]
    sizes = _ball_sizes(len(rows))
    radii = np.empty((len(anchors), len(sizes)), dtype=np.float32)
    counts = np.empty((len(anchors), len(sizes), n_outputs), dtype=np.int32)
    with threadpool_limits(threads):
        for start in range(0, len(anchors), _AT_ONCE):
            block = _distances(sample, anchors[start : start + _AT_ONCE])
            for i, distance in enumerate(block, start):
                radii[i], counts[i] = _nested(distance, labels, sizes, n_outputs)
    return AnchorBalls(anchors, origin, sizes, radii, counts, len(rows))


def _ball_sizes(n: int) -> IndexArray:
    largest = min(n // 3, _LARGEST_BALL)
    steps = int(2 * np.log2(largest / SMALLEST_GROUP))
    return np.ceil(largest * 2.0 ** (-np.arange(steps + 1) / 2)).astype(np.int64)


def _distances(points: Float32Array, anchors: Float32Array) -> Float32Array:
    """Return ‖x‖² − 2⟨x, a⟩, which orders points as ‖x − a‖² does, float32 of shape (a, n)."""
    norms = np.einsum("ij,ij->i", points, points)
    return np.asarray(norms[None, :] - 2 * (anchors @ points.T), dtype=np.float32)


def _nested(
    distance: Float32Array, labels: IntArray, sizes: IndexArray, n_outputs: int
) -> tuple[Float32Array, IntArray]:
    near = np.argpartition(distance, sizes[0] - 1)[: sizes[0]]
    near = near[np.argsort(distance[near])]
    # Which of the nested shells each neighbour lies in, the innermost last.
    shell = len(sizes) - 1 - np.searchsorted(sizes[::-1], np.arange(sizes[0]), side="right")
    cells = np.bincount(shell * n_outputs + labels[near], minlength=len(sizes) * n_outputs)
    counts = np.cumsum(cells.reshape(len(sizes), n_outputs)[::-1], axis=0)[::-1]
    return distance[near][sizes - 1], counts.astype(np.int32)
