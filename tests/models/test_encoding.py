"""One encoder, three users: each has the matrix that its own encoder once made, to the bit."""

import numpy as np
import pytest

from ldpaudit.estimators.metric import fit_metric
from ldpaudit.models.encoding import (
    BoostingMatrix,
    DesignMatrix,
    LevelsByColumn,
    LevelsInAll,
    Limits,
)
from ldpaudit.release import FeatureTable, Float32Array


def some_table(seed: int) -> FeatureTable:
    """Return numbers of all sizes with holes and constants, and columns of up to 3,000 levels."""
    rng = np.random.default_rng(seed)
    n, d, c = int(rng.integers(2, 2000)), int(rng.integers(1, 6)), int(rng.integers(1, 4))
    sizes = 10.0 ** rng.integers(-3, 6, d)
    numeric = (rng.standard_normal((n, d)) * sizes + rng.integers(-9, 9, d)).astype(np.float32)
    numeric[:, rng.random(d) < 0.2] = np.float32(0.1)
    numeric[rng.random((n, d)) < rng.choice([0, 0.001, 0.05, 0.9, 1.0], d)] = np.nan
    levels = tuple(int(size) for size in rng.choice([1, 2, 5, 60, 400, 3000], c))
    codes = np.stack([np.minimum(rng.zipf(1.3, n), size) - 1 for size in levels], axis=1)
    codes[rng.random((n, c)) < 0.03] = -1
    return FeatureTable(numeric, codes.astype(np.int32), levels, d + c)


def indicators(codes: np.ndarray, levels: np.ndarray) -> Float32Array:
    return np.asarray(codes[:, None] == levels, dtype=np.float32)


def standardised(fitted: Float32Array, rows: Float32Array) -> tuple[np.ndarray, Float32Array]:
    """Return which columns vary, and those of ``rows``: the mean where missing, cut at ± 8."""
    values, there = fitted.astype(np.float64), ~np.isnan(fitted)
    counts = np.maximum(there.sum(axis=0), 1)
    means = np.where(there, values, 0).sum(axis=0) / counts
    scales = np.sqrt((np.where(there, values - means, 0) ** 2).sum(axis=0) / counts)
    varying = scales > 1e-12 * np.maximum(np.abs(means), 1e-30)
    scaled = (rows[:, varying] - means[varying]) / scales[varying]
    return varying, np.clip(np.nan_to_num(scaled, nan=0.0), -8, 8).astype(np.float32)


@pytest.mark.parametrize("seed", range(4))
def test_linear_models_see_what_they_saw(seed: int) -> None:
    table = some_table(seed)
    fitted = table.take(np.arange(len(table)) < max(3 * len(table) // 4, 1))
    missing = np.isnan(fitted.numeric).sum(axis=0)
    marked = np.minimum(missing, len(fitted) - missing) >= 10
    blocks = [standardised(fitted.numeric, table.numeric)[1], np.isnan(table.numeric[:, marked])]
    used = 0
    for column, codes in enumerate(table.categorical.T):
        counts = np.bincount(fitted.categorical[:, column] + 1, minlength=3002)
        often = np.argsort(-counts, kind="stable")[: min(100, 600 - used - 1)]
        often = often[counts[often] >= 10]
        blocks += [indicators(codes + 1, often), ~np.isin(codes + 1, often)[:, None]]
        used += len(often) + 1
    matrix = DesignMatrix.fit(fitted).transform(table)
    assert np.array_equal(matrix, np.concatenate(blocks, axis=1).astype(np.float32))


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("name", ["l2", "raw"])
def test_metrics_see_what_they_saw(seed: int, name: str) -> None:
    table = some_table(seed)
    numeric, rng = table.numeric, np.random.default_rng(0)
    some = np.flatnonzero(~np.isnan(numeric).all(axis=0))
    varying = some[np.nanmax(numeric[:, some], axis=0) > np.nanmin(numeric[:, some], axis=0)]
    used = numeric[:, varying]
    filled = np.where(np.isnan(used), np.nanmedian(used, axis=0).astype(np.float32), used)
    blocks = [filled]
    if name == "l2":
        center = np.nanmean(used, axis=0, dtype=np.float64).astype(np.float32)
        scale = np.nanstd(used, axis=0, dtype=np.float64).astype(np.float32)
        holes = np.isnan(numeric[:, some[np.isnan(numeric[:, some]).any(axis=0)]])
        blocks = [np.clip((filled - center) / scale, -5, 5), holes]
    columns = table.categorical.T + 1
    counts = [np.bincount(codes, minlength=3001) for codes in columns]
    present = np.sort([size for count in counts for size in count if size > 0])
    least = 1
    if len(present) > 256:
        least = max(present[-257] + 1, np.ceil(0.0005 * len(table)))
    for codes, count in zip(columns, counts, strict=True):
        own, rest = np.flatnonzero(count >= least), ((count > 0) & (count < least)).any()
        if len(own) + rest > 1:
            blocks.append(indicators(codes, own))
            blocks += [~np.isin(codes, own)[:, None]] if rest else []
    points = fit_metric(table, name, rng=rng, max_dimensions=10_000).transform(table)  # type: ignore[arg-type]
    assert np.array_equal(points, np.concatenate(blocks, axis=1).astype(np.float32))


def test_a_code_that_no_fitted_row_could_have_is_one_of_the_others_or_nothing() -> None:
    codes = np.repeat(np.arange(3, dtype=np.int32), 20)[:, None]
    numeric = np.zeros((60, 0), dtype=np.float32)
    table, later = (FeatureTable(numeric, shown, (3,), 1) for shown in (codes, codes + 7))
    assert DesignMatrix.fit(table).transform(later).tolist() == [[0, 0, 0, 1]] * 60
    bare = DesignMatrix.fit(table, Limits(LevelsByColumn(40)))
    assert not bare.transform(later).any()
    assert bare.transform(table).sum() == 60


def test_merged_levels_are_counted() -> None:
    codes = np.arange(300, dtype=np.int32)[:, None] // np.array([1], dtype=np.int32)
    codes = np.concatenate([codes, np.zeros((700, 1), dtype=np.int32)])
    table = FeatureTable(np.zeros((1000, 0), dtype=np.float32), codes, (300,), 1)
    design = DesignMatrix.fit(table, Limits(LevelsInAll(256, 0.0005), single=True))
    assert (design.merged, design.indicators) == (299, 2)


def test_trees_see_the_254_most_frequent_levels() -> None:
    codes = np.repeat(np.arange(300, dtype=np.int32), 2)[:, None]
    codes[-1] = -1
    numeric = np.full((600, 2), np.nan, dtype=np.float32)
    numeric[:, 0] = 1.5
    table = FeatureTable(numeric, codes, (300,), 3)
    design = BoostingMatrix.fit(table)
    matrix = design.transform(table)
    assert design.width == matrix.shape[1] == 2
    assert design.categorical().tolist() == [True, False]
    assert np.isnan(matrix[-1, 0])
    assert np.nanmax(matrix[:, 0]) == 254
