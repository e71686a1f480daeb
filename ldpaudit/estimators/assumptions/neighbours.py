"""What the noise of one row reveals about another's label, where they share it."""

import numpy as np

from ldpaudit.arrays import stable_order
from ldpaudit.estimators.epsilon.guesses import GuessCounts
from ldpaudit.release import IndexArray, IntArray


def neighbour_guesses(
    truth: IntArray,
    released: IntArray,
    first: IndexArray,
    second: IndexArray,
    rng: np.random.Generator,
) -> GuessCounts:
    """Guess labels from what was released of them and from the noise of a neighbour.

    Who knows the neighbour's true label sees whether noise changed it. If noise is shared the same
    happened here: a label that was kept is the true one, a label that was changed is not.

    Parameters
    ----------
    truth, released : int32 arrays of shape (n,)
        Codes of the same labels.
    first, second : int64 arrays of shape (p,)
        Disjoint pairs; noise is independent from pair to pair.

    Returns
    -------
    GuessCounts
        Candidates are pairs of pairs whose neighbours have the same true label and whose own
        labels differ. A fair coin picks one of the two, so that given everything else its label is
        one of two equally likely ones.
    """
    own, beside = truth[first], truth[second]
    order = rng.permutation(len(first))
    order = order[stable_order(beside[order])]
    edges = np.flatnonzero(np.diff(beside[order])) + 1
    chosen, decoys = [], []
    for alike in np.split(order, edges):
        places = alike[np.argsort(own[alike], kind="stable")]
        half = len(places) // 2
        one, other = places[:half], places[len(places) - half :]
        differ = own[one] != own[other]
        one, other = one[differ], other[differ]
        coin = rng.random(len(one)) < 0.5
        chosen.append(np.where(coin, one, other))
        decoys.append(own[np.where(coin, other, one)])
    rows, decoy = np.concatenate(chosen), np.concatenate(decoys)
    changed = released[second[rows]] != beside[rows]
    label, seen = own[rows], released[first[rows]]
    says_label = np.where(changed, seen == decoy, seen == label)
    says_decoy = np.where(changed, seen == label, seen == decoy)
    return GuessCounts(len(rows), int(says_label.sum()), int(says_decoy.sum()))
