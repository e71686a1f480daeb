"""Does the noise of two answers of a person go together? Exact tests, with true labels and without.

With true labels: rows with the same two true labels (and stratum) are alike. If the noise is
independent, any pairing of the first answer with the second is equally likely among them, whatever
the two channels are. What noise did to each answer is coded as 0 or 1; the number of rows with both
ones is hypergeometric in each group of alike rows, given how often each one occurs.

Without them: whatever the true labels are, independent answers are a mixture of the products of the
channels' rows; remembered ones a mixture of those for labels that changed and of one answer, given
twice, for labels that did not. A mixture is refuted where none lies within simultaneous confidence
intervals of the counts.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, product
from typing import Final

import numpy as np
from scipy.optimize import linprog
from scipy.signal import convolve, correlate
from scipy.special import gammaln
from scipy.stats import binom

from ldpaudit.arrays import BoolArray
from ldpaudit.doors import FloatArray, IndexArray, IntArray
from ldpaudit.estimators.assumptions.agreement import largest_agreement
from ldpaudit.estimators.epsilon.consistency import SMALLEST_P_VALUE, marginal_consistency
from ldpaudit.estimators.intervals.binomial import trials_lower, trials_upper
from ldpaudit.release import label_table

MOST_PEOPLE_PAIRED: Final = 200_000
FEWEST: Final = 20  # fewer alike rows than this are not tested, and no group of them by itself
# Rows of a file along which noise of other rows is looked for, and pairs that show it.
LONGEST_LINE: Final = 1 << 17
FEWEST_TOGETHER: Final = 50
# Of all distances so many are tested exactly, from so many standard errors on.
_LOOKED_AT: Final = 3
_WORTH_A_TEST: Final = 4.0
# The most entries of a mixture that is looked at; a linear program over them takes seconds.
LARGEST: Final = 40_000


@dataclass(frozen=True)
class SharedNoise:
    """Whether answers share noise: the p-value, or None where too few rows are alike."""

    p_value: float | None
    """Valid for all ``tests`` together (Bonferroni)."""
    tests: int
    """Pairs times codings."""
    rows: int
    """How many have another one like them, for the pair with most."""


def shared_noise(
    truth: IntArray,
    released: IntArray,
    strata: IndexArray | None = None,
    *,
    same_labels: Sequence[bool],
    pairs: Sequence[tuple[int, int]] | None = None,
    unchanged: bool | None = None,
) -> SharedNoise:
    """Test pairs of answers for noise that goes together; only three at a time is not found.

    ``truth``, ``released``: codes, int32 (n, d), below 0 where a person has no such answer;
    ``strata``: codes of rows with one channel. ``same_labels``: whether an answer's codes of labels
    and outputs stand for the same values: then another output counts as changed by noise, else one
    that is not the commonest of its label. ``unchanged``: whether to compare only people whose two
    labels are the same (True), or differ (False), where answers are of one label.
    """
    strata = np.zeros(len(truth), np.int64) if strata is None else strata
    p_values, most = list[float](), 0
    for a, b in combinations(range(released.shape[1]), 2) if pairs is None else pairs:
        rows = (truth[:, a] >= 0) & (truth[:, b] >= 0)
        if unchanged is not None:
            rows &= (truth[:, a] == truth[:, b]) == unchanged
        kinds = kinds_of(truth[rows][:, [a, b]], strata[rows])
        sizes = np.bincount(kinds)
        alike = int(sizes[sizes > 1].sum())
        if alike < FEWEST:
            continue
        most = max(most, alike)
        codings = [
            codings_of(truth[rows, c], released[rows, c], strata[rows], same_labels=same_labels[c])
            for c in (a, b)
        ]
        p_values += [paired_p_value(one, other, kinds) for one, other in product(*codings)]
    smallest = min(p_values, default=1.0) * len(p_values)
    return SharedNoise(min(smallest, 1.0) if p_values else None, len(p_values), most)


def codings_of(
    labels: IntArray, outputs: IntArray, strata: IndexArray, *, same_labels: bool
) -> list[BoolArray]:
    """Return what noise did to answers, coded in one or two ways, bool (n,) each."""
    found = [high_outputs(kinds_of(labels[:, None], strata), outputs)]
    if same_labels:
        found.append(outputs != labels)
    elif (int(labels.max()) + 1) * (int(outputs.max()) + 1) <= (1 << 20):
        found.append(changed_by_noise(labels, outputs))
    return found


@dataclass(frozen=True, eq=False)
class Line:
    """One answer of each of several people, in the order of a file.

    ``labels``, ``outputs``: codes, int32 (n,); ``strata``: codes of rows with one channel;
    ``whose``: the person of each row, int64 (n,).
    """

    labels: IntArray
    outputs: IntArray
    strata: IndexArray
    whose: IndexArray

    def take(self, rows: IndexArray) -> "Line":
        """Return some of the rows."""
        return Line(self.labels[rows], self.outputs[rows], self.strata[rows], self.whose[rows])

    def codings(self, *, same_labels: bool) -> list[BoolArray]:
        """Return what noise did, as :func:`codings_of` codes it."""
        return codings_of(self.labels, self.outputs, self.strata, same_labels=same_labels)

    def residual(self, coding: BoolArray) -> FloatArray:
        """Return a coding less its mean among alike rows, in standard deviations, float64 (n,)."""
        kind = kinds_of(self.labels[:, None], self.strata)
        sizes = np.maximum(np.bincount(kind), 1)
        usual = (np.bincount(kind, coding) / sizes)[kind]
        spread = np.sqrt(usual * (1 - usual))
        return np.where(spread > 0, (coding - usual) / np.where(spread > 0, spread, 1.0), 0.0)


def noise_of_other_rows(one: Line, other: Line, same_labels: tuple[bool, bool]) -> float | None:
    """Return the p-value of "one answer's noise is not that of others in other rows".

    At every distance between the rows of two answers, in the same order and in the opposite one:
    random numbers may serve a second answer a row later, or backwards. The clearest of these are
    tested exactly, and each p-value is multiplied by the number of all. None for too few rows, and
    where the file is in an order of released labels: then rows far apart are alike by right.
    """
    one, other = (
        line.take(np.arange(min(len(line.labels), LONGEST_LINE))) for line in (one, other)
    )
    if min(len(one.labels), len(other.labels)) < 2 * FEWEST_TOGETHER:
        return None
    found, tried = [1.0], 0
    codings = one.codings(same_labels=same_labels[0]), other.codings(same_labels=same_labels[1])
    residuals = [
        [line.residual(coding) for coding in some]
        for line, some in zip((one, other), codings, strict=True)
    ]
    if any(_runs(residual) for some in residuals for residual in some):
        return None
    for i, j in product(*(range(len(some)) for some in codings)):
        for backwards in (False, True):
            clear = _along(residuals[0][i], residuals[1][j], backwards=backwards)
            tried += len(clear)
            for place in np.argsort(-np.abs(clear))[:_LOOKED_AT]:
                if abs(clear[place]) < _WORTH_A_TEST:
                    break
                rows = _rows_at(int(place), one, other, backwards=backwards)
                if rows is not None:
                    both = codings[0][i], codings[1][j]
                    found.append(_of_rows(one, other, both, rows))
    return min(min(found) * tried, 1.0)


def _runs(residual: FloatArray) -> bool:
    """Return whether neighbouring rows have alike noise, as where released labels order them."""
    together = float(residual[1:] @ residual[:-1]) / np.sqrt(max(len(residual) - 1, 1))
    return bool(abs(together) >= _WORTH_A_TEST)


def _along(one: FloatArray, other: FloatArray, *, backwards: bool) -> FloatArray:
    """Return how clearly residuals go together at each place, in standard errors.

    Places are those of :func:`scipy.signal.correlate`, or of ``convolve`` where one is reversed.
    """
    combined = convolve if backwards else correlate
    sums = combined(one, other, mode="full", method="fft")
    pairs = np.rint(convolve(np.ones(len(one)), np.ones(len(other)), mode="full", method="fft"))
    clear = np.where(pairs >= FEWEST_TOGETHER, sums / np.sqrt(np.maximum(pairs, 1)), 0.0)
    if not backwards:
        clear[len(other) - 1] = 0.0  # Answers in one row are compared by themselves.
    return np.asarray(clear)


def _rows_at(
    place: int, one: Line, other: Line, *, backwards: bool
) -> tuple[IndexArray, IndexArray] | None:
    """Return the rows of both that stand together at a place, of different people."""
    mine = np.arange(len(one.labels))
    others = place - mine if backwards else mine - place + len(other.labels) - 1
    inside = (others >= 0) & (others < len(other.labels))
    mine, others = mine[inside], others[inside]
    people, partners = one.whose[mine], other.whose[others]
    # Of two people who stand together twice one pair counts: their answers may be remembered.
    ends = np.stack([np.minimum(people, partners), np.maximum(people, partners)], axis=1)
    first = np.unique(ends, axis=0, return_index=True)[1]
    first = first[people[first] != partners[first]]
    return None if len(first) < FEWEST_TOGETHER else (mine[first], others[first])


def _of_rows(
    one: Line,
    other: Line,
    codings: tuple[BoolArray, BoolArray],
    rows: tuple[IndexArray, IndexArray],
) -> float:
    mine, others = rows
    labels = np.stack([one.labels[mine], other.labels[others]], axis=1)
    strata = one.strata[mine] * (int(other.strata.max(initial=0)) + 1) + other.strata[others]
    return paired_p_value(codings[0][mine], codings[1][others], kinds_of(labels, strata))


def kinds_of(parts: IntArray, strata: IndexArray) -> IndexArray:
    """Return codes 0, 1 … of the distinct rows of ``parts`` (n, d) within strata, int64 (n,)."""
    kind: IndexArray = np.unique(strata, return_inverse=True)[1].astype(np.int64)
    for column in parts.T:
        code = kind * (int(column.max(initial=0)) + 1) + column
        kind = np.unique(code, return_inverse=True)[1].astype(np.int64)
    return kind


def changed_by_noise(labels: IntArray, released: IntArray) -> BoolArray:
    """Return which answers are not the commonest one of their true label, bool of shape (n,)."""
    k, m = int(labels.max(initial=0)) + 1, int(released.max(initial=0)) + 1
    return np.asarray(label_table(labels, released, k, m).argmax(axis=1)[labels] != released)


def high_outputs(kind: IndexArray, outputs: IntArray) -> BoolArray:
    """Return which outputs are above the cut nearest to the median of their kind, bool (n,)."""
    sizes = np.bincount(kind)
    cut, start = np.zeros(len(sizes), dtype=np.int64), 0
    ordered = outputs[np.lexsort((outputs, kind))]
    for group, size in enumerate(sizes):
        values, start = ordered[start : start + size], start + size
        if size:
            middle = int(values[size // 2])
            below, above = (int(np.searchsorted(values, middle, side=s)) for s in ("left", "right"))
            cut[group] = middle + (abs(2 * below - size) > abs(2 * above - size))
    return np.asarray(outputs >= cut[kind])


def paired_p_value(first: BoolArray, second: BoolArray, alike: IndexArray) -> float:
    """Return the exact two-sided p-value of "independent among alike rows".

    Twice the smaller tail of the number of rows with both ones, over all groups of alike rows. And
    of each larger group by itself, so that neither a small group nor dependence of different signs
    is lost among the others; Bonferroni for both.

    References
    ----------
    Fisher (1935); Birch (1964), for the sum over several tables.
    """
    size = np.bincount(alike)
    ones, others = (np.bincount(alike, weights=x).astype(np.int64) for x in (first, second))
    both = np.bincount(alike, weights=first & second).astype(np.int64)
    varies = (ones > 0) & (ones < size) & (others > 0) & (others < size)
    if not varies.any():
        return 1.0
    at, law, alone = 0, np.ones(1), []
    for group in np.flatnonzero(varies):
        start, part = _hypergeometric(int(size[group]), int(ones[group]), int(others[group]))
        at, law = at + start, np.convolve(law, part)
        if size[group] >= FEWEST:
            alone.append(_two_sided(part, int(both[group]) - start))
    all_groups = _two_sided(law, int(both[varies].sum()) - at)
    if np.count_nonzero(varies) == 1 or not alone:
        return all_groups
    return min(2 * min(all_groups, len(alone) * min(alone)), 1.0)


def _two_sided(law: FloatArray, seen: int) -> float:
    place = np.arange(len(law))
    tails = law[place >= seen].sum(), law[place <= seen].sum()
    return float(min(2 * (min(tails) + 1e-13), 1.0))


def _hypergeometric(size: int, ones: int, drawn: int) -> tuple[int, FloatArray]:
    """Return P(count) around the mean, and the first count."""
    mean = ones * drawn / size
    spread = np.sqrt(mean * (size - ones) / size * (size - drawn) / max(size - 1, 1))
    # Farther from its mean a hypergeometric count is not followed: that has a mass below 1e-30.
    reach = 12.0 * spread + 40
    low = max(0, ones + drawn - size, int(mean - reach))
    high = min(ones, drawn, int(mean + reach) + 1)
    x = np.arange(low, high + 1)
    cells = ((ones, x), (size - ones, drawn - x), (size, np.asarray(drawn)))
    chosen, rest, whole = (gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1) for n, k in cells)
    return low, np.exp(chosen + rest - whole)


def agreement_share(
    agreeing: int, people: int, expected: float, alpha: float
) -> tuple[float, float, float]:
    """Return which share of answers was remembered, with a two-sided interval at level 1 − alpha.

    The share s at which agreement is s + (1 − s)·expected, where ``expected`` is the mean chance of
    it with fresh noise; exact for people with chances of their own (Hoeffding 1956).
    """
    low, high = (float(f(agreeing, people, alpha / 2)) for f in (trials_lower, trials_upper))
    shares = (agreeing / people, low, high)
    value, low, high = (min(max((a - expected) / (1 - expected), 0.0), 1.0) for a in shares)
    return value, low, high


def fresh_p_value(
    counts: IndexArray, one: FloatArray, two: FloatArray, *, same_label: bool = True
) -> float | None:
    """Return a p-value of independent noise, whatever the true labels are; None if too large.

    Of counts (m, m') of people by their two answers, and channels (k, m) and (k', m'): that a
    mixture exists; and of two answers about one label also that people agree no more often than
    fresh answers of any labels can: the smaller of the two, doubled.
    """
    mixed = mixture_p_value(counts, np.asarray(np.kron(one, two), np.float64))
    if not same_label:
        return mixed
    agreeing, people = int(np.trace(counts)), int(counts.sum())
    agreed = float(binom.sf(agreeing - 1, people, min(largest_agreement(one, two), 1.0)))
    smallest = agreed if mixed is None else 2 * min(agreed, mixed)
    return float(np.clip(smallest, SMALLEST_P_VALUE, 1.0))


def remembered_share_lower(
    agreeing: int, people: int, one: FloatArray, two: FloatArray, alpha: float
) -> float:
    """Return a lower bound of the share of answers that were given twice, at level 1 − alpha."""
    most = largest_agreement(one, two)
    low = float(trials_lower(agreeing, people, alpha))
    return max((low - most) / (1 - most), 0.0) if most < 1 else 0.0


def least_changed(counts: IndexArray, mixture: FloatArray, alpha: float) -> float | None:
    """Return the least share of people whose label must have changed, at level 1 − alpha.

    ``mixture``, of shape (k², m²), is that of either kind of noise. None where no mixture fits at
    all, or it is too large.
    """
    if mixture.size > LARGEST:
        return None
    k = round(len(mixture) ** 0.5)
    flat, n = counts.reshape(-1), int(counts.sum())
    tail = alpha / (2 * len(flat))
    found = linprog(
        1.0 - np.eye(k).reshape(-1),
        A_ub=np.concatenate([mixture.T, -mixture.T]),
        b_ub=np.concatenate([trials_upper(flat, n, tail), -trials_lower(flat, n, tail)]),
        A_eq=np.ones((1, k * k)),
        b_eq=[1.0],
        bounds=(0, 1),
        method="highs",
    )
    return max(float(found.fun or 0.0), 0.0) if found.status == 0 else None


def remembered_mixture(one: FloatArray, two: FloatArray) -> FloatArray:
    """Return the chances of pairs of answers given pairs of labels, (k², m²), if remembered."""
    k, m = one.shape
    mixture = np.kron(one, two).reshape(k, k, m, m)
    for label in range(k):
        mixture[label, label] = np.diag(one[label])
    return np.asarray(mixture.reshape(k * k, m * m))


def mixture_p_value(counts: IndexArray, mixture: FloatArray) -> float | None:
    """Return a p-value of counts from any mixture of the matrix's rows; None if too large."""
    return None if mixture.size > LARGEST else marginal_consistency(counts.reshape(-1), mixture)
