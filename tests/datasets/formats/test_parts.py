"""A part of a folder that cannot be read is named by its position, never by its path."""

from pathlib import Path

import pandas as pd
import pytest

from ldpaudit.datasets.formats.opening import open_table
from ldpaudit.errors import InputError


@pytest.mark.parametrize(("bytes_left", "why"), [(0, "is empty"), (300, "is truncated")])
def test_a_part_is_named_by_position(tmp_path: Path, bytes_left: int, why: str) -> None:
    folder = tmp_path / "parts"
    folder.mkdir()
    for name in ("secret-a", "secret-b", "secret-c"):
        pd.DataFrame({"x": range(90)}).to_parquet(folder / f"{name}.parquet")
    second = folder / "secret-b.parquet"
    second.write_bytes(second.read_bytes()[:bytes_left])
    with pytest.raises(InputError, match=rf"^Part 2 of 3 of 'parts', .* {why}") as caught:
        open_table(folder)
    assert "secret" not in str(caught.value)
