"""Features that a mechanism draws: which of them are drawn again, and whether they are the same."""

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ldpaudit.datasets.formats.tables import (
    LISTS,
    NUMBERS,
    TableSource,
    comparable_values,
    is_any,
)
from ldpaudit.datasets.labels import label_forms, positions
from ldpaudit.datasets.reading import open_source
from ldpaudit.doors import (
    IndexArray,
    InputError,
    IntArray,
    Mechanism,
    NoisyFeatures,
    SyntheticFeatures,
)
from ldpaudit.extras.receipt.drawing import by_blocks
from ldpaudit.mechanisms.exact_sampling import uniform_below
from ldpaudit.mechanisms.keyed import KeyedBits, NoiseKey
from ldpaudit.options import FileOptions
from ldpaudit.receipt.found import FeatureReplay
from ldpaudit.release import Label

_NOISE: Final = (
    "the noise of features, which OpenDP draws from the operating system and not from the key"
)
_OF_GENERATOR: Final = "the synthetic features, which a generator made"
_NO_TABLE: Final = "the synthetic features (their rows are given with --synthetic)"
_OTHER_COLUMNS: Final = (
    "the synthetic features, because the table of --synthetic has other columns or labels than the "
    "release"
)


def draws_features(mechanism: Mechanism) -> bool:
    """Return whether a mechanism releases other features than the true ones."""
    return mechanism.after_rounding.traits.features != "unchanged"


def features_again(
    mechanism: Mechanism,
    table: TableSource,
    label: str,
    truth: IntArray,
    key: NoiseKey,
    synthetic: Any,
    files: FileOptions,
    *,
    generated: bool,
) -> FeatureReplay:
    """Draw the features of a release again, whose rows are in the order of the true labels.

    ``truth``: codes of the true labels, shape (n,). ``synthetic``: the table of synthetic rows,
    None where it is not given. ``generated``: whether a generator made them.
    """
    if mechanism.offers(NoisyFeatures) is not None:
        return FeatureReplay(unseen=_NOISE)
    names = [name for name in table.names if name != label]
    double = mechanism.offers(SyntheticFeatures)
    if double is None and mechanism.traits.features != "withheld":
        return FeatureReplay(unseen="features, which are not drawn from the key")
    if double is None and synthetic is None and _nothing(table, names):
        return FeatureReplay(len(truth), withheld=True)
    if generated:
        return FeatureReplay(unseen=_OF_GENERATOR)
    if synthetic is None:
        return FeatureReplay(unseen=_NO_TABLE)
    rows = open_source(synthetic, None, files)
    domain = mechanism.label_channel
    classes = () if domain is None else domain.classes
    if not {*names, label} <= {*rows.names}:
        return FeatureReplay(unseen=_OTHER_COLUMNS)
    codes = _codes(rows, label, classes)
    if codes is None:
        return FeatureReplay(unseen=_OTHER_COLUMNS)
    chosen = _chosen(double, label, truth, codes, key)
    drawn = np.flatnonzero(chosen >= 0)
    same = np.ones(len(drawn), dtype=bool)
    theirs = dict(rows.columns(names))
    for name, ours in table.columns(names):
        other = theirs[name].take(pa.array(chosen[drawn]))
        loose = table.text or rows.text
        same &= _same_cells(ours.take(pa.array(drawn)), other, loose=loose)
    return FeatureReplay(len(drawn), int((~same).sum()))


def _chosen(
    double: SyntheticFeatures | None,
    label: str,
    truth: IntArray,
    codes: IntArray,
    key: NoiseKey,
) -> IndexArray:
    """Return the synthetic row of each row, −1 for none."""
    draw: Callable[[slice, KeyedBits], Any]
    if double is not None:
        draws, own = key.stream("release", label), double

        def draw(part: slice, bits: KeyedBits) -> Any:
            return own.sample(truth[part], codes, bits).synthetic_rows
    else:
        draws = key.stream("features", label)

        def draw(part: slice, bits: KeyedBits) -> Any:
            return uniform_below(len(codes), part.stop - part.start, bits).astype(np.int64)

    parts = [draw(part, draws.at(block)) for block, part in by_blocks(len(truth))]
    return np.concatenate(parts) if parts else np.zeros(0, np.int64)


def _codes(rows: TableSource, label: str, classes: Sequence[Label]) -> IntArray | None:
    """Return the codes of the synthetic rows' labels; None where they are not the release's."""
    column = dict(rows.columns([label], as_text=[label]))[label]
    try:
        forms, codes = label_forms(column, "synthetic", from_text=rows.text)
    except InputError:
        return None
    found = np.append(positions(forms, classes), np.int32(-1))[codes]
    return None if (found < 0).any() or len(np.unique(found)) < len(classes) else found


def _nothing(table: TableSource, names: Sequence[str]) -> bool:
    """Return whether no row has a value in any of some columns."""
    return all(_empty(column) for _, column in table.columns(names))


def _empty(column: pa.ChunkedArray) -> bool:
    return bool(column.null_count == len(column))


def _same_cells(
    ours: pa.ChunkedArray, theirs: pa.ChunkedArray, *, loose: bool
) -> npt.NDArray[np.bool_]:
    """Return in which rows two columns hold the same; ``loose``: one is of a text file."""
    # A text file has no types: numbers are compared as float32 there, since the data may have been.
    one, other = comparable_values(ours), comparable_values(theirs)
    kinds = one.type, other.type
    if all(is_any(kind, *NUMBERS, "boolean") for kind in kinds):
        if all(is_any(kind, "integer", "boolean") for kind in kinds):
            a, b = (column.cast(pa.int64(), safe=False) for column in (one, other))
            same = pc.or_kleene(pc.equal(a, b), pc.and_(a.is_null(), b.is_null()))
            return np.asarray(same.fill_null(False).to_numpy())
        single = loose or any(is_any(kind, "float16", "float32") for kind in kinds)
        width = np.float32 if single else np.float64
        with np.errstate(over="ignore"):
            x, y = (_numbers(column).astype(width) for column in (one, other))
        return np.asarray((x == y) | (np.isnan(x) & np.isnan(y)))
    if any(is_any(kind, *LISTS, "struct", "map") for kind in kinds):
        pairs = zip(one.to_pylist(), other.to_pylist(), strict=True)
        return np.array([a == b for a, b in pairs], dtype=bool)
    if all(is_any(kind, "timestamp", "date") for kind in kinds) and kinds[0] != kinds[1]:
        one, other = (c.cast(pa.timestamp("us"), safe=False) for c in (one, other))
    try:
        x, y = (column.cast(pa.large_string()).fill_null("") for column in (one, other))
    except pa.ArrowException:
        pairs = zip(one.to_pylist(), other.to_pylist(), strict=True)
        return np.array([a == b for a, b in pairs], dtype=bool)
    return np.asarray(pc.equal(x, y).to_numpy())


def _numbers(column: pa.ChunkedArray) -> npt.NDArray[np.float64]:
    if pa.types.is_boolean(column.type):
        column = column.cast(pa.int8())
    return np.asarray(column.cast(pa.float64(), safe=False).to_numpy(), dtype=np.float64)
