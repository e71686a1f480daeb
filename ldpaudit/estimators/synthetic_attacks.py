"""Attacks on a synthetic table: singling out and linkability, against held-out people."""

# After Giomi et al. (2023), "A unified framework for quantifying privacy risk in synthetic data"
# (anonymeter), with people in pairs, so that the interval of the risk is exact where the synthetic
# rows were made without the audited people.

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from ldpaudit.estimators.intervals.binomial import clopper_pearson
from ldpaudit.estimators.synthetic import closest
from ldpaudit.release import BoolArray, FeatureTable, Float32Array, IndexArray

_BINS: Final = 20
"""Of a number in a predicate."""
_MORE_COLUMNS: Final = 2
"""In a predicate, beyond those that single out the synthetic row."""


_ORDERS: Final = 10
"""In which predicates take the columns."""
_MOST_COLUMNS: Final = 30
"""In a predicate."""


@dataclass(frozen=True)
class PairedSuccesses:
    """An attack on pairs of an audited and a held-out person.

    ``pairs``, ``both``, ``audited``, ``held_out``: pairs; those in which it succeeds on both
    people, on the audited one alone, and on the held-out one alone.

    Notes
    -----
    Let the people be exchangeable, let the synthetic rows not depend on which of a pair was
    audited, and let whether the attack succeeds on a person depend on the set of all people only.
    Then, given the pairs in which it succeeds on one of the two, each is the audited one with
    probability ½, independently: ``audited`` ~ Binomial(audited + held_out, ½) exactly.
    """

    pairs: int
    both: int
    audited: int
    held_out: int

    @property
    def counts(self) -> tuple[int, int]:
        """On how many of the audited and of the held-out people it succeeds."""
        return self.both + self.audited, self.both + self.held_out

    @property
    def value(self) -> float:
        """The risk (a − c)/(1 − c), a and c the success rates on audited and held-out people."""
        audited, held_out = (count / self.pairs for count in self.counts)
        return (audited - held_out) / (1 - held_out) if held_out < 1 else 0.0

    def interval(self, alpha: float) -> tuple[float, float]:
        """Return a two-sided confidence interval of the risk at 1 − alpha.

        Clopper–Pearson, each at a third of alpha, for three shares: of pairs with one success those
        where it is the audited person, θ; of all pairs those with one success, r, and with two, b.
        With them the risk is (2θ − 1)r/(1 − b − (1 − θ)r): it grows with θ, and away from 0 with r
        and b. So it is above 0 only if θ is above ½.
        """
        one = self.audited + self.held_out
        counts, totals = (self.audited, one, self.both), (one, self.pairs, self.pairs)
        share, single, both = (
            tuple(map(float, clopper_pearson(count, total, alpha / 3)))
            for count, total in zip(counts, totals, strict=True)
        )
        ends = []
        for end, theta in enumerate(share):
            far = end if theta >= 0.5 else 1 - end
            control = min(both[far] + (1 - theta) * single[far], 1.0)
            gain = (2 * theta - 1) * single[far]
            ends.append(float(np.clip(gain / max(1 - control, 1e-12), -1.0, 1.0)))
        return ends[0], ends[1]


def paired(success: BoolArray) -> PairedSuccesses:
    """Count successes of shape (pairs, 2), audited people first."""
    first, second = success.T
    both = int((first & second).sum())
    return PairedSuccesses(len(first), both, int(first.sum()) - both, int(second.sum()) - both)


def codes_of(people: FeatureTable, synthetic: FeatureTable) -> tuple[IndexArray, IndexArray]:
    """Return what predicates look at, int64 (n, d) and (m, d): categories, and bins of numbers.

    The bins hold equally many synthetic values; a number where one ends is a bin of its own.
    """
    tables: tuple[list[IndexArray], list[IndexArray]] = [], []
    for j, column in enumerate(synthetic.numeric.T):
        known = column[~np.isnan(column)]
        if len(known):
            ends = np.unique(np.quantile(known, np.linspace(0, 1, _BINS + 1)[1:-1]))
            for codes, table in zip(tables, (people, synthetic), strict=True):
                cells = table.numeric[:, j]
                codes.append(np.searchsorted(ends, cells) + np.searchsorted(ends, cells, "right"))
    first, second = (
        np.column_stack([*codes, table.categorical]).astype(np.int64)
        for codes, table in zip(tables, (people, synthetic), strict=True)
    )
    return first, second


def singled_out(people: IndexArray, guesses: IndexArray, rng: np.random.Generator) -> BoolArray:
    """Return which people are singled out by a predicate on columns, bool (n,).

    Each of the rows ``guesses`` gives one predicate: its values in random columns, two more than
    single it out among these rows. It singles out a person if nobody else fits it. Both are codes
    of shape (·, d).
    """
    found, both = np.zeros(len(people), dtype=bool), np.concatenate([guesses, people])
    for part in np.array_split(rng.permutation(len(guesses)), _ORDERS):
        key = np.zeros(len(both), dtype=np.int64)
        further = np.full(len(guesses), -1)
        further[part] = _MORE_COLUMNS + 1
        order = rng.permutation(guesses.shape[1])[:_MOST_COLUMNS]
        for column in order:
            code = np.unique(both[:, column], return_inverse=True)[1]
            key = np.unique(key * (int(code.max()) + 1) + code, return_inverse=True)[1]
            mine, theirs = np.split(key, [len(guesses)])
            sizes = [np.bincount(keys, minlength=len(both)) for keys in (mine, theirs)]
            alone = sizes[0][mine] == 1
            further[alone] -= 1
            asked = alone & ((further == 0) | ((further > 0) & (column == order[-1])))
            found |= np.isin(theirs, mine[asked]) & (sizes[1][theirs] == 1)
            if not (further > 0).any():
                break
    return found


def linked(halves: Sequence[tuple[Float32Array, Float32Array]]) -> BoolArray:
    """Return whose two halves of columns have the same closest synthetic row, bool (n,).

    ``halves``: of each half the coordinates of people, float32 (n, d), and of synthetic rows.
    """
    one, other = (closest(people, made, 1)[1][:, 0] for people, made in halves)
    return np.asarray(one == other)
