"""Memorisation: are synthetic rows nearer to a generator's training rows than to others?

Synthetic rows are not independent given the two sets of records: a hundred of them may sit at one
record, so counting them as a hundred coin flips accuses generators that never saw a record. Here
each *record* has one say, and what is random is which of two exchangeable records was trained on.
"""

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.stats import binom

from ldpaudit.errors import InputError, InsufficientDataError
from ldpaudit.estimators.binomial import clopper_pearson_lower
from ldpaudit.release import BoolArray, Float32Array, IndexArray

MIN_PAIRS = 20
"""With fewer pairs of records nothing is said."""
_QUERIES_AT_ONCE = 8192


@dataclass(frozen=True)
class MemorisationCounts:
    """Pairs of one training and one held-out record, and which of the two synthetic rows prefer.

    Attributes
    ----------
    pairs : int
        Pairs of records.
    decisive : int
        Those in which one record is the closest record of more synthetic rows than the other is.
    wins : int
        Those of them in which it is the training record.
    synthetic : int
        Synthetic rows.
    nearest_training : int
        Synthetic rows whose closest record, of all pairs, is a training record. For people: no
        test can be made of it.
    training_copies, held_out_copies : int
        Synthetic rows that are exactly equal to some training record, and to some held-out one.

    Notes
    -----
    Let the 2·pairs records be exchangeable (independent rows of one population, say), and let the
    synthetic rows depend on them only through the set of rows, not through which of them were
    trained on: the generator saw none of them. Given the rows in each pair and the synthetic rows,
    which row of a pair is the training one is a fair coin, independent between pairs. Which record
    a pair prefers is a function of what is given. So ``wins`` ~ Binomial(decisive, ½) exactly,
    however the synthetic rows depend on one another.

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

    @property
    def p_value(self) -> float:
        """P(as many wins or more) where no training record was seen; 1 without decisive pairs."""
        return float(binom.sf(self.wins - 1, self.decisive, 0.5))

    def share_lower(self, alpha: float) -> float:
        """Return the lower confidence bound at 1 − alpha of the chance of a win.

        Above ½ it refutes that the generator saw none of the training records. It is exact for
        that hypothesis; as a size of the effect it is a bound for ε-DP generators (see
        :meth:`epsilon_lower`).
        """
        return float(clopper_pearson_lower(self.wins, self.decisive, alpha))

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
    check_points(training, held_out, synthetic)
    pairs = min(len(training), len(held_out))
    if pairs < MIN_PAIRS or len(synthetic) == 0:
        raise InsufficientDataError(
            f"Memorisation needs at least {MIN_PAIRS} training and held-out rows and one synthetic "
            f"row."
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
    hits = np.bincount(
        closest_records(synthetic, members.reshape(2 * pairs, -1)), minlength=2 * pairs
    ).reshape(pairs, 2)
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
    )


def closest_records(rows: Float32Array, records: Float32Array) -> IndexArray:
    """Return the index of each row's closest record in Euclidean distance, int64 of shape (m,)."""
    return closest(rows, records, 1)[1][:, 0]


def closest(rows: Float32Array, records: Float32Array, k: int) -> tuple[Float32Array, IndexArray]:
    """Return squared distances to the k closest records and their indices, each of shape (m, k)."""
    import faiss

    index = faiss.IndexFlatL2(records.shape[1])
    index.add(np.ascontiguousarray(records, dtype=np.float32))
    parts = [
        index.search(np.ascontiguousarray(rows[start : start + _QUERIES_AT_ONCE], np.float32), k)
        for start in range(0, len(rows), _QUERIES_AT_ONCE)
    ]
    distances, found = zip(*parts, strict=True)
    return np.concatenate(distances), np.concatenate(found)


def exact_copies(rows: Float32Array, records: Float32Array) -> BoolArray:
    """Return which rows are exactly equal to some record; two missing values are equal."""
    return np.isin(row_keys(rows), row_keys(records))


def row_keys(matrix: npt.NDArray[np.float32]) -> npt.NDArray[np.void]:
    """Return one key for each row, equal where the rows are."""
    plain = np.where(np.isnan(matrix), np.float32(np.nan), matrix + np.float32(0.0))
    plain = np.ascontiguousarray(plain, dtype=np.float32)
    return plain.view(np.dtype((np.void, plain.itemsize * plain.shape[1])))[:, 0]


def check_points(*blocks: Float32Array) -> None:
    """Raise InputError unless the blocks have the same coordinates, all finite."""
    if len({block.shape[1] for block in blocks}) > 1 or blocks[0].shape[1] == 0:
        raise InputError("Training, held-out and synthetic rows must have the same coordinates.")
    if not all(np.isfinite(block).all() for block in blocks):
        raise InputError("The coordinates must be finite; code missing values as numbers first.")
