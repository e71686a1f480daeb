"""What happened to rows after the noise, and whether true labels are of these rows."""

# Rows selected by their released label: each column of the channel is scaled by one factor. Labels
# overwritten by a rule: the released label is fixed, whatever the true one is. Neither reveals
# anything of the true labels.

import math
from collections.abc import Iterable
from typing import Final

import numpy as np
from scipy.special import gammaln
from scipy.stats import binom, chi2, spearmanr

from ldpaudit.estimators.epsilon.bounds import CountTable, class_counts
from ldpaudit.estimators.epsilon.consistency import likelihood_ratio_p_value
from ldpaudit.numeric_labels import NumericLabels
from ldpaudit.release import FloatArray, IndexArray, IntArray, label_table

_SURE: Final = 1e-3
_FITS: Final = 0.01
# Standard deviations.
_FAR: Final = 4.0
# Rows of a group whose released labels are all the same, and of each kind of true label.
_FEWEST_ROWS, _FEWEST_TRUE = 8, 3


def is_selected(counts: CountTable, channel: FloatArray) -> bool:
    """Return whether rows were left out or repeated because of their released label.

    Counts by true and released label, (k, m), then fit the claimed channel with each column scaled
    by one factor, and not the channel itself. Odds ratios stay: a channel with other ones is never
    taken for a selection, but by chance.
    """
    present = class_counts(counts) > 0
    table, claim = np.asarray(counts, dtype=np.float64)[present], channel[present]
    sizes = table.sum(axis=1, keepdims=True)
    used = table.sum(axis=0) > 0
    k, m = len(table), int(used.sum())
    if k < 2 or m < 2 or (table[claim <= 0] > 0).any():
        return False
    scaled = claim[:, used] * _column_factors(claim[:, used], table[:, used])
    scaled *= sizes / np.maximum(scaled.sum(axis=1, keepdims=True), 1e-300)
    against_claim = _deviance(table, np.maximum(claim * sizes, 1e-300))
    against_scaled = _deviance(table[:, used], np.maximum(scaled, 1e-300))
    better = chi2.sf(against_claim - against_scaled, channel.shape[1] - 1)
    if better > _SURE or chi2.sf(against_scaled, (k - 1) * (m - 1)) < _FITS:
        return False
    # With many labels the entries are too few for that: all likeliest labels together are not.
    likeliest = claim[:, used] >= claim.max(axis=1, keepdims=True)
    expected = scaled[likeliest].sum()
    spread = math.sqrt((scaled * (1 - scaled / sizes))[likeliest].sum())
    return bool(abs(table[:, used][likeliest].sum() - expected) <= _FAR * spread + 1)


def times_selected(counts: CountTable, channel: FloatArray) -> float:
    """Return how often rows of the label repeated most stand there for one of that repeated least.

    1 where rows do not seem to be selected by their released label.
    """
    if not is_selected(counts, channel):
        return 1.0
    table = np.asarray(counts, dtype=np.float64)
    used = table.sum(axis=0) > 0
    factors = _column_factors(channel[:, used], table[:, used])
    return float(factors.max() / factors.min())


def _column_factors(claim: FloatArray, table: FloatArray) -> FloatArray:
    """Return a factor for each column by which the claim has the table's sums, float64 (m,).

    With one for each row besides: the likeliest scaling (Deming & Stephan).
    """
    rows, columns = table.sum(axis=1), table.sum(axis=0)
    factors = np.ones(len(columns))
    for _ in range(500):
        of_rows = rows / np.maximum(claim @ factors, 1e-300)
        factors = columns / np.maximum(of_rows @ claim, 1e-300)
    return np.asarray(factors)


def _deviance(table: FloatArray, expected: FloatArray) -> float:
    seen = table > 0
    return 2 * float(np.sum(table[seen] * np.log(table[seen] / expected[seen])))


def fixed_rows(groupings: Iterable[IndexArray], truth: IntArray, released: IntArray) -> IndexArray:
    """Return the rows whose released label is fixed by their group, whatever the true one is.

    All rows of a group have one released label, also those whose true label makes it least likely.
    By chance at most one release in a thousand has such a group, and where one is sure, those that
    chance makes once in a thousand join it. A group released in the clear is none: there the
    released label follows the true one.

    ``groupings``: codes, int64 (n,) each, made without a look at labels.
    """
    counts = label_table(truth, released, int(truth.max()) + 1, int(released.max()) + 1) + 0.5
    rates = counts / counts.sum(axis=1, keepdims=True)
    chances, groups = np.ones(len(truth)), 0
    for codes in groupings:
        chance, looked_at = _chance_fixed(codes, truth, released, rates)
        chances, groups = np.minimum(chances, chance), groups + looked_at
    if chances.min(initial=1.0) * groups > _SURE:
        return np.empty(0, dtype=np.int64)
    return np.flatnonzero(chances <= _SURE)


# A rule fixes so many labels of the rows that a model finds, at least.
_NEARLY_ALL: Final = 0.9


def fixed_by_model(
    foreseen: IndexArray, truth: IntArray, released: IntArray, channel: FloatArray
) -> IndexArray:
    """Return the rows whose released label a model foresees, also against the true one, int64.

    ``foreseen``, int64 (n,): the label that a model of other rows is surer of than the channel
    (k, m) allows, or −1. They are returned where the rows with a true label that makes it unlikely
    have it, too, which chance brings about once in a thousand.
    """
    found = list[IndexArray]()
    outputs = channel.shape[1]
    for output in range(outputs):
        rows = np.flatnonzero(foreseen == output)
        chance = channel[truth[rows], output]
        contrary = chance < channel[:, output].max()
        same = released[rows] == output
        tried, kept = int(contrary.sum()), int((same & contrary).sum())
        if tried < _FEWEST_TRUE or len(rows) < _FEWEST_ROWS or kept < _NEARLY_ALL * tried:
            continue
        if binom.sf(kept - 1, tried, chance[contrary].max()) * outputs <= _SURE:
            found.append(rows)
    return np.sort(np.concatenate(found)) if found else np.empty(0, dtype=np.int64)


def _chance_fixed(
    cells: IndexArray, truth: IntArray, released: IntArray, rates: FloatArray
) -> tuple[FloatArray, int]:
    """Return how likely chance gives each row's group one released label, and the groups tried."""
    size = int(cells.max()) + 1
    low, high = np.full(size, np.iinfo(np.int32).max), np.full(size, -1)
    np.minimum.at(low, cells, released)
    np.maximum.at(high, cells, released)
    contrary = truth != rates.argmax(axis=0)[released]
    logs = np.bincount(cells[contrary], np.log(rates[truth, released])[contrary], size)
    of_each = [np.bincount(cells[some], minlength=size) for some in (contrary, ~contrary)]
    tried = (np.add(*of_each) >= _FEWEST_ROWS) & (np.minimum(*of_each) >= _FEWEST_TRUE)
    chance = np.where(tried & (low == high), np.exp(logs), 1.0)
    return chance[cells], int(tried.sum())


_MOST_SHIFT: Final = 3
# By what factor another explanation must beat the claim: honest releases reach it once in 1e9.
_OVERWHELMING: Final = math.log(1e9)


def _shifted_table(
    truth: IntArray, released: IntArray, shift: int, size: tuple[int, int]
) -> IndexArray:
    """Return the counts (k, m) of true labels against labels released ``shift`` rows before."""
    # Beyond an end the true labels go on at the other one.
    start = shift % len(truth)
    stop = len(truth) - start
    first = label_table(truth[start:], released[:stop], *size)
    return first + label_table(truth[:start], released[stop:], *size)


# The p-value from which numbers are not taken to be those of other rows.
_TOGETHER: Final = 0.001


def numbers_go_together(numbers: NumericLabels | None) -> bool:
    """Return whether true numbers rise with released ones, whatever was done to these since.

    Numbers that were clipped or rounded after the noise do not fit the claimed channel. False where
    there are none.
    """
    if numbers is None or numbers.truth is None:
        return False
    rank = spearmanr(numbers.truth, numbers.released, alternative="greater")
    return bool(rank.pvalue <= _TOGETHER)


def truth_alignment(truth: IntArray, released: IntArray, channel: FloatArray) -> int | None:
    """Return by how many rows the true labels are shifted; 0 if not, None if they are of others.

    Row i of the release fits the true label of row i + shift. Every alternative is a likelihood
    ratio against the claimed channel, (k, m): under the claim it exceeds c at most once in c.
    """
    k, m = channel.shape
    shifts = [s for s in range(-_MOST_SHIFT, _MOST_SHIFT + 1) if s]
    tables = {s: _shifted_table(truth, released, s, (k, m)) for s in (0, *shifts)}
    logs = np.log(np.maximum(channel, 1e-9))
    fits = {s: float((table * logs).sum()) for s, table in tables.items()}
    best = max(shifts, key=lambda s: fits[s])
    blind = _fit_without_truth(tables[0].sum(axis=0))
    enough = _OVERWHELMING + math.log(len(shifts) + 1)
    if fits[best] > max(fits[0], blind) + enough:
        return best
    counts = tables[0]
    shares = np.tile(counts.sum(axis=0) / max(counts.sum(), 1), (k, 1))
    independent = likelihood_ratio_p_value(counts, shares) > 0.01
    return None if blind > fits[0] + enough and independent else 0


def _fit_without_truth(released: IndexArray) -> float:
    """Return the log-likelihood of labels drawn blindly, shares of Jeffreys' prior (KT)."""
    m = len(released)
    ends = gammaln(m / 2) - m * gammaln(0.5) - gammaln(released.sum() + m / 2)
    return float(ends + gammaln(released + 0.5).sum())
