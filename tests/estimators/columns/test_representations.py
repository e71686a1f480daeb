"""What a table shows in other forms: each kind of trace is a number that goes with the label."""

import numpy as np
import pyarrow as pa
import pytest
from sklearn.tree import DecisionTreeClassifier

from ldpaudit.datasets.features import decimals, encode_features
from ldpaudit.estimators.representations import Representations, represent

N = 3000
RNG = np.random.default_rng(8)
LABEL = RNG.integers(0, 2, N)
NUMBER = RNG.normal(size=N) / 7
GROUP = RNG.integers(0, N // 5, N)


def made(**columns: object) -> Representations:
    """Return the representations of columns, as a file's reader encodes them."""
    table = pa.table(columns)
    columns_of = ((name, table[name]) for name in table.column_names)
    return represent(encode_features(columns_of, N, table.column_names).table())


def others_mean() -> np.ndarray:
    sums, sizes = np.bincount(GROUP, LABEL), np.bincount(GROUP)
    return np.round((sums[GROUP] - LABEL) / np.maximum(sizes[GROUP] - 1, 1), 4)


ONE = RNG.random(N) < 0.5
GAPS = [np.where(gap, np.nan, NUMBER) for gap in (ONE, ONE ^ (LABEL == 1))]
DIGITS = RNG.integers(10_000, 99_999, N)
SUMS = sum((DIGITS // 10**place) % 10 for place in range(5))
KINDS = {
    "sum of the digits": {"x": DIGITS * 10.0 + 2 * RNG.integers(0, 5, N) + (SUMS + LABEL) % 2},
    "whether it is a float32": {"x": np.where(LABEL, NUMBER.astype(np.float32), NUMBER)},
    "number of decimals": {"x": np.where(LABEL, NUMBER.round(3), NUMBER.round(5))},
    "second": {"x": (1_700_000_000 + 3_600 * np.arange(N) + LABEL).astype("datetime64[s]")},
    "last digits": {"x": 2.0 * RNG.integers(0, 500, N) + LABEL},
    "value less the row number": {"x": np.arange(N) + LABEL},
    "the pattern of missing values": dict(zip("xy", GAPS, strict=True)),
    "the difference from the group's mean": {"g": GROUP.astype(str), "rate": others_mean()},
    "ratio": {"x": RNG.random(N) + 1, "y": None},
    "length of the text": {"x": [f"{i}{'b' * (1 + y)}" for i, y in enumerate(LABEL)]},
}
KINDS["ratio"]["y"] = KINDS["ratio"]["x"] * np.where(LABEL, 2.0, 3.0)


@pytest.mark.parametrize("kind", KINDS)
def test_a_trace_of_each_kind_separates_the_labels(kind: str) -> None:
    found = made(**KINDS[kind])
    tree = DecisionTreeClassifier(max_leaf_nodes=32)
    best = max(
        tree.fit(column[:, None], LABEL).score(column[:, None], LABEL)
        for source, column in zip(found.sources, found.matrix.T, strict=True)
        if source.kind == kind
    )
    assert best > 0.8


def test_rows_are_those_of_the_whole_table() -> None:
    columns = {"g": pa.array(GROUP.astype(str)), "x": pa.array(NUMBER)}
    table = pa.table(columns)
    features = encode_features(((n, table[n]) for n in columns), N, list(columns)).table()
    every, rows = represent(features), RNG.permutation(N)[:1000]
    some = represent(features, rows)
    kept = [every.sources.index(source) for source in some.sources if source.kind == "missing"]
    assert kept == []
    for kind in ("how often its value occurs", "the difference from the group's mean"):
        a, b = (
            r.matrix[:, [i for i, s in enumerate(r.sources) if s.kind == kind]]
            for r in (every, some)
        )
        np.testing.assert_allclose(a[rows], b, rtol=1e-5, atol=1e-6)


def test_decimals_are_the_fewest_that_write_a_number() -> None:
    values = np.array([1.0, 0.5, 0.1, -2.25, 1 / 3, 1e-8, np.nan])
    assert decimals(values).tolist() == [0, 1, 1, 2, 9, 8, 9]
