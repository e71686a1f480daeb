"""Do synthetic rows repeat true ones: closest records, training or replaced rows, attacks."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
from scipy.stats import binom

from ldpaudit.doors import (
    FeatureTable,
    FloatArray,
    IndexArray,
    InputError,
    InsufficientDataError,
    clopper_pearson_lower,
)
from ldpaudit.extras.kinds.synthetic.paired_ratio import Pairs, ratio_interval
from ldpaudit.release import BoolArray, Float32Array


def closest(rows: Float32Array, records: Float32Array, k: int) -> tuple[Float32Array, IndexArray]:
    """Return squared distances to the k closest records and their indices, each of shape (m, k).

    Coordinates far from 0 are centred first: squares of large numbers would swallow differences.
    """
    import faiss

    centre = records.mean(axis=0, dtype=np.float64)
    asked, among = (np.ascontiguousarray(x - centre, dtype=np.float32) for x in (rows, records))
    distances, indices = faiss.knn(asked, among, k)
    return distances, indices


def exact_copies(rows: Float32Array, records: Float32Array) -> BoolArray:
    """Return which rows are exactly equal to some record; two missing values are equal."""
    return np.isin(row_keys(rows), row_keys(records))


def row_keys(matrix: npt.NDArray[np.float32]) -> npt.NDArray[np.void]:
    """Return one key for each row, equal where the rows are."""
    plain = np.where(np.isnan(matrix), np.float32(np.nan), matrix + np.float32(0.0))
    plain = np.ascontiguousarray(plain, dtype=np.float32)
    return plain.view(np.dtype((np.void, plain.itemsize * plain.shape[1])))[:, 0]


def _check_points(*blocks: Float32Array) -> None:
    if len({block.shape[1] for block in blocks}) > 1 or blocks[0].shape[1] == 0:
        raise InputError("Training, held-out and synthetic rows must have the same coordinates.")
    if not all(np.isfinite(block).all() for block in blocks):
        raise InputError("The coordinates must be finite; code missing values as numbers first.")


# The fewest pairs of records that are tested.
_MIN_PAIRS = 20
# The fewest pairs that are counted on their own: eight of eight are 0.4 % by chance.
_FEWEST_ONE_SIDED = 8


@dataclass(frozen=True)
class PairWins:
    """Pairs that prefer one of their records, and how many prefer the training one."""

    decisive: int
    wins: int

    @property
    def p_value(self) -> float:
        """P(as many wins or more) of fair coins; 1 without decisive pairs."""
        return float(binom.sf(self.wins - 1, self.decisive, 0.5))

    def share_lower(self, alpha: float) -> float:
        """Return the lower confidence bound at 1 − alpha of the chance of a win."""
        return float(clopper_pearson_lower(self.wins, self.decisive, alpha))


@dataclass(frozen=True)
class MemorisationCounts:
    """Pairs of one training and one held-out record, and which of the two synthetic rows prefer.

    ``pairs``: pairs of records. ``decisive``: those in which one record is the closest record of
    more synthetic rows than the other is. ``wins``: decisive pairs in which it is the training
    record. ``synthetic``: synthetic rows. ``nearest_training``: synthetic rows whose closest
    record, of all pairs, is a training record. For people: no test can be made of it.
    ``training_copies``, ``held_out_copies``: synthetic rows that are exactly equal to some training
    record, and to some held-out one. ``one_sided``: the tenth, hundredth, … of the pairs, at least
    8, with the smallest ratio of the two records' distances to their nearest synthetic rows, ties
    included: the nearer record is preferred.

    Notes
    -----
    Let the 2·pairs records be exchangeable (independent rows of one population, say), and let the
    synthetic rows depend on them only through the set of rows, not through which of them were
    trained on: the generator saw none of them. Given the rows in each pair and the synthetic rows,
    which row of a pair is the training one is a fair coin, independent between pairs. Which record
    a pair prefers is a function of what is given, and so is how one-sided a pair is. So
    ``wins`` ~ Binomial(decisive, ½) exactly in each of the counts, however the synthetic rows
    depend on one another; the counts share the error probability in equal parts.

    If the generator saw the training records but is ε-DP for the exchange of one of them, the coin
    of each pair has a chance of at most e^ε/(1 + e^ε) given everything else, and ``wins`` is at
    most such a binomial (Steinke et al. 2023, Theorem 5.2 with δ = 0).
    """

    pairs: int
    decisive: int
    wins: int
    synthetic: int
    nearest_training: int
    training_copies: int
    held_out_copies: int
    one_sided: tuple[PairWins, ...] = ()

    @property
    def families(self) -> tuple[PairWins, ...]:
        """All pairs, and the most one-sided ones."""
        return PairWins(self.decisive, self.wins), *self.one_sided

    @property
    def p_value(self) -> float:
        """The p-value of "no training record was seen", corrected for the number of counts."""
        return min(1.0, len(self.families) * min(family.p_value for family in self.families))

    def strongest(self, alpha: float) -> PairWins:
        """Return the count behind :meth:`share_lower`."""
        return max(self.families, key=lambda family: family.share_lower(alpha / len(self.families)))

    def share_lower(self, alpha: float) -> float:
        """Return the lower confidence bound at 1 − alpha of the chance of a win.

        The largest of the counts' bounds, each at its part of alpha, and so of the pairs that it
        counts. Above ½ it refutes that the generator saw none of the training records. It is exact
        for that hypothesis; as a size of the effect it is a bound for ε-DP generators (see
        :meth:`epsilon_lower`).
        """
        return self.strongest(alpha).share_lower(alpha / len(self.families))

    def epsilon_lower(self, alpha: float) -> float:
        """Return the certified lower bound, in nats, of the generator's own ε.

        ε here is that of the training: of exchanging one training row for another row. A lower
        bound at confidence 1 − alpha, at least 0.
        """
        share = self.share_lower(alpha)
        return max(0.0, math.log(share) - math.log1p(-share)) if 0 < share < 1 else 0.0


def count_memorisation(
    training: Float32Array,
    held_out: Float32Array,
    synthetic: Float32Array,
    rng: np.random.Generator,
) -> MemorisationCounts:
    """Pair training with held-out records and count which ones the synthetic rows are near.

    Parameters
    ----------
    training, held_out : float32 arrays of shape (n₁, d) and (n₀, d)
        Coordinates of records of one population; min(n₁, n₀) of each are used, chosen at random.
        The coordinates must not tell the two apart: a scale, say, must come from both together.
    synthetic : float32 array of shape (m, d)
        Coordinates of synthetic rows.
    rng : numpy.random.Generator
        Pairs the records at random and puts both members of a pair in random order, so that ties
        between equal records are broken fairly.

    Raises
    ------
    InputError
        If the widths differ, or a coordinate is not finite.
    InsufficientDataError
        If there are fewer than 20 pairs, or no synthetic row.
    """
    _check_points(training, held_out, synthetic)
    pairs = min(len(training), len(held_out))
    if pairs < _MIN_PAIRS or len(synthetic) == 0:
        raise InsufficientDataError(
            f"Memorisation needs at least {_MIN_PAIRS} training and held-out rows and one "
            "synthetic row."
        )
    members = np.stack(
        [
            training[rng.permutation(len(training))[:pairs]],
            held_out[rng.permutation(len(held_out))[:pairs]],
        ],
        axis=1,
    )
    first_trained = rng.random(pairs) < 0.5
    # The search sees the members of a pair in an order that says nothing about their set.
    members[~first_trained] = members[~first_trained, ::-1]
    records = members.reshape(2 * pairs, -1)
    nearest = closest(synthetic, records, 1)[1][:, 0]
    hits = np.bincount(nearest, minlength=2 * pairs).reshape(pairs, 2)
    # Exactly 0 for copies.
    own = synthetic[closest(records, synthetic, 1)[1][:, 0]]
    near = np.square(records.astype(np.float64) - own).sum(axis=1).reshape(pairs, 2)
    decisive = hits[:, 0] != hits[:, 1]
    prefers_first = hits[:, 0] > hits[:, 1]
    of_training = np.where(first_trained, hits[:, 0], hits[:, 1])
    return MemorisationCounts(
        pairs=pairs,
        decisive=int(decisive.sum()),
        wins=int((prefers_first == first_trained)[decisive].sum()),
        synthetic=len(synthetic),
        nearest_training=int(of_training.sum()),
        training_copies=int(exact_copies(synthetic, training).sum()),
        held_out_copies=int(exact_copies(synthetic, held_out).sum()),
        one_sided=tuple(_one_sided(near, first_trained, size) for size in _sizes(pairs)),
    )


def _sizes(pairs: int) -> list[int]:
    sizes, size = [max(pairs // 10, _FEWEST_ONE_SIDED)], pairs // 100
    while size >= _FEWEST_ONE_SIDED:
        sizes.append(size)
        size //= 10
    return sizes


def _one_sided(near: FloatArray, first_trained: BoolArray, size: int) -> PairWins:
    """Count so many pairs, those with the smallest ratio of distances, and their ties."""
    ratio = near.min(axis=1) / np.maximum(near.max(axis=1), np.finfo(np.float64).tiny)
    ratio[near[:, 0] == near[:, 1]] = np.inf
    chosen = np.isfinite(ratio) & (ratio <= np.partition(ratio, size - 1)[size - 1])
    wins = (near[:, 0] < near[:, 1]) == first_trained
    return PairWins(int(chosen.sum()), int(wins[chosen].sum()))


_KeyArray = npt.NDArray[np.uint64]


def count_own_rows(
    replaced: Float32Array,
    synthetic: Float32Array,
    rng: np.random.Generator,
    keys: tuple[_KeyArray, _KeyArray] | None = None,
) -> PairWins:
    """Count the pairs of rows whose synthetic rows are nearer to their own true rows than swapped.

    Parameters
    ----------
    replaced, synthetic : float32 arrays of shape (m, d)
        Coordinates of the true rows that were replaced, and of what stands in for each.
    rng : numpy.random.Generator
        Pairs the rows at random.
    keys : tuple of two uint64 arrays of shape (m,), or None
        Equal where a true and a synthetic row are: needed where a row counts as replaced because
        the two differ. None: it is known otherwise which rows were replaced.

    Raises
    ------
    InputError
        If the shapes differ or a coordinate is not finite.
    InsufficientDataError
        If there are fewer than 20 pairs.

    Returns
    -------
    PairWins
        Decisive: pairs in which the synthetic rows are nearer to the true rows in one order than in
        the other. Wins: decisive pairs in which that order is the released one.

    Notes
    -----
    Where each synthetic row is drawn independently of the row that it replaces, from one and the
    same law, exchanging the synthetic rows of a pair changes no probability. So given the rows of
    each pair without their order, wins ~ Binomial(decisive, ½) exactly.

    Where only rows unlike their own true row were taken for synthetic ones, that holds of the pairs
    whose rows would be taken for synthetic ones after the exchange too. The others could have had
    one order only, and do not count.
    """
    _check_points(replaced, synthetic)
    if len(replaced) != len(synthetic):
        raise InputError("Every replaced row must have one synthetic row.")
    if len(replaced) < 2 * _MIN_PAIRS:
        raise InsufficientDataError(f"At least {2 * _MIN_PAIRS} rows must have been replaced.")
    order = rng.permutation(len(replaced))[: len(replaced) // 2 * 2].reshape(2, -1)
    x = replaced[order].astype(np.float64)
    s = synthetic[order].astype(np.float64)
    # ‖s₀−x₀‖² + ‖s₁−x₁‖² < ‖s₀−x₁‖² + ‖s₁−x₀‖²  ⟺  (s₀ − s₁)·(x₀ − x₁) > 0
    gain = np.einsum("ij,ij->i", s[0] - s[1], x[0] - x[1])
    if keys is not None:
        true, drawn = keys[0][order], keys[1][order]
        gain = gain[(true[0] != drawn[1]) & (true[1] != drawn[0])]
    return PairWins(int((gain != 0).sum()), int((gain > 0).sum()))


# Singling out and linkability, after Giomi et al. (2023), "A unified framework for quantifying
# privacy risk in synthetic data" (anonymeter), with people in pairs, so that the interval of the
# risk is exact where the synthetic rows were made without the audited people.

_BINS: Final = 20  # of a number in a predicate
_MORE_COLUMNS: Final = 2  # in a predicate, beyond those that single out the synthetic row
_ORDERS: Final = 10  # in which predicates take the columns
_MOST_COLUMNS: Final = 30  # in a predicate


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

        1 − risk is the ratio of the shares on which the attack fails: an exact score interval for
        independent pairs (:mod:`ldpaudit.extras.kinds.synthetic.paired_ratio`). An end is beyond 0
        only where the exact test of the notes says so, too, at alpha/2.
        """
        neither = self.pairs - self.both - self.audited - self.held_out
        ends = ratio_interval(Pairs(self.held_out, self.audited, neither), alpha)
        low, high = (float(np.clip(1 - end, -1.0, 1.0)) for end in ends[::-1])
        one = self.audited + self.held_out
        if binom.sf(self.audited - 1, one, 0.5) > alpha / 2:
            low = min(low, 0.0)
        if binom.cdf(self.audited, one, 0.5) > alpha / 2:
            high = max(high, 0.0)
        return low, high


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
