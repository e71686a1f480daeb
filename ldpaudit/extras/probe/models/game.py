"""An audit in one run as a game: coins choose labels, and a model's scores guess the coins."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from ldpaudit.doors import FloatArray, IndexArray, InputError, Plan
from ldpaudit.models.trees import fit_boosting
from ldpaudit.plugins import where
from ldpaudit.release import BoolArray

Fit = Callable[[Any, Any], Any]
"""A whole training procedure: ``fit(X, y)`` returns a model with ``predict_proba``."""
_LEAST: Final = 1e-6
"""Of a probability, before its logarithm is taken."""


@dataclass(frozen=True, eq=False)
class Coins:
    """Candidates, people or groups of rows, of which a coin has chosen the labels.

    ``rows`` (r,) are the rows that coins decide, ``unit`` (r,) the candidate of each, numbered
    from 0; ``either`` (r, 2) the codes of a row's true label and of another one; ``coin`` (m,)
    whether the rows of each candidate got the other.
    """

    rows: IndexArray
    unit: IndexArray
    either: IndexArray
    coin: BoolArray

    @classmethod
    def flipped(
        cls, codes: IndexArray, unit: IndexArray, share: float, rng: np.random.Generator
    ) -> "Coins":
        """Draw the candidates, the other label of each of their rows, and the coins."""
        # The other label is that of a random row with another label: as frequent labels are.
        units = int(unit.max()) + 1
        chosen = rng.permutation(units)[: max(round(share * units), 1)]
        place = np.full(units, -1)
        place[chosen] = np.arange(len(chosen))
        rows = np.flatnonzero(place[unit] >= 0)
        either = _either(codes, rows, rng)
        return cls(rows, place[unit[rows]], either, rng.random(len(chosen)) < 0.5)

    @classmethod
    def of_one(cls, codes: IndexArray, rows: IndexArray, rng: np.random.Generator) -> "Coins":
        """Return the coin of one person, whose rows these are, not yet fallen."""
        return cls(rows, np.zeros(len(rows), int), _either(codes, rows, rng), np.zeros(1, bool))

    def fallen(self, *coin: bool) -> "Coins":
        """Return the same candidates with other coins."""
        return replace(self, coin=np.array(coin, dtype=bool))

    def labels(self, codes: IndexArray) -> IndexArray:
        """Return the labels that the procedure is given."""
        given = codes.copy()
        given[self.rows] = np.where(self.coin[self.unit], *self.either.T[::-1])
        return given


def _either(codes: IndexArray, rows: IndexArray, rng: np.random.Generator) -> IndexArray:
    """Return the true label of each row and that of a random row with another one, (r, 2)."""
    true, counts = codes[rows], np.bincount(codes).astype(np.float64)
    shares = np.tile(counts, (len(counts), 1))
    np.fill_diagonal(shares, 0.0)
    cumulative = np.cumsum(shares / shares.sum(axis=1, keepdims=True), axis=1)
    other = (rng.random((len(rows), 1)) > cumulative[true][:, :-1]).sum(axis=1)
    return np.asarray(np.c_[true, other])


def probabilities(fit: Fit, features: Any, labels: Any, classes: np.ndarray) -> FloatArray:
    """Fit a model and return its probabilities, float64 of shape (n, k), of the classes.

    Raises
    ------
    InputError
        If the procedure raises, or its model gives no probabilities of these rows.
    """
    try:
        model = fit(features, labels)
        found = np.asarray(model.predict_proba(features), dtype=np.float64)
        known = np.asarray(getattr(model, "classes_", classes))
    except Exception as error:
        raise InputError(
            "fit(X, y) must return a model whose predict_proba(X) gives probabilities; "
            f"it raised {where(error)}."
        ) from None
    if not np.isin(known, classes).all():
        raise InputError("The model's classes_ must be labels of y; it has others.")
    if found.shape != (len(labels), len(known)):
        raise InputError(
            f"predict_proba(X) must give one row for each of the {len(labels):,} rows and one "
            f"column for each class. Got an array of shape {found.shape}."
        )
    if not (np.isfinite(found).all() and (found >= 0).all()):
        raise InputError("predict_proba(X) must give finite probabilities, none of them negative.")
    every = np.zeros((len(labels), len(classes)))
    every[:, np.searchsorted(classes, known)] = found
    return every


def scores(coins: Coins, found: FloatArray, features: FloatArray | None) -> tuple[str, FloatArray]:
    """Return a method and how strongly by it the model says that candidates got other labels."""
    # ``likelihood``: the log ratio of its probabilities of the two labels, summed over a
    # candidate's rows. ``memory``: the same less what another model predicts of it from the
    # features of other rows, so that what every similar row shows does not count. Taken is the one
    # that varies less, since what a coin adds is in both: no coin has a part in the choice.
    pair = np.take_along_axis(found[coins.rows], coins.either, axis=1)
    ratio = np.diff(np.log(np.maximum(pair, _LEAST)), axis=1)[:, 0]
    ways = {"likelihood": ratio}
    if features is not None:
        ways["memory"] = ratio - expected(ratio, np.c_[features[coins.rows], coins.either])
    size = len(coins.coin)
    each = {way: np.bincount(coins.unit, one, size).astype(np.float64) for way, one in ways.items()}
    way = min(each, key=lambda one: float(np.square(each[one]).sum()))
    return way, each[way]


def expected(ratio: FloatArray, features: FloatArray) -> FloatArray:
    """Return what rows of other folds say of each row's logarithm, float64 (n,)."""
    from sklearn.ensemble import HistGradientBoostingRegressor
    from sklearn.model_selection import KFold

    folds = min(5, len(ratio))
    if folds < 2:
        return np.zeros(len(ratio))
    rounds = 12 if Plan(seed=0).effort == "small" else 60
    found = np.empty(len(ratio))
    for fitted, held in KFold(folds).split(features):
        unfitted = HistGradientBoostingRegressor(max_iter=rounds, random_state=0)
        model = fit_boosting(unfitted, features[fitted], ratio[fitted])
        found[held] = model.predict(features[held])
    return found


def farthest(features: FloatArray | None, unit: IndexArray) -> int:
    """Return the person with the row farthest from the mean, whose label weighs most."""
    if features is None:
        return 0
    spread = np.nanstd(features, axis=0)
    far = np.nan_to_num((features - np.nanmean(features, axis=0)) / np.where(spread, spread, 1.0))
    return int(unit[np.square(far).sum(axis=1).argmax()])


def which_label(known: FloatArray, coins: BoolArray, asked: FloatArray) -> FloatArray:
    """Return for each output of training (a, d) how much it is like those of coin 1, 0 if neither.

    ``known`` (l, d) are outputs whose coins (l,) are known: a discriminant with a variance of each
    coordinate.
    """
    sides = [known[coins == side] for side in (False, True)]
    low, high = (side.mean(axis=0) for side in sides)
    spread = np.mean([side.var(axis=0) for side in sides], axis=0)
    weights = (high - low) / (spread + 0.1 * spread.mean() + np.finfo(np.float64).tiny)
    return np.asarray((asked - (low + high) / 2) @ weights)


def numeric(features: Any, n: int) -> FloatArray | None:
    """Return features as numbers, float64 of shape (n, d), None where they are no table."""
    import pandas as pd

    if isinstance(features, pd.DataFrame):
        table = np.zeros((n, features.shape[1]))
        for place, (_, column) in enumerate(features.items()):
            plain = pd.api.types.is_numeric_dtype(column)
            table[:, place] = column if plain else pd.factorize(column.astype(str))[0]
        return table
    array = np.asarray(features) if hasattr(features, "shape") else None
    if array is None or array.ndim != 2 or array.dtype.kind not in "biuf":
        return None
    return array.astype(np.float64)
