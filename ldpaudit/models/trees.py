"""Predictions of histogram gradient boosting, several times as fast as by walking its trees.

Which leaf a row falls into is found without branches: every split that sends a row to the right
strikes out the leaves on its left, and the first leaf that remains is the row's own.

References
----------
Lucchese et al. (2015), QuickScorer: a fast algorithm to rank documents with additive ensembles of
regression trees.
"""

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ldpaudit.arrays import BoolArray, Float32Array, FloatArray

# Rows at a time: what is written again and again stays near the processor.
_BLOCK: Final = 32_768
# With fewer rows walking is as fast; so many are walked all the same, to compare.
_FEWEST, _COMPARED = 4_096, 64
_MOST_LEAVES: Final = 16
# The rows of which scikit-learn makes the bins of more.
_BINNED: Final = 200_000


@dataclass(frozen=True)
class _Split:
    """One split: which values go to the right, and the leaves on the left, as bits."""

    feature: int
    threshold: np.float32
    left: np.uint16
    missing_right: bool
    right: BoolArray | None
    """Bool (256,): of a categorical column, by its code; None for a number."""


@dataclass(frozen=True)
class _Tree:
    """The splits of a tree, and the values of its leaves by the lowest bit that is left."""

    splits: tuple[_Split, ...]
    values: FloatArray


# The place of the only bit of a word.
_PLACES: Final = np.zeros(1 << _MOST_LEAVES, dtype=np.uint8)
_PLACES[1 << np.arange(_MOST_LEAVES)] = np.arange(_MOST_LEAVES)


def fit_boosting(model: Any, rows: Any, known: Any, weights: FloatArray | None = None) -> Any:
    """Fit scikit-learn's boosting to rows (n, d), NaN where missing; return it.

    A column with fewer cells than a leaf has rows can never be split, so it is fitted as constant:
    where all that are looked at for its bins are missing, scikit-learn 1.9 raises a ValueError. Of
    more than 200,000 rows it looks at a sample for bins, so there a column with fewer than one
    cell in 10,000 rows is fitted as constant, too, though it might have been split.
    """
    # About 20 cells are in the sample then; a tenth of it may be left out to stop early.
    fewest = max(model.min_samples_leaf, 20 * len(rows) / _BINNED)
    few = np.count_nonzero(~np.isnan(rows), axis=0) < fewest
    if few.any():
        rows = np.where(few, rows.dtype.type(0), rows)
    return model.fit(rows, known, weights)


def probabilities(model: Any, rows: Float32Array) -> FloatArray:
    """Return what ``predict_proba`` of scikit-learn's boosting gives, float64 (n, k), bit for bit.

    ``model``: a fitted HistGradientBoostingClassifier. What is unknown of its inner workings, with
    another version of scikit-learn for one, is left to itself.
    """
    if len(rows) >= _FEWEST and rows.dtype == np.float32:
        try:
            encoded = np.asarray(model._preprocess_X(rows, reset=False))
            trees = _trees(model)
            raw = np.empty((len(rows), len(trees[0])), order="F")
            for start in range(0, len(rows), _BLOCK):
                part = encoded[start : start + _BLOCK]
                raw[start : start + len(part)] = _raw(model, trees, part)
            found = np.asarray(model._loss.predict_proba(raw))
            few = np.linspace(0, len(rows) - 1, _COMPARED).astype(np.int64)
            if np.array_equal(found[few], model.predict_proba(rows[few])):
                return found
        except (AttributeError, KeyError, IndexError, TypeError, ValueError):
            pass
    return np.asarray(model.predict_proba(rows))


def _raw(model: Any, trees: list[list[_Tree]], rows: npt.NDArray[Any]) -> FloatArray:
    """Return the sums of the leaves' values, float64 (rows, trees of each round)."""
    columns = np.ascontiguousarray(rows.T, dtype=np.float32)
    gaps: list[BoolArray | None] = [np.isnan(column) for column in columns]
    gaps = [gap if gap is not None and gap.any() else None for gap in gaps]
    codes: dict[int, npt.NDArray[np.uint8]] = {}
    n = len(rows)
    raw = np.zeros((n, len(trees[0])), dtype=np.float64, order="F")
    raw += model._baseline_prediction
    goes_right, bits = np.empty(n, dtype=np.bool_), np.empty(n, dtype=np.uint16)
    struck, first = np.empty(n, dtype=np.uint16), np.empty(n, dtype=np.uint16)
    for one_round in trees:
        for place, tree in enumerate(one_round):
            struck[:] = 0
            for split in tree.splits:
                gap = gaps[split.feature]
                if split.right is None:
                    np.greater(columns[split.feature], split.threshold, out=goes_right)
                else:
                    if split.feature not in codes:
                        known = np.nan_to_num(columns[split.feature])
                        codes[split.feature] = known.astype(np.uint8)
                    np.take(split.right, codes[split.feature], out=goes_right)
                    if gap is not None:
                        goes_right[gap] = False
                if gap is not None and split.missing_right:
                    goes_right |= gap
                np.multiply(goes_right, split.left, out=bits)
                np.bitwise_or(struck, bits, out=struck)
            # The lowest bit that is not set: ~s & (s + 1).
            np.add(struck, np.uint16(1), out=first)
            np.invert(struck, out=struck)
            np.bitwise_and(first, struck, out=first)
            raw[:, place] += tree.values[_PLACES[first]]
    return raw


def _trees(model: Any) -> list[list[_Tree]]:
    known, rows_of = model._bin_mapper.make_known_categories_bitsets()
    return [[_tree(tree, known, rows_of) for tree in one_round] for one_round in model._predictors]


def _tree(predictor: Any, known: npt.NDArray[Any], rows_of: npt.NDArray[Any]) -> _Tree:
    values, splits = list[float](), list[_Split]()
    names = predictor.nodes.dtype.names
    nodes = [dict(zip(names, node, strict=True)) for node in predictor.nodes.tolist()]

    def walk(place: int) -> int:
        """Number the leaves from left to right; return the bits of those below a node."""
        node = nodes[place]
        if node["is_leaf"]:
            values.append(node["value"])
            return 1 << (len(values) - 1)
        left = walk(node["left"])
        right = walk(node["right"])
        feature, threshold = node["feature_idx"], node["num_threshold"]
        missing_right, to_right = not node["missing_go_to_left"], None
        if node["is_categorical"]:
            to_left = _members(predictor.raw_left_cat_bitsets[node["bitset_idx"]])
            to_right = ~to_left & (_members(known[rows_of[feature]]) | missing_right)
        # A number of 32 bits is larger than a threshold of 64 where it is larger than that rounded
        # down.
        rounded = np.float32(threshold)
        if float(rounded) > threshold:
            rounded = np.nextafter(rounded, np.float32(-np.inf))
        splits.append(_Split(feature, rounded, np.uint16(left), missing_right, to_right))
        return left | right

    if len(nodes) >= 2 * _MOST_LEAVES:
        raise ValueError(len(nodes))
    walk(0)
    return _Tree(tuple(splits), np.array(values))


def _members(words: npt.NDArray[Any]) -> BoolArray:
    """Return which of 256 numbers are in a set of eight words of 32 bits."""
    return np.unpackbits(words.astype("<u4").view(np.uint8), bitorder="little").astype(np.bool_)
