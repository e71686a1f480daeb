"""Which pairs and triples of columns say together what none of them says alone.

A column of few values has an effect of its own that linear models and trees find. A combination is
worth a number of its own where the labels depend on it beyond the effects of its parts.
"""

from itertools import combinations

import numpy as np

from ldpaudit.modelling.values import column_codes
from ldpaudit.release import FeatureTable, FloatArray, IndexArray, IntArray

_MOST_ROWS = 6_000
_FEWEST_ROWS = 500
_MOST_VALUES = 200
_PAIRED = 16
_TRIPLED = 8
_MOST_CHOSEN = 3
_PULL = 4.0
_SURE = 4.0

Gains = dict[tuple[int, ...], FloatArray]
"""By combination of columns, what each row gains, in nats."""


def chosen_combinations(
    features: FeatureTable, codes: IntArray, apart: list[int], rng: np.random.Generator
) -> list[tuple[int, ...]]:
    """Return the pairs and triples of columns with the largest gains beyond their parts'.

    Parameters
    ----------
    features : FeatureTable
        n rows; of more than 6,000 a random sample is looked at.
    codes : int32 array of shape (n,)
        Labels, true or released.
    apart : list of int
        Columns that are not combined.
    rng : numpy.random.Generator
        Draws the rows and their halves.

    Notes
    -----
    The gain of a combination is the log-loss, in nats a row, by which the frequencies of labels
    among the rows of one half that agree on it predict the other half better than the class
    frequencies do. Effects that add up gain no more together than apart; a combination is chosen
    where it gains more by four standard errors.
    """
    n = len(codes)
    rows = np.sort(rng.permutation(n)[:_MOST_ROWS])
    width = features.width
    if n < _FEWEST_ROWS or width < 2:
        return []
    columns = _few_valued(features.take(rows), apart)
    scores = _Scores(columns, codes[rows], rng.permutation(len(rows)) % 2)
    single = {j: scores.gains((j,)) for j in list(columns)[:_PAIRED]}
    pair = {e: scores.gains(e) for e in combinations(single, 2)}
    strong = sorted(single, key=lambda j: -_reach(j, single, pair))[:_TRIPLED]
    beyond: Gains = {(a, b): gain - single[a] - single[b] for (a, b), gain in pair.items()}
    for a, b, c in combinations(sorted(strong), 3):
        split = [pair[a, b] + single[c], pair[a, c] + single[b], pair[b, c] + single[a]]
        beyond[a, b, c] = scores.gains((a, b, c)) - max(split, key=lambda g: float(g.mean()))
    chosen: list[tuple[int, ...]] = []
    for effect in sorted(beyond, key=lambda e: -float(beyond[e].mean())):
        # What two of its columns say is known from a combination that was chosen before.
        known = any(len(set(effect) & set(other)) > 1 for other in chosen)
        if not known and _is_sure(beyond[effect]):
            chosen.append(effect)
    return chosen[:_MOST_CHOSEN]


class _Scores:
    """Gains of combinations of columns on the rows of two halves, each predicted by the other."""

    def __init__(self, columns: dict[int, IndexArray], codes: IntArray, half: IndexArray) -> None:
        self.columns, self.codes, self.half = columns, codes, half
        self.outputs = int(codes.max()) + 1
        self.base = [self._table(np.zeros(len(codes), np.int64), 1, h)[0] for h in (0, 1)]

    def gains(self, effect: tuple[int, ...]) -> FloatArray:
        """Return the gain of each row in nats, float64 of shape (n,)."""
        key = np.zeros(len(self.codes), dtype=np.int64)
        for j in effect:
            key = key * (int(self.columns[j].max()) + 1) + self.columns[j]
        cells, members = np.unique(key, return_inverse=True)
        gains = np.empty(len(self.codes))
        for h in (0, 1):
            base = self.base[h] / self.base[h].sum()
            counts = self._table(members, len(cells), h)
            share = (counts + _PULL * base) / (counts.sum(axis=1, keepdims=True) + _PULL)
            asked = np.flatnonzero(self.half != h)
            mine = self.codes[asked]
            gains[asked] = np.log((share[members[asked], mine] + 1e-9) / (base[mine] + 1e-9))
        return gains

    def _table(self, members: IndexArray, cells: int, half: int) -> FloatArray:
        rows = np.flatnonzero(self.half == half)
        flat = members[rows] * self.outputs + self.codes[rows]
        table = np.bincount(flat, minlength=cells * self.outputs)
        return table.reshape(cells, self.outputs).astype(np.float64)


def _few_valued(features: FeatureTable, apart: list[int]) -> dict[int, IndexArray]:
    coded = {j: column_codes(features, j) for j in range(features.width) if j not in apart}
    return {j: codes for j, codes in coded.items() if 1 <= codes.max(initial=0) < _MOST_VALUES}


def _reach(
    column: int,
    single: dict[int, FloatArray],
    pair: dict[tuple[int, int], FloatArray],
) -> float:
    alone = float(single[column].mean())
    return alone + max((float(g.mean()) for e, g in pair.items() if column in e), default=0.0)


def _is_sure(gains: FloatArray) -> bool:
    error = float(gains.std()) / np.sqrt(len(gains))
    return bool(gains.mean() > _SURE * error and gains.mean() > 0)
