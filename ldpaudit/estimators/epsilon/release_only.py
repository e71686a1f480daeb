"""A certified lower bound of ε from the release alone: no true label at all."""

# Where features predict the label well, rows can be put into groups that represent labels, and the
# released labels of a group can only be as unanimous as the channel allows. Groups are rows that a
# model is surest about, or balls of feature space in which an output is unusually frequent. They
# are chosen without the released labels of the rows tested, so every bound for true labels holds
# for them too: whatever rows are put together, each of them was released by one of the channel's
# rows. Valid for every ε-label-DP channel that is the same for all rows; not for one that depends
# on the features, where the released label may follow the features whatever the true label is.

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from threadpoolctl import threadpool_limits

from ldpaudit.arrays import HalfArray
from ldpaudit.error_budget import ONE_HALF, RELEASE_ALONE, SCORES
from ldpaudit.errors import InputError, InsufficientDataError
from ldpaudit.estimators.epsilon.accuracy import expected_bound
from ldpaudit.estimators.epsilon.bounds import GroupTest, Method, Strongest, two_sided_epsilon
from ldpaudit.estimators.intervals.binomial import clopper_pearson_lower
from ldpaudit.release import Float32Array, FloatArray, IndexArray, IntArray, label_table

SMALLEST_HALF = 200  # rows that a half must have for its groups to be worth testing
SMALLEST_GROUP = 32
_DESIGN_ALPHA = 0.01
# Rows of a half that balls are chosen on; all rows of the other half are counted.
_MOST_DESIGNED = 50_000


class ReleaseOnlyEvidence(Strongest[GroupTest]):
    """The tests of a release without true labels."""


@dataclass(frozen=True, eq=False)
class SplitRows:
    """The n rows of a release, in two random halves."""

    released: IntArray
    """Int32 array of shape (n,): output codes below ``outputs``."""
    outputs: int
    """How many outputs there are."""
    halves: HalfArray
    """Int8 array of shape (n,): 0 or 1, a random split of the rows."""
    ordered: bool = False
    """Whether outputs are numbers in their order: then low and high ones are told apart too."""


def release_only_evidence(
    points: Float32Array | None,
    rows: SplitRows,
    *,
    rng: np.random.Generator,
    point_rows: IndexArray | None = None,
    scores: FloatArray | None = None,
    threads: int = 1,
) -> ReleaseOnlyEvidence:
    """Find groups on one half of the rows, count them on the other, both ways round.

    Raise InsufficientDataError if a half has fewer than 200 rows, InputError if there are neither
    points nor scores.

    Parameters
    ----------
    points : float32 array of shape (p, d) or None
        Features in a space where near rows are alike; a map fitted without labels. None: groups by
        scores only.
    rows : SplitRows
        The released labels of the n rows, and their halves.
    point_rows : int64 array of shape (p,), optional
        The rows that ``points`` belong to, chosen without labels; all by default.
    scores : float64 array of shape (n, m), optional
        P(output | x) for each row from a model fitted without its own half. How good the model is
        matters for the strength of the bound, not for its validity.

    References
    ----------
    Reeve & Kabán (2019), COLT, Theorem 3: a maximum over neighbourhoods bounds the largest
    conditional probability from below without smoothness. Here the neighbourhood is chosen on
    other rows, so no union over neighbourhoods is paid; the count is bounded as in
    :func:`ldpaudit.estimators.epsilon.bounds.accuracy_epsilon`.
    """
    if points is None and scores is None:
        raise InputError("The release-only bound must have points or scores.")
    released, halves = rows.released, rows.halves
    if min(np.sum(halves == 0), np.sum(halves == 1)) < SMALLEST_HALF:
        raise InsufficientDataError(
            f"The release-only bound must have at least {2 * SMALLEST_HALF} rows, "
            f"got {len(released)}."
        )
    tests: list[GroupTest] = []
    if scores is not None:
        share = ONE_HALF if points is None else RELEASE_ALONE.of(ONE_HALF, "scores")
        for half in (0, 1):
            mine = np.flatnonzero(halves == half)
            tests += _score_tests(scores[mine], released[mine], share, rng, rows.ordered)
    if points is not None:
        share = ONE_HALF if scores is None else RELEASE_ALONE.of(ONE_HALF, "balls")
        some = np.arange(len(released)) if point_rows is None else point_rows
        sides, codes = [np.flatnonzero(halves[some] == half) for half in (0, 1)], released[some]
        for mine, other in (sides, sides[::-1]):
            found, tested = ((points[part], codes[part]) for part in (mine, other))
            table, means, method = _ball_table(
                found, tested, rows.outputs, rows.ordered, rng, threads
            )
            sampled = _MOST_DESIGNED if len(mine) > _MOST_DESIGNED else None
            tests.append(GroupTest(table, means, share, "anchors", method, sampled=sampled))
    return ReleaseOnlyEvidence(tuple(tests))


def _score_tests(
    scores: FloatArray, released: IntArray, share: float, rng: np.random.Generator, ordered: bool
) -> Iterator[GroupTest]:
    """Choose groups on a fifth of one half's rows, and test them on its others."""
    shuffled, cut = rng.permutation(len(scores)), int(0.2 * len(scores))
    chosen, tested = np.sort(shuffled[:cut]), np.sort(shuffled[cut:])
    options = []
    for means in _problems(scores, ordered):
        mine, meant = merged(scores[chosen], means, 1.0), means[released[chosen]]
        thresholds, usual, sizes, right = score_groups(mine, meant, len(tested) / len(chosen))
        steps = best_steps(sizes, right)
        options += [
            (bound, method, step, means, thresholds, usual) for method, step, bound in steps
        ]
    _, method, step, means, thresholds, usual = max(options, key=lambda option: option[0])
    last = np.maximum(np.isfinite(thresholds).sum(axis=1) - 1, 0)
    for inward, size in ((0, "large"), (2, "small")):
        # A group that was left out stays out.
        smaller = np.where(step > last, step, np.minimum(step + inward, last))
        least = thresholds[np.arange(len(step)), smaller]
        assigned = assign(merged(scores[tested], means, 1.0), usual, least)
        table = _table(assigned, released[tested], len(step), len(means))
        yield GroupTest(table, means, SCORES.of(share, size), "scores", method)


def _table(assigned: IntArray, released: IntArray, groups: int, outputs: int) -> IndexArray:
    used = assigned >= 0
    return label_table(assigned[used], released[used], groups, outputs)


def _problems(frequencies: FloatArray, ordered: bool) -> Iterator[IntArray]:
    """Yield the group that each output stands for, int32 (m,): its own, then one of two."""
    # Of two groups the second stands for one of the commonest outputs and, where they are in an
    # order, for the low ones up to some output.
    m = frequencies.shape[-1]
    yield np.arange(m, dtype=np.int32)
    if m <= 2:
        return
    mean = frequencies.reshape(-1, m).mean(axis=0)
    for z in np.argsort(-mean, kind="stable")[:16]:
        yield (np.arange(m) == z).astype(np.int32)
    if ordered:
        below = np.cumsum(mean) / max(float(mean.sum()), 1e-300)
        cuts = np.searchsorted(below, (np.arange(12) + 0.5) / 12)
        for last in np.unique(np.clip(cuts, 0, m - 2)):
            yield (np.arange(m) <= last).astype(np.int32)


def merged(values: npt.NDArray[Any], means: IntArray, total: Any) -> npt.NDArray[Any]:
    """Return the sums over the outputs of each group, shape (..., m) → (..., g)."""
    if np.array_equal(means, np.arange(len(means))):
        return values
    one = values[..., means == 1].sum(axis=-1)
    return np.stack([np.maximum(total - one, 0), one], axis=-1)


def best_steps(sizes: FloatArray, right: FloatArray) -> Iterator[tuple[Method, IndexArray, float]]:
    """Yield for each method the step of each group, int64 (g,), and its expected bound.

    The best common step first, then group by group. ``sizes`` and ``right`` have shape (g, s):
    nested candidate sizes of each group, from the most rows to the fewest, and how many of them to
    expect right. A last step of 0 rows leaves a group out.
    """
    groups, steps = sizes.shape
    every = np.arange(groups)
    methods: tuple[Method, ...] = ("accuracy", "two-sided") if groups == 2 else ("accuracy",)
    for method in methods:
        values = _expected(method, right.T, sizes.T)
        step, best = np.full(groups, int(values.argmax()), dtype=np.int64), float(values.max())
        for _ in range(3):
            before = best
            for g in range(groups):
                index = np.repeat(step[None, :], steps, axis=0)
                index[:, g] = np.arange(steps)
                values = _expected(method, right[every, index], sizes[every, index])
                if values.max() > best:
                    step[g], best = int(values.argmax()), float(values.max())
            if best <= before + 1e-6:
                break
        yield method, step, best


def _expected(method: Method, right: FloatArray, sizes: FloatArray) -> FloatArray:
    """Return the expected bound of each row of right and sizes, shape (c, g) → (c,)."""
    values, usable = np.zeros(len(sizes)), (sizes > 0).sum(axis=1) >= 2
    some, rows = right[usable], sizes[usable]
    if len(rows) and method == "accuracy":
        values[usable] = expected_bound(some.sum(axis=1), rows, _DESIGN_ALPHA)
    elif len(rows):
        hits = np.stack([np.ceil(rows[:, 0] - some[:, 0]), np.floor(some[:, 1])], axis=1)
        values[usable] = two_sided_epsilon(hits, rows, _DESIGN_ALPHA)
    return values


def group_sizes(largest: int) -> FloatArray:
    """Return a geometric grid from ``largest`` down to the smallest group, and 0 at its end."""
    if largest == 0:
        return np.zeros(1)
    steps = max(int(2 * np.log2(largest / SMALLEST_GROUP)), 0)
    return np.append(np.ceil(largest * 2.0 ** (-np.arange(steps + 1) / 2)), 0.0)


def score_groups(
    scores: FloatArray, meant: IntArray, scale: float
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
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

    Returns
    -------
    float64 arrays of shapes (g, s), (g,), (g, s), (g, s)
        The least score of a group's members at each step, ∞ where it is left out; the mean scores;
        the rows to be tested, and how many of them to expect right.
    """
    usual = np.maximum(scores.mean(axis=0), 1e-12)
    group, parts = (scores / usual).argmax(axis=1), []
    for g in range(scores.shape[1]):
        rows = np.flatnonzero(group == g)
        rows = rows[np.argsort(-scores[rows, g], kind="stable")]
        grid = group_sizes(len(rows))
        steps = grid.astype(np.int64)
        hits = np.concatenate([[0], np.cumsum(meant[rows] == g)])[steps]
        # One standard error below what was seen, nothing for one hit: a small lucky group is no
        # good plan.
        purity = np.where(hits > 1, clopper_pearson_lower(hits, np.maximum(grid, 1), 0.16), 0.0)
        least = np.append(scores[rows[steps[:-1] - 1], g], np.inf)
        parts.append((least, grid * scale, purity * grid * scale))
    width = max(len(least) for least, *_ in parts)
    thresholds, sizes, right = (
        np.stack([np.append(row, np.full(width - len(row), fill)) for row in rows])
        for rows, fill in zip(zip(*parts, strict=True), (np.inf, 0.0, 0.0), strict=True)
    )
    return thresholds, usual, sizes, right


def assign(scores: FloatArray, usual: FloatArray, least: FloatArray) -> IntArray:
    """Return the group of each row, int32 (n,), −1 for none: likeliest and sure enough."""
    group = (scores / usual).argmax(axis=1)
    sure = scores[np.arange(len(scores)), group] >= least[group]
    return np.where(sure, group, -1).astype(np.int32)


Rows = tuple[Float32Array, IntArray]


def _ball_table(
    found: Rows,
    tested: Rows,
    n_outputs: int,
    ordered: bool,
    rng: np.random.Generator,
    threads: int,
) -> tuple[IndexArray, IntArray, Method]:
    """Count other rows in the balls that were best among nested ones around random rows.

    Of many rows a sample is looked at, and 256 anchors in it; all rows of ``tested`` count.
    """
    points, released = found
    rows = rng.permutation(len(points))[:_MOST_DESIGNED]
    origin = points[rows].mean(axis=0, dtype=np.float64).astype(np.float32)
    sample, labels = points[rows] - origin, released[rows]
    anchors, ball_sizes = sample[:256], group_sizes(min(len(rows) // 3, 32_768))[:-1]
    with threadpool_limits(threads):
        radii, counts = nested_balls(sample, labels, anchors, ball_sizes, n_outputs)
    options = []
    for means in _problems(counts[:, 0].astype(np.float64), ordered):
        sizes, right, best = best_balls(
            merged(counts, means, counts.sum(axis=-1)), ball_sizes, len(tested[0]) / len(rows)
        )
        options += [
            (bound, method, step, means, best) for method, step, bound in best_steps(sizes, right)
        ]
    _, method, step, means, best = max(options, key=lambda option: option[0])
    points, released = tested[0] - origin, tested[1]
    claims = np.zeros((len(step), len(points)), dtype=np.bool_)
    for g, size in enumerate(step):
        if size < len(ball_sizes):
            near = _distances(points, anchors[best[g, size]][None, :])[0]
            claims[g] = near <= radii[best[g, size], size]
    # Rows in the balls of two groups count in neither.
    assigned = np.where(claims.sum(axis=0) == 1, claims.argmax(axis=0), -1).astype(np.int32)
    return _table(assigned, released, len(step), n_outputs), means, method


def best_balls(
    counts: npt.NDArray[np.integer[Any]], ball_sizes: FloatArray, scale: float
) -> tuple[FloatArray, FloatArray, IndexArray]:
    """Return what to expect of each group's best ball of each size, and whose it is, (g, s) each.

    ``counts``: rows that are right for each group, (a, s, g); on ``scale`` times as many rows. What
    to expect is a lower bound that holds for all anchors at once, and 0 for a single right row, so
    that a lucky ball is not preferred.
    """
    most, best = counts.max(axis=0), counts.argmax(axis=0)
    low = clopper_pearson_lower(most, ball_sizes[:, None], 0.05 / (len(counts) * len(ball_sizes)))
    sizes = np.append(np.floor(ball_sizes * scale), 0.0)
    purity = np.concatenate([np.where(most > 1, low, 0.0), np.zeros((1, most.shape[1]))])
    return np.tile(sizes, (most.shape[1], 1)), (purity * sizes[:, None]).T, best.T


def nested_balls(
    points: Float32Array,
    labels: IntArray,
    anchors: Float32Array,
    ball_sizes: FloatArray,
    n_outputs: int,
) -> tuple[Float32Array, IntArray]:
    """Return radii (a, s) and counts of outputs (a, s, m) of exact balls of given sizes."""
    sizes = ball_sizes.astype(np.int64)
    # Which of the nested shells each neighbour lies in, the innermost last.
    shell = len(sizes) - 1 - np.searchsorted(sizes[::-1], np.arange(sizes[0]), side="right")
    radii, counts = [], []
    for block in np.array_split(anchors, -(-len(anchors) // 32)):
        for distance in _distances(points, block):
            near = np.argpartition(distance, sizes[0] - 1)[: sizes[0]]
            near = near[np.argsort(distance[near])]
            cells = np.bincount(shell * n_outputs + labels[near], minlength=len(sizes) * n_outputs)
            inside = np.cumsum(cells.reshape(len(sizes), n_outputs)[::-1], axis=0)[::-1]
            radii.append(distance[near][sizes - 1])
            counts.append(inside.astype(np.int32))
    return np.stack(radii), np.stack(counts)


def _distances(points: Float32Array, anchors: Float32Array) -> Float32Array:
    """Return ‖x‖² − 2⟨x, a⟩, which orders points as ‖x − a‖² does, float32 of shape (a, n)."""
    norms = np.einsum("ij,ij->i", points, points)
    return np.asarray(norms[None, :] - 2 * (anchors @ points.T), dtype=np.float32)
