"""Which rows with equal features to match: where the mechanism's model finds a label improbable.

Model-based randomized response keeps a label with probability 1 − λ and else draws it from
P̂(y | x). Among cases (rows of the target label) the target is released with probability
1 − λ + λp̄, among controls with λp̄, p̄ being the average of P̂(target | x): the smaller p̄, the
larger the ε that the two rates show, but the fewer cases. Groups are chosen for the largest bound
that is to be expected. The choice uses features and true labels alone, so whatever it rests on, a
bound from the chosen rows is valid without correction.
"""

import math
from typing import Final

import numpy as np

from ldpaudit.estimators.epsilon.matched.rows import RATIOS, Matching, match_targets, possible_cases
from ldpaudit.release import FloatArray, IndexArray, IntArray

_QUANTILE: Final = 2.2
"""Normal deviations that each of the two rates loses to its confidence bound, about."""
_FEWEST_HITS: Final = 5.0
_FEWEST_CASES: Final = 20


def designed_matching(
    groups: IndexArray,
    labels: IntArray,
    scores: FloatArray,
    noise: float,
    rng: np.random.Generator,
) -> Matching | None:
    """Match rows with equal features where the target label is improbable.

    Parameters
    ----------
    groups, labels, rng
        As for :func:`ldpaudit.estimators.epsilon.matched.rows.match`.
    scores : float64 array of shape (g, k)
        What P̂(y | x) of each group is thought to be; not computed from released labels.
    noise : float
        The claimed λ in (0, 1].

    Returns
    -------
    Matching or None
        None where no choice has at least 20 cases and 5 expected hits.
    """
    best: tuple[float, int, IndexArray, IndexArray, IndexArray] | None = None
    for ratio in RATIOS:
        group, label, able = _least_probable(groups, labels, scores, ratio)
        if not len(group):
            continue
        chance = scores[group, label]
        cases = np.cumsum(able)
        value = _expected(cases, np.cumsum(able * chance) / cases, ratio, noise)
        end = int(value.argmax())
        if value[end] > -math.inf and (best is None or value[end] > best[0]):
            chosen = slice(0, end + 1)
            best = (float(value[end]), ratio, group[chosen], label[chosen], able[chosen])
    if best is None:
        return None
    _, ratio, group, label, able = best
    targets, wanted = np.full(len(scores), -1, np.int32), np.zeros(len(scores), np.int64)
    targets[group], wanted[group] = label, able
    return match_targets(groups, labels, targets, wanted, ratio, rng)


def _least_probable(
    groups: IndexArray, labels: IntArray, scores: FloatArray, ratio: int
) -> tuple[IndexArray, IndexArray, IndexArray]:
    """Return each group's least probable label that has cases, the least probable first."""
    group, label, able = possible_cases(groups, labels, scores.shape[1], ratio)
    useful = able > 0
    group, label, able = group[useful], label[useful], able[useful]
    order = np.argsort(scores[group, label], kind="stable")
    _, first = np.unique(group[order], return_index=True)
    chosen = order[np.sort(first)]
    return group[chosen], label[chosen], able[chosen]


def _expected(cases: IndexArray, chance: FloatArray, ratio: int, noise: float) -> FloatArray:
    """Return about the two-sided bound to be expected; −∞ where counts would be too small."""
    hit, false = 1 - noise + noise * chance, noise * chance
    controls = ratio * cases
    with np.errstate(divide="ignore", invalid="ignore"):
        spread = np.sqrt((1 - hit) / (hit * cases)) + np.sqrt((1 - false) / (false * controls))
        value = np.log(hit / false) - _QUANTILE * spread
    enough = (cases >= _FEWEST_CASES) & (false * controls >= _FEWEST_HITS)
    return np.where(enough, value, -math.inf)
