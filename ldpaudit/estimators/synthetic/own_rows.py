"""Own rows: does a synthetic row depend on the very row that it replaces?"""

import numpy as np
import numpy.typing as npt

from ldpaudit.errors import InputError, InsufficientDataError
from ldpaudit.estimators.neighbors.closest_records import check_points
from ldpaudit.estimators.synthetic.memorisation import MIN_PAIRS, PairWins
from ldpaudit.release import Float32Array

KeyArray = npt.NDArray[np.uint64]


def count_own_rows(
    replaced: Float32Array,
    synthetic: Float32Array,
    rng: np.random.Generator,
    keys: tuple[KeyArray, KeyArray] | None = None,
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
    check_points(replaced, synthetic)
    if len(replaced) != len(synthetic):
        raise InputError("Every replaced row must have one synthetic row.")
    if len(replaced) < 2 * MIN_PAIRS:
        raise InsufficientDataError(f"At least {2 * MIN_PAIRS} rows must have been replaced.")
    order = rng.permutation(len(replaced))[: len(replaced) // 2 * 2].reshape(2, -1)
    x = replaced[order].astype(np.float64)
    s = synthetic[order].astype(np.float64)
    # ‖s₀−x₀‖² + ‖s₁−x₁‖² < ‖s₀−x₁‖² + ‖s₁−x₀‖²  ⟺  (s₀ − s₁)·(x₀ − x₁) > 0
    gain = np.einsum("ij,ij->i", s[0] - s[1], x[0] - x[1])
    if keys is not None:
        true, drawn = keys[0][order], keys[1][order]
        gain = gain[(true[0] != drawn[1]) & (true[1] != drawn[0])]
    return PairWins(int((gain != 0).sum()), int((gain > 0).sum()))
