"""What differs in a file differs for the audit, whatever the file states of itself."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ldpaudit.datasets import read_release
from ldpaudit.datasets.features import encode_numbers

LEAST, MOST = 0.123456789, 0.987654321


@pytest.mark.parametrize("stated", [1e300, -5.0, 0.5])
def test_statistics_that_are_not_of_the_values_change_nothing(
    stated: float, tmp_path: Path
) -> None:
    """A forged range once made all values of a column equal: a leak was not seen."""
    values = np.where(np.arange(200) % 2, LEAST, MOST)
    words = np.array(["no", "yes"])[np.arange(200) // 3 % 2]
    path = tmp_path / "r.parquet"
    pq.write_table(pa.table({"label": words, "x": values}), path)
    honest = read_release(path, label="label").release.features.numeric
    content = path.read_bytes()
    footer = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    forged = content[footer:].replace(np.float64(MOST).tobytes(), np.float64(stated).tobytes())
    path.write_bytes(content[:footer] + forged)
    found = read_release(path, label="label").release.features.numeric
    np.testing.assert_array_equal(found, honest)


@pytest.mark.parametrize("kind", [pa.int64(), pa.uint64()])
def test_long_integers_that_differ_stay_different(kind: pa.DataType) -> None:
    """As float64, 2**53 and 2**53 + 1 are one number: a column of them told every label."""
    for zero in (1 << 53, (1 << 63) - 2):
        column = pa.chunked_array([pa.array([zero, None, zero + 1], kind)])
        np.testing.assert_array_equal(encode_numbers(column), [[0], [np.nan], [1]])
    ends = pa.chunked_array([pa.array([-(1 << 63), (1 << 63) - 1])])
    assert encode_numbers(ends).tolist() == [[0], [1]]


CODES = 5_000_000_000 + np.arange(200) // 3 % 2
SUBTLE = {
    "long codes beside a zero": pa.array([0, *CODES[1:]]),
    "the same with fractions allowed": pa.array([0.0, *CODES[1:]], pa.float64()),
    "two zeros": pa.array(np.where(CODES % 2, -0.0, 0.0)),
    "missing and no number": pa.array([None if odd else np.nan for odd in CODES % 2], pa.float64()),
}


@pytest.mark.parametrize("name", SUBTLE)
def test_what_float32_makes_equal_is_told_to_models(name: str, tmp_path: Path) -> None:
    """Such a column told every label, and the answer was to publish."""
    words = np.array(["no", "yes"])[np.arange(200) // 3 % 2]
    table = pa.table({"label": words, "x": SUBTLE[name], "y": np.arange(200) % 5})
    pq.write_table(table, tmp_path / "r.parquet")
    features = read_release(tmp_path / "r.parquet", label="label").release.features
    assert len(np.unique(features.numeric[1:, 0])) == 1
    extra = features.expanded().numeric[1:, -1]
    assert len(np.unique(extra)) == 2
    assert (extra == extra.max()).tolist() in [(words == w).tolist()[1:] for w in ("no", "yes")]
